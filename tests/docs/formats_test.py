#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/FORMATS.md names every key of every file kind: every property of its JSON Schema. A key counts where it
stands as a word of its own in code (`key`, `key: value` or a fenced block). Arguments: the fabricast program, the source folder."""
import json
import pathlib
import re
import subprocess
import sys

LIMIT_S = 300  # of one command

KINDS = ["topology", "scenario", "device", "parameters", "calibration", "network", "plan", "cost"]


def keys_of(node, path: str, out: dict) -> None:
    """Every property name below a schema with the path at which it first stands."""
    if isinstance(node, dict):
        for key, value in (node.get("properties") or {}).items():
            out.setdefault(key, f"{path}.{key}")
            keys_of(value, f"{path}.{key}", out)
        for name, value in node.items():
            if name != "properties":
                keys_of(value, path, out)
    elif isinstance(node, list):
        for item in node:
            keys_of(item, path, out)


def code_of(text: str) -> str:
    fenced = re.findall(r"```.*?```", text, re.DOTALL)
    rest = re.sub(r"```.*?```", " ", text, flags=re.DOTALL)
    return "\n".join(fenced + re.findall(r"`[^`\n]+`", rest))


def main() -> int:
    program, source = sys.argv[1], pathlib.Path(sys.argv[2])
    code = code_of((source / "docs" / "FORMATS.md").read_text())
    failures, total = [], 0
    for kind in KINDS:
        schema = json.loads(subprocess.run([program, "schema", kind], check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout)
        keys: dict = {}
        keys_of(schema, kind, keys)
        total += len(keys)
        if len(keys) < 5:
            failures.append(f"the schema of {kind} has only {len(keys)} keys")
        for key, path in sorted(keys.items()):
            if not re.search(rf"(?<![A-Za-z0-9_-]){re.escape(key)}(?![A-Za-z0-9_-])", code):
                failures.append(f"docs/FORMATS.md does not name '{key}' ({path})")
    for failure in failures:
        print("FAILED", failure)
    print(f"{total} keys of {len(KINDS)} schemas")
    return 1 if failures or total < 150 else 0


if __name__ == "__main__":
    sys.exit(main())
