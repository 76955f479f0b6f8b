"""A priority inversion: who kept a thread off its CPU is told by how long, as the threads measured it themselves."""
import json
import re
import subprocess
import unittest

import support
from support import KARST

NO_PRIORITIES = 77
SLACK = 1_000_000  # ns: a switch on a machine that others use


class InversionTest(support.TracedTest):
    SCHED = ()  # each test says which

    def record(self, *options):
        program = support.build("inversion", "sched/inversion.cc", "-O1", "-pthread")
        if subprocess.run([program], capture_output=True).returncode == NO_PRIORITIES:
            self.skipTest("real-time priorities need root, or CAP_SYS_NICE")
        run = self.run_traced(program, options=options)
        states = run.trace.info["states"]
        if states["backend"] != options[1]:
            self.skipTest(states["note"])
        if states["lost_events"] + states["overwritten_events"] + states["left_out"] > 0:
            self.skipTest(f"records were lost: {states}")
        self.truth = {name: (int(cpu), int(wall)) for name, cpu, wall in
                      (line.split() for line in run.out.splitlines())}
        self.path = run.trace.path

    def record_undisturbed(self, *options):
        """Where other programs want the CPU, newer kernels take it from real-time threads at times (the fair server)."""
        for _ in range(5):
            self.record(*options)
            wait = json.loads(self.ask("slow", "--format", "json"))["slow"][0]
            others = sum(share["duration_ns"] for share in wait.get("kept_off_by", ()) if "thread" not in share)
            if others + wait.get("kept_off_not_known_ns", 0) < SLACK:
                return
        self.skipTest(f"others had the CPU meanwhile, five times: {wait}")

    def ask(self, *words):
        return subprocess.run([KARST, *words, self.path], capture_output=True, text=True, check=True).stdout

    def assert_measured(self, share, thread, function):
        """A thread's own clock stands still off its CPU; on some machines also while a hypervisor has that."""
        self.assertEqual((share["thread"], share["function"]), (thread, function + "()"))
        cpu, wall = self.truth[function]
        self.assertGreater(share["duration_ns"], 0.98 * cpu - SLACK, self.truth)
        self.assertLess(share["duration_ns"], 1.02 * wall + SLACK, self.truth)

    def assert_shares(self, wait):
        shares = wait["kept_off_by"]
        self.assert_measured(shares[0], "middle", "sweep")
        high = next(share for share in shares if share.get("thread") == "high")
        self.assert_measured(high, "high", "grab")
        self.assertEqual([s["duration_ns"] for s in shares], sorted((s["duration_ns"] for s in shares), reverse=True))

    def check(self):
        slow = json.loads(self.ask("slow", "--format", "json"))
        self.assertEqual(slow["slow"][0]["function"], "collect(bool)")
        wait = slow["slow"][0]
        self.assert_shares(wait)
        # Nothing is counted twice, and nothing is left out.
        whole = sum(share["duration_ns"] for share in wait["kept_off_by"]) + wait["kept_off_not_known_ns"]
        self.assertAlmostEqual(whole, wait["wait_ns"], delta=100)
        self.assertLess(wait["kept_off_not_known_ns"], SLACK, wait)
        words = r"kept off CPU \d+: \S+ ms by \d+ middle in sweep, \S+ ms by \d+ high in grab"
        self.assertRegex(re.sub(r"\s+", " ", self.ask("slow")), words)
        explained = json.loads(self.ask("explain", "--function", "collect", "--format", "json"))
        self.assert_shares(explained["causes"][0])
        self.assertRegex(explained["causes"][0]["wait_words"], words)
        self.assertRegex(self.ask("tree"), words.replace("sweep", r"sweep\(\)").replace("grab", r"grab\(\)"))

    def test_ftrace(self):
        self.record_undisturbed("--sched", "ftrace")
        self.check()

    def test_ftrace_of_all_cpus(self):
        self.record_undisturbed("--sched", "ftrace", "--cpus")
        self.check()

    def test_perf_events_know_the_programs_own_threads(self):
        self.record_undisturbed("--sched", "perf")
        self.check()


if __name__ == "__main__":
    support.main()
