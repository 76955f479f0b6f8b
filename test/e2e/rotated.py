"""--rotate: a trace in several files, one after the other, which together have all that happened, once."""
import collections
import csv
import io
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

import support
from support import KARST, TracedTest, build, main

NAMES = ("leaf", "request", "tick", "slow_request")


def rows_of(command, trace, *options):
    done = subprocess.run([KARST, command, str(trace), "--format", "csv", *options], check=True, capture_output=True,
                          text=True, timeout=support.TIMEOUT)
    return list(csv.DictReader(io.StringIO(done.stdout)))


def info_of(trace):
    done = subprocess.run([KARST, "info", "--json", str(trace)], check=True, capture_output=True, text=True,
                          timeout=support.TIMEOUT)
    return json.loads(done.stdout)


class Rotated(TracedTest):
    OPTIONS = ("--budget", "off", "--memory", "256M", "--all")

    def program(self):
        return build("rotated_logs", "rotated/logs.c", "-O1", "-pthread", compiler="karst-gcc")

    def files(self, path):
        """In order of time; the one that grew is the last."""
        older = sorted(path.parent.glob(path.stem + "-2*" + path.suffix))
        for file in older:
            self.assertRegex(file.name, rf"^{path.stem}-20\d{{6}}T\d{{6}}Z(-\d+)?\.karst$")
        return [*older, path]

    def run_rotated(self, rotate, seconds=4, name="r.karst"):
        path = self.directory / name
        done = subprocess.run([KARST, "run", *self.OPTIONS, *self.SCHED, "--rotate", rotate, "-o", str(path), "--",
                               str(self.program()), str(seconds)],
                              capture_output=True, text=True, check=True, timeout=support.TIMEOUT)
        truth = {int(pid): dict(zip(NAMES, map(int, counts)))
                 for pid, *counts in (line.split() for line in done.stdout.splitlines())}
        return path, truth, done.stderr

    def assert_same(self, files, truth):
        """Each call that began is in the file of its begin; what was open at a file's end is in the next one, too."""
        found = collections.defaultdict(collections.Counter)
        leaves = lost = 0
        for number, file in enumerate(files):
            is_last = number + 1 == len(files)
            info = info_of(file)
            lost += info["overwritten_events"] + info["lost_events"]
            for call in rows_of("calls", file, "--function", "^(request|tick|slow_request)$"):
                if is_last or call["open"] not in ("end", "both"):
                    found[int(call["pid"])][call["function"]] += 1
            for row in rows_of("report", file, "--function", "^leaf$"):
                leaves += int(row["calls"]) - (0 if is_last else int(row["open_calls"]))
        if lost != 0:
            self.skipTest(f"the machine was too busy for karst: {lost} events were overwritten")
        expected = {pid: {n: c for n, c in counts.items() if c and n != "leaf"} for pid, counts in truth.items()}
        self.assertEqual({pid: dict(counts) for pid, counts in found.items()}, expected)
        self.assertEqual(leaves, sum(counts["leaf"] for counts in truth.values()))

    def test_nothing_grows_with_time(self):
        """script/soak rotation makes it an hour: karst's memory, its descriptors and the disk stay as they were."""
        seconds = int(os.environ.get("KARST_ROTATION_SECONDS", "12"))
        path = self.directory / "soak.karst"
        karst = subprocess.Popen([KARST, "run", *self.OPTIONS, "--blocking", *self.SCHED, "--rotate", "1s:4", "-o", str(path), "--",
                                  str(self.program()), str(seconds)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(karst.kill)
        looks = []
        while karst.poll() is None:
            time.sleep(1)
            try:
                status = dict(line.split(":", 1) for line in open(f"/proc/{karst.pid}/status", encoding="utf-8"))
                opened = len(os.listdir(f"/proc/{karst.pid}/fd"))
            except (FileNotFoundError, ProcessLookupError):
                break
            if "RssAnon" not in status:  # it has ended
                break
            files = [entry for entry in self.directory.iterdir() if entry.is_file()]
            looks.append((int(status["RssAnon"].split()[0]), opened, len(files)))
        out, said = karst.communicate(timeout=support.TIMEOUT)
        self.assertEqual(karst.returncode, 0, said)
        self.assertIn("none overwritten", said)
        self.assertGreaterEqual(len(out.splitlines()), seconds)  # a child each second
        begun = looks[len(looks) // 4:len(looks) // 2]
        later = looks[3 * len(looks) // 4:]
        told = f"{looks}"
        self.assertLess(max(kib for kib, _, _ in later), max(kib for kib, _, _ in begun) + 16 * 1024, told)
        self.assertLessEqual(max(opened for _, opened, _ in later), max(opened for _, opened, _ in begun) + 4, told)
        # Four before, the one that grows, and for a moment one that is to go, or gets its names.
        self.assertLessEqual(max(files for _, _, files in looks), 8, told)
        files = self.files(path)
        self.assertLessEqual(len(files), 5)
        for file in files:
            self.assertGreater(info_of(file)["calls"], 0)

    def test_all_files_together_have_every_call_once(self):
        for rotate in ("1M", "1s"):
            with self.subTest(rotate):
                path, truth, err = self.run_rotated(rotate, name=f"by-{rotate}.karst")
                files = self.files(path)
                if rotate == "1s":
                    self.assertGreaterEqual(len(files), 2)
                    before = "1 file" if len(files) == 2 else f"{len(files) - 1} files"
                    self.assertIn(f"{before} before it, the last of which is {files[-2]}", err)
                self.assert_same(files, truth)

    def test_each_file_is_whole_by_itself(self):
        self.SCHED = ("--sched", "perf")
        path, _, _ = self.run_rotated("1s")
        files = self.files(path)
        for file in files[:-1]:
            info = info_of(file)
            self.assertTrue(info["resolved"])
            # It says from when to when it is, and has names and the states of that time.
            self.assertEqual({m["what"] for m in info["kept"]}, {"--rotate"})
            self.assertLessEqual({"leaf", "request"}, {row["name"] for row in rows_of("report", file)})
            self.assertGreater(info["states"]["records"], 0)
            self.assertIn("memory", {of["what"] for of in info["usage"]})

    def test_a_slow_call_across_two_files_has_its_whole_length(self):
        path, truth, _ = self.run_rotated("1s")
        longest = []
        for file in self.files(path):
            for call in rows_of("calls", file, "--function", "slow_request"):
                if call["open"] == "":
                    longest.append(int(call["duration_ns"]))
        self.assertEqual(len(longest), 4)
        for ns in longest:
            self.assertGreater(ns, 0.9e9)

    def test_a_thread_that_does_little_is_in_the_file_of_its_time(self):
        path, truth, _ = self.run_rotated("1s")
        ticks = [sum(1 for call in rows_of("calls", file, "--function", "^tick$")) for file in self.files(path)[:-1]]
        self.assertTrue(all(count >= 1 for count in ticks), ticks)

    def test_some_seconds_of_every_minute(self):
        """As a timer would have it: by name, and off in between."""
        name = self.directory / "timed-server"
        shutil.copy(self.program(), name)
        program = subprocess.Popen([str(name), "60"], stdout=subprocess.DEVNULL)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        path = self.directory / "timed.karst"
        for _ in range(4):
            subprocess.run([KARST, "attach", "timed-server", "--all", "--rotate", "1h:2", "--for", "1s", "--sched", "off",
                            "-o", str(path)], capture_output=True, text=True, check=True, timeout=support.TIMEOUT)
            subprocess.run([KARST, "off", "timed-server"], capture_output=True, check=True, timeout=support.TIMEOUT)
            time.sleep(1.1)  # so that names differ
        files = self.files(path)
        self.assertEqual(len(files), 3)
        for file in files:
            self.assertIn("request", {row["name"] for row in rows_of("report", file)})

    @unittest.skipUnless(os.geteuid() == 0, "only root can do what sudo does")
    def test_under_sudo_all_files_are_the_callers(self):
        caller = {"SUDO_UID": "12345", "SUDO_GID": "12346"}
        program = subprocess.Popen([str(self.program()), "60"], stdout=subprocess.DEVNULL)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        path = self.directory / "sudo.karst"
        options = ("--all", "--rotate", "1s", "--sched", "off", "-o", str(path))
        for command in (["run", *options, "--", str(self.program()), "4"], ["attach", str(program.pid), *options, "--for", "4s"]):
            subprocess.run([KARST, *command], capture_output=True, check=True, timeout=support.TIMEOUT,
                           env={**os.environ, **caller})
        files = self.files(path)
        self.assertGreaterEqual(len(files), 4)
        for file in files:
            self.assertTrue(info_of(file)["resolved"])
            self.assertEqual((file.stat().st_uid, file.stat().st_gid, file.stat().st_mode & 0o777), (12345, 12346, 0o600))

    def test_only_the_newest_stay(self):
        path, _, _ = self.run_rotated("1s:2", seconds=5)
        self.assertLessEqual(len(self.files(path)), 4)  # two, the one that grew, and one that ended as the program did
        # What others put there is not ours to remove.
        foreign = self.directory / "r-20200101T000000Z.karst"
        foreign.write_text("no trace")
        self.run_rotated("1s:1", seconds=2)
        self.assertTrue(foreign.exists())
        self.assertLessEqual(len(self.files(path)), 4)

    def test_what_a_killed_karst_has_left_is_kept(self):
        path = self.directory / "r.karst"
        command = [KARST, "run", *self.OPTIONS, *self.SCHED, "--rotate", "1h", "-o", str(path), "--", str(self.program()), "60"]
        karst = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + support.TIMEOUT
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(2.5)  # beyond the second flush
        os.killpg(karst.pid, signal.SIGKILL)
        karst.wait()
        self.run_rotated("1h", seconds=1)
        files = self.files(path)
        self.assertEqual(len(files), 2)
        done = subprocess.run([KARST, "report", str(files[0])], capture_output=True, text=True, check=True)
        self.assertIn("was ended by force", done.stderr)
        self.assertIn("request", done.stdout)

    def test_what_makes_no_sense_is_refused(self):
        for words, why in ((("--rotate", "1G"), "--all is needed, too"),
                           (("--all", "--rotate", "10"), "a size like 256M or 1G, or a time like 10m or 1h is needed"),
                           (("--all", "--rotate", "10K"), "is too often"),
                           (("--all", "--rotate", "5ms"), "is too often"),
                           (("--all", "--rotate", "1G:0"), "how many files before this one stay, at least 1"),
                           (("--all", "--rotate", "1G:many"), "how many files before this one stay"),
                           (("--all", "--rotate", "1G", "--over", "f:1ms"), "--rotate goes with no moment to keep")):
            with self.subTest(words):
                done = subprocess.run([KARST, "run", *words, "--", "/bin/true"], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 2)
                self.assertIn(why, done.stderr)


main()
