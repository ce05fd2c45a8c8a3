#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every scenario of scenarios/training runs; where the published tables are at hand, numbers of GPUs that no fit saw are forecast
within the budgets below. Usage: training_test.py PROGRAM SOURCE"""
import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys

LIMIT_S = 300  # of one command

# Median and 90th percentile of |error|, and least and most share inside the band.
BUDGETS = {"language models": (0.05, 0.12, 0.7, 1.0), "images, Horovod": (0.08, 0.5, 0.5, 1.0)}


def load(source: pathlib.Path):
    path = str(source / "script" / "training-table")
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_loader("training_table", importlib.machinery.SourceFileLoader("training_table", path))
    module = importlib.util.module_from_spec(spec)
    sys.modules["training_table"] = module  # dataclasses ask for it
    spec.loader.exec_module(module)
    return module


def faults_of(table, by_system: dict) -> list:
    faults = []
    for group, (median, tail, least, most) in BUDGETS.items():
        points = [p for system, found in by_system.items() if table.group_of(system) == group for p in found]
        if len(points) < 20:
            faults.append(f"{group}: only {len(points)} points")
            continue
        errors = [abs(p.error) for p in points]
        inside = sum(p.is_inside for p in points) / len(points)
        print(f"{group}: {len(points)} points, median {table.quantile(errors, 0.5):.3f}, 90th percentile {table.quantile(errors, 0.9):.3f}, in band {inside:.2f}")
        if table.quantile(errors, 0.5) > median or table.quantile(errors, 0.9) > tail or not least <= inside <= most:
            faults.append(f"{group}: outside its budget of {BUDGETS[group]}")
    return faults


def main() -> int:
    program, source = sys.argv[1], pathlib.Path(sys.argv[2])
    for scenario in sorted((source / "scenarios" / "training").glob("*.yaml")):
        subprocess.run([program, "run", str(scenario), "-q"], check=True, stdout=subprocess.DEVNULL, timeout=LIMIT_S)
    table = load(source)
    if not all(case.log.is_file() for case in table.cases()):
        print("skipped: no published tables at hand")
        return 0
    faults = faults_of(table, table.forecasts(program)[0])
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
