"""What docs/limits.md says of ways out that are not seen: that it is so, and that nothing is invented."""
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from torture_support import BIN, HERE, TortureTest, build, main  # noqa: E402
from ways_out import STEADY, STEADY_GCC, shown  # noqa: E402


class Limits(TortureTest):
    def trace(self, name, source, *flags, compiler="karst-g++"):
        return self.tree_of(build(name, f"ways_out/limits/{source}", "-O1", *STEADY, *STEADY_GCC, *flags,
                                  compiler=compiler))

    def tree_of(self, program):
        run = self.run_traced(program)
        missing = sum(count for message, count in run.trace.problems if "returned while they had not" in message)
        self.assertEqual(run.trace.info["open_calls"], missing)
        return shown(run.trace.tree("--marks")), missing

    def test_an_unwinder_inside_a_module_that_no_wrapper_linked_is_not_seen(self):
        compiled = build("ways_out.own_unwinder.o", "ways_out/limits/own_unwinder.cc", "-O1", *STEADY, *STEADY_GCC, "-c")
        program = self.directory / "own_unwinder"
        subprocess.run(["g++", "-static-libgcc", "-static-libstdc++", compiled, BIN.parent / "lib/karst/module.o", "-o",
                        program], check=True)
        tree, missing = self.tree_of(program)
        self.assertEqual(tree, ["# thread", "main", "  catches()", "    throws()  [open]", "      handler()", "  after()"])
        self.assertEqual(missing, 1)

    def test_builtin_longjmp_is_not_seen(self):
        tree, missing = self.trace("ways_out.builtin_jump", "builtin_jump.cc")
        self.assertEqual(tree, ["# thread", "main", "  comes_back()", "    jumps()  [open]", "      back()", "  after()"])
        self.assertEqual(missing, 1)

    def test_cleanup_handlers_of_c_stand_below_what_was_cancelled(self):
        run = self.run_traced(build("ways_out.c_cleanup", "ways_out/limits/c_cleanup.c", "-O1", *STEADY, *STEADY_GCC,
                                    "-fno-exceptions", "-pthread", compiler="karst-gcc"))
        tree = shown(run.trace.tree("--marks"))
        at = tree.index("thread_main  [unwound]")
        self.assertEqual(tree[at:at + 3], ["thread_main  [unwound]", "  ends  [open]", "    handler"])

    def unwinds(self, rounds, *flags):
        """How often a caller was found and lost: in the program, in hooks, in trampolines."""
        run = self.run_traced(build(f"ways_out.unwinding{len(flags)}", "ways_out/limits/unwinding.cc", "-O1",
                                    "-fomit-frame-pointer", "-mno-red-zone", *STEADY, *flags), rounds)
        counts = list(map(int, run.out.split()))
        return list(zip(counts[::2], counts[1::2]))

    def test_unwinding_works_at_every_instruction_of_hooks_and_not_in_trampolines(self):
        program, hooks, trampolines = self.unwinds(300)
        self.assertGreater(program[0], 2000)
        self.assertGreater(hooks[0], 300 * 4 * 20)
        self.assertEqual((program[1], hooks[1]), (0, 0))
        self.assertEqual(trampolines, (0, 300 * 4 * 2))

    def test_libunwind_unwinds_as_backtrace_does(self):
        program, hooks, trampolines = self.unwinds(30, "-DWITH_LIBUNWIND", "-lunwind")
        self.assertGreater(program[0], 200)
        self.assertGreater(hooks[0], 30 * 4 * 20)
        self.assertEqual((program[1], hooks[1]), (0, 0))
        self.assertEqual(trampolines, (0, 30 * 4 * 2))

    def test_gdb_unwinds_at_every_instruction_of_hooks_and_trampolines(self):
        if shutil.which("gdb") is None:
            self.skipTest("no gdb")
        run = self.run_traced("gdb", "-nx", "-batch", "-x", HERE / "ways_out/limits/step_in_gdb.py",
                              build("ways_out.stepped", "ways_out/limits/stepped.cc", "-O1", "-fomit-frame-pointer",
                                    *STEADY))
        steps = [line.split()[1:] for line in run.out.splitlines() if line.startswith("step ")]
        counts = Counter(where for where, *_ in steps)
        self.assertGreater(counts["hook"], 2 * 20, run.out + run.err)
        self.assertEqual((counts["trampoline"], counts["library"]), (2 * 2, 0))
        for where, *names in steps:
            self.assertEqual(names[-2:], ["calls", "main"], (where, names))
            if where in ("hook", "trampoline"):
                self.assertEqual(names[-3], "leaf", (where, names))


if __name__ == "__main__":
    main()
