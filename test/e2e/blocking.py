"""--all --blocking: a program waits rather than lose a call, and never for long where nobody takes them."""
import json
import os
import re
import signal
import subprocess
import time

import support
from support import KARST, TracedTest, build, main

ROUNDS = 400_000


class BlockingTest(TracedTest):
    # Sixteen blocks: what a thread fills in 100 us.
    SMALL = ("--budget", "off", "--memory", "64K", "--all")

    def program(self):
        return build("all_flood", "all/flood.c", "-O1", "-pthread", compiler="karst-gcc")

    def counts(self, trace):
        done = subprocess.run([KARST, "report", "--json", str(trace)], check=True, capture_output=True, text=True,
                              timeout=support.TIMEOUT)
        return {row["function"]: row["calls"] for row in json.loads(done.stdout)["functions"]}

    def start(self, trace, *arguments):
        """karst, and the number of the program's process once it runs."""
        karst = subprocess.Popen([KARST, "run", *self.SMALL, "--blocking", *self.SCHED, "-o", str(trace), "--",
                                  str(self.program()), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(karst.kill)
        end = time.monotonic() + support.TIMEOUT
        while time.monotonic() < end:
            found = subprocess.run(["pgrep", "-P", str(karst.pid), "-x", "all_flood"], capture_output=True, text=True,
                                   check=False).stdout.split()
            if found and trace.exists():  # it has its name once there are events
                return karst, int(found[0])
            time.sleep(0.01)
        self.fail("the program did not begin")

    def test_without_it_most_are_gone(self):
        run = self.run_traced(self.program(), str(ROUNDS), "2", "0", "0", options=self.SMALL)
        self.assertGreater(run.trace.info["overwritten_events"], 0)

    def test_threads_lose_nothing(self):
        run = self.run_traced(self.program(), str(ROUNDS), "2", "0", "0", options=(*self.SMALL, "--blocking"))
        self.assertEqual(run.trace.info["overwritten_events"], 0)
        self.assertEqual(run.trace.info["lost_events"], 0)
        self.assert_whole(run.trace)
        counts = self.counts(run.trace.path)
        self.assertEqual((counts["leaf"], counts["middle"], counts["work"]), (4 * ROUNDS, 2 * ROUNDS, 2))
        self.assertRegex(run.err, r"threads waited [0-9.]+ m?s in all until what they had recorded was taken")

    def test_forked_children_and_signal_handlers_lose_nothing(self):
        run = self.run_traced(self.program(), str(ROUNDS), "1", "2", "500", options=(*self.SMALL, "--blocking"))
        self.assertEqual(run.trace.info["overwritten_events"], 0)
        counts = self.counts(run.trace.path)
        handled = int(run.out.split()[1])
        self.assertGreater(handled, 0)
        self.assertEqual((counts["leaf"], counts["middle"]), (6 * ROUNDS, 3 * ROUNDS))
        self.assertEqual(counts["handled"], handled)

    def test_what_was_waited_is_no_time_of_the_programs(self):
        trace = self.directory / "stopped.karst"
        karst, _ = self.start(trace, str(4 * ROUNDS), "1", "0", "0")
        karst.send_signal(signal.SIGSTOP)
        time.sleep(1)
        karst.send_signal(signal.SIGCONT)
        out, said = karst.communicate(timeout=support.TIMEOUT)
        self.assertEqual(karst.returncode, 0, said)
        self.assertIn("none overwritten", said)
        self.assertEqual(self.counts(trace)["leaf"], 8 * ROUNDS)
        waited = re.search(r"threads waited ([0-9.]+) (m?s) in all", said)
        self.assertGreater(float(waited[1]) * (0.001 if waited[2] == "ms" else 1), 0.8, said)
        notes = subprocess.run([KARST, "notes", "--kind", "overhead", "--json", str(trace)], check=True, capture_output=True,
                               text=True, timeout=support.TIMEOUT).stdout
        self.assertIn("waited for karst to take what was recorded", notes)

    def test_a_killed_karst_holds_the_program_for_seconds_alone(self):
        trace = self.directory / "killed.karst"
        karst, program = self.start(trace, str(20 * ROUNDS), "2", "0", "0")
        held = os.pidfd_open(program)
        self.addCleanup(os.close, held)
        began = time.monotonic()
        karst.kill()
        # It is nobody's child now, and writes into the pipes that karst had.
        out, said = karst.communicate(timeout=support.TIMEOUT)
        self.assertGreater(time.monotonic() - began, 1)
        n = 20 * ROUNDS
        self.assertEqual(out, f"{2 * (n * (n - 1) + 2 * n)} 0\n")
        self.assertEqual(said.count("nobody takes what is recorded: from here on the oldest is overwritten"), 1, said)
        self.assertGreater(sum(self.counts(trace).values()), 0)

    def test_a_full_disk_holds_nobody(self):
        full = self.directory / "small"
        full.mkdir()
        mounted = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=1m", "none", str(full)],
                                 capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("no file system can be mounted here")
        n = 4 * ROUNDS
        script = (f"mount -t tmpfs -o size=100k none {full} && {KARST} run {' '.join((*self.SMALL, *self.SCHED))} --blocking "
                  f"-o {full}/t.karst -- {self.program()} {n} 1 0 0")
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, check=False,
                              timeout=support.TIMEOUT)
        self.assertEqual(done.stdout, f"{n * (n - 1) + 2 * n} 0\n", done.stderr)
        self.assertNotIn("nobody takes", done.stderr)
        self.assertIn("No space left on device", done.stderr)

    def test_a_process_that_runs(self):
        program = subprocess.Popen([str(self.program()), str(1000 * ROUNDS), "1", "0", "0"], stdout=subprocess.DEVNULL,
                                   env={**os.environ, "KARST_OPTIONS": "memory=64K,budget=off"})
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        trace = self.directory / "attached.karst"
        done = subprocess.run([KARST, "attach", str(program.pid), "--all", "--blocking", "--for", "1s", *self.SCHED, "-o", str(trace)],
                              capture_output=True, text=True, timeout=support.TIMEOUT, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"threads waited [0-9.]+ m?s in all")
        info = json.loads(subprocess.run([KARST, "info", "--json", str(trace)], check=True, capture_output=True, text=True,
                                         timeout=support.TIMEOUT).stdout)
        # What it had recorded before karst came is gone.
        self.assertGreater(info["calls"], 10_000)
        counts = self.counts(trace)
        self.assertLessEqual(abs(counts["leaf"] - 2 * counts["middle"]), 8)
        # And then it goes on by itself.
        before = os.times(), _ticks_of(program.pid)
        time.sleep(1)
        self.assertGreater(_ticks_of(program.pid) - before[1], 20)

    def test_what_does_not_go_together(self):
        for options, why in ((("--blocking",), "--all is needed, too"), (("--all", "--blocking", "--prefault"), "takes system calls")):
            done = subprocess.run([KARST, "run", *options, "/bin/true"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(why, done.stderr)


def _ticks_of(pid):
    """CPU time, in 1/100 s."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


if __name__ == "__main__":
    main()
