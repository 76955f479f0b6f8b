"""karst-clang and karst-clang++ stand in for clang and clang++ in every kind of command line."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import wrapper_commands  # noqa: E402
from support import BIN, TIMEOUT, main  # noqa: E402
from wrapper_commands import NOISE_FREE, SOURCES  # noqa: E402

CLANG = str(BIN / "karst-clang")
CLANGXX = str(BIN / "karst-clang++")
QUIET = ["-Wall", "-Wextra", "-Werror", "-Wno-unknown-attributes"]
CXX = ["main", "second", "in_both", "larger"]


class ClangTest(wrapper_commands.WrapperTest):
    versions = ("14", "19")

    def compile(self, *arguments, compiler=CLANG, **more):
        return super().compile(*QUIET, *arguments, compiler=compiler, **more)

    def each_version(self):
        for version in self.versions:
            if shutil.which("clang-" + version):
                yield {"KARST_CC": "clang-" + version, "KARST_CXX": "clang++-" + version}


BRANCH = """#include <unistd.h>
__attribute__((noinline)) int drain(int fd, char *b, int size) {
  int all = 0;
  while (all < size) {
    int n = read(fd, b, size);
    if (n <= 0) {
      if (n == 0) b[all] = 0;
      return n;
    }
    all += n;
  }
  return all;
}
int main(void) { char b[64]; return drain(0, b, 60) < 0; }
"""


class Compiling(ClangTest):
    def test_a_branch_behind_a_return(self):
        """The next block of the function, which has nothing to do with the sled of the return."""
        (self.directory / "branch.c").write_text(BRANCH)
        for env in self.each_version():
            for level in ("-O1", "-O2", "-Os"):
                with self.subTest(env=env, level=level):
                    self.compile(level, "branch.c", "-o", "out", env=env)
                    run = self.run_traced(self.directory / "out")
                    self.assertEqual(run.trace.counts, {"main": 1, "drain": 1})
                    self.assertNotIn("not traced", run.err)

    def test_each_optimisation_level_and_kind_of_executable(self):
        for env in self.each_version():
            for level in ("-O0", "-O1", "-O2", "-O3", "-Os", "-Oz"):
                for kind in (["-fPIE", "-pie"], ["-fno-pie", "-no-pie"]):
                    with self.subTest(env=env, level=level, kind=kind):
                        self.compile(level, *kind, "program.c", "-o", "out", env=env)
                        self.assert_traced("out")

    def test_steps_one_by_one(self):
        self.compile("-O1", "-S", "program.c", "-o", "p.s")
        self.compile("-c", "p.s", "-o", "p.o")
        self.compile("p.o", "-o", "out")
        self.assert_traced("out")
        self.compile("-E", "program.c", "-o", "p.i")
        self.compile("-c", "p.i", "-o", "p.o")
        self.compile("-r", "p.o", "-o", "part.o")
        self.compile("part.o", "-o", "out")
        self.assert_traced("out")
        self.compile("-emit-llvm", "-c", "program.c", "-o", "p.bc")
        self.compile("p.bc", "-o", "out")
        self.assert_traced("out")

    def test_other_command_lines(self):
        (self.directory / "arguments").write_text('-O1 -g program.c\n-o "out of a file"\n')
        self.compile("@arguments")
        self.assert_traced("out of a file")
        self.compile("-pipe", "-save-temps", "program.c", "-o", "out")
        self.assert_traced("out")
        self.compile("-x", "c", "-", "-o", "out", stdin=(SOURCES / "program.c").read_text())
        self.assert_traced("out")
        self.compile("-O2", "first.cc", "second.cc", "-o", "out", compiler=CLANGXX)
        self.assert_traced("out", CXX, "4\n", 0)

    def test_debug_formats_and_mitigations(self):
        for flags in (["-g3", "-gdwarf-4"], ["-g", "-gz"], ["-g", "-gsplit-dwarf"], ["-fcf-protection=full"],
                      ["-fno-asynchronous-unwind-tables"], ["-fno-plt"], ["-fstack-protector-all"],
                      ["-mcmodel=medium"], ["-march=native"], ["-ftrivial-auto-var-init=pattern"],
                      ["-fno-integrated-as"], ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"]):
            with self.subTest(flags=flags):
                self.compile("-O2", *flags, "program.c", "-o", "out")
                self.assert_traced("out")

    def test_link_time_optimisation(self):
        for env in self.each_version():
            for kind in ("-flto", "-flto=thin"):
                with self.subTest(env=env, kind=kind):
                    for source in ("first", "second"):
                        self.compile("-O2", kind, "-c", source + ".cc", compiler=CLANGXX, env=env)
                    self.compile("-O2", kind, "-fuse-ld=lld", "first.o", "second.o", "-o", "out", compiler=CLANGXX,
                                 env=env)
                    self.assert_traced("out", CXX, "4\n", 0)

    def test_shared_library_and_archive(self):
        for env in self.each_version():
            with self.subTest(env=env):
                self.compile("-O1", "-fPIC", "-shared", "second.cc", "-o", "libsecond.so", compiler=CLANGXX, env=env)
                self.assert_clean("libsecond.so")
                self.compile("-O1", "first.cc", "-L.", "-lsecond", "-Wl,-rpath,$ORIGIN", "-o", "out", compiler=CLANGXX,
                             env=env)
                self.assert_traced("out", CXX, "4\n", 0)
        self.compile("-O1", "-c", "second.cc", compiler=CLANGXX)
        self.run_command("ar", "rcs", "libarchive.a", "second.o")
        self.compile("-O1", "first.cc", "libarchive.a", "-o", "out", compiler=CLANGXX)
        self.assert_traced("out", CXX, "4\n", 0)

    def test_functions_and_files_that_ask_not_to_be_instrumented_are_not(self):
        (self.directory / "program.c").write_text(
            (SOURCES / "program.c").read_text().replace("(noinline)", "(noinline, xray_never_instrument)"))
        self.compile("program.c", "-o", "out")
        self.assert_traced("out", ["main"])
        self.compile("-fno-xray-instrument", "-c", "second.cc", compiler=CLANGXX)
        self.compile("first.cc", "second.o", "-o", "out", compiler=CLANGXX)
        self.assertNotIn("second", self.traced_names("out"))

    PATCHABLE = """int printf(const char*, ...);
__attribute__((noinline, patchable_function_entry(8, 2))) int own(int x) { return x + printf("%d\\n", x); }
__attribute__((noinline, patchable_function_entry(0))) int none(int x) { return x + printf("%d\\n", x); }
int main(void) { return own(1) + none(2) - 7; }
"""

    def test_functions_with_nops_in_the_place_of_sleds_are_told(self):
        (self.directory / "patchable.c").write_text(self.PATCHABLE)
        for env in self.each_version():
            with self.subTest(env=env):
                self.compile("-O1", "patchable.c", "-o", "out", env=env)
                run = self.run_traced(self.directory / "out")
                self.assertEqual(run.out, "1\n2\n")
                self.assert_whole(run.trace)
                self.assertEqual(run.trace.counts, {"main": 1, "none": 1})
                self.assertIn("/out has 1 function to whose entry clang gave no sled (patchable_function_entry); it is not "
                              "traced", run.err)
                flag = "-fpatchable-function-entry=8"
                done = self.run_command(CLANG, "-O1", flag, "patchable.c", env=env, status=1)
                self.assertIn(f"karst-clang: {flag}: clang puts its own NOPs in the place of sleds", done.stderr)
                self.compile("-O1", flag, "--karst-method=finstrument", "patchable.c", "-o", "out", env=env)
                self.assertEqual(self.run_traced(self.directory / "out").trace.counts, {"main": 1, "own": 1, "none": 1})
        if shutil.which("gcc"):
            self.compile("-O1", "-fpatchable-function-entry=8", "patchable.c", "-o", "out", compiler=wrapper_commands.GCC)
            self.assertEqual(self.run_traced(self.directory / "out").trace.counts, {"main": 1, "own": 1, "none": 1})

    def traced_names(self, file):
        run = self.run_traced(self.directory / file)
        return [name.split("(")[0] for name in run.trace.counts]

    def test_what_cannot_be_is_refused_with_the_reason(self):
        for flag in ("-m32", "-mx32", "--target=aarch64-linux-gnu"):
            done = self.run_command(CLANG, flag, "-c", "program.c", status=1)
            self.assertIn("only 64-bit x86-64 code can be traced", done.stderr)
        done = self.run_command(CLANG, "-fxray-instrument", "program.c", status=1)
        self.assertIn("LLVM's XRay runtime, which would patch the same sleds", done.stderr)
        done = self.run_command(CLANG, "--karst-method=jit", "program.c", status=1)
        self.assertIn("karst-clang: --karst-method=jit: the methods are sled, finstrument", done.stderr)


class AsTheCompilerItself(ClangTest):
    def both(self, *arguments, stdin=""):
        one = [subprocess.run([command, *arguments], cwd=self.directory, env={**NOISE_FREE, "KARST_CC": "clang-14"},
                              capture_output=True, text=True, input=stdin, timeout=TIMEOUT)
               for command in (CLANG, "clang-14")]
        return one[0], one[1]

    def test_questions_get_the_answers_of_the_compiler(self):
        for question in (["--version"], ["-dumpversion"], ["-dumpmachine"], ["-print-file-name=libc.so"],
                         ["-print-prog-name=ld"], ["-print-search-dirs"], ["-print-resource-dir"], ["-v"], ["--help"],
                         ["-E", "program.c"], ["-M", "program.c"], ["-MM", "program.c"], ["-dM", "-E", "-x", "c", "-"]):
            mine, theirs = self.both(*question)
            self.assertEqual((mine.returncode, mine.stdout, mine.stderr), (0, theirs.stdout, theirs.stderr), question)

    def test_configure_probes_succeed_and_fail_alike_without_noise(self):
        probes = {
            "int main(void) { return 0; }": [],
            "int main(void) { return puts(0); }": ["-Werror=implicit-function-declaration"],
            "int no_such_function(void); int main(void) { return no_such_function(); }": [],
            "#include <no_such_header.h>\nint main(void) { return 0; }": [],
            "int main(void) { return 0 }": [],
            "int x[sizeof(long) == 8 ? 1 : -1];": ["-c"],
            "int x;": ["-c", "-lm"],  # an input that is not used
            "int main(void) { return 1; }": ["-Werror", "-fno-such-flag"],
            "int main(void) { return 2; }": ["-Werror=unused-command-line-argument", "-c", "-lm"],
        }
        statuses = set()
        for text, flags in probes.items():
            (self.directory / "conftest.c").write_text(text + "\n")
            mine, theirs = self.both("-o", "conftest", *flags, "conftest.c")
            self.assertEqual(mine.returncode, theirs.returncode, text)
            self.assertEqual(mine.stderr == "", theirs.stderr == "", mine.stderr)
            statuses.add(theirs.returncode)
        self.assertEqual(statuses, {0, 1})
        for arguments in ([], ["-V"], ["-no-such-flag", "program.c"], ["-o", "x"], ["-c"]):
            mine, theirs = self.both(*arguments)
            self.assertEqual((mine.returncode, mine.stderr), (theirs.returncode, theirs.stderr))

    def test_chosen_compiler(self):
        done = self.run_command(CLANG, "program.c", env={"KARST_CC": "/nowhere/clang"}, status=127)
        self.assertIn("karst-clang: cannot run /nowhere/clang", done.stderr)
        # Where there is no `clang`, the newest of those with a version.
        only = self.directory / "only"
        only.mkdir()
        for version in ("9", "14"):
            (only / f"clang-{version}").write_text(f"#!/bin/sh\necho this is {version}\n")
            (only / f"clang-{version}").chmod(0o755)
        (only / "clang-99").write_text("not executable\n")
        (only / "clang-format-99").symlink_to("clang-14")
        env = {"PATH": str(only) + ":" + "/nowhere", "KARST_CC": ""}
        self.assertEqual(self.run_command(CLANG, "program.c", env=env).stdout, "this is 14\n")

    def test_cmake_project(self):
        made = self.build_with_cmake(CLANG, CLANGXX)
        self.assertNotIn("unused", made.stdout + made.stderr)
        self.assert_traced("b/app", CXX, "4\n", 0)


class Languages(wrapper_commands.WrapperTest):
    FORTRAN = """program calls
  implicit none
  print '(i0)', fibonacci(5)
contains
  recursive function fibonacci(n) result(r)
    integer, intent(in) :: n
    integer :: r
    if (n < 2) then
      r = n
    else
      r = fibonacci(n - 1) + fibonacci(n - 2)
    end if
  end function
end program
"""
    ADA = {"calls.adb": """with Ada.Text_IO; with Numbers;
procedure Calls is
begin
   Ada.Text_IO.Put_Line (Integer'Image (Numbers.Fibonacci (5)));
end Calls;
""", "numbers.ads": "package Numbers is\n   function Fibonacci (N : Integer) return Integer;\nend Numbers;\n",
           "numbers.adb": """package body Numbers is
   function Fibonacci (N : Integer) return Integer is
   begin
      if N < 2 then return N; end if;
      return Fibonacci (N - 1) + Fibonacci (N - 2);
   end Fibonacci;
end Numbers;
"""}

    def needs(self, program):
        if shutil.which(program) is None:
            self.skipTest(f"{program} is not installed")

    def assert_calls(self, out, ending, others):
        alone = self.run_command(self.directory / "out")
        self.assertEqual(alone.stdout.strip(), out)
        run = self.run_traced(self.directory / "out")
        self.assertEqual(run.out, alone.stdout)
        self.assert_whole(run.trace)
        counts = {name.lower(): calls for name, calls in run.trace.counts.items()}
        self.assertEqual([calls for name, calls in counts.items() if ending in name], [15])
        for other in others:
            self.assertTrue(any(other in name for name in counts), counts)

    def test_fortran(self):
        self.needs("gfortran")
        (self.directory / "calls.f90").write_text(self.FORTRAN)
        for method in ("sled", "finstrument"):
            for wrapper, env in (("karst-gfortran", {}), ("karst-gcc", {"KARST_CC": "gfortran"})):
                with self.subTest(method=method, wrapper=wrapper):
                    self.compile("-O1", "-g", "-Wall", "-Werror", "--karst-method=" + method, "-c", "calls.f90",
                                 compiler=str(BIN / wrapper), env=env)
                    self.compile("--karst-method=" + method, "calls.o", "-o", "out", compiler=str(BIN / wrapper),
                                 env=env)
                    self.assert_clean("out")
                    self.assert_calls("5", "fibonacci", ["main"])

    def test_fortran_and_c_in_one_program(self):
        self.needs("gfortran")
        (self.directory / "half.c").write_text("int half_(int *x) { return *x / 2; }\n")
        (self.directory / "both.f90").write_text(
            "program both\n  integer, external :: half\n  print '(i0)', half(84)\nend program\n")
        self.compile("-c", "half.c")
        self.compile("both.f90", "half.o", "-o", "out", compiler=str(BIN / "karst-gfortran"))
        run = self.run_traced(self.directory / "out")
        self.assertEqual(run.out, "42\n")
        self.assertEqual(run.trace.counts.get("half_"), 1)

    def test_ada(self):
        self.needs("gnatmake")
        for name, text in self.ADA.items():
            (self.directory / name).write_text(text)
        for method in ("sled", "finstrument"):
            with self.subTest(method=method):
                self.run_command(BIN / "karst-gnatmake", "-q", "-f", "-O1", "-g", "--karst-method=" + method, "calls.adb",
                                 "-o", "out")
                self.assert_clean("out")
                self.assert_calls("5", "fibonacci", ["calls"])


if __name__ == "__main__":
    main()
