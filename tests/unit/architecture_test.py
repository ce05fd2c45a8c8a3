#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Includes follow the table of docs/ARCHITECTURE.md, third-party headers stay where they belong, and no code names a
measured cluster; every child process of a test has a limit of time. Argument: source folder."""
import ast
import graphlib
import pathlib
import re
import sys

THIRD_PARTY = {
    "simgrid/": ["sim/engine/simgrid_clock.cpp", "sim/programs/collectives.cpp", "sim/programs/group.cpp", "sim/programs/group.hpp"],
    "smpi/": ["sim/programs/collectives.cpp", "sim/programs/group.hpp"],
    "boost/": ["sim/topology", "models/nccl/tuner_regions.cpp"],
    "yaml-cpp/": ["sim/config/tree.cpp", "sim/base/yaml_fault.cpp", "sim/import/fabric.cpp"],
    "pugixml": ["sim/import"],
    "CLI/": ["sim/cli"],
    "Eigen/": ["calibration/fit"],
    "pybind11/": ["python"],
    "nlohmann/": ["sim/report", "sim/sweep", "sim/config/json_schema.cpp", "sim/config/profiler_trace.cpp", "calibration/readers", "calibration/doctor", "sim/cli/doctor.cpp", "sim/cli/expect.cpp", "sim/cli/replay.cpp", "sim/import", "sim/trace"],
}
CLUSTERS = re.compile(r"\b(abci|azure|aws|pizdaint|piz daint|leonardo|nimbix|coreweave|cloudlab|oci|h200vm)\b", re.IGNORECASE)


ROW = re.compile(r"^\| (\w+) \| `([\w/]+)` \| .* \| (.+) \| (.+) \|$", re.MULTILINE)


def listed(cell: str) -> list:
    return [] if cell == "-" else cell.split(", ")


class Table:
    """The modules of docs/ARCHITECTURE.md: folder, public headers and what each may include."""


    def __init__(self, text: str):
        rows = ROW.findall(text)
        self.folders = {folder: module for module, folder, _, _ in rows}
        self.may_include = {module: set(listed(allowed)) for module, _, _, allowed in rows}
        self.owner = {f"fabricast/{header}.hpp": module for module, _, headers, _ in rows for header in listed(headers)}

    def module_of(self, path: str):
        """The module of a file: the longest folder that holds it."""
        folder = max((f for f in self.folders if path.startswith(f + "/")), key=len, default=None)
        return self.folders.get(folder)

    def module_of_include(self, include: str):
        """The module whose header is included; None for other libraries."""
        if include in self.owner:
            return self.owner[include]
        heads = {folder.split("/")[-1]: module for folder, module in self.folders.items()}
        return heads.get(include.split("/")[0]) if "/" in include else None

    def faults(self, source: pathlib.Path) -> list:
        known = set(self.may_include)
        found = [f"{module} may include '{other}', which is no module" for module, allowed in self.may_include.items() for other in allowed - known]
        try:
            graphlib.TopologicalSorter(self.may_include).prepare()
        except graphlib.CycleError as error:
            found.append(f"modules include each other: {' -> '.join(error.args[1])}")
        public = {path.relative_to(root).as_posix() for root in [source / "sim/include"] for path in root.rglob("*.hpp")}
        found += [f"public header {header} belongs to no module" for header in sorted(public - set(self.owner))]
        found += [f"public header {header} of the table does not exist" for header in sorted(set(self.owner) - public)]
        return found


def endless_children(source: pathlib.Path):
    """Calls in tests that would wait for ever."""
    for path in sorted((source / "tests").rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            name, of = call.func.attr, getattr(call.func.value, "id", "")
            waits = of == "subprocess" and name in ("run", "call", "check_call", "check_output") or name in ("wait", "communicate")
            if waits and not any(keyword.arg == "timeout" for keyword in call.keywords):
                yield f"{path.relative_to(source)}:{call.lineno}: {name}() without timeout="


def main() -> int:
    source = pathlib.Path(sys.argv[1])
    table = Table((source / "docs" / "ARCHITECTURE.md").read_text())
    failures = table.faults(source)
    files = sorted(path for folder in ("sim", "models", "calibration") for path in (source / folder).rglob("*.[ch]pp"))
    used = {module: set() for module in table.may_include}
    for path in files:
        name = path.relative_to(source).as_posix()
        text = path.read_text()
        module = table.owner.get(name.split("/include/")[-1]) if "/include/" in name else table.module_of(name)
        if module is None:
            failures.append(f"{name} belongs to no module of docs/ARCHITECTURE.md")
            continue
        for include in re.findall(r'#include ["<]([^">]+)[">]', text):
            other = table.module_of_include(include)
            if other is not None and other != module:
                used[module].add(other)
                if other not in table.may_include[module]:
                    failures.append(f"{name}, in {module}, includes {include} of {other}")
            for prefix, places in THIRD_PARTY.items():
                if include.startswith(prefix) and not any(name.startswith(place) for place in places):
                    failures.append(f"{name} includes {include}")
        code = "\n".join(line.split("//")[0] for line in text.splitlines()).replace("aws-ofi-nccl", "")  # a product, not a cluster
        for cluster in CLUSTERS.findall(code):
            failures.append(f"{name} names the cluster '{cluster}' in code")
    failures += [f"{module} may include {other} and does not" for module, allowed in table.may_include.items() for other in sorted(allowed - used[module])]
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
    failures += endless_children(source)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
