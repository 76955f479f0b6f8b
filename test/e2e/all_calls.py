"""--all: no call is missing where much more is recorded than the memory holds."""
import collections
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

import support
from support import KARST, ROOT, TracedTest, build, main

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
        if run.trace.info["overwritten_events"] == 0:  # a gap within a call makes two of it
            self.assertEqual(counts["work"], 3)
        # 43 MB of events, of which 32 MiB have room.
        self.assertLess(run.trace.path.stat().st_size, 6 * 3 * ROUNDS)

    def test_every_call_of_forked_children_is_there(self):
        run = self.run_traced(self.program(), str(3 * ROUNDS), "0", "2", options=self.OPTIONS)
        self.assert_kept(run, 12 * ROUNDS)

    def test_short_children_have_what_they_were_inside_of(self):
        run = self.run_traced(self.program(), "100", "0", "3", options=self.OPTIONS)
        self.assert_whole(run.trace)
        children = [p for p in run.trace.info["processes"] if p["forked"]]
        self.assertEqual(len(children), 3)
        for child in children:
            done = subprocess.run([KARST, "tree", "--process", str(child["pid"]), "--depth", "2", str(run.trace.path)],
                                  check=True, capture_output=True, text=True)
            self.assertRegex(done.stdout, r"main")
            self.assertRegex(done.stdout, r"work")

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

    def begin(self, path, rounds=100_000_000, threads=1, children=0):
        """karst, as it runs the program for ever; both are killed in the end."""
        command = [KARST, "run", *self.OPTIONS, *self.SCHED, "-o", str(path), "--", str(self.program()), str(rounds),
                   str(threads), str(children)]
        karst = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                 start_new_session=True)

        def end():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(karst.pid, signal.SIGKILL)
            karst.communicate(timeout=support.TIMEOUT)

        self.addCleanup(end)
        return karst

    def wait_for(self, path, size=1):
        deadline = time.monotonic() + support.TIMEOUT
        while not (path.exists() and path.stat().st_size >= size):
            self.assertLess(time.monotonic(), deadline, f"{path} does not come")
            time.sleep(0.02)

    def assert_reads_so_far(self, path, least=1000):
        """The file is not finished, and says so; what it has is sound."""
        done = subprocess.run([KARST, "report", "--json", str(path)], check=True, capture_output=True, text=True,
                              timeout=support.TIMEOUT)
        self.assertIn("goes on, or was ended by force; this shows what it had so far", done.stderr)
        counts = {row["function"].split("(")[0]: row["calls"] for row in json.loads(done.stdout)["functions"]}
        counts = collections.Counter(counts)
        self.assertGreaterEqual(counts["leaf"], least)
        # Each middle has two leaves; the last one of each thread may be cut, and gaps cut some more.
        self.assertAlmostEqual(counts["leaf"], 2 * counts["middle"], delta=10 + 0.01 * counts["leaf"])
        return counts

    def test_the_file_can_be_read_while_it_grows(self):
        path = self.directory / "grows.karst"
        self.begin(path)
        self.wait_for(path)
        before = self.assert_reads_so_far(path, least=0)
        self.wait_for(path, path.stat().st_size + 1)
        time.sleep(1.5)
        self.assertGreater(self.assert_reads_so_far(path)["leaf"], before["leaf"])

    def test_what_was_written_stays_when_karst_is_killed(self):
        for number, more in enumerate((0, 0.3, 0.77, 1.4)):
            with self.subTest(more):
                path = self.directory / f"killed-{number}.karst"
                karst = self.begin(path, threads=2 * (number % 2), children=1)
                self.wait_for(path)
                time.sleep(more)
                os.kill(karst.pid, signal.SIGKILL)
                os.killpg(karst.pid, signal.SIGKILL)
                # It begins with what there is after some milliseconds, and has more after a second.
                self.assert_reads_so_far(path, least=1000 if more > 1 else 0)
                resolved = self.directory / f"resolved-{number}.karst"
                subprocess.run([KARST, "resolve", str(path), "-o", str(resolved)], check=True, capture_output=True)
                self.assertEqual(counts_of(resolved), counts_of(path))

    def test_an_older_trace_is_kept(self):
        path = self.directory / "twice.karst"
        path.write_bytes(self.run_traced(self.program(), "10", "1", "0", options=self.OPTIONS).trace.path.read_bytes())
        before = path.read_bytes()
        self.begin(path)
        older = self.directory / "twice.karst.old"
        self.wait_for(older)
        self.assertEqual(older.read_bytes(), before)

    def test_a_second_decoder_reads_it(self):
        run = self.run_traced(self.program(), str(ROUNDS // 15), "2", "1",
                              options=("--budget", "off", "--memory", "1M", "--all"))
        text = subprocess.run([sys.executable, ROOT / "test/docs/decode_trace.py", run.trace.path], check=True,
                              capture_output=True, text=True).stdout
        self.assertEqual(len(re.findall("^process [0-9]+ pid", text, re.MULTILINE)), 2)
        events = sum(int(n) for n in re.findall("^block [0-9]+ ticks [0-9]+ events ([0-9]+)$", text, re.MULTILINE))
        self.assertEqual(events, run.trace.info["events"])

    def test_a_full_disk_is_told_of_and_what_is_there_opens(self):
        full = self.directory / "small"
        full.mkdir()
        mounted = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=1m", "none", str(full)],
                                 capture_output=True, check=False)
        if mounted.returncode != 0:
            raise unittest.SkipTest("no file system can be mounted here")
        script = (f"mount -t tmpfs -o size=200k none {full} && {KARST} run --budget off --memory 4M --all "
                  f"{' '.join(self.SCHED)} -o {full}/t.karst -- {self.program()} 3000000 1 0; "
                  f"{KARST} report --json {full}/t.karst >{self.directory}/report.json")
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, check=False,
                              timeout=support.TIMEOUT)
        self.assertIn("3000000", done.stdout)
        self.assertIn("No space left on device", done.stderr)
        rows = json.loads((self.directory / "report.json").read_text())["functions"]
        self.assertGreater(max(row["calls"] for row in rows), 1000)

    def test_a_process_that_runs(self):
        child = subprocess.Popen([str(self.program()), str(10 * ROUNDS), "1", "0"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        path = self.directory / "attached.karst"
        command = [KARST, "attach", str(child.pid), "--all", "--budget", "off", "--memory", "2M", "-o",
                   str(path)]
        done = subprocess.run([*command, "--for", "1500ms"], capture_output=True, text=True, timeout=support.TIMEOUT)
        if "ptrace" in done.stderr and done.returncode != 0:
            raise unittest.SkipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("all calls of process", done.stderr)
        first = counts_of(path)
        # More than 2 MiB of events, of which a call has 16 bytes.
        self.assertGreater(first["leaf"] + first["middle"], (2 << 20) / 16)
        # It is traced, and goes on to its end; so does karst.
        again = subprocess.run(command, capture_output=True, text=True, timeout=support.TIMEOUT)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertGreater(counts_of(path)["leaf"], 1000)
        self.assertEqual(child.communicate(timeout=support.TIMEOUT)[0], f"{10 * ROUNDS}\n")
        self.assertEqual(child.returncode, 0)

    def test_what_does_not_go_together(self):
        for options, message in ((("--trigger", "main"), "--all and --trigger do not go together"),
                                 (("--raw-events",), "--all packs events: leave --raw-events out"),
                                 (("--for", "soon"), "--for 'soon' is not a time")):
            done = subprocess.run([KARST, "attach", "--all", *options, str(os.getpid())], capture_output=True, text=True,
                                  check=False, cwd=self.directory)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(message, done.stderr)
        done = subprocess.run([KARST, "run", "--all", "--raw-events", "true"], capture_output=True, text=True,
                              check=False, cwd=self.directory)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--all packs events: leave --raw-events out", done.stderr)


if __name__ == "__main__":
    main()
