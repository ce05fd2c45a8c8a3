# SPDX-License-Identifier: Apache-2.0
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

import numpy as np

__version__: str
__all__: list[str]


class InputError(ValueError): ...


@dataclass(frozen=True)
class Forecast:
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
    rows: list[dict[str, Any]]
    document: dict[str, Any]
    def columns(self) -> dict[str, np.ndarray]: ...
    def terms(self, row: int=-1) -> dict[str, float]: ...


@dataclass(frozen=True)
class Scenario:
    path: str
    settings: dict[str, Any]
    parameter_files: tuple[str, ...]
    name: str
    topology: str
    num_hosts: int
    num_gpus: int
    def run(self, seed: int=1) -> Forecast: ...
    def set(self, settings: Mapping[str, Any]) -> Scenario: ...


def load(path: str, settings: Mapping[str, Any] | None=None, parameter_files: Sequence[str]=()) -> Scenario: ...


def run(path: str, settings: Mapping[str, Any] | None=None, parameter_files: Sequence[str]=(), seed: int=1) -> Forecast: ...


def compare(paths: Sequence[str], settings: Mapping[str, Any] | None=None) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Validation:
    median_abs_error: float
    p90_abs_error: float
    interval_coverage: float
    bias: float
    document: dict[str, Any]


def validate(path: str, logs: Sequence[str], settings: Mapping[str, Any] | None=None, parameter_files: Sequence[str]=()) -> Validation: ...


@dataclass(frozen=True)
class Calibration:
    document: dict[str, Any]
    parameters_yaml: str


def calibrate(path: str) -> Calibration: ...


@dataclass(frozen=True)
class Estimate:
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
    record: dict[str, Any]


@dataclass(frozen=True)
class Sweep:
    designs: list[Design]
    front: list[Design]
    best: list[Design]
    document: dict[str, Any]
    def array(self, metric: str) -> np.ndarray: ...
    def columns(self) -> dict[str, list[Any]]: ...


def sweep(path: str, jobs: int=1, store: str='') -> Sweep: ...
