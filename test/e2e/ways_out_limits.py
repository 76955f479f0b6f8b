"""What docs/limits.md says of ways out that are not seen: that it is so, and that nothing is invented."""
import bisect
import functools
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from torture_support import BIN, HERE, KARST, TIMEOUT, TortureTest, build, main  # noqa: E402
from ways_out import STEADY, STEADY_GCC, shown  # noqa: E402


@functools.cache
def runtime_functions():
    """(address, name) of libkarst's functions, in order."""
    lines = subprocess.run(["nm", "--defined-only", BIN.parent / "lib/libkarst.so"], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    return sorted((int(address, 16), name) for address, kind, name in map(str.split, lines) if kind in "tT")


def function_at(address):
    return runtime_functions()[bisect.bisect(runtime_functions(), (address, "\x7f")) - 1][1]


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

    def unwinding(self, *flags, name="unwinding"):
        return build(f"ways_out.{name}", "ways_out/limits/unwinding.cc", "-O1", "-fomit-frame-pointer", "-mno-red-zone", *STEADY,
                     *flags)

    def check_steps(self, out):
        """Callers were found at every step but for those in trampolines. How many steps there were of each kind, and the
        functions of libkarst in which."""
        first, *places = out.splitlines()
        counts = list(map(int, first.split()))
        lost = {function_at(int(place, 16)) for place, _, lost in map(str.split, places) if lost != "0"}
        self.assertEqual((counts[1::2][:2], counts[4], lost), ([0, 0], 0, set()))
        return counts[::2][:2], counts[5], {function_at(int(line.split()[0], 16)) for line in places}

    def test_unwinding_works_at_every_instruction_of_hooks_and_not_in_trampolines(self):
        (program, hooks), trampolines, _ = self.check_steps(self.run_traced(self.unwinding(), "calls", 300).out)
        self.assertGreater(program, 2000)
        self.assertGreater(hooks, 300 * 4 * 20)
        self.assertEqual(trampolines, 300 * 4 * 2)

    def test_libunwind_unwinds_as_backtrace_does(self):
        program = self.unwinding("-DWITH_LIBUNWIND", "-lunwind", name="unwinding.libunwind")
        (program, hooks), trampolines, _ = self.check_steps(self.run_traced(program, "calls", 30).out)
        self.assertGreater(program, 200)
        self.assertGreater(hooks, 30 * 4 * 20)
        self.assertEqual(trampolines, 30 * 4 * 2)

    def test_unwinding_works_in_the_hooks_of_every_option(self):
        self.check_hooks(40, self.unwinding(), self.unwinding("--karst-method=finstrument", name="unwinding.finstrument"))

    def test_libunwind_unwinds_in_the_hooks_of_every_option(self):
        flags = ["-DWITH_LIBUNWIND", "-lunwind"]
        self.check_hooks(4, self.unwinding(*flags, name="unwinding.libunwind"),
                         self.unwinding("--karst-method=finstrument", *flags, name="unwinding.libunwind.finstrument"))

    def check_hooks(self, rounds, sled, calls):
        short, slow = ("--min-duration", "10000ms"), ("--slowest", "leaf:5")
        clock = ("--clock", "thread")
        for program, options, hooks in (
                (sled, (), {"trace"}), (sled, clock, {"trace_clock"}), (sled, short, {"trace", "trim"}),
                (sled, ("--min-duration", "1ns"), {"trace", "trim"}), (sled, (*short, *clock), {"trace_clock", "trim_clock"}),
                (sled, slow, {"watch_enter", "watch_exit"}),
                (sled, (*slow, *clock), {"watch_enter_clock", "watch_exit_clock"}),
                (calls, slow, {"divide_enter", "divide_exit", "watch_enter", "watch_exit"})):
            with self.subTest(options=options):
                run = self.run_traced(program, "calls", rounds, options=options)
                _, _, functions = self.check_steps(run.out)
                if "thread" in options and run.trace.processes[0]["clock"] != "thread":
                    continue  # there is one CPU alone
                self.assertLessEqual({"karst_hook_" + hook for hook in hooks}, functions)
                if program is calls:
                    self.assertLessEqual({"__cyg_profile_func_enter", "__cyg_profile_func_exit"}, functions)
        done = subprocess.run([KARST, "count", "--", sled, "calls", str(rounds)], capture_output=True, text=True, timeout=TIMEOUT,
                              cwd=self.directory)
        self.assertEqual(done.returncode, 0, done.stderr)
        steps = [line for line in done.stdout.splitlines() if re.fullmatch("[0-9a-f]+( [0-9]+)+", line)]
        _, _, functions = self.check_steps("\n".join(steps))
        self.assertIn("karst_hook_count", functions)

    def test_unwinding_works_where_libkarst_stands_before_libc(self):
        jumps = {"setjmp", "_setjmp", "__sigsetjmp", "longjmp", "_longjmp", "siglongjmp", "__longjmp_chk"}
        starts = {"execve", "execv", "execvp", "execvpe", "execl", "execle", "execlp", "fexecve"}
        for what, functions in (("jumps", jumps), ("contexts", {"getcontext", "setcontext", "swapcontext"}),
                                ("vforks", {"vfork"}), ("starts", starts), ("child", {"karst_hook_trace"})):
            with self.subTest(what=what):
                _, _, stepped = self.check_steps(self.run_traced(self.unwinding(), what, 3).out)
                self.assertLessEqual(functions, stepped)

    def test_gdb_unwinds_at_every_instruction_of_hooks_and_trampolines(self):
        if shutil.which("gdb") is None:
            self.skipTest("no gdb")
        program = build("ways_out.stepped", "ways_out/limits/stepped.cc", "-O1", "-fomit-frame-pointer", *STEADY)
        for options in ((), ("--min-duration", "1ns"), ("--slowest", "leaf:5")):
            run = self.run_traced("gdb", "-nx", "-batch", "-x", HERE / "ways_out/limits/step_in_gdb.py", program, options=options)
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
