"""Programs that were not built for Karst: patched as they are loaded."""
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from support import BIN, HERE, KARST, TIMEOUT, TracedTest, Trace, build, main  # noqa: E402
from ways_out import CORPUS, FLAGS, NO_PIE, O2_ONLY, OPTIMISED_ONLY, PIE, STEADY, STEADY_GCC, shown, sources  # noqa: E402

WHOLE = ("--min-instructions", "0", "--budget", "off")
# What the corpus keeps compilers from giving sleds.
# clang has no exceptions out of signal handlers, and other parts of coroutines.
NOT_BY_CLANG = {"faults.cc", "coroutines.cc"}
UNTRACED = ("--not-function", r"^(untraced_\w+|handle|eats_stack|catches_below)($|\()")


def left_alone(program):
    """Name: why it is not patched, of the functions that have a name."""
    done = subprocess.run([KARST, "places", "--json", "--min-instructions", "0", program], capture_output=True, text=True,
                          check=True, timeout=TIMEOUT)
    return {f["function"]: f["reason"] for f in json.loads(done.stdout)["functions"]}


def without(tree, names):
    """The tree as it is when these functions are not seen: what they call is their callers'."""
    kept, gone = [], []
    for line in tree:
        depth = len(line) - len(line.lstrip())
        gone = [d for d in gone if d < depth]
        name = re.sub(r"  \[.*", "", line.strip())
        if name in names:
            gone.append(depth)
        else:
            kept.append(" " * (depth - 2 * len(gone)) + line.lstrip())
    return kept


class Trees(TracedTest):
    """The same trees as with sleds."""

    def same_trees(self, level, clang=False, kind=("-fPIE", "-pie")):
        seen = 0
        for source in sources():
            if (source.name in OPTIMISED_ONLY and level == "-O0") or (source.name in O2_ONLY and level != "-O2"):
                continue
            if clang and source.name in NOT_BY_CLANG:
                continue
            with self.subTest(source=source.name):
                cxx = source.suffix == ".cc"
                compiler = ("clang" if clang else "g" if cxx else "gcc") + ("++" if cxx else "")
                flags = [level, *kind, *STEADY, *([] if clang else STEADY_GCC), *FLAGS.get(source.name, []), "-pthread"]
                if cxx:
                    flags.append("-std=c++20")
                name = f"plain.{source.stem}.{compiler}{level}{''.join(kind)}"
                program = build(name, f"ways_out/{source.name}", *flags, compiler=compiler)
                run = self.run_traced(program, options=(*WHOLE, *UNTRACED))
                alone = left_alone(program)
                expected = without(source.with_suffix(".tree").read_text().splitlines(), alone)
                tree = shown(run.trace.tree("--marks"))
                if source.name == "vforks.c":  # it executes /bin/true, which is patched as well
                    tree = (tree + ["# thread"])[:(tree + ["# thread"]).index("# thread", 1)]
                self.assertEqual(tree, expected, alone)
                self.assert_whole(run.trace)
                seen += 1
        self.assertGreater(seen, 5)

    def test_gcc_O0(self):
        self.same_trees("-O0")

    def test_gcc_O1(self):
        self.same_trees("-O1")

    def test_gcc_O2(self):
        self.same_trees("-O2")

    def test_gcc_O2_at_a_fixed_address(self):
        self.same_trees("-O2", kind=("-fno-pie", "-no-pie"))

    def test_gcc_O3(self):
        self.same_trees("-O3")

    def test_clang_O2(self):
        self.by_clang("-O2")

    def test_clang_O0_and_O3_at_a_fixed_address(self):
        self.by_clang("-O0", "-O3", kind=NO_PIE)

    def by_clang(self, *levels, **options):
        if shutil.which("clang++") is None:
            self.skipTest("no clang")
        for level in levels:
            self.same_trees(level, clang=True, **options)

    def test_jumps_that_call_nothing(self):
        """__builtin_longjmp: its own function is left alone, as it jumps to an address in a register."""
        expected = (HERE / "plain" / "builtin_jumps.tree").read_text().splitlines()
        for compiler, *levels in (("gcc", "-O0", "-O1", "-O2", "-O3"), ("clang", "-O1", "-O2")):
            if shutil.which(compiler) is None:
                continue
            for flags in [[level, *kind] for level in levels for kind in (PIE, NO_PIE, [*PIE, "-fcf-protection"])]:
                with self.subTest(compiler=compiler, flags=flags):
                    name = f"plain.builtin_jumps.{compiler}{''.join(flags)}"
                    program = build(name, "plain/builtin_jumps.c", *flags, *STEADY, *([] if compiler == "clang" else STEADY_GCC),
                                    "-falign-functions=16", compiler=compiler)
                    alone = left_alone(program)
                    self.assertNotIn("descends", alone)
                    for options in (WHOLE, (*WHOLE, "--clock", "thread")):
                        run = self.run_traced(program, options=options,
                                              status=subprocess.run([program], timeout=TIMEOUT).returncode)
                        self.assertEqual(shown(run.trace.tree("--marks")), without(expected, alone), alone)
                        self.assert_whole(run.trace)


class Stock(TracedTest):
    """Debian's own programs, all functions patched that can be: same output, same status."""

    COMMANDS = (
        ("ls", "-la", "/usr/lib"), ("bash", "-c", "f() { echo ${1^^}; }; for i in a b; do f $i; done; exit 3"),
        ("dash", "-c", "for i in a b; do echo $i; done"),
        ("/usr/bin/python3", "-c", "import json, re; print(json.dumps({str(i): i * i for i in range(99)}), re.sub('a+', 'b', 'xaay'))"),
        ("perl", "-e", "$s += $_ for 1..999; print $s; eval { die 'x' }; print $@"), ("git", "--version"), ("gzip", "-c", "{}"),
        ("bzip2", "-c", "{}"), ("xz", "-c", "{}"), ("zstd", "-c", "{}"), ("sort", "{}"), ("grep", "-n", "Karst", "{}"),
        ("sed", "s/a/b/", "{}"), ("awk", "{n += NF} END {print n}", "{}"), ("find", "/usr/share/doc/bash"), ("diff", "{}", "/dev/null"),
        ("tar", "cf", "-", "{}"), ("md5sum", "{}"), ("sha512sum", "{}"), ("cat", "{}"), ("cut", "-c1-5", "{}"), ("od", "{}"),
        ("expr", "3", "+", "4"), ("factor", "1234567890123"), ("seq", "100"), ("stat", "-c%s", "{}"), ("du", "-a", "/etc/default"),
        ("uniq", "{}"), ("base64", "{}"), ("head", "-3", "{}"), ("tail", "-3", "{}"), ("wc", "{}"), ("readelf", "-a", "/bin/true"),
        ("nm", "-D", "/bin/ls"), ("objdump", "-d", "/bin/true"), ("strings", "/bin/true"), ("make", "--version"), ("cmake", "--version"),
        ("openssl", "dgst", "-sha256", "{}"), ("sqlite3", ":memory:", "select 3 * 4;"), ("gdb", "--batch", "-ex", "print 3 * 4"),
        ("lua5.4", "-e", "t = {} for i = 1, 3000 do t[i] = tostring(i * 7919 % 1009) end table.sort(t) print(#table.concat(t)); "
                         "c = coroutine.wrap(function() for i = 1, 99 do coroutine.yield(i) end end); print(c() + c()); "
                         "print(pcall(error, 'x'), (('x'):rep(100):gsub('x', function(c) return c .. 'y' end)))"),
        ("ninja", "--version"), ("file", "{}"), ("curl", "--version"), ("printf", "%d", "3"), ("date", "-d@0"), ("tr", "a", "b"),
    )

    def test_functions_that_are_left_alone_are_told_of(self):
        """As many as karst places lists, in the trace and of a process that runs."""
        alone = left_alone("/bin/bash")
        run = self.run_traced("/bin/bash", "-c", f"{KARST} status --width 200 $$; true", options=(*WHOLE, "--no-follow"))
        module = next(m for m in run.trace.processes[0]["modules"] if m["path"].endswith("/bash"))
        self.assertTrue(module["patched"])
        self.assertEqual(module["left_alone"], len(alone))
        words = f"{len(alone)} functions of bash left alone; why: karst places {module['path']}"
        self.assertIn(words, run.out)
        info = subprocess.run([KARST, "info", "--width", "200", run.trace.path], capture_output=True, text=True, check=True,
                              timeout=TIMEOUT)
        self.assertIn(words, info.stdout)

    def test_a_second_start_takes_the_table_that_was_kept(self):
        """The same calls by a kept table, by one that is damaged, and where nothing may be kept."""
        program = shutil.copy("/bin/true", self.directory / "program")
        command = (program, "--version")

        def calls(cache):
            run = self.run_traced(*command, options=WHOLE, env={"XDG_CACHE_HOME": str(cache)})
            self.assertRegex(run.err, r"program: \d+ of \d+ functions patched")
            return re.search(r"program: [^\n]*", run.err).group(), shown(run.trace.tree("--marks"))

        expected = calls("/proc/nowhere")
        cache = self.directory / "cache"
        kept = cache / "karst" / "patches"
        time.sleep(3.2)  # a file that changed just now is not kept
        self.assertEqual(calls(cache), expected)
        files = list(kept.iterdir())
        self.assertEqual((len(files), kept.stat().st_mode & 0o777, files[0].stat().st_mode & 0o777), (1, 0o700, 0o600))
        self.assertEqual(calls(cache), expected)
        bytes_of_it = files[0].read_bytes()
        for damaged in (b"", bytes_of_it[:-1], bytes_of_it[:-1] + bytes([bytes_of_it[-1] ^ 1])):
            files[0].write_bytes(damaged)
            self.assertEqual(calls(cache), expected)
            self.assertEqual(files[0].read_bytes(), bytes_of_it, "it was found anew")
        # Another program under the same name, with the same time of change: the old one's table is not for it.
        other = shutil.copy("/bin/echo", self.directory / "other")
        os.utime(other, ns=(program.stat().st_atime_ns, program.stat().st_mtime_ns))
        os.replace(other, program)
        self.assertNotEqual(calls(cache), expected)
        self.assertEqual(calls(cache), calls("/proc/nowhere"))

    def test_functions_that_were_never_called_have_no_names(self):
        """But those that a filter names are there, and so are all where globs are looked for."""
        run = self.run_traced("/bin/true", options=WHOLE)
        patched = int(re.search(r"true: (\d+) of \d+ functions patched", run.err).group(1))
        here = sum(m["functions"] for m in run.trace.processes[0]["modules"] if m["path"].endswith("/true"))
        self.assertLess(here, patched)
        self.assertGreater(here, 0)
        globs = self.directory / "globs"
        globs.write_text("main_of_nobody\n")
        run = self.run_traced("/bin/true", options=(*WHOLE, "--no-trace", str(globs)))
        here = sum(m["functions"] for m in run.trace.processes[0]["modules"] if m["path"].endswith("/true"))
        self.assertEqual(here, patched)
        self.assertIn("no function matches the glob 'main_of_nobody'", run.err)

    def test_a_compiler_computes_the_same(self):
        """gcc's cc1 has no symbols for most of its functions, and calls by its table of addresses."""
        found = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True).stdout.strip()
        source = str(HERE / "ways_out" / "vforks.c")
        self.same(commands=[(found, "-quiet", "-O2", source, "-o", "-")], least=1)

    def test_calls_by_the_table_of_addresses(self):
        for level in ("-O1", "-O2"):
            for flags in (("-fPIE", "-pie"), ("-fno-pie", "-no-pie")):
                program = build(f"plain.calls_by_table{level}{flags[-1]}", "plain/calls_by_table.cc", level, "-fno-plt", *flags,
                                compiler="g++")
                self.same(commands=[(program,)], least=1)

    def test_libraries_beside_much_memory(self):
        """What they call must be near them, and the memory for events lies where libraries end."""
        run = self.run_traced("/usr/bin/python3", "-c", "import ctypes, ssl; print(ssl.OPENSSL_VERSION != '')",
                              options=(*WHOLE, "--library", "*", "--memory", "5G"))
        self.assertEqual((run.out, "untraced" in run.err, "is not traced" in run.err), ("True\n", False, False), run.err)
        self.assertGreater(run.trace.info["calls"], 10_000)

    def test_tail_calls_by_a_table_of_functions(self):
        for flags in (("-fPIE", "-pie"), ("-fno-pie", "-no-pie")):
            with self.subTest(flags=flags):
                program = build(f"plain.tails_by_table{flags[-1]}", "plain/tails_by_table.c", "-O2", *flags, compiler="gcc")
                run = self.run_traced(program, options=WHOLE)
                self.assert_whole(run.trace)
                self.assertEqual((run.trace.counts.get("make"), run.trace.info["tail_calls"]), (800, 300))

    def test_tail_calls_by_a_distance(self):
        """A function is left alone where it cannot be told whether such a jump leaves it."""
        for flags in (("-fPIE", "-pie"), ("-fno-pie", "-no-pie")):
            with self.subTest(flags=flags):
                program = build(f"plain.tails_by_distance{flags[-1]}", "plain/tails_by_distance.c", "-O2", *flags, compiler="gcc")
                plain = subprocess.run([program], timeout=TIMEOUT)
                run = self.run_traced(program, options=WHOLE, status=plain.returncode)
                self.assert_whole(run.trace)
                self.assertEqual((run.trace.counts, run.trace.info["tail_calls"]),
                                 ({"main": 1, "by_switch": 400, "target": 400}, 200))

    def test_tables_beside_code(self):
        """Constants may lie in the segment of code: where a table leads there is no room for a jump."""
        for flags in (("-fPIE", "-pie"), ("-fno-pie", "-no-pie", "-DABSOLUTE"), ("-fno-pie", "-no-pie")):
            for layout in ("-Wl,-z,noseparate-code", "-Wl,-z,separate-code"):
                with self.subTest(flags=flags, layout=layout):
                    name = f"plain.switch{flags[-1]}{layout[7:10]}"
                    program = build(name, "plain/switch_of_all_values.c", "-O1", *flags, "-s", layout,
                                    str(HERE / "plain/switch_of_all_values.S"), compiler="gcc")
                    plain = subprocess.run([program], capture_output=True, text=True, timeout=TIMEOUT)
                    run = self.run_traced(program, options=WHOLE)
                    self.assertEqual(run.out, plain.stdout)
                    self.assert_whole(run.trace)

    def test_flags_as_arguments_and_results(self):
        program = build("plain.flags", "plain/flags.c", "-O2", "-mno-red-zone", compiler="gcc")
        plain = subprocess.run([program], capture_output=True, text=True, timeout=TIMEOUT)
        run = self.run_traced(program, options=WHOLE)
        self.assertEqual(run.out, plain.stdout)
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.counts, {"main": 1, "call_all": 3000, "returns_number": 3000})
        for name in ("takes_carry", "returns_carry", "jumps_to_its_flags", "takes_less", "returns_by_a_jump", "returns_zero"):
            self.assertEqual(left_alone(program).get(name), "flags are its arguments or its result", name)

    def same(self, *options, commands=COMMANDS, least=30):
        page = str(Path(os.environ["KARST_SOURCE_ROOT"]) / "README.md")
        tried = 0
        for words in commands:
            command = [page if word == "{}" else word for word in words]
            if shutil.which(command[0]) is None:
                continue
            with self.subTest(command=command[0]):
                plain = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT)
                trace = self.directory / "trace.karst"
                traced = subprocess.run([KARST, "run", "--sched", "off", *WHOLE, *options, "-o", trace, "--", *command],
                                        capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT)
                self.assertEqual((traced.returncode, traced.stdout), (plain.returncode, plain.stdout), traced.stderr)
                self.assertRegex(traced.stderr.decode(errors="replace"), r"of [\d,]+ functions? patched as it was loaded")
                if not options:  # of all libraries the unwinder is one
                    self.assertEqual(Trace(trace).problems, [])
                tried += 1
        self.assertGreaterEqual(tried, least)

    def test_programs_do_what_they_did(self):
        self.same()

    def test_programs_and_their_libraries_do_what_they_did(self):
        # script/soak stock has all of them. nm opens LLVM's libraries, whose 190,000 functions take long to look at.
        soaks = "KARST_SOAK" in os.environ
        some = [c for c in self.COMMANDS[3::1 if soaks else 6] if soaks or c[0] != "nm"]
        self.same("--library", "*", commands=some, least=5)


class Counts(TracedTest):
    """Calls of stripped programs are as many as gdb's breakpoints at the functions' first bytes are hit."""

    BASE = 0x555555554000  # of a program that gdb starts
    COMMANDS = (  # none that looks at its environment or at what is mounted
        ("wc", "{}"), ("cut", "-c1-5", "{}"), ("od", "-xN", "512", "{}"),
        ("mawk", "BEGIN { for (i = 0; i < 50; i++) a[i % 7] = a[i % 7] i; for (k in a) print k, length(a[k]) }"),
        ("sed", "-n", "s/a/b/gp;5q", "{}"), ("grep", "-n", "Karst", "{}"), ("sort", "-r", "{}"), ("factor", "1234567890123"),
    )

    def hits(self, program, arguments, places):
        script = ["set pagination off", "set confirm off", "starti"]
        script += [f"break *{self.BASE + place:#x}" for place in places]
        script += [f"ignore {number} 100000000" for number in range(1, len(places) + 1)]
        script += ["continue", "info breakpoints"]
        path = self.directory / "commands.gdb"
        path.write_text("\n".join(script) + "\n")
        out = subprocess.run(["gdb", "--batch", "-nx", "-x", path, "--args", program, *arguments], capture_output=True,
                             text=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT).stdout
        return dict((int(address, 16) - self.BASE, int(count)) for address, count in re.findall(
            r"breakpoint +keep y +(0x[0-9a-f]+).*\n\s+breakpoint already hit (\d+) time", out))

    def test_calls_are_as_many_as_gdb_counts(self):
        if shutil.which("gdb") is None:
            self.skipTest("no gdb")
        page = str(Path(os.environ["KARST_SOURCE_ROOT"]) / "README.md")
        functions = 0
        for words in self.COMMANDS:
            command = [page if word == "{}" else word for word in words]
            if shutil.which(command[0]) is None:
                continue
            with self.subTest(command=command[0]):
                program = os.path.realpath(shutil.which(command[0]))
                done = subprocess.run([KARST, "places", "--json", "--all", "--min-instructions", "0", program],
                                      capture_output=True, text=True, check=True, timeout=TIMEOUT)
                places = {f["function"]: f["address"] for f in json.loads(done.stdout)["functions"] if f["patched"]}
                run = self.run_traced(*command, options=WHOLE)
                ours = {}
                for f in run.trace.report():
                    ours[f["function"]] = ours.get(f["function"], 0) + f["calls"]
                theirs = self.hits(program, command[1:], list(places.values()))
                self.assertEqual(ours, {name: theirs[place] for name, place in places.items() if place in theirs})
                functions += len(ours)
        self.assertGreater(functions, 100)


class Choice(TracedTest):
    """What is patched, and what is said of it."""

    def program(self):
        return build("plain.choice", "plain/choice.cc", "-O2", compiler="g++")

    def test_counts_are_exact(self):
        run = self.run_traced(self.program(), options=WHOLE)
        self.assertEqual({name: run.trace.counts.get(name) for name in ("main", "step(int)", "twice(int)")},
                         {"main": 1, "step(int)": 1000, "twice(int)": 2000})

    def test_a_mark_for_indirect_calls_is_no_instruction(self):
        def kept(flag, least):
            program = build(f"plain.choice{flag}", "plain/choice.cc", "-O2", flag, compiler="g++")
            done = subprocess.run([KARST, "places", "--json", "--all", "--min-instructions", str(least), program],
                                  capture_output=True, text=True, check=True, timeout=TIMEOUT)
            return {f["function"] for f in json.loads(done.stdout)["functions"] if f["patched"]}

        # step's and twice's instructions are so many that a limit leaves one of them out.
        self.assertIn("step(int)", kept("-fcf-protection=none", 1))
        for least in range(1, 17):
            self.assertEqual(kept("-fcf-protection=none", least), kept("-fcf-protection=full", least), least)
        self.assertNotIn("step(int)", kept("-fcf-protection=full", 16))

    def test_function_alone_that_is_chosen(self):
        run = self.run_traced(self.program(), options=(*WHOLE, "--function", "^step"))
        self.assertEqual(run.trace.counts, {"step(int)": 1000})
        self.assertRegex(run.err, r"karst: 1 of \d+ functions is traced, as --function, --only and the like say\n")

    def test_functions_that_begin_by_what_may_fault(self):
        program = build("plain.late", "plain/late.c", "-O2", compiler="gcc")
        alone = subprocess.run([program, "100"], capture_output=True, text=True, timeout=TIMEOUT, check=True).stdout
        self.assertRegex(alone, r"^-?\d+ 3 0\n$")
        run = self.run_traced(program, "100", options=(*WHOLE, "--args", "^(sum|text_of)$"))
        # A fault is still in the function's first instruction.
        self.assertEqual(run.out, alone)
        self.assertEqual({name: run.trace.counts.get(name) for name in self.LATE}, dict.fromkeys(self.LATE, 100))
        tree = subprocess.run([KARST, "tree", run.trace.path], capture_output=True, text=True, timeout=TIMEOUT).stdout
        self.assertEqual([int(more) for more in re.findall(r"sum\(pair=0x\w+, more=(\d+)\)", tree)], list(range(100)))
        self.assertNotIn("text_of(", tree)
        self.assertIn("no arguments of 1 function of", run.err)

    LATE = ("sum", "text_of", "above", "less", "negative", "lost", "maybe")  # all but the first behind what changes registers

    def test_flags_at_entries(self):
        program = build("plain.late", "plain/late.c", "-O2", compiler="gcc")
        alone = subprocess.run([program, "3000"], capture_output=True, text=True, timeout=TIMEOUT, check=True).stdout
        for options in ((), ("--clock", "thread"), ("--over", "^(text_of|above|less|negative|lost)$:1ns:1000"),
                        ("--min-duration", "1us"), ("--memory", "256K"), ("--fibers=stack",), ("--off",)):
            with self.subTest(options=options):
                run = self.run_traced(program, "3000", options=(*WHOLE, *options))
                self.assertEqual(run.out, alone)
                if options in ((), ("--clock", "thread")):
                    self.assertEqual([run.trace.counts.get(name) for name in self.LATE], [3000] * len(self.LATE))
        counted = subprocess.run([KARST, "count", "--min-instructions", "0", "--", program, "3000"], capture_output=True,
                                 text=True, timeout=TIMEOUT)
        self.assertIn(alone, counted.stdout)

    def test_handlers_of_functions_whose_arguments_are_gone(self):
        program = build("plain.late", "plain/late.c", "-O2", compiler="gcc")
        plugin = build("plain.late_plugin.so", "plain/late_plugin.c", "-O2", "-shared", "-fPIC", "-I",
                       os.path.join(os.environ["KARST_SOURCE_ROOT"], "include"), compiler="gcc")
        run = self.run_traced(program, "100", options=(*WHOLE, "--plugin", plugin))
        self.assertIn("handlers 1 0, 100 calls\n", run.out)

    def test_small_functions_and_a_budget_by_default(self):
        run = self.run_traced(self.program())
        self.assertNotIn("twice(int)", run.trace.counts)
        self.assertIn("budget=5%", json.dumps(run.trace.info))

    def test_plain_objects_that_a_wrapper_linked(self):
        """They have no sleds, and are patched as what gcc links."""
        plain = build("plain.choice.o", "plain/choice.cc", "-O2", "-c", compiler="g++")
        for linker in ("karst-g++", "karst-clang++"):
            if shutil.which("clang++") is None and "clang" in linker:
                continue
            with self.subTest(linker=linker):
                program = str(self.directory / linker)
                subprocess.run([BIN / linker, plain, "-o", program], check=True, timeout=TIMEOUT)
                run = self.run_traced(program, options=WHOLE, status=subprocess.run([program], timeout=TIMEOUT).returncode)
                self.assert_whole(run.trace)
                self.assertIn("patched as it was loaded", run.err)
                self.assertEqual(run.trace.counts, self.run_traced(self.program(), options=WHOLE, status=None).trace.counts)

    def test_a_clock_that_is_bent(self):
        """libfaketime stands before karst's own functions, too: the trace is there, and its time is the system's."""
        if shutil.which("faketime") is None:
            self.skipTest("faketime is not installed")
        before = time.time()
        run = self.run_traced("/bin/date", "+%Y", options=WHOLE, launcher=("faketime", "2001-02-03 04:05:06"))
        self.assertEqual(run.out, "2001\n")
        self.assert_whole(run.trace)
        self.assertGreater(run.trace.info["calls"], 0)
        info = subprocess.run([KARST, "info", run.trace.path], capture_output=True, text=True, check=True, timeout=TIMEOUT).stdout
        self.assertIn("tracing began " + time.strftime("%Y-%m-", time.gmtime(before)), info)

    def test_no_patch(self):
        done = subprocess.run([KARST, "run", "--no-patch", "-o", self.directory / "x.karst", self.program()],
                              capture_output=True, text=True, timeout=TIMEOUT)
        self.assertIn("was not built for tracing", done.stderr)

    def test_why_a_program_is_not_patched(self):
        program = build("plain.sequences", "plain/sequences.c", "-O2", compiler="gcc")
        for command in (("run", "-o", self.directory / "x.karst"), ("count",)):
            done = subprocess.run([KARST, *command, program], capture_output=True, text=True, timeout=TIMEOUT)
            self.assertIn("45\n", done.stdout)
            self.assertIn("is not patched: it has restartable sequences (rseq)", done.stderr)
            self.assertNotIn("nor was a library", done.stderr)

    def test_switched_off_and_on(self):
        program = build("plain.choice", "plain/choice.cc", "-O2", compiler="g++")
        run = self.run_traced(program, options=(*WHOLE, "--off"))
        self.assertEqual(run.trace.counts, {})

    def test_places(self):
        reasons = left_alone(self.program())
        self.assertIn("_start", reasons)
        done = subprocess.run([KARST, "places", self.directory], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no file of a program", done.stderr)


class Opened(TracedTest):
    """Libraries without sleds that are opened while the program runs."""

    WORK = 50  # rounds of a use

    def library(self, number, *flags):
        return build(f"libplainopened{number}.so", "plain/opened.cc", "-O2", "-shared", "-fPIC", f"-DFACTOR={number}", *flags,
                     compiler="g++")

    def run_opens(self, *options, own=(), others=()):
        program = build("plain.opens", "plain/opens.cc", "-O2", "-pthread", compiler="g++")
        words = [*own, "--", *others]
        plain = subprocess.run([program, *words], capture_output=True, text=True, check=True, timeout=TIMEOUT)
        run = self.run_traced(program, *words, options=("--min-instructions", "0", "--budget", "off", *options))
        self.assertEqual(run.out, plain.stdout)
        return run

    def calls(self, trace, uses):
        """What each library's functions are called when it is used so often."""
        ours = {}
        for f in trace.report():
            if f["function"].startswith("opened_"):
                ours[f["function"]] = ours.get(f["function"], 0) + f["calls"]
        self.assertEqual(ours, {"opened_work": uses, "opened_throw": uses * self.WORK, "opened_step": ours.get("opened_step")})
        self.assertEqual(ours["opened_step"], 2 * uses * self.WORK + uses)  # each constructor calls it, too

    def test_opened_and_closed_in_turns(self):
        own = [self.library(n) for n in (3, 5, 7)]
        run = self.run_opens("--no-patch", "--library", "libplainopened*", own=own)
        self.calls(run.trace, 3 * 13)

    def test_beside_threads_that_open_others(self):
        own = [self.library(n) for n in (3, 5)]
        others = [self.library(n) for n in (7, 9, 11)]
        run = self.run_opens("--library", "libplainopened*", own=own, others=others)
        self.calls(run.trace, 2 * 13 + 3 * 12)
        self.assert_whole(run.trace)

    def test_what_it_takes_to_patch_them_is_no_time_of_the_program(self):
        run = self.run_opens("--library", "libplainopened*", own=[self.library(3)])
        done = subprocess.run([KARST, "notes", "--format", "json", "--kind", "overhead", run.trace.path], capture_output=True, text=True,
                              check=True, timeout=TIMEOUT)
        noted = json.loads(done.stdout)["notes"]
        took = sum(n["duration_ns"] for n in noted if n["value"].startswith("patched a library that came for "))
        self.assertGreater(took, 0, noted)
        (with_it, without_it) = (self.total_of_main(run.trace, *raw) for raw in (["--raw"], []))
        self.assertGreater(with_it - without_it, took)
        self.assertGreater(without_it, 0)

    def total_of_main(self, trace, *options):
        done = subprocess.run([KARST, "report", "--format", "csv", trace.path, *options], capture_output=True, text=True, check=True,
                              timeout=TIMEOUT)
        return next(int(f["total_ns"]) for f in csv.DictReader(io.StringIO(done.stdout)) if f["function"] == "main")

    def test_functions_that_are_named(self):
        own = [self.library(3)]
        run = self.run_opens("--no-patch", "--library", "libplainopened*:opened_work", own=own)
        self.assertEqual(run.trace.counts, {"opened_work": 13})

    def test_one_that_is_not_meant(self):
        own = [self.library(3)]
        run = self.run_opens("--library", "libother*", own=own)
        self.assertNotIn("opened_work", run.trace.counts)
        self.assertIn("--library 'libother*' means no library", run.err)

    def test_under_a_debugger_that_watches_the_loader(self):
        """gdb has its breakpoint where libkarst would have its jump: the program runs as without us, which is said."""
        if shutil.which("gdb") is None:
            self.skipTest("no gdb")
        program = build("plain.opens", "plain/opens.cc", "-O2", "-pthread", compiler="g++")
        run = self.run_traced("gdb", "--batch", "-nx", "-ex", "set breakpoint pending on", "-ex", "break opened_work",
                              "-ex", "ignore 1 1000", "-ex", "run", "-ex", "info breakpoints", "--args", program,
                              self.library(3), options=("--no-patch", "--library", "libplainopened*"), status=None)
        self.assertIn("already hit 13 times", run.out)
        self.assertIn("libraries that it opens later are not patched", run.err)

    def test_python_and_a_library_of_its_extension(self):
        done = subprocess.run(["/usr/bin/python3", "-c", "import sqlite3"], capture_output=True)
        if done.returncode != 0:
            self.skipTest("no sqlite3 in Python")
        script = "import sqlite3\nc = sqlite3.connect(':memory:')\nprint([c.execute('select 3 * ?', (i,)).fetchone() for i in range(9)])"
        run = self.run_traced("/usr/bin/python3", "-c", script, options=("--no-patch", "--library", "libsqlite3*:sqlite3_*"))
        self.assertIn("(24,)", run.out)
        self.assertEqual(run.trace.counts.get("sqlite3_open_v2"), 1)
        self.assertGreaterEqual(run.trace.counts.get("sqlite3_step", 0), 9)


if __name__ == "__main__":
    main()
