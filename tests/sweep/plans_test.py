#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What sweeps answer: bills by hand, fronts by brute force, short names, constraints, faults of plans, dead cables and slow
GPUs, sensitivity. Arguments: the fabricast program, the source folder."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from base import BASE

LIMIT_S = 300  # of one command

TRAINING = """schema: fabricast/scenario/1
name: training
topology:
  schema: fabricast/topology/1
  name: cluster
  hosts: [{name: node, count: 4, type: server-2s-rome-8a100}]
  fabric: {fat_tree: {switch: qm8700, leaf_ports: 4, cable: 5 m}}
workload: {benchmark: training, network: vgg-16, precision: tf32, batch_per_gpu: 64, parallel: {data: ddp}}
"""
PRICES = """
cost:
  schema: fabricast/cost/1
  name: prices
  years: 2
  power_usage_effectiveness: 1.5
  kilowatt_hour: {price: 0.2, source: tariff}
  prices:
    gpu: {a100-pcie-40: {price: 1000, low: 900, high: 1200, source: offer}}
    host: {server-2s-rome-4a100: {price: 500, per_year: 10, watts: 100, source: offer}}
    switch: {other: {price: 700, watts: 50, source: offer}}
    cable:
      host: {price: 1, per_metre: 2, source: offer}
      switch: {price: 1, per_metre: 2, source: offer}
  licences:
    hypervisor: {when: [virtual], per: socket, per_year: 30, source: offer}
"""


class Test:
    def __init__(self, program: str):
        self.program = program
        self.here = pathlib.Path(tempfile.mkdtemp(prefix="fabricast-plans-"))
        self.failures = []
        (self.here / "base.yaml").write_text(BASE)
        (self.here / "training.yaml").write_text(TRAINING)
        (self.here / "pair.yaml").write_text(TRAINING[:TRAINING.index("workload:")].replace("count: 4", "count: 2") + "workload: {benchmark: osu_latency}\n")

    def expect(self, claim: bool, what: str):
        if not claim:
            self.failures.append(what)

    def sweep(self, name: str, body: str, *arguments, scenario="base.yaml"):
        (self.here / f"{name}.yaml").write_text(f"schema: fabricast/plan/1\nname: {name}\nscenario: {scenario}\n{body}")
        out = self.here / f"{name}.json"
        out.unlink(missing_ok=True)
        done = subprocess.run([self.program, "sweep", f"{name}.yaml", "-q", "-o", out.name, *arguments], cwd=self.here, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        return done, json.loads(out.read_text()) if out.exists() else None

    def bill(self):
        done, found = self.sweep("bill", "vary: {virtualization: [bare-metal, passthrough]}\nobjectives: [{minimise: cost}]" + PRICES)
        self.expect(done.returncode == 0, f"bill: {done.returncode} {done.stderr}")
        metal, machine = found["designs"]
        # 4 hosts, 16 GPUs, 4 cables of 5 m, one switch; 16 x 250 W + 4 x 100 W + 50 W = 4,450 W; x 1.5 x 8,766 h x 0.2 a kWh
        capital = 16 * 1000 + 4 * 500 + 700 + 4 * (1 + 2 * 5)
        running = 2 * (4 * 10 + 4.450 * 1.5 * 8766 * 0.2)
        cost = metal["metrics"]["cost"]
        self.expect(abs(cost["value"] - capital - running) < 0.01, f"bill: {cost['value']} for {capital + running}")
        self.expect(abs(cost["high"] - cost["value"] - 16 * 200) < 0.01 and abs(cost["value"] - cost["low"] - 16 * 100) < 0.01, f"bill: band {cost}")
        self.expect(metal["metrics"]["power"]["value"] == 4450, "bill: power")
        extra = machine["metrics"]["cost"]["value"] - cost["value"]
        self.expect(abs(extra - 4 * 2 * 30 * 2) < 0.01, f"bill: licences {extra}")
        self.expect(any("prices no adapter" in line for line in metal["assumptions"]), "bill: a kind without prices is not noted")
        done, found = self.sweep("unpriced", "vary: {gpu.type: [a100-pcie-40, a40]}\nobjectives: [{minimise: cost}]" + PRICES)
        self.expect(found["designs"][1]["status"] == "invalid" and "no price of gpu 'a40'" in found["designs"][1]["reasons"][0], "bill: a GPU without a price")

    def front(self):
        done, found = self.sweep("front", """vary:
  hosts: [2, 3, 4, 6]
  hca.count: [0, 1]
  virtualization:
    choices:
      metal: {virtualization: bare-metal}
      machine: {virtualization: passthrough}
      moves: {virtualization: {mode: passthrough, needs: [migration]}}
objectives: [{minimise: gpus}, {maximise: busbw at 64 MiB}]
constraints: [{metric: time at 1 MiB, at_most: 1 s}]
""")
        designs = found["designs"]
        self.expect([one["id"] for one in designs] == list(range(24)), "front: a design is missing")
        self.expect(all(one["reasons"] for one in designs if one["status"] != "feasible"), "front: a refused design without a reason")
        self.expect(sum(one["status"] == "infeasible" for one in designs) >= 4, "front: hosts that must migrate are feasible")
        good = {one["id"]: (-one["metrics"]["gpus"]["value"], one["metrics"]["busbw at 64 MiB"]["value"]) for one in designs if one["standing"]["meets_all"]}
        best = {i for i, a in good.items() if not any(all(y >= x for x, y in zip(a, b)) and b != a for b in good.values())}
        kept = set(found["front"]) | {one["id"] for one in designs if one["standing"]["equals"] is not None and one["standing"]["equals"] in found["front"]}
        self.expect(best == kept, f"front: {sorted(kept)} for {sorted(best)}")
        self.expect(done.returncode == 0, f"front: {done.returncode}")

    def laws(self):
        _, found = self.sweep("rates", "vary: {fabric.leaf_spine.rate: [25 Gb/s, 50 Gb/s, 100 Gb/s, 200 Gb/s], hosts: [2, 4]}\nobjectives: [{maximise: busbw at 64 MiB}]\n")
        for hosts in ("2", "4"):
            rates = [one["metrics"]["busbw at 64 MiB"]["value"] for one in found["designs"] if one["values"]["hosts"] == hosts]
            self.expect(rates == sorted(rates), f"laws: a faster link is slower: {rates}")
        _, found = self.sweep("random", "vary: {rate: {path: fabric.leaf_spine.rate, from: 10 Gb/s, to: 200 Gb/s, scale: log}, hosts: [2, 3, 4]}\nsamples: 20\nseed: 3\nobjectives: [{maximise: busbw at 64 MiB}]\n")
        by_hosts = {}
        for one in found["designs"]:
            by_hosts.setdefault(one["values"]["hosts"], []).append((float(one["values"]["rate"].split()[0]), one["metrics"]["busbw at 64 MiB"]["value"]))
        self.expect(len(found["designs"]) == 20 and len(by_hosts) == 3, "laws: random designs")
        for points in by_hosts.values():
            values = [value for _, value in sorted(points)]
            self.expect(values == sorted(values), f"laws: a faster random link is slower: {sorted(points)}")

    def wrong(self):
        cases = {
            "path": ("vary: {topology.hosts.node.cuont: [1, 2]}\nobjectives: [{minimise: time}]\n", 3, "cuont"),
            "figure": ("vary: {hosts: [1, 2]}\nobjectives: [{maximise: bussbw}]\n", 3, "did you mean 'busbw'"),
            "unit": ("vary: {hosts: [2]}\nobjectives: [{maximise: busbw}]\nconstraints: [{metric: busbw, at_least: 5}]\n", 3, "5"),
            "unpriced": ("vary: {hosts: [2]}\nobjectives: [{minimise: cost}]\n", 3, "needs prices"),
            "twice": ("vary: {hosts: [2, 2]}\nobjectives: [{maximise: busbw}]\n", 3, "has '2' twice"),
            "no step": ("vary: {hosts: {from: 2, to: 4}}\nobjectives: [{maximise: busbw}]\n", 3, "has no step"),
            "too many": ("vary: {a: {path: hosts, from: 1, to: 9000, step: 1}, b: {path: workload.gpus, from: 1, to: 9000, step: 1}}\nobjectives: [{maximise: busbw}]\n", 3, "samples: 10000"),
            "unreachable": ("vary: {hosts: [2]}\nobjectives: [{maximise: busbw}]\nconstraints: [{metric: busbw, at_least: 900 GB/s}]\n", 1, "no design meets"),
            "second axis": ("vary:\n  hosts: [2, 3]\n  rate: {choices: {a: {topology.fabric.leaf_spine.rat: 100 Gb/s}}}\nobjectives: [{maximise: busbw}]\n", 3, "unknown key 'rat'"),
            "tokens": ("objectives: [{maximise: tokens_per_second}]\n", 3, "belongs to training steps"),
        }
        for name, (body, code, word) in cases.items():
            done, _ = self.sweep("wrong", body)
            self.expect(done.returncode == code and word in done.stderr, f"wrong, {name}: exit {done.returncode}, {done.stderr!r}")
        _, found = self.sweep("many", "vary: {hca.count: [1, 7]}\nobjectives: [{maximise: busbw}]\n")
        self.expect(found["designs"][1]["status"] == "invalid" and "have 1" in found["designs"][1]["reasons"][0], "wrong: more adapters than places")
        scenario = subprocess.run([self.program, "sweep", "base.yaml"], cwd=self.here, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        self.expect(scenario.returncode == 3 and "a plan is swept" in scenario.stderr, "wrong: a scenario instead of a plan")

    def together(self):
        """Axes that can be read only beside each other make a plan; what `run` refuses is infeasible where only the bill is asked for."""
        done, found = self.sweep("together", """vary:
  server: {choices: {none: {topology.hosts.node.remove: [hca0]}, other: {topology.hosts.node.remove: [], topology.hosts.node.count: 3}}}
  card: {choices: {a: {topology.hosts.node.devices: [{name: hca1, type: connectx-6-hdr, below: hca-slot}]}, b: {hca.type: connectx-6-hdr}}}
objectives: [{maximise: busbw at 64 MiB}]
""")
        self.expect(done.returncode in (0, 1) and found is not None and len(found["designs"]) == 4, f"together: {done.stderr}")
        for objective in ("{minimise: gpus}", "{maximise: busbw at 64 MiB}"):
            _, found = self.sweep("planned", f"vary: {{workload.algorithm: [ring, nvls]}}\nobjectives: [{objective}]\n")
            status = [one["status"] for one in found["designs"]]
            self.expect(status == ["feasible", "infeasible"], f"planned: {objective}: {status}")
        check = subprocess.run([self.program, "check", "base.yaml", "--set", "workload.algorithm=nvls"], cwd=self.here, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        self.expect(check.returncode == 3 and found["designs"][1]["reasons"][0].split(";")[0] in check.stderr, f"planned: check says {check.stderr}")

    def question(self, *arguments):
        done = subprocess.run([self.program, "sweep", *arguments, "--format", "json", "-q", "--jobs", "2"], cwd=self.here, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        self.expect(done.returncode == 0, f"{arguments}: exit {done.returncode} {done.stderr}")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def dead(self):
        links = self.question("base.yaml", "--fail", "link")
        self.expect(len(links["faults"]) == 4 and all(one["lost_hosts"] == 1 for one in links["faults"]), "dead: the only cable of a host")
        fabric = self.question("training.yaml", "--fail", "link|leaf")
        # 8 HCAs below leaves of 2 + 2 ports: 8 cables to hosts and 8 to spines, 4 leaves
        names = [one["name"] for one in fabric["faults"]]
        self.expect(sum(name.startswith("cable") for name in names) == 16 and sum(name.startswith("leaf") for name in names) == 4, f"dead: {names}")
        self.expect(all(0 < one["goodput_share"] <= 1 + 1e-9 for one in fabric["faults"]), "dead: goodput outside 0 to 1")
        # Where every HCA has one cable, losing either is the same; alike faults are counted by simulation, never by sample.
        both = self.question("training.yaml", "--fail", "link|hca")["faults"]
        cables = {one["name"].split()[1]: one["goodput_share"] for one in both if one["name"].startswith("cable") and ".hca" in one["name"]}
        adapters = {one["name"].split()[1]: one["goodput_share"] for one in both if one["name"].startswith("adapter")}
        self.expect(len(cables) == 8 and cables == adapters, f"dead: cables {cables}, adapters {adapters}")
        worst = min(one["goodput_share"] for one in fabric["faults"])
        self.expect(fabric["worst_share"] == worst, "dead: the worst fault")
        slow = [self.question("training.yaml", "--fail", f"slow-gpu:{percent}%")["worst_share"] for percent in (1, 10, 30)]
        self.expect(1 > slow[0] > slow[1] > slow[2] and slow[1] >= 0.9 - 1e-6 and slow[2] >= 0.7 - 1e-6, f"dead: slow GPUs {slow}")
        host = self.question("training.yaml", "--fail", "host")
        self.expect(0.7 < host["worst_share"] < 0.8 and host["spare_hosts"] == 1, f"dead: one of four hosts {host['worst_share']}")
        twice = [self.question("training.yaml", "--fail", "link|host", "--simultaneous", "2", "--samples", "12", "--seed", "5") for _ in range(2)]
        self.expect(twice[0] == twice[1] and len(twice[0]["faults"]) == 12, "dead: draws of simultaneous faults")
        both = self.question("training.yaml", "--fail", "host", "--simultaneous", "2", "--samples", "8")
        self.expect(all(one["lost_hosts"] == 2 and 0.45 < one["goodput_share"] < 0.55 for one in both["faults"]), f"dead: two of four equal hosts {both['faults']}")
        # Hosts beside the job cost nothing and take lost ones' place.
        idle = self.question("training.yaml", "--fail", "host|hca|slow-gpu:30%", "--set", "topology.hosts.node.count=5", "--set", "workload.gpus=32")
        for one in idle["faults"]:
            is_slow = one["name"].startswith("a GPU")
            self.expect((one["goodput_share"] < 0.8) == is_slow and one["goodput_share"] < 1 + 1e-9, f"dead: beside an idle host {one}")
        self.expect(sorted(one["count"] for one in idle["faults"] if one["count"] > 1) == [4, 8, 32], "dead: what is idle is counted apart")
        pair = self.question("pair.yaml", "--fail", "host")
        self.expect([one["goodput_share"] for one in pair["faults"]] == [0], f"dead: a test between two ends goes on with one {pair}")
        bad = subprocess.run([self.program, "sweep", "base.yaml", "--fail", "lnik"], cwd=self.here, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        self.expect(bad.returncode == 2 and "unknown fault 'lnik'" in bad.stderr, "dead: a misspelt fault")

    def prices(self):
        """Every price with an interval moves the sums that it is part of, electricity and capital each their own; shares add up to 1."""
        body = "vary: {hosts: [4]}\nobjectives: [{minimise: cost}]\nconstraints: [{metric: capital_cost, at_least: 1}, {metric: running_cost, at_least: 1}]"
        prices = PRICES.replace("kilowatt_hour: {price: 0.2", "kilowatt_hour: {price: 0.2, low: 0.1, high: 0.4")
        self.expect(prices != PRICES, "prices: no price of electricity to vary")
        self.sweep("prices", body + prices)
        found = self.question("prices.yaml", "--sensitivity")
        figures = {one["metric"]: one for one in found["figures"]}
        said = {name: sorted(i["what"].split()[0] for i in one["influences"]) for name, one in figures.items()}
        self.expect(said == {"cost": ["gpu", "kWh"], "capital_cost": ["gpu"], "running_cost": ["kWh"]}, f"prices: {said}")
        for name, one in figures.items():
            self.expect(abs(sum(i["variance_share"] for i in one["influences"]) - 1) < 0.02, f"prices: shares of {name}")
            if len(one["influences"]) == 1:
                ends = one["influences"][0]
                self.expect(abs(ends["figure_at_low"] - one["low"]) < 1 and abs(ends["figure_at_high"] - one["high"]) < 1, f"prices: ends of {name}")

    def moves(self):
        found = self.question("training.yaml", "--sensitivity")
        figure = found["figures"][0]
        shares = [one["variance_share"] for one in figure["influences"]]
        self.expect(shares == sorted(shares, reverse=True) and abs(sum(shares) - 1) < 1e-6, f"moves: shares {shares[:5]}")
        self.expect(found["is_best"] and found["contenders"] == 0 and not found["changes_of_answer"], "moves: one design has no rival")
        self.expect(not any(one["what"].endswith(("compute_capability", ".ports", ".pcie_width")) for one in figure["influences"]), "moves: a fact of a device is varied")
        self.expect(figure["measure_next"] and abs(sum(one["variance_share"] for one in figure["measure_next"]) - 1) < 1e-6, "moves: what to measure")
        for one in figure["influences"]:
            if one["kind"] == "parameter" and one["what"].endswith("memory_bandwidth"):
                self.expect(one["figure_at_high"] >= one["figure_at_low"], f"moves: {one['what']}")

    def answer(self):
        """Three sizes of cluster for a target that the cheapest just reaches: the next one is the answer where it fails."""
        vary = "vary: {hosts: [2, 3, 4]}\nobjectives: [{minimise: cost}, {maximise: images_per_second}]\nconstraints: [{metric: images_per_second, at_least: %s}]\n" + PRICES.replace("a100-pcie-40", "other").replace("server-2s-rome-4a100", "other")
        _, found = self.sweep("reach", vary % "1", scenario="training.yaml")
        speeds = [one["metrics"]["images_per_second"] for one in found["designs"]]
        for share, is_certain in ((1.001, False), (0.3, True)):
            target = speeds[0]["value"] / share if share > 1 else speeds[0]["low"] * share
            _, plain = self.sweep("reach", vary % f"{target:.1f}", scenario="training.yaml")
            self.expect(plain["front"][0] == 0, f"answer: {plain['front']}")
            done, found = self.sweep("reach", vary % f"{target:.1f}", "--sensitivity", scenario="training.yaml")
            self.expect(found is not None and found["design"] == 0 and found["is_best"] and found["contenders"] == 2, f"answer: {done.stderr}")
            speed = next(one for one in found["figures"] if one["metric"] == "images_per_second")
            self.expect((speed["probability"] > 0.99) == is_certain, f"answer: probability {speed['probability']}")
            changes = found["changes_of_answer"]
            if is_certain:
                self.expect(all(one["kind"] == "price" for one in changes), f"answer: certain, and yet {changes}")
                continue
            self.expect(changes and all(one["best_design"] in (1, 2, None) and "misses" in one["why"] for one in changes), f"answer: {changes}")
            crossing = {(one["what"], "low" if one["figure_at_low"] < target else "high") for one in speed["influences"] if one["crosses_limit"]}
            self.expect(crossing <= {(one["what"], one["end"]) for one in changes}, f"answer: {crossing} cross, {changes}")
            worths = [(one["can_change_answer"], one["variance_share"]) for one in speed["measure_next"]]
            self.expect(worths == sorted(worths, reverse=True) and worths[0][0], f"answer: order of worth {worths}")
        _, found = self.sweep("reach", vary % "1", "--sensitivity", "--design", "2", scenario="training.yaml")
        self.expect(found["design"] == 2 and not found["is_best"] and not found["changes_of_answer"], "answer: of another design than the best")

    def kinds(self):
        """Reasons that differ in numbers only are one kind, and every refused design is counted."""
        _, found = self.sweep("kinds", "vary: {hca.count: [1, 7, 8, 9], hosts: [2, 3]}\nobjectives: [{maximise: busbw}]\n")
        refused = [one for one in found["designs"] if one["status"] != "feasible"]
        self.expect(len(found["designs"]) == 8 and len(refused) == 6, "kinds: a refused design is missing")
        self.expect([one["count"] for one in found["refused"]] == [6] and "'N'" in found["refused"][0]["kind"], f"kinds: {found['refused']}")
        self.expect(found["refused"][0]["example"] == refused[0]["reasons"][0], "kinds: the example")


def main() -> int:
    test = Test(sys.argv[1])
    for part in (test.bill, test.front, test.laws, test.wrong, test.together, test.dead, test.moves, test.prices, test.answer, test.kinds):
        part()
    for failure in test.failures:
        print(failure)
    if not test.failures:
        shutil.rmtree(test.here)
    return 1 if test.failures else 0


if __name__ == "__main__":
    sys.exit(main())
