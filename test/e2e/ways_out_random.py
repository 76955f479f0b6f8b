"""Random programs that log their own truth (ways_out/random/program.cc): Karst's trees equal their logs.

usage: ways_out_random.py FIRST_SEED COUNT   runs so many seeds (script/soak) and prints those that fail.
"""
import re
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import support  # noqa: E402
from plain import left_alone, without  # noqa: E402
from support import BIN, TracedTest, build  # noqa: E402

# Seeds that once failed stay here: make, options, seed.
KEPT = [(("-O0",), (), 5), (("-O2",), (), 5)]  # the program itself jumped to a place that was gone
STEADY = ["-std=c++20", "-pthread"]
STEADY_GCC = ["-fnon-call-exceptions", "-fno-ipa-cp", "-fno-ipa-sra", "-fno-ipa-icf"]
PER_PROCESS = 48
# Other makes of the program, and options under which its trees are the same.
CLANG, CALLS, PLAIN, NO_PIE = "clang", "finstrument", "unmodified", "-no-pie"
# What has no sleds where Karst's wrapper makes them.
UNTRACED = r"(^|::)(main|_start|run|print|handle|on_timer|hidden_\w+|end_waiting|Guard::~Guard)\b"
AS_IT_IS = ("--min-instructions", "0", "--budget", "off", "--not-function", UNTRACED)
MAKES = [("-O0",), ("-O2",), ("-O3",), ("-O0", CLANG), ("-O2", CLANG), ("-O2", CALLS), ("-O3", CLANG, CALLS)]
UNMODIFIED = [("-O0", PLAIN), ("-O1", PLAIN, NO_PIE), ("-O2", PLAIN), ("-O3", PLAIN), ("-O0", PLAIN, CLANG, NO_PIE),
              ("-O2", PLAIN, CLANG), ("-O3", PLAIN, CLANG, NO_PIE)]
OPTIONS = [(), ("--clock", "thread"), ("--slowest", "plain|handler:20"), ("--slowest", "guarded:3", "--clock", "thread")]


def program(level, *make):
    """At -O0 and -O1, and where calls of an exit function follow all others, there are no tail calls; the program is told."""
    flags = ["-DTAIL_CALLS"] if level not in ("-O0", "-O1") and CALLS not in make else []
    if NO_PIE in make:
        flags += ["-fno-pie", "-no-pie"]
    if CALLS in make:
        flags.append("--karst-method=finstrument-after-inlining" if CLANG in make else "--karst-method=finstrument")
    name = "".join(("ways_out.random", level, *make))
    if CLANG in make:
        compiler = "clang++" if PLAIN in make else str(BIN / "karst-clang++")
        return build(name, "ways_out/random/program.cc", level, *STEADY, *flags, compiler=compiler)
    return build(name, "ways_out/random/program.cc", level, *STEADY, *STEADY_GCC, *flags,
                 compiler="g++" if PLAIN in make else "karst-g++")


def has_clang(make=()):
    return (PLAIN in make or (BIN / "karst-clang++").exists()) and any(map(shutil.which, ("clang++", "clang++-14")))


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


class Random(TracedTest):
    def compare(self, make, first, count, options=()):
        """Seeds of [first, first + count) whose trees differ, with the first difference."""
        made = program(*make)
        options = (*options, *(AS_IT_IS if PLAIN in make else ()))
        run = self.run_traced(made, first, count, options=("--memory", "512M", "--no-source", *options))
        truth = by_thread(run.out.splitlines())
        if PLAIN in make:
            alone = {re.sub(r"\(.*\)", "", name.replace("(anonymous namespace)::", "")).removeprefix("int ")
                     for name in left_alone(made)}
            truth = {name: without(tree, alone) for name, tree in truth.items()}
        seen = by_thread(run.trace.tree("--marks"))
        if CALLS in make:  # the compiler's own cleanups record exits, without a mark
            truth, seen = ({name: [line.replace("  [unwound]", "") for line in tree] for name, tree in trees.items()}
                           for trees in (truth, seen))
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

    def check(self, level, first, count, *make, options=()):
        for at in range(first, first + count, PER_PROCESS):
            self.assertEqual(self.compare((level, *make), at, min(PER_PROCESS, first + count - at), options), {})

    def test_random_programs_without_optimisation(self):
        self.check("-O0", 0, 96)

    def test_random_programs_at_O2(self):
        self.check("-O2", 1000, 144)

    def test_random_programs_at_O3(self):
        self.check("-O3", 2000, 48)

    def test_random_programs_by_clang(self):
        if not has_clang():
            self.skipTest("no clang")
        self.check("-O0", 4000, 48, CLANG)
        self.check("-O2", 5000, 48, CLANG)

    def test_random_programs_that_are_not_built_for_karst(self):
        for n, make in enumerate(UNMODIFIED):
            if CLANG not in make or has_clang(make):
                with self.subTest(make=make):
                    self.check(make[0], 9000 + 100 * n, 48, *make[1:])

    def test_random_programs_with_instrument_functions(self):
        self.check("-O2", 6000, 48, CALLS)

    def test_random_programs_by_the_clock_thread(self):
        self.check("-O2", 7000, 48, options=("--clock", "thread"))

    def test_random_programs_with_watched_functions(self):
        self.check("-O2", 8000, 48, options=("--slowest", "plain|handler:20"))

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
        for make, options, seed in KEPT:
            with self.subTest(make=make, options=options, seed=seed):
                self.assertEqual(self.compare(make, seed, 1, options), {})


def ways(turn):
    """gcc's makes, and in turn another make, and other options."""
    makes = [make for make in (*MAKES, *UNMODIFIED) if CLANG not in make or has_clang(make)]
    return [*((make, ()) for make in makes[:3]), (makes[turn % len(makes)], OPTIONS[turn // len(makes) % len(OPTIONS)])]


def soak(first, count):
    test = Random("compare")
    test.setUp()
    failed = {}
    try:
        for at in range(first, first + count, PER_PROCESS):
            for make, options in ways(at // PER_PROCESS):
                failed |= {(make, options, name): what for name, what in
                           test.compare(make, at, min(PER_PROCESS, first + count - at), options).items()}
    finally:
        test.doCleanups()
    for (make, options, name), what in failed.items():
        print(*make, *options, name, what)
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) == 3:
        sys.exit(soak(int(sys.argv[1]), int(sys.argv[2])))
    support.main()
