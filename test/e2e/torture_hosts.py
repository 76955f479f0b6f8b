"""Situations in which a guest could do harm to its host, or `karst run` to the shell that started it."""
import os
import resource
import signal
import subprocess

from support import KARST, TIMEOUT, TracedTest, build, main


def program():
    # ld warns of the segment that is writable and executable, which is what is wanted here.
    return build("hosts", "torture/hosts.c", "-O1", compiler="karst-gcc")


def plugin():
    return build("plugin", "torture/plugin.c", "-O1", "-shared", "-fPIC", "--karst-link", compiler="karst-gcc",
                 output="plugin.so")


class Hosts(TracedTest):
    def run_alone(self, *command, **more):
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_runtime_that_came_with_a_plugin_stays_when_the_plugin_goes(self):
        self.assertEqual(self.run_alone(program(), "plugin", plugin()), "42\n")

    def test_runtime_that_comes_late_under_a_storm_of_signals(self):
        for _ in range(20):
            self.assertEqual(self.run_alone(program(), "signals", plugin()), "42\n")

    def test_code_segment_that_is_writable_stays_so(self):
        run = self.run_traced(program())
        self.assertEqual(run.out, "1\n")
        self.assertEqual(run.trace.counts, {"main": 1, "work": 1})

    def test_child_forked_in_a_handler_returns_into_the_interrupted_hook(self):
        run = self.run_traced(program(), "forks", options=["--memory", "1M"])
        self.assertEqual(run.out, "0 crashed\n")

    def test_thread_with_an_area_of_the_programs_own(self):
        run = self.run_traced(program(), "foreign")
        self.assertEqual(run.out, "2000\n")
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.counts["work"], 2000)

    def test_program_that_stops_itself_alone_stops_karst_run_with_it(self):
        karst = subprocess.Popen([KARST, "run", "-o", str(self.directory / "trace.karst"), program(), "stop"],
                                 stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=os.setpgrp)
        self.addCleanup(karst.wait)
        self.addCleanup(karst.kill)
        _, status = os.waitpid(karst.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status), status)
        os.kill(karst.pid, signal.SIGCONT)  # as `fg` does
        self.assertEqual(karst.wait(TIMEOUT), 3)

    def test_messages_do_not_go_into_the_trace_when_standard_error_is_closed(self):
        run = self.run_traced(program(), "fd2", preexec_fn=lambda: os.close(2))
        self.assertEqual(run.out, "closed\n")
        self.assert_whole(run.trace)

    def limited(self, hard):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
        return self.run_traced(program(), preexec_fn=limit, status=0 if hard > 1 << 20 else None)

    def test_soft_limit_on_the_size_of_files(self):
        run = self.limited(resource.RLIM_INFINITY)
        self.assertEqual(run.trace.counts, {"main": 1, "work": 1})

    def test_hard_limit_on_the_size_of_files_leaves_the_program_untraced(self):
        run = self.limited(1 << 20)
        self.assertEqual(run.out, "1\n")
        # Root may raise it.
        self.assertTrue(run.written or "limit on the size of files" in run.err, run.err)


if __name__ == "__main__":
    main()
