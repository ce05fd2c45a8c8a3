#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What script/blind-table rests on, without any published log: every log has one system, leaving a system out leaves nothing of it in
a fit or a start, every value it taught is refitted, replaced or counted, and tables cut from logs hold their rows. Argument: source folder."""
import math
import pathlib
import re
import sys
import tempfile
import unittest
import unittest.mock

import blind_logs
import compare
import leave_out
import logs
import scatter
import systems
import worth

SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
VALUES, TAUGHT = leave_out.shipped_values(SOURCE), leave_out.teachers(SOURCE)


def scenarios(folder: str) -> list:
    return sorted(path.stem for path in (SOURCE / "scenarios" / folder).glob("*.yaml"))


class Systems(unittest.TestCase):
    def test_every_log_belongs_to_one_system(self):
        for name in scenarios("blind") + scenarios("validation"):
            self.assertTrue(systems.system_of(name))
        with self.assertRaises(ValueError):
            systems.system_of("no-such-log")

    def test_no_blind_log_is_in_a_calibration(self):
        fitted = {name for path in (SOURCE / "calibration").glob("*.yaml") for name, _ in leave_out.logs_of(path)}
        self.assertEqual(set(), fitted & set(scenarios("blind")))
        self.assertEqual(set(), set(scenarios("validation")) & set(scenarios("blind")))

    def test_values_read_off_logs_exist(self):
        for system, names in systems.READ_OFF.items():
            for name in names:
                self.assertIn(name, VALUES, system)

    def test_sources_name_calibrations_that_exist(self):
        self.assertEqual(set(), {calibration for _, calibration in VALUES.values()} - {""} - set(TAUGHT))
        files = [*(SOURCE / "models" / "params").glob("*.yaml"), *(SOURCE / "models" / "catalogue").rglob("*.yaml")]
        fits = sum(len(re.findall(r"\bfit (?:of calibration/|')", path.read_text())) for path in files)
        self.assertGreater(fits, 0)
        self.assertGreaterEqual(sum(calibration != "" for _, calibration in VALUES.values()), fits)


class LeaveOut(unittest.TestCase):
    def test_nothing_of_a_system_is_left_in_a_reduced_calibration(self):
        for system in sorted(set().union(*TAUGHT.values())):
            for calibration in sorted(name for name, known in TAUGHT.items() if system in known and len(known) > 1):
                text = leave_out.reduced(SOURCE, calibration, system, {}, [])
                left = {systems.system_of(name) for name in re.findall(r"([\w.-]+)\.txt", text) if name != "host-and-peer-copies"}
                self.assertEqual(TAUGHT[calibration] - {system}, left)

    def test_a_parent_was_not_taught_by_the_system_itself(self):
        name = "nccl.hop_time.ring.ll.nvlink.ampere"
        self.assertEqual(VALUES["nccl.hop_time.ring.ll.nvlink"][0], leave_out.parent_of(name, VALUES, TAUGHT, "ABCI A100"))
        alone = {"x.ampere": ("1", "abci-a100"), "x.volta": ("2", "abci-v100"), "x": ("0 us", "")}
        self.assertEqual("0 us", leave_out.parent_of("x.ampere", alone, TAUGHT, "ABCI A100"))
        self.assertEqual("2", leave_out.parent_of("x.ampere", alone, TAUGHT, "ABCI A100", is_start=True))
        self.assertIsNone(leave_out.parent_of("x.volta", {"x.volta": ("2", "abci-v100"), "x": ("3", "abci-v100")}, TAUGHT, "ABCI V100"))
        self.assertIsNone(leave_out.parent_of("connectx-6-hdr.latency", VALUES, TAUGHT, "ABCI A100"))
        together = {"x": ("1", "abci-a100"), "x.volta": ("3", "abci-v100"), "x.ampere": ("2", "shipped-tcp")}
        self.assertEqual("2", leave_out.parent_of("x", together, TAUGHT, "ABCI A100"))  # the newest generation's own
        self.assertEqual(VALUES["nccl.launch_time_per_channel.ampere"][0], leave_out.parent_of("nccl.launch_time_per_channel", VALUES, TAUGHT, "H200 VMs of ours"))

    def test_a_device_falls_back_to_its_kin_and_a_stack_to_other_stacks(self):
        found = leave_out.relatives(SOURCE, "QDR pair", ["connectx-3-qdr.latency"])
        others = [VALUES[f"{name}.latency"][0] for name in leave_out.kin_of(SOURCE, "connectx-3-qdr")]
        self.assertIn(found["connectx-3-qdr.latency"], others)
        self.assertEqual({"xeon-emeraldrapids"}, set(leave_out.kin_of(SOURCE, "xeon-emeraldrapids-vm")))
        self.assertNotIn("aries.latency", leave_out.relatives(SOURCE, "Piz Daint", []))
        self.assertIn(leave_out.relatives(SOURCE, "Piz Daint", ["mpi.cray-mpich.overhead"])["mpi.cray-mpich.overhead"], [value for name, (value, _) in VALUES.items() if re.fullmatch(r"mpi\.[\w-]+\.overhead", name)])
        self.assertEqual("25 GB/s", leave_out.scaled("12.5 GB/s", VALUES, "connectx-4-edr", "connectx-6-hdr", "connection_bandwidth"))
        self.assertEqual("2 us", leave_out.scaled("2 us", VALUES, "connectx-4-edr", "connectx-6-hdr", "latency"))

    def test_a_rate_of_0_is_no_limit_and_what_most_relatives_have(self):
        rates = {"mpi.a.eager_limit": ("1 KiB", ""), "mpi.a.x": ("9 GB/s", "")}
        for stack, rate in (("b", "0 GB/s"), ("c", "1 GB/s"), ("d", "0 GB/s"), ("e", "0 GB/s")):
            rates |= {f"mpi.{stack}.eager_limit": ("1 KiB", ""), f"mpi.{stack}.x": (rate, "")}
        self.assertEqual("0 GB/s", leave_out.relative_of(SOURCE, "mpi.a.x", rates, set()))
        self.assertEqual("1 GB/s", leave_out.relative_of(SOURCE, "mpi.a.x", rates, {"mpi.b.x", "mpi.d.x"}))
        self.assertIsNone(leave_out.relative_of(SOURCE, "mpi.a.y", {**rates, "mpi.b.y": ("0 us", "")}, set()))

    def test_one_of_four_memory_domains_has_a_quarter_of_the_socket(self):
        self.assertEqual(["epyc-rome"], leave_out.kin_of(SOURCE, "epyc-rome-nps4"))
        self.assertEqual("41 GB/s", leave_out.scaled("164 GB/s", VALUES, "epyc-rome", "epyc-rome-nps4", "memory_bandwidth"))
        self.assertEqual("12 GB/s", leave_out.scaled("12 GB/s", VALUES, "epyc-rome", "epyc-rome-nps4", "p2p_read_bandwidth"))

    def test_what_libfabric_costs_is_the_providers_but_for_copies_into_gpus(self):
        found = leave_out.relatives(SOURCE, "AWS p4d", ["efa-100g-gdr.libfabric_receive_copy_time", "efa-100g-gdr.plugin_latency"], of_kind=True)
        self.assertEqual(VALUES["slingshot-11.libfabric_receive_copy_time"][0], found["efa-100g-gdr.libfabric_receive_copy_time"])
        self.assertEqual(VALUES["efa-100g.plugin_latency"][0], leave_out.relatives(SOURCE, "AWS p4d", ["efa-100g-gdr.plugin_latency"])["efa-100g-gdr.plugin_latency"])
        self.assertNotIn("slingshot-11.libfabric_message_time", leave_out.relatives(SOURCE, "Polaris, libfabric", ["slingshot-11.libfabric_message_time"], of_kind=True))

    def test_an_entry_without_a_start_gets_its_parent_and_keeps_the_rest(self):
        text = leave_out.reduced(SOURCE, "shipped-nccl-ampere", "ABCI A100", {"nccl.channel_start.ampere": "2 us", "nccl.hop_time.ring.ll.nvlink.ampere": "9 us"}, ["a.yaml"])
        self.assertIn("  nccl.channel_start.ampere: {start: 2 us}\n", text)
        self.assertIn("  nccl.channel_start.ring.ampere: {start: 1.5 us}\n", text)
        self.assertTrue(text.endswith("parameters_before: [a.yaml]\n"))

    def test_band_and_range_of_a_fit_are_taken_out(self):
        text, moved = leave_out.fitted_lines('parameters:\n  model.fitted_hosts: {value: 1}\n  a.b: {value: 2, source: "fit \'x\' to 3 points"}\n  c: {value: 1, source: "table"}\n')
        self.assertNotIn("model.", text)
        self.assertEqual(["a.b"], moved)


class Judges(unittest.TestCase):
    """tests/validation/others: who teaches a GPU generation while the one system is left out that taught its shipped values."""

    H200 = "H200 VMs of ours"

    def learnt_from(self, system: str) -> set:
        return {name for name, (_, calibration) in VALUES.items() if system in TAUGHT.get(calibration, set())}

    def test_they_are_blind_logs_of_systems_that_teach_nothing(self):
        files = sorted((SOURCE / "tests" / "validation" / "others").glob("*.yaml"))
        self.assertEqual(["blackwell", "hopper", "slingshot-11"], [path.stem for path in files])
        for path in files:
            names = {name for name, _ in leave_out.logs_of(path)}
            self.assertEqual(set(), names - set(scenarios("blind")))
            self.assertEqual(set(), {systems.system_of(name) for name in names} & set().union(*TAUGHT.values()))

    def test_they_learn_what_the_system_alone_taught_from_starts_that_did_not_see_it(self):
        starts = {"nccl.base_time.ring.ll.hopper": "7 us"}
        found = leave_out.judges(SOURCE, self.H200, self.learnt_from(self.H200), starts, ["before.yaml"])
        self.assertEqual(["hopper"], list(found))
        text = found["hopper"]
        self.assertEqual(set(), {name for name in re.findall(r"([\w.-]+)\.txt", text) if systems.system_of(name) == self.H200})
        entries = dict(re.findall(r"(?m)^  ([\w.-]+): \{start: ([^,}]+), prior: 0\.5\}$", text))
        self.assertEqual("22 GB/s", entries["nccl.channel_bandwidth.simple.hopper"])  # the start of its calibration
        self.assertNotIn("cuda.launch_jitter", entries)  # its calibration starts it at the shipped value
        self.assertEqual(set(), set(entries) - self.learnt_from(self.H200))
        self.assertTrue(text.endswith("parameters_before: [before.yaml]\n"))
        self.assertNotIn("topology: ../", text)

    def test_only_what_is_wanted_is_learnt_and_never_from_the_system_itself(self):
        wanted = {"nccl.base_time.ring.ll.blackwell"}
        self.assertEqual(["blackwell"], list(leave_out.judges(SOURCE, "aiconfigurator B200", wanted, {}, [])))
        self.assertEqual({}, leave_out.judges(SOURCE, "aiconfigurator GB200", wanted, {}, []))
        self.assertEqual({}, leave_out.judges(SOURCE, "aiconfigurator B200", {"nccl.start_skew"}, {}, []))
        self.assertEqual({}, leave_out.judges(SOURCE, "aiconfigurator B200", set(), {}, []))

    def test_an_adapter_is_taught_by_parts_of_a_table(self):
        wanted = {"slingshot-11.latency"}
        text = leave_out.judges(SOURCE, "Polaris, libfabric", wanted, {}, [])["slingshot-11"]
        self.assertEqual({"slingshot-11.latency": "0.8 us"}, dict(re.findall(r"(?m)^  ([\w.-]+): \{start: ([^,}]+), prior: 0\.5\}$", text)))
        self.assertEqual({}, leave_out.judges(SOURCE, "LUMI-G", wanted, {}, []))
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "public").mkdir()
            line = "2025,0,16,1,ALLGATHER,CRAY_MPICH,no,null,ring_mpich,int32,256,20,52251,1,1,1\n"
            (root / "public" / "pico-lumi-mpi-collectives.txt").write_text(f"# a table\n{blind_logs.RAW}\nnames\n{line}")
            with unittest.mock.patch.object(logs, "measurement_folders", lambda source: [root / "public"]):
                written = leave_out.with_parts(SOURCE, text, root)
            self.assertNotIn("$PARTS", written)
            self.assertEqual(1, written.count("  - {file:"))  # of the parts that the table has
            part = root / "pico-lumi-mpi-collectives.allgather-ring-16x1.txt"
            self.assertEqual("64  52.2510", part.read_text().splitlines()[2])


class Parts(unittest.TestCase):
    def parts(self, name: str, body: str) -> list:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / f"{name}.txt"
            path.write_text(f"# source: x\n{blind_logs.RAW}\n{body}")
            return blind_logs.parts(path)

    def test_tables_of_aiconfigurator_count_elements_and_milliseconds(self):
        found = self.parts("aic-x", "framework,version,device,op_name,kernel_source,nccl_dtype,num_gpus,message_size,latency\n" + "T,2,D,all_gather,NCCL,half,4,512,0.01\nT,2,D,all_gather,NCCL,int8,4,1024,0.03\n")
        self.assertEqual(["workload.benchmark=all_gather_perf", "workload.gpus=4"], found[0].settings)
        self.assertEqual([1024], list(found[0].points))
        self.assertAlmostEqual(2e-5, found[0].points[1024])

    def test_lines_of_pico_that_are_not_modelled_are_left_out_and_blocks_are_per_rank(self):
        def line(collective, algorithm, nodes=4, gpu="no", note="null", mpi="OMPI"):
            return f"t,0,{nodes},1,{collective},{mpi},{gpu},{note},{algorithm},int32,64,20,4000,0,0,0\n"
        body = "header\n" + line("ALLGATHER", "ring_ompi") + line("ALLGATHER", "sparbit_ompi") + line("ALLREDUCE", "ring_over") + line("ALLREDUCE", "ring_ompi", gpu="yes")
        body += line("ALLREDUCE", "ring_ompi", note="rail 4") + line("ALLREDUCE", "ring_ompi", mpi="customOMPI") + line("ALLREDUCE", "ring_ompi", nodes=2048) + line("ALLTOALL", "pairwise_ompi")
        found = self.parts("pico-x", body)
        self.assertEqual(1, len(found))
        self.assertEqual({64: 4e-6}, found[0].points)
        self.assertIn("workload.algorithm=ring", found[0].settings)
        # A run in which what was forced had not reached the library.
        vain = line("ALLREDUCE", "recursive_doubling_mpich", mpi="CRAY_MPICH").replace("t,", f"{blind_logs.PICO_FORCED_IN_VAIN[0]},", 1)
        self.assertEqual(["auto", "recursive_doubling"], [setting.partition("algorithm=")[2] for text in (vain, vain.replace(blind_logs.PICO_FORCED_IN_VAIN[0], "t"))
                                                          for setting in self.parts("pico-x", "header\n" + text)[0].settings if "algorithm" in setting])
        self.assertEqual([], self.parts("pico-x", "header\n" + vain.replace("recursive_doubling", "non_blocking")))
        # 64 elements of 4 B: over four ranks, and over four on every node.
        gathers = self.parts("pico-x", "header\n" + line("GATHER", "linear_synch_ompi") + line("SCATTER", "linear_nb_ompi", note="4 tasks per node"))
        self.assertEqual([{64: 4e-6}, {16: 4e-6}], [part.points for part in gathers])
        exchange = self.parts("pico-x", "header\n" + line("ALLTOALL", "modified_bruck_ompi"))[0]
        self.assertEqual({64: 4e-6}, exchange.points)
        self.assertTrue({"workload.algorithm=bruck", "workload.benchmark=osu_alltoall"} <= set(exchange.settings))
        self.assertIn("workload.algorithm=linear_sync", gathers[0].settings)
        self.assertTrue({"workload.algorithm=linear_nb", "workload.ranks=16", "workload.ranks_per_host=4"} <= set(gathers[1].settings))

    def test_runs_of_one_osu_table_become_their_median(self):
        run = "# OSU MPI Allreduce Latency Test v5.8\n# Size\n4   {}\n8   5.0\n"
        found = self.parts("v100-google-ce-4vm-x", run.format("1.0") + run.format("9.0") + run.format("2.0"))
        self.assertEqual(1, len(found))
        self.assertIn("\n4  2.0000\n8  5.0000\n", found[0].text)


class LookedAt(unittest.TestCase):
    """script/blind-table: a log whose errors were read judges nothing any more, part by part."""

    def test_a_part_belongs_to_the_benchmark_that_it_runs(self):
        path = SOURCE / "script" / "blind-table"
        script = {"__file__": str(path), "__name__": "blind_table"}
        exec(compile(path.read_text(), "blind-table", "exec"), script)
        text = "workload:\n  benchmark: osu_allreduce\n"
        gather = ["workload.benchmark=osu_allgather", "workload.ranks=4"]
        self.assertEqual("osu_allreduce", systems.benchmark_of(text, ["workload.ranks=4"]))
        self.assertEqual("osu_allgather", systems.benchmark_of(text, gather))
        group_of, looked_at = script["group_of"], systems.LOOKED_AT
        looked_at.add(("A", "osu_allgather"))
        self.assertEqual("looked at", group_of("A", text, gather, set()))
        self.assertEqual("new", group_of("A", text, [], set()))
        self.assertEqual("known", group_of("B", text, gather, {"B"}))
        polaris = "name: a100-polaris-32gpu-8node-ss11-setup3-allgather-nccl2.{}\n" + text
        self.assertEqual("looked at", group_of("B", polaris.format(18), [], {"B"}))
        self.assertEqual("known", group_of("B", polaris.format(21), [], {"B"}))
        for scenario in (SOURCE / "scenarios" / "blind").glob("*.yaml"):
            self.assertTrue(systems.benchmark_of(scenario.read_text(), []))


class Classes(unittest.TestCase):
    """script/parameter-classes: what the shipped values rest on."""

    @classmethod
    def setUpClass(cls):
        text = (SOURCE / "script" / "parameter-classes").read_text()
        cls.script = {"__file__": str(SOURCE / "script" / "parameter-classes"), "__name__": "classes"}
        exec(compile(text, "parameter-classes", "exec"), cls.script)
        cls.classes = {name: kind for name, kind, _, _ in cls.script["values"]()}

    def test_every_value_has_a_class_and_no_class_grows_unseen(self):
        self.assertEqual(set(VALUES), set(self.classes))
        learnt = [name for name, kind in self.classes.items() if kind in ("fitted", "read_off")]
        self.assertLessEqual(len(learnt), 287)  # 574 once; fewer is better
        self.assertGreater(len(learnt), 100)

    def test_a_value_read_off_a_log_goes_with_its_system(self):
        of_systems = {name for names in systems.READ_OFF.values() for name in names}
        kept = {*systems.SEEN_ON_SEVERAL, *systems.SEEN_ELSEWHERE}
        self.assertEqual(set(), of_systems & kept)
        self.assertEqual(of_systems | kept, {name for name, kind in self.classes.items() if kind == "read_off"} | {name for name in of_systems if VALUES[name][1]})

    def test_a_fitted_value_names_its_fit_or_what_it_was_fitted_to(self):
        # Fits to own logs and to documents have no calibration file.
        without = ("gpu.", "host.", "training.", "migration.")
        names_a_fit = re.compile(r"\bfits? of |\bfit '|\bfit to |\bshipped-")
        found = [name for name, kind, said, _ in self.script["values"]() if kind == "fitted" and not name.startswith(without) and not names_a_fit.search(said)]
        self.assertEqual([], found)

    def test_class_is_what_the_file_says(self):
        class_of = self.script["class_of"]
        self.assertEqual(["fitted", "read_off", "assumed"], [class_of(one) for one in ("fitted", "read_off", "assumed")])
        self.assertEqual({"sourced"}, {class_of(one) for one in ("high", "medium", "low")})


class Worth(unittest.TestCase):
    """script/parameter-worth: what a learnt value earns."""

    def test_a_parent_is_what_the_model_reads_without_the_value(self):
        values = {name: (value, "") for name, value in (("nccl.x.ll", "1"), ("nccl.x.ll.hopper", "2"), ("nccl.x.simple.hopper", "3"), ("nccl.start.volta", "4"), ("cuda.launch_interval", "5 us"))}
        self.assertEqual([("nccl.x.ll", "1"), ("nccl.x.simple.hopper", "3")], worth.parents_of(SOURCE, "nccl.x.ll.hopper", values))
        self.assertEqual([("nccl.start.volta", "4")], worth.parents_of(SOURCE, "nccl.start.ring.ll.volta", values))
        self.assertEqual([("cuda.launch_interval", "5 us")], worth.parents_of(SOURCE, "xeon-broadwell.launch_interval", values))
        self.assertEqual([], worth.parents_of(SOURCE, "nccl.x.direct", values))

    def test_every_value_was_taught_by_systems_that_are_known(self):
        known = {name for name, _, _ in systems.SYSTEMS}
        for name in VALUES:
            self.assertEqual(set(), worth.taught_by(name, VALUES, TAUGHT) - known, name)
        self.assertEqual({"A100 PCIe pair, HDR across sockets"}, worth.taught_by("epyc-rome-nps4.memory_bandwidth", VALUES, TAUGHT))

    def test_errors_of_all_and_of_systems_that_did_not_teach(self):
        before = {"a100-abci-x": [0.1, 0.1], "v100-abci-x": [0.2, 0.2], "qdr40-cx3-x": [0.4, 0.4]}
        one = worth.change_of(before, {"a100-abci-x": [0.2, 0.1], "v100-abci-x": [0.1, 0.2], "qdr40-cx3-x": [0.4, 0.4]}, {"ABCI A100"})
        self.assertEqual((2, 2), (one.points, one.others_points))
        self.assertAlmostEqual(0, one.every)
        self.assertAlmostEqual(-0.25, one.others)
        self.assertAlmostEqual(0.05, one.worst)
        self.assertEqual("a100-abci-x", one.worst_log)
        self.assertEqual(0, worth.change_of(before, before, set()).points)

    def test_a_whole_generation_falls_back_where_a_protocol_has_no_value_of_its_own(self):
        values = {"nccl.skew.ll.hopper": ("2", "h200-8gpu-vm"), "nccl.skew": ("1", "")}
        self.assertEqual("1", leave_out.parent_of("nccl.skew.ll.hopper", values, TAUGHT, "H200 VMs of ours"))


class Families(unittest.TestCase):
    def test_a_system_is_in_one_family(self):
        known = [name for name, _, _ in systems.SYSTEMS]
        members = [name for names in systems.FAMILIES.values() for name in names]
        self.assertEqual(sorted(set(members)), sorted(members))
        self.assertEqual(set(), set(members) - set(known))
        self.assertEqual(set(), set(systems.FAMILIES) & set(known))
        self.assertEqual("Azure", systems.family_of("Azure NDv2"))
        self.assertEqual("Piz Daint", systems.family_of("Piz Daint"))

    def test_nothing_of_a_family_is_left(self):
        for family, members in systems.FAMILIES.items():
            self.assertEqual(leave_out.read_off(members), set().union(*(leave_out.read_off(one) for one in members)))
            for calibration in sorted(name for name, known in TAUGHT.items() if known & set(members) and known - set(members)):
                text = leave_out.reduced(SOURCE, calibration, members, {}, [])
                left = {systems.system_of(name) for name in re.findall(r"([\w.-]+)\.txt", text) if name != "host-and-peer-copies"}
                self.assertEqual(TAUGHT[calibration] - set(members), left, family)


class Scatter(unittest.TestCase):
    """model.between_systems.*: what families of systems that were left out as a whole need (tests/validation/families.json)."""

    def test_a_band_with_the_scatter_that_a_point_needs_just_holds_it(self):
        for measured in (0.2, 0.5, 0.9, 1.05, 1.4, 3.0, 9.0):
            for own in (0.0, 0.05, 0.3):
                b = scatter.needed(1.0, 1 - own, 1 + own, measured)
                low, high = 1 - math.hypot(own, b / (1 + b)), 1 + math.hypot(own, b)
                self.assertTrue(low <= measured + 1e-9 and measured <= high + 1e-9, (measured, own))
                self.assertTrue(b == 0 or math.isclose(low, measured) or math.isclose(high, measured))

    def test_families_weigh_alike_up_to_one_log(self):
        families = {"a": {"points": 1000, "needed": [0.1] * 101}, "b": {"points": 25, "needed": [0.5] * 25}, "c": {"points": 1, "needed": [9.0]}}
        self.assertEqual(0.5, scatter.estimate(families))
        self.assertAlmostEqual(50 / 51, scatter.coverage(families, 0.5))
        self.assertAlmostEqual(25 / 51, scatter.coverage(families, 0.49))
        self.assertEqual([0.0, 1.0, 2.0], scatter.quantiles([2.0, 0.0, 1.0]))
        self.assertEqual([float(i) for i in range(0, 1001, 10)], scatter.quantiles([float(i) for i in range(1001)]))

    def test_the_shipped_scatter_holds_75_to_90_percent_of_families_that_no_fit_has_seen(self):
        for kind, families in scatter.load().items():
            shipped = float(VALUES[f"model.between_systems.{kind}"][0])
            held, of_strangers = scatter.coverage(families, shipped), scatter.coverage_of_strangers(families)
            if len(families) < scatter.FEWEST:  # too few to narrow what systems left out one by one ask for
                self.assertGreaterEqual(shipped, scatter.estimate(families), kind)
                continue
            self.assertAlmostEqual(scatter.estimate(families), shipped, delta=0.02 * shipped, msg=kind)
            self.assertTrue(0.75 <= held <= 0.9, (kind, held))
            self.assertTrue(0.75 <= of_strangers <= 0.9, (kind, of_strangers))


class Figures(unittest.TestCase):
    def test_figures_of_points(self):
        points = [compare.Point("l", "all_reduce_perf", hosts, 1.0, predicted, 0.9, 1.2) for hosts, predicted in ((1, 1.1), (2, 1.2), (4, 0.7))]
        self.assertEqual(["3", "20.0 %", "28 %", "+10.0 %", "100 %"], compare.figures(points))
        self.assertEqual(["NCCL in one host", "NCCL over hosts", "NCCL over hosts"], [compare.kind_of(p) for p in points])
        self.assertEqual(["1", "2", "3-4", "3-4", "5+"], [compare.hosts_bucket(n) for n in (1, 2, 3, 4, 5)])


if __name__ == "__main__":
    unittest.main()
