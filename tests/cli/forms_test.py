#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What other programs read: nccl-tests' rows and closing lines, CSV and JSON with what they rest on, exit codes of help and
of interrupted runs. Arguments: program, source folder."""
import csv
import io
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

LIMIT_S = 300  # of one command

PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
NCCL = ["scenarios/allreduce-dgx-a100-pair.yaml", "scenarios/allreduce-irregular.yaml"]
CONTEXT = ("scenario", "topology", "num_ranks", "num_hosts", "fidelity", "is_extrapolated")


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, cwd=SOURCE, timeout=LIMIT_S)


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


# The row that scripts around nccl-tests look for: thirteen fields, both halves, N/A or a number of wrong values.
ROW = re.compile(r"^\s*(\d+)\s+(\d+)\s+(\w+)\s+(\w+)\s+(-?\d+)" + r"\s+([\d.e+]+)\s+([\d.e+]+)\s+([\d.e+]+)\s+(\d+|N/A)" * 2 + r"\b")


class ListedAlgorithms(unittest.TestCase):
    def test_a_scenario_takes_every_one_that_is_listed(self):
        rows = re.findall(r"^(\w+) +((?:\w+, )*\w+) ", run("list", "algorithms").stdout, re.M)
        listed = {name: names.split(", ") for name, names in rows}
        self.assertGreaterEqual(len(listed["osu_bcast"]), 9)
        for benchmark, algorithms in listed.items():
            for algorithm in algorithms if benchmark.startswith("osu_") else ():
                text = run("run", "scenarios/osu-latency-fdr-gpudirect.yaml", "-q", "--set", f"workload.benchmark={benchmark}", "--set", f"workload.algorithm={algorithm}", "--set", "workload.sizes=[4 KiB]")
                self.assertEqual(text.returncode, 0, f"{benchmark} {algorithm}: {text.stderr}")
                self.assertTrue(algorithm == "auto" or "(forced)" in text.stdout, text.stdout)


class Tuner(unittest.TestCase):
    def test_the_tuner_s_lines_are_of_the_forecast_s_ranks_and_of_channels_that_the_communicator_opens(self):
        """NCCL clamps a plugin's channels to those of the communicator; a VM is a node of its own with all its GPUs."""
        guests = "[{name: a, devices: {gpu0: passthrough, gpu1: passthrough, hca0: passthrough}}, {name: b, devices: {gpu4: passthrough, hca4: passthrough}}]"
        for scenario, *sets in (
            ("allreduce-hgx-h100-64", "workload.sizes=[16 MiB, 64 MiB]"),
            ("allreduce-hgx-b300-32", "workload.sizes=[1 GiB]", "workload.gpus=16"),
            ("allreduce-dgx-a100-16", "workload.sizes=[128 KiB]", "workload.ranks_per_host=4", "workload.gpus=20"),
            ("allreduce-dgx-a100-16", "workload.sizes=[64 MiB]", f"topology.hosts.0.vms={guests}", "workload.gpus=5", "workload.devices=[dgx0/a, dgx1/a, dgx2/b]"),
        ):
            asked = [f"scenarios/{scenario}.yaml", *(word for one in sets for word in ("--set", one))]
            exact = json.loads(run("run", *asked, "--format", "json").stdout)
            counts = f"{exact['num_ranks']} ranks on {exact['num_hosts']} hosts"
            done = run("export", "nccl-tuner", *asked)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(counts, done.stdout.splitlines()[0])
            for line in done.stdout.splitlines():
                if line.startswith("#"):
                    continue
                _, _, _, algorithm, protocol, channels, nodes, ranks, *_ = line.split(",")
                self.assertEqual(f"{ranks} ranks on {nodes} hosts", counts)
                forced = ["--set", f"workload.algorithm={algorithm.removesuffix('_tree')}", "--set", f"workload.protocol={protocol}", "--set", "workload.sizes=[1 GiB]"]
                open_channels = json.loads(run("run", *asked, *forced, "--format", "json").stdout)["rows"][0]["channels"]
                self.assertLessEqual(int(channels), open_channels, line)

    def test_a_scenario_that_cannot_be_forecast_says_why(self):
        done = run("export", "nccl-tuner", "scenarios/allreduce-hgx-h100-64.yaml", "--set", "workload.gpus=999")
        self.assertEqual(done.returncode, 3)
        self.assertIn("999 GPUs asked for", done.stderr)


class NcclTests(unittest.TestCase):
    def test_rows_and_closing_lines_are_those_of_nccl_tests(self):
        for scenario in NCCL:
            text = run("run", scenario).stdout
            rows = [m.groups() for m in map(ROW.match, text.splitlines()) if m]
            exact = json.loads(run("run", scenario, "--format", "json").stdout)["rows"]
            self.assertEqual([int(r[0]) for r in rows], [r["size_bytes"] for r in exact])
            for row, truth in zip(rows, exact):
                self.assertEqual(row[5:9], row[9:13], "a forecast knows one time for both halves")
                self.assertAlmostEqual(float(row[5]) / (truth["time_ps"] * 1e-6), 1, delta=0.005)
                self.assertAlmostEqual(float(row[7]), truth["busbw_bytes_per_s"] * 1e-9, delta=0.0051)
                self.assertEqual(row[8], "N/A", "no data is checked")
            self.assertEqual(re.findall(r"^# Out of bounds values : (\d+) (\w+)$", text, re.M), [("0", "OK")])
            mean = re.findall(r"^# Avg bus bandwidth    : ([0-9.e+-]+) $", text, re.M)
            self.assertEqual(len(mean), 1)
            truth = sum(r["busbw_bytes_per_s"] for r in exact) * 1e-9 / len(exact)
            self.assertAlmostEqual(float(mean[0]) / truth, 1, delta=1e-5)
            lines = text.splitlines()
            last = max(i for i, line in enumerate(lines) if ROW.match(line))
            self.assertTrue(lines[last + 1].startswith("# Out of bounds"))

    def test_other_benchmarks_have_no_such_lines(self):
        for scenario in ("scenarios/osu-bw-fdr-gpudirect.yaml", "scenarios/gpu-sharing-mig.yaml"):
            self.assertNotIn("Avg bus", run("run", scenario).stdout)

    def test_a_text_forecast_is_a_log_that_validates_against_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            for scenario in NCCL:
                log = pathlib.Path(folder) / "forecast.log"
                self.assertEqual(run("run", scenario, "-o", log).returncode, 0)
                done = run("validate", scenario, "--measured", log, "--format", "json")
                self.assertEqual(done.returncode, 0, done.stderr)
                found = json.loads(done.stdout)
                self.assertGreater(found["num_points"], 3)
                self.assertLess(found["max_abs_error"], 0.01)


class Context(unittest.TestCase):
    def check(self, line, scenario, ranks, hosts, fidelity="fluid"):
        for key in CONTEXT:
            self.assertIn(key, line)
        self.assertEqual((line["num_ranks"], line["num_hosts"], line["fidelity"]), (str(ranks), str(hosts), fidelity))
        self.assertEqual(line["scenario"], scenario)
        self.assertIn(line["is_extrapolated"], ("0", "1"))

    def test_every_csv_line_says_what_it_rests_on(self):
        for line in table(run("run", NCCL[0], "--format", "csv").stdout):
            self.check(line, "allreduce-dgx-a100-pair", 16, 2)
            self.assertEqual((line["topology"], line["is_finished"]), ("dgx-a100-pair", "1"))
        for line in table(run("run", "scenarios/gpu-sharing-mig.yaml", "--format", "csv").stdout):
            self.assertTrue(set(CONTEXT) <= set(line))
        for line in table(run("run", "scenarios/osu-bw-fdr-gpudirect.yaml", "--set", "workload.sizes=[64 B]", "--fidelity", "packet", "--format", "csv").stdout):
            self.check(line, "osu-bw-fdr-gpudirect", 2, 2, "packet")

    def test_documents_of_json_say_it_once_and_rows_what_is_theirs(self):
        found = json.loads(run("run", NCCL[0], "--format", "json").stdout)
        self.assertEqual((found["num_ranks"], found["num_hosts"], found["fidelity"], found["is_interrupted"]), (16, 2, "fluid", False))
        for row in found["rows"]:
            self.assertIs(row["is_extrapolated"], False)
            self.assertIs(row["is_finished"], True)

    def test_a_comparison_says_it_for_each_side(self):
        names = ["scenarios/what-if-p2p-on.yaml", "scenarios/what-if-p2p-off.yaml"]
        found = json.loads(run("compare", *names, "--format", "json").stdout)
        self.assertEqual([s["scenario"] for s in found["scenarios"]], ["what-if-p2p-on", "what-if-p2p-off"])
        self.assertEqual((found["workloads"][0]["num_ranks"], found["workloads"][0]["num_hosts"]), ([4, 4], [1, 1]))
        self.assertEqual(len(found["workloads"][0]["rows"][0]["is_extrapolated"]), 2)
        lines = table(run("compare", *names, "--format", "csv").stdout)
        self.assertEqual({line["scenario"] for line in lines}, set(names))
        for line in lines:
            self.check(line, line["scenario"], 4, 1)
        clients = table(run("compare", "scenarios/gpu-sharing-best-effort.yaml", "scenarios/gpu-sharing-fixed-share.yaml", "--format", "csv").stdout)
        self.assertTrue(all(line["label"] for line in clients))

    def test_a_validation_says_it_too(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "forecast.log"
            run("run", NCCL[0], "-o", log)
            found = json.loads(run("validate", NCCL[0], "--measured", log, "--format", "json").stdout)
            self.assertEqual((found["num_ranks"], found["num_hosts"], found["fidelity"], found["scenario"]), (16, 2, "fluid", "allreduce-dgx-a100-pair"))
            self.assertIs(found["logs"][0]["points"][0]["is_extrapolated"], False)
            for line in table(run("validate", NCCL[0], "--measured", log, "--format", "csv").stdout):
                self.check({**line, "topology": ""}, "allreduce-dgx-a100-pair", 16, 2)


class Words(unittest.TestCase):
    def test_help_of_what_does_not_exist_is_a_wrong_command_line(self):
        for arguments in (["help", "nonsense"], ["nonsense"], ["nonsense", "--help"], ["help", "help"], ["runn"], ["run"], ["run", "a", "b"], ["schema", "x"], ["list", "x"]):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertTrue(done.stderr.startswith("fabricast: "), done.stderr)
        self.assertIn("did you mean 'run'", run("help", "runn").stderr)
        self.assertIn("commands: run, compare", run("help", "nonsense").stderr)

    def test_help_of_every_command_works_from_both_sides_and_has_examples(self):
        top = run("--help").stdout
        self.assertEqual(run("help").stdout, top)
        self.assertEqual(run().stdout, top)
        commands = re.findall(r"^  (\w+) {2,}", top[top.index("Subcommands"):top.index("Examples")], re.M)
        self.assertEqual(len(commands), 17)
        for command in commands:
            done = run("help", command)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(done.stdout, run(command, "--help").stdout)
            self.assertGreaterEqual(len(re.findall(rf"^  fabricast {command} ", done.stdout, re.M)), 2, command)


class Interrupted(unittest.TestCase):
    LONG = ["scenarios/allreduce-dgx-a100-16.yaml", "--set", "workload.sizes=[8 B, 4 GiB]", "--set", "workload.protocol=simple", "--set", "workload.algorithm=ring"]

    def interrupt(self, *arguments):
        child = subprocess.Popen([PROGRAM, *map(str, arguments), "--fidelity", "packet", "-q"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=SOURCE)
        time.sleep(2)
        self.assertIsNone(child.poll(), "the run ended before the interrupt")
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 130)
        return out

    def test_text_has_no_row_and_no_closing_lines(self):
        out = self.interrupt("run", *self.LONG)
        self.assertNotIn(4 << 30, [int(m.group(1)) for m in map(ROW.match, out.splitlines()) if m])
        self.assertIn("# interrupted", out)
        self.assertNotIn("Avg bus bandwidth", out)

    def test_json_and_csv_have_no_numbers_for_it(self):
        found = json.loads(self.interrupt("run", *self.LONG, "--format", "json"))
        self.assertIs(found["is_interrupted"], True)
        open_rows = [row for row in found["rows"] if not row["is_finished"]]
        for row in open_rows:
            self.assertEqual([row[k] for k in ("time_ps", "low_time_ps", "high_time_ps", "busbw_bytes_per_s")], [None] * 4)
            self.assertEqual(row["fabric"]["stop"], "interrupted")
        for line in table(self.interrupt("run", *self.LONG, "--format", "csv")):
            self.assertEqual(line["time_ps"] == "", line["is_finished"] == "0")

    def test_a_comparison_or_validation_prints_nothing(self):
        self.assertEqual(self.interrupt("compare", self.LONG[0], *self.LONG), "")
        with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
            log.write(run("run", self.LONG[0], "--set", "workload.sizes=[4 GiB]").stdout)
            log.flush()
            self.assertEqual(self.interrupt("validate", *self.LONG, "--measured", log.name), "")

    def test_a_page_draws_only_what_finished(self):
        page = self.interrupt("run", *self.LONG, "--format", "html")
        self.assertIn("Interrupted", page)
        self.assertNotIn("4 GiB:", page)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
