"""--clock thread: another clock, the same trees."""
import os
import shutil
import subprocess

import ways_out
from support import KARST, TracedTest, build, main

THREAD = ("--clock", "thread")


def cpus():
    return len(os.sched_getaffinity(0))


class Clock(TracedTest):
    def setUp(self):
        super().setUp()
        if cpus() < 2:
            self.skipTest("one CPU alone: the clock thread is not used")

    def assert_by_thread(self, process):
        self.assertEqual(process["clock"], "thread")
        self.assertGreater(process["clock_period_ns"], 0)
        self.assertIn("clock_longest_ns", process)  # 0 if it got no processor while the program ran

    def test_every_way_out_of_a_function_in_the_same_order(self):
        corpus = ways_out.WaysOut("program")
        for source in ways_out.sources():
            if source.name in ways_out.O2_ONLY:
                continue
            with self.subTest(source=source.name):
                run = self.run_traced(corpus.program(source, "-O2", ways_out.PIE), options=THREAD)
                self.assert_whole(run.trace)
                self.assertEqual(ways_out.shown(run.trace.tree("--marks")),
                                 source.with_suffix(".tree").read_text().splitlines())
                self.assert_by_thread(run.trace.processes[0])

    def test_the_trace_says_its_clock_and_period(self):
        program = build("nested", "variants/nested.cc", "-O1", "-fno-inline", "-fno-optimize-sibling-calls")
        run = self.run_traced(program, 5, options=("--clock", "thread:2us"))
        self.assert_by_thread(run.trace.processes[0])
        self.assertAlmostEqual(run.trace.processes[0]["clock_period_ns"], 2000, delta=2)
        self.assertRegex(
            subprocess.run([KARST, "info", str(run.trace.path)], capture_output=True, text=True).stdout,
            r"times by a clock thread, every (2\.00\d|1\.99\d) us")
        usual = self.run_traced(program, 5)
        self.assertEqual(usual.trace.processes[0]["clock"], "tsc")

    def test_children_have_a_clock_of_their_own(self):
        program = build("lives", "variants/lives.cc", "-O1", "-fno-inline", "-pthread")
        run = self.run_traced(program, "forks", 20, options=THREAD)
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.counts["leaf()"], 5 + 2 + 20 * 3)
        self.assertEqual(len(run.trace.processes), 21)
        for process in run.trace.processes:
            self.assert_by_thread(process)

    def test_many_threads(self):
        program = build("lives", "variants/lives.cc", "-O1", "-fno-inline", "-pthread")
        run = self.run_traced(program, "many", 1000, options=THREAD)
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.counts["leaf()"], 7000)

    def test_a_clock_that_sleeps_is_woken(self):
        program = build("naps", "variants/naps.cc", "-O1", "-fno-inline")
        run = self.run_traced(program, 5, options=THREAD)
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.counts["nap()"], 5)
        self.assertEqual(run.trace.counts["leaf()"], 50)
        # While the program sleeps nothing takes a CPU: the naps are 5 times 300 ms, and the clock looks on for 50 of each.
        cpu_ms, naps_ms = map(int, run.out.split())
        self.assertLess(cpu_ms, naps_ms)
        for line in run.trace.report():
            if line["function"] == "nap()":  # it woke up when the nap was over, and before the next was begun
                self.assertGreaterEqual(line["min_ns"], 290_000_000)

    def test_with_a_least_duration(self):
        program = build("nested", "variants/nested.cc", "-O1", "-fno-inline", "-fno-optimize-sibling-calls")
        run = self.run_traced(program, 200, options=(*THREAD, "--min-duration", "10000ms"))
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.counts, {"main": 1, "keeps()": 200, "leave(int)": 600})

    def test_on_one_cpu_the_processors_clock_is_used(self):
        if shutil.which("taskset") is None:
            self.skipTest("no taskset")
        program = build("nested", "variants/nested.cc", "-O1", "-fno-inline", "-fno-optimize-sibling-calls")
        first = sorted(os.sched_getaffinity(0))[0]
        run = self.run_traced(program, 5, options=THREAD, launcher=("taskset", "-c", str(first)))
        self.assertEqual(run.trace.processes[0]["clock"], "tsc")
        said = [line for line in run.err.splitlines() if "clock=thread: one CPU alone" in line]
        self.assertEqual(len(said), 1)

    def test_what_is_no_clock_is_refused(self):
        for text in ("tsc:1us", "threads", "thread:", "thread:10ns", "thread:2ms", "sun"):
            done = subprocess.run([KARST, "run", "--clock", text, "/bin/true"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, text)
            self.assertIn("thread:100ns", done.stderr)


class Counter(TracedTest):
    """A kernel that does not trust the processor's counter: told as the program starts, and in the trace."""

    SOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    UNSURE = "times may be wrong: the processor's counter was not known to be constant and the same on all CPUs"

    def run_with(self, source):
        program = build("nested", "variants/nested.cc", "-O1", "-fno-inline", "-fno-optimize-sibling-calls")
        fake = self.directory / "clocksource"
        fake.write_text(source + "\n")
        launcher = ("unshare", "-m", "sh", "-c", f'mount --bind "$0" {self.SOURCE} && exec "$@"', str(fake))
        if subprocess.run([*launcher, "true"], capture_output=True).returncode != 0:
            self.skipTest("no mount namespace can be had")
        return self.run_traced(program, 2, launcher=launcher)

    def test_one_that_the_kernel_does_not_trust(self):
        run = self.run_with("hpet")
        (line,) = [line for line in self.lines_of_karst(run) if "times may be wrong" in line]
        self.assertIn("(the kernel's clock is hpet)", line)
        self.assertIn(self.UNSURE, [p["message"] for p in run.trace.info["problems"]])

    def test_one_that_it_trusts(self):
        run = self.run_with("tsc")
        self.assertFalse([line for line in self.lines_of_karst(run) if "times" in line])
        self.assertEqual(run.trace.info["problems"], [])


if __name__ == "__main__":
    main()
