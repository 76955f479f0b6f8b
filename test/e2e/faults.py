"""Programs that end badly, and systems that forbid tracing: the trace up to the fault, and the program unharmed."""
import os
import signal
import subprocess
import unittest
from pathlib import Path

from torture_support import KARST, TIMEOUT, Trace, TortureTest, build, main


def program():
    return build("faults", "faults/faults.cc", "-O1", "-fno-inline", "-fno-optimize-sibling-calls", "-pthread")


def launcher():
    return build("launcher", "faults/launcher.c", "-O1", compiler="gcc")


class Ends(TortureTest):
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


class Forbidden(TortureTest):
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


if __name__ == "__main__":
    main()
