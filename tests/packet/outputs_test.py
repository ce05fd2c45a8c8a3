# SPDX-License-Identifier: Apache-2.0
# The files a packet run writes say the same: JSON, CSV, Perfetto trace, HTML. Arguments: program, source folder.
import collections
import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

LIMIT_S = 300  # of one command

PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])


def run(*arguments):
    return subprocess.run([PROGRAM, "run", *map(str, arguments), "--fidelity", "packet", "-q"], capture_output=True, text=True, cwd=SOURCE, timeout=LIMIT_S)


class Outputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.here = pathlib.Path(cls.folder.name)
        done = run("scenarios/traffic-victim-pfc.yaml", "--set", "workload.sizes=[1 MB]", "-o", cls.here / "run.json", "--trace",
                   cls.here / "trace.json", "--fabric-csv", cls.here / "fabric")
        assert done.returncode == 0, done.stderr
        cls.row = json.loads((cls.here / "run.json").read_text())["rows"][0]
        cls.fabric = cls.row["fabric"]
        cls.events = json.loads((cls.here / "trace.json").read_text())["traceEvents"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def table(self, name):
        with open(self.here / f"fabric-{name}.csv", newline="") as file:
            return list(csv.DictReader(file))

    def test_csv_tables_have_the_entries_of_json(self):
        for name, entries in (("flows", self.row["flows"]), ("ports", self.fabric["ports"]), ("pauses", self.fabric["pause_tree"]),
                              ("spans", self.fabric["pause_spans"]), ("queues", self.fabric["queues"]), ("rates", self.fabric["rates"])):
            table = self.table(name)
            self.assertEqual(len(table), len(entries), name)
            self.assertGreater(len(table), 0, name)
            for line, entry in zip(table, entries):
                for key in set(line) & set(entry):
                    if isinstance(entry[key], (int, float)) and not isinstance(entry[key], bool):
                        self.assertEqual(float(line[key]), entry[key], (name, key))

    def test_spans_of_pauses_add_up_to_the_time_each_port_was_paused(self):
        paused = collections.Counter()
        for span in self.fabric["pause_spans"]:
            self.assertLess(span["begin_ps"], span["end_ps"])
            paused[span["port"], span["priority"]] += span["end_ps"] - span["begin_ps"]
        for port in self.fabric["ports"]:
            self.assertEqual(paused[port["port"], port["priority"]], port["paused_ps"], port["port"])
        self.assertEqual(sum(paused.values()), self.fabric["paused_ps"])

    def test_every_pause_tells_its_root_and_the_tree_counts_all_of_them(self):
        received = collections.Counter()
        for edge in self.fabric["pause_tree"]:
            received[edge["paused"]] += edge["count"]
        for port in self.fabric["ports"]:
            self.assertEqual(received[f"{port['port']} (priority {port['priority']})"], port["pauses_received"])

    def test_frames_of_ports_add_up_and_every_pause_takes_one_at_least(self):
        self.assertEqual(sum(port["pause_frames"] for port in self.fabric["ports"]), self.fabric["pause_frames"])
        for port in self.fabric["ports"]:
            self.assertGreaterEqual(port["pause_frames"], port["pauses_sent"], port["port"])
        self.assertGreater(self.fabric["pause_frames"], self.fabric["pauses"])

    def test_flows_name_the_priority_they_used(self):
        self.assertEqual({flow["priority"] for flow in self.row["flows"]}, {3})

    def test_a_trace_has_tracks_for_flows_and_pauses_that_viewers_can_nest(self):
        tracks = collections.defaultdict(list)
        names = {}
        for event in self.events:
            self.assertIn(event["ph"], "MXC")
            self.assertGreater(event["pid"], 0)
            if event["ph"] == "M" and event["name"] == "thread_name":
                names[event["pid"], event["tid"]] = event["args"]["name"]
            if event["ph"] == "X":
                self.assertGreaterEqual(event["dur"], 0)
                tracks[event["pid"], event["tid"]].append((event["ts"], event["dur"], event["cat"]))
            if event["ph"] == "C":
                self.assertTrue(all(isinstance(value, (int, float)) for value in event["args"].values()))
        for track, slices in tracks.items():
            self.assertIn(track, names)
            slices.sort()
            for (start, length, _), (following, _, _) in zip(slices, slices[1:]):
                self.assertLessEqual(start + length, following + 1e-6, names[track])
        kinds = collections.Counter(cat for slices in tracks.values() for _, _, cat in slices)
        self.assertEqual(kinds["flow"], len(self.row["flows"]))
        self.assertEqual(kinds["pause"], len(self.fabric["pause_spans"]))
        self.assertIn("stopped: spine0 -> leaf0 priority 3", names.values())

    def test_the_page_draws_flows_pauses_queues_and_rates_and_fetches_nothing(self):
        page = self.here / "run.html"
        self.assertEqual(run("scenarios/traffic-victim-pfc.yaml", "--set", "workload.sizes=[1 MB]", "-o", page).returncode, 0)
        text = page.read_text()
        for label in ("flows over time", "pauses over time", "Deepest queues.", "Goodput of the fastest flows.", "who paused whom"):
            self.assertIn(label, text)
        self.assertEqual(text.count("<svg"), text.count("</svg>"))
        for fetched in ('src="http', "@import", "url(http", "<link", "fetch(", "XMLHttpRequest"):
            self.assertNotIn(fetched, text)

    def test_drops_and_deadlocks_are_errors_of_the_run(self):
        for name, message in (("headroom-too-small", "packets of lossless classes were dropped"), ("deadlock", "the fabric stopped: deadlock")):
            done = run(f"scenarios/traffic-{name}.yaml", "-o", self.here / "bad.json")
            self.assertEqual(done.returncode, 1)
            self.assertIn(message, done.stderr)
        stuck = json.loads((self.here / "bad.json").read_text())["rows"][0]
        self.assertEqual(stuck["fabric"]["stop"], "deadlock")
        self.assertEqual(len(stuck["fabric"]["wait_cycle"]), 5)
        self.assertIsNone(stuck["flows"][0]["end_ps"])
        self.assertEqual(stuck["fabric"]["victims"], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
