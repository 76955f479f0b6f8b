"""Random programs that log their own truth (ways_out/random/program.cc): Karst's trees equal their logs.

usage: ways_out_random.py FIRST_SEED COUNT   runs so many seeds (script/soak) and prints those that fail.
"""
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import torture_support  # noqa: E402
from torture_support import BIN, TortureTest, build  # noqa: E402

# Seeds that once failed stay here.
KEPT = [("-O0", 5), ("-O2", 5)]  # the program itself jumped to a place that was gone
STEADY = ["-fnon-call-exceptions", "-fno-ipa-cp", "-fno-ipa-sra", "-fno-ipa-icf", "-std=c++20", "-pthread"]
PER_PROCESS = 48


def program(level):
    """At -O0 there are no tail calls; the program is told."""
    tail = ["-DTAIL_CALLS"] if level != "-O0" else []
    return build(f"ways_out.random{level}", "ways_out/random/program.cc", level, *STEADY, *tail)


def by_thread(lines):
    """Trees by the name of their thread, without namespaces and parameters."""
    trees = {}
    tree = None
    for line in lines:
        header = re.match(r"# (?:process .* )?thread (?:\d+ )?(\S+)$", line)
        if header:
            tree = trees.setdefault(header[1], [])
            continue
        line = line.replace("(anonymous namespace)::", "")
        tree.append(re.sub(r"\(.*\)", "", line))
    return trees


def nodes(tree):
    """(name with marks, index of the parent or None, whether its beginning is known) of each line."""
    made = []
    path = []
    for line in tree:
        depth = (len(line) - len(line.lstrip(" "))) // 2
        del path[depth:]
        made.append((line.strip(), path[-1] if path else None, "begun before" not in line))
        path.append(len(made) - 1)
    return made


def wrong_part(truth, seen):
    """What is wrong with `seen` as the kept end of `truth`; None if it is a part of it."""
    truth, seen = nodes(truth), nodes(seen)
    kept = [i for i, node in enumerate(seen) if node[2]]
    first = len(truth) - len(kept)
    if first < 0:
        return "more calls than there were"
    place = {row: first + n for n, row in enumerate(kept)}
    for row in kept:
        name, parent, _ = seen[row]
        true_name, true_parent, _ = truth[place[row]]
        if name != true_name:
            return f"{name} at {place[row]} is {true_name}"
        if parent is not None and seen[parent][2]:
            if place[parent] != true_parent:
                return f"{name} at {place[row]} is not called by {truth[place[parent]][0]}"
        elif true_parent is not None and true_parent >= first:
            return f"{name} at {place[row]} is called by {truth[true_parent][0]}"
    return None


class Random(TortureTest):
    def compare(self, level, first, count):
        """Seeds of [first, first + count) whose trees differ, with the first difference."""
        run = self.run_traced(program(level), first, count, options=("--memory", "512M"))
        truth = by_thread(run.out.splitlines())
        seen = by_thread(run.trace.tree("--marks"))
        self.assertEqual(len(truth), count)
        if count >= PER_PROCESS:  # the timer's signal comes, and its handler returns and jumps
            rows = {line.strip() for tree in truth.values() for line in tree}
            self.assertLessEqual({"interrupting", "interrupting  [jumped]"}, rows)
        wrong = {}
        for name, tree in truth.items():
            got = seen.get(name, [])
            if got == tree:
                continue
            at = next((i for i, pair in enumerate(zip(tree, got)) if pair[0] != pair[1]), min(len(tree), len(got)))
            wrong[name] = {"line": at, "truth": tree[max(0, at - 3):at + 3], "karst": got[max(0, at - 3):at + 3]}
        if not wrong:
            self.assert_whole(run.trace)
        return wrong

    def check(self, level, first, count):
        for at in range(first, first + count, PER_PROCESS):
            self.assertEqual(self.compare(level, at, min(PER_PROCESS, first + count - at)), {})

    def test_random_programs_without_optimisation(self):
        self.check("-O0", 0, 96)

    def test_random_programs_at_O2(self):
        self.check("-O2", 1000, 144)

    def test_random_programs_at_O3(self):
        self.check("-O3", 2000, 48)

    def test_what_is_kept_when_memory_is_short_is_a_part_of_the_truth(self):
        run = self.run_traced(program("-O2"), 3000, 160, options=("--memory", "128K"))
        self.assert_sound(run.trace)
        self.assertGreater(run.trace.info["overwritten_events"], 0)
        truth = by_thread(run.out.splitlines())
        cut = 0
        for name, tree in by_thread(run.trace.tree("--marks")).items():
            if len(tree) < len(truth[name]):
                cut += 1
            self.assertIsNone(wrong_part(truth[name], tree), name)
        self.assertGreater(cut, 0)

    def test_a_wrong_part_is_noticed(self):
        truth = ["a", "  b", "    c  [unwound]", "  d", "e"]
        for right in (truth, ["a  [begun before]", "  b", "    c  [unwound]", "  d", "e"], ["c  [unwound]", "d", "e"], []):
            self.assertIsNone(wrong_part(truth, right))
        for wrong in (["a", "  b", "    c", "  d", "e"], ["a", "  b", "  c  [unwound]", "  d", "e"], ["d", "  e"],
                      ["x", "e"], ["a", *truth]):
            self.assertIsNotNone(wrong_part(truth, wrong), wrong)

    def test_seeds_that_once_failed(self):
        for level, seed in KEPT:
            with self.subTest(level=level, seed=seed):
                self.assertEqual(self.compare(level, seed, 1), {})


def soak(first, count):
    test = Random("compare")
    test.setUp()
    failed = {}
    try:
        for at in range(first, first + count, PER_PROCESS):
            for level in ("-O0", "-O2", "-O3"):
                failed |= {(level, name): what
                           for name, what in test.compare(level, at, min(PER_PROCESS, first + count - at)).items()}
    finally:
        test.doCleanups()
    for (level, name), what in failed.items():
        print(level, name, what)
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) == 3:
        sys.exit(soak(int(sys.argv[1]), int(sys.argv[2])))
    torture_support.main()
