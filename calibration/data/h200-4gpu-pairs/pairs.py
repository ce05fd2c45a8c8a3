# SPDX-License-Identifier: Apache-2.0
"""Times of sends and receives captured in a CUDA graph, one process per GPU, protocol and channels of a pair forced.
Usage: python3 pairs.py [SECONDS]; prints one line per configuration and size: GPUs, operation, protocol (LL, Simple, or NCCL's choice), channels of a pair (0: NCCL's), bytes, median and least microseconds.
Bytes as nccl-tests count them: of all-to-all, gather and scatter the whole buffer, of send-receive what one rank sends."""
import os
import statistics
import subprocess
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

SIZES = [16, 256, 4 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20, 64 << 20, 256 << 20]
CONFIGS = [(gpus, op, protocol, 0) for op in ("alltoall", "sendrecv") for gpus in (4, 2) for protocol in ("default", "Simple", "LL")]
CONFIGS += [(gpus, op, "Simple", channels) for op in ("alltoall", "sendrecv") for gpus in (4, 2) for channels in (1, 4)]
CONFIGS += [(4, op, "default", 0) for op in ("scatter", "gather")]
CONFIGS += [(gpus, op, "LL", 1) for op in ("alltoall", "sendrecv") for gpus in (4, 2)]
CALLS, REPLAYS = 20, 25


def call(op, size, gpus, rank):
    whole = torch.zeros(size // 4, dtype=torch.float32, device="cuda")
    other = torch.zeros(size // 4, dtype=torch.float32, device="cuda")
    if op == "alltoall":
        return lambda: dist.all_to_all_single(other, whole)
    if op == "sendrecv":
        ops = [dist.P2POp(dist.isend, whole, (rank + 1) % gpus), dist.P2POp(dist.irecv, other, (rank - 1) % gpus)]
        return lambda: [work.wait() for work in dist.batch_isend_irecv(ops)]
    part = torch.zeros(size // 4 // gpus, dtype=torch.float32, device="cuda")
    parts = list(whole.chunk(gpus)) if rank == 0 else None
    return (lambda: dist.scatter(part, parts, 0)) if op == "scatter" else (lambda: dist.gather(part, parts, 0))


def worker(rank, gpus, op, protocol, channels, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(gpus))
    if protocol != "default":
        os.environ["NCCL_P2P_LL_THRESHOLD"] = "0" if protocol == "Simple" else str(1 << 30)
    if channels:
        os.environ.update(NCCL_MIN_P2P_NCHANNELS=str(channels), NCCL_MAX_P2P_NCHANNELS=str(channels), NCCL_NCHANNELS_PER_PEER=str(channels))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    stream = torch.cuda.Stream()
    for size in SIZES:
        if protocol == "LL" and size > (16 << 20):
            continue
        calls, replays = (CALLS, REPLAYS) if size < (16 << 20) else (4, 11)
        one = call(op, size, gpus, rank)
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
            print(gpus, op, protocol, channels, size, f"{statistics.median(times):.3f} {min(times):.3f}", flush=True)
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
