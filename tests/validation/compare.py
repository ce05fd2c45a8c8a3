# SPDX-License-Identifier: Apache-2.0
"""Forecast against measured, point by point, and the figures of many points. One forecast per log: `fabricast validate` reads
the log (under a band so wide that it looks for no other settings), `fabricast run` gives the band that a user gets."""
import dataclasses
import json
import pathlib
import subprocess
import tempfile

import logs

LIMIT_S = 300  # of one command

WIDE = "schema: fabricast/parameters/1\nname: wide\nparameters:\n  model.relative_error: {value: 10, source: reads the log only}\n"


@dataclasses.dataclass
class Point:
    log: str
    benchmark: str
    hosts: int
    measured: float
    predicted: float
    low: float
    high: float

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1

    @property
    def is_inside(self) -> bool:
        return self.low <= self.measured <= self.high


def kind_of(point: Point) -> str:
    if point.benchmark.startswith(("osu_", "ib_")):
        return "MPI and perftest"
    return "NCCL in one host" if point.hosts == 1 else "NCCL over hosts"


KINDS = ("NCCL in one host", "NCCL over hosts", "MPI and perftest")


def hosts_bucket(hosts: int) -> str:
    return "1" if hosts == 1 else "2" if hosts == 2 else "3-4" if hosts <= 4 else "5+"


def run(program: str, words: list) -> dict:
    done = subprocess.run([program, *words, "--format", "json", "-q"], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if done.returncode != 0:
        raise RuntimeError(f"fabricast {' '.join(words)}: exit {done.returncode}\n{done.stderr[:600]}")
    return json.loads(done.stdout)


def options(settings: list, parameters: list) -> list:
    return [word for setting in settings for word in ("--set", setting)] + [word for file in parameters for word in ("--parameters", str(file))]


def measured_points(program: str, scenario: pathlib.Path, log: pathlib.Path, settings: list) -> dict:
    """Size to measured seconds, as `fabricast validate` reads them."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as wide:
        wide.write(WIDE)
        wide.flush()
        words = ["validate", str(scenario), "--measured", str(log), *options(settings, [wide.name])]
        return {p["size_bytes"]: p["measured_time_ps"] / 1e12 for one in run(program, words)["logs"] for p in one["points"]}


def measured_of(program: str, scenario: pathlib.Path, path: pathlib.Path, part) -> dict:
    if part.points:
        return part.points
    if not part.text:
        return measured_points(program, scenario, path, part.settings)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as text:
        text.write(part.text)
        text.flush()
        return measured_points(program, scenario, pathlib.Path(text.name), part.settings)


def forecast(program: str, scenario: pathlib.Path, settings: list, measured: dict, parameters: list = ()) -> list:
    """The points of one table, forecast at the sizes that were measured."""
    sizes = ", ".join(f"{size} B" for size in measured)
    result = run(program, ["run", str(scenario), *options([*settings, f"workload.sizes=[{sizes}]"], parameters)])
    rows = {row["size_bytes"]: row for row in result["rows"]}
    missing = [size for size in measured if size not in rows]
    if missing:
        raise RuntimeError(f"{scenario.stem}: no forecast of {missing} B")
    return [Point(scenario.stem, result["benchmark"], result["num_hosts"], seconds, *(rows[size][key] / 1e12 for key in ("time_ps", "low_time_ps", "high_time_ps"))) for size, seconds in measured.items()]


def figures(points: list) -> list:
    """Points, median, 90th percentile, bias and share inside the band, as cells."""
    if not points:
        return ["0", "-", "-", "-", "-"]
    errors = [abs(p.error) for p in points]
    bias = logs.percentile([p.error for p in points], 0.5)
    inside = sum(p.is_inside for p in points) / len(points)
    return [str(len(points)), f"{100 * logs.percentile(errors, 0.5):.1f} %", f"{100 * logs.percentile(errors, 0.9):.0f} %", f"{100 * bias:+.1f} %", f"{100 * inside:.0f} %"]
