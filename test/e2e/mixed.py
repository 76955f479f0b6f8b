"""Programs and libraries that were built for tracing in part: other compilers' objects are patched beside sleds.

The oracle is the same program built for tracing as a whole: its tree must be the same.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from support import BIN, KARST, TIMEOUT, WRAPPERS, TracedTest, Trace, build, main  # noqa: E402
from ways_out import shown  # noqa: E402

# Padding behind functions, as at -O2: a return needs room for a jump.
ROOM = ("-fPIC", "-falign-functions=32")
ALL = ("--min-instructions", "0", "--budget", "off")
SMALL = ("--not-function", r"^~?Guard|Guard\(\)")  # inlined by some compilers


class Mixed(TracedTest):
    def compiler(self, name):
        path = BIN / name if name.startswith("karst-") else Path(shutil.which(name) or name)
        if not path.exists():
            self.skipTest(f"there is no {name}")
        return name if name in WRAPPERS else str(path)

    def other(self, compiler, *flags):
        return build(f"mixed.other.{compiler}{''.join(flags)}.o", "mixed/other.cc", "-c", *ROOM, *flags,
                     compiler=self.compiler(compiler))

    def program(self, built_by, other_by, *flags, **more):
        name = f"mixed.{built_by}.{other_by}{''.join(flags)}{''.join(map(str, more.values()))}"
        return build(name, "mixed/built.cc", *ROOM, *flags, self.other(other_by, *flags),
                     compiler=self.compiler(built_by), **more)

    def tree_of(self, program, *arguments, options=()):
        run = self.run_traced(program, *arguments, options=(*ALL, *SMALL, *options))
        plain = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(run.out, plain.stdout)
        self.assert_whole(run.trace)
        return run, shown(run.trace.tree())

    def check_same_tree(self, built_by, other_by, *flags, **more):
        whole, expected = self.tree_of(self.program(built_by, built_by, *flags), "20")
        self.assertEqual(whole.err.count("patched"), 0, whole.err)
        run, tree = self.tree_of(self.program(built_by, other_by, *flags, **more), "20")
        self.assertEqual(tree, expected)
        self.assertRegex(run.err, r"[45] of \d+ functions patched as it was loaded")
        self.assertTrue(any("pong" in line for line in tree))

    def test_gcc_beside_gcc(self):
        self.check_same_tree("karst-g++", "g++", "-O1")
        self.check_same_tree("karst-g++", "g++", "-O0")

    def test_gcc_beside_clang(self):
        self.check_same_tree("karst-g++", "clang++", "-O1")

    def test_clang_beside_gcc(self):
        self.check_same_tree("karst-clang++", "g++", "-O1")

    def test_clang_with_its_own_table(self):
        """It does not tell what its source keeps out, so nothing is patched."""
        run = self.run_traced(self.program("karst-clang++", "g++", "-O1", at_once=True), options=ALL)
        self.assertIn("mixed::ping(int)", run.trace.counts)
        self.assertNotIn("mixed::pong(int)", run.trace.counts)
        self.assertNotIn("patched", run.err)

    def test_optimised(self):
        """Tail calls and partial inlining differ from compiler to compiler; the calls that are counted do not."""
        program = self.program("karst-g++", "g++", "-O2")
        run = self.run_traced(program, "20", options=ALL)
        self.assert_whole(run.trace)
        counts = run.trace.counts
        whole = self.run_traced(self.program("karst-g++", "karst-g++", "-O2"), "20", options=ALL).trace.counts
        for name in ("mixed::pong(int)", "mixed::pass(int)", "mixed::catch_one(int)", "mixed::throw_from(int)"):
            self.assertEqual(counts[name], whole[name], name)

    def test_what_the_source_keeps_out_stays_out(self):
        for compiler in ("karst-g++", "karst-clang++"):
            with self.subTest(compiler=compiler):
                run = self.run_traced(self.program(compiler, "g++", "-O1"), options=ALL)
                self.assertNotIn("mixed::kept_out(int)", run.trace.counts)
                self.assertIn("mixed::count_up(int)", run.trace.counts)

    def test_stripped(self):
        program = self.program("karst-g++", "g++", "-O1", "-s")
        run = self.run_traced(program, "20", options=ALL)
        self.assert_whole(run.trace)
        self.assertRegex(run.err, r"4 of \d+ functions patched")

    def test_no_patch(self):
        run = self.run_traced(self.program("karst-g++", "g++", "-O1"), options=("--no-patch",))
        self.assertNotIn("mixed::pong(int)", run.trace.counts)
        self.assertIn("mixed::ping(int)", run.trace.counts)

    def test_a_program_of_one_kind_is_not_looked_at(self):
        run = self.run_traced(self.program("karst-g++", "karst-g++", "-O1"))
        self.assertNotIn("patched", run.err)
        modules = run.trace.processes[0]["modules"]
        self.assertEqual([m["patched"] for m in modules if "mixed.karst" in m["path"]], [False])

    def test_counts(self):
        program = self.program("karst-g++", "g++", "-O1")
        done = subprocess.run([KARST, "count", "--min-instructions", "0", program, "20"], capture_output=True, text=True,
                              timeout=TIMEOUT, cwd=self.directory)
        expected = self.run_traced(program, "20", options=ALL).trace.counts
        for name in ("mixed::pong(int)", "mixed::ping(int)", "mixed::pass(int)"):
            self.assertRegex(done.stdout + done.stderr, rf"\b{expected[name]}\b.*{re.escape(name)}", name)

    def test_some_functions(self):
        run = self.run_traced(self.program("karst-g++", "g++", "-O1"), "20", options=(*ALL, "--function", "ping|pong"))
        self.assertEqual(set(run.trace.counts), {"mixed::ping(int)", "mixed::pong(int)"})

    def library(self):
        return build("mixed.library", "mixed/built.cc", "-O1", "-fPIC", "-shared", "-DLIBRARY", ROOM[1],
                     self.other("g++", "-O1"), output="libmixed.so")

    def test_a_library_that_comes_and_goes(self):
        """Its other functions are patched where --library names it, as those of any library are."""
        program = build("mixed.opens", "mixed/opens.cc", "-O1", compiler="g++")
        library = self.library()
        without = self.run_traced(program, library, "3", options=ALL)
        self.assertEqual(without.trace.counts["mixed::ping(int)"] % 3, 0)
        self.assertNotIn("mixed::pong(int)", without.trace.counts)
        run = self.run_traced(program, library, "3", options=(*ALL, "--library", "libmixed*"))
        self.assert_whole(run.trace)
        counts = run.trace.counts
        self.assertEqual({counts[f"mixed::{name}(int)"] for name in ("pass", "catch_one", "count_up")}, {30})
        self.assertEqual(counts["mixed::ping(int)"], without.trace.counts["mixed::ping(int)"])
        self.assertNotIn("means", run.err)

    def test_switched_off_and_on(self):
        program = self.program("karst-g++", "g++", "-O1")
        trace = Trace(self.directory / "trace.karst")
        command = [KARST, "run", *self.SCHED, *ALL, "-o", trace.path, "--", program, "wait"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            pid = process.stdout.readline().strip()

            def tell(*words):
                subprocess.run([KARST, words[0], pid, *words[1:]], check=True, capture_output=True, timeout=TIMEOUT)
            for _ in range(5):
                tell("off")
                tell("on", "--function", "pong")
                tell("on")
            out, _ = process.communicate("\n", timeout=TIMEOUT)
            self.assertEqual(process.returncode, 0)
        rounds = int(out)
        self.assert_whole(trace)
        counts = trace.counts
        self.assertGreater(counts["mixed::ping(int)"], 0)
        self.assertGreater(counts["mixed::pong(int)"], counts["mixed::ping(int)"])
        self.assertLess(counts["mixed::pong(int)"], 3 * rounds)  # it was off meanwhile

    def test_attached(self):
        """Sleds alone: what is there when a process is attached to begins at once."""
        program = self.program("karst-g++", "g++", "-O1")
        trace = Trace(self.directory / "trace.karst")
        with subprocess.Popen([program, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            pid = process.stdout.readline().strip()
            for words in (("attach", pid), ("snapshot", pid, "-o", trace.path)):
                subprocess.run([KARST, *words], check=True, capture_output=True, timeout=TIMEOUT)
            out, _ = process.communicate("\n", timeout=TIMEOUT)
            self.assertGreater(int(out), 0)
        self.assertEqual(set(trace.counts), {"mixed::ping(int)"})


if __name__ == "__main__":
    main()
