# SPDX-License-Identifier: Apache-2.0
"""The shipped values as they would be had one system never been measured.

Which logs taught a value is what its source says: the calibration it names, and that calibration's logs. A value that one system
alone taught is replaced by its parent; calibrations that learnt from several systems are fitted again without the logs of this one,
from explicit starts or parents. With judges, what one system alone taught of a GPU generation or an adapter is learnt from the logs of
tests/validation/others, which teach no shipped value. Values read off its logs without a fit (systems.READ_OFF) take what
others published of them (systems.PUBLISHED), else those of relatives. `system` is a name, or a set of names that are left
out together (a family)."""
import pathlib
import re
import subprocess
import tempfile

import blind_logs
import logs
import systems

LIMIT_S = 600  # of one fit
# How far a value of a GPU generation lies from its parent: 1.48 times the median |ln| of the shipped ones but Hopper's (0.32).
BETWEEN_GENERATIONS = 0.5

VALUE = re.compile(r'\s+([\w.-]+): \{value: ([^,}]+),.*source: "([^"]*)"')
GENERATIONS = ("kepler", "volta", "ampere", "hopper", "blackwell")
ELDERS = {"blackwell": "hopper"}  # architecture.NAME.elder
# Values that a fit found are starts of a later one.
ORDER = ("shipped-nccl-lines", "shipped-nccl-ampere", "shipped-nccl-network-ampere", "shipped-nccl-volta", "shipped-nccl-network-volta")


def shipped_values(source: pathlib.Path) -> dict:
    """Parameter to (value, calibration its source names or ""); devices' values are called DEVICE.FIELD."""
    out = {}
    for path in [*sorted((source / "models" / "params").glob("*.yaml")), *sorted((source / "models" / "catalogue").rglob("*.yaml"))]:
        device = f"{path.stem}." if "catalogue" in path.parts else ""
        for line in path.read_text().splitlines():
            found = VALUE.match(line)
            if found:
                named = re.search(r"fit(?: of)? '?(?:calibration/)?([\w.-]+?)(?:\.yaml|'| to | beside)", found[3])
                out[device + found[1]] = (found[2], named[1] if named else "")
    return out


def logs_of(calibration: pathlib.Path) -> list:
    """Lines of a calibration's logs that published or own measurements are in, with the log's name."""
    lines = calibration.read_text().splitlines()
    name_of = re.compile(r"\$PARTS/([\w-]+)\.|([\w.-]+)\.txt")
    return [(next(filter(None, name_of.search(line).groups())), line) for line in lines if line.startswith("  - {file:") and ".txt" in line]


def teachers(source: pathlib.Path) -> dict:
    """Calibration to the systems it learnt from."""
    out = {}
    for path in (source / "calibration").glob("*.yaml"):
        names = [name for name, _ in logs_of(path)]
        out[path.stem] = {systems.system_of(name) for name in names if name != "host-and-peer-copies"}
    return out


def names_in(system) -> frozenset:
    return frozenset({system}) if isinstance(system, str) else frozenset(system)


def read_off(system) -> set:
    return {name for one in names_in(system) for name in (*systems.READ_OFF.get(one, ()), *systems.AS_OF.get(one, ()))}


def parent_of(name: str, values: dict, taught: dict, system, is_start: bool = False):
    """The value this one falls back to: without its GPU generation, and its protocol where all share a value, else another generation's;
    of all generations together, the newest one's of its own. None where there is none. A fit cannot start at 0."""
    stem, _, last = name.rpartition(".")
    if last in GENERATIONS:
        elder = [f"{stem}.{ELDERS[last]}"] if last in ELDERS else []
        candidates = elder + [stem, stem.rpartition(".")[0]] + [f"{stem}.{other}" for other in GENERATIONS if other != last]
    else:
        candidates = [f"{name}.{generation}" for generation in reversed(GENERATIONS)]
    off, out = read_off(system), names_in(system)
    for candidate in candidates:
        if is_start and candidate in values and float(values[candidate][0].split()[0]) == 0:
            continue
        if candidate in values and not out & taught.get(values[candidate][1], set()) and candidate not in off:
            return values[candidate][0]
    return None


UNITS = {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "kB": 1e3, "MB": 1e6, "GB": 1e9, "MB/s": 1e6, "GB/s": 1e9, "Gb/s": 1e9 / 8}


def amount(value: str) -> float:
    number, _, unit = value.strip().partition(" ")
    return float(number) * (UNITS[unit] if unit else 1)


def kin_of(source: pathlib.Path, device: str, of_kind: bool = False) -> list:
    """Devices of the same kind and of the same protocol or vendor (`of_kind`: or any); of a processor in a VM, or in four domains, that processor."""
    file = next((source / "models" / "catalogue").rglob(f"{device}.yaml"), None)
    if file is None:
        return []
    for part in ("-vm", "-nps4"):
        if device.endswith(part):
            return [device.removesuffix(part)]
    words = {path.stem: (re.search(r"attributes: \{(?:protocol|vendor): (\w+)", path.read_text()) or [None, path.stem])[1] for path in file.parent.glob("*.yaml")}
    return [name for name, word in words.items() if (of_kind or word == words[device]) and name != device]


def height(value: str) -> float:
    """What values are ordered by. A rate of 0 is no limit: the highest."""
    return amount(value) or (float("inf") if value.endswith("B/s") else 0)


def scaled(value: str, values: dict, other: str, device: str, field: str) -> str:
    """A rate in proportion to the port, of a memory in four domains a quarter; everything else as it is."""
    if device.endswith("-nps4") and not other.endswith("-nps4") and field == "memory_bandwidth":
        return f"{amount(value) / 4e9:.4g} GB/s"
    ports = [amount(values[f"{one}.rate"][0]) for one in (device, other) if f"{one}.rate" in values]
    return f"{amount(value) * ports[0] / ports[1] / 1e9:.4g} GB/s" if len(ports) == 2 and value.endswith("B/s") else value


def relative_of(source: pathlib.Path, name: str, values: dict, foreign: set, of_kind: bool = False):
    """The middle one of the same value of other devices of the kind, or of other MPI stacks; None where there is none. What relatives do not
    have (0, but for rates) says nothing."""
    head, _, field = name.partition(".")
    if head == "mpi":
        # Profiles that no log taught are no relatives.
        stack, _, field = field.partition(".")
        stacks = [key.split(".")[1] for key in values if re.fullmatch(r"mpi\.[\w-]+\.eager_limit", key) and key.split(".")[1] not in systems.UNTAUGHT_PROFILES]
        names = [f"mpi.{other}.{field}" for other in stacks] if stack in stacks else []
    else:
        # Into a GPU libfabric copies whatever adapter it drives; what else it costs is the provider's.
        if field.startswith("libfabric_"):
            of_kind = field == "libfabric_receive_copy_time"
        names = [f"{device}.{field}" for device in kin_of(source, head, of_kind)]
    usable = [other for other in names if other in values and other != name and other not in foreign and height(values[other][0]) > 0]
    found = sorted((scaled(values[other][0], values, other.partition(".")[0], head, field) for other in usable), key=height)
    return found[(len(found) - 1) // 2] if found else None


def relatives(source: pathlib.Path, system, kept: list, of_kind: bool = False) -> dict:
    """What replaces the values that only the system taught, or that were read off its logs; those without a relative are not in it.
    `of_kind`: where no device of its protocol or vendor is left, any of its kind is one."""
    values, taught = shipped_values(source), teachers(source)
    names = {*kept, *read_off(system)}
    foreign = names | {name for name, (_, calibration) in values.items() if taught.get(calibration) and taught[calibration] <= names_in(system)}
    found = {name: parent_of(name, values, taught, system) or systems.PUBLISHED.get(name) or relative_of(source, name, values, foreign) for name in names}
    if of_kind:
        found = {name: value or relative_of(source, name, values, foreign, of_kind) for name, value in found.items()}
    return {name: value for name, value in found.items() if value is not None}


def parameters_file(name: str, values: dict) -> str:
    lines = [f'  {key}: {{value: {value}, source: "parent, for want of the system that taught it"}}\n' for key, value in sorted(values.items())]
    return f"schema: fabricast/parameters/1\nname: {name}\nparameters:" + ("\n" + "".join(lines) if lines else " {}\n")


ENTRY = re.compile(r"  ([\w.-]+): \{(.*)\}$")


def with_start(line: str, starts: dict) -> str:
    """A line of a calibration; a parameter without a start of its own starts at its parent."""
    entry = ENTRY.match(line)
    if not entry or "start:" in entry[2] or entry[1] not in starts:
        return line
    return f"  {entry[1]}: {{start: {starts[entry[1]]}{', ' if entry[2] else ''}{entry[2]}}}"


def placed(source: pathlib.Path, lines: list, before: list) -> str:
    """A calibration whose paths are those of a file in calibration/, for any folder."""
    out = [re.sub(r"(file|scenario): (?=data/|\.\./)", rf"\1: {source}/calibration/", line).replace("topology: ../", f"topology: {source}/") for line in lines]
    if before:
        out.append(f"parameters_before: [{', '.join(map(str, before))}]")
    return "\n".join(out) + "\n"


def is_of(kind: str, name: str) -> bool:
    """Whether a value is one of a GPU generation, or of a device."""
    return name.endswith(f".{kind}") or name.startswith(f"{kind}.")


def with_parts(source: pathlib.Path, text: str, folder: pathlib.Path) -> str:
    """The calibration with the parts of tables that it names, $PARTS/LOG.PART.txt, written to `folder`; without those that are absent."""
    folders, lines = logs.measurement_folders(source), []
    for line in text.splitlines():
        named = re.search(r"\$PARTS/([\w-]+)\.([\w-]+)\.txt", line)
        if named:
            log = logs.log_of(named[1], folders)
            part = next((one for one in (blind_logs.parts(log) if log else []) if "-".join(one.name.split()) == named[2]), None)
            if part is None:
                continue
            file = folder / f"{named[1]}.{named[2]}.txt"
            file.write_text(blind_logs.collective_text(re.search(r"benchmark: (\w+)", line)[1], part.points))
            line = line.replace(named[0], str(file))
        lines.append(line)
    return "\n".join(lines) + "\n"


def judges(source: pathlib.Path, system, wanted: set, starts: dict, before: list) -> dict:
    """GPU generation or adapter to a calibration that learns the values in `wanted` from the logs of others, where some of them are of
    it. Starts are those of the fits that taught them, else parents; no shipped value is a start or a prior."""
    entries = {}
    for path in sorted((source / "calibration").glob("*.yaml")):
        for line in path.read_text().splitlines():
            entry = re.match(r"  ([\w.-]+): \{start: ([^,}]+)", with_start(line, starts))
            if entry and entry[1] in wanted:
                entries.setdefault(entry[1], f"  {entry[1]}: {{start: {entry[2]}, prior: {BETWEEN_GENERATIONS}}}")
    out = {}
    for path in sorted((source / "tests" / "validation" / "others").glob("*.yaml")):
        is_left_out = any(systems.system_of(name) in names_in(system) for name, _ in logs_of(path))
        if not is_left_out and any(is_of(path.stem, name) for name in entries):
            out[path.stem] = placed(source, [*path.read_text().splitlines(), *entries.values()], before)
    return out


def reduced(source: pathlib.Path, calibration: str, system, starts: dict, before: list) -> str:
    """The calibration without the system's logs; entries without a start of their own start at their parents."""
    path = source / "calibration" / f"{calibration}.yaml"
    dropped = {line for name, line in logs_of(path) if systems.system_of(name) in names_in(system)}
    lines = [with_start(line, starts) for line in path.read_text().splitlines() if line not in dropped]
    return placed(source, lines, before)


def fitted_lines(text: str) -> tuple:
    """A written parameter file without its band and range, which are of that fit, and the names the fit moved."""
    lines = [line for line in text.splitlines() if not re.match(r"  model\.", line)]
    if lines[-1] == "parameters:":  # all keep their start
        lines[-1] += " {}"
    return "\n".join(lines) + "\n", [re.match(r"  ([\w.-]+):", line)[1] for line in lines if "source: \"fit '" in line]


def refit(program: str, folder: pathlib.Path, name: str, text: str) -> str:
    """The parameter file of a fit. Entries of devices that only the system left out has are no parameters of the rest, what only its logs depend
    on has no others, and what falls back to 0 has nothing to start from: they go."""
    file, out = folder / f"{name}.yaml", folder / f"{name}.fitted.yaml"
    while True:
        file.write_text(text)
        done = subprocess.run([program, "calibrate", str(file), "--quick", "-q", "-o", str(out), "--report", str(folder / f"{name}.json")], capture_output=True, text=True, check=False, timeout=LIMIT_S)
        absent = set(re.findall(r"no parameter '([\w.-]+)' in these scenarios", done.stderr)) | set(re.findall(r"'([\w.-]+)' is 0 and cannot be fitted", done.stderr))
        for names in re.findall(r"no forecast of the fitted logs depends on (.*)", done.stderr):
            absent.update(re.findall(r"'([\w.-]+)'", names))
        if not absent:
            break
        text = "".join(line for line in text.splitlines(keepends=True) if line.partition(":")[0].strip() not in absent)
        if re.search(r"^fit:\n(?!  )", text, re.MULTILINE):
            return parameters_file(name, {})
    if done.returncode != 0:
        raise RuntimeError(f"{name}: exit {done.returncode}\n{done.stderr[:600]}")
    return out.read_text()


def fit_without(program: str, source: pathlib.Path, system, with_judges: bool = False) -> dict:
    """Parameter files that make the shipped values forget a system, and which values were refitted, replaced or kept. Shipped
    bands are learnt without judges, and only the table of systems left out (script/blind-table) asks them."""
    values, taught = shipped_values(source), teachers(source)
    out = names_in(system)
    learnt = {name: calibration for name, (_, calibration) in values.items() if out & taught.get(calibration, set())}
    parents = {name: value for name in values for value in [parent_of(name, values, taught, system)] if value is not None}
    starts = {name: value for name in values for value in [parent_of(name, values, taught, system, is_start=True)] if value is not None}
    alone = {name for name, calibration in learnt.items() if taught[calibration] <= out}
    replaced = {name: parents[name] for name in learnt if name in parents}
    kept = sorted(name for name in alone if name not in parents)
    files = [("parents", parameters_file("parents", replaced))]
    refitted = set()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        before = [folder / "parents.yaml"]
        before[0].write_text(files[0][1])
        several = {calibration for calibration in learnt.values() if taught[calibration] - out}
        for calibration in sorted(several, key=lambda one: (ORDER.index(one) if one in ORDER else len(ORDER), one)):
            text, moved = fitted_lines(refit(program, folder, calibration, reduced(source, calibration, system, starts, before)))
            files.append((calibration, text))
            before.append(folder / f"{calibration}.before.yaml")
            before[-1].write_text(text)
            refitted.update(moved)
        teaching = judges(source, system, set(learnt) - refitted, starts, before) if with_judges else {}
        for generation, text in teaching.items():
            text, moved = fitted_lines(refit(program, folder, f"others-{generation}", with_parts(source, text, folder)))
            files.append((f"others-{generation}", text))
            refitted.update(moved)
    unmoved = sorted(name for name, calibration in learnt.items() if name not in alone and name not in refitted)
    return {"files": files, "refitted": sorted(refitted), "parents": sorted(set(replaced) - refitted), "kept": [name for name in kept if name not in refitted] + [name for name in unmoved if name not in parents]}
