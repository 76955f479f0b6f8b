"""Snapshots of random programs (ways_out/random/program.cc) at any moment: each thread's tree is a correct part of its true one.

usage: ways_out_snapshots.py FIRST_SEED COUNT   so many seeds (script/soak), for as long as they run
"""
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import support  # noqa: E402
from support import KARST, TIMEOUT, TracedTest, Trace  # noqa: E402
from ways_out_random import by_thread, nodes, program  # noqa: E402


def bare(name):
    return name.split("  [")[0]


def marks(name):
    return set(re.findall(r"[a-z ]+", name.partition("  [")[2])) - {"begun before"}


def callers(tree, row):
    """Names with marks, the innermost first."""
    names = []
    while tree[row][1] is not None:
        row = tree[row][1]
        names.append(tree[row][0])
    return names


def are_callers(some, true):
    """Whether `some`, begun before what is kept, are the true callers as far as these are known to have ended. A jump tells
    nothing of those that it left."""
    if not some or not true:
        return not some
    return ((bare(some[0]) == bare(true[0]) and are_callers(some[1:], true[1:]))
            or ("jumped" in marks(true[0]) and are_callers(some, true[1:])))


def why_no_part(truth, seen, kept, first):
    """What is wrong if the calls of `seen` whose begin is known (the rows `kept`) are those of `truth` from `first` on."""
    place = {row: first + n for n, row in enumerate(kept)}
    inside = []  # the last call that was seen, and those of `truth` that it is in
    at = first + len(kept) - 1
    while at is not None:
        inside.append(at)
        at = truth[at][1]
    for row in kept:
        name, parent, _ = seen[row]
        true_name, true_parent, _ = truth[place[row]]
        if "open" in marks(name):
            if place[row] not in inside:
                return f"{name} at {place[row]} has ended: others came after it"
        elif name != true_name:
            return f"{name} at {place[row]} is {true_name}"
        if parent is not None and seen[parent][2]:
            if place[parent] != true_parent:
                return f"{name} at {place[row]} is not called by {truth[place[parent]][0]}"
        elif true_parent is not None and true_parent >= first:
            return f"{name} at {place[row]} is called by {truth[true_parent][0]}"
        elif not are_callers(callers(seen, row), callers(truth, place[row])):
            return f"{name} at {place[row]} is called by {callers(truth, place[row])}"
    return None


def wrong_part(truth, lines):
    """What is wrong with `lines` as a part of the tree `truth`, from any call on and up to any moment; None if it is one."""
    truth, seen = nodes(truth), nodes(lines)
    kept = [row for row, node in enumerate(seen) if node[2]]
    names = [bare(name) for name, _, _ in truth]
    wanted = [bare(seen[row][0]) for row in kept]
    wrong = "no such calls in this order"
    for first in range(len(truth) - len(kept) + 1):
        if names[first:first + len(kept)] == wanted:
            wrong = why_no_part(truth, seen, kept, first)
            if wrong is None:
                return None
    return wrong


class Snapshots(TracedTest):
    def start(self, level, first, count, memory):
        """The program under `karst run`; reads what it prints when told to. Until then it goes on for some hundred seeds."""
        karst = subprocess.Popen([KARST, "run", *self.SCHED, "--no-source", "--memory", memory, "-o",
                                  str(self.directory / "trace.karst"), "--", program(level), str(first), str(count)],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(karst.communicate)
        self.addCleanup(karst.kill)
        truth = self.directory / "truth"

        def read():
            with open(truth, "wb") as file:
                for chunk in iter(lambda: karst.stdout.read1(1 << 16), b""):
                    file.write(chunk)

        karst.stdout.peek(1)  # it has begun
        pid = int(Path(f"/proc/{karst.pid}/task/{karst.pid}/children").read_text().split()[0])
        return karst, pid, truth, threading.Thread(target=read)

    def take(self, karst, pid, path, stopped):
        """Whether a snapshot could be taken, which it cannot once the program has ended."""
        try:
            if stopped:
                os.kill(pid, signal.SIGSTOP)
            done = subprocess.run([KARST, "snapshot", str(pid), "--no-source", "-o", str(path)], capture_output=True,
                                  text=True, timeout=TIMEOUT)
            if stopped:
                os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            return False
        if done.returncode != 0:
            self.assertRegex(done.stderr, "ended|no process|no such|traced", done.stderr)
        return done.returncode == 0

    def snapshots(self, first, count, memory, level="-O2", most=8):
        """Takes one snapshot after the other, each second one of the stopped program; checks them when it has ended."""
        chance = random.Random(first)
        karst, pid, truth, reader = self.start(level, first, count, memory)
        taken = []
        while len(taken) < most and self.take(karst, pid, self.directory / f"{len(taken)}.karst", len(taken) % 2 == 1):
            taken.append(self.directory / f"{len(taken)}.karst")
            if len(taken) == 1:
                reader.start()
            time.sleep(chance.random() * 0.02)
        self.assertGreater(len(taken), 0)
        reader.join(TIMEOUT)
        self.assertEqual(karst.wait(TIMEOUT), 0)
        return self.check(truth.read_text(), taken)

    def check(self, truth, taken):
        """How many calls the snapshots had whose begin is known, and how many of these were open."""
        places = {found[1]: found.start() for found in re.finditer(r"^# thread (\S+)$", truth, re.MULTILINE)}
        calls = opened = 0
        for path in taken:
            trace = Trace(path)
            # An interrupted hook's block may be kept, however old it is: a gap.
            self.assertEqual([m for m, _ in trace.problems if "missing within" not in m], [], path.name)
            for name, tree in by_thread(trace.tree("--marks")).items():
                at = places[name]
                end = truth.find("\n# ", at)
                whole = by_thread(truth[at:end if end >= 0 else len(truth)].splitlines())[name]
                wrong = wrong_part(whole, tree)
                self.assertIsNone(wrong, (path.name, name, "\n".join(tree)))
                calls += sum("begun before" not in line for line in tree)
                opened += sum("open" in line for line in tree)
        self.assertGreater(calls, 0)
        return len(taken), calls, opened

    def test_at_O2(self):
        self.snapshots(30000, 1500, "128K")

    def test_without_optimisation_and_with_more_memory(self):
        self.snapshots(40000, 1500, "1M", "-O0")

    def test_a_wrong_part_is_noticed(self):
        truth = ["a", "  b", "    c  [unwound]", "  d", "    b", "e"]
        for right in (truth, ["c  [unwound]", "d"], ["b  [begun before]", "  c  [unwound]", "d  [open]", "  b  [open]"],
                      ["a  [open]", "  b  [open]", "    c  [open]"], ["a  [open]", "  b  [open]"], ["b"], ["e"], [],
                      ["d  [begun before]", "  b", "e"]):
            self.assertIsNone(wrong_part(truth, right), right)
        for wrong in (["a", "  b", "  c  [unwound]"], ["c"], ["d", "  e"], ["b  [open]", "d"], ["a  [begun before]", "  e"],
                      ["e  [begun before]", "  b"], ["a  [open]", "  b  [open]", "    c  [unwound]", "e"], ["x"],
                      ["a  [begun before]", "  c  [unwound]"], [*truth, "e"], ["b", "  d"], ["d", "a"]):
            self.assertIsNotNone(wrong_part(truth, wrong), wrong)


def soak(first, count):
    test = Snapshots("snapshots")
    test.setUp()
    try:
        for at in range(0, count, 3000):
            for level, memory in (("-O0", "512K"), ("-O2", "128K"), ("-O3", "256K")):
                print(*test.snapshots(first + at, min(3000, count - at), memory, level, 40))
    finally:
        test.doCleanups()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        soak(int(sys.argv[1]), int(sys.argv[2]))
    else:
        support.main()
