"""--min-duration: short calls that contain nothing leave no trace, and what stays is the truth.

10000ms is longer than any call here takes, whatever the machine does meanwhile; 1ns is shorter than nearly all. So no
test depends on how long a call took.
"""
import subprocess
import unittest

import ways_out
import ways_out_random
from support import HERE, KARST, TracedTest, build, main

ALL = ("--min-duration", "10000ms")
NONE = ("--min-duration", "1ns")


def depth(line):
    return (len(line) - len(line.lstrip(" "))) // 2


def pruned(tree):
    """Without calls that returned and contain nothing that stays. Words in [] say how else a call ended."""
    kept, inside = [], None  # from the last line to the first; the least depth of what stays behind
    levels = set()
    for line in reversed(tree):
        if line.startswith("#"):
            kept.append(line)
            levels = set()
            continue
        at = depth(line)
        has_child = any(level > at for level in levels)
        levels = {level for level in levels if level <= at}
        ending = line[line.rfind("  [") + 3:-1].split(", ") if line.endswith("]") else []
        if has_child or any(word not in ("tail call", "tail") for word in ending):
            kept.append(line)
            levels.add(at)
    return kept[::-1]


def is_within(part, whole):
    rest = iter(whole)
    return all(line in rest for line in part)


class Short(TracedTest):
    def check_tree(self, whole, seen):
        """`seen` has all that must stay, and nothing that was not. (Which calls set a place to jump to, the tree does
        not say: they stay, too.)"""
        self.assertEqual([line for line in pruned(whole) if line not in seen], [])
        self.assertTrue(is_within(pruned(whole), seen), (whole, seen))
        self.assertTrue(is_within(seen, whole), (whole, seen))

    def assert_nearly_all(self, seen, whole):
        """The processor may read its clock so early or late that a call took no time (docs/limits.md)."""
        self.assertLessEqual(seen, whole)
        self.assertGreater(seen, 0.9 * whole)

    def test_pruning_is_what_it_says(self):
        self.assertEqual(pruned(["# t", "a", "  b", "    c  [unwound]", "  d", "e", "  f  [tail call]"]),
                         ["# t", "a", "  b", "    c  [unwound]"])

    def test_calls_that_an_exception_leaves_stay_and_no_others(self):
        program = build("nested", "variants/nested.cc", "-O1", "-fno-inline", "-fno-optimize-sibling-calls")
        run = self.run_traced(program, 500, options=ALL)
        self.assert_whole(run.trace)
        stays = ["  keeps()", *["  " * (2 + n) + "leave(int)  [unwound]" for n in range(3)]]
        self.assertEqual(ways_out.shown(run.trace.tree("--marks")), ["# thread", "main", *stays * 500])
        # Most of the rest was never written: what the reader left out stood at the end of a block.
        self.assertLess(run.trace.info["events"], 500 * 12)
        self.assertAlmostEqual(run.trace.processes[0]["min_duration_ns"], 10**10, delta=10**8)

    def test_nothing_is_left_out_by_a_short_time(self):
        program = build("nested", "variants/nested.cc", "-O1", "-fno-inline", "-fno-optimize-sibling-calls")
        usual = self.run_traced(program, 50).trace.tree("--marks")
        # How many calls took no time differs from run to run, by where the processor read its clock.
        runs = [self.run_traced(program, 50, options=NONE).trace.tree("--marks") for _ in range(8)]
        for short in runs:
            self.assertTrue(is_within(ways_out.shown(short), ways_out.shown(usual)))
        self.assert_nearly_all(max(map(len, runs)), len(usual))

    def test_every_way_out_of_a_function(self):
        corpus = ways_out.WaysOut("program")
        for source in ways_out.sources():
            for level in ("-O0", "-O2"):
                if level == "-O0" and source.name in ways_out.OPTIMISED_ONLY | ways_out.O2_ONLY:
                    continue
                if source.name in ("contexts.c", "coroutines.cc"):
                    continue  # calls of a stack that was left are shown in pieces, by another way of counting
                with self.subTest(source=source.name, level=level):
                    run = self.run_traced(corpus.program(source, level, ways_out.PIE), options=ALL)
                    self.assert_whole(run.trace)
                    whole = source.with_suffix(".tree").read_text().splitlines()
                    self.check_tree(whole, ways_out.shown(run.trace.tree("--marks")))

    def test_random_programs(self):
        for level, first in (("-O0", 0), ("-O2", 1000)):
            run = self.run_traced(ways_out_random.program(level), first, 48, options=("--memory", "512M", *ALL))
            self.assert_whole(run.trace)
            truth = ways_out_random.by_thread(run.out.splitlines())
            seen = ways_out_random.by_thread(run.trace.tree("--marks"))
            wrong = {name for name, tree in truth.items()
                     if not is_within(pruned(tree), seen.get(name, [])) or not is_within(seen.get(name, []), tree)}
            self.assertEqual(wrong, set())
            self.assertLess(sum(map(len, seen.values())), sum(map(len, truth.values())))

    def test_a_handler_after_every_instruction(self):
        program = build("steps", "torture/steps.cc", "-O1", "-fno-inline", "-mno-red-zone")
        none = self.run_traced(program, "every", 1, options=NONE)
        _, in_handler, leaves = map(int, none.out.split())
        self.assert_whole(none.trace)
        self.assert_nearly_all(none.trace.counts["leaf()"], leaves)
        self.assert_nearly_all(none.trace.counts["handler_leaf()"], in_handler)
        everything = self.run_traced(program, "every", 1, options=ALL)
        self.assert_whole(everything.trace)
        self.assertEqual(everything.trace.tree()[1:], [])

    def test_a_handler_that_jumps_out_or_leaves_calls_behind_after_each_instruction(self):
        program = build("jumps_out", "variants/jumps_out.cc", "-O1", "-fno-inline", "-mno-red-zone",
                        "-fno-optimize-sibling-calls")
        rounds = 260
        run = self.run_traced(program, rounds, options=ALL)
        thrown, left = map(int, run.out.split())
        self.assertGreater(left, 200)
        self.assert_whole(run.trace)
        tree = run.trace.tree("--marks")
        self.assertEqual(sum("throws()  [unwound]" in line for line in tree), thrown)
        self.assertEqual(sum(line.strip().startswith("one_round") for line in tree), 3 * rounds)
        self.assertEqual({depth(line) for line in tree if "one_round" in line}, {1})
        for line, after in zip(tree, [*tree[1:], ""]):
            if line.strip() in ("short_one()", "short_two()"):  # stayed: something is in it
                self.assertEqual(depth(after), depth(line) + 1, line)

    def test_a_handler_that_fills_the_ring_while_an_enter_is_taken_back(self):
        program = build("steps", "torture/steps.cc", "-O1", "-fno-inline", "-mno-red-zone")
        stepped = int(self.run_traced(program, 0, 1, options=NONE).out.split()[0])
        once_round = 16 * 504 // 2
        wrong = {}
        # The handler's calls take their time, so that none of them is taken back; and those that it may be.
        for calls, work in ((once_round, 300), (9000, 0)):
            for at in range(0, stepped // 2 + 2, 3):
                trace = self.run_traced(program, at, calls, work, options=("--memory", "64K", *NONE)).trace
                problems = [m for m, _ in trace.problems if "missing within" not in m]
                if problems:
                    wrong[at, calls] = problems
        self.assertEqual(wrong, {})

    def test_threads_that_pthread_knows_nothing_of(self):
        program = build("clones", "torture/clones.cc", "-O1", "-fno-inline", "-pthread")
        for mode in ("own", "shared"):
            with self.subTest(mode=mode):
                done = self.run_traced(program, mode, 4, options=ALL, status=None)
                if done.status != 0:
                    self.skipTest(f"clones {mode}: {done.err}")
                self.assert_whole(done.trace)
                self.assertNotIn("leaf(int*)", done.trace.counts)

    def test_what_is_no_time_is_refused(self):
        for text in ("5", "0ns", "11s", "-1us", "10001ms", "us", "1.5us"):
            done = subprocess.run([KARST, "run", "--min-duration=" + text, "/bin/true"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, text)
            self.assertIn("a time from 1ns to 10s is needed", done.stderr)
        done = subprocess.run([KARST, "run", "--min-duration", "5us", "--budget", "5%", "/bin/true"], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("do not go together", done.stderr)


if __name__ == "__main__":
    main()
