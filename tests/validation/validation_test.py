#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every validation scenario runs, stays above its physical bound, and keeps the error budget of its log where the log is
present. Scenarios of scenarios/blind run too; they have no budget, because nothing may be tuned to their logs. Over all complete nccl-tests all-reduce tables the median error is below 35 % without any fit to a cluster.
budget.json: highest median error per log; FABRICAST_UPDATE_BUDGET=1 rewrites it. Arguments: program, source folder."""
import json
import os
import pathlib
import sys

import logs


def below_bound(program: str, scenario: pathlib.Path) -> list:
    """Forecasts a scenario; one line for each row below its physical bound."""
    forecast = logs.forecast(program, scenario)
    rows = forecast["rows"] if "rows" in forecast else [row for job in forecast["workloads"] for row in job["rows"]]
    if not rows:
        return [f"{scenario.stem}: no rows"]
    return [f"{scenario.stem}: {row['size_bytes']} B is below its physical bound" for row in rows if row["time_ps"] < row["physical_bound_ps"]]


def main() -> int:
    program, source = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    folders = logs.measurement_folders(source)
    budget_file = source / "tests" / "validation" / "budget.json"
    budget = json.loads(budget_file.read_text()) if budget_file.exists() else {}
    failures, measured, absent = [], {}, []
    all_reduce = []
    blind = sorted((source / "scenarios" / "blind").glob("*.yaml"))
    for scenario in blind:
        failures += below_bound(program, scenario)
    if not blind:
        failures.append("scenarios/blind is empty")
    for scenario in sorted((source / "scenarios" / "validation").glob("*.yaml")):
        name = scenario.stem
        failures += below_bound(program, scenario)
        log = logs.log_of(name, folders)
        if log is None:
            absent.append(name)
            continue
        result = logs.validate(program, scenario, log)
        measured[name] = result["median_abs_error"]
        is_complete = logs.header(log).get("quality", "clean") == "clean"
        if is_complete and "osu" not in name and ("allreduce" in name or "all_reduce" in name):
            all_reduce += [abs(p["relative_error"]) for one in result["logs"] for p in one["points"]]
        limit = budget.get(name)
        if limit is not None and result["median_abs_error"] > limit:
            failures.append(f"{name}: median error {100 * result['median_abs_error']:.1f} %, budget {100 * limit:.1f} %")
    median = logs.percentile(all_reduce, 0.5)
    print(f"{len(measured)} logs compared, {len(absent)} absent (published logs are not part of the project)")
    print(f"nccl-tests all-reduce: {len(all_reduce)} points, median error {100 * median:.1f} %")
    if median >= 0.35:
        failures.append(f"median error over all all-reduce tables is {100 * median:.1f} %, allowed 35 %")
    if os.environ.get("FABRICAST_UPDATE_BUDGET") == "1":
        budget.update({name: round(1.1 * error + 0.01, 3) for name, error in measured.items()})
        budget_file.write_text(json.dumps(dict(sorted(budget.items())), indent=1) + "\n")
    for failure in failures:
        print("FAILED", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
