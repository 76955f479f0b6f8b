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
KEPT = []
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


class Random(TortureTest):
    def compare(self, level, first, count):
        """Seeds of [first, first + count) whose trees differ, with the first difference."""
        run = self.run_traced(program(level), first, count, options=("--memory", "512M"))
        truth = by_thread(run.out.splitlines())
        seen = by_thread(run.trace.tree("--marks"))
        self.assertEqual(len(truth), count)
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
