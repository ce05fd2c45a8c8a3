# SPDX-License-Identifier: Apache-2.0
"""Times of collectives captured in a CUDA graph, algorithm, protocol and number of channels forced, one process per GPU.
Usage: python3 blocks.py [SECONDS]; prints one line per configuration and size: GPUs, collective, algorithm, protocol, channels (0: NCCL's), bytes, median and least microseconds.
Bytes as nccl-tests count them; all-reduce in place, all-gather and reduce-scatter from one buffer to another."""
import os
import statistics
import subprocess
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

SIZES = [8, 64, 512, 4 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20, 64 << 20, 256 << 20]
CONFIGS = [(4, "all_reduce", "Ring", "Simple", channels) for channels in (1, 2, 4, 8, 0)]
CONFIGS += [(4, "all_reduce", "Tree", "Simple", channels) for channels in (1, 4, 0)]
CONFIGS += [(gpus, collective, "Ring", "Simple", channels) for gpus in (4, 2) for collective in ("all_gather", "reduce_scatter") for channels in (1, 4, 0)]
CONFIGS += [(2, "all_reduce", "Ring", "Simple", channels) for channels in (1, 4, 0)]
CONFIGS += [(4, "all_reduce", algorithm, "LL128", channels) for algorithm in ("Ring", "Tree") for channels in (4, 0)]
CONFIGS += [(gpus, "all_gather", "Ring", "LL128", 1) for gpus in (4, 2)]
CALLS, REPLAYS = 20, 25


def call(collective, size, gpus):
    if collective == "all_reduce":
        data = torch.zeros(size // 4, dtype=torch.float32, device="cuda")
        return lambda: dist.all_reduce(data)
    whole = torch.zeros(size // 4, dtype=torch.float32, device="cuda")
    part = torch.zeros(size // 4 // gpus, dtype=torch.float32, device="cuda")
    return (lambda: dist.all_gather_into_tensor(whole, part)) if collective == "all_gather" else (lambda: dist.reduce_scatter_tensor(part, whole))


def worker(rank, gpus, collective, algorithm, protocol, channels, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), NCCL_ALGO=algorithm, NCCL_PROTO=protocol, NCCL_NVLS_ENABLE="0", RANK=str(rank), WORLD_SIZE=str(gpus))
    if channels:
        os.environ.update(NCCL_MAX_CTAS=str(channels), NCCL_MIN_CTAS=str(channels))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    stream = torch.cuda.Stream()
    for size in SIZES:
        if size < 4 * gpus and collective != "all_reduce":
            continue
        calls, replays = (CALLS, REPLAYS) if size < (16 << 20) else (4, 11)
        one = call(collective, size, gpus)
        with torch.cuda.stream(stream):
            for _ in range(3):
                one()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                for _ in range(calls):
                    one()
            times = []
            for _ in range(replays):
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record(stream)
                graph.replay()
                end.record(stream)
                end.synchronize()
                times.append(begin.elapsed_time(end) * 1e3 / calls)
        times = times[3:]
        if rank == 0:
            print(gpus, collective, algorithm, protocol, channels, size, f"{statistics.median(times):.3f} {min(times):.3f}", flush=True)
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
