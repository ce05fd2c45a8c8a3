#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""inputs_test.py PROGRAM SOURCE: every file that a command reads stands in its JSON with its SHA-256: scenario, topology, device,
parameters, network, profile, measured log."""
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

LIMIT_S = 120
TRAINING = """schema: fabricast/scenario/1
name: t
topology: {schema: fabricast/topology/1, name: t, hosts: [{name: n, type: server-2s-rome-8a100}]}
workload: {benchmark: training, network: own.yaml, batch_per_gpu: 8, precision: bf16, gpus: 2}
"""
PARAMETERS = "schema: fabricast/parameters/1\nparameters:\n  nccl.collective_overhead: {value: 9 us, source: a test}\n"
LOG = "calibration/data/h200-8gpu-nvswitch-passthrough-vm/nccl-tests/h200vm-8gpu-all_reduce-p2poff.txt"


def sums(paths):
    return {hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest(): path for path in paths}


def main():
    program, source = sys.argv[1], pathlib.Path(sys.argv[2])
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fabricast-inputs-"))
    (folder / "training.yaml").write_text(TRAINING)
    (folder / "parameters.yaml").write_text(PARAMETERS)
    shutil.copy(source / "models" / "networks" / "resnet-50.yaml", folder / "own.yaml")
    scenario = source / "scenarios" / "validation" / "h200vm-8gpu-all_reduce-p2poff.yaml"
    cases = [(["run", folder / "training.yaml"], [folder / "training.yaml", folder / "own.yaml"]),
             (["run", folder / "training.yaml", "--parameters", folder / "parameters.yaml"], [folder / "own.yaml", folder / "parameters.yaml"]),
             (["check", folder / "training.yaml"], [folder / "training.yaml", folder / "own.yaml"]),
             (["compare", folder / "training.yaml", folder / "training.yaml"], [folder / "own.yaml"]),
             (["validate", scenario, "--measured", source / LOG], [scenario, source / LOG])]
    faults = []
    for command, files in cases:
        done = subprocess.run([program, *map(str, command), "--format", "json"], cwd=source, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        if done.returncode != 0 or not done.stdout.startswith("{"):
            faults.append(f"{command}: exit {done.returncode}: {done.stderr}")
            continue
        text = json.dumps(json.loads(done.stdout))
        faults += [f"{command[0]}: {path} has no hash" for one, path in sums(files).items() if one not in text]
    print("\n".join(faults))
    shutil.rmtree(folder)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
