# SPDX-License-Identifier: Apache-2.0
"""Writes lines.txt (or steps.txt of h200-2gpu-steps, blocks.txt of h200-4gpu-blocks, pairs.txt of h200-4gpu-pairs) as one table of nccl-tests per configuration, the form that
calibrations read. Usage: python3 tables.py FILE PREFIX; tables go to the folder nccl-tests. Times are medians; the columns of both places repeat
them, since every call was of one kind (all-reduce in place, others not); nothing was verified (N/A)."""
import collections
import pathlib
import sys

HEAD = """# Made by tables.py, a program of the project: {} {}, captured in a CUDA graph, one process per GPU
# nccl-headers=22809 nccl-library=22809; not a run of nccl-tests, but its form
# nThread 1 nGpus 1 minBytes 8 maxBytes {} warmup iters: 3 iters: 20 agg iters: 1 validation: 0 graph: 22 unalign: 0
"""
TITLES = """#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
"""

PAIRS = ("alltoall", "sendrecv", "gather", "scatter")  # no algorithm; a protocol is NCCL's or forced

source, prefix = pathlib.Path(sys.argv[1]), sys.argv[2]
tables = collections.defaultdict(list)
for line in source.read_text().splitlines():
    if not line.startswith("#"):
        gpus, *operation, protocol, channels, size, median, _ = line.split()
        how = [word.lower() for word in (*operation, protocol) if word != "default"]
        name = "-".join([prefix, f"{gpus}gpu", *how, *([f"ch{channels}"] if channels != "0" else [])])
        collective = operation[0] if len(operation) == 2 or operation[0] in PAIRS else "all_reduce"
        tables[name].append((int(gpus), collective, int(size), float(median)))
for name, rows in tables.items():
    gpus, collective = rows[0][:2]
    is_all_reduce = collective == "all_reduce"
    text = HEAD.format(collective.replace("_", "-") + "s", "in place" if is_all_reduce else "out of place", rows[-1][2])
    text += "".join(f"#  Rank {rank:2} Group  0 Pid {1000 + rank} on node0 device {rank:2} NVIDIA H200\n" for rank in range(gpus)) + TITLES
    is_whole = is_all_reduce or collective == "sendrecv"
    for gpus, _, size, time in rows:
        rate = size / time / 1e3
        bus = 1 if collective == "sendrecv" else (2 if is_all_reduce else 1) * (gpus - 1) / gpus
        half = f"{time:8.3f} {rate:7.3f} {rate * bus:7.3f}     N/A"
        text += f"{size:12} {size // 4 // (1 if is_whole else gpus):13}     float{'none' if collective in ('all_gather', *PAIRS) else 'sum':>8}      -1 {half} {half}\n"
    (source.parent / "nccl-tests" / f"{name}.txt").write_text(text)
