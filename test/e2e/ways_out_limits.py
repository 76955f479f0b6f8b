"""What docs/limits/may-recording.md says of ways out that are not seen: that it is so, and that nothing is invented."""
import bisect
import functools
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from support import BIN, HERE, KARST, TIMEOUT, TracedTest, Trace, build, main  # noqa: E402
from ways_out import STEADY, STEADY_GCC, shown  # noqa: E402


@functools.cache
def runtime_functions():
    """(address, name) of libkarst's functions, in order."""
    lines = subprocess.run(["nm", "--defined-only", BIN.parent / "lib/libkarst.so"], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    return sorted((int(address, 16), name) for address, kind, name in map(str.split, lines) if kind in "tT")


def function_at(address):
    return runtime_functions()[bisect.bisect(runtime_functions(), (address, "\x7f")) - 1][1]


class Limits(TracedTest):
    def trace(self, name, source, *flags, compiler="karst-g++"):
        return self.tree_of(build(name, f"ways_out/limits/{source}", "-O1", *STEADY, *STEADY_GCC, *flags,
                                  compiler=compiler))

    def tree_of(self, program):
        run = self.run_traced(program, options=("--no-patch",))
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

    def test_the_return_of_a_personality_routine_fits_no_call(self):
        program = build("ways_out.personality", "ways_out/limits/personality.cc", "-O1", "-static-libstdc++", compiler="g++")
        run = self.run_traced(program, options=("--budget", "off", "--min-instructions", "0"))
        tree, problems = self.seen(run)
        at = [line.strip() for line in tree]
        self.assertEqual(at.count("__gxx_personality_v0  [unwound]"), 5)
        self.assertEqual(sum(line.endswith("throws(int)  [unwound]") for line in at), 1 + 2 + 3 + 4 + 5)
        self.assertEqual(problems, {"returns that fit no call: they are left out": 5})

    def test_builtin_longjmp_is_not_seen(self):
        tree, missing = self.trace("ways_out.builtin_jump", "builtin_jump.cc")
        self.assertEqual(tree, ["# thread", "main", "  comes_back()", "    jumps()  [open]", "      back()", "  after()"])
        self.assertEqual(missing, 1)

    def seen(self, run):
        """The tree without its headers, and what was wrong."""
        lines = [line for line in shown(run.trace.tree("--marks")) if not line.startswith("#")]
        return lines, {message.split(" (")[0]: count for message, count in run.trace.problems}

    def ran(self, source, *arguments, compiler="karst-g++", flags=()):
        run = self.run_traced(build(f"ways_out.{source}", f"ways_out/limits/{source}", "-O1", *STEADY, *STEADY_GCC, *flags,
                                    compiler=compiler), *arguments)
        return (*self.seen(run), run)

    def test_stacks_switched_by_own_assembly_are_not_seen(self):
        tree, problems, run = self.ran("switches.cc", "assembly")
        self.assertEqual(tree, ["main", "  resumes()", "    yields()  [open]", "      work()", "  resumes()", "    work()",
                                "    yields()  [open]", "      work()", "  after()"])
        self.assertEqual(problems, {"returns that fit no call: they are left out": 1,
                                    "calls whose caller returned while they had not": 2})
        self.assertIn("marked open; of yields (2)", "\n".join(message for message, _ in run.trace.problems))

    def test_longjmp_to_a_stack_above_is_taken_for_a_way_out(self):
        tree, problems, _ = self.ran("switches.cc", "longjmp")
        self.assertEqual(tree, ["main", "  goes_away()", "    jumps_home()  [jumped]", "      work()", "  after()"])
        self.assertEqual(problems, {})

    def test_threads_of_thrd_create_and_the_main_thread_end_in_open_calls(self):
        flags = ["-pthread"]
        tree, problems, _ = self.ran("threads.c", "thrd", compiler="karst-gcc", flags=flags)
        self.assertEqual((tree, problems), (["main", "  after", "passes  [open]", "  ends  [open]"], {}))
        tree, problems, _ = self.ran("threads.c", "main", compiler="karst-gcc", flags=flags)
        self.assertEqual((tree, problems), (["main  [open]", "  passes  [open]", "    ends  [open]"], {}))

    def test_a_jump_out_of_a_handler_in_a_hook_costs_at_most_an_event_of_the_interrupted_function(self):
        tree, problems, run = self.ran("jump_out.cc", flags=["-mno-red-zone"])
        rounds = int(run.out)
        self.assertGreater(rounds, 2 * 25)  # an enter's hook and an exit's
        self.assertLessEqual(sum(problems.values()), rounds)
        self.assertEqual(tree[:2], ["main", "  leaf()"])
        each = []
        for line in tree[2:]:
            if line == "  round_of_steps()":
                each.append([])
            else:
                each[-1].append(line)
        self.assertEqual(len(each), rounds)
        back = "    came_back()"
        leaf = "    leaf()"
        self.assertEqual(each[-1], [leaf])
        for calls in each[:-1]:
            self.assertIn(calls, ([back], [leaf + "  [jumped]", back], [leaf, back], [leaf + "  [open]", back]))
        self.assertIn([leaf + "  [jumped]", back], each)
        self.assertIn([back], each)

    def test_an_exception_through_what_clang_inlined_and_calls_for_is_not_seen(self):
        wrapper = BIN / "karst-clang++"
        if not wrapper.exists() or not any(map(shutil.which, ("clang++", "clang++-14"))):
            self.skipTest("no clang")
        for method, tree in (
                ("finstrument", ["main", "  catches()", "    inlined()  [open]", "      throws()  [unwound]", "      handler()",
                                 "      after()", "  after()"]),
                ("finstrument-after-inlining", ["main", "  catches()", "    throws()  [unwound]", "    handler()", "    after()",
                                                "  after()"])):
            run = self.run_traced(build(f"ways_out.inlined.{method}", "ways_out/limits/inlined.cc", "-O2", *STEADY,
                                        f"--karst-method={method}", compiler=str(wrapper)))
            lines, problems = self.seen(run)
            self.assertEqual(lines, tree)
            self.assertEqual(sum(problems.values()), 1 if method == "finstrument" else 0)
        run = self.run_traced(build("ways_out.inlined.gcc", "ways_out/limits/inlined.cc", "-O2", *STEADY,
                                    "--karst-method=finstrument"))
        self.assertEqual(self.seen(run), (["main", "  catches()", "    inlined()", "      throws()", "    handler()", "    after()",
                                           "  after()"], {}))

    def test_what_stands_beside_a_tail_call_may_not_be_what_it_called(self):
        tree, problems, _ = self.ran("tail_of_untraced.cc", flags=["-foptimize-sibling-calls"])
        self.assertEqual((tree, problems), (["main", "  tail()  [tail]", "    within()", "  beside()"], {}))

    def test_libkarst_that_came_late_sees_no_exceptions(self):
        host = build("ways_out.late", "ways_out/limits/late.cc", "-O1", "-ldl", compiler="g++")
        plugin = build("ways_out.late.so", "ways_out/plugin/plugin.cc", "-O1", "-fPIC", "-shared", "--karst-link", *STEADY,
                       *STEADY_GCC)
        process = subprocess.Popen([host, plugin], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.assertEqual(process.stdout.readline(), "ready\n")
        path = self.directory / "late.karst"
        subprocess.run([KARST, "snapshot", str(process.pid), "-o", str(path)], check=True, capture_output=True, timeout=TIMEOUT)
        trace = Trace(path)
        self.assertEqual(shown(trace.tree("--marks"))[1:], ["run", "  guarded()  [open]", "    throws()  [open]",
                                                            "      Guard::~Guard()", "        cleanup()", "      handler()"])
        self.assertEqual([count for _, count in trace.problems], [2])

    def test_cleanup_handlers_of_c_stand_below_what_was_cancelled(self):
        run = self.run_traced(build("ways_out.c_cleanup", "ways_out/limits/c_cleanup.c", "-O1", *STEADY, *STEADY_GCC,
                                    "-fno-exceptions", "-pthread", compiler="karst-gcc"))
        tree = shown(run.trace.tree("--marks"))
        at = tree.index("thread_main  [unwound]")
        self.assertEqual(tree[at:at + 3], ["thread_main  [unwound]", "  ends  [open]", "    handler"])

    def unwinding(self, *flags, name="unwinding"):
        return build(f"ways_out.{name}", "ways_out/limits/unwinding.cc", "-O1", "-fomit-frame-pointer", "-mno-red-zone", *STEADY,
                     *flags)

    def check_steps(self, out, found_in_trampolines=0):
        """Callers were found at every step but for those in trampolines. How many steps there were of each kind, and the
        functions of libkarst in which."""
        first, *places = out.splitlines()
        counts = list(map(int, first.split()))
        lost = {function_at(int(place, 16)) for place, _, lost in map(str.split, places) if lost != "0"}
        self.assertEqual((counts[1::2][:2], lost), ([0, 0], set()))
        if found_in_trampolines is not None:
            self.assertEqual(counts[4], found_in_trampolines)
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
        self.check_hooks(15, self.unwinding(), self.unwinding("--karst-method=finstrument", name="unwinding.finstrument"))

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

    def test_unwinding_works_at_every_instruction_of_tail_calls(self):
        for name, flags, rounds in (("unwinding", (), 100), ("unwinding.libunwind", ("-DWITH_LIBUNWIND", "-lunwind"), 10)):
            for options in ((), ("--slowest", "passes_on:5"), ("--clock", "thread")):
                with self.subTest(name=name, options=options):
                    run = self.run_traced(self.unwinding(*flags, name=name), "tail_calls", rounds, options=options)
                    # libunwind goes on by rbp where it knows nothing of the code.
                    _, _, stepped = self.check_steps(run.out, None if "libunwind" in name else 0)
                    self.assertLessEqual({"karst_hook_tail", "karst_tail_frame"}, stepped)
                    self.assertEqual(run.trace.info["tail_calls"], 3 * rounds)

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
