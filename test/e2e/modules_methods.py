"""Clang's sleds, -finstrument-functions, static programs; tables that are damaged."""
import re
import struct
import subprocess
import unittest
import unittest.mock
from pathlib import Path

from modules_support import KARST_CLANGXX, KARST_GCC, KARST_GXX, host, library, need
from support import BIN, KARST, TIMEOUT, TracedTest, build, main

GCC = KARST_GXX
CLANG = KARST_CLANGXX


def instrumented(name, *flags, compiler):
    return build(name, "modules/instrumented.cc", "-std=c++17", "-pthread", *flags, compiler=compiler)


# What the source says, for n = 20; fib(12) makes 465 calls, 233 of which reach a leaf.
COUNTS = {"int twice<int>(int)": 40, "double twice<double>(double)": 40, "fib(int)": 465, "throws(int)": 20,
          "catches(int)": 20, "main": 1, "leaf(int)": 80 + 233 + 10}


OUTPUT = "520 144\n"


class Methods(TracedTest):
    def check(self, program, **more):
        run = self.run_traced(program, 20, **more)
        self.assertEqual(run.out, OUTPUT)
        self.assertEqual(run.trace.info["lost_events"] + run.trace.info["overwritten_events"], 0)
        counts = {name.replace("int twice", "twice").replace("double twice", "twice"): 0 for name in COUNTS}
        for name in counts:
            counts[name] = run.trace.counts.get(name, 0)
        expected = {name.replace("int twice", "twice").replace("double twice", "twice"): n
                    for name, n in COUNTS.items()}
        self.assertEqual(counts, expected)
        return run

    def check_clang(self, compiler, **env):
        need(compiler)
        for flags in (("-O2",), ("-O2", "-no-pie"), ("-O0",), ("-Os", "-fcf-protection=full")):
            name = "clang-" + compiler + "".join(flags).replace("=", "-")
            with unittest.mock.patch.dict("os.environ", {"KARST_CXX": compiler}):
                program = instrumented(name, *flags, compiler=CLANG)
            with self.subTest(flags=flags):
                run = self.check(program)
                self.assert_sound(run.trace)

    def test_clang_14(self):
        self.check_clang("clang++-14")

    def test_clang_19(self):
        self.check_clang("clang++-19")

    def test_clang_without_the_runtime_runs_as_it_is(self):
        need("clang++-14")
        program = instrumented("clang-alone", "-O2", compiler=CLANG)
        done = subprocess.run([program, "20"], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_gccs_instrument_functions(self):
        for flags in (("-O0",), ("-O2",), ("-O2", "-no-pie")):
            with self.subTest(flags=flags):
                program = instrumented("finstrument" + "".join(flags), "--karst-method=finstrument", *flags, compiler=GCC)
                run = self.check(program)
                self.assert_sound(run.trace)
                # gcc records the exit of a function that an exception leaves.
                self.assertEqual(run.trace.info["open_calls"], 0)

    def test_clangs_instrument_functions(self):
        need("clang++-14")
        for method in ("finstrument", "finstrument-after-inlining"):
            with self.subTest(method=method):
                program = instrumented(method, f"--karst-method={method}", "-O1", compiler=CLANG)
                self.check(program)

    def test_inlined_functions_of_libraries_that_are_not_traced(self):
        """The code names std::string's members by where they lie in libstdc++, whose own code is not traced."""
        source = self.directory / "inlined.cc"
        source.write_text("""#include <stdexcept>
#include <string>
std::string join(int n) { std::string s; for (int i = 0; i < n; ++i) s += "ab"; s.append("x"); return s; }
int main() {
  unsigned long n = 0;
  for (int i = 0; i < 10; ++i) n += join(i).size();
  try { n += join(3).at(99); } catch (const std::out_of_range&) { ++n; }
  return n == 101 ? 0 : 1;
}
""")
        counts = {}
        for level in ("-O1", "-O2"):
            program = str(self.directory / f"inlined{level}")
            subprocess.run([KARST_GXX, level, "--karst-method=finstrument", source, "-o", program], check=True, timeout=TIMEOUT)
            run = self.run_traced(program)
            self.assert_whole(run.trace)
            self.assertEqual((run.trace.info["open_calls"], run.trace.counts["join[abi:cxx11](int)"]), (0, 11))
            members = {name.rpartition(">::")[2]: n for name, n in run.trace.counts.items() if ">::" in name}
            self.assertEqual((members["append(char const*)"], members["operator+=(char const*)"], members["size() const"] > 10), (59, 48, True))
            counts[level] = run.trace.info["calls"]
        self.assertGreater(min(counts.values()), 200)

    def linked_by(self, linker, compiler, *flags):
        """instrumented.cc with -finstrument-functions, linked as if nobody had said so."""
        source = build("plainly-" + Path(compiler).name, "modules/instrumented.cc", "-O2", "-std=c++17",
                       "-c", "-fPIC", "-finstrument-functions", compiler=compiler, output=f"plainly-{Path(compiler).name}.o")
        program = str(self.directory / "plainly")
        made = subprocess.run([linker, source, "-pthread", *flags, "-o", program], capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        return program

    def test_code_with_instrument_functions_in_a_module_linked_for_sleds(self):
        for flags in ((), ("-Wl,--hash-style=sysv",)):
            with self.subTest(flags=flags):
                run = self.check(self.linked_by(KARST_GXX, "g++", *flags))
                self.assert_sound(run.trace)
                self.assertEqual(run.trace.info["open_calls"], 0)

    def test_clangs_code_with_instrument_functions_in_a_module_linked_for_sleds(self):
        need("clang++-14")
        self.check(self.linked_by(KARST_CLANGXX, "clang++-14"))

    def test_library_with_instrument_functions_linked_for_sleds(self):
        source = build("plain-plugin", "modules/plugin.cc", "-O2", "-fno-inline", "-c", "-fPIC", "-DNAME=plainly",
                       "-finstrument-functions", compiler="g++", output="plain-plugin.o")
        plugin = str(self.directory / "plainly.so")
        subprocess.run([KARST_GXX, "-shared", source, "-o", plugin], check=True)
        run = self.run_traced(host(), "loop", plugin, 20)
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.counts["plainly::leaf(int)"], 80)
        self.assertEqual(run.trace.counts["plainly::jumps(int)"], 20)

    def test_code_with_instrument_functions_that_no_wrapper_linked(self):
        run = self.check(self.linked_by("g++", "g++"))
        self.assert_sound(run.trace)
        self.assertEqual(run.trace.info["open_calls"], 0)

    def test_code_with_instrument_functions_in_a_static_program_linked_for_sleds(self):
        run = self.check(self.linked_by(KARST_GXX, "g++", "-static"))
        self.assert_sound(run.trace)
        self.assertEqual(run.trace.info["open_calls"], 0)

    def test_library_with_instrument_functions_that_no_wrapper_linked_and_that_comes_late(self):
        plugin = build("unseen", "modules/plugin.cc", "-O2", "-fno-inline", "-fPIC", "-shared", "-DNAME=unseen",
                       "-finstrument-functions", compiler="g++", output="unseen.so")
        run = self.run_traced(host(), "loop", plugin, 20)
        self.assert_whole(run.trace)
        self.assertEqual([name for name in run.trace.counts if "unseen" in name], [])
        said = [line for line in self.lines_of_karst(run) if "was opened while the program ran" in line]
        self.assertEqual(len(said), 1, run.err)
        self.assertIn(plugin, said[0])

    def test_code_with_both_is_counted_once(self):
        for compiler in (KARST_GXX, KARST_CLANGXX):
            if compiler == KARST_CLANGXX:
                need("clang++-14")
            with self.subTest(compiler=compiler):
                self.check(instrumented("both-" + Path(compiler).name, "-O2", "-finstrument-functions",
                                        compiler=compiler))

    def test_functions_are_chosen_of_code_with_instrument_functions(self):
        program = instrumented("finstrument-chosen", "--karst-method=finstrument", "-O2", compiler=GCC)
        run = self.run_traced(program, 20, options=("--functions", "^fib|catches"))
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.counts, {"fib(int)": 465, "catches(int)": 20})
        run = self.run_traced(program, 20, options=("--functions", "^main$"))
        self.assertEqual(run.trace.counts, {"main": 1})

    def test_code_with_instrument_functions_started_off(self):
        program = instrumented("finstrument-chosen", "--karst-method=finstrument", "-O2", compiler=GCC)
        run = self.run_traced(program, 20, options=("--off",))
        self.assertEqual(run.trace.info["events"], 0)

    def test_modules_of_three_kinds_in_one_program(self):
        need("clang++-14")
        for plugin in (library("clangs", compiler=KARST_CLANGXX),
                       library("instrumented", "-fno-inline", "--karst-method=finstrument")):
            run = self.run_traced(host(), "threads", plugin, 50, library("first"))
            self.assertEqual(run.out, "100\n")
            self.assertEqual(run.trace.problems, [])


class Generated(TracedTest):
    """Code in no module, with the names that its program writes for perf."""

    def setUp(self):
        super().setUp()
        self.program = build("generated", "modules/generated.c", "-O1", "-ldl", compiler=KARST_GCC)

    def traced(self, *arguments, options=()):
        # Without thread states: the kernel takes its time to make room for them where many runs want it at once.
        run = self.run_traced(self.program, *arguments, options=options)
        for process in run.trace.info["processes"]:
            Path(f"/tmp/perf-{process['pid']}.map").unlink(missing_ok=True)
        return run

    def test_names_are_those_that_the_program_wrote(self):
        run = self.traced(20, "map")
        self.assertEqual(run.out, "40\n")
        self.assert_whole(run.trace)
        counts = run.trace.counts
        self.assertEqual((counts["jit::outer(long)"], counts["*leaf main.js:3"], counts["work"]), (20, 20, 1))
        lines = [line.strip() for line in run.trace.tree()]
        at = lines.index("jit::outer(long)")
        self.assertEqual(lines[at - 1:at + 2], ["work", "jit::outer(long)", "*leaf main.js:3"])

    def test_without_names_they_are_addresses_and_a_line_says_why(self):
        run = self.traced(20)
        self.assertEqual(run.out, "40\n")
        self.assert_sound(run.trace)
        self.assertEqual(sorted(n for name, n in run.trace.counts.items() if name.startswith("[jit]+0x")), [20, 20])
        said = [line for line in self.lines_of_karst(run) if "/tmp/perf-" in line]
        self.assertEqual(len(said), 1, run.err)

    def test_of_code_that_took_the_place_of_other_code_the_later_name_is_shown(self):
        run = self.traced(20, "map", "replace")
        self.assertEqual(run.out, "80\n")
        self.assertEqual((run.trace.counts["*other main.js:7"], run.trace.counts["jit::outer(long)"]), (40, 40))

    def test_a_forked_child_has_its_parents_and_its_own(self):
        run = self.traced(20, "map", "fork")
        self.assert_whole(run.trace)
        counts = run.trace.counts
        self.assertEqual((counts["*child main.js:9"], counts["jit::outer(long)"], counts["*leaf main.js:3"]), (20, 40, 40))

    def test_filters_go_by_these_names_and_by_those_of_other_code(self):
        run = self.traced(20, "map", options=("--functions", "^jit::outer|main$"))
        self.assertEqual(run.trace.counts, {"main": 1, "jit::outer(long)": 20})

    def test_it_is_counted_and_can_be_off(self):
        run = self.traced(20, "map", options=("--off",))
        self.assertEqual(run.trace.info["events"], 0)


class Static(TracedTest):
    def build(self, *flags):
        runtime = BIN.parent / "lib" / "libkarst.a"
        if not runtime.exists():
            self.skipTest("libkarst.a is not built")
        source = build("static-object", "torture/threads.cc", "-O1", "-fno-inline", "-std=c++17", "-c", "-fPIE",
                       compiler=GCC, output="static.o")
        program = self.directory / "static"
        # The wrappers' own way to link is tested with them.
        made = subprocess.run(["g++", *flags, str(source), str(BIN.parent / "lib" / "karst" / "module.o"), "-pthread",
                               "-Wl,-u,karst_register_module", str(runtime), "-o", str(program)],
                              capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        return program

    def check(self, program):
        run = self.run_traced(program, "waves", 200, 3)
        self.assertEqual(run.out, "1200\n")
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.counts["leaf()"], 1200)
        self.assertEqual(run.trace.counts["short_life(int)"], 200)
        alone = subprocess.run([program, "waves", "20", "3"], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual((alone.returncode, alone.stdout, alone.stderr), (0, "120\n", ""))

    def test_static_program_with_the_runtime_inside(self):
        self.check(self.build("-static"))

    def test_static_pie_with_the_runtime_inside(self):
        self.check(self.build("-static-pie"))

    def test_static_program_without_the_runtime_is_refused(self):
        program = build("static-plain", "modules/host.c", "-O1", "-static", compiler="gcc")
        done = subprocess.run([KARST, "run", "-o", str(self.directory / "x.karst"), program, "once"],
                              capture_output=True, text=True, timeout=TIMEOUT)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("static", done.stderr)


class Damage(TracedTest):
    """A module whose note or table is wrong is left alone with one message; the rest of the program is traced."""

    def spoiled(self, name, spoil, compiler=GCC):
        plugin = library(name, compiler=compiler, at_once=name == "xrays")
        image = bytearray(open(plugin, "rb").read())
        sections = subprocess.run(["readelf", "-SW", plugin], check=True, capture_output=True, text=True).stdout
        offsets = {m[1]: int(m[2], 16)
                   for m in re.finditer(r"\] (\S+)\s+\w+\s+[0-9a-f]+ ([0-9a-f]+) ", sections)}
        spoil(image, offsets)
        path = self.directory / (name + "-spoiled.so")
        path.write_bytes(image)
        path.chmod(0o755)
        return path

    def check(self, path, reason, name="first"):
        run = self.run_traced(host(), "loop", path, 3)
        self.assertEqual(run.out, "3\n")
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.counts, {"main": 1, "visit": 3, "run": 3})
        said = [line for line in self.lines_of_karst(run) if str(path) in line and "not traced" in line]
        self.assertEqual(len(said), 1, run.err)
        self.assertIn(reason, said[0])

    @staticmethod
    def poke(section, at, value, size=4):
        def spoil(image, offsets):
            image[offsets[section] + at:offsets[section] + at + size] = value.to_bytes(size, "little")
        return spoil

    @staticmethod
    def move(section, at, layout, by):
        """The distance there leads so many bytes further."""
        def spoil(image, offsets):
            place = offsets[section] + at
            struct.pack_into(layout, image, place, struct.unpack_from(layout, image, place)[0] + by)
        return spoil

    NOTE = 12 + 8  # the note's content, behind its header and its name

    def test_note_that_asks_for_a_later_runtime(self):
        self.check(self.spoiled("first", self.poke(".note.karst", self.NOTE + 24, 99)), "another version of Karst")

    def test_note_that_is_too_short_for_its_version(self):
        self.check(self.spoiled("first", self.poke(".note.karst", 4, 16)), "another version of Karst")

    def test_note_without_a_version(self):
        self.check(self.spoiled("first", self.poke(".note.karst", self.NOTE, 0)), "another version of Karst")

    def test_table_outside_of_the_module(self):
        self.check(self.spoiled("first", self.poke(".note.karst", self.NOTE + 12, 0x7fffff00)), "damaged sled table")

    def test_table_that_ends_before_it_begins(self):
        self.check(self.spoiled("first", self.poke(".note.karst", self.NOTE + 12, 0x80000000)), "damaged sled table")

    def test_table_that_begins_with_an_exit(self):
        self.check(self.spoiled("first", self.poke("karst_sleds", 0, 3, 2)), "damaged sled table")

    def test_record_of_an_unknown_kind(self):
        self.check(self.spoiled("first", self.poke("karst_sleds", 0, 1 | 77 << 16)), "damaged sled table")

    def test_sleds_in_code_that_was_left_behind(self):
        """As llvm-bolt leaves it: in a section of this name, while functions lie elsewhere."""
        program = str(self.directory / "rewritten")
        subprocess.run(["objcopy", "--rename-section", ".text=.bolt.org.text", host(), program], check=True, timeout=TIMEOUT)
        run = self.run_traced(program, "once", status=None)
        said = [line for line in self.lines_of_karst(run) if "llvm-bolt" in line]
        self.assertEqual(len(said), 1, run.err)
        self.assertRegex(said[0], r"rewritten: (\d+) of its \1 functions with sleds are not traced")
        self.assertNotIn("llvm-bolt", self.run_traced(host(), "once", status=None).err)

    def test_record_outside_of_code(self):
        self.check(self.spoiled("first", self.poke("karst_sleds", 0, 0x10000000)), "damaged sled table")

    def test_table_of_an_older_karst(self):
        self.check(self.spoiled("first", self.poke(".note.karst", self.NOTE + 24, 2)), "older Karst")

    def check_one(self, path, reason):
        """One function has a sled that cannot be: it alone is not traced, and is named."""
        run = self.run_traced(host(), "loop", path, 3)
        self.assertEqual(run.out, "3\n")
        self.assert_whole(run.trace)
        self.assertGreater(set(run.trace.counts), {"main", "visit", "run", "plugin_run"})
        said = [line for line in self.lines_of_karst(run) if str(path) in line and "not traced" in line]
        self.assertEqual(len(said), 1, run.err)
        self.assertRegex(said[0], reason)

    OTHER_CODE = r"has other code where its sleds should be: [\w.]+; it is not traced"

    def test_record_at_other_code(self):
        self.check_one(self.spoiled("first", self.move("karst_sleds", 0, "<i", 2)), self.OTHER_CODE)

    def test_clangs_table_that_begins_with_an_exit(self):
        need("clang++-14")
        self.check(self.spoiled("clangs", self.poke("karst_clang_sleds", 0, 3, 2), CLANG), "damaged sled table")

    def test_clangs_record_of_an_unknown_kind(self):
        need("clang++-14")
        self.check(self.spoiled("clangs", self.poke("karst_clang_sleds", 0, 1 | 77 << 16), CLANG), "damaged sled table")

    def test_clangs_short_record_outside_of_code(self):
        need("clang++-14")
        self.check(self.spoiled("clangs", self.poke("karst_clang_sleds", 0, 0x10000000), CLANG), "damaged sled table")

    def test_clangs_exit_at_other_code(self):
        need("clang++-14")
        behind_the_entry = 4
        self.check_one(self.spoiled("clangs", self.move("karst_clang_sleds", behind_the_entry, "<H", 2), CLANG), self.OTHER_CODE)

    def test_clangs_short_table_outside_of_the_module(self):
        need("clang++-14")
        self.check(self.spoiled("clangs", self.poke(".note.karst", self.NOTE + 36, 0x7fffff00), CLANG), "damaged sled table")

    def test_clangs_table_of_another_version(self):
        need("clang++-14")
        self.check(self.spoiled("xrays", self.poke("xray_instr_map", 18, 9, 1), CLANG), "clang")

    def test_clangs_record_outside_of_code(self):
        need("clang++-14")
        self.check(self.spoiled("xrays", self.poke("xray_instr_map", 4, 1), CLANG), "damaged sled table")

    def test_clangs_record_at_other_code(self):
        need("clang++-14")
        self.check_one(self.spoiled("xrays", self.move("xray_instr_map", 0, "<q", 1), CLANG), self.OTHER_CODE)


if __name__ == "__main__":
    main()
