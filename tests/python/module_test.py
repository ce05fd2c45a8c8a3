#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`import fabricast` gives what the program prints: forecasts again and again in one process, comparisons, validations, sweeps in
processes, faults as exceptions; the example runs; the stubs name what the package has. Arguments: program, source, build/python."""
import ast
import json
import pathlib
import subprocess
import sys
import tempfile

PROGRAM, SOURCE, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
sys.path.insert(0, FOLDER)
import numpy as np  # noqa: E402

import fabricast  # noqa: E402

LIMIT_S = 300  # of one command

failures = []
scratch = tempfile.TemporaryDirectory()  # removed when the program ends


def expect(claim: bool, what: str):
    if not claim:
        failures.append(what)


def printed(*arguments):
    return json.loads(subprocess.run([PROGRAM, *arguments, "--format", "json"], capture_output=True, text=True, check=True, timeout=LIMIT_S).stdout)


def main() -> int:
    pair = str(SOURCE / "scenarios" / "allreduce-dgx-a100-pair.yaml")
    expected = printed("run", pair)
    first = fabricast.run(pair)
    for _ in range(20):
        again = fabricast.run(pair)
    expect(np.array_equal(first.time_s, again.time_s), "the twentieth forecast differs from the first")
    expect(np.array_equal(first.time_s, np.array([row["time_ps"] for row in expected["rows"]]) * 1e-12), "run: times")
    expect(first.size_bytes.dtype == np.int64 and first.busbw_bytes_per_s.tolist() == [row["busbw_bytes_per_s"] for row in expected["rows"]], "run: bandwidths")
    expect(abs(sum(first.terms().values()) - first.time_s[-1]) < 2e-12 * len(first.rows[-1]["terms"]), "run: terms do not add up")
    scenario = fabricast.load(pair)
    expect((scenario.num_hosts, scenario.num_gpus) == (2, 16), f"load: {scenario}")
    changed = scenario.set({"workload.gpus": 8}).run()
    expect(changed.num_ranks == 8 and changed.num_hosts == 1, "set: GPUs")
    on, off = (str(SOURCE / "scenarios" / f"what-if-p2p-{word}.yaml") for word in ("on", "off"))
    expect(fabricast.compare([on, off]) == printed("compare", on, off), "compare")
    try:
        fabricast.run(pair, {"workload.gpsu": 8})
        expect(False, "a misspelt key is no exception")
    except fabricast.InputError as error:
        expect("did you mean 'gpus'" in str(error), f"the message of a misspelt key: {error}")
    plan = str(SOURCE / "tests" / "pages" / "plan.yaml")
    store = scratch.name + "/plan.sqlite"
    swept = fabricast.sweep(plan, jobs=2, store=store)
    expect(swept.document == printed("sweep", plan, "-q"), "sweep")
    expect(fabricast.sweep(plan, store=store).document == swept.document, "sweep: from its store")
    expect(len(swept.designs) == 18 and swept.best and np.isnan(swept.array("busbw at 64 MiB")).sum() == 9, "sweep: designs")
    expect(len(swept.columns()["cost"]) == 18, "sweep: columns")
    log = next((SOURCE / "calibration" / "data").rglob("nccl-tests/*all_reduce*.txt"), None)
    name = log and SOURCE / "scenarios" / "validation" / f"{log.stem}.yaml"
    if name and name.exists():
        measured = fabricast.validate(str(name), [str(log)])
        document = printed("validate", str(name), "--measured", str(log))
        expect(abs(measured.median_abs_error - document.get("overall", document)["median_abs_error"]) < 1e-12, "validate")
    else:
        print(f"no scenario for {log}: validate is not compared")
    data = SOURCE / "calibration" / "data" / "h200-8gpu-nvswitch-passthrough-vm" / "nccl-tests"
    fit = pathlib.Path(scratch.name) / "fit.yaml"
    fit.write_text(f"""schema: fabricast/calibration/1
name: small fit
logs:
  - {{file: {data}/h200vm-2gpu-all_reduce-ring-simple.txt, scenario: {SOURCE}/scenarios/validation/h200vm-2gpu-all_reduce-ring-simple.yaml}}
fit:
  nccl.hop_time.ring.simple.nvlink.hopper: {{start: 3 us, prior: 0.5}}
""")
    fitted = fabricast.calibrate(str(fit))
    document = json.loads(subprocess.run([PROGRAM, "calibrate", str(fit), "--format", "json", "-o", str(fit.parent / "own.yaml"), "-q"], capture_output=True, text=True, check=True, timeout=LIMIT_S).stdout)
    expect(fitted.document == document, "calibrate: the report")
    expect(fitted.parameters_yaml == (fit.parent / "own.yaml").read_text() and "nccl.hop_time.ring.simple.nvlink.hopper" in fitted.parameters_yaml, "calibrate: the parameter file")
    (fit.parent / "fitted.yaml").write_text(fitted.parameters_yaml)
    scenario_of_fit = str(SOURCE / "scenarios" / "validation" / "h200vm-2gpu-all_reduce-ring-simple.yaml")
    expect(not np.array_equal(fabricast.run(scenario_of_fit).time_s, fabricast.run(scenario_of_fit, parameter_files=[str(fit.parent / "fitted.yaml")]).time_s), "calibrate: its parameters change nothing")
    try:
        fabricast.calibrate(pair)
        expect(False, "a scenario is calibrated")
    except fabricast.InputError:
        pass
    example = subprocess.run([sys.executable, str(SOURCE / "python" / "examples" / "designs.py"), str(SOURCE)], env={"PYTHONPATH": FOLDER, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    expect(example.returncode == 0 and "GB/s" in example.stdout, f"the example: {example.stderr}")
    stubs = ast.parse((pathlib.Path(FOLDER) / "fabricast" / "__init__.pyi").read_text())
    named = {node.name for node in stubs.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    expect(named == set(fabricast.__all__), f"stubs: {named ^ set(fabricast.__all__)}")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
