#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages in headless Chromium: no message in the console, nothing fetched, charts with all points, numbers equal to those of
--format json, no wider than a phone. Skipped with a plain word where Chromium is missing. Arguments: program, source folder."""
import json
import pathlib
import subprocess
import sys
import tempfile

import browser

RESULTS = "JSON.parse(document.getElementById('results').textContent)"
PLOTS = "[...document.querySelectorAll('figure.plotted')].map(f => JSON.parse(f.querySelector('script.plot').textContent))"


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
            done = subprocess.run([self.program, *arguments, option, str(path)], cwd=self.source, capture_output=True, text=True, check=False)
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
        for one in expected["inputs"]:
            self.expect(one["sha256"][:16] in self.tab.value("document.body.innerText"), f"run: {one['path']} is not on the page")

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

    def other_pages(self):
        self.open("compare", "compare", "scenarios/what-if-p2p-on.yaml", "scenarios/what-if-p2p-off.yaml")
        self.plots("compare", 2)
        self.open("check", "check", "scenarios/what-if-virtualization.yaml")
        self.open("faults", "sweep", "scenarios/allreduce-dgx-a100-pair.yaml", "--fail", "link|host", "-q")
        self.plots("faults", 1)
        self.open("sensitivity", "sweep", "tests/pages/plan.yaml", "--sensitivity", "--design", "0", "-q")


def main() -> int:
    if browser.program() is None:
        print("skipped: Chromium is missing (apt-get install chromium)")
        return 77
    tab = browser.Browser()
    test = Test(sys.argv[1], pathlib.Path(sys.argv[2]), tab)
    try:
        test.run_page()
        test.training_page()
        test.sweep_page()
        test.other_pages()
    finally:
        tab.close()
    for failure in test.failures:
        print(failure)
    return 1 if test.failures else 0


if __name__ == "__main__":
    sys.exit(main())
