"""karst-gcc and karst-g++ stand in for gcc and g++ in every kind of command line."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from support import BIN, HERE, TIMEOUT, TracedTest, main  # noqa: E402

GCC = str(BIN / "karst-gcc")
GXX = str(BIN / "karst-g++")
CLANG = str(BIN / "karst-clang")
SOURCES = HERE / "wrapper"
NOISE_FREE = {**os.environ, "LC_ALL": "C"}


class WrapperTest(TracedTest):
    def setUp(self):
        super().setUp()
        for source in SOURCES.iterdir():
            shutil.copy(source, self.directory)

    def run_command(self, *command, status=0, env=None, stdin=""):
        done = subprocess.run(list(map(str, command)), cwd=self.directory, capture_output=True, text=True,
                              env={**NOISE_FREE, **(env or {})}, input=stdin, timeout=TIMEOUT)
        self.assertEqual(done.returncode, status, f"{command}: {done.stdout}{done.stderr}")
        return done

    def compile(self, *arguments, compiler=GCC, **more):
        """A compilation that succeeds and says nothing."""
        done = self.run_command(compiler, *arguments, **more)
        self.assertEqual(done.stderr, "")
        return done

    def section_names(self, file):
        return self.run_command("readelf", "-SW", file).stdout

    def assert_clean(self, file):
        """No text relocations, no executable stack, no reference to the runtime that could not stay open, none to gcc's
        own hooks."""
        self.assertNotIn("TEXTREL", self.run_command("readelf", "-dW", file).stdout)
        stack = [line for line in self.run_command("readelf", "-lW", file).stdout.splitlines() if "GNU_STACK" in line]
        self.assertEqual(len(stack), 1)
        self.assertNotIn("RWE", stack[0])
        undefined = self.run_command("nm", "-D", "--undefined-only", file).stdout.splitlines()
        self.assertEqual([s for s in undefined if "fentry" in s or "mcount" in s or "xray" in s], [])
        self.assertEqual([s for s in undefined if "karst" in s and s.split()[0] not in ("w", "v")], [])
        # Of what the dynamic section names; a run path may have our name in it, as the clone's folder has.
        named = [line for line in self.run_command("readelf", "-dW", file).stdout.splitlines()
                 if "RUNPATH" not in line and "RPATH" not in line]
        self.assertEqual([line for line in named if "karst" in line], [])
        self.assertNotIn("__mcount_loc", self.section_names(file))
        self.assertNotIn("__return_loc", self.section_names(file))

    def assert_traced(self, file, functions=("main", "twice"), out="42\n", status=7):
        """Runs alone as a plain build does, and under karst with a call of each function."""
        self.assert_clean(file)
        alone = self.run_command(self.directory / file, status=status)
        self.assertEqual((alone.stdout, alone.stderr), (out, ""))
        run = self.run_traced(self.directory / file, status=status)
        self.assertEqual(run.out, out)
        self.assert_whole(run.trace)
        names = [name.split("(")[0].split("<")[0] for name in run.trace.counts]
        self.assertEqual(sorted(names), sorted(functions))

    def build_with_cmake(self, cc, cxx):
        """A library and a program of it, as b/app."""
        cmake = shutil.which("cmake")
        if cmake is None:
            self.skipTest("cmake is not installed")
        (self.directory / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.13)\nproject(app C CXX)\nadd_library(second SHARED second.cc)\n"
            "add_executable(app first.cc)\ntarget_link_libraries(app second)\n")
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        self.run_command(cmake, "-S", ".", "-B", "b", *generator, "-DCMAKE_CXX_COMPILER=" + cxx,
                         "-DCMAKE_C_COMPILER=" + cc, "-DCMAKE_BUILD_TYPE=RelWithDebInfo")
        return self.run_command(cmake, "--build", "b")


class Compiling(WrapperTest):
    def test_each_optimisation_level_and_kind_of_executable(self):
        for level in ("-O0", "-O1", "-O2", "-O3", "-Os", "-Ofast", "-Og"):
            for kind in (["-fPIE", "-pie"], ["-fno-pie", "-no-pie"]):
                with self.subTest(level=level, kind=kind):
                    self.compile(level, *kind, "program.c", "-o", "out")
                    self.assert_traced("out")

    def test_object_then_link(self):
        self.compile("-O1", "-c", "program.c", "-o", "p.o")
        self.assertIn("karst_sleds", self.section_names("p.o"))
        self.compile("p.o", "-o", "out")
        self.assert_traced("out")

    def test_assembly_then_object(self):
        self.compile("-O1", "-S", "program.c", "-o", "p.s")
        self.compile("p.s", "-o", "out")
        self.assert_traced("out")
        self.compile("-c", "-x", "assembler", "p.s", "-o", "named.o")
        self.assertIn("karst_sleds", self.section_names("named.o"))

    def test_assembly_by_hand_keeps_its_name(self):
        (self.directory / "hand.s").write_text("\t.globl\tf\nf:\tnop\n\tret\n")
        self.compile("-g", "-c", "hand.s")
        self.assertIn("hand.s", self.run_command("readelf", "--debug-dump=info", "hand.o").stdout)
        (self.directory / "hand.s").write_text("\tno_such_instruction\n")
        self.assertIn("hand.s:1:", self.run_command(GCC, "-c", "hand.s", status=1).stderr)
        (self.directory / "pre.S").write_text("#define NAME g\n\t.globl\tNAME\nNAME:\tret\n")
        self.compile("-g", "-c", "pre.S")

    def test_several_sources_at_once(self):
        self.compile("-O2", "first.cc", "second.cc", "-o", "out", compiler=GXX)
        self.assert_traced("out", ["main", "second", "in_both", "larger"], "4\n", 0)

    def test_source_from_standard_input(self):
        self.compile("-x", "c", "-", "-o", "out", stdin=(SOURCES / "program.c").read_text())
        self.assert_traced("out")

    def test_named_language(self):
        shutil.copy(self.directory / "program.c", self.directory / "program.txt")
        self.compile("-x", "c++", "program.txt", "-o", "out")
        self.assert_traced("out")

    def test_response_file(self):
        (self.directory / "arguments").write_text('-O1 -g program.c\n-o "out of a file"\n')
        self.compile("@arguments")
        self.assert_traced("out of a file")

    def test_names_with_spaces_and_quotes(self):
        os.rename(self.directory / "program.c", self.directory / "a 'source' $x.c")
        self.compile("-c", "a 'source' $x.c", "-o", 'an "object".o')
        self.compile('an "object".o', "-o", "the out & co")
        self.assert_traced("the out & co")

    def test_pipe(self):
        self.compile("-pipe", "program.c", "-o", "out")
        self.assert_traced("out")

    def test_pipe_with_operands_that_look_like_sources(self):
        (self.directory / "include").mkdir()
        for flags in (["-I", "include"], ["-Wa,--defsym,A=1"], ["-Wa,-I,include"], ["-g", "-ffile-prefix-map=/=/x"],
                      ["-Wa,-adhln=listing"]):
            with self.subTest(flags=flags):
                for pipe in (["-pipe"], []):
                    self.compile(*pipe, *flags, "program.c", "-o", "out")
                    self.assert_traced("out")
        self.compile("-pipe", "-I", "include", "-S", "program.c", "-o", "p.s")
        self.compile("-pipe", "-g", "-ffile-prefix-map=/=/x", "p.s", "-o", "out")
        self.assert_traced("out")

    def test_save_temps(self):
        self.compile("-save-temps", "program.c", "-o", "out")
        self.assert_traced("out")
        self.assertTrue((self.directory / "out-program.s").exists())

    def test_debug_formats(self):
        for flags in (["-g"], ["-g3", "-gdwarf-4"], ["-g", "-gz"], ["-g", "-gsplit-dwarf"], ["-ggdb", "-fverbose-asm"]):
            with self.subTest(flags=flags):
                self.compile(*flags, "program.c", "-o", "out")
                self.assert_traced("out")

    def test_other_assembler_syntaxes_and_mitigations(self):
        for flags in (["-masm=intel"], ["-fcf-protection=full"], ["-mfunction-return=thunk-inline"],
                      ["-fno-asynchronous-unwind-tables"], ["-fno-plt"], ["-fstack-protector-all"],
                      ["-mcmodel=large", "-fno-pie", "-no-pie"], ["-mcmodel=large", "-fPIE"], ["-mcmodel=medium"]):
            with self.subTest(flags=flags):
                self.compile("-O2", *flags, "program.c", "-o", "out")
                self.assert_traced("out")

    def test_link_time_optimisation(self):
        self.compile("-O2", "-flto", "-c", "first.cc", compiler=GXX)
        self.compile("-O2", "-flto", "-c", "second.cc", compiler=GXX)
        self.compile("-O2", "-flto", "first.o", "second.o", "-o", "out", compiler=GXX)
        self.assert_traced("out", ["main", "second", "in_both", "larger"], "4\n", 0)

    def test_relocatable_link(self):
        self.compile("-c", "program.c")
        self.compile("-r", "program.o", "-o", "part.o")
        self.compile("part.o", "-o", "out")
        self.assert_traced("out")

    def test_functions_that_ask_not_to_be_instrumented_are_not(self):
        (self.directory / "program.c").write_text(
            (SOURCES / "program.c").read_text().replace("(noinline)", "(noinline, no_instrument_function)"))
        self.compile("program.c", "-o", "out")
        self.assert_traced("out", ["main"])


class Linking(WrapperTest):
    def libraries(self, *flags):
        self.compile("-O1", "-fPIC", "-shared", *flags, "second.cc", "-o", "libsecond.so", compiler=GXX)
        self.assert_clean("libsecond.so")
        self.compile("-O1", *flags, "first.cc", "-L.", "-lsecond", "-Wl,-rpath,$ORIGIN", "-o", "out", compiler=GXX)
        self.assert_traced("out", ["main", "second", "in_both", "larger"], "4\n", 0)

    def test_same_inline_function_and_template_in_two_objects(self):
        for level in ("-O0", "-O2"):
            with self.subTest(level=level):
                self.compile(level, "-c", "first.cc", compiler=GXX)
                self.compile(level, "-c", "second.cc", compiler=GXX)
                self.assertRegex(self.run_command("readelf", "-gW", "first.o").stdout, r"\[_Z7in_bothi\]")
                self.compile("first.o", "second.o", "-o", "out", compiler=GXX)
                self.assert_traced("out", ["main", "second", "in_both", "larger"], "4\n", 0)

    def test_linked_by_GNU_ld(self):
        self.linked_by("bfd")

    def test_linked_by_gold(self):
        self.linked_by("gold")

    def test_linked_by_lld(self):
        self.linked_by("lld")

    def test_linked_by_mold(self):
        self.linked_by("mold")

    def linked_by(self, linker):
        if not (shutil.which("ld." + linker) or shutil.which(linker)):
            self.skipTest(f"{linker} is not installed")
        for flags in ([], ["-no-pie", "-fno-pie"], ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"],
                      ["-Wl,-z,now"], ["-Wl,--build-id=none"], ["-Wl,-s"]):
            with self.subTest(flags=flags):
                self.compile("-O1", "-fuse-ld=" + linker, *flags, "program.c", "-o", "out")
                self.assert_clean("out")
                run = self.run_traced(self.directory / "out", status=7)
                self.assert_whole(run.trace)
                self.assertEqual(sum(run.trace.counts.values()), 2)
        self.libraries("-fuse-ld=" + linker)

    def test_32_bit_code_is_refused_with_the_reason(self):
        (self.directory / "short.c").write_text("int x;\n")
        done = self.run_command(GCC, "-m32", "-c", "short.c", status=1)
        self.assertIn("only 64-bit x86-64 code can be traced", done.stderr)
        self.compile("-m32", "-E", "short.c")

    def test_gprof_beside_sleds_is_refused_with_the_reason(self):
        for flag in ("-pg", "-p"):
            done = self.run_command(GCC, flag, "-c", "program.c", status=1)
            self.assertIn("-pg and sleds are made of the same calls", done.stderr)
        self.compile("-pg", "-E", "program.c", "-o", "p.i")
        self.compile("-pg", "--karst-method=finstrument", "program.c", "-o", "out")

    def test_static_helper_libraries_are_fine(self):
        self.compile("-O1", "-static-libgcc", "-static-libstdc++", "first.cc", "second.cc", "-o", "out", compiler=GXX)
        self.assert_traced("out", ["main", "second", "in_both", "larger"], "4\n", 0)

    def test_compiling_alone_may_say_static(self):
        self.compile("-static", "-c", "program.c")

    def test_static_archive(self):
        self.compile("-O1", "-c", "second.cc", compiler=GXX)
        self.run_command("ar", "rcs", "libsecond.a", "second.o")
        self.compile("-O1", "first.cc", "libsecond.a", "-o", "out", compiler=GXX)
        self.assert_traced("out", ["main", "second", "in_both", "larger"], "4\n", 0)

    def test_objects_of_other_compilers_link_along(self):
        self.run_command("g++", "-O1", "-c", "second.cc")
        self.compile("-O1", "first.cc", "second.o", "-o", "out", compiler=GXX)
        self.assertEqual(self.run_command(self.directory / "out").stdout, "4\n")

    def test_program_linked_with_the_runtime(self):
        self.compile("--karst-link", "program.c", "-o", "out")
        self.assertIn("libkarst.so.0", self.run_command("readelf", "-dW", "out").stdout)
        alone = self.run_command(self.directory / "out", status=7)
        self.assertEqual((alone.stdout, alone.stderr), ("42\n", ""))
        run = self.run_traced(self.directory / "out", status=7)
        self.assertEqual(run.trace.counts, {"main": 1, "twice": 1})


class AsTheCompilerItself(WrapperTest):
    def both(self, *arguments, compiler="gcc", stdin=""):
        mine = subprocess.run([str(BIN / ("karst-" + compiler)), *arguments], cwd=self.directory, env=NOISE_FREE,
                              capture_output=True, text=True, input=stdin)
        theirs = subprocess.run([compiler, *arguments], cwd=self.directory, env=NOISE_FREE, capture_output=True,
                                text=True, input=stdin)
        return mine, theirs

    def test_questions_get_the_answers_of_the_compiler(self):
        for question in (["--version"], ["-dumpversion"], ["-dumpmachine"], ["-print-file-name=libc.so"],
                         ["-print-prog-name=as"], ["-print-search-dirs"], ["-print-libgcc-file-name"]):
            for compiler in ("gcc", "g++"):
                mine, theirs = self.both(*question, compiler=compiler)
                self.assertEqual((mine.returncode, mine.stdout, mine.stderr), (0, theirs.stdout, theirs.stderr))
        mine, theirs = self.both("-v")
        self.assertEqual(mine.returncode, 0)
        self.assertEqual(mine.stderr.splitlines()[-1], theirs.stderr.splitlines()[-1])

    def test_preprocessing_is_the_same(self):
        for arguments in (["-E", "program.c"], ["-M", "program.c"], ["-MM", "program.c"],
                          ["-dM", "-E", "-x", "c", "-"], ["-E", "-x", "c++", "-"]):
            mine, theirs = self.both(*arguments)
            self.assertEqual((mine.returncode, mine.stdout, mine.stderr), (0, theirs.stdout, theirs.stderr))
        self.compile("-MD", "-MF", "deps", "-c", "program.c")
        self.assertTrue((self.directory / "deps").read_text().startswith("program.o: program.c"))

    def test_configure_probes_succeed_and_fail_alike_without_noise(self):
        probes = {
            "int main(void) { return 0; }": [],
            "int main(void) { return puts(0); }": ["-Werror=implicit-function-declaration"],
            "char pthread_create(void); int main(void) { return pthread_create(); }": ["-fno-builtin", "-lpthread"],
            "int no_such_function(void); int main(void) { return no_such_function(); }": [],
            "#include <no_such_header.h>\nint main(void) { return 0; }": [],
            "int main(void) { return 0 }": [],
            "#error no\n": ["-c"],
            "int x[sizeof(long) == 8 ? 1 : -1];": ["-c"],
            "int x[sizeof(long) == 4 ? 1 : -1];": ["-c"],
            "int main(void) { __asm__(\"nonsense\"); }": ["-c"],
        }
        statuses = set()
        for text, flags in probes.items():
            (self.directory / "conftest.c").write_text(text + "\n")
            mine, theirs = self.both("-o", "conftest", *flags, "conftest.c")
            self.assertEqual(mine.returncode, theirs.returncode, text)
            self.assertEqual(mine.stderr == "", theirs.stderr == "", mine.stderr)
            statuses.add(theirs.returncode)
        self.assertEqual(statuses, {0, 1})
        for arguments in ([], ["-V"], ["-qversion"], ["missing.c"], ["-no-such-flag", "program.c"]):
            mine, theirs = self.both(*arguments)
            self.assertEqual((mine.returncode, mine.stderr), (theirs.returncode, theirs.stderr))

    def test_chosen_compiler(self):
        for name in ("gcc-12", "gcc"):
            found = shutil.which(name)
            if found:
                self.compile("program.c", "-o", "out", env={"KARST_CC": found})
                self.assert_traced("out")
        done = self.run_command(GCC, "program.c", env={"KARST_CC": "/nowhere/gcc"}, status=127)
        self.assertIn("karst-gcc: cannot run /nowhere/gcc", done.stderr)
        self.assertIn("KARST_CC", done.stderr)
        done = self.run_command(GXX, "first.cc", env={"KARST_CXX": "clang++"}, status=1)
        self.assertIn("karst-g++: KARST_CXX=clang++: for clang there are karst-clang and karst-clang++", done.stderr)
        done = self.run_command(CLANG, "program.c", env={"KARST_CC": "gcc"}, status=1)
        self.assertIn("karst-clang: KARST_CC=gcc: for gcc and its kin there are karst-gcc", done.stderr)
        self.compile("program.c", "-o", "out", env={"KARST_CC": "", "KARST_CXX": "/nowhere/g++"})

    def test_cmake_project(self):
        made = self.build_with_cmake(GCC, GXX)
        self.assertNotIn("warning", made.stdout + made.stderr)
        self.assert_traced("b/app", ["main", "second", "in_both", "larger"], "4\n", 0)


if __name__ == "__main__":
    main()
