"""Fibers: programs that switch stacks themselves, in several threads, against what they log of it (fibers/random.cc)."""
import json
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import torture_support as support  # noqa: E402
from torture_support import BIN, KARST, ROOT, TortureTest, build, main  # noqa: E402

INCLUDE = ("-I", str(ROOT / "include"))
FIRST_FIBER = 1_000_000_001
OWN = ("--functions", r"^\(anonymous namespace\)::")  # not the standard library's


def program(level="-O2", compiler="karst-g++"):
    flags = ("-std=c++20", "-pthread", level, *INCLUDE)
    if compiler != "karst-g++":
        return build(f"fibers_random_clang{level}", "fibers/random.cc", *flags, compiler=str(BIN / compiler))
    return build(f"fibers_random{level}", "fibers/random.cc", *flags)


def plain(line):
    return re.sub(r"\(.*\)$", "", line.replace("(anonymous namespace)::", ""))


def trees(lines, header):
    """{thread: lines}, without the calls of signal handlers, which come at any place."""
    found = {}
    for line in lines:
        match = re.match(header, line)
        if match:
            tree = found.setdefault(match[1], [])
        elif plain(line).strip() != "handled":
            tree.append(plain(line))
    return found


def logged(out):
    *lines, handled = out.splitlines()
    return trees(lines, r"# (.*)$"), int(handled.split()[1])


def told(trace, *options):
    return trees(trace.tree(*options), r"# process .* thread \d+ (.*)$")


def notes_of(path):
    done = subprocess.run([KARST, "notes", "--json", str(path)], check=True, capture_output=True, text=True,
                          timeout=support.TIMEOUT)
    return json.loads(done.stdout)["notes"]


def calls_of(path, *options):
    done = subprocess.run([KARST, "calls", "--raw", "--json", str(path), *options], check=True, capture_output=True,
                          text=True, timeout=support.TIMEOUT)
    return json.loads(done.stdout)["calls"]


class Fibers(TortureTest):
    def check(self, run):
        log, handled = logged(run.out)
        self.assert_whole(run.trace)
        tree = told(run.trace)
        for thread, lines in log.items():
            self.assertEqual(tree.get(thread, []), lines, thread)
        self.assertEqual({name for name in set(tree) - set(log) if name.startswith(("fiber no.", "worker"))}, set())
        self.assertEqual(run.trace.counts.get("(anonymous namespace)::handled()", 0), handled)
        return log, handled

    def test_random_programs_tell_the_same(self):
        for seed, (fibers, threads, steps) in enumerate(((1, 1, 50), (5, 1, 200), (7, 3, 400), (40, 4, 300))):
            for level in ("-O0", "-O2"):
                with self.subTest(seed=seed, level=level):
                    self.check(self.run_traced(program(level), seed, fibers, threads, steps, options=OWN))

    def test_under_signals_and_other_hooks(self):
        # A clock's thread stamps what two threads do within its period with one time: docs/limits.md.
        for threads, *options in ((3,), (1, "--clock", "thread"), (3, "--slowest", "outer:5")):
            with self.subTest(options=options):
                run = self.run_traced(program(), 7, 20, threads, 2000, "signals", options=(*OWN, *options))
                self.assertGreater(self.check(run)[1], 0)

    def test_clang(self):
        if not (BIN / "karst-clang++").exists():
            self.skipTest("there is no karst-clang++")
        self.check(self.run_traced(program("-O1", "karst-clang++"), 3, 9, 2, 300, options=OWN))

    def test_a_wrapped_ring_puts_every_call_into_its_fiber(self):
        run = self.run_traced(program(), 5, 30, 4, 20000, options=(*OWN, "--memory", "2M"))
        log, _ = logged(run.out)
        self.assertEqual([p for p, _ in run.trace.problems if not p.startswith("blocks missing")], [])
        self.assertGreater(run.trace.info["overwritten_events"], 0)
        self.assertLessEqual(set(told(run.trace)), set(log) | {Path(program()).name[:15]})
        notes = notes_of(run.trace.path)
        self.assertGreater(len(notes), 1000)
        for note in notes:
            fiber, _, function = re.match(r"(.*) (\d+) (\w+)$", note["value"]).groups()
            self.assertEqual(note["thread"], fiber)
            self.assertIn(plain(note["in"]), (function, ""))


if __name__ == "__main__":
    main()
