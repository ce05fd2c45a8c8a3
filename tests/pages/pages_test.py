#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages in headless Chromium: no message in the console, nothing fetched, charts with all points, numbers equal to those of
--format json, no wider than a phone. Skipped with a plain word where Chromium is missing. Arguments: program, source folder."""
import hashlib
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

import browser

LIMIT_S = 300  # of one command

RESULTS = "JSON.parse(document.getElementById('results').textContent)"
PLOTS = "[...document.querySelectorAll('figure.plotted')].map(f => JSON.parse(f.querySelector('script.plot').textContent))"


def hashes_in(document) -> list:
    """Every SHA-256 that a document names, however deep."""
    if isinstance(document, list):
        return [one for part in document for one in hashes_in(part)]
    if isinstance(document, dict):
        own = [document["sha256"]] if "sha256" in document else []
        return own + [one for part in document.values() for one in hashes_in(part)]
    return []


class Test:
    def __init__(self, program: str, source: pathlib.Path, tab: browser.Browser):
        self.program, self.source, self.tab = program, source, tab
        self.here = pathlib.Path(tempfile.mkdtemp(prefix="fabricast-pages-"))
        self.failures = []

    def expect(self, claim: bool, what: str):
        if not claim:
            self.failures.append(what)

    def open(self, name: str, *arguments):
        """The page, and the JSON of the same command."""
        texts = {}
        for suffix in ("html", "json"):
            path = self.here / f"{name}.{suffix}"
            option = "--report" if arguments[0] == "calibrate" else "-o"
            done = subprocess.run([self.program, *arguments, option, str(path)], cwd=self.source, capture_output=True, text=True, check=False, timeout=LIMIT_S)
            self.expect(path.exists(), f"{name}.{suffix}: exit {done.returncode}: {done.stderr}")
            texts[suffix] = path.read_text() if path.exists() else "{}"
        for dark, media in ((False, ""), (True, ""), (False, "print")):
            self.tab.resize(1000, 900, dark, media)
            self.tab.open(self.here / f"{name}.html")
            self.expect(not self.tab.complaints(), f"{name} (dark {dark}, {media}): {self.tab.complaints()}")
        self.tab.resize(390, 800)
        self.tab.open(self.here / f"{name}.html")
        self.expect(self.tab.value("document.documentElement.scrollWidth") <= 390, f"{name} is wider than a phone")
        self.tab.resize(1000, 900)
        self.tab.open(self.here / f"{name}.html")
        for word in ("http://", "https://"):
            outside = texts["html"].replace("https://github.com/leeoniya/uPlot", "").replace("http://www.w3.org", "")
            self.expect(word not in outside.split("<script>")[0].replace("fabricast/", ""), f"{name} names {word} outside its script")
        expected = json.loads(texts["json"])
        hashes = hashes_in(expected)
        text = self.tab.value("[...document.querySelectorAll('li')].map(e => e.innerText).join()")
        self.expect(bool(hashes) and all(one in text for one in hashes), f"{name}: {[one for one in hashes if one not in text]} of {len(hashes)} input hashes are not on the page")
        self.expect(self.tab.value(RESULTS) == expected, f"{name}: the JSON in the page is not that of --format json")
        return expected

    def plots(self, name: str, at_least: int):
        plots = self.tab.value(PLOTS)
        counts = self.tab.value("[...document.querySelectorAll('figure.plotted')].map(f => Number(f.dataset.points))")
        drawn = self.tab.value("[...document.querySelectorAll('figure.plotted canvas')].map(c => c.width * c.height)")
        self.expect(len(plots) >= at_least, f"{name}: {len(plots)} live plots")
        self.expect(counts == [sum(len(s["x"]) for s in plot["series"]) for plot in plots] and all(counts), f"{name}: points {counts}")
        self.expect(len(drawn) == len(plots) and all(drawn), f"{name}: canvases {drawn}")
        ink = self.tab.value("""fabricastPlots.map(u => { const c = u.ctx.getImageData(0, 0, u.ctx.canvas.width, u.ctx.canvas.height).data;
            let n = 0; for (let i = 3; i < c.length; i += 4) n += c[i] > 0; return n; })""")
        self.expect(all(pixels > 2000 for pixels in ink), f"{name}: hardly anything is drawn: {ink}")
        below = self.tab.value("fabricastPlots.map(u => (u.ctx.canvas.height - u.bbox.top - u.bbox.height) / devicePixelRatio)")
        self.expect(all(room > 50 for room in below), f"{name}: no room for labels below the plot: {below}")
        return plots

    def run_page(self):
        expected = self.open("run", "run", "scenarios/allreduce-dgx-a100-pair.yaml")
        time, rate = self.plots("run", 2)[:2]
        rows = expected["rows"]
        self.expect([row["time_ps"] * 1e-6 for row in rows] == time["series"][0]["y"] or all(abs(row["time_ps"] * 1e-6 / y - 1) < 1e-12 for row, y in zip(rows, time["series"][0]["y"])), "run: times of the chart")
        self.expect(all(abs(row["low_time_ps"] * 1e-6 / y - 1) < 1e-12 for row, y in zip(rows, time["series"][0]["low"])), "run: band of the chart")
        self.expect(all(abs(row["busbw_bytes_per_s"] * 1e-9 / y - 1) < 1e-9 for row, y in zip(rows, rate["series"][0]["y"])), "run: bandwidth of the chart")
        self.links("run", expected)

    def links(self, name: str, expected):
        """Use of links: the table, and the titles of the drawing, are those of the JSON."""
        links = expected["link_use"]["links"]
        self.expect(links and all(0 < one["utilization_share"] <= 1 for one in links), f"{name}: shares of links")
        rows = self.tab.value("[...document.querySelectorAll('tr[data-link]')].map(r => [Number(r.dataset.link), r.cells[3].textContent, r.cells[4].textContent])")
        for number, share, where in rows:
            one = links[number]
            self.expect(share == f"{100 * one['utilization_share']:.1f} %" and where == f"{one['from']} → {one['to']}", f"{name}: row {where} shows {share}, the JSON has {one}")
        self.expect(rows and rows[0][0] == 0, f"{name}: no table of links")
        picture = urllib.parse.unquote(self.tab.value("document.querySelector('img.drawing').src").split(",", 1)[1])
        known = {}
        for one in links:
            ends = (one["from"].split(".")[-1], one["to"].split(".")[-1])
            known.setdefault(ends, set()).add(f"{100 * one['utilization_share']:.1f}")
        drawn = re.findall(r"in use: ([0-9.]+) % of ([^ ]+) to ([^,]+), ([0-9.]+) % back", picture)
        self.expect(len(drawn) >= 16 and "heat4" in picture, f"{name}: {len(drawn)} links of the drawing say what is in use")
        for ahead, one, other, back in drawn:
            self.expect(ahead in known.get((one, other), {"0.0"}) and back in known.get((other, one), {"0.0"}), f"{name}: the drawing has {ahead} and {back} % between {one} and {other}")

    def training_page(self):
        expected = self.open("training", "run", "scenarios/training-horovod-16p100.yaml")
        scaling = self.plots("training", 1)[0]["series"][1]
        self.expect(scaling["y"] == [row["throughput_per_s"] for row in expected["rows"]], "training: throughput of the chart")
        tracks = self.tab.value("document.querySelectorAll('svg[aria-label=\"timeline of a step\"] rect').length")
        self.expect(tracks > 3, f"training: {tracks} spans on the timeline")
        self.expect(expected["rows"][-1]["gpus"] == 16, "training: rows")

    def sweep_page(self):
        plan = "tests/pages/plan.yaml"
        expected = self.open("sweep", "sweep", plan, "-q")
        series = {one["label"].split(",")[0]: one for one in self.plots("sweep", 1)[0]["series"]}
        designs = {one["id"]: one for one in expected["designs"]}
        front = sorted((designs[i]["metrics"]["cost"]["value"], designs[i]["metrics"]["busbw at 64 MiB"]["value"]) for i in expected["front"])
        shown = sorted(zip(series["Pareto front"]["x"], series["Pareto front"]["y"]))
        self.expect(front == shown and front, f"sweep: front {shown} for {front}")
        text = self.tab.value("document.body.textContent")
        for one in expected["inputs"]:
            self.expect(one["sha256"] in text, f"sweep: the hash of {one['path']} is not on the page")
        infeasible = [one for one in designs.values() if one["status"] == "infeasible"]
        self.expect(infeasible and all(one["reasons"][0] in text for one in infeasible), "sweep: reasons are not on the page")
        cells = self.tab.value("[...document.querySelectorAll('tr[data-design]')].map(r => [Number(r.dataset.design), r.dataset.metric, r.cells[1].textContent])")
        self.expect(len(cells) >= 4, f"sweep: {len(cells)} figures of the best designs")
        for number, metric, shown_text in cells:
            value = designs[number]["metrics"][metric]["value"]
            digits = float(shown_text.split()[0])
            scale = {"GB/s": 1e9, "MB/s": 1e6, "us": 1e-6, "ms": 1e-3, "kW": 1e3, "M": 1e6}.get((shown_text.split() + [""])[1], 1)
            self.expect(abs(digits * scale - value) <= 0.006 * abs(value), f"sweep: {metric} of {number} shows {shown_text}, the JSON has {value}")

    def power_page(self):
        expected = self.open("power", "sweep", "scenarios/plan-power-limit.yaml", "-q")
        front = self.plots("power", 1)[0]["series"][-1]
        rates = [one["metrics"]["tokens_per_second"] for one in expected["designs"] if one["id"] in expected["front"]]
        ends = sorted((one["low"], one["high"]) for one in rates)
        self.expect(ends == sorted(zip(front.get("low", []), front.get("high", []))), f"power: what has a band is not drawn upward with it: {ends}")

    def compare_page(self):
        expected = self.open("compare", "compare", "scenarios/what-if-p2p-on.yaml", "scenarios/what-if-p2p-off.yaml")
        time = self.plots("compare", 2)[0]
        rows = expected["workloads"][0]["rows"]
        for k, series in enumerate(time["series"]):
            self.expect(len(series["y"]) == len(rows) and all(abs(row["time_ps"][k] * 1e-6 / y - 1) < 1e-9 for row, y in zip(rows, series["y"])), f"compare: times of {series['label']}")
        self.expect(len(time["series"]) == 2, "compare: curves")

    def validate_page(self):
        log = "calibration/data/h200-8gpu-nvswitch-passthrough-vm/nccl-tests/h200vm-8gpu-all_reduce-p2poff.txt"
        expected = self.open("validate", "validate", "scenarios/validation/h200vm-8gpu-all_reduce-p2poff.yaml", "--measured", log)
        with open(self.source / log, "rb") as file:
            own = hashlib.sha256(file.read()).hexdigest()
        self.expect(own in hashes_in(expected), "validate: the hash of the measured log is not among the inputs")
        points = expected["logs"][0]["points"]
        circles = self.tab.value("[...document.querySelectorAll('svg circle.measured')].map(c => Number(c.getAttribute('cy')))")
        curve = [float(pair.split(",")[1]) for pair in self.tab.value("document.querySelector('svg polyline.predicted').getAttribute('points')").split()]
        self.expect(len(points) > 10 and len(circles) == len(curve) == len(points), f"validate: {len(points)} points, {len(circles)} circles, {len(curve)} on the curve")
        # Both lie on one logarithmic axis: the first and the last measured time give its scale.
        logs = [math.log10(point["measured_time_ps"]) for point in points]
        slope = (circles[-1] - circles[0]) / (logs[-1] - logs[0])
        for key, drawn in (("measured_time_ps", circles), ("predicted_time_ps", curve)):
            places = [circles[0] + slope * (math.log10(point[key]) - logs[0]) for point in points]
            self.expect(all(abs(place - y) < 0.3 for place, y in zip(places, drawn)), f"validate: {key} of the chart")

    def calibrate_page(self):
        data = self.source / "calibration" / "data" / "h200-8gpu-nvswitch-passthrough-vm" / "nccl-tests"
        (self.here / "fit.yaml").write_text(f"""schema: fabricast/calibration/1
name: small fit of a page
logs:
  - {{file: {data}/h200vm-2gpu-all_reduce-ring-simple.txt, scenario: {self.source}/scenarios/validation/h200vm-2gpu-all_reduce-ring-simple.yaml}}
fit:
  nccl.hop_time.ring.simple.nvlink.hopper: {{start: 3 us, prior: 0.5}}
hold_out: {{every: 4}}
""")
        expected = self.open("calibrate", "calibrate", str(self.here / "fit.yaml"), "--quick", "-q")
        series = self.plots("calibrate", 1)[0]["series"]
        drawn = sorted((x, y) for one in series for x, y in zip(one["x"], one["y"]))
        points = sorted((point["size_bytes"], 100 * point["relative_error"]) for point in expected["points"])
        self.expect(len(points) > 10 and all(x == a and abs(y - b) < 1e-9 for (x, y), (a, b) in zip(drawn, points)) and len(drawn) == len(points), "calibrate: errors of the chart")
        self.expect(len(expected["inputs"]) >= 4, f"calibrate: inputs {expected['inputs']}")

    def check_page(self):
        bad = self.here / "bad.yaml"
        bad.write_text("schema: fabricast/scenario/1\nname: <b>\ntopology: missing.yaml\nworkload: {benchmark: all_reduce_perf, gpsu: 3}\n")
        expected = self.open("check", "check", "scenarios/what-if-virtualization.yaml", str(bad))
        text = self.tab.value("document.body.innerText")
        messages = [found["message"] for one in expected["files"] for found in one["found"]]
        self.expect(messages and all(one in text for one in messages), f"check: {messages}")
        self.expect("cannot be used" in text and expected["files"][0]["is_usable"] and len(expected["files"][0]["inputs"]) == 2, "check: verdicts")

    def fault_page(self):
        expected = self.open("faults", "sweep", "scenarios/allreduce-dgx-a100-pair.yaml", "--fail", "link|host", "-q")
        curve = self.plots("faults", 1)[0]["series"][0]
        shares = sorted(one["goodput_share"] for one in expected["faults"])
        self.expect([100 * share for share in shares] == curve["y"], "faults: goodput of the chart")

    def sensitivity_page(self):
        expected = self.open("sensitivity", "sweep", "tests/pages/plan.yaml", "--sensitivity", "-q")
        text = self.tab.value("document.body.innerText")
        for figure in expected["figures"]:
            self.expect(all(one["benchmark"] in text for one in figure["measure_next"]), "sensitivity: what to measure")
            self.expect(f"{100 * figure['influences'][0]['variance_share']:.1f} %" in self.tab.value("document.body.textContent"), "sensitivity: shares")
        self.expect("What would change the answer" in text and all(one["why"] in text for one in expected["changes_of_answer"]), "sensitivity: the answer")
        self.expect(len(expected["inputs"]) >= 3, f"sensitivity: the plan is no input: {expected['inputs']}")


def main() -> int:
    if browser.program() is None:
        print("skipped: Chromium is missing (apt-get install chromium)")
        return 77
    tab = browser.Browser()
    test = Test(sys.argv[1], pathlib.Path(sys.argv[2]), tab)
    try:
        for part in (test.run_page, test.training_page, test.compare_page, test.validate_page, test.calibrate_page, test.check_page, test.sweep_page, test.power_page,
                     test.fault_page, test.sensitivity_page):
            part()
    finally:
        tab.close()
    for failure in test.failures:
        print(failure)
    if not test.failures:
        shutil.rmtree(test.here)
    return 1 if test.failures else 0


if __name__ == "__main__":
    sys.exit(main())
