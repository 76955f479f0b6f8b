"""Calls that keep themselves (--slowest, --over): what is kept equals the program's own stopwatches.

Of each request the program logs a time taken within it and one taken around it; the call itself lies between. So the
k-th longest kept call lies between the k-th longest of either, whenever threads were scheduled."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

import support
from support import KARST, Trace, build

SLACK = 1e-3  # of the rates of two clocks


class Log:
    def __init__(self, text):
        self.calls = []
        rate = 0
        for words in map(str.split, text.splitlines()):
            if words[:1] == ["rate"]:
                rate = int(words[1])
            elif len(words) == 3:
                self.calls.append(tuple(map(int, words)))
        self.ns = 1e9 / rate

    def longest(self, column):
        return sorted((call[column] * self.ns for call in self.calls), reverse=True)


def durations(moments):
    return sorted((m["end_ns"] - m["begin_ns"] for m in moments), reverse=True)


class Watch(support.TracedTest):
    def program(self, *flags, output="watch_requests", **more):
        return build("watch_requests", "watch/requests.cc", "-O2", "-pthread", "-ldl", "-I", str(support.ROOT / "include"),
                     *flags, output=output, **more)

    def run_watched(self, *options, arguments=("serve",), memory="4M", program=None, **more):
        run = self.run_traced(program or self.program(), *arguments, options=["--memory", memory, *options], **more)
        return run, Log(run.out)

    def kept(self, trace, name="request("):
        return [m for m in trace.info["kept"] if m["function"].startswith(name)]

    def assert_the_slowest(self, moments, log, count):
        ours, inner, outer = durations(moments), log.longest(0), log.longest(1)
        self.assertEqual(len(ours), min(count, len(log.calls)))
        for ns, least, most in zip(ours, inner, outer):
            self.assertGreaterEqual(ns, least * (1 - SLACK) - 1)
            self.assertLessEqual(ns, most * (1 + SLACK) + 1)

    def assert_over(self, moments, log, limit_ns):
        ours = durations(moments)
        self.assertTrue(all(ns >= limit_ns * (1 - SLACK) for ns in ours), ours[-3:])
        self.assertGreaterEqual(len(ours), sum(ns >= limit_ns * (1 + SLACK) for ns in log.longest(0)))
        self.assertLessEqual(len(ours), sum(ns >= limit_ns * (1 - SLACK) for ns in log.longest(1)))
        self.assert_the_slowest(moments, log, len(ours))

    def assert_has_its_call(self, trace, moment, log):
        """What was kept of the moment has the call, as long as it was, unless the kernel gave the process no CPU in time."""
        if moment["whole_from_ns"] != moment["kept_from_ns"]:
            return False
        (function,) = [f for f in trace.report("--kept", str(moment["number"]), "--thread", str(moment["tid"]))
                       if f["function"] == moment["function"]]
        # A longer one of the thread's may reach into the margin. A call that an exception or a jump ended is said to have
        # lasted until its thread was out of it.
        def fitting(ns):
            return [inner * log.ns for inner, outer, tid in log.calls if tid == moment["tid"]
                    and inner * log.ns * (1 - SLACK) - 1 <= ns <= outer * log.ns * (1 + SLACK) + 1]

        own = fitting(moment["end_ns"] - moment["begin_ns"])
        self.assertTrue(own, moment)
        self.assertGreaterEqual(function["max_ns"], min(own) * (1 - SLACK) - 1)
        self.assertTrue(fitting(function["max_ns"]), (function, moment))
        return True

    def test_slowest_of_thousands_while_memory_wraps(self):
        run, log = self.run_watched("--slowest", "^request:7", "--slowest", "^relay", memory="8M")
        self.assertGreater(len(log.calls), 3600)
        self.assertGreater(run.trace.info["overwritten_events"], 1_000_000)
        kept = self.kept(run.trace)
        self.assert_the_slowest(kept, log, 7)
        self.assertEqual({m["kind"] for m in kept}, {"slowest"})
        self.assertTrue({m["tid"] for m in kept} <= {tid for _, _, tid in log.calls})
        for moment in kept:
            self.assert_has_its_call(run.trace, moment, log)
        self.assertEqual(len(self.kept(run.trace, "relay(")), 5)

    def test_calls_over_a_time(self):
        run, log = self.run_watched("--over", "^request:3ms:10000", "--margin", "1ms")
        kept = self.kept(run.trace)
        self.assert_over(kept, log, 3e6)
        self.assertEqual({m["kind"] for m in kept}, {"over"})
        for moment in kept[:3]:
            self.assertAlmostEqual(moment["kept_to_ns"] - moment["end_ns"], 1e6, delta=1e3)
            self.assert_has_its_call(run.trace, moment, log)

    def test_so_many_and_so_often(self):
        run, log = self.run_watched("--over", "^request:1us:5")
        self.assertEqual(len(self.kept(run.trace)), 5)
        self.assertRegex(run.err, r"\d+ further calls took longer than --over says")
        run, log = self.run_watched("--over", "^request:1us:1000/20ms")
        ends = sorted(m["end_ns"] for m in self.kept(run.trace))
        self.assertGreater(len(ends), 2)
        self.assertTrue(all(b - a >= 20e6 * (1 - SLACK) for a, b in zip(ends, ends[1:])), ends)

    def test_both_kinds_and_the_clock_thread(self):
        for more in ([], ["--min-duration", "2us"], ["--clock", "thread"]):
            with self.subTest(more):
                run, log = self.run_watched("--slowest", "^request:3", "--over", "^request:1000s", *more)
                kept = self.kept(run.trace)
                self.assertTrue(all(m["kind"] == "slowest" and m["end_ns"] > m["begin_ns"] for m in kept), kept)
                if more != ["--clock", "thread"]:  # whose time stands still while that thread has no CPU
                    self.assert_the_slowest(kept, log, 3)
                self.assertLessEqual(len(kept), 3)

    def test_other_compilers_ways(self):
        for name, flags in (("gcc", ["-O2", "-finstrument-functions"]), ("clang", None)):
            with self.subTest(name):
                if flags is None:
                    program = self.program(output="watch_requests_clang", compiler=str(support.BIN / "karst-clang++"))
                else:
                    program = self.program(*flags, output="watch_requests_finstrument", compiler="g++")
                run, log = self.run_watched("--slowest", "^request:4", program=program)
                self.assert_the_slowest(self.kept(run.trace), log, 4)

    def test_a_moments_times_are_of_the_moment(self):
        run, _ = self.run_watched("--slowest", "^request:4")
        moment = self.kept(run.trace)[0]
        number, length = str(moment["number"]), moment["kept_to_ns"] - moment["kept_from_ns"]
        part = json.loads(subprocess.run([KARST, "report", "--json", "--kept", number, str(run.trace.path)], check=True,
                                         capture_output=True, text=True).stdout)
        most = (length + 2) * part["threads"]
        self.assertTrue(part["functions"])
        self.assertLessEqual(sum(f["self_ns"] for f in part["functions"]), most)
        self.assertLessEqual(max(f["total_ns"] for f in part["functions"]), most)
        events = json.loads(subprocess.run([KARST, "export", "--to", "chrome", "-o", "-", "--kept", number, str(run.trace.path)],
                                           check=True, capture_output=True, text=True).stdout)["traceEvents"]
        self.assertLessEqual(max(e["dur"] for e in events if e.get("ph") == "X"), length / 1000 + 0.01)

    def test_memory_that_is_too_small(self):
        run, log = self.run_watched("--slowest", "^request:50", "--kept-memory", "64K")
        kept = self.kept(run.trace)
        self.assert_the_slowest(kept, log, 50)
        self.assertTrue(any(m["gave_up"] for m in kept))
        self.assertTrue(all(m["whole_from_ns"] > m["kept_from_ns"] for m in kept if m["gave_up"]))
        self.assertIn("memory was too small", subprocess.run([KARST, "info", str(run.trace.path)], capture_output=True,
                                                             text=True).stdout)

    def test_killed(self):
        run, log = self.run_watched("--slowest", "^request:3", arguments=["kill"], memory="64M", status=128 + signal.SIGKILL)
        kept = self.kept(run.trace)
        self.assert_the_slowest(kept, log, 3)
        last = max(kept, key=lambda m: m["end_ns"])
        self.assertGreater(last["end_ns"] - last["begin_ns"], 29e6)
        for moment in kept:  # memory was large enough for all that happened
            self.assertTrue(self.assert_has_its_call(run.trace, moment, log), moment)

    def test_forked_child(self):
        run, _ = self.run_watched("--slowest", "^request:3", arguments=["fork"])
        parts = run.out.split("rate")
        of_parent, of_child = sorted(run.trace.processes, key=lambda p: p["pid"])
        before, child = (Log(part[part.find("\n") + 1 if i else 0:] + "rate " + parts[i + 1].split("\n")[0])
                         for i, part in enumerate(parts[:2]))
        self.assertGreater(len(before.calls), 200)
        kept = self.kept(run.trace)
        self.assert_the_slowest([m for m in kept if m["pid"] == of_child["pid"]], child, 3)
        self.assertEqual(len([m for m in kept if m["pid"] == of_parent["pid"]]), 3)

    def test_library_that_comes_later(self):
        plugin = self.plugin()
        run, _ = self.run_watched("--slowest", "^plugin_work", arguments=["plugin", plugin])
        self.assertEqual(len(self.kept(run.trace, "plugin_work")), 5)

    def test_set_in_the_environment(self):
        run = self.run_traced(self.program(), "serve", env={"KARST_OPTIONS": "memory=4M,slowest=^request:2,margin=1us"})
        self.assert_the_slowest(self.kept(run.trace), Log(run.out), 2)

    def assert_keeper_is_polite(self, pid):
        """What copies takes no processor from the threads whose calls it keeps."""
        (keeper,) = [int(child) for task in os.listdir(f"/proc/{pid}/task")
                     for child in pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split()
                     if pathlib.Path(f"/proc/{child}/comm").read_text() == "karst-maint\n"]
        if os.sched_getscheduler(pid) == os.SCHED_OTHER and "Seccomp:\t0" in pathlib.Path(f"/proc/{pid}/status").read_text():
            self.assertEqual(os.sched_getscheduler(keeper), os.SCHED_BATCH)

    @contextlib.contextmanager
    def waiting_program(self, *launcher):
        """A process that goes a round at each line of its input."""
        env = dict(os.environ)
        if not launcher:  # one that nobody has started for it
            env.update(LD_PRELOAD=str(support.BIN.parent / "lib" / "libkarst.so.0"),
                       KARST_OPTIONS=f"memory=4M,signal=USR2,snapshots={self.directory}")
        child = subprocess.Popen([*launcher, self.program(), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 text=True, env=env)
        try:
            self.assertEqual(child.stdout.readline(), "ready\n")
            yield child
            child.stdin.close()
            self.assertEqual(child.wait(support.TIMEOUT), 0)
        finally:
            child.kill()
            child.wait()
            child.stdout.close()

    def round(self, child, line=""):
        child.stdin.write(line + "\n")
        child.stdin.flush()
        text = ""
        for line in child.stdout:
            text += line
            if line.startswith("rate"):
                break
        return text

    def karst(self, *arguments, status=0):
        done = subprocess.run([KARST, *map(str, arguments)], capture_output=True, text=True, timeout=support.TIMEOUT)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout + done.stderr

    def snapshot(self, pid):
        path = self.directory / "snapshot.karst"
        self.karst("snapshot", pid, "-o", path)
        return [m for m in Trace(path).info["kept"] if m["kind"] == "slowest"]

    def test_running_process(self):
        """`karst on` sets watches in a process that nobody has started for it; `karst snapshot` has what they kept."""
        with self.waiting_program() as child:
            self.assertIn("1 function watched", self.karst("on", child.pid, "--slowest", "^request:4"))
            self.assert_keeper_is_polite(child.pid)
            text = self.round(child) + self.round(child)
            self.assert_the_slowest(self.snapshot(child.pid), Log(text), 4)
            # What the process writes itself has them, too.
            child.send_signal(signal.SIGUSR2)
            path = self.directory / f"watch_requests-{child.pid}-1.karst"
            self.assertTrue(any(path.exists() or time.sleep(0.05) for _ in range(support.TIMEOUT * 20)))
            kept = Trace(path).info["kept"]
            self.assertEqual([m["kind"] for m in kept if m["kind"] != "slowest"], ["signal"])
            # But for calls whose events the ring has lost since: those are in karst snapshot alone.
            ours = durations([m for m in kept if m["kind"] == "slowest"])
            its = durations(self.snapshot(child.pid))
            self.assertTrue(1 <= len(ours) <= len(its), (ours, its))
            for duration in ours:
                self.assertTrue(any(abs(duration - other) <= other * SLACK + 1 for other in its), (ours, its))
            self.assertIn("is one that --slowest or --over means",
                          self.karst("on", child.pid, "--slowest", "no_such_function", status=1))

    def test_watches_end_and_change(self):
        with self.waiting_program() as child:
            def kept_by(rule):
                return [m for m in self.snapshot(child.pid) if m["what"] == rule]

            self.karst("on", child.pid, "--slowest", "^request:4", "--slowest", "^relay")
            first = self.round(child)
            self.assertIn("1 function watched in the place of 1;", self.karst("on", child.pid, "--slowest", "^request:2"))
            status = self.karst("status", child.pid)
            self.assertIn("--slowest ^request:2: 1 function", status)
            self.assertIn("--slowest ^relay: 1 function", status)
            self.assertNotIn("^request:4", status)
            second = self.round(child)
            self.assert_the_slowest(kept_by("^request:4"), Log(first), 4)
            self.assert_the_slowest(kept_by("^request:2"), Log(second), 2)
            # Nothing is watched; what was kept stays.
            self.assertIn("2 watches ended", self.karst("off", child.pid, "--watches"))
            self.assertNotIn("watching", self.karst("status", child.pid))
            before = self.snapshot(child.pid)
            self.round(child)
            after = self.snapshot(child.pid)
            self.assertEqual([m["what"] for m in after], [m["what"] for m in before])
            for ours, its in zip(durations(after), durations(before)):
                self.assertAlmostEqual(ours, its, delta=its * SLACK + 1)
            self.assertIn("nothing was watched", self.karst("off", child.pid, "--watches"))
            # Back again it goes on with what it has.
            self.karst("on", child.pid, "--slowest", "^request:2")
            fourth = self.round(child)
            self.assert_the_slowest(kept_by("^request:2"), Log(second + fourth), 2)
            self.assertIn("1 watch ended",
                          self.karst("on", child.pid, "--over", "^relay:1s", "--for", "10ms"))
            self.karst("off", child.pid, "--watches", "--for", "1s", status=2)
            self.karst("on", child.pid, "--slowest", "^request", "--functions", "x", status=2)
            self.karst("on", child.pid, "--stay", status=2)

    def plugin(self):
        return build("moments_plugin", "moments/plugin.c", "-O2", "-shared", "-fPIC", output="watch_plugin.so",
                     compiler="karst-gcc")

    def test_libraries_that_come_to_a_running_process(self):
        with self.waiting_program() as child:
            stays = subprocess.Popen([KARST, "on", str(child.pid), "--slowest", "^plugin_work", "--stay"],
                                     stderr=subprocess.PIPE, text=True)
            try:
                self.assertIn("0 functions watched", stays.stderr.readline())
                self.round(child, str(self.plugin()))
                self.assertIn("1 function of a library that has come watched", stays.stderr.readline())
                self.round(child, str(self.plugin()))
                self.assertEqual(len(self.snapshot(child.pid)), 5)
                stays.send_signal(signal.SIGINT)
                self.assertEqual(stays.wait(support.TIMEOUT), 0)
            finally:
                stays.kill()
                stays.wait()
                stays.stderr.close()

    def test_karst_on_beside_karst_run(self):
        """What `karst on` asked for holds for libraries that come later to a process that karst run has."""
        path = self.directory / "run.karst"
        with self.waiting_program(KARST, "run", "-o", str(path), "--") as run:
            (child,) = map(int, pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split())
            self.assertIn("1 function watched", self.karst("on", child, "--slowest", "^(relay|plugin_work)"))
            self.round(run, str(self.plugin()))
        kept = self.kept(Trace(path), "plugin_work")
        self.assertEqual(len(kept), 5)

    def test_what_cannot_be(self):
        for options in (["--slowest", "f:0"], ["--over", "f"], ["--over", "f:20"], ["--over", "f:20ms:0"],
                        ["--over", "f:20ms:5/x"], ["--margin", "x"], ["--kept-memory", "x"]):
            done = subprocess.run([KARST, "run", *options, "true"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, (options, done.stderr))
        run = self.run_traced(self.program(), options=["--slowest", "no_such_function"])
        self.assertIn("no traced function is one that --slowest or --over watches", run.err)
        run = self.run_traced(self.program(), options=["--slowest", "^request", "--prefault", "--memory", "1M"])
        self.assertIn("are not watched for slow calls", run.err)


if __name__ == "__main__":
    support.main()
