# SPDX-License-Identifier: Apache-2.0
"""Finds the measured logs and compares every validation scenario with its log.

The project's own logs are in calibration/data. Published logs are not part of the project: they are looked for in
$FABRICAST_MEASUREMENTS, else in ../shared/measurements beside the source folder."""
import json
import os
import pathlib
import subprocess

LIMIT_S = 300  # of one command


def published(source: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(os.environ.get("FABRICAST_MEASUREMENTS", source.parent / "shared" / "measurements"))


def measurement_folders(source: pathlib.Path) -> list:
    folders = sorted((source / "calibration" / "data").glob("*/nccl-tests"))
    outside = published(source)
    return folders + [outside / name for name in ("public", "public-2") if (outside / name).is_dir()]


def log_of(name: str, folders: list):
    for folder in folders:
        path = folder / f"{name}.txt"
        if path.is_file():
            return path
    return None


def header(path: pathlib.Path) -> dict:
    fields = {}
    for line in path.read_text(errors="replace").splitlines():
        if line.startswith("# ---- raw output"):
            return fields
        if line.startswith("# ") and ": " in line:
            key, value = line[2:].split(": ", 1)
            fields.setdefault(key, value)
    return {}


def validate(program: str, scenario: pathlib.Path, log: pathlib.Path) -> dict:
    run = subprocess.run([program, "validate", str(scenario), "--measured", str(log), "--format", "json"], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if run.returncode != 0:
        raise RuntimeError(f"{scenario.name}: exit {run.returncode}\n{run.stderr}")
    return json.loads(run.stdout)


def forecast(program: str, scenario: pathlib.Path) -> dict:
    run = subprocess.run([program, "run", str(scenario), "--format", "json"], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if run.returncode != 0:
        raise RuntimeError(f"{scenario.name}: exit {run.returncode}\n{run.stderr}")
    return json.loads(run.stdout)


def percentile(values: list, share: float) -> float:
    values = sorted(values)
    if not values:
        return 0.0
    at = share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (at - low) * (values[high] - values[low])
