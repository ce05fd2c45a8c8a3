# SPDX-License-Identifier: Apache-2.0
"""How far forecasts of systems that nobody has measured scatter, from families of systems (systems.FAMILIES) that were left out of every fit as
a whole. Each point has the least b (docs/models/intervals.md) with which its band would have held it; the scatter of a kind of forecast is the
80 % quantile of those, families weighing alike. tests/validation/families.json has them, at most 101 quantiles a family."""
import json
import math
import pathlib

FILE = pathlib.Path(__file__).resolve().parent / "families.json"
KINDS = ("nccl_host", "nccl_network", "nccl_sockets", "mpi")
SHARE = 0.8
FEWEST = 4  # families that an estimate needs
LEAST = 0.01
ONE_LOG = 25  # points; a family with less than one log has no more to say than these


def needed(time: float, low: float, high: float, measured: float) -> float:
    """The least b that lets the band hold `measured`; low and high are its ends with b = 0."""
    if low <= measured <= high:
        return 0.0
    if measured > time:
        return math.sqrt(max(0.0, (measured / time - 1) ** 2 - (high / time - 1) ** 2))
    share = math.sqrt(max(0.0, (1 - measured / time) ** 2 - (1 - low / time) ** 2))
    return share / (1 - share)


def quantiles(values: list, most: int = 101) -> list:
    ordered = sorted(values)
    if len(ordered) <= most:
        return ordered
    return [ordered[round(i * (len(ordered) - 1) / (most - 1))] for i in range(most)]


def weight_of(family: dict) -> int:
    return min(family["points"], ONE_LOG)


def weighted(families: dict) -> list:
    """(b, weight) of all values, ascending."""
    return sorted((value, weight_of(one) / len(one["needed"])) for one in families.values() for value in one["needed"])


def estimate(families: dict) -> float:
    """The least b that holds SHARE of the points, families weighing alike; not 0, which says that a system is calibrated."""
    pairs = weighted(families)
    rest = SHARE * sum(weight for _, weight in pairs)
    for value, weight in pairs:
        rest -= weight
        if rest <= 1e-9:
            return max(LEAST, value)
    return max(LEAST, pairs[-1][0])


def coverage(families: dict, b: float) -> float:
    pairs = weighted(families)
    return sum(weight for value, weight in pairs if value <= b + 1e-9) / sum(weight for _, weight in pairs)


def coverage_of_strangers(families: dict) -> float:
    """The same where each family is judged by the b of the others; 0 where there are none."""
    if len(families) < 2:
        return 0.0
    total = sum(weight_of(one) for one in families.values())
    return sum(weight_of(families[name]) * coverage({name: families[name]}, estimate({k: v for k, v in families.items() if k != name})) for name in families) / total


def load() -> dict:
    """Kind to family to its points."""
    return json.loads(FILE.read_text())
