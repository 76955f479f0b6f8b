"""karst run --sched: thread states in the trace, by each way there is, with and without privileges."""
import ctypes
import json
import os
import re
import signal
import struct
import subprocess
import sys
import unittest
from pathlib import Path

import support
from support import KARST, TIMEOUT

sys.path.insert(0, str(support.ROOT / "test" / "docs"))
import decode_trace  # noqa: E402

NOBODY = 65534
SWITCH, WAKING, LOST_BEGIN, WAKES_BEGIN = 1, 2, 8, 10
UNKNOWN = 0xFFFFFFFF  # a tid
RUNNABLE = 256


def forbid(*numbers):
    """A seccomp filter, as containers have: these system calls fail with EPERM."""
    program = [(0x20, 0, 0, 0)]  # the number
    for number in numbers:
        program += [(0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | 1)]
    program.append((0x06, 0, 0, 0x7FFF0000))
    code = b"".join(struct.pack("<HBBI", *line) for line in program)
    buffer = ctypes.create_string_buffer(code)
    description = struct.pack("<HxxxxxxQ", len(program), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, description, 0, 0) != 0:
        os._exit(99)


def become_nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


class KernelText:
    """The switches of each CPU while it is open, in the kernel's own text, by an instance of the test's own."""

    LINE = re.compile(r"sched_switch: prev_comm=.* prev_pid=(\d+) prev_prio=-?\d+ prev_state=(\S+) "
                      r"==> next_comm=.* next_pid=(\d+)")

    def __init__(self, instances):
        self.path = instances / f"switches-{os.getpid()}"
        self.switches = {}

    def write(self, name, text):
        (self.path / name).write_text(text)

    def __enter__(self):
        self.path.mkdir()
        try:
            self.write("tracing_on", "0")
            self.write("buffer_size_kb", "4096")
            self.write("events/sched/sched_switch/enable", "1")
            self.write("tracing_on", "1")
        except OSError:
            self.path.rmdir()
            raise
        return self

    def __exit__(self, *_):
        try:
            self.write("tracing_on", "0")
            for cpu in (self.path / "per_cpu").iterdir():
                stats = dict(line.split(": ") for line in (cpu / "stats").read_text().splitlines())
                if all(int(stats[name]) == 0 for name in ("overrun", "commit overrun", "dropped events")):
                    found = (self.LINE.search(line) for line in (cpu / "trace").read_text().splitlines())
                    self.switches[int(cpu.name[3:])] = [self.said(m) for m in found if m]
        finally:
            self.path.rmdir()

    @staticmethod
    def said(match):
        letter = match[2][0]  # of several states the lowest bit, which comes first
        return int(match[1]), int(match[3]), letter, letter == "R" or match[2].endswith("+")


def contains(whole, part):
    """The part occurs in the whole, without a hole in either."""
    return any(whole[at:at + len(part)] == part for at in range(len(whole) - len(part) + 1))


class SchedTest(support.TracedTest):
    SCHED = ()

    def setUp(self):
        super().setUp()
        self.program = support.build("waits", "sched/waits.cc", "-O1", "-pthread")
        self.directory.chmod(0o777)
        # A place for what is said once, and for symbols, that any user may write to.
        self.home = {"XDG_CACHE_HOME": str(self.directory / "cache")}

    def record(self, *options, rounds=10, **more):
        run = self.run_traced(self.program, rounds, options=options, env=self.home, **more)
        self.states = run.trace.info["states"]
        return run

    def records(self, run):
        return [dict(zip(("ticks", "tid", "other", "value", "cpu", "kind"), r))
                for r in decode_trace.Trace(run.trace.path.read_bytes()).states]

    def need(self, backend):
        if self.states["backend"] != backend:
            self.skipTest(self.states["note"])

    def lost(self):
        """The kernel's rings may overflow on a busy machine; what is not known then is not wrong."""
        return self.states["lost_events"] + self.states["overwritten_events"] > 0

    def assert_waits(self, run):
        """The main thread left its CPU not able to run on, and had one for what it computed."""
        main = run.trace.processes[0]["pid"]
        away = [r for r in self.records(run) if r["kind"] == SWITCH and r["tid"] == main and not r["value"] & RUNNABLE]
        if self.lost():
            return
        self.assertGreaterEqual(len(away), 1)
        done = subprocess.run([KARST, "report", "--format", "json", run.trace.path], capture_output=True, text=True,
                              check=True)
        of = {f["function"]: f for f in json.loads(done.stdout)["functions"]}
        # compute() computes until its thread's own clock says 19 to 20 ms. That clock runs already while the kernel puts the
        # thread on a CPU, behind which the record of it is written; a hypervisor may stop the CPU in between. Where the
        # kernel left out a record it is not known what the thread did; that is never called a wait.
        compute = of["compute(int)"]
        self.assertGreater(compute["cpu_ns"] + compute["unknown_ns"], 9_500_000, self.states)
        if self.states["left_out"] == 0:
            self.assertEqual(compute["unknown_ns"], 0, self.states)
            self.assertGreater(of["doze()"]["blocked_ns"], 0)
        for function in of.values():
            parts = sum(function[part] for part in ("cpu_ns", "runnable_ns", "blocked_ns", "unknown_ns"))
            self.assertAlmostEqual(parts, function["total_ns"], delta=1000, msg=str(function))

    def test_auto_takes_the_best_and_info_says_which(self):
        run = self.record()
        if self.states["backend"] == "none":
            self.skipTest(self.states["note"])
        self.assertEqual(self.states["note"] == "", self.states["backend"] == "ftrace")
        self.assertLess(self.states["clock_error_ns"], 2000)
        self.assertTrue(self.states["threads"] >= 2 or self.lost())
        self.assert_waits(run)
        self.assertEqual(len(self.lines_of_karst(run)), 1, "never a warning")
        text = subprocess.run([KARST, "info", run.trace.path], capture_output=True, text=True, check=True).stdout
        self.assertIn("states       by " + ("ftrace" if self.states["backend"] == "ftrace" else "perf events"), text)
        self.assertIn(self.states["note"], text)

    def test_perf_events_as_any_user(self):
        more = {}
        if os.geteuid() == 0:
            if subprocess.run([KARST, "--version"], preexec_fn=become_nobody, capture_output=True).returncode != 0:
                self.skipTest("another user cannot reach the build")
            more["preexec_fn"] = become_nobody
        run = self.record(**more)
        self.need("perf")
        self.assertIn("run karst as root", self.states["note"])
        self.assertFalse(self.states["wakers"])
        self.assert_waits(run)
        self.assertEqual(len(self.lines_of_karst(run)), 1)

    def test_perf_events_by_name(self):
        run = self.record("--sched", "perf")
        self.need("perf")
        self.assertGreater(self.states["page_faults"], 0)
        self.assert_waits(run)

    def test_ftrace_knows_wakers(self):
        run = self.record("--sched", "ftrace", "--syscalls")
        self.need("ftrace")
        self.assertTrue(self.states["wakers"] and self.states["other_processes"] and self.states["system_calls"])
        tids = [t["tid"] for t in run.trace.threads]
        records = self.records(run)
        pairs = {(r["other"], r["tid"]) for r in records if r["kind"] == WAKING}
        self.assertTrue({tuple(tids), tuple(reversed(tids))} & pairs or self.lost(), f"{tids} {pairs}")
        self.assert_waits(run)

    def test_what_ftrace_leaves_out_is_filled_by_perf_events(self):
        """Three threads take turns on the CPUs, for a time that their own clocks tell: nearly none of it is unknown."""
        self.program = support.build("spins", "sched/spins.cc", "-O1", "-pthread")
        run = self.run_traced(self.program, options=("--sched", "ftrace"), env=self.home)
        self.states = run.trace.info["states"]
        self.need("ftrace")
        if self.lost():
            self.skipTest(f"records were lost: {self.states}")
        done = subprocess.run([KARST, "report", "--format", "json", run.trace.path], capture_output=True, text=True,
                              check=True)
        spin = next(f for f in json.loads(done.stdout)["functions"] if f["function"] == "spin()")
        self.assertLess(spin["unknown_ns"], 0.01 * spin["total_ns"], self.states)
        # What a hypervisor takes is no thread's time, and is not recorded.
        self.assertGreater(spin["cpu_ns"], 0.98 * 3 * 500e6, self.states)

    def test_asked_for_by_name_they_are_kept_without_calls(self):
        """Of a program that is not traced: threads of it and of its children, each with what it did."""
        plain = support.build("waits_plain", "sched/waits.cc", "-O1", "-pthread", compiler="g++")
        for options in (("--sched", "perf"), ("--sched", "ftrace"), ("--cpus",)):
            with self.subTest(options):
                run = self.run_traced("sh", "-c", f"{plain} 10; true", options=("--no-patch", *options), env=self.home)
                info = run.trace.info
                if info["states"]["backend"] == "none":
                    self.skipTest(info["states"]["note"])
                self.assertIn("and no calls", run.err)
                names = {p["name"]: p for p in info["processes"]}
                self.assertGreaterEqual(set(names), {"sh", "waits_plain"})
                self.assertGreater(len(names["waits_plain"]["threads"]), 1)
                self.assertEqual(info["calls"], 0)
        # Without being asked for nothing is kept that has no calls.
        done = subprocess.run([KARST, "run", "--no-patch", "-o", "none.karst", plain, "10"], capture_output=True,
                              text=True, cwd=self.directory, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertFalse((self.directory / "none.karst").exists())

    def test_cpus_have_all_that_ran(self):
        """Each CPU's switches are those that the kernel itself tells, in its own words, of the same time."""
        self.instances()
        with KernelText(self.place) as text:
            run = self.record("--sched", "ftrace", "--cpus")
        self.need("ftrace")
        ours = {t["tid"] for t in run.trace.threads}
        others = 0
        for cpu, stretches in self.switches(run).items():
            for stretch in stretches:
                others += sum(1 for left, came, _, _ in stretch if not {left, came} & ours)
                if cpu in text.switches:  # else it lost some itself
                    self.assertTrue(contains(text.switches[cpu], stretch), f"CPU {cpu}: {len(stretch)} switches")
        self.assertTrue(others > 0 or self.lost())

    def switches(self, run):
        """Of each CPU (who left, who came, letter, could run on), in stretches in which nothing was lost; without those that
        the kernel's ftrace left out, of which perf events tell one of the two threads."""
        found = {}
        for r in self.records(run):
            stretches = found.setdefault(r["cpu"], [[]])
            if r["kind"] == LOST_BEGIN:
                stretches.append([])
            if r["kind"] == SWITCH and UNKNOWN not in (r["tid"], r["other"]):
                stretches[-1].append((r["tid"], r["other"], chr(r["value"] & 0xFF), bool(r["value"] & RUNNABLE)))
        return found

    def test_off_says_so(self):
        run = self.record("--sched", "off")
        self.assertEqual((self.states["backend"], self.states["records"]), ("none", 0))
        self.assertIn("--sched off", self.states["note"])
        self.assertEqual(len(self.lines_of_karst(run)), 1)

    def test_values_that_cannot_be_are_refused(self):
        for options in (["--sched", "magic"], ["--sched-memory", "12"], ["--sched-memory", "1K"]):
            done = subprocess.run([KARST, "run", *options, "--", "true"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, options)

    def test_memory_is_bounded_and_the_newest_stay(self):
        self.record("--sched-memory", "1M", rounds=25000)
        if self.states["backend"] == "none":
            self.skipTest(self.states["note"])
        self.assertLessEqual(self.states["records"], (1 << 20) // 24 + 100)
        self.assertGreater(self.states["overwritten_events"] + self.states["lost_events"], 0)

    def overflow(self, backend):
        """Karst stands still while the program switches more often than the kernel's rings have room for."""
        program = support.build("attached", "sched/attached.cc", "-O1", "-pthread")
        path = self.directory / "overflow.karst"
        run = subprocess.Popen([KARST, "run", "--sched", backend, "--sched-memory", "1M", "-o", path, "--", program,
                                "20000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               text=True)
        try:
            self.assertIn("ready", run.stdout.readline())
            run.send_signal(signal.SIGSTOP)
            run.stdin.write("go\n")
            run.stdin.flush()
            self.assertEqual(run.stdout.readline(), "done\n")
        finally:
            run.send_signal(signal.SIGCONT)
            run.communicate(timeout=TIMEOUT)
        trace = support.Trace(path)
        self.states = trace.info["states"]
        self.need(backend)
        self.assertGreater(self.states["lost_events"], 0, self.states)
        self.assertGreater(self.states["gaps"], 0, self.states)
        of = {f["function"]: f for f in trace.report()}
        self.assertGreater(of["ask()"]["unknown_ns"] + of["answer()"]["unknown_ns"], 0, self.states)
        for function in of.values():
            parts = sum(function[part] for part in ("cpu_ns", "runnable_ns", "blocked_ns", "unknown_ns"))
            self.assertAlmostEqual(parts, function["total_ns"], delta=1000, msg=str(function))

    def test_what_perf_events_lose_is_a_gap(self):
        self.overflow("perf")

    def test_what_ftrace_loses_is_a_gap(self):
        self.overflow("ftrace")

    def test_where_nothing_works_calls_are_traced_and_it_is_said_once(self):
        perf_event_open, fsopen, mount = 298, 430, 165

        def confine():
            if os.geteuid() == 0:
                become_nobody()
            forbid(perf_event_open, fsopen, mount)

        if subprocess.run([KARST, "--version"], preexec_fn=confine, capture_output=True).returncode != 0:
            self.skipTest("another user cannot reach the build, or there is no seccomp")
        first = self.record(preexec_fn=confine)
        self.assertEqual((self.states["backend"], self.states["records"]), ("none", 0))
        self.assertIn("perf_event_open", self.states["note"])
        self.assertEqual(first.trace.counts["ask()"], 10)
        said = [line for line in self.lines_of_karst(first) if "when threads ran and waited" in line]
        self.assertEqual(len(said), 1, first.err)
        second = self.record(preexec_fn=confine)
        self.assertEqual(len(self.lines_of_karst(second)), 1, second.err)
        asked = self.record("--sched", "perf", preexec_fn=confine)
        self.assertEqual(len(self.lines_of_karst(asked)), 2, "who asks by name is told each time")

    def test_children_are_followed(self):
        run = self.run_traced("/bin/sh", "-c", f"{self.program} 3; {self.program} 4", env=self.home)
        states = run.trace.info["states"]
        if states["backend"] == "none":
            self.skipTest(states["note"])
        self.states = states
        if self.lost():
            self.skipTest("records were lost")
        named = {r["tid"] for r in self.records(run) if r["kind"] == SWITCH}
        for process in run.trace.processes:
            self.assertIn(process["pid"], named)

    def run_late(self, *command, options=()):
        """What the command wrote, and the trace."""
        path = self.directory / "late.karst"
        done = subprocess.run([KARST, "run", *options, "-o", path, "--", *command], capture_output=True, text=True,
                              env=os.environ | self.home, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = support.Trace(path)
        self.states = trace.info["states"]
        return done.stdout, trace

    def test_a_short_program_does_not_wait_for_ftrace(self):
        self.instances()
        self.run_late("/bin/true")
        self.need("perf")  # or the machine is so slow that it was no short one
        self.assertIn("ftrace joins a program that has run for 50 ms", self.states["note"])
        self.assertIn("--sched ftrace", self.states["note"])
        self.assertNotIn("wakers_from_ns", self.states)
        self.assertGreater(self.states["records"], 0)

    def test_ftrace_joins_a_program_that_runs(self):
        """The first 50 ms are by perf events. All that run when ftrace joins are followed, and what they make later."""
        self.instances()
        script = f"sleep 0.5 & echo $!; {self.program} 3 >&2; sleep 0.3; {self.program} 4 >&2; wait"
        # The shell is not to wait for its own patches in these 50 ms. On a busy machine they are over all the same.
        for _ in range(5):
            text, trace = self.run_late("/bin/sh", "-c", script, options=("--no-patch",))
            self.need("ftrace")
            self.assertEqual(self.states["note"], "")
            self.assertGreater(self.states["wakers_from_ns"], 50_000_000)
            self.assertLess(self.states["wakers_from_ns"], self.states["span_ns"])
            if self.lost():
                self.skipTest(f"records were lost: {self.states}")
            decoded_file = decode_trace.Trace((self.directory / "late.karst").read_bytes())
            decoded = decoded_file.states
            records = [dict(zip(("ticks", "tid", "other", "value", "cpu", "kind"), r)) for r in decoded]
            joined = [i for i, r in enumerate(records) if r["kind"] == WAKES_BEGIN]
            self.assertEqual(len(joined), 1)
            before, behind = records[:joined[0]], records[joined[0]:]
            first, last = (p["pid"] for p in trace.processes if p["name"] == "waits")
            if any(r["kind"] == SWITCH and r["tid"] == first for r in before[:-50]):
                break
        else:
            self.skipTest("ftrace had joined before the program ran")
        # Until then, those are told whom the program's own threads woke.
        own = {tid for tid, _, of_run, _, _ in decoded_file.tasks if of_run}
        woken = [r for r in before if r["kind"] == WAKING]
        self.assertTrue(woken)
        self.assertEqual([r for r in woken if r["other"] not in own], [])
        self.assertTrue(any(r["kind"] == WAKING and r["tid"] == last for r in behind), "made later")
        self.assertTrue(any(r["kind"] == WAKING and r["tid"] == int(text) for r in behind), "made before")
        shown = subprocess.run([KARST, "info", self.directory / "late.karst"], capture_output=True, text=True, check=True)
        self.assertIn("other processes, both from ", shown.stdout)

    def instances(self):
        """Names of ftrace's instances; a test skips where they cannot be seen."""
        place = Path("/sys/kernel/tracing/instances")
        if not os.path.isdir(place):  # nor when one may not look
            place = self.directory / "tracefs"
            place.mkdir(exist_ok=True)
            if not (place / "instances").is_dir():
                done = subprocess.run(["mount", "-t", "tracefs", "none", place], capture_output=True, text=True)
                if done.returncode != 0:
                    self.skipTest("no tracefs: " + done.stderr)
                self.addCleanup(subprocess.run, ["umount", place], check=True)
            place = place / "instances"
        self.place = place
        return {p.name for p in place.iterdir()}

    def test_orphans_of_a_killed_karst_are_removed_at_the_next_start(self):
        self.instances()
        run = subprocess.Popen([KARST, "run", "--sched", "ftrace", "-o", self.directory / "killed.karst", "--",
                                self.program, "3", "stay"], stdout=subprocess.PIPE, text=True)
        self.assertEqual(run.stdout.readline(), "ready\n")
        mine = [name for name in self.instances() if name.startswith(f"karst-{run.pid}-")]
        program = subprocess.run(["pgrep", "-P", str(run.pid)], capture_output=True, text=True).stdout.split()
        run.send_signal(signal.SIGKILL)
        run.wait(TIMEOUT)
        for pid in program:
            os.kill(int(pid), signal.SIGKILL)
        run.stdout.close()
        if not mine:
            self.skipTest("ftrace cannot be had")
        # Any karst that starts may have removed it since; one that cannot, because somebody looks into it, goes on.
        for _ in range(5):
            self.record("--sched", "ftrace")
            self.need("ftrace")
            if mine[0] not in self.instances():
                return
        self.fail(f"{mine[0]} is still there")

    def test_recording_ends_with_the_trace_also_at_ctrl_c(self):
        self.instances()
        run = subprocess.Popen([KARST, "run", "-o", self.directory / "ended.karst", "--", self.program, "3", "stay"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.assertEqual(run.stdout.readline(), "ready\n")
        run.send_signal(signal.SIGTERM)  # passed on to the program, which ends
        run.wait(TIMEOUT)
        run.stdout.close()
        self.assertEqual([n for n in self.instances() if n.startswith(f"karst-{run.pid}-")], [])
        states = support.Trace(self.directory / "ended.karst").info["states"]
        if states["backend"] != "none":
            self.assertGreater(states["records"], 0)


if __name__ == "__main__":
    support.main()
