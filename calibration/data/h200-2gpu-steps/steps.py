# SPDX-License-Identifier: Apache-2.0
"""Times of all-reduces captured in a CUDA graph, algorithm, protocol and number of channels forced, one process per GPU.
Usage: python3 steps.py [SECONDS]; prints one line per configuration and size: GPUs, algorithm, protocol, channels (0: NCCL's), bytes, median and least microseconds."""
import os
import statistics
import subprocess
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

SIZES = [8, 16, 32, 64, 128, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 12 << 10, 16 << 10, 20 << 10, 24 << 10, 32 << 10, 40 << 10, 48 << 10, 64 << 10, 96 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20, 16 << 20]
CONFIGS = [(2, algorithm, protocol, channels) for protocol, counts in (("Simple", (1, 2, 4, 8, 0)), ("LL128", (1, 4, 0)), ("LL", (4,))) for channels in counts for algorithm in ("Ring", "Tree")]
CALLS, REPLAYS = 20, 25


def worker(rank, gpus, algorithm, protocol, channels, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), NCCL_ALGO=algorithm, NCCL_PROTO=protocol, NCCL_NVLS_ENABLE="0", RANK=str(rank), WORLD_SIZE=str(gpus))
    if channels:
        os.environ.update(NCCL_MAX_CTAS=str(channels), NCCL_MIN_CTAS=str(channels))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    stream = torch.cuda.Stream()
    for size in SIZES:
        data = torch.zeros(size // 4, dtype=torch.float32, device="cuda")
        with torch.cuda.stream(stream):
            for _ in range(3):
                dist.all_reduce(data)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                for _ in range(CALLS):
                    dist.all_reduce(data)
            times = []
            for _ in range(REPLAYS):
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record(stream)
                graph.replay()
                end.record(stream)
                end.synchronize()
                times.append(begin.elapsed_time(end) * 1e3 / CALLS)
        times = times[3:]
        if rank == 0:
            print(gpus, algorithm, protocol, channels, size, f"{statistics.median(times):.3f} {min(times):.3f}", flush=True)
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    sys.stdout.flush()
    os._exit(0)  # destroy_process_group does not return after graphs


if __name__ == "__main__":
    if len(sys.argv) > 2:  # one configuration
        which = int(sys.argv[2])
        mp.spawn(worker, args=(*CONFIGS[which], 29500 + which), nprocs=CONFIGS[which][0])
        sys.exit(0)
    limit = float(sys.argv[1]) if len(sys.argv) > 1 else 1e9
    begin = time.time()
    print("# nccl", torch.cuda.nccl.version(), "torch", torch.__version__, torch.cuda.get_device_name(0), torch.cuda.device_count(), flush=True)
    for which, config in enumerate(CONFIGS):
        if time.time() - begin > limit:
            break
        run = subprocess.Popen([sys.executable, __file__, "0", str(which)], start_new_session=True)
        try:
            run.wait(40)
        except subprocess.TimeoutExpired:
            print("# no end after 40 s:", *config, flush=True)
            os.killpg(run.pid, 9)
