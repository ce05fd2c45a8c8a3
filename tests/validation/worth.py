# SPDX-License-Identifier: Apache-2.0
"""What a learnt value earns: how much farther forecasts are from the logs of scenarios/validation when its parent takes its place.
Error of a point = |ln(forecast / measured)|. A parent is what the model reads without the value (the name without its last part or an
inner one), the same of all processors or stacks, the same of another protocol, or that of relatives (leave_out.relative_of)."""
import dataclasses
import pathlib

import leave_out
import logs
import systems

# Fields of a processor or adapter to what the model reads where there are none.
USUAL = {
    "launch_interval": "cuda.launch_interval",
    "pageable_bandwidth": "cuda.pageable_bandwidth",
    "gdrcopy_read_bandwidth": "gdrcopy.read_bandwidth",
    "gdrcopy_write_bandwidth": "gdrcopy.write_bandwidth",
    "gdrcopy_overhead": "mpi.open-mpi-ucx.device_overhead",
    "shared_memory_overhead": "mpi.shared_memory.overhead",
    "shared_memory_copy_bandwidth": "mpi.shared_memory.copy_bandwidth",
    "store_and_forward": "verbs.store_and_forward",
}
ALIKE = (("ll", "ll128", "simple"), ("ring", "tree"), ("middle", "end"), ("all_gather", "all_reduce"))


def without_parts(name: str, values: dict) -> list:
    """Shipped names that leave out parts of this one behind its owner and field, fewest first, the last part before inner ones."""
    parts = name.split(".")
    out = []
    for count in range(1, len(parts) - 2 + 1):
        for first in range(len(parts) - count, 1, -1):
            shorter = ".".join(parts[:first] + parts[first + count :])
            if shorter in values:
                out.append(shorter)
    return out


def siblings(name: str, values: dict) -> list:
    """The same of another protocol, algorithm, place or collective; of the same GPU generation first."""
    out = []
    for words in ALIKE:
        for word in words:
            if f".{word}." in f"{name}.":
                others = (f"{name}.".replace(f".{word}.", f".{other}.")[:-1] for other in words if other != word)
                out += [other for other in others if other in values]
    return out


def parents_of(source: pathlib.Path, name: str, values: dict) -> list:
    """(parent, value), what the model reads first; "relatives" is the middle one of them."""
    owner, _, field = name.partition(".")
    is_device = owner not in ("nccl", "mpi", "cuda", "host", "gdrcopy", "verbs", "tcp", "pcie", "training", "virtualization", "gpu", "migration")
    names = [USUAL[field]] if is_device and field in USUAL else []
    names += without_parts(name, values) + siblings(name, values)
    found = [(one, values[one][0]) for one in dict.fromkeys(names)]
    relative = leave_out.relative_of(source, name, values, set(), of_kind=True)
    return found + ([("relatives", relative)] if relative and not found else [])


def taught_by(name: str, values: dict, teachers: dict) -> set:
    """The systems whose logs taught the value."""
    return teachers.get(values[name][1], set()) | {system for system, names in systems.READ_OFF.items() if name in names}


@dataclasses.dataclass
class Change:
    """Of errors when a parent takes a value's place, as shares of the error with the value; above 0: the value helps."""

    points: int = 0  # that moved
    every: float = 0  # mean of all logs
    median: float = 0  # their median
    others: float = 0  # mean of the moved logs of systems that did not teach it
    others_points: int = 0
    worst: float = 0  # largest growth of a log's mean
    worst_log: str = ""


def mean(values) -> float:
    values = list(values)
    return sum(values) / len(values) if values else 0.0


def change_of(before: dict, after: dict, teachers: set) -> Change:
    """`before`: log to errors of its points; `after`: the same of the logs that were forecast again."""
    out = Change()
    whole = {**before, **after}
    moved = [log for log in after if any(abs(a - b) > 1e-9 for a, b in zip(before[log], after[log]))]
    flat_before, flat_after = ([e for log in before for e in one[log]] for one in (before, whole))
    out.points = sum(abs(a - b) > 1e-9 for a, b in zip(flat_before, flat_after))
    out.every = mean(flat_after) / mean(flat_before) - 1
    out.median = logs.percentile(flat_after, 0.5) / logs.percentile(flat_before, 0.5) - 1
    others = [log for log in moved if systems.system_of(log) not in teachers]
    out.others_points = sum(len(before[log]) for log in others)
    if others:
        out.others = mean(e for log in others for e in after[log]) / mean(e for log in others for e in before[log]) - 1
    for log in moved:
        growth = mean(after[log]) - mean(before[log])
        if growth > out.worst:
            out.worst, out.worst_log = growth, log
    return out
