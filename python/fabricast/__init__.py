# SPDX-License-Identifier: Apache-2.0
"""Fabricast from Python: forecasts of GPU clusters as dataclasses and numpy arrays.

    import fabricast
    forecast = fabricast.run("scenarios/allreduce-hgx-h100-64.yaml", {"workload.gpus": 32})
    forecast.size_bytes, forecast.time_s, forecast.busbw_bytes_per_s      # arrays, one value per row
    pandas.DataFrame(forecast.columns())                                  # every column of every row

Every call starts afresh: any number of them may follow each other in one process. Sweeps run in processes of their own.
"""
from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

import numpy as np

from . import _fabricast
from ._fabricast import InputError

__version__ = _fabricast.version
__all__ = ["Calibration", "Design", "Estimate", "Forecast", "InputError", "Scenario", "Sweep", "Validation", "calibrate", "compare", "load", "run", "sweep", "validate"]


def _settings(settings: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Values as --set takes them; lists and mappings in YAML's flow style, which JSON is."""
    def text(value: Any) -> str:
        if isinstance(value, bool):
            return "on" if value else "off"
        return json.dumps(value) if isinstance(value, (list, dict)) else str(value)
    return [(path, text(value)) for path, value in (settings or {}).items()]


@dataclass(frozen=True)
class Forecast:
    """One workload's table. Arrays have one value per row; times in seconds, sizes in bytes, rates in bytes per second."""

    scenario: str
    topology: str
    benchmark: str
    num_ranks: int
    num_hosts: int
    size_bytes: np.ndarray
    time_s: np.ndarray
    low_time_s: np.ndarray
    high_time_s: np.ndarray
    algbw_bytes_per_s: np.ndarray
    busbw_bytes_per_s: np.ndarray
    assumptions: list[str]
    rows: list[dict[str, Any]] = field(repr=False)
    document: dict[str, Any] = field(repr=False)

    def columns(self) -> dict[str, np.ndarray]:
        """Every plain column of the rows, e.g. for pandas.DataFrame."""
        names = [name for name, value in self.rows[0].items() if not isinstance(value, (list, dict))] if self.rows else []
        return {name: np.array([row.get(name) for row in self.rows]) for name in names}

    def terms(self, row: int = -1) -> dict[str, float]:
        """What the time of a row is made of, in seconds."""
        out: dict[str, float] = {}
        for term in self.rows[row]["terms"]:
            out[term["name"]] = out.get(term["name"], 0.0) + term["time_ps"] * 1e-12
        return out


def _forecast(document: dict[str, Any], workload: dict[str, Any], scenario: str, topology: str) -> Forecast:
    rows = workload["rows"]
    def column(key: str, scale: float = 1.0) -> np.ndarray:
        return np.array([np.nan if row[key] is None else row[key] * scale for row in rows], dtype=float)
    return Forecast(scenario, topology, workload["benchmark"], workload["num_ranks"], workload["num_hosts"], np.array([row["size_bytes"] for row in rows], dtype=np.int64),
                    column("time_ps", 1e-12), column("low_time_ps", 1e-12), column("high_time_ps", 1e-12), column("algbw_bytes_per_s"), column("busbw_bytes_per_s"),
                    list(workload.get("assumptions", [])), rows, document)


@dataclass(frozen=True)
class Scenario:
    """A scenario that was read and can be simulated; `set` gives another one, changed."""

    path: str
    settings: dict[str, Any]
    parameter_files: tuple[str, ...]
    name: str
    topology: str
    num_hosts: int
    num_gpus: int

    def run(self, seed: int = 1) -> Forecast:
        return run(self.path, self.settings, self.parameter_files, seed)

    def set(self, settings: Mapping[str, Any]) -> "Scenario":
        return load(self.path, {**self.settings, **settings}, self.parameter_files)


def load(path: str, settings: Mapping[str, Any] | None = None, parameter_files: Sequence[str] = ()) -> Scenario:
    """Reads and checks a scenario; every fault of all its files is in the InputError."""
    name, topology, hosts, gpus = _fabricast.describe(str(path), _settings(settings), list(parameter_files)).split("\n")
    return Scenario(str(path), dict(settings or {}), tuple(parameter_files), name, topology, int(hosts), int(gpus))


def run(path: str, settings: Mapping[str, Any] | None = None, parameter_files: Sequence[str] = (), seed: int = 1) -> Forecast:
    """Forecasts a scenario's first workload; the others are in `document`."""
    document = json.loads(_fabricast.run(str(path), _settings(settings), list(parameter_files), seed))
    return _forecast(document, document["workloads"][0], document["scenario"], document["topology"])


def compare(paths: Sequence[str], settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Scenarios side by side, as `fabricast compare --format json` prints them; the first is the reference."""
    return json.loads(_fabricast.compare([str(path) for path in paths], _settings(settings)))


@dataclass(frozen=True)
class Validation:
    """Predicted against measured; errors are fractions."""

    median_abs_error: float
    p90_abs_error: float
    interval_coverage: float
    bias: float
    document: dict[str, Any] = field(repr=False)


def validate(path: str, logs: Sequence[str], settings: Mapping[str, Any] | None = None, parameter_files: Sequence[str] = ()) -> Validation:
    document = json.loads(_fabricast.validate(str(path), [str(log) for log in logs], _settings(settings), list(parameter_files)))
    overall = document.get("overall", document)
    return Validation(overall["median_abs_error"], overall["p90_abs_error"], overall["interval_coverage"], overall["bias"], document)


@dataclass(frozen=True)
class Calibration:
    """What a fit found; `parameters_yaml` is the text of a parameter file."""

    document: dict[str, Any] = field(repr=False)
    parameters_yaml: str = field(repr=False)


def calibrate(path: str) -> Calibration:
    document, parameters = _fabricast.calibrate(str(path))
    return Calibration(json.loads(document), parameters)


@dataclass(frozen=True)
class Estimate:
    """A figure with its 80 % band."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Design:
    id: int
    name: str
    values: dict[str, str]
    status: str
    reasons: list[str]
    metrics: dict[str, Estimate]
    meets_all: bool
    is_on_front: bool
    rank: int | None
    probability: float
    bottleneck: str
    record: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Sweep:
    """Every design of a plan, by number; `front` and `best` are some of them."""

    designs: list[Design]
    front: list[Design]
    best: list[Design]
    document: dict[str, Any] = field(repr=False)

    def array(self, metric: str) -> np.ndarray:
        """The figure of every design; nan where there is none."""
        return np.array([design.metrics[metric].value if metric in design.metrics else np.nan for design in self.designs])

    def columns(self) -> dict[str, list[Any]]:
        """One row per design, e.g. for pandas.DataFrame."""
        names = list(self.designs[0].values) if self.designs else []
        metrics = [metric for metric in dict.fromkeys(name for design in self.designs for name in design.metrics)]
        out: dict[str, list[Any]] = {"id": [d.id for d in self.designs], **{name: [d.values.get(name) for d in self.designs] for name in names}, "status": [d.status for d in self.designs]}
        for metric in metrics:
            out[metric] = list(self.array(metric))
        return out


def sweep(path: str, jobs: int = 1, store: str = "") -> Sweep:
    """Sweeps a plan in `jobs` processes; with a store it goes on where it was."""
    document = json.loads(_fabricast.sweep(str(path), jobs, str(store)))
    designs = []
    for one in document["designs"]:
        standing = one["standing"]
        metrics = {name: Estimate(**values) for name, values in one["metrics"].items()}
        designs.append(Design(one["id"], one["name"], one["values"], one["status"], one["reasons"], metrics, standing["meets_all"], standing["is_on_front"], standing["rank"],
                              standing["probability"], one["bottleneck"], one))
    by_id = {design.id: design for design in designs}
    return Sweep(designs, [by_id[i] for i in document["front"]], [by_id[one["id"]] for one in document["top"]], document)
