"""karst attach PID records thread states: of the threads that were there, and of those that are born later. What says
nothing about states (a snapshot of a process) says why."""
import json
import os
import subprocess
import sys
import time
import unittest

import support
from support import KARST, TIMEOUT

sys.path.insert(0, str(support.ROOT / "test" / "docs"))
import decode_trace  # noqa: E402

SWITCH, WAKING, NEW_THREAD = 1, 2, 3
NOBODY = 65534
NO_BREAKPOINTS = ("the system has no hardware breakpoints", "does not allow breakpoints")
BEFORE = 0.05  # seconds between attaching and the first thing that the program does


def become_nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


class AttachTest(support.TracedTest):
    def setUp(self):
        super().setUp()
        self.program = support.build("attached", "sched/attached.cc", "-O1", "-pthread")
        self.directory.chmod(0o777)
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(self.directory / "cache")}
        self.path = self.directory / "attached.karst"

    def start(self, **more):
        child = subprocess.Popen([self.program, "60"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                 env={**self.environment, "LD_PRELOAD": str(support.BIN.parent / "lib" / "libkarst.so.0")},
                                 **more)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        word, self.early = child.stdout.readline().split()
        self.assertEqual(word, "ready")
        self.early = int(self.early)
        return child

    def attach(self, backend, **more):
        """What karst info says of the states that attaching to the program gave."""
        child = self.start(**more)
        attach = subprocess.Popen([KARST, "attach", str(child.pid), "--sched", backend, "--trigger", "in_loop", "--last",
                                   "10000ms", "-o", str(self.path)], stderr=subprocess.PIPE, text=True,
                                  env=self.environment, **more)
        said = attach.stderr.readline()
        if "waiting for process" not in said:
            said += attach.communicate()[1]
            if any(refusal in said for refusal in NO_BREAKPOINTS):
                self.skipTest(said)
            self.fail(said)
        time.sleep(BEFORE)
        child.stdin.write("go\n")
        child.stdin.flush()
        _, said = attach.communicate(timeout=TIMEOUT)
        self.assertEqual(attach.returncode, 0, said)
        trace = support.Trace(self.path)
        states = trace.info["states"]
        if states["backend"] != backend:
            self.skipTest(states["note"])
        return trace, states, decode_trace.Trace(self.path.read_bytes())

    def check(self, trace, states, raw):
        names = {tid: name.strip('"') for tid, _, of_run, _, name in raw.tasks if of_run}
        self.assertEqual(names.get(self.early), "early", names)
        by_name = {name: tid for tid, name in names.items()}
        # The kernel may have dropped records, or left some out (docs/limits.md): then something in between is not known.
        sure = states["lost_events"] + states["overwritten_events"] + states["unknown_stretches"] == 0
        if sure:
            self.assertIn("late", by_name)
        late = by_name.get("late")
        of_early = {f["function"]: f for f in trace.report("--thread", str(self.early))}
        for function in of_early.values():
            parts = sum(function[part] for part in ("cpu_ns", "runnable_ns", "blocked_ns", "unknown_ns"))
            self.assertAlmostEqual(parts, function["total_ns"], delta=1000)
        # It waited when karst came, and did nothing while karst looked: that is not known, and not made up.
        waited = of_early["wait_for_the_first()"]
        self.assertGreater(waited["unknown_ns"], BEFORE * 1e9 * 0.9, waited)
        if not sure:
            return
        # From the first record of it on, all is known; the kernel may have left out the one in which it first came to a CPU.
        self.assertLess(of_early["answer()"]["unknown_ns"], of_early["answer()"]["total_ns"], of_early)
        # Of a thread that was born later, from its birth on.
        of_late = {f["function"]: f for f in trace.report("--thread", str(late))}
        self.assertEqual(of_late["ask()"]["unknown_ns"], 0, of_late)
        self.assertGreater(of_late["ask()"]["cpu_ns"], 0)
        self.assertGreater(of_late["ask()"]["blocked_ns"] + of_early["answer()"]["blocked_ns"], 0, "one waits for the other")
        self.assertIn(late, [tid for _, tid, _, _, _, kind in raw.states if kind == NEW_THREAD])
        self.late = late

    def test_by_perf_events(self):
        self.check(*self.attach("perf"))

    def test_by_perf_events_as_any_user(self):
        more = {}
        if os.geteuid() == 0:
            if subprocess.run([KARST, "--version"], preexec_fn=become_nobody, capture_output=True).returncode != 0:
                self.skipTest("another user cannot reach the build")
            more["preexec_fn"] = become_nobody
        self.check(*self.attach("perf", **more))

    def test_by_ftrace(self):
        self.late = None
        trace, states, raw = self.attach("ftrace")
        self.check(trace, states, raw)
        if self.late is not None:
            woken = {(other, tid) for _, tid, other, _, _, kind in raw.states if kind == WAKING}
            self.assertTrue({(self.late, self.early), (self.early, self.late)} & woken, woken)

    def test_a_snapshot_has_none_and_says_what_to_do(self):
        child = self.start()
        done = subprocess.run([KARST, "snapshot", str(child.pid), "-o", str(self.path)], capture_output=True, text=True,
                              env=self.environment, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        states = support.Trace(self.path).info["states"]
        self.assertEqual((states["backend"], states["records"]), ("none", 0))
        self.assertIn("karst attach", states["note"])
        text = subprocess.run([KARST, "info", self.path], capture_output=True, text=True, check=True).stdout
        self.assertIn("states       not recorded: " + states["note"], text)


if __name__ == "__main__":
    support.main()
