"""--all: no call is missing where much more is recorded than the memory holds."""
import json
import os
import signal
import subprocess
import time
import unittest

import support
from support import KARST, TracedTest, build, main

ROUNDS = 300_000


def counts_of(trace, *options):
    """Calls by name."""
    done = subprocess.run([KARST, "report", "--json", *options, str(trace)], check=True, capture_output=True, text=True,
                          timeout=support.TIMEOUT)
    return {row["function"].split("(")[0]: row["calls"] for row in json.loads(done.stdout)["functions"]}


class AllTest(TracedTest):
    OPTIONS = ("--budget", "off", "--memory", "32M", "--all")

    def assert_kept(self, run, leaves):
        """All calls are there, or, where the machine was too busy for karst, nearly all, and the others are counted."""
        counts, info = counts_of(run.trace.path), run.trace.info
        self.assertEqual(info["lost_events"], 0)
        if info["overwritten_events"] == 0:
            self.assert_whole(run.trace)
            self.assertIn("none overwritten", run.err)
            self.assertEqual(counts["leaf"], leaves)
        self.assertGreater(counts["leaf"], 0.8 * leaves)
        # Three calls are six events, and two of the calls are leaves.
        self.assertGreaterEqual(info["events"] + info["overwritten_events"], 3 * leaves)
        return counts

    def program(self):
        return build("all_counts", "all/counts.c", "-O1", "-pthread", compiler="karst-gcc")

    def test_every_call_of_threads_is_there(self):
        run = self.run_traced(self.program(), str(ROUNDS), "3", "0", options=self.OPTIONS)
        counts = self.assert_kept(run, 6 * ROUNDS)
        self.assertEqual(counts["work"], 3)
        # 43 MB of events, of which 32 MiB have room.
        self.assertLess(run.trace.path.stat().st_size, 6 * 3 * ROUNDS)

    def test_every_call_of_forked_children_is_there(self):
        run = self.run_traced(self.program(), str(3 * ROUNDS), "0", "2", options=self.OPTIONS)
        self.assert_kept(run, 12 * ROUNDS)


    def test_without_it_the_newest_are_there(self):
        run = self.run_traced(self.program(), str(ROUNDS), "1", "0", options=("--budget", "off", "--memory", "1M"))
        self.assertGreater(run.trace.info["overwritten_events"], 0)
        self.assertLess(counts_of(run.trace.path)["leaf"], 2 * ROUNDS)

    def test_a_program_that_is_killed_loses_nothing(self):
        path = self.directory / "killed.karst"
        command = [KARST, "run", *self.OPTIONS, *self.SCHED, "-o", str(path), "--", str(self.program()), "100000000", "1", "0"]
        karst = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(karst.kill)
        time.sleep(2)
        children = subprocess.run(["pgrep", "-P", str(karst.pid), "-x", "all_counts"], capture_output=True, text=True,
                                  check=False).stdout.split()
        self.assertTrue(children)
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        _, err = karst.communicate(timeout=support.TIMEOUT)
        self.assertIn("killed by SIGKILL", err)
        counts = counts_of(path)
        self.assertGreater(counts["middle"], 20_000)
        if "none overwritten" in err:
            self.assertIn(counts["leaf"] - 2 * counts["middle"], (-2, -1, 0))

    def test_a_full_disk_is_told_of(self):
        full = self.directory / "small"
        full.mkdir()
        mounted = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=1m", "none", str(full)],
                                 capture_output=True, check=False)
        if mounted.returncode != 0:
            raise unittest.SkipTest("no file system can be mounted here")
        script = (f"mount -t tmpfs -o size=200k none {full} && {KARST} run --budget off --memory 1M --all "
                  f"{' '.join(self.SCHED)} -o {full}/t.karst -- {self.program()} 1000000 1 0")
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, check=False,
                              timeout=support.TIMEOUT)
        self.assertIn("1000000", done.stdout)
        self.assertIn("No space left on device", done.stderr)

    def test_what_does_not_go_together(self):
        done = subprocess.run([KARST, "run", "--all", "--raw-events", "true"], capture_output=True, text=True,
                              check=False, cwd=self.directory)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--all packs events: leave --raw-events out", done.stderr)


if __name__ == "__main__":
    main()
