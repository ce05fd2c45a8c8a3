#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Laws of what a user gets who names nothing: random hosts of the catalogue, counts and benchmarks, every other setting left out.

- physical bound <= low <= time <= high, and nothing but finite numbers;
- a larger message is never faster with the same algorithm, protocol and channels, walked up to both sides of every size where these change (there a
  library's own rule may make a step);
- losing peer access or GPUDirect RDMA, or adapters, is never faster.

Where a library's own rule makes a step the law holds on both sides of it:
- NCCL's tuner estimates times by tables of its own and may choose what is slower: losses are compared with the same algorithm and protocol;
- NCCL opens fewer channels with less inside a host or fewer adapters, and each takes time to start: with other numbers of channels a loss is compared
  without the terms that grow with that number alone (SHARED);
- without GPUDirect RDMA NCCL spreads its channels over the PCIe switches that all bytes pass then; with it LL, which goes by host memory all the same,
  finds them where the others pass least: LL is not compared;
- without peer access NCCL has no PXN, whose detour over another GPU takes a send and receive longer: that loss is compared without PXN;
- NCCL doubles the channels of a pair of ranks inside a host at 32 MiB, which its table of channels does not show;
- NCCL's first channels and UCX's rails take the adapters in the host's order, so that losing every second one may spread them over more PCIe switches:
  it is compared where all channels are in use, as many with and without; losing the later half is compared always;
- queued broadcasts and reduces hold each other up less the fewer GPUs channels come in at: over several hosts losses are compared with one at a time;
- MPI stripes staged messages over two adapters and GPUDirect RDMA over the nearest only: what becomes staged is compared below the rendezvous;
- no library avoids a processor whose root complexes pass on peer requests more slowly than those to memory: what they limit (PEER_LIMIT) is not compared;
- between GPUs of a host UCX copies short messages by gdrcopy and longer ones by CUDA IPC or through host memory: a collective's rows are compared with
  those that go the same ways (WAYS);
- UCX sends device messages at once up to 256 KiB by a core that copies into the GPU, which a pipeline of copy engines passes from 64 KiB on: from there
  they are not compared;
- UCX stripes what it announces over two adapters from 32 KiB on, at 100 Gb/s and more it announces less;
- eager messages of device buffers are staged by pageable copies, those of the rendezvous by pinned ones: between hosts too (WAYS: bounce buffers).

Arguments: program, source folder, number of draws, first draw (0). A draw gives the same run again."""
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

LIMIT_S = 300  # of one command

NCCL = ["all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "broadcast_perf", "reduce_perf", "alltoall_perf", "sendrecv_perf"]
MPI = ["osu_latency", "osu_bw", "osu_bibw", "osu_allreduce", "osu_bcast", "osu_alltoall", "osu_allgather", "osu_reduce_scatter", "osu_gather", "osu_scatter"]
SLACK = 1.005  # of a faster device: rounding of rates; a law is about structure
ENTERED_APART = ("osu_bcast", "osu_gather", "osu_scatter")
BARRIER_SLACK = 1.25  # of their eager messages: who leaves the barrier between calls earlier waits longer
LARGEST = 256 << 20
LARGEST_PART = 16 << 20  # of a pair of ranks, before its channels double
LATE_EAGER = 64 << 10
SMALLEST_STRIPED = 32 << 10  # two of UCX_MIN_RNDV_CHUNK_SIZE
SHARED = re.compile(r"start of (the protocol on )?\d+ channels|slowest of \d+ channels")
PEER_LIMIT = re.compile(r"\.(translated_peer|p2p_\w+)_bandwidth$")
WAYS = ("gdrcopy from the GPU", "CUDA IPC handling", "copy to host memory", "copies through bounce buffers")
PLUGIN_SWITCHES = {"efa-100g": "aws-srd", "efa-100g-gdr": "aws-srd", "aries": "aries-router", "gvnic-200g": "google-vpc", "ena-25g": "aws-vpc", "slingshot-11": "rosetta"}
# Devices without logs: one draw each after the others. The rack has no host memory that its trays share.
STAND_INS = ("dgx-b200", "gb200-nvl4-tray", "hpe-4a100-slingshot", "mi300x-8", "mi325x-8", "mi350x-8", "mi355x-8")
NOT_DRAWN = (*STAND_INS, "gb200-nvl72")


class Catalogue:
    """Hosts by name, with their GPUs, adapters and a switch that fits these."""

    def __init__(self, source: pathlib.Path):
        self.folder = source / "models" / "catalogue"
        self.gpus = {path.stem for path in (self.folder / "gpus").glob("*.yaml")}
        self.hcas = {path.stem for path in (self.folder / "hcas").glob("*.yaml")}
        self.hosts = sorted(path.stem for path in (self.folder / "hosts").glob("*.yaml") if path.stem not in NOT_DRAWN)

    def field(self, kind: str, name: str, pattern: str) -> str:
        match = re.search(pattern, (self.folder / kind / f"{name}.yaml").read_text())
        return match.group(1) if match else ""

    def devices(self, host: str, names: set) -> list:
        """(device, type) in the order of the file."""
        text = (self.folder / "hosts" / f"{host}.yaml").read_text()
        return [pair for pair in re.findall(r"name: (\w+), type: ([\w-]+)", text) if pair[1] in names]

    def switch(self, hca: str, cables: int) -> str:
        if hca in PLUGIN_SWITCHES:
            return PLUGIN_SWITCHES[hca]
        rate = float(self.field("hcas", hca, r"rate: \{value: ([\d.]+) Gb/s"))
        protocol = self.field("hcas", hca, r"protocol: (\w+)")
        fitting = []
        for path in sorted((self.folder / "switches").glob("*.yaml")):
            if path.stem in PLUGIN_SWITCHES.values():
                continue
            its_rate = re.search(r"rate: \{value: ([\d.]+) Gb/s", path.read_text())
            ports = self.field("switches", path.stem, r"ports: (?:\{value: )?(\d+)")
            if its_rate and float(its_rate.group(1)) >= rate and int(ports) >= cables and self.field("switches", path.stem, r"protocol: (\w+)") == protocol:
                fitting.append((float(its_rate.group(1)), path.stem))
        return min(fitting)[1]


class Draw:
    def __init__(self, catalogue: Catalogue, number: int, host: str = ""):
        dice = random.Random(number)
        self.number, self.catalogue = number, catalogue
        self.host = host or dice.choice(catalogue.hosts)
        self.gpus = catalogue.devices(self.host, catalogue.gpus)
        self.hcas = catalogue.devices(self.host, catalogue.hcas)
        self.count = dice.choice([1, 2, 2, 3, 4]) if self.hcas else 1
        self.is_nccl = len(self.gpus) * self.count > 1 and dice.random() < 0.6
        on_gpus = len(self.gpus) > 1 or (self.count > 1 and bool(self.gpus))
        self.buffers = "device" if on_gpus and (self.count == 1 or dice.random() < 0.5) else "host"
        if self.host.startswith("mi3"):  # of AMD only RCCL knows the GPUs
            self.is_nccl, self.buffers = self.is_nccl or self.count == 1, "host"
        one_host = MPI[:3] if self.buffers == "device" else []
        choices = NCCL if self.is_nccl else (MPI if self.count > 1 else one_host)
        self.benchmark = dice.choice(choices) if choices else ""
        self.iterations = 0  # the default

    def __str__(self) -> str:
        return f"draw {self.number}: {self.count} x {self.host}, {self.benchmark}{'' if self.is_nccl else f', {self.buffers} buffers'}"

    def scenario(self, sizes: list, software: str = "", removed: list = ()) -> dict:
        group = {"name": "node", "count": self.count, "type": self.host}
        if removed:
            group["remove"] = list(removed)
        topology = {"schema": "fabricast/topology/1", "name": "law", "hosts": [group]}
        if self.count > 1:
            topology["fabric"] = {"single_switch": {"switch": self.catalogue.switch(self.hcas[0][1], self.count * len(self.hcas))}}
        workload = {"benchmark": self.benchmark, "sizes": [f"{size} B" for size in sizes]}
        if self.iterations:
            workload["iterations"] = self.iterations
        if not self.is_nccl:
            workload["buffers"] = [self.buffers, self.buffers]
        scenario = {"schema": "fabricast/scenario/1", "name": "law", "topology": topology, "workload": workload}
        if software in ("p2p", "pxn"):
            scenario["software"] = {"nccl": {"p2p": False} if software == "p2p" else {"p2p_pxn_level": 0}}
        if software == "gdr":
            scenario["software"] = {"gpudirect_rdma": False}
        return scenario


def run(program: str, scenario: dict) -> list:
    """Rows; a refusal is an empty list, anything else than 0 and 3 a failure."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump(scenario, file)
        file.flush()
        done = subprocess.run([program, "run", file.name, "--format", "json"], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if done.returncode == 3:
        return []
    if done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)["rows"]


def kind(row: dict) -> tuple:
    return row.get("algorithm"), row.get("protocol"), row.get("channels")


def way(row: dict) -> tuple:
    """The kind, and what of the library's rules the table does not show."""
    names = [term["name"] for term in row["terms"]]
    doubled = [name for name in names if row["algorithm"] == "direct" and row["size_bytes"] > LARGEST_PART and name.startswith("start of")]
    is_striped = row["protocol"].startswith("rendezvous") and row["size_bytes"] >= SMALLEST_STRIPED
    return kind(row) + tuple(name for name in WAYS if name in names) + tuple(doubled) + (is_striped,)


def is_peer_limited(row: dict) -> bool:
    return any(PEER_LIMIT.search(term["parameter"]) for term in row["terms"])


def own_time(row: dict) -> int:
    """Without what grows with the number of channels alone."""
    return row["time_ps"] - sum(term["time_ps"] for term in row["terms"] if SHARED.fullmatch(term["name"]))


def around_thresholds(program: str, draw: Draw, rows: list) -> list:
    """Rows with both sides of every change of algorithm, protocol or channels, to the byte (to the element where sizes are rounded)."""
    known = {row["size_bytes"]: row for row in rows}
    while True:
        asked = set()
        ordered = sorted(known)
        for below, above in zip(ordered, ordered[1:]):
            if above - below > 4 and kind(known[below]) != kind(known[above]):
                asked |= {below + (above - below) * k // 12 for k in range(1, 12)} - set(known)
        if not asked:
            return [known[size] for size in ordered]
        fresh = run(program, draw.scenario(sorted(asked)))
        before = len(known)
        known.update((row["size_bytes"], row) for row in fresh)
        if len(known) == before:
            return [known[size] for size in sorted(known)]


def order_faults(rows: list) -> list:
    return [f"{row['size_bytes']} B: bound {row['physical_bound_ps']}, low {row['low_time_ps']}, time {row['time_ps']}, high {row['high_time_ps']} ps" for row in rows
            if not 0 <= row["physical_bound_ps"] <= row["low_time_ps"] <= row["time_ps"] <= row["high_time_ps"] < 10**18]


def monotony_faults(rows: list) -> list:
    faults, slowest_of = [], {}
    for row in rows:
        slowest = slowest_of.setdefault(way(row), row)
        if row["time_ps"] * SLACK < slowest["time_ps"]:
            faults.append(f"{kind(row)}: {slowest['size_bytes']} B takes {slowest['time_ps'] / 1e6:.2f} us, {row['size_bytes']} B {row['time_ps'] / 1e6:.2f} us")
        if row["time_ps"] > slowest["time_ps"]:
            slowest_of[way(row)] = row
    return faults


def loss_faults(what: str, rows: list, fewer: list, left_out: str = "", benchmark: str = "") -> list:
    faults = []
    for full, less in zip(rows, fewer):
        if left_out and full["protocol"] == left_out:
            continue
        if full["channels"] and kind(full)[:2] != kind(less)[:2]:  # MPI has no channels: there the protocol says what was lost
            continue
        if full["protocol"] == "eager gdr" and full["size_bytes"] >= LATE_EAGER:
            continue
        if is_peer_limited(full) or (full["protocol"] == "rendezvous gdr" and less["protocol"].startswith("staged")):
            continue
        time = (lambda row: row["time_ps"]) if kind(full) == kind(less) else own_time
        slack = BARRIER_SLACK if benchmark in ENTERED_APART and full["protocol"] == "eager" else SLACK
        if time(less) * slack < time(full):
            faults.append(f"{what}: {full['size_bytes']} B {full['time_ps'] / 1e6:.2f} us {kind(full)} becomes {less['time_ps'] / 1e6:.2f} us {kind(less)}")
    return faults


def adapter_faults(program: str, draw: Draw, sizes: list, rows: list) -> list:
    names = [name for name, _ in draw.hcas]
    half = run(program, draw.scenario(sizes, removed=names[(len(names) + 1) // 2:]))
    faults = loss_faults("without the later half of the adapters", rows, half, benchmark=draw.benchmark)
    if not draw.is_nccl:
        return faults
    most = max(row["channels"] for row in rows)
    second = run(program, draw.scenario(sizes, removed=names[1::2]))
    pairs = [(full, less) for full, less in zip(rows, second) if full["channels"] == less["channels"] == most]
    return faults + loss_faults("with every second adapter", [full for full, _ in pairs], [less for _, less in pairs])


def faults_of(program: str, draw: Draw) -> list:
    sizes, size = [], 4
    while size <= LARGEST:
        sizes += [size, size + size // 4 * 3 % size]
        size *= 2
    sizes = sorted(set(sizes))
    rows = run(program, draw.scenario(sizes))
    if not rows:
        return ["refused on defaults"]
    faults = order_faults(rows) + monotony_faults(around_thresholds(program, draw, rows))
    if draw.count > 1 and draw.benchmark in ("broadcast_perf", "reduce_perf"):
        draw.iterations = 1
        rows = run(program, draw.scenario(sizes))
    if draw.is_nccl and draw.gpus:
        without_pxn = run(program, draw.scenario(sizes, "pxn")) if draw.benchmark in ("alltoall_perf", "sendrecv_perf") else rows
        faults += loss_faults("without peer access", without_pxn, run(program, draw.scenario(sizes, "p2p")))
    if draw.count > 1 and (draw.is_nccl or draw.buffers == "device"):
        faults += loss_faults("without GPUDirect RDMA", rows, run(program, draw.scenario(sizes, "gdr")), left_out="ll")
    if draw.count > 1 and len(draw.hcas) > 1:
        faults += adapter_faults(program, draw, sizes, rows)
    return faults


def main() -> int:
    program, source, count = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    first = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    catalogue = Catalogue(source)
    num_faults = 0
    draws = [Draw(catalogue, number) for number in range(first, first + count)]
    draws += [Draw(catalogue, first + count + number, host) for number, host in enumerate(STAND_INS)]
    for draw in draws:
        if not draw.benchmark:
            continue
        try:
            faults = faults_of(program, draw)
        except RuntimeError as fault:
            faults = [str(fault)]
        num_faults += len(faults)
        if faults:
            print(draw)
        for fault in faults[:6]:
            print("  FAILED", fault)
    print(f"{len(draws)} draws, {num_faults} faults")
    return 1 if num_faults else 0


if __name__ == "__main__":
    sys.exit(main())
