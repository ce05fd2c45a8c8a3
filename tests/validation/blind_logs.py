# SPDX-License-Identifier: Apache-2.0
"""Published logs cut into parts of one table each.

A scenario describes one table of its log; a part says by settings (as --set) what its own table
differs in. Tables of nccl-tests and OSU stay text that `fabricast validate` reads; several runs of one table become their median.
Tables that are no tool's output (CSV of aiconfigurator and PICO) become points: size in bytes to seconds."""
import dataclasses
import pathlib
import re
import statistics

RAW = "# ---- raw output below ----"
LARGEST_PICO = 1024  # nodes; larger runs take minutes to forecast, pairwise exchange already 1,000
LARGEST_PAIRWISE = 256


@dataclasses.dataclass
class Part:
    name: str
    settings: list = dataclasses.field(default_factory=list)
    text: str = ""  # a log to validate against; empty: the whole file
    points: dict = dataclasses.field(default_factory=dict)


def raw(path: pathlib.Path) -> str:
    return path.read_text(errors="replace").partition(RAW)[2]


def median_points(values: dict) -> dict:
    return {size: statistics.median(times) for size, times in sorted(values.items())}


def aiconfigurator(path: pathlib.Path) -> list:
    """CSV: framework, version, device, operation, source, dtype, GPUs, elements, milliseconds."""
    bytes_of = {"half": 2, "int8": 1}
    groups = {}
    for line in raw(path).strip().splitlines()[1:]:
        cells = line.split(",")
        size = int(cells[7]) * bytes_of[cells[5]]
        groups.setdefault((cells[3], int(cells[6])), {}).setdefault(size, []).append(float(cells[8]) / 1e3)
    return [
        Part(f"{operation} {gpus}", [f"workload.benchmark={operation}_perf", f"workload.gpus={gpus}"], points=median_points(times))
        for (operation, gpus), times in sorted(groups.items())
    ]


# PICO's name of a forced algorithm to ours; others are not modelled or the authors' own.
PICO_ALGORITHMS = {
    "default": "auto", "recursive_doubling": "recursive_doubling", "ring": "ring", "rabenseifner": "rabenseifner", "brucks": "bruck",
    "modified_bruck": "bruck", "binomial": "binomial", "scatter_allgather_ring": "scatter_allgather", "pairwise": "pairwise",
    "linear": "linear", "linear_synch": "linear_sync", "linear_nb": "linear_nb", "neighbor": "neighbor_exchange", "binary": "binary",
    "knomial": "knomial", "split_binary": "split_binary", "scatter_allgather": "scatter_doubling", "recursive_halving": "recursive_halving",
}
PICO_FORECAST = {
    "ALLGATHER": ("auto", "recursive_doubling", "ring", "bruck", "neighbor_exchange"),
    "ALLREDUCE": ("auto", "recursive_doubling", "ring", "rabenseifner"),
    "ALLTOALL": ("auto", "bruck", "linear"),  # exchanges by pairs of 1,024 ranks take half an hour to forecast
    "BCAST": ("auto", "binomial", "binary", "knomial", "split_binary", "scatter_allgather", "scatter_doubling"),
    "GATHER": ("auto", "binomial", "linear", "linear_sync"), "SCATTER": ("auto", "binomial", "linear", "linear_nb"),
    "REDUCE": ("auto", "binomial", "binary", "linear"), "REDUCE_SCATTER": ("auto", "ring", "pairwise", "recursive_halving"),
}
PICO_NOTES = ("null", "testing non po2 algos", "1200+ nodes are excluded", "4 tasks per node")  # others change what a column says
# Runs on LUMI in which an all-reduce by a forced algorithm takes what the library's choice takes, of any size; in the run of 16:33 on the
# same nodes doubling takes twice as long as the choice, as it must: the setting had not reached the library.
PICO_FORCED_IN_VAIN = ("2025_03_16___14_58_59", "2025_03_16___15_34_44", "2025_04_07___16_14_21", "2025_04_07___16_22_51")
PICO_PER_RANK = ("ALLGATHER", "ALLTOALL", "GATHER", "SCATTER")  # OSU's sizes of these are blocks


def pico_part(cells: list):
    """Key of the part that a line belongs to, and its size; None where it is not modelled."""
    nodes, tasks, collective, mpi, gpu, notes, algorithm, count = int(cells[2]), int(cells[3]), cells[4], cells[5], cells[6], cells[7], cells[8], int(cells[10])
    # The column says 1 there; vectors start at 4,096 elements, as those of 1,024 ranks do (of 512 at 512).
    tasks = 4 if notes == "4 tasks per node" else tasks
    name, _, library = algorithm.rpartition("_")
    ours = PICO_ALGORITHMS.get(name)
    if ours is not None and cells[0] in PICO_FORCED_IN_VAIN and library == "mpich":
        ours = "auto"
    is_forecast = ours in PICO_FORECAST.get(collective, ()) and library in ("ompi", "mpich")
    if not is_forecast or gpu != "no" or notes not in PICO_NOTES or mpi == "customOMPI" or nodes > (LARGEST_PAIRWISE if collective == "REDUCE_SCATTER" else LARGEST_PICO):
        return None
    ranks = nodes * tasks
    # PICO counts the whole vector.
    elements = count // ranks if collective in PICO_PER_RANK else count
    return None if elements == 0 else ((collective.lower(), ours, nodes, tasks), 4 * elements)


def pico(path: pathlib.Path) -> list:
    groups = {}
    for line in raw(path).strip().splitlines()[1:]:
        cells = line.split(",")
        found = pico_part(cells)
        if found is not None:
            groups.setdefault(found[0], {}).setdefault(found[1], []).append(float(cells[12]) / 1e9)
    out = []
    for (collective, algorithm, nodes, tasks), times in sorted(groups.items()):
        benchmark = {"allgather": "osu_allgather", "allreduce": "osu_allreduce"}.get(collective, f"osu_{collective}")
        # PICO publishes the time of the slowest rank of every iteration, as the header of its files says.
        settings = [f"workload.benchmark={benchmark}", "workload.statistic=max", f"workload.algorithm={algorithm}", f"workload.ranks={nodes * tasks}", f"workload.ranks_per_host={tasks}", f"topology.hosts.node.count={nodes}"]
        out.append(Part(f"{collective} {algorithm} {nodes}x{tasks}", settings, points=median_points(times)))
    return out


OSU_TITLES = {"Allreduce Latency Test": "osu_allreduce", "Bandwidth Test": "osu_bw", "Latency Test": "osu_latency"}


def osu_runs(path: pathlib.Path) -> dict:
    """Benchmark to size to values of all runs in a file."""
    found, values = {}, None
    for line in raw(path).splitlines():
        if line.startswith("# OSU "):
            title = next(key for key in OSU_TITLES if key in line)
            values = found.setdefault(OSU_TITLES[title], {})
        row = re.fullmatch(r"(\d+)\s+([\d.]+)\s*", line)
        if row and values is not None:
            values.setdefault(int(row[1]), []).append(float(row[2]))
    return found


def osu_text(benchmark: str, values: dict) -> str:
    title = {kind: text for text, kind in OSU_TITLES.items()}[benchmark]
    unit = "Bandwidth (MB/s)" if benchmark == "osu_bw" else "Latency (us)"
    return f"# OSU MPI {title} v5.8\n# Size  {unit}\n" + "".join(f"{size}  {value:.4f}\n" for size, value in median_points(values).items())


def collective_text(benchmark: str, points: dict) -> str:
    """OSU's table of a collective. Points in seconds."""
    title = {"osu_allgather": "Allgather", "osu_allreduce": "Allreduce"}[benchmark]
    return f"# OSU MPI {title} Latency Test v7.2\n# Size  Avg Latency(us)\n" + "".join(f"{size}  {1e6 * seconds:.4f}\n" for size, seconds in sorted(points.items()))


def osu_parts(path: pathlib.Path) -> list:
    """Point-to-point tests are of pairs of VMs, one rank each; all-reduce is of eight ranks on every VM, with `-d cuda` whatever the
    H H or D D behind it, which collectives do not read (the site's job scripts)."""
    out = []
    for benchmark, values in sorted(osu_runs(path).items()):
        settings = []
        if "ndv2" in path.stem:
            vms = int(re.search(r"(\d+)vm", path.stem)[1])
            settings = [f"workload.benchmark={benchmark}"]
            if benchmark == "osu_allreduce":
                kind = "gpus" if "-dd-" in path.stem else "ranks"
                settings += [f"workload.{kind}={8 * vms}", "workload.ranks_per_host=8"]
                if kind == "ranks":
                    settings += ["workload.buffers=[device, device]", "software.gpudirect_rdma=off", "software.gdrcopy=off"]
        out.append(Part(benchmark, settings, osu_text(benchmark, values)))
    return out


def nccl_tables(path: pathlib.Path) -> list:
    """The tables of a file in which several outputs of nccl-tests follow each other."""
    pieces = re.split(r"(?=# Collective test starting: )", raw(path))
    return [(re.match(r"# Collective test starting: (\w+)", piece)[1], "\n".join(line.strip() for line in piece.splitlines())) for piece in pieces[1:]]


def five_collectives(path: pathlib.Path) -> list:
    return [Part(name, [f"workload.benchmark={name}"], text) for name, text in nccl_tables(path)]


def alps(path: pathlib.Path) -> list:
    tables = nccl_tables(path)
    tcp = ["topology=../../topologies/blind/alps-tcp.yaml", "software.transport=tcp", "software.gpudirect_rdma=off"]
    return [Part("libfabric", [], tables[0][1]), Part("tcp", tcp, tables[1][1])]


def oci(path: pathlib.Path) -> list:
    """A100 first, then MI300X, whose release is not stated."""
    tables = [text for _, text in nccl_tables(path)]
    mi300x = ["topology=../../topologies/blind/mi300x-cx7-pair.yaml", "software.nccl={}"]
    return [Part("a100", [], next(text for text in tables if "A100" in text)), Part("mi300x", mi300x, next(text for text in tables if "A100" not in text))]


def rows(path: pathlib.Path) -> list:
    """Lines of bytes, microseconds out of place, GB/s, microseconds in place, GB/s."""
    cells = [line.split() for line in raw(path).splitlines()]
    return [Part("", points={int(one[0]): float(one[1]) / 1e6 for one in cells if len(one) >= 4 and one[0].isdigit()})]


def one_row(path: pathlib.Path) -> list:
    row = next(line.split() for line in raw(path).splitlines() if re.match(r"\s*\d+\s+[\d.]+\s", line))
    return [Part("all_reduce_perf", points={int(row[0]): float(row[1]) / 1e6})]


READERS = (
    (r"aic-", aiconfigurator), (r"pico-", pico), (r"v100-azure-(aks|ndv2)-|v100-google-ce-", osu_parts), (r"h100-xxrjun-", five_collectives),
    (r"gh200-alps-", alps), (r"oci-a100-", oci), (r"v100-pcie-4gpu-2node-roce40-", one_row), (r"mi300x-", rows),
)


def parts(path: pathlib.Path) -> list:
    reader = next((read for pattern, read in READERS if re.match(pattern, path.stem)), None)
    return reader(path) if reader else [Part("")]
