"""What docs/limits.md says of ways out that are not seen: that it is so, and that nothing is invented."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from torture_support import TortureTest, build, main  # noqa: E402
from ways_out import STEADY, STEADY_GCC, shown  # noqa: E402


class Limits(TortureTest):
    def trace(self, name, source, *flags, compiler="karst-g++"):
        run = self.run_traced(build(name, f"ways_out/limits/{source}", "-O1", *STEADY, *STEADY_GCC, *flags,
                                    compiler=compiler))
        missing = sum(count for message, count in run.trace.problems if "returned while they had not" in message)
        self.assertEqual(run.trace.info["open_calls"], missing)
        return shown(run.trace.tree("--marks")), missing

    def test_an_unwinder_inside_the_module_is_not_seen(self):
        tree, missing = self.trace("ways_out.own_unwinder", "own_unwinder.cc", "-static-libgcc", "-static-libstdc++")
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

    def test_unwinding_works_at_every_instruction_of_hooks_and_not_in_trampolines(self):
        run = self.run_traced(build("ways_out.unwinding", "ways_out/limits/unwinding.cc", "-O1", "-fomit-frame-pointer",
                                    "-mno-red-zone", *STEADY))
        in_program, lost_there, in_hooks, lost_in_hooks, in_trampolines, lost_in_trampolines = map(int, run.out.split())
        self.assertGreater(in_program, 2000)
        self.assertGreater(in_hooks, 300 * 4 * 20)
        self.assertEqual((lost_there, lost_in_hooks), (0, 0))
        self.assertEqual((in_trampolines, lost_in_trampolines), (0, 300 * 4 * 2))


if __name__ == "__main__":
    main()
