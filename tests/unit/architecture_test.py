#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Includes follow the table of docs/ARCHITECTURE.md, third-party headers stay where they belong, and no code names a
measured cluster. Argument: source folder."""
import pathlib
import re
import sys

# Folder -> folders whose internal headers it may include.
ALLOWED = {
    "sim/base": [],
    "sim/virtualization": ["base"],
    "sim/topology": ["base"],
    "sim/scenario": ["base"],
    "sim/lossless": ["base"],
    "models": ["base", "common", "guest", "nccl", "mpi", "sharing", "system", "traffic"],
    "sim/config": ["base", "config"],
    "sim/engine": ["base", "engine", "packet"],
    "sim/check": ["base"],
    "sim/report": ["base", "report"],
    "sim/exchange": ["base", "exchange"],
    "sim/packet": ["base", "packet"],
    "calibration/readers": ["base", "readers"],
    "calibration/validate": ["base", "readers", "validate"],
    "calibration/fit": ["base", "fit", "readers"],
    "sim/cli": ["base", "cli", "report"],
}
# Public headers that a folder must not use although they are public.
FORBIDDEN_PUBLIC = {
    "sim/base": ["topology", "scenario", "result", "simulate", "load"],
    "sim/virtualization": ["topology", "scenario", "result", "simulate", "load", "models/"],
    "sim/topology": ["scenario", "result", "simulate", "load", "models/"],
    "models": ["load", "simulate", "measurement"],
    "sim/engine": ["load", "measurement"],
    "sim/packet": ["topology", "scenario", "result", "simulate", "load", "measurement", "models/"],
    "sim/exchange": ["load", "simulate", "models/"],
    "calibration/readers": ["load", "simulate", "models/"],
}
THIRD_PARTY = {
    "simgrid/": ["sim/engine/simgrid_clock.cpp"],
    "boost/": ["sim/topology"],
    "yaml-cpp/": ["sim/config/tree.cpp"],
    "CLI/": ["sim/cli"],
    "Eigen/": ["calibration/fit"],
    "nlohmann/": ["sim/report", "sim/config/json_schema.cpp", "calibration/readers"],
}
CLUSTERS = re.compile(r"\b(abci|azure|aws|pizdaint|piz daint|leonardo|nimbix|coreweave|cloudlab|oci|h200vm)\b", re.IGNORECASE)


def main() -> int:
    source = pathlib.Path(sys.argv[1])
    failures = []
    for folder, allowed in ALLOWED.items():
        for path in sorted((source / folder).rglob("*.[ch]pp")):
            name = path.relative_to(source).as_posix()
            text = path.read_text()
            for include in re.findall(r'#include ["<]([^">]+)[">]', text):
                head = include.split("/")[0]
                if head in ("base", "topology", "config", "engine", "report", "exchange", "cli", "check", "nccl", "mpi", "common", "guest", "sharing", "system", "traffic", "readers", "fit", "packet"):
                    own = pathlib.Path(folder).name
                    if head != own and head not in allowed:
                        failures.append(f"{name} includes {include}")
                for public in FORBIDDEN_PUBLIC.get(folder, []):
                    if include.startswith(f"fabricast/{public}"):
                        failures.append(f"{name} includes {include}")
                for prefix, places in THIRD_PARTY.items():
                    if include.startswith(prefix) and not any(name.startswith(place) for place in places):
                        failures.append(f"{name} includes {include}")
            code = "\n".join(line.split("//")[0] for line in text.splitlines())
            for cluster in CLUSTERS.findall(code):
                failures.append(f"{name} names the cluster '{cluster}' in code")
    for path in sorted((source / "sim" / "include").rglob("*.hpp")) + sorted((source / "models" / "include").rglob("*.hpp")):
        for include in re.findall(r"#include <([^>]+)>", path.read_text()):
            if "/" in include and not include.startswith("tl/"):
                failures.append(f"public header {path.name} includes {include}")
        if not path.read_text().startswith("// SPDX-License-Identifier: Apache-2.0"):
            failures.append(f"{path.name} does not begin with its licence")
    for path in sorted((source / "models" / "params").glob("*.yaml")):
        for name in re.findall(r"^  ([\w.\-]+):", path.read_text(), re.MULTILINE):
            if CLUSTERS.search(name) or re.search(r"\b\d+\s*-?(gpu|rank|node|host)s?\b|(ranks|gpus|nodes|hosts)\d", name):
                failures.append(f"{path.name}: parameter {name} belongs to a cluster or a count")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
