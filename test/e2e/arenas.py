"""Processes that say they are traced and have arenas made to harm: no command is harmed, and the honest are told of."""
import json
import os
import resource
import subprocess

from support import KARST, ROOT, TIMEOUT, build, main
from control import ControlTest

# Bounds of a command beside such a process, far above what it takes and far below what it took.
MEMORY = 3 << 29
SECONDS = 10
REFUSED = ("hugetlb", "future", "no-rate")
OTHERS = ("long-names", "many-arguments", "sparse", "unmatched", "turning-moments", "punching", "scribbled", "silent")


def program():
    return build("hostile", "arenas/hostile.cc", "-O1", "-std=c++20", f"-I{ROOT}", compiler="g++")


def bounded():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


class Arenas(ControlTest):
    def hostile(self, way):
        process = subprocess.Popen([program(), way], cwd=self.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdin.close)
        if process.stdout.readline() != "ready\n":
            self.skipTest(f"the system does not let a process be hostile in this way: {way}")
        return process.pid

    def ask(self, *arguments):
        """Any answer but the death of karst."""
        done = subprocess.run([KARST, *map(str, arguments)], cwd=self.directory, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=TIMEOUT, preexec_fn=bounded)
        self.assertIn(done.returncode, (0, 1), f"{arguments}: {done.stdout}{done.stderr}")
        self.assertNotIn("out of memory", done.stderr, arguments)
        self.assertNotIn("internal error", done.stderr, arguments)
        return done

    def test_ps_tells_of_the_honest_and_names_the_others(self):
        honest = self.start("paced")
        ways = {way: self.hostile(way) for way in REFUSED + OTHERS}
        done = self.ask("ps", "--json")
        self.assertEqual(done.returncode, 0)
        listed = {p["pid"]: p for p in json.loads(done.stdout)["processes"]}
        self.assertEqual(listed[honest]["state"], "on")
        self.assertGreater(listed[honest]["functions"], 3)
        for way in REFUSED:
            self.assertNotIn(ways[way], listed, way)
            lines = [line for line in done.stderr.splitlines() if f"process {ways[way]} (hostile)" in line]
            self.assertEqual(len(lines), 1, done.stderr)
        for way in OTHERS:
            self.assertIn(ways[way], listed, way)
        for way, pid in ways.items():
            for command in (("status", pid), ("top", pid, "--once")):
                done = self.ask(*command)
                self.assertEqual(done.returncode, int(way in REFUSED), (way, done.stderr))
                self.assertEqual(len(done.stderr.splitlines()), int(way in REFUSED), (way, done.stderr))
        self.finish()

    def test_snapshots_of_them_are_bounded(self):
        ways = {way: self.hostile(way) for way in OTHERS + ("deep-stacks",)}
        for way, pid in ways.items():
            done = self.ask("snapshot", pid, "--last", "1ms", "--no-source", "-o", "hostile.karst")
            self.assertEqual(done.returncode, 0, (way, done.stderr))
            self.ask("info", "hostile.karst")

    def test_what_is_sparse_stays_so(self):
        pid = self.hostile("sparse")
        arena = f"/proc/{pid}/fd/" + next(fd for fd in os.listdir(f"/proc/{pid}/fd")
                                          if "karst-arena" in os.readlink(f"/proc/{pid}/fd/{fd}"))
        before = os.stat(arena).st_blocks
        for command in (("ps",), ("status", pid), ("top", pid, "--once"), ("snapshot", pid, "-o", "s.karst")):
            self.assertEqual(self.ask(*command).returncode, 0, command)
        self.assertEqual(os.stat(arena).st_blocks, before)

    def test_switching_meets_no_missing_page(self):
        for way in ("punching", "scribbled", "sparse"):
            pid = self.hostile(way)
            for command in ("off", "on"):
                self.ask(command, pid, "--functions", "true")

    def test_one_that_shrinks_at_the_wrong_moment(self):
        pid = self.hostile("shrinking")
        for _ in range(20):
            self.ask("status", pid)


if __name__ == "__main__":
    main()
