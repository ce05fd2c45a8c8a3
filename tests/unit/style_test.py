#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The sources' form: clang-format, licence line, at most 400 lines a file, local functions in unnamed namespaces, and each file includes what it uses of the
standard library and of our own headers, itself or by a header of ours that it includes: joined builds hide what is missing. Names of parameters in models/ are checked ones. Argument: source folder."""
import functools
import pathlib
import re
import subprocess
import sys

MOST_LINES = 400
STANDARD = {
    "algorithm": "sort stable_sort min max clamp find find_if any_of all_of none_of transform unique reverse count count_if lower_bound upper_bound remove_if nth_element max_element min_element",
    "array": "array", "atomic": "atomic", "chrono": "chrono", "cmath": "sqrt pow exp log log2 floor ceil round isfinite isnan lround llround abs",
    "deque": "deque", "filesystem": "filesystem", "fstream": "ifstream ofstream", "functional": "function hash", "iostream": "cout cerr cin",
    "limits": "numeric_limits", "map": "map multimap", "memory": "unique_ptr shared_ptr make_unique make_shared", "mutex": "mutex lock_guard",
    "numeric": "accumulate iota gcd lcm", "optional": "optional nullopt", "random": "mt19937 mt19937_64", "regex": "regex smatch",
    "set": "set multiset", "span": "span", "sstream": "ostringstream istringstream stringstream", "string": "string to_string", "string_view": "string_view",
    "thread": "thread", "tuple": "tuple tie ignore", "unordered_map": "unordered_map", "unordered_set": "unordered_set", "utility": "pair move exchange",
    "variant": "variant visit holds_alternative", "vector": "vector",
}
# Headers of the standard library that hold another one's names by its own rules.
GIVEN_BY = {"utility": {"map", "set", "algorithm", "string", "vector", "memory", "tuple", "unordered_map", "optional", "functional", "variant"}, "cmath": {"cstdlib", "random"}}
HEADER = {name: header for header, names in STANDARD.items() for name in names.split()}
FOLDERS = ("sim", "models", "calibration", "python", "tests", "examples")
INCLUDE_FOLDERS = ("sim/include", "sim", "models", "calibration", "python", "tests", "tests/packet", ".")
USED = re.compile(r"\bstd::(\w+)")
INCLUDE = re.compile(r'^#include [<"]([^>"]+)[>"]', re.MULTILINE)
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
# Names of parameters in the models that the compiler does not check; keys of scenarios look the same.
UNCHECKED = re.compile(r'(?<!<)"((?:architecture|cuda|dcqcn|gdrcopy|gpu|host|lossless|mig|mig_placement|migration|mpi|nccl|pcie|remote_gpu|tcp|training|verbs|vgpu|'
                       r'virtualization)\.[a-z{][^" ]*)"(?!_key|_stem|>)')
NO_PARAMETERS = {"nccl.plugin", "nccl.plugin_version", "virtualization.rate_limit", "virtualization.gpu_share", "virtualization.profile", "migration.link",
                 "training.eager_{}"}
# What our headers declare in a namespace: types, functions of two words or more, constants, macros and literals. Shorter names of functions are names of
# members, too.
DECLARED = re.compile(r"^(?:struct|class|enum class|using) (\w+)\b(?: final)?(?: *:[^;{]*)?(?: *\{| *=)|"
                      r"^(?! )(?:\[\[nodiscard\]\] |inline |constexpr |consteval |template <[^>]*> )*[\w:<>,&* ]+?[ &*]([a-z]\w*_\w+)\(|"
                      r"^inline constexpr [\w:<>, ]+ (\w+)\b|^#define (FABRICAST_\w+)|\boperator(_key|_stem)\(", re.MULTILINE)
NAMED = re.compile(r"(?<![\w.>])(?<!std::)(?<!ranges::)(?<!routing::)(?<!s4u::)(?<!YAML::)(?:([A-Z]\w*[a-z]\w*)\b(?! :)(?!\()|([a-z]\w*_\w+|FABRICAST_\w+)\(|(?<!operator)(_key|_stem)\b)")
# Names that a file introduces in any way: variables, members, parameters, forward declarations, nested types.
INTRODUCED = re.compile(r"(?:[\w>&*] (?<!return )(?<!case )(?<!else )(?<!const )(?<!static )|[(:]\s*(?=\w+[,;{]))(?=(\w+)\b)")
LOCAL = re.compile(r"^static .*\(.*\{$", re.MULTILINE)


def names(pattern: re.Pattern, code: str) -> set:
    """What the groups of a pattern match."""
    return {name for found in pattern.finditer(code) for name in found.groups() if name}


class Sources:
    def __init__(self, root: pathlib.Path):
        self.root = root
        self.paths = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.[ch]pp"))
        self.declaring = {}
        for path in self.paths:
            if path.suffix == ".hpp" and self.joined(path):
                for name in names(DECLARED, self.code(path)):
                    self.declaring.setdefault(name, set()).add(path)

    @functools.cache
    def text(self, path: pathlib.Path) -> str:
        return path.read_text()

    @functools.cache
    def code(self, path: pathlib.Path) -> str:
        return COMMENT.sub("", self.text(path))

    def joined(self, path: pathlib.Path) -> bool:
        """Whether a joined build compiles a source with others."""
        return path.relative_to(self.root).parts[0] in ("sim", "models", "calibration")

    @functools.cache
    def ours(self, path: pathlib.Path) -> frozenset:
        """A file and the headers of ours that it includes, by itself or by others."""
        found = {path}
        for include in INCLUDE.findall(self.text(path)):
            if inner := self.place(path, include):
                found |= self.ours(inner)
        return frozenset(found)

    @functools.cache
    def introduced(self, path: pathlib.Path) -> frozenset:
        return frozenset(INTRODUCED.findall(self.code(path)))

    def missing(self, path: pathlib.Path) -> list:
        """Names of our own headers that a file uses without any of the headers that declare them."""
        have = self.ours(path)
        return [f"uses {name} and does not include {' or '.join(sorted(header.name for header in self.declaring[name]))}"
                for name in sorted(names(NAMED, self.code(path)) & self.declaring.keys())
                if not self.declaring[name] & have and not any(name in self.introduced(inner) for inner in have)]

    @functools.cache
    def headers(self, path: pathlib.Path) -> frozenset:
        """Standard headers that a file includes, by itself or by headers of ours."""
        return frozenset(include for inner in self.ours(path) for include in INCLUDE.findall(self.text(inner)) if not self.place(inner, include))

    @functools.cache
    def place(self, path: pathlib.Path, include: str):
        for folder in (*(self.root / name for name in INCLUDE_FOLDERS), path.parent):
            if (folder / include).is_file():
                return folder / include
        return None

    def faults(self, path: pathlib.Path) -> list:
        text = self.text(path)
        found = []
        if "SPDX-License-Identifier: Apache-2.0" not in text.split("\n", 1)[0]:
            found.append("the first line is the licence's")
        if text.count("\n") > MOST_LINES:
            found.append(f"more than {MOST_LINES} lines")
        if path.suffix == ".cpp" and (local := LOCAL.search(text)):
            found.append(f"belongs into an unnamed namespace: {local.group()}")
        if path.is_relative_to(self.root / "models"):
            found += [f"{name} is no checked name of a parameter: \"...\"_key, _stem or named<...> (base/parameter_name.hpp)"
                      for name in UNCHECKED.findall(text) if name not in NO_PARAMETERS]
        for call in re.findall(r"for \([^;()]* : ((?:\w+::)*(?:run|share_gpu|network|simulate|scenario)\(.*\)\.\w+.*)\)", text):
            found.append(f"the object is gone before the loop begins: {call}")
        if "doctest::Approx" in text and path.name != "approx.hpp":
            found.append("doctest::Approx holds for any two small numbers: test::approx (tests/support/approx.hpp)")
        wanted = {HEADER[name] for name in USED.findall(self.code(path)) if name in HEADER}
        have = self.headers(path)
        found += [f"uses <{header}> and does not include it" for header in sorted(wanted - have) if not have & GIVEN_BY.get(header, set())]
        if self.joined(path):
            found += self.missing(path)
        return [f"{path.relative_to(self.root)}: {one}" for one in found]


def main() -> int:
    sources = Sources(pathlib.Path(sys.argv[1]))
    found = [fault for path in sources.paths for fault in sources.faults(path)]
    form = subprocess.run(["clang-format-14", "--dry-run", "-Werror", *map(str, sources.paths)], capture_output=True, text=True, timeout=400)
    found += [line for line in form.stderr.split("\n") if "error:" in line]
    for fault in found:
        print(fault)
    assert len(sources.paths) > 100, "the sources were not found"
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
