"""What `karst run` does around the program: streams, signals, statuses, the trace file, options, refusals."""
import os
import pty
import pwd
import select
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

from support import KARST, TIMEOUT, Trace, TracedTest, build, main


def guest():
    return build("guest", "run/guest.cc", "-O1", "-fno-inline")


class RunTest(TracedTest):
    SCHED = ()

    def karst_run(self, *arguments, env=None, **more):
        """`karst run ARGUMENTS`, with nothing added."""
        more.setdefault("stdin", subprocess.DEVNULL)
        more.setdefault("cwd", self.directory)
        return subprocess.run([KARST, "run", *map(str, arguments)], env={**os.environ, **(env or {})}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT, **more)

    def files(self):
        return sorted(os.listdir(self.directory))


class Passing(RunTest):
    def test_standard_streams_pass_binary_data_unchanged(self):
        data = os.urandom(1 << 20) + bytes(range(256)) * 4
        run = self.run_traced(guest(), "echo", text=False, input=data)
        self.assertEqual(run.out, data)
        self.assert_whole(run.trace)
        run = self.run_traced(guest(), "stderr")
        self.assertTrue(run.err.startswith("to stderr\n"))
        self.assertEqual(run.out, "")

    def test_summary_is_one_line_on_stderr(self):
        run = self.run_traced(guest(), "calls", 41)
        self.assertEqual(len(run.err.splitlines()), 1, run.err)
        for words in ("trace.karst: 1 process, 1 thread, ", " calls kept over ", ", none overwritten"):
            self.assertIn(words, run.err)
        self.assertIn(f" {run.trace.info['calls']} calls kept", run.err)

    def test_the_line_leads_on(self):
        run = self.run_traced(guest(), "calls", 41)
        self.assertRegex(run.err, r"; tracing cost about \d+\.\d% of its CPU time; karst took \d+\.\d\d s: "
                                  r"\d+\.\d\d s before the program began, \d+\.\d\d s after it ended; "
                                  r"next: karst slow .*trace.karst$")
        run = self.run_traced(guest(), "signal", int(signal.SIGTERM), status=128 + signal.SIGTERM)
        self.assertIn("; the program was killed by SIGTERM; next: ", run.err)
        run = self.run_traced(guest(), "calls", 41, options=["--slowest", ".:1"])
        self.assertRegex(run.err, r"; \d+ moments? kept, the longest [\d.]+ [mun]?s in \w+")

    def test_exit_statuses_pass(self):
        for status in (0, 1, 2, 77, 126, 127, 128, 200, 255):
            run = self.run_traced(guest(), "exit", status, status=status)
            self.assertEqual(run.trace.processes[0]["exit_status"], status)

    def test_death_by_signal_is_128_and_its_number(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGABRT, signal.SIGUSR2, signal.SIGRTMIN + 3):
            run = self.run_traced(guest(), "signal", int(number), status=128 + number)
            self.assertEqual(run.trace.processes[0]["signal"], number)

    def start(self, *arguments, **more):
        path = self.directory / "trace.karst"
        karst = subprocess.Popen([KARST, "run", "-o", str(path), *arguments], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, cwd=self.directory, **more)
        self.addCleanup(karst.kill)
        self.assertEqual(karst.stdout.readline(), "ready\n")
        return karst, Trace(path)

    def test_signals_to_karst_run_are_passed_on(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            karst, trace = self.start(guest(), "handle")
            karst.send_signal(number)
            out, err = karst.communicate(timeout=TIMEOUT)
            self.assertEqual((karst.returncode, out), (40 + number, f"signal {int(number)}\n"), err)
            self.assertEqual(trace.counts["on_signal(int)"], 1)

    def test_inherited_ignored_sigchld_does_not_hang_it(self):
        # As under a parent that ignores SIGCHLD: the system then reaps children by itself.
        done = self.karst_run("-o", "t.karst", guest(), "exit", 3,
                              preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(done.returncode, 3, done.stderr)

    def on_terminal(self, mode):
        """Runs the guest under karst on a terminal of its own; returns its pid, the terminal and the trace."""
        path = self.directory / "trace.karst"
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(KARST, [KARST, "run", "-o", str(path), guest(), mode])
        self.addCleanup(os.close, terminal)
        self.read_until(terminal, b"ready")
        return pid, terminal, Trace(path)

    def read_until(self, terminal, word):
        seen = b""
        end = time.monotonic() + TIMEOUT
        while word not in seen and time.monotonic() < end:
            if select.select([terminal], [], [], 1)[0]:
                try:
                    seen += os.read(terminal, 4096)
                except OSError:  # the other end is closed
                    break
        self.assertIn(word, seen)

    def test_ctrl_c_ends_the_program_and_keeps_the_trace(self):
        pid, terminal, trace = self.on_terminal("wait")
        os.write(terminal, b"\x03")
        self.read_until(terminal, b"kept over")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 128 + signal.SIGINT)
        self.assertEqual(trace.counts["wait_for_signals()"], 1)
        self.assertEqual(trace.processes[0]["signal"], signal.SIGINT)

    def test_ctrl_c_reaches_a_handler_once(self):
        pid, terminal, trace = self.on_terminal("handle")
        os.write(terminal, b"\x03")
        self.read_until(terminal, b"signal 2")
        os.kill(pid, signal.SIGTERM)
        self.read_until(terminal, b"kept over")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 40 + signal.SIGTERM)
        self.assertEqual(trace.counts["on_signal(int)"], 2)

    def test_ctrl_c_does_not_end_a_program_that_ignores_it(self):
        pid, terminal, trace = self.on_terminal("ignore")
        os.write(terminal, b"\x03\x03")
        time.sleep(0.2)
        self.assertEqual(os.waitpid(pid, os.WNOHANG), (0, 0))
        os.kill(pid, signal.SIGTERM)
        self.read_until(terminal, b"kept over")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 128 + signal.SIGTERM)
        self.assertEqual(trace.processes[0]["signal"], signal.SIGTERM)

    def test_an_existing_preload_is_kept(self):
        library = shutil.which("true") and "/lib/x86_64-linux-gnu/libm.so.6"
        done = self.karst_run("-o", "t.karst", guest(), "env", "LD_PRELOAD", env={"LD_PRELOAD": library})
        self.assertEqual(done.returncode, 0, done.stderr)
        ours, kept = done.stdout.strip().split(":")
        self.assertTrue(ours.endswith("/libkarst.so.0"))
        self.assertEqual(kept, library)


class Output(RunTest):
    def test_default_name_is_the_programs_in_the_working_directory(self):
        done = self.karst_run(guest())
        self.assertEqual((done.returncode, self.files()), (0, ["guest.karst"]), done.stderr)

    def test_an_older_trace_is_kept_and_never_replaced_by_one_without_calls(self):
        for n in (41, 42):
            self.assertEqual(self.karst_run("-o", "t.karst", guest(), "calls", n).returncode, 0)
        self.assertEqual(self.files(), ["t.karst", "t.karst.old"])
        old, new = (Trace(self.directory / name) for name in ("t.karst.old", "t.karst"))
        self.assertIn("41", old.processes[0]["command_line"])
        self.assertIn("42", new.processes[0]["command_line"])
        done = self.karst_run("-o", "t.karst", "--off", guest(), "calls", 43)
        self.assertEqual(done.returncode, 0)
        self.assertIn("nothing was called: t.karst is the older trace still", done.stderr)
        self.assertEqual(self.files(), ["t.karst", "t.karst.old"])
        self.assertIn("42", Trace(self.directory / "t.karst").processes[0]["command_line"])
        (self.directory / "t.karst").write_text("some text, no trace")
        self.assertEqual(self.karst_run("-o", "t.karst", guest(), "calls", 44).returncode, 0)
        self.assertIn("41", Trace(self.directory / "t.karst.old").processes[0]["command_line"])

    def test_globs_that_mean_no_function_are_told(self):
        (self.directory / "list").write_text("nothing::*  # a comment\nmain\n")
        done = self.karst_run("--no-trace", "list", guest(), "calls", 4)
        self.assertEqual(done.returncode, 0)
        self.assertIn("no function matches the glob 'nothing::*' of --no-trace or --only", done.stderr)
        self.assertNotIn("'main'", done.stderr)

    @unittest.skipIf(os.geteuid() != 0, "only root can be called by sudo")
    def test_under_sudo_the_trace_belongs_to_the_caller(self):
        caller = {"SUDO_UID": "12345", "SUDO_GID": "12346"}
        self.assertEqual(self.karst_run("-o", "t.karst", guest(), "calls", 4, env=caller).returncode, 0)
        of = (self.directory / "t.karst").stat()
        self.assertEqual((of.st_uid, of.st_gid), (12345, 12346))

    @unittest.skipIf(os.geteuid() != 0, "only root may run a program as another user")
    def test_under_sudo_the_program_is_another_users_and_the_trace_the_callers(self):
        nobody = pwd.getpwnam("nobody")
        self.directory.chmod(0o755)
        program = shutil.copy(guest(), self.directory / "guest")
        for file in (program, Path(KARST).parent.parent / "lib/libkarst.so.0"):
            if subprocess.run(["test", "-r", file], user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[]).returncode:
                self.skipTest("this directory is root's alone")
        as_nobody = ("-o", "t.karst", "--user", "nobody", program)
        caller = {"SUDO_UID": "12345", "SUDO_GID": "12346"}
        done = self.karst_run(*as_nobody, "rights", env=caller)
        groups = len(os.getgrouplist("nobody", nobody.pw_gid))
        self.assertEqual(done.stdout, "uid {0} {0} gid {1} {1} groups {2}\n".format(nobody.pw_uid, nobody.pw_gid, groups),
                         done.stderr)
        self.assertEqual((self.directory / "t.karst").stat().st_uid, 12345)
        self.assertGreater(Trace(self.directory / "t.karst").info["calls"], 0)
        for name, value in (("HOME", nobody.pw_dir), ("USER", "nobody"), ("LOGNAME", "nobody"),
                            ("SHELL", nobody.pw_shell)):
            self.assertEqual(self.karst_run(*as_nobody, "env", name).stdout, value + "\n")
        (self.directory / "guest").chmod(0o700)
        self.assertIn("cannot run", self.karst_run(*as_nobody, "rights").stderr)

    @unittest.skipIf(os.geteuid() != 0, "only root may become somebody who is not root")
    def test_a_user_who_cannot_be(self):
        done = self.karst_run("--user", "no-such-user", guest())
        self.assertEqual(done.returncode, 2)
        self.assertIn("--user no-such-user: there is no user of that name here", done.stderr)
        done = self.karst_run("--user", "root", guest(), user=65534)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--user root: only root may run a program as another user", done.stderr)

    def test_output_goes_where_it_is_told(self):
        (self.directory / "sub").mkdir()
        self.assertEqual(self.karst_run("--output", "sub/x.trace", guest()).returncode, 0)
        self.assertEqual(os.listdir(self.directory / "sub"), ["x.trace"])
        self.assertEqual(os.stat(self.directory / "sub/x.trace").st_mode & 0o777, 0o600)

    def test_unwritable_output_is_found_before_the_program_runs(self):
        marker = self.directory / "marker"
        (self.directory / "file").write_text("")
        for place in ("missing/x.karst", "file/x.karst", ".", "/proc/x.karst"):
            done = self.karst_run("-o", place, guest(), "touch", marker)
            self.assertEqual(done.returncode, 1)
            self.assertIn(place, done.stderr)
            self.assertFalse(marker.exists(), place)
        self.assertEqual(self.karst_run("-o", "x.karst", guest(), "touch", marker).returncode, 0)
        self.assertTrue(marker.exists())

    def test_full_disk_at_the_end_says_what_was_needed_and_leaves_the_older_file(self):
        if os.geteuid() != 0:
            self.skipTest("only root may mount a small file system")
        disk = self.directory / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "karst-test", str(disk)], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("a small file system cannot be mounted here: " + mounted.stderr.decode())
        self.addCleanup(subprocess.run, ["umount", str(disk)])
        (disk / "x.karst").write_bytes(b"older")
        done = self.karst_run("--raw-events", "-o", disk / "x.karst", guest(), "calls", 100000)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"No space left on device; it needs \d+ bytes")
        self.assertEqual(os.listdir(disk), ["x.karst"])
        self.assertEqual((disk / "x.karst").read_bytes(), b"older")
        needed = int(done.stderr.split("it needs ")[1].split()[0])
        self.assertEqual(self.karst_run("--raw-events", "-o", "y.karst", guest(), "calls", 100000).returncode, 0)
        size = os.stat(self.directory / "y.karst").st_size
        self.assertLess(abs(size - needed), size // 10)

    def test_no_trace_file_is_left_when_nothing_was_traced(self):
        self.karst_run("--no-patch", "-o", "x.karst", "/bin/true")
        self.assertEqual(self.files(), [])


class Programs(RunTest):
    def refused(self, status, *arguments):
        done = self.karst_run(*arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith("karst: "), done.stderr)
        return done.stderr

    def test_missing_program_is_127(self):
        self.assertIn("no such program", self.refused(127, "./missing"))
        self.assertIn("in PATH", self.refused(127, "karst-no-such-program"))

    def test_file_that_may_not_be_executed_is_126(self):
        (self.directory / "data").write_text("x")
        self.assertIn("not executable", self.refused(126, "./data"))

    def test_program_without_sleds_is_told_how_to_be_built(self):
        message = self.refused(1, "--no-patch", "/bin/true")
        self.assertIn("karst-g++", message)

    def script(self, text):
        path = self.directory / "script"
        path.write_text(text)
        path.chmod(0o755)
        return path

    def test_script_that_runs_a_traced_program_gives_its_trace(self):
        run = self.run_traced(self.script(f"#!/bin/sh\n{guest()} exit 4\nexit 6\n"), status=6, options=("--no-patch",))
        self.assertEqual(len(run.trace.processes), 1)
        self.assertEqual(run.trace.counts["visited()"], 1)

    def test_script_that_runs_nothing_traced_is_explained(self):
        message = self.refused(1, "--no-patch", self.script("#!/bin/sh\nexit 0\n"))
        self.assertIn("is a script, run by /bin/sh", message)
        self.refused(3, "--no-patch", self.script("#!/bin/sh\nexit 3\n"))

    def test_script_without_interpreter_line_is_run_as_the_shell_does(self):
        run = self.run_traced(self.script(f"{guest()} exit 4\n"), status=4)
        self.assertEqual(run.trace.counts["visited()"], 1)

    def test_static_program_is_refused_with_what_to_do(self):
        (self.directory / "s.c").write_text("int main(void) { return 0; }\n")
        subprocess.run(["gcc", "-static", "s.c", "-o", "static"], cwd=self.directory, check=True)
        # Else it is sampled (samples_attach.py).
        self.assertIn("-static", self.refused(1, "--sample", "0", "./static"))
        self.assertIn("-static", self.refused(1, "--function", "main", "./static"))

    def test_setuid_program_is_refused(self):
        if os.geteuid() != 0:
            self.skipTest("only root may make a program that belongs to another user")
        copy = self.directory / "setuid"
        shutil.copy(guest(), copy)
        os.chown(copy, 65534, 65534)
        copy.chmod(0o4755)
        self.assertIn("setuid", self.refused(1, copy))

    def test_program_of_another_architecture_is_refused(self):
        data = bytearray(Path(guest()).read_bytes())
        data[18:20] = (183).to_bytes(2, "little")  # e_machine: aarch64
        path = self.directory / "foreign"
        path.write_bytes(data)
        path.chmod(0o755)
        self.assertIn("another architecture", self.refused(1, path))

    def test_damaged_program_is_refused_by_the_system_with_a_message(self):
        path = self.directory / "cut"
        path.write_bytes(Path(guest()).read_bytes()[:100])
        path.chmod(0o755)
        done = self.karst_run(path)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cut", done.stderr)


class Options(RunTest):
    def usage(self, *arguments):
        marker = self.directory / "marker"
        done = self.karst_run(*arguments, guest(), "touch", marker)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("karst help run", done.stderr)
        self.assertFalse(marker.exists())
        return done.stderr

    def test_a_pattern_that_is_no_expression_is_a_text(self):
        done = self.karst_run("--not-functions", "[z-a]", guest(), "touch", "m")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("karst: --not-function leaves out names that have '[z-a]' in them as it stands ('[z-a]' is no "
                      "regular expression", done.stderr)
        done = self.karst_run("--functions", "(nothing", guest(), "touch", "m")
        self.assertIn("leave none: no name matches '(nothing' ('(nothing' is no regular expression", done.stderr)

    def test_bad_sizes_and_options_are_refused_before_the_run(self):
        for size in ("", "x", "0", "1K", "65G", "-1M", "64Q", "1MM", "17179869185G", "18446744073709551616"):
            self.assertIn("size", self.usage("--memory", size).lower())
        self.assertIn("--bogus", self.usage("--bogus"))

    def test_options_end_at_the_program_or_at_two_dashes(self):
        for separator in ((), ("--",)):
            done = self.karst_run("-o", "x.karst", *separator, guest(), "env", "HOME", "--memory", "--", "-o")
            self.assertEqual((done.returncode, done.stdout.strip()), (0, os.environ.get("HOME", "(none)")), done.stderr)

    def test_functions_chooses_and_not_functions_leaves_out_also_before_main(self):
        def traced(*options, env=None):
            return set(self.run_traced(guest(), "calls", 2, options=options, env=env).trace.counts)

        everything = traced()
        self.assertLessEqual({"early()", "visited()", "main"}, everything)
        self.assertEqual(traced("--functions", "^(early|visited)\\("), {"early()", "visited()"})
        self.assertEqual(traced("--not-functions", "^early\\("), everything - {"early()"})
        self.assertEqual(traced("--functions", "e", "--not-functions", "main|init|GLOBAL"), {"early()", "visited()"})
        self.assertEqual(traced(env={"KARST_OPTIONS": "functions=^main$"}), {"main"})
        self.assertEqual(traced(env={"KARST_OPTIONS": "functions=^ear{1\\,2}ly"}), {"early()"})

    def test_patterns_that_leave_nothing_are_said(self):
        run = self.run_traced(guest(), options=("--functions", "no_such_function"))
        self.assertIn("leave none: no name matches 'no_such_function'\n", run.err)
        self.assertEqual(run.trace.info["events"], 0)
        near = self.run_traced(guest(), options=("--function", "earley"))
        self.assertIn("leave none: no name matches 'earley'; did you mean 'early'?\n", near.err)
        two = self.run_traced(guest(), options=("--function", "earley", "--function", "no_such_function"))
        self.assertIn("leave none: no name matches 'earley' or 'no_such_function'\n", two.err)
        # The name is there; it is another pattern that leaves it out.
        other = self.run_traced(guest(), options=("--function", "early", "--not-function", "early"))
        self.assertIn("leave none\n", other.err)

    def test_off_gives_a_trace_without_calls(self):
        for how in ({"options": ("--off",)}, {"env": {"KARST_OPTIONS": "off=1"}}):
            run = self.run_traced(guest(), "exit", 9, status=9, **how)
            self.assert_whole(run.trace)
            self.assertEqual(run.trace.info["events"], 0)
            self.assertEqual(len(run.trace.processes), 1)

    def test_unknown_and_malformed_entries_of_karst_options_are_said_once_and_ignored(self):
        run = self.run_traced(guest(), "calls", 5, env={"KARST_OPTIONS": "bogus=1,memory=oops,off=perhaps,memory=1M"})
        self.assertEqual(run.trace.counts["visited()"], 6)
        for word in ("bogus", "memory=oops", "off=perhaps"):
            self.assertEqual(sum(word in line for line in run.err.splitlines()), 1, run.err)

    def test_command_line_wins_over_karst_options(self):
        run = self.run_traced(guest(), "calls", 200000, options=("--memory", "64K"), env={"KARST_OPTIONS": "memory=64M"})
        self.assertGreater(run.trace.info["overwritten_events"], 0)

    def test_program_alone_runs_without_karst(self):
        done = subprocess.run([guest(), "exit", "12"], env={"KARST_OPTIONS": "memory=1M"}, capture_output=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (12, b"", b""))


if __name__ == "__main__":
    main()
