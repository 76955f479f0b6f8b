"""Tests of what the benchmark says about its figures; nothing here is timed. Run by ctest: bench_test.py."""

import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import answers  # noqa: E402
import bench  # noqa: E402
import calls  # noqa: E402
import measure  # noqa: E402
import programs  # noqa: E402
import system  # noqa: E402
import unmodified  # noqa: E402
import variants  # noqa: E402
import ways_out  # noqa: E402


class Judging(unittest.TestCase):
    def test_a_section_without_a_measurement_says_so(self):
        self.assertEqual(measure.median([3, 1, 2]), 2)
        with self.assertRaises(measure.BenchError):
            measure.median([])

    def test_bad_numbers_of_rounds_are_refused(self):
        for bad in ("0", "-1", "few"):
            done = subprocess.run([sys.executable, "-B", pathlib.Path(bench.__file__), "--rounds", bad],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn("argument --rounds: ", done.stderr)

    def test_on_is_held_against_the_floor(self):
        self.assertTrue(calls.judge("karst on", 20.7, floor=20.0, plain=1.0)[1])
        self.assertFalse(calls.judge("karst on", 20.9, floor=20.0, plain=1.0)[1])

    def test_off_is_held_against_the_uninstrumented_program(self):
        self.assertTrue(calls.judge("karst off", 1.14, floor=19.0, plain=1.0)[1])
        self.assertFalse(calls.judge("karst off", 1.2, floor=19.0, plain=1.0)[1])

    def test_ways_out_are_held_against_the_plain_program(self):
        self.assertTrue(ways_out.judge(2.9, 3.0)[1])
        self.assertFalse(ways_out.judge(3.1, 3.0)[1])
        self.assertIsNone(ways_out.judge(9.0, None)[1])

    def test_a_patched_call_is_held_against_a_sleds(self):
        self.assertTrue(unmodified.judge_pair(31.9, 20.0)[1])
        self.assertFalse(unmodified.judge_pair(32.1, 20.0)[1])
        self.assertTrue(unmodified.judge_start(0.69, 28_000)[1])
        self.assertFalse(unmodified.judge_start(0.71, 28_000)[1])

    def test_answers_are_held_to_a_rate_or_to_seconds(self):
        self.assertTrue(answers.judge("report", 20e6, 0.39, False)[1])
        self.assertFalse(answers.judge("report", 20e6, 0.41, False)[1])
        self.assertTrue(answers.judge("explain", 20e6, 1.9, False)[1])
        self.assertFalse(answers.judge("diff", 40e6, 4.1, False)[1])
        self.assertIsNone(answers.judge("report", 2e6, 9.0, True)[1])

    def test_variants_are_held_against_floor_and_plain_program(self):
        one = variants.judged_pairs("leaf, 1 thread", {"floor": 20.0, "not instrumented": 1.0, "karst --clock thread": 8.1,
                                                       "karst --min-duration 5us": 25.0, "karst run --count": 4.0}, 1, [])
        self.assertEqual({row.name: row.met for row in one if row.met is not None},
                         {"karst --clock thread": False, "karst --min-duration 5us": True, "karst run --count": True})
        two = variants.judged_pairs("leaf, 2 threads", {"floor": 20.0, "not instrumented": 1.0, "karst run --count": 5.6}, 2, one)
        self.assertEqual([row.met for row in two if row.name == "karst run --count"], [False])

    def test_a_core_that_others_use_is_told_of(self):
        core = calls.Core.__new__(calls.Core)
        core.best = 2.0
        notes = []
        self.assertEqual(core.row("g", [2.0, 2.1, 9.0], notes).value, 1.05)
        self.assertEqual(notes, [])
        self.assertEqual(core.row("g", [2.0, 2.6, 9.0], notes).value, 1.3)
        self.assertIn("took 1.30 x as long as they can", notes[0])

    def test_peers_are_not_judged(self):
        self.assertIsNone(calls.judge("XRay FDR on", 200.0, floor=19.0, plain=1.0)[1])

    def test_a_missed_target_shows_in_the_table(self):
        rows = [measure.Row("g", "karst on", 30.0, "ns", 1.5, "floor", "<= 1.10 x floor", False),
                measure.Row("g", "karst off", 1.0, "ns", 0.05, "floor", "<= +0.3 ns", True)]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            bench.print_table(rows, ["a note"], {"cpu": "c", "cpus": 2, "kernel": "k", "gcc": "12"})
        self.assertIn("<= 1.10 x floor: MISSED", out.getvalue())
        self.assertIn("1 of 2 targets met", out.getvalue())
        self.assertIn("note: a note", out.getvalue())


class Recorded(unittest.TestCase):
    def test_kept_and_overwritten_calls_are_added(self):
        line = ("karst: x.karst: 1 process, 6 threads, 4,127,757 calls kept over 719.4 ms, about 725,508 calls "
                "overwritten (memory was full; see --memory)\n")
        self.assertEqual(measure.recorded_calls("other line\n" + line), 4_127_757 + 725_508)
        line = "karst: x.karst: 1 process, 1 thread, 1 call kept over 40 ns, none overwritten\n"
        self.assertEqual(measure.recorded_calls(line), 1)

    def test_no_summary_is_not_zero_calls(self):
        self.assertIsNone(measure.recorded_calls("karst: no trace was written\n"))

    def test_a_run_that_traced_nothing_is_an_error(self):
        tool = measure.karst_tool
        with tempfile.TemporaryDirectory() as scratch:
            fake = pathlib.Path(scratch) / "karst"
            fake.write_text("#!/bin/sh\necho ns_per_pair 1.0\n")
            fake.chmod(0o755)
            measure.karst_tool = lambda name: fake
            try:
                with self.assertRaises(measure.BenchError):
                    measure.karst_run(scratch, [], ["prog"], least_calls=1)
                self.assertEqual(measure.karst_run(scratch, ["--off"], ["prog"], 0).output, "ns_per_pair 1.0\n")
            finally:
                measure.karst_tool = tool


class Rounds(unittest.TestCase):
    def test_variants_alternate_and_a_failing_one_does_not_stop_the_others(self):
        order = []

        def good():
            order.append("good")
            return 1.0

        def bad():
            order.append("bad")
            raise measure.BenchError("because")

        samples, failures = measure.interleaved({"good": good, "bad": bad}, 3, "label")
        self.assertEqual(order, ["good", "bad", "good", "good"])
        self.assertEqual(samples, {"good": [1.0, 1.0, 1.0]})
        self.assertEqual(failures, {"bad": "because"})

    def test_a_failing_child_is_an_error_with_its_output(self):
        with self.assertRaisesRegex(measure.BenchError, "(?s)ended with 3.*why"):
            measure.run_child(["sh", "-c", "echo why; exit 3"])

    def test_times_of_sqlites_shell_are_added(self):
        self.assertEqual(system.sqlite_seconds("Run Time: real 0.250 user 0.125000 sys 0.000500\n"
                                               "Run Time: real 1.000 user 0.500000 sys 0.250000\n"),
                         {"wall time": 1.25, "CPU time": 0.8755})
        with self.assertRaises(measure.BenchError):
            system.sqlite_seconds("Error: no such table\n")

    def test_xray_is_compared_with_clangs_own_plain_build(self):
        runs = {name: (lambda t=t: {"CPU time": t})
                for name, t in (("not instrumented", 1.0), ("clang, not instrumented", 2.0), ("XRay off", 3.0))}
        rows = programs.ratio_rows("g", runs, 1, [])
        self.assertEqual([row.ratio for row in rows], [1.0, 2.0, 1.5])


if __name__ == "__main__":
    unittest.main()
