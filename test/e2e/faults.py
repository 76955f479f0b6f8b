"""Programs that end badly, and systems that forbid tracing: the trace up to the fault, and the program unharmed."""
import errno
import os
import resource
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

from support import KARST, TIMEOUT, Trace, TracedTest, build, main


def program():
    return build("faults", "faults/faults.cc", "-O1", "-fno-inline", "-fno-optimize-sibling-calls", "-pthread")


def launcher():
    return build("launcher", "faults/launcher.c", "-O1", compiler="gcc")


class Ends(TracedTest):
    def check_marker_is_last(self, trace):
        """Everything up to the last call is there, and the calls that never returned are open."""
        self.assert_whole(trace)
        tree = trace.tree()
        self.assertEqual(sum(line.endswith(" leaf()") for line in tree), 1000)
        self.assertTrue(tree[-2].startswith("  middle(") and tree[-1].startswith("    marker("), tree[-3:])
        self.assertEqual(trace.info["open_calls"], 3)  # main, middle, marker

    def check(self, how, status):
        run = self.run_traced(program(), how, status=status)
        self.check_marker_is_last(run.trace)
        return run

    def test_sigkill_by_itself(self):
        run = self.check("kill", 128 + 9)
        self.assertEqual(run.trace.processes[0]["signal"], 9)

    def test_segmentation_fault(self):
        self.check("segv", 128 + 11)

    def test_abort(self):
        self.check("abort", 128 + 6)

    def test__exit_in_the_depth(self):
        self.check("_exit", 7)

    def test_exit_in_the_depth(self):
        self.check("exit", 8)

    def start(self, how):
        path = self.directory / "trace.karst"
        karst = subprocess.Popen([KARST, "run", "-o", str(path), program(), how], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self.addCleanup(karst.kill)
        self.assertEqual(karst.stdout.readline(), "ready\n")
        return karst, Trace(path)

    def test_sigkill_from_outside(self):
        karst, trace = self.start("pause")
        children = Path(f"/proc/{karst.pid}/task/{karst.pid}/children").read_text().split()
        self.assertEqual(len(children), 1)
        os.kill(int(children[0]), signal.SIGKILL)
        karst.communicate(timeout=TIMEOUT)
        self.assertEqual(karst.returncode, 128 + 9)
        self.check_marker_is_last(trace)

    def test_deadlocked_program_ended_by_a_sigterm_to_karst_run(self):
        karst, trace = self.start("deadlock")
        karst.terminate()
        karst.communicate(timeout=TIMEOUT)
        self.assertEqual(karst.returncode, 128 + 15)
        self.assert_whole(trace)
        self.assertEqual(sum("take_both(" in line for line in trace.tree()), 2)  # each where it hangs
        self.assertEqual(len(trace.threads), 2)

    def test_stack_overflow(self):
        run = self.run_traced(program(), "overflow", status=128 + 11)
        self.assert_whole(run.trace)
        self.assertGreater(run.trace.counts["overflow(long)"], 1000)

    def test_stack_overflow_handled_on_another_stack(self):
        run = self.run_traced(program(), "overflow-handled", status=9)
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.counts["on_overflow(int)"], 1)
        self.assertEqual(run.trace.counts["leaf()"], 1001)

    def test_program_that_closes_all_descriptors(self):
        run = self.run_traced(program(), "close-all")
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.counts["leaf()"], 101000)


class Forbidden(TracedTest):
    """Where tracing is impossible: one line, and the program as if Karst were not there."""

    def under(self, restriction, how, **more):
        probe = subprocess.run([launcher(), restriction, "/bin/true"], capture_output=True, text=True)
        if probe.returncode == 77:
            raise unittest.SkipTest("this system does not know the restriction: " + probe.stderr.strip())
        # The launcher itself, which no wrapper built, is not what is traced.
        return self.run_traced(launcher(), restriction, program(), how, status=None, options=("--no-patch",), **more)

    def check_untraced(self, run, *words):
        self.assertEqual(run.out, "1000\n")
        lines = [line for line in run.err.splitlines() if "runs untraced" in line]
        self.assertEqual(len(lines), 1, run.err)
        for word in words:
            self.assertIn(word, lines[0])
        self.assertFalse(run.written)
        self.assertEqual(run.status, 1, run.err)  # a run without a trace is no success
        self.assertIn("no trace was written", run.err)

    def test_seccomp_that_denies_memfd_create(self):
        self.check_untraced(self.under("deny-memfd", "none"), "memfd_create")

    def test_w_xor_x_policy(self):
        self.check_untraced(self.under("deny-exec-gain", "none"), "W^X")

    def test_address_space_too_small_for_the_arena(self):
        self.check_untraced(self.under("little-memory", "none"), "memory")

    def test_untraced_program_keeps_its_own_status(self):
        run = self.under("deny-memfd", "_exit")
        self.assertEqual(run.status, 7)

    def test_program_that_runs_out_of_memory_keeps_its_trace(self):
        run = self.under("some-memory", "eat")
        self.assertEqual(run.status, 0, run.err)
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.counts["leaf()"], int(run.out))

    def test_few_descriptors_are_enough(self):
        run = self.under("few-descriptors", "none")
        self.assertEqual((run.status, run.out), (0, "1000\n"), run.err)
        self.assertEqual(run.trace.counts["leaf()"], 1000)

    def test_no_descriptors_to_spare_leave_the_program_unharmed_and_say_so(self):
        run = self.under("no-descriptors", "none")
        self.assertEqual(run.out, "1000\n", run.err)
        self.assertFalse(run.written)
        self.assertNotEqual(run.status, 0)
        self.assertIn("descriptor", run.err)

    def test_a_filter_against_nearly_all_system_calls_after_prefault(self):
        # More events than the first step of memory holds, without a system call.
        run = self.run_traced(program(), "strict", options=("--prefault", "--memory", "16M"))
        self.assertEqual(run.out, "strict\n")
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.counts["leaf()"], 301000)

    def test_strict_seccomp_ends_the_trace_and_not_the_program(self):
        run = self.run_traced(program(), "no-clock")
        self.assertEqual(run.out, "no clock\n", run.err)
        self.assertIn("gives up reading the processor's clock", run.err)
        self.assertEqual(run.trace.counts["leaf()"], 2000)  # not the 1,000 after it


class Calls(TracedTest):
    """Each system call of karst's own process fails, one after the other: the program's result stands, and karst ends
    by itself, with a word about it."""

    ERRORS = (errno.EMFILE, errno.ENOMEM, errno.ENOSPC, errno.EINTR, errno.EPERM)
    # Their failure is no answer that the system gives: libc ends a process at it, or nobody looks.
    SPARED = {"exit", "exit_group", "rt_sigreturn", "futex", "rt_sigprocmask", "rt_sigaction", "munmap", "sched_yield",
              "restart_syscall", "set_robust_list", "rseq", "gettid", "getpid", "getppid", "geteuid", "getuid", "getegid",
              "getgid", "getpgrp", "umask", "alarm", "tgkill", "kill", "sched_getaffinity"}
    BOUND = 100  # seconds: one on a quiet machine; each call is stopped at twice, and karst may look through /proc

    def setUp(self):
        super().setUp()
        self.injector = build("fail_calls", "faults/fail_calls.cc", "-O1", "-lseccomp", compiler="g++")
        self.report = self.directory / "report"
        self.work = self.directory / "work"
        self.work.mkdir()

    def under(self, how, command, act=None):
        """Runs the command under the injector. Returns what it printed, its wait status and whether a call failed.
        `act` is given the process while it runs."""
        self.report.unlink(missing_ok=True)
        with open(self.directory / "out", "w+", encoding="utf-8") as out, open(self.directory / "err", "w+",
                                                                             encoding="utf-8") as err:
            made = subprocess.Popen([self.injector, self.report, *map(str, how), *map(str, command)], cwd=self.work,
                                    stdout=out, stderr=err, stdin=subprocess.DEVNULL)
            try:
                if act:
                    act(made)
                made.wait(timeout=self.BOUND)
            except subprocess.TimeoutExpired:
                self.fail(f"{how}: karst does not end\n" + (self.directory / "err").read_text())
            finally:
                made.kill()  # and karst with it
                made.wait()
            for file in (out, err):
                file.seek(0)
            text = out.read(), err.read()
        if made.returncode == 77:
            self.skipTest("no process can be traced here: " + text[1])
        self.assertEqual(made.returncode, 0, text)
        lines = self.report.read_text().splitlines()
        return *text, int(lines[-1]), lines[:-1]

    def kinds(self, command, act=None):
        out, err, status, lines = self.under(["count"], command, act)
        self.assertTrue(os.WIFEXITED(status), (out, err))
        counts = {name: int(count) for name, count in (line.split() for line in lines)}
        return {name: count for name, count in counts.items() if name not in self.SPARED}

    def each(self, command, check, act=None, clean=lambda: None):
        """Lets calls fail by turns: one of each kind, or as many as KARST_FAULTS_OF_EACH says, each with each error
        (script/soak faults calls)."""
        most = int(os.environ.get("KARST_FAULTS_OF_EACH", "0"))
        turn = int(os.environ.get("KARST_FAULTS_SEED", "0"))
        for name, count in sorted(self.kinds(command, act).items()):
            # Later ones may be more or fewer than they were when they were counted.
            some = sorted({1, min(2, count), count // 2 + 1, count})
            numbers = range(1, count + 1, max(1, count // most)) if most else [some[turn % len(some)]]
            for nth in numbers:
                for error in self.ERRORS if most else [self.ERRORS[turn % len(self.ERRORS)]]:
                    turn += 1
                    clean()
                    out, err, status, _ = self.under([name, nth, error, "once"], command, act)
                    what = f"{name} number {nth} of {count}: {errno.errorcode[error]}\n{out}\n{err}"
                    with self.subTest(call=name, number=nth, error=errno.errorcode[error]):
                        self.assertTrue(os.WIFEXITED(status), f"killed by {status & 127}: {what}")
                        check(os.WEXITSTATUS(status), out, err, what)

    def run_command(self):
        return [KARST, "run", "-o", "t.karst", program(), "_exit"]

    def assert_said(self, err, what):
        if not what.startswith("write number"):  # that may have been the very line
            self.assertRegex(err, "(?m)^karst: ", what)

    def clean_work(self):
        for path in self.work.iterdir():
            path.unlink()

    def check_run(self, status, out, err, what):
        """The program ends with 7; where karst could not start it, karst says so."""
        left = set(os.listdir(self.work))
        self.assertLessEqual(left, {"t.karst"}, what)
        if status != 7:
            self.assertIn(status, (1, 127), what)
            self.assertIn("karst", err, what)
            self.assertFalse(left, what)
        elif not left:
            self.assert_said(err, what)
        else:
            self.assertEqual(subprocess.run([KARST, "info", self.work / "t.karst"], capture_output=True).returncode, 0,
                             what)

    def test_run(self):
        self.each(self.run_command(), self.check_run, clean=self.clean_work)

    def living(self):
        karst = subprocess.Popen([KARST, "run", "-o", self.directory / "living.karst", *self.SCHED, program(), "pause"],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(karst.stdout.close)
        self.addCleanup(karst.wait)
        self.addCleanup(karst.terminate)
        self.assertEqual(karst.stdout.readline(), "ready\n")
        return int(Path(f"/proc/{karst.pid}/task/{karst.pid}/children").read_text().split()[0])

    def check_snapshot(self, status, out, err, what):
        left = set(os.listdir(self.work))
        self.assertLessEqual(left, {"s.karst"}, what)
        if "whether its name is on the disk is not known" not in err:
            self.assertEqual(status, 0 if left else 1, what)
        self.assert_said(err, what)

    def test_snapshot(self):
        pid = self.living()
        self.each([KARST, "snapshot", pid, "-o", "s.karst"], self.check_snapshot, clean=self.clean_work)
        os.kill(pid, 0)

    def test_attach(self):
        plain = build("faults_plain", "faults/faults.cc", "-O1", "-fno-inline", "-pthread", compiler="g++")
        with subprocess.Popen([plain, "pause"], stdout=subprocess.PIPE, text=True) as paused:
            self.addCleanup(paused.kill)
            self.assertEqual(paused.stdout.readline(), "ready\n")

            def clean():
                subprocess.run([KARST, "detach", str(paused.pid)], capture_output=True, timeout=TIMEOUT)
                self.clean_work()

            def check(status, out, err, what):
                self.assertIsNone(paused.poll(), what)
                self.assertIn(status, (0, 1), what)
                self.assert_said(err, what)
                self.assertFalse([name for name in os.listdir(self.work) if not name.endswith(".karst")], what)

            self.each([KARST, "attach", paused.pid], check, clean=clean)
            paused.kill()

    def test_view(self):
        trace = self.directory / "viewed.karst"
        subprocess.run([KARST, "run", "-o", trace, *self.SCHED, program(), "none"], check=True, capture_output=True)

        def act(made):
            """Ends it when it has said where it listens, or could not."""
            end = time.monotonic() + self.BOUND
            while made.poll() is None and time.monotonic() < end:
                if "http" in (self.directory / "out").read_text():
                    children = Path(f"/proc/{made.pid}/task/{made.pid}/children").read_text().split()
                    for child in children:
                        os.kill(int(child), signal.SIGTERM)
                time.sleep(0.02)

        def check(status, out, err, what):
            self.assertIn(status, (0, 1), what)
            self.assertTrue(out.startswith("http") or err.startswith("karst: "), what)

        self.each([KARST, "view", "--no-browser", trace], check, act=act)

    def test_few_descriptors(self):
        """Not one that fails, but all from a number on."""
        for most in range(4, 40, 2):
            self.clean_work()
            done = subprocess.run(self.run_command(), cwd=self.work, capture_output=True, text=True, timeout=TIMEOUT,
                                  preexec_fn=lambda most=most: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)))
            self.assertGreaterEqual(done.returncode, 0, (most, done.stderr))
            self.check_run(done.returncode, done.stdout, done.stderr, f"{most} descriptors: {done.stderr}")


class Limits(TracedTest):
    """A limit on the size of files, and pipes that nobody reads, raise signals where a write fails."""

    def limited(self, size, *command, most=None, **more):
        most = size if most is None else most

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
        return subprocess.run([KARST, *map(str, command)], cwd=self.directory, capture_output=True, text=True,
                              timeout=TIMEOUT, preexec_fn=limit, **more)

    def test_a_limit_on_the_size_of_files(self):
        trace = self.directory / "whole.karst"
        self.assertEqual(self.limited(1 << 30, "run", "-o", trace, *self.SCHED, program(), "_exit").returncode, 7)
        for size in (0, 1, 100, 4096, 20000):
            for sched in (self.SCHED, ()):
                done = self.limited(size, "run", "-o", "limited.karst", *sched, program(), "_exit")
                self.assertEqual(done.returncode, 7, (size, done.stderr))
                self.assertRegex(done.stderr, "(?m)^karst: ")
                self.assertLessEqual(set(os.listdir(self.directory)), {"whole.karst", "limited.karst"}, done.stderr)
            live = self.limited(size, "run", "-o", "limited.karst", "--live=live", *self.SCHED, program(), "_exit")
            self.assertEqual(live.returncode, 7, (size, live.stderr))
            (self.directory / "live").unlink()
            for command in (["export", trace, "--to", "chrome", "-o", "out"], ["resolve", trace, "-o", "out"],
                            ["flame", trace, "--format", "svg", "-o", "out"]):
                made = self.limited(size, *command)
                self.assertIn(made.returncode, (0, 1), (size, command, made.stderr))
                if made.returncode == 1:
                    self.assertIn("File too large", made.stderr)
                    self.assertFalse((self.directory / "out").exists())
                (self.directory / "out").unlink(missing_ok=True)

    def test_the_programs_own_limit_and_signals_are_its_own(self):
        """It dies by SIGXFSZ and SIGPIPE under karst as it does without, and ignores them where its caller does."""
        for ending in ("file-size", "pipe"):
            number = signal.SIGXFSZ if ending == "file-size" else signal.SIGPIPE
            done = self.limited(1 << 16, "run", "-o", "own.karst", *self.SCHED, program(), ending,
                                most=resource.RLIM_INFINITY)
            self.assertEqual(done.returncode, 128 + number, done.stderr)

            def ignored(number=number):
                resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, resource.RLIM_INFINITY))
                signal.signal(number, signal.SIG_IGN)
            done = subprocess.run([KARST, "run", "-o", "own.karst", *self.SCHED, program(), ending], cwd=self.directory,
                                  capture_output=True, text=True, timeout=TIMEOUT, restore_signals=False,
                                  preexec_fn=ignored)
            self.assertEqual((done.returncode, done.stdout), (0, "it failed only\n1000\n"), done.stderr)

    def closed(self, streams, *command, **more):
        """Starts karst with pipes whose readers have gone."""
        ends = os.pipe()
        os.close(ends[0])
        to = {name: ends[1] if name in streams else subprocess.DEVNULL for name in ("stdout", "stderr")}
        try:
            return subprocess.Popen([KARST, *map(str, command)], cwd=self.directory, stdin=subprocess.DEVNULL,
                                    restore_signals=True, **to, **more)
        finally:
            os.close(ends[1])

    def test_readers_that_went_away(self):
        """karst does not die by SIGPIPE: the program's result, the trace and the status are as they would be."""
        for streams in (("stdout",), ("stderr",), ("stdout", "stderr")):
            with self.subTest(streams=streams):
                path = self.directory / "run.karst"
                run = self.closed(streams, "run", "-o", path, "--live", *self.SCHED, program(), "_exit")
                self.assertEqual(run.wait(timeout=TIMEOUT), 7)
                self.assertEqual(Trace(path).counts["leaf()"], 1000)
                for command in (["report", path], ["tree", path], ["report", "--format", "json", path], ["info", path],
                                ["help", "run"], ["report", "no-such-file"]):
                    self.assertIn(self.closed(streams, *command).wait(timeout=TIMEOUT), (0, 1), command)
                shutil.rmtree(self.directory / "cache", ignore_errors=True)
                view = self.closed(streams, "view", "--no-browser", path)
                time.sleep(0.3)
                view.terminate()
                self.assertIn(view.wait(timeout=TIMEOUT), (0, 1, -signal.SIGTERM))

    def test_lookers_whose_readers_went_away(self):
        karst = subprocess.Popen([KARST, "run", "-o", self.directory / "living.karst", *self.SCHED, program(), "leaves"],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(karst.stdout.close)
        self.addCleanup(karst.wait)
        self.addCleanup(karst.terminate)
        self.assertEqual(karst.stdout.readline(), "ready\n")
        for streams in (("stdout",), ("stdout", "stderr")):
            for command in (["tail", "faults"], ["top", "faults"], ["top", "--once", "faults"], ["status", "faults"]):
                with self.subTest(streams=streams, command=command):
                    self.assertIn(self.closed(streams, *command).wait(timeout=TIMEOUT), (0, 1))


if __name__ == "__main__":
    main()
