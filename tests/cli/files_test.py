#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that commands write: the form is the suffix's or the command is refused; an input is never overwritten; a kill or
a full disk leaves the old file whole. Works as root and as a plain user. Arguments: program, source folder."""
import ctypes
import json
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

LIMIT_S = 300  # of one command

PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
SCENARIO = "scenarios/osu-bw-fdr-gpudirect.yaml"
TOPOLOGY = "topologies/fdr-kepler-pair.yaml"
LOG = "tests/golden/inputs/osu.log"
OLD = "what was there before\n"


def run(*arguments, **more):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, cwd=SOURCE, **more, timeout=LIMIT_S)


def limit_of(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.here = pathlib.Path(self.folder.name)
        self.log = self.here / "osu.log"
        rows = json.loads(run("run", SCENARIO, "--format", "json").stdout)["rows"]
        self.log.write_text("# OSU MPI-CUDA Bandwidth Test\n# Size        Bandwidth (MB/s)\n" +
                            "".join(f"{r['size_bytes']} {r['algbw_bytes_per_s'] / 1e6:.2f}\n" for r in rows))
        self.calibration = self.here / "calibration.yaml"
        latency = "scenarios/osu-latency-fdr-gpudirect.yaml"
        rows = json.loads(run("run", latency, "--format", "json").stdout)["rows"]
        (self.here / "latency.log").write_text("# OSU MPI-CUDA Latency Test\n# Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)\n"
                                               "# Size          Latency (us)\n" + "".join(f"{r['size_bytes']} {r['time_ps'] * 1.1e-6:.2f}\n" for r in rows))
        self.calibration.write_text(f"schema: fabricast/calibration/1\nname: c\nlogs:\n  - {{file: latency.log, scenario: {SOURCE / latency}}}\n"
                                    "fit:\n  mpi.open-mpi-openib.device_overhead: {}\n")

    def commands(self):
        """Every command with -o, and the suffixes it writes with what such a file begins with."""
        return [
            (["run", SCENARIO], {"txt": "# fabricast", "log": "# fabricast", "json": "{", "csv": "workload,", "html": "<!doctype", "HTML": "<!doctype"}),
            (["compare", SCENARIO, SCENARIO], {"txt": "# A: ", "json": "{", "csv": "workload,", "html": "<!doctype", "htm": "<!doctype"}),
            (["validate", SCENARIO, "--measured", self.log], {"txt": "# validation", "json": "{", "csv": "file,", "svg": "<svg", "html": "<!doctype"}),
            (["show", TOPOLOGY], {"txt": "topology ", "dot": "graph ", "svg": "<svg"}),
            (["calibrate", "--suggest", TOPOLOGY, self.log], {"yaml": "schema: ", "yml": "schema: "}),
        ]

    def test_a_file_has_the_form_of_its_suffix_or_is_not_written(self):
        for command, forms in self.commands():
            for suffix in ("txt", "log", "json", "csv", "html", "htm", "HTML", "svg", "dot", "yaml", "yml", "xlsx", "pdf", "png", "xml", "md", "jsn"):
                out = self.here / f"out.{suffix}"
                done = run(*command, "-o", out)
                with self.subTest(command=command[0], suffix=suffix):
                    if suffix in forms:
                        self.assertEqual(done.returncode, 0, done.stderr)
                        self.assertTrue(out.read_text().startswith(forms[suffix]), out.read_text()[:80])
                    elif suffix not in ("log", "htm", "HTML", "yml"):  # other names of a form
                        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                        self.assertIn(f".{suffix}", done.stderr)
                        self.assertFalse(out.exists())
                out.unlink(missing_ok=True)

    def test_a_form_that_is_asked_for_wins_over_the_suffix(self):
        out = self.here / "out.xlsx"
        self.assertEqual(run("run", SCENARIO, "--format", "csv", "-o", out).returncode, 0)
        self.assertTrue(out.read_text().startswith("workload,"))
        self.assertEqual(run("run", SCENARIO, "-o", self.here / "no-suffix").returncode, 0)
        self.assertEqual(run("run", SCENARIO, "-o", self.here / ".hidden").returncode, 0)
        self.assertEqual(run("run", SCENARIO, "-o", "").returncode, 2)

    def test_wrong_suffixes_of_other_files_are_refused_before_anything_runs(self):
        for arguments in (["run", SCENARIO, "--trace", self.here / "t.svg"], ["calibrate", self.calibration, "--report", self.here / "r.svg"],
                          ["calibrate", self.calibration, "-o", self.here / "p.json"]):
            self.assertEqual(run(*arguments).returncode, 2, arguments)
        self.assertEqual(sorted(p.name for p in self.here.iterdir()), ["calibration.yaml", "latency.log", "osu.log"])

    def copy_inputs(self):
        """A scenario whose every input lies in the folder: scenario, topology, device file, parameter files."""
        (self.here / "gpu.yaml").write_text("schema: fabricast/device/1\nname: my-gpu\nkind: gpu\ndescription: a copy\n")
        topology = (SOURCE / TOPOLOGY).read_text()
        (self.here / "topology.yaml").write_text(topology)
        (self.here / "p1.yaml").write_text("schema: fabricast/parameters/1\nparameters:\n  mpi.open-mpi-openib.overhead: {value: 0.09 us, source: test}\n")
        (self.here / "p2.yaml").write_text((self.here / "p1.yaml").read_text())
        (self.here / "s.yaml").write_text("schema: fabricast/scenario/1\nname: s\ntopology: topology.yaml\nparameters: [p1.yaml]\n"
                                          "software: {mpi: open-mpi-openib, gpudirect_rdma: on}\nworkload: {benchmark: osu_bw, buffers: [device, device], sizes: [64 B]}\n")

    def test_no_input_is_overwritten_by_whatever_name(self):
        self.copy_inputs()
        here = self.here
        (here / "c.yaml").write_text("schema: fabricast/calibration/1\nname: c\nlogs:\n  - {file: osu.log, scenario: s.yaml}\nfit:\n  mpi.open-mpi-openib.overhead: {}\n")
        simulated = ["s.yaml", "topology.yaml", "p1.yaml", "p2.yaml"]
        cases = [(["run", here / "s.yaml", "--parameters", here / "p2.yaml"], ("-o", "--trace"), simulated),
                 (["compare", SCENARIO, here / "s.yaml", "--parameters", here / "p2.yaml"], ("-o",), simulated),
                 (["validate", here / "s.yaml", "--measured", here / "osu.log", "--parameters", here / "p2.yaml"], ("-o",), [*simulated, "osu.log"]),
                 (["show", here / "topology.yaml"], ("-o",), ["topology.yaml"]),
                 (["calibrate", here / "c.yaml", "--quick"], ("-o", "--report"), ["c.yaml", "s.yaml", "topology.yaml", "p1.yaml", "osu.log"]),
                 (["calibrate", "--suggest", here / "topology.yaml", here / "osu.log"], ("-o",), ["topology.yaml", "osu.log"])]
        before = {p.name: p.read_bytes() for p in here.iterdir()}
        for command, options, inputs in cases:
            for option in options:
                for name in inputs:
                    links = self.names_of(name)
                    for path in links:
                        # Whatever the suffix: the form is asked for where the command can be asked.
                        form = [] if command[0] == "calibrate" and option == "-o" else ["--format", "text"]
                        done = run(*command, option, path, *form)
                        with self.subTest(command=command[0], option=option, path=path):
                            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                            self.assertEqual((here / name).read_bytes(), before[name])
                    for path in links[2:]:
                        path.unlink()
        done = run("run", here / "s.yaml", "--fabric-csv", here / "x", "-o", here / "x-flows.csv")
        self.assertEqual(done.returncode, 2, done.stderr)
        done = run("run", here / "s.yaml", "--trace", here / "same.json", "-o", self.here / "." / "same.json")
        self.assertEqual(done.returncode, 2, done.stderr)

    def names_of(self, name):
        """The file itself, by a detour, by a symbolic link, by a link to a link, by a hard link; one with a good suffix."""
        links = [self.here / name, pathlib.Path(os.path.relpath(self.here, SOURCE)) / name]
        for i, suffix in enumerate((".json", ".yaml", "")):
            links.append(self.here / f"link{i}{suffix}")
        links[2].symlink_to(name)
        links[3].symlink_to(links[2].name)
        os.link(self.here / name, links[4])
        return links

    def test_the_same_output_twice_is_fine_where_nothing_is_lost(self):
        self.assertEqual(run("run", SCENARIO, "-o", "/dev/null", "--trace", "/dev/null").returncode, 0)

    def target(self):
        out = self.here / "good.json"
        out.write_text(OLD)
        return out

    def leftovers(self):
        return [p.name for p in self.here.iterdir() if p.name.startswith(".fabricast-")]

    def test_a_kill_at_any_moment_leaves_the_old_file_or_the_new_one(self):
        command = [PROGRAM, "run", "scenarios/allreduce-dgx-a100-16.yaml", "--format", "json", "-q", "-o"]
        out = self.target()
        start = time.monotonic()
        self.assertEqual(subprocess.run([*command, out], cwd=SOURCE, timeout=LIMIT_S).returncode, 0)
        length = time.monotonic() - start
        new = out.read_text()
        self.assertGreater(len(new), 30_000)
        rng = random.Random(1)
        seen = {OLD: 0, new: 0}
        for kill in range(24):
            out.write_text(OLD)
            child = subprocess.Popen([*command, out], cwd=SOURCE)
            # Half of the kills near the end, where the file is written.
            time.sleep(rng.uniform(0, 1.1 * length) if kill % 2 else rng.uniform(0.8, 1.1) * length)
            child.send_signal((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)[kill % 4])
            child.wait(timeout=LIMIT_S)
            self.assertIn(out.read_text(), seen, "neither the old text nor the new one")
            seen[out.read_text()] += 1
        self.assertGreater(seen[OLD], 0)

    def test_signals_that_can_be_caught_leave_no_temporary_file(self):
        out = self.target()
        fifo = self.here / "fifo.json"
        os.mkfifo(fifo)
        # The second file blocks on the pipe, so that the signal meets a program that has written the first.
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            child = subprocess.Popen([PROGRAM, "run", SCENARIO, "--format", "json", "-q", "-o", out, "--trace", fifo], cwd=SOURCE)
            while out.read_text() == OLD:
                time.sleep(0.01)
            child.send_signal(number)
            self.assertEqual(child.wait(timeout=LIMIT_S), code)
            self.assertEqual(self.leftovers(), [])
            out.write_text(OLD)

    def test_a_full_disk_leaves_the_old_file_and_says_so(self):
        size = len(run("run", SCENARIO, "--format", "json").stdout)
        for limit in (0, 1, size // 2, size - 1):
            out = self.target()
            done = run("run", SCENARIO, "-o", out, preexec_fn=limit_of(limit))
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("good.json", done.stderr)
            self.assertIn("File too large", done.stderr)
            self.assertEqual(out.read_text(), OLD)
            self.assertEqual(self.leftovers(), [])
        self.assertEqual(run("run", SCENARIO, "-o", out, preexec_fn=limit_of(size)).returncode, 0)

    def test_every_file_of_a_run_is_protected_from_a_full_disk(self):
        for option, name in (("--trace", "trace.json"), ("--fabric-csv", "f-flows.csv")):
            (self.here / name).write_text(OLD)
            path = self.here / (name if option == "--trace" else "f")
            done = run("run", SCENARIO, option, path, preexec_fn=limit_of(10))
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertEqual((self.here / name).read_text(), OLD)
        (self.here / "p.yaml").write_text(OLD)
        done = run("calibrate", self.calibration, "--quick", "-q", "-o", self.here / "p.yaml", preexec_fn=limit_of(10))
        self.assertEqual((done.returncode, (self.here / "p.yaml").read_text()), (3, OLD), done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "only root may mount")
    def test_a_small_file_system_that_is_full(self):
        mount = self.here / "small"
        mount.mkdir()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"none", str(mount).encode(), b"tmpfs", 0, b"size=16k") != 0:
            self.skipTest("no mount here")
        try:
            out = mount / "good.json"
            out.write_text(OLD)
            done = run("run", "scenarios/allreduce-dgx-a100-16.yaml", "-o", out)
            self.assertEqual(done.returncode, 3)
            self.assertIn("No space left on device", done.stderr)
            self.assertEqual([(p.name, p.read_text()) for p in mount.iterdir()], [("good.json", OLD)])
        finally:
            libc.umount2(str(mount).encode(), 2)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_standard_output_to_a_full_disk_is_the_worlds_fault(self):
        for arguments in (["run", SCENARIO], ["run", SCENARIO, "-o", "/dev/full"], ["compare", SCENARIO, SCENARIO], ["show", TOPOLOGY],
                          ["check", TOPOLOGY], ["list", "parameters"], ["list", "algorithms"], ["schema", "topology"], ["--help"], ["run", "--help"], ["--version"],
                          ["validate", SCENARIO, "--measured", self.log]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([PROGRAM, *map(str, arguments)], stdout=full, stderr=subprocess.PIPE, text=True, cwd=SOURCE, timeout=LIMIT_S)
            self.assertEqual(done.returncode, 3, (arguments, done.stderr))
            self.assertIn("No space left on device", done.stderr, arguments)
            self.assertEqual(done.stderr.count("cannot write"), 1, done.stderr)

    def test_a_missed_limit_does_not_hide_that_nothing_was_written(self):
        done = run("validate", SCENARIO, "--measured", self.log, "--max-p90-error", "0", "-o", self.here / "none" / "v.json")
        self.assertEqual(done.returncode, 3)
        self.assertIn("No such file", done.stderr)
        self.assertEqual(run("run", SCENARIO, "--format", "json", "-o", self.here).returncode, 3)

    def test_pipes_devices_and_links_stay_what_they_are(self):
        whole = run("run", SCENARIO, "--format", "json").stdout
        self.assertEqual(run("run", SCENARIO, "--format", "json", "-o", "/dev/stdout").stdout, whole)
        fifo = self.here / "fifo.json"
        os.mkfifo(fifo)
        read = []
        reader = threading.Thread(target=lambda: read.append(fifo.read_text()))
        reader.start()
        self.assertEqual(run("run", SCENARIO, "--format", "json", "-o", fifo).returncode, 0)
        reader.join(30)
        self.assertEqual(read, [whole])
        self.assertTrue(fifo.is_fifo())
        (self.here / "sub").mkdir()
        for target in ("sub/target.json", "sub/new.json"):
            link = self.here / f"link-to-{pathlib.Path(target).name}"
            link.symlink_to(target)
            if "new" not in target:
                (self.here / target).write_text(OLD)
            self.assertEqual(run("run", SCENARIO, "-o", link).returncode, 0)
            self.assertTrue(link.is_symlink())
            self.assertEqual((self.here / target).read_text(), whole)

    def test_the_mode_of_a_file_stays_and_a_new_one_follows_the_umask(self):
        out = self.target()
        out.chmod(0o640)
        self.assertEqual(run("run", SCENARIO, "-o", out).returncode, 0)
        self.assertEqual(out.stat().st_mode & 0o777, 0o640)
        new = self.here / "new.json"
        self.assertEqual(run("run", SCENARIO, "-o", new, preexec_fn=lambda: os.umask(0o027)).returncode, 0)
        self.assertEqual(new.stat().st_mode & 0o777, 0o640)

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_write_protected_file_stays(self):
        out = self.target()
        out.chmod(0o444)
        self.assertEqual(run("run", SCENARIO, "-o", out).returncode, 3)
        self.assertEqual(out.read_text(), OLD)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
