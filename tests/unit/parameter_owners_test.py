#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No parameter belongs to a file, a cluster, a host type or a number of ranks, hosts or bytes: names of shipped parameters, of
catalogue fields and of what the calibration files fit hold none of these words, and model sources name no cluster. Argument:
source folder."""
import pathlib
import re
import sys

import yaml

# Counts and sizes: 8gpu, 2node, 16ranks, 4pair, 64KiB.
COUNT = re.compile(r"(?:^|[._-])\d+(?:gpus?|nodes?|hosts?|ranks?|vms?|pairs?|b|[kmg]i?b)(?:$|[._-])", re.IGNORECASE)


def load(path: pathlib.Path) -> dict:
    return yaml.safe_load(path.read_text())


def is_valued(path: pathlib.Path) -> bool:
    return load(path).get("kind") != "host"


def parameter_names(source: pathlib.Path) -> dict:
    names = {}
    for path in sorted((source / "models" / "params").glob("*.yaml")):
        names.update({name: path for name in load(path)["parameters"]})
    for path in sorted((source / "models" / "catalogue").rglob("*.yaml")):
        if is_valued(path):
            names.update({f"{path.stem}.{field}": path for field in load(path).get("values", {})})
    for path in sorted((source / "calibration").rglob("*.yaml")):
        document = load(path)
        if isinstance(document, dict):
            names.update({name: path for name in document.get("fit", {}) or {}})
    return names


def cluster_names(source: pathlib.Path) -> set:
    """Topologies, host types, scenarios and logs; without names that are a device's too or a plain word."""
    devices = {p.stem for p in (source / "models" / "catalogue").rglob("*.yaml") if is_valued(p)}
    clusters = {p.stem for p in (source / "topologies").glob("*.yaml")}
    clusters |= {p.stem for p in (source / "scenarios").rglob("*.yaml")}
    clusters |= {p.stem for p in (source / "models" / "catalogue" / "hosts").glob("*.yaml")}
    well_known = {"abci", "nimbix", "pizdaint", "leonardo", "azure", "oci", "h200vm", "gdrtest"}
    clusters |= well_known
    return {name for name in clusters if name not in devices and (name in well_known or "-" in name)}


def holds(text: str, word: str) -> bool:
    return word in text and re.search(rf"(?:^|[^a-z0-9]){re.escape(word)}(?:$|[^a-z0-9])", text) is not None


def main() -> int:
    source = pathlib.Path(sys.argv[1])
    clusters = cluster_names(source)
    names = parameter_names(source)
    failures = []
    for name, path in sorted(names.items()):
        failures += [f"{path.name}: parameter '{name}' names '{word}'" for word in sorted(clusters) if holds(name, word)]
        if COUNT.search(name):
            failures.append(f"{path.name}: parameter '{name}' holds a count or a size")
    sources = [p for p in sorted((source / "models").rglob("*.?pp"))]
    for path in sources:
        for text in re.findall(r'"([^"\n]*)"', path.read_text()):
            failures += [f"{path.name}: string '{text}' names '{word}'" for word in sorted(clusters) if holds(text, word)]
    if len(names) < 300 or len(sources) < 30:
        failures.append(f"only {len(names)} parameters and {len(sources)} sources found")
    for failure in failures:
        print("FAILED", failure)
    print(f"{len(names)} parameters, {len(sources)} model sources, {len(clusters)} names of clusters")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
