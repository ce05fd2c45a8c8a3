#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Virtual machines: published and own measurements against forecasts, each with its largest accepted error, and the
causes of the differences by name. Arguments: program, source folder. With --table: the lines of docs/VALIDATION.md."""
import json
import pathlib
import subprocess
import sys
import tempfile

import logs
import virtual_cases

LIMIT_S = 300  # of one command


def copy_errors(program, source):
    return [(row, row[4] / row[3] - 1) for row in virtual_cases.copies(program, source)]


def evaluated(program, source, folders):
    folder = source / "scenarios" / "validation" / "virtual"
    cases = [case for case in virtual_cases.published_cases()]
    for case in cases:
        document = virtual_cases.run(program, folder / f"{case.scenario}.yaml", case.settings)
        case.predicted = virtual_cases.value_of(document, case.unit)
        case.bottleneck = document["rows"][0]["bottleneck"]
    return cases


def table(program, source, folders) -> str:
    folder = source / "scenarios" / "validation" / "virtual"
    lines = ["| case | measured | forecast | error | limited by |", "| --- | --- | --- | --- | --- |"]
    for case in evaluated(program, source, folders):
        lines.append(f"| {case.name} | {case.measured:g} {case.unit} | {case.predicted:.3g} {case.unit} | {100 * case.error:+.1f} % | {case.bottleneck} |")
    for ratio in virtual_cases.RATIOS:
        predicted = virtual_cases.ratio(program, folder, ratio)
        lines.append(f"| {ratio[0]} | {ratio[4]:.2f} x | {predicted:.3f} x | {100 * (ratio[4] / predicted - 1):+.1f} % | |")
    inference = virtual_cases.inference_ratios(program, folder, folders)
    for name, predicted, measured in inference:
        lines.append(f"| vGPU on vSphere over bare metal, inference {name} | {measured:.3f} x | {predicted:.3f} x | {100 * (measured / predicted - 1):+.1f} % | |")
    errors = copy_errors(program, source)
    for direction in ("h2d", "d2h", "bidir"):
        some = [abs(error) for row, error in errors if row[0] == direction]
        lines.append(f"| pinned copies on 1 to 8 H200 at once, {direction}, {len(some)} rates | | | median {100 * logs.percentile(some, 0.5):.1f} %, largest {100 * max(some):.0f} % | |")
    return "\n".join(lines) + "\n"


def check_causes(program, source, failures):
    """What P2P off and TCP cost in a VM, and the name of the cause."""
    folder = source / "scenarios" / "validation"
    largest = ["workload.sizes=[1 GiB]"]
    for gpus in (2, 4):
        rates, causes = {}, {}
        for kind in ("", "-p2poff", "-tcp-socket"):
            document = virtual_cases.run(program, folder / f"h200vm-{gpus}gpu-all_reduce{kind}.yaml", largest)
            rates[kind] = virtual_cases.value_of(document, "GB/s")
            causes[kind] = " ".join(term["name"] for term in document["rows"][0]["terms"])
        if not rates[""] > 5 * rates["-p2poff"] > 20 * rates["-tcp-socket"]:
            failures.append(f"{gpus} H200: NVLink {rates['']:.1f}, host memory {rates['-p2poff']:.1f}, TCP {rates['-tcp-socket']:.1f} GB/s")
        for kind, word in (("", "nvlink"), ("-p2poff", "shm"), ("-tcp-socket", "socket")):
            if f"over {word}" not in causes[kind]:
                failures.append(f"{gpus} H200{kind}: no term names {word}: {causes[kind]}")


def check_what_if(program, source, failures):
    """One scenario under six ways of virtualization: one table, ratios, and the terms that changed."""
    names = ["what-if-virtualization" + suffix for suffix in ("", "-passthrough", "-sr-iov", "-vgpu", "-pvrdma", "-tcp")]
    command = [program, "compare", *(str(source / "scenarios" / f"{name}.yaml") for name in names), "-q"]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT_S).stdout
    head = next((line.split() for line in text.splitlines() if "B/A" in line), [])
    if [word for word in head if word.endswith("/A")] != [f"{letter}/A" for letter in "BCDEF"] or text.count("# terms that changed most") != 5:
        failures.append("compare does not print one table with five ratios and their terms")
    rows = json.loads(subprocess.run([*command, "--format", "json"], capture_output=True, text=True, check=True, timeout=LIMIT_S).stdout)["workloads"][0]["rows"]
    for row in rows:
        ratios = row["ratio"]
        if min(ratios[1:]) < 1 or not ratios[5] > ratios[4] > max(ratios[1:4]) - 0.01:
            failures.append(f"what-if at {row['size_bytes']} B: ratios {ratios}")
        if not all(row["changed_terms"][1:]):
            failures.append(f"what-if at {row['size_bytes']} B: no term changed")


def check_taught(program, source, failures):
    """Values that figures taught give those figures, and their intervals hold them on both sides."""
    with tempfile.TemporaryDirectory() as folder:
        for case in virtual_cases.TAUGHT:
            low, used, high = virtual_cases.taught(program, source, folder, case)
            name, figure = case[0], case[4]
            print(f"{name}: {low:.4g} to {high:.4g}, at its value {used:.4g}, published {figure:.4g}")
            if abs(used / figure - 1) > 0.02:
                failures.append(f"{name}: its value gives {used:.4g}, published {figure:.4g}")
            if not min(low, high) <= figure <= max(low, high):
                failures.append(f"{name}: its interval gives {low:.4g} to {high:.4g}, published {figure:.4g}")


def main() -> int:
    program, source = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    folders = logs.measurement_folders(source)
    if "--table" in sys.argv:
        print(table(program, source, folders), end="")
        return 0
    failures = []
    for case in evaluated(program, source, folders):
        print(f"{case.name}: measured {case.measured:g}, forecast {case.predicted:.3g} {case.unit}, error {100 * case.error:+.1f} %")
        if abs(case.error) > case.budget:
            failures.append(f"{case.name}: error {100 * case.error:+.1f} %, allowed {100 * case.budget:.0f} %")
    folder = source / "scenarios" / "validation" / "virtual"
    for ratio in virtual_cases.RATIOS:
        predicted = virtual_cases.ratio(program, folder, ratio)
        print(f"{ratio[0]}: measured {ratio[4]:.2f}, forecast {predicted:.3f}")
        if abs(predicted - ratio[4]) > ratio[5]:
            failures.append(f"{ratio[0]}: forecast {predicted:.3f}, published {ratio[4]}")
    inference = virtual_cases.inference_ratios(program, folder, folders)
    if not inference:
        print("inference logs are absent (published logs are not part of the project)")
    for name, predicted, measured in inference:
        print(f"vGPU inference {name}: measured {measured:.3f}, forecast {predicted:.3f}")
        if abs(predicted - measured) > 0.05:
            failures.append(f"vGPU inference {name}: measured {measured:.3f}, forecast {predicted:.3f}")
    errors = copy_errors(program, source)
    median = logs.percentile([abs(error) for _, error in errors], 0.5)
    print(f"{len(errors)} concurrent copies: median error {100 * median:.1f} %")
    if len(errors) != 72 or median > 0.1:
        failures.append(f"{len(errors)} concurrent copies, median error {100 * median:.1f} %, allowed 10 %")
    check_taught(program, source, failures)
    check_causes(program, source, failures)
    check_what_if(program, source, failures)
    for failure in failures:
        print("FAILED", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
