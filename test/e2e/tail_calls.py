"""Calls that end by a tail call last until their callee returns, and nothing that the program does is another."""
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from support import BIN, HERE, KARST, TIMEOUT, TracedTest, Trace, build, main  # noqa: E402

WHOLE = ("--min-instructions", "0", "--budget", "off")
TWO_MS = 2_000_000
GCC = "karst-gcc"
CLANG = str(BIN / "karst-clang")
MOST_MORE_STACK = 64 * 64 + 1024  # bytes: so many frames, and a hook


def has_clang():
    return any(map(shutil.which, ("clang", "clang-14")))


class TailCalls(TracedTest):
    def program(self, compiler, *flags, source="program.c"):
        if "clang" in Path(compiler).name and not has_clang():
            self.skipTest("no clang")
        name = f"tail_calls.{source}.{Path(compiler).name}{''.join(f for f in flags if f[:2] != '-l')}"
        return build(name, f"tail_calls/{source}", "-w", "-rdynamic", *flags, "-pthread", *(["-lm"] if source == "program.c" else []),
                     compiler=compiler)

    def same_as_untraced(self, program, *options):
        """What it prints is the same; its stack grows no more than it may."""
        alone = subprocess.run([program, "stack"], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(alone.returncode, 0)
        run = self.run_traced(program, "stack", options=(*WHOLE, *options))
        self.assertEqual(run.out, alone.stdout)
        self.assertEqual(run.trace.problems, [])
        depths = [[int(n) for n in re.search(r"^stack (\d+) (\d+)$", err, re.MULTILINE).groups()] for err in (alone.stderr, run.err)]
        for before, traced in zip(*depths):
            self.assertLessEqual(traced, before + MOST_MORE_STACK)
        return run

    def last_as_long_as_they_did(self, program):
        run = self.same_as_untraced(program)
        rows = {row["function"].split("(")[0]: row for row in run.trace.report()}
        waits = {name: row["min_ns"] for name, row in rows.items() if name.startswith("waits_")}
        self.assertEqual(len(waits), 10)
        for name, least in waits.items():
            self.assertGreaterEqual(least, TWO_MS, name)
        self.assertGreaterEqual(rows["waits_in_a_longer_chain"]["tail_calls"], 2)

    def test_gcc(self):
        self.last_as_long_as_they_did(self.program(GCC, "-O2", "-g"))

    def test_gcc_without_debug_information(self):
        self.last_as_long_as_they_did(self.program(GCC, "-O3", "-g0"))

    def test_clang(self):
        self.last_as_long_as_they_did(self.program(CLANG, "-O2", "-g"))

    def test_clang_by_objects(self):
        """Objects' tables are made shorter, and marked when they are linked."""
        if not has_clang():
            self.skipTest("no clang")
        compiled = build("tail_calls.o", "tail_calls/program.c", "-w", "-O2", "-g", "-c", compiler=CLANG)
        linked = self.directory / "linked"
        subprocess.run([CLANG, "-rdynamic", compiled, "-o", linked, "-pthread", "-lm"], check=True, timeout=TIMEOUT)
        self.last_as_long_as_they_did(linked)

    def test_plain_gcc(self):
        self.last_as_long_as_they_did(self.program("gcc", "-O2", "-g"))

    def test_plain_gcc_at_a_fixed_address(self):
        self.last_as_long_as_they_did(self.program("gcc", "-O2", "-g", "-fno-pie", "-no-pie", "-fcf-protection=none"))

    def test_plain_clang(self):
        if not has_clang():
            self.skipTest("no clang")
        self.last_as_long_as_they_did(self.program("clang", "-O2", "-g"))

    def test_plain_without_debug_information(self):
        """Then it is known of calls of libc's functions by name alone."""
        run = self.same_as_untraced(self.program("gcc", "-O2", "-g0"))
        rows = {row["function"]: row for row in run.trace.report()}
        self.assertGreaterEqual(rows["waits_directly"]["min_ns"], TWO_MS)

    def test_calls_that_are_left_are_named_with_a_bound(self):
        """Where a call must stay a jump into untraced code, its time is not known, and never hidden."""
        named = {("karst-gcc", "-g"): {"with_seven"}, ("gcc", "-g0"): {"by_pointer"}, (CLANG, "-g0"): {"by_pointer"}}
        for (compiler, debug), names in named.items():
            if "clang" in compiler and not has_clang():
                continue
            with self.subTest(compiler=compiler):
                run = self.run_traced(self.program(compiler, "-O2", debug, source="left.c"), options=WHOLE)
                path = str(run.trace.path)
                left = {f["function"]: f for f in json.loads(Trace._ask("slow", "--format", "json", path))["left"]}
                self.assertLessEqual(names, set(left))
                rows = {row["function"]: row for row in json.loads(Trace._ask("report", "--format", "json", path))["functions"]}
                for name in names:
                    self.assertGreaterEqual(left[name]["most_ns"], 5_000_000)
                    self.assertLess(left[name]["usual_ns"], 2_500_000)
                    self.assertEqual((left[name]["calls"], rows[name]["left_calls"]), (300, 300))
                    self.assertLess(rows[name]["max_ns"], 5_000_000)
                    self.assertGreaterEqual(rows[name]["left_max_ns"], 5_000_000)
                self.assertRegex(Trace._ask("slow", path), r"left by a tail call [^:]*:\n( .*\n)*    \w+ up to \d\.\d+ ms\n")
                self.assertRegex(Trace._ask("report", path), r"\(\w+ left by a tail call, up to \S+ ms long")
                # So does what explains a single one.
                for name in names:
                    longest = next(f for f in json.loads(Trace._ask("slow", "--format", "json", path))["left"] if f["function"] == name)
                    calls = json.loads(Trace._ask("calls", "--function", f"^{name}$", "--format", "json", path))
                    at = next(c for c in calls["calls"] if c["begin_ns"] == longest["begin_ns"])
                    words = Trace._ask("explain", "--call", at["call"], path).splitlines()[0]
                    self.assertRegex(words, r"; it was left by a tail call into code that is not traced, and may have lasted up to \d\.\d+ ms$")
                # The page has the same ones.
                on_page = {call["function"]: call for call in self.outliers_of_page(path)["left"]}
                self.assertEqual(sorted(call["most"] for call in on_page.values()), sorted(f["most_ns"] for f in left.values()))
                self.assertRegex(Trace._ask("report", path), r"\+300 tail, 300 left by one, up to \S+ ms long")

    def outliers_of_page(self, path):
        server = subprocess.Popen([KARST, "view", "--no-browser", "--keep", path], stdout=subprocess.PIPE, text=True)
        try:
            url = server.stdout.readline().strip()
            urllib.request.urlopen(url + "api/progress?wait=1", timeout=TIMEOUT).close()
            with urllib.request.urlopen(url + "api/outliers", timeout=TIMEOUT) as answer:
                return json.loads(answer.read())
        finally:
            server.terminate()
            server.communicate(timeout=TIMEOUT)

    def test_by_the_clock_thread_with_stacks_and_values(self):
        program = self.program(GCC, "-O2", "-g")
        for options in (("--clock", "thread"), ("--fibers=stack",), ("--args", "^(by_|waits_)"), ("--min-duration", "1us")):
            with self.subTest(options=options):
                self.same_as_untraced(program, *options)

    def test_rules_keep_them(self):
        run = self.run_traced(self.program(GCC, "-O2", "-g"), options=(*WHOLE, "--over", "^waits_in_a_longer_chain:1ms"))
        self.assertEqual(len(run.trace.info["kept"]), 2)

    def test_exceptions_and_cancellation(self):
        for compiler in ("karst-g++", CLANG + "++", "g++", "clang++"):
            if "clang" in compiler and not has_clang():
                continue
            with self.subTest(compiler=compiler):
                program = self.program(compiler, "-O2", "-g", source="throws.cc")
                alone = subprocess.run([program], capture_output=True, text=True, timeout=TIMEOUT)
                run = self.run_traced(program, options=WHOLE)
                self.assertEqual((run.out, run.trace.problems), (alone.stdout, []))
                self.assertEqual((run.trace.info["unwound_calls"], run.trace.info["tail_calls"]), (1605, 200))
                tree = run.trace.tree()
                at = tree.index("  by_tail_call(int)")
                self.assertEqual(tree[at:at + 5], ["  by_tail_call(int)", "    catches(int)", "      passes_twice(int)",
                                                   "        passes(int)", "          throws(int)"])

    def test_random_signatures(self):
        """What is passed, and what comes back, is what it is untraced: which calls pass something on the stack is never missed."""
        lasted = 0
        makes = [(GCC, "-g"), ("gcc", "-g"), ("gcc", "-g", "-gdwarf-4"), ("g++",), ("g++", "-g")]
        makes += [("gcc",), ("gcc", "-s"), ("gcc", "-O3"), ("gcc", "-Os"), ("gcc", "-O1", "-foptimize-sibling-calls")]
        if has_clang():
            makes += [("clang",), ("clang", "-O3"), ("clang", "-Os"), (CLANG,), (CLANG, "-O1")]
            makes += [(CLANG, "-g"), (CLANG + "++",), ("clang", "-g"), ("clang", "-g", "-gdwarf-4"), ("clang++",), ("clang++", "-g")]
        first = int(os.environ.get("KARST_FIRST_SEED", "0"))
        for seed, (compiler, *flags) in enumerate(makes * int(os.environ.get("KARST_SIGNATURES", "1")), first):
            with self.subTest(seed=seed, compiler=compiler, flags=flags):
                text = subprocess.run([sys.executable, HERE / "tail_calls/signatures.py", str(seed), "50"], check=True,
                                      capture_output=True, text=True).stdout
                source = self.directory / f"signatures{seed}.{'cc' if '++' in compiler else 'c'}"
                source.write_text(text)
                program = source.with_suffix("")
                wrapper = str(BIN / compiler) if compiler.startswith("karst") else compiler
                subprocess.run([wrapper, "-w", "-O2", "-fno-inline", *flags, source, "-o", program], check=True, timeout=TIMEOUT)
                alone = subprocess.run([program], capture_output=True, text=True, timeout=TIMEOUT)
                run = self.run_traced(program, options=WHOLE)
                self.assertEqual((run.out, run.trace.problems), (alone.stdout, []))
                lasted += run.trace.info["tail_calls"] - run.trace.info["left_calls"]
        self.assertGreater(lasted, 5 * len(makes))

    def test_names_of_other_functions(self):
        for compiler in ("gcc", GCC, *([CLANG, "clang"] if has_clang() else [])):
            with self.subTest(compiler=compiler):
                program = self.program(compiler, "-O2", source="names.c")
                alone = subprocess.run([program], capture_output=True, text=True, timeout=TIMEOUT)
                run = self.run_traced(program, options=WHOLE)
                self.assertEqual((run.out, run.trace.problems), (alone.stdout, []))
                self.assertEqual(run.trace.counts["connect"], 2)

    def test_code_that_unloads_itself(self):
        """The call is over when its code has gone."""
        for compiler in (GCC, "gcc"):
            with self.subTest(compiler=compiler):
                plugin = build(f"tail_calls.{compiler}.so", "tail_calls/plugin.c", "-O2", "-g", "-fPIC", "-shared", compiler=compiler)
                host = build(f"tail_calls.host.{compiler}", "tail_calls/host.c", "-O2", "-g", compiler=compiler)
                run = self.run_traced(host, plugin, options=(*WHOLE, "--library", "*tail_calls*"))
                self.assertEqual((run.out, run.trace.problems), ("20 1\n", []))
                calls = {row["function"]: (row["calls"], row["tail_calls"]) for row in run.trace.report()}
                self.assertEqual((calls["unloads"], calls["unloads_below"]), ((20, 20), (20, 20)))

    def test_switched_off_meanwhile(self):
        """A call that waits while tracing is switched off, and comes back then or later, puts nothing into doubt."""
        program = self.program(GCC, "-O2", "-g")
        path = self.directory / "trace.karst"
        process = subprocess.Popen([KARST, "run", *self.SCHED, *WHOLE, "-o", str(path), "--", program], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        pid = None
        while process.poll() is None:
            try:
                children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
                pid = next((c for c in children if Path(f"/proc/{c}/exe").resolve() == Path(program).resolve()), pid)
            except OSError:  # one has ended meanwhile
                continue
            if pid:
                for what in ("off", "on"):
                    subprocess.run([KARST, what, pid], capture_output=True, timeout=TIMEOUT)
        out, err = process.communicate(timeout=TIMEOUT)
        self.assertEqual((process.returncode, out.splitlines()[0]), (0, "waited 1"), err)
        self.assertEqual(Trace(path).problems, [])

    def test_gdb_sees_the_callers(self):
        if shutil.which("gdb") is None:
            self.skipTest("no gdb")
        program = self.program(GCC, "-O2", "-g")
        commands = [f"set exec-wrapper env LD_PRELOAD={BIN.parent}/lib/libkarst.so", "set breakpoint pending on",
                    "break clock_nanosleep", "run", "backtrace"]
        done = subprocess.run(["gdb", "-q", "-batch", *(word for c in commands for word in ("-ex", c)), program],
                              capture_output=True, text=True, timeout=TIMEOUT)
        if "#0" not in done.stdout:
            self.skipTest(f"gdb cannot trace here: {(done.stdout + done.stderr).strip().splitlines()[-1:]}")
        functions = re.findall(r"^#\d+ +(?:0x\w+ in )?(\w+)", done.stdout, re.MULTILINE)
        self.assertEqual(functions[-2:], ["karst_tail_frame", "main"], done.stdout + done.stderr)


if __name__ == "__main__":
    main()
