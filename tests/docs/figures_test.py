#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every error that the README's tables of accuracy print stands in a table of docs/VALIDATION.md, where scripts wrote it: with as many
points, or, where a line sums points up, without them. Argument: the source folder."""
import pathlib
import re
import sys


def numbers(cell: str) -> list:
    """A cell may hold several figures, divided by / or "and"."""
    return [float(one.replace(",", "")) for one in re.findall(r"\d[\d,]*(?:\.\d+)?", cell)]


def rows(text: str) -> list:
    return [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def measured(text: str) -> set:
    """(points, median, 90th percentile or None) in per cent of every line of VALIDATION."""
    out = set()
    for cells in rows(text):
        for i, cell in enumerate(cells):
            later = [one for one in cells[i + 1 :] if re.fullmatch(r"[\d.]+ %", one)]
            if re.fullmatch(r"\d+", cell) and later:
                out.add((int(cell), float(later[0][:-2]), float(later[1][:-2]) if len(later) > 1 else None))
            parts = re.fullmatch(r"([\d.]+) % \(90th percentile (\d+) %\)", cell)
            if parts and cells[i - 1].isdigit():
                out.add((int(cells[i - 1]), float(parts[1]), float(parts[2])))
    return out


def stands(points, median: float, high, known: set) -> bool:
    return any((points is None or points == one[0]) and abs(one[1] - median) < 0.051 and (high is None or one[2] is not None and abs(one[2] - high) < 0.51) for one in known)


def main() -> int:
    source = pathlib.Path(sys.argv[1])
    known = measured((source / "docs" / "VALIDATION.md").read_text())
    section = (source / "README.md").read_text().partition("## Accuracy so far")[2].partition("\n## ")[0]
    checked, faults = 0, []
    for cells in rows(section):
        if len(cells) < 4 or not numbers(cells[1]) or "%" not in cells[2]:
            continue
        points, medians, highs = numbers(cells[1]), numbers(cells[2]), numbers(cells[3])
        for i, median in enumerate(medians):
            checked += 1
            count = points[i] if len(points) == len(medians) else None
            high = highs[i] if len(highs) == len(medians) else None
            if not stands(count, median, high, known):
                faults.append(f"README: {cells[0]}: no line of VALIDATION has {median} % of {count} points, 90th percentile {high} %")
    print(f"{checked} figures of the README looked up among {len(known)}")
    print("\n".join(faults))
    return 1 if faults or checked < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
