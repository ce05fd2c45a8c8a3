#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every shipped YAML file fits its JSON Schema, and broken ones do not. Argument: source folder."""
import json
import pathlib
import sys

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def main() -> int:
    source = pathlib.Path(sys.argv[1])
    files = {"topology": "topologies/topology.schema.json", "scenario": "scenarios/scenario.schema.json", "device": "models/device.schema.json", "parameters": "models/parameters.schema.json", "calibration": "calibration/calibration.schema.json", "network": "models/network.schema.json", "plan": "scenarios/plan.schema.json", "cost": "scenarios/cost.schema.json"}
    validators = {kind: jsonschema.Draft7Validator(json.loads((source / name).read_text())) for kind, name in files.items()}
    failures = 0
    count = 0
    for path in sorted([*source.glob("topologies/**/*.yaml"), *source.glob("scenarios/**/*.yaml"), *source.glob("models/catalogue/**/*.yaml"), *source.glob("models/params/*.yaml"), *source.glob("calibration/*.yaml")]):
        document = yaml.safe_load(path.read_text())
        kind = document["schema"].split("/")[1]
        for error in validators[kind].iter_errors(document):
            print(f"{path}: {'/'.join(map(str, error.path))}: {error.message[:200]}")
            failures += 1
        count += 1
    broken = [
        ("scenario", {"schema": "fabricast/scenario/1", "name": "x", "topology": "t.yaml"}),
        ("scenario", {"schema": "fabricast/scenario/1", "name": "x", "topology": "t.yaml", "workload": {"benchmark": "osu_latenzy"}}),
        ("topology", {"schema": "fabricast/topology/1", "name": "x", "hosts": [{"name": "n", "type": "dgx-a100", "cuont": 2}]}),
        ("topology", {"schema": "fabricast/topology/1", "name": "x", "hosts": [{"name": "n", "type": "dgx-a100"}], "fabric": {"single_switch": {"switch": "s", "rate": 100}}}),
    ]
    for kind, document in broken:
        if validators[kind].is_valid(document):
            print(f"accepted although broken: {document}")
            failures += 1
    print(f"{count} files checked")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
