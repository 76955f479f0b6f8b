"""One program has one tree of calls, however it is built: the expected trees are committed beside the sources."""
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from support import BIN, HERE, TIMEOUT, TracedTest, main  # noqa: E402

SOURCES = HERE / "matrix"
# What a compiler may add to the tree or take from it by its own choice: tail calls, clones for constant arguments,
# merged equal functions.
STEADY = ["-fno-optimize-sibling-calls", "-fno-ipa-cp", "-fno-ipa-sra", "-fno-ipa-icf"]
KINDS = {"pie": (["-fPIE"], ["-pie"]), "no-pie": (["-fno-pie"], ["-no-pie"])}


def plain(lines):
    """The tree without what differs from run to run (ids) and, at -O0, the helper that gcc puts between the module's
    initialiser and the constructors it calls."""
    out = []
    helper = None
    for line in lines:
        level = len(line) - len(line.lstrip(" "))
        if helper is not None and level <= helper:
            helper = None
        if line.strip() == "__static_initialization_and_destruction_0(int, int)":
            helper = level
            continue
        line = line[2:] if helper is not None else line
        out.append(re.sub(r"^# process \d+ (\S+) thread \d+ ", r"# process PID \1 thread TID ", line))
    return out


class MatrixTest(TracedTest):
    def command(self, *arguments):
        done = subprocess.run(list(map(str, arguments)), cwd=self.directory, capture_output=True, text=True,
                              timeout=TIMEOUT)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout

    def compile(self, *arguments, compiler="karst-g++"):
        self.command(BIN / compiler, *arguments)

    def assert_tree(self, program, expected):
        alone = self.command(self.directory / program)
        run = self.run_traced(self.directory / program)
        self.assertEqual(run.out, alone)
        self.assert_whole(run.trace)
        lines = (SOURCES / expected).read_text().splitlines()
        self.assertEqual(plain(run.trace.tree()), lines)

    def level(self, level):
        flags = ["-std=c++17", "-g", level, *STEADY, "-c"]
        self.compile(*flags, "-fPIC", SOURCES / "library.cc", "-o", "pic.o")
        self.compile("-shared", "pic.o", "-o", "libmatrix.so")
        for kind, (compiling, linking) in KINDS.items():
            self.compile(*flags, *compiling, SOURCES / "program.cc", "-o", "program.o")
            self.compile(*flags, *compiling, SOURCES / "library.cc", "-o", "library.o")
            with self.subTest(level=level, kind=kind, library="shared"):
                self.compile(*linking, "program.o", "-L.", "-lmatrix", "-Wl,-rpath,$ORIGIN", "-o", "matrix")
                self.assert_tree("matrix", "tree.txt")
            with self.subTest(level=level, kind=kind, library="within"):
                self.compile(*linking, "library.o", "program.o", "-o", "matrix")
                self.assert_tree("matrix", "tree.txt")


class Matrix(MatrixTest):
    def test_tree_at_O0(self):
        self.level("-O0")

    def test_tree_at_O1(self):
        self.level("-O1")

    def test_tree_at_O2(self):
        self.level("-O2")

    def test_tree_at_O3(self):
        self.level("-O3")

    def test_tree_at_Os(self):
        self.level("-Os")


class Shapes(MatrixTest):
    def test_exits_in_cold_parts_belong_to_their_functions(self):
        self.compile("-std=c++17", "-g", "-O2", "-freorder-blocks-and-partition", *STEADY, SOURCES / "library.cc",
                     SOURCES / "program.cc", "-o", "matrix")
        code = self.command("objdump", "-d", "--no-show-raw-insn", "matrix")
        for name in ("split", "pump"):
            # The case is there: the cold part has a return of its own with a sled before it, and pump no other.
            hot, cold = (re.search(rf"^\S+ <_ZN12_GLOBAL__N_1L?\d+{name}Ei{part}>:\n((?:.+\n)*)", code, re.MULTILINE)
                         for part in ("", r"\.cold"))
            self.assertIsNotNone(cold, name)
            self.assertRegex(cold[1], r"nopl +0x0\(%rax,%rax,1\)\n.*\tret")
            self.assertEqual("\tret" in hot[1], name == "split")
        self.assert_tree("matrix", "tree.txt")

    def test_a_tail_call_lasts_until_its_callee_returns(self):
        self.compile("-g", "-O2", SOURCES / "tail_calls.c", "-o", "tail_calls", compiler="karst-gcc")
        self.assert_tree("tail_calls", "nested_calls.txt")

    def test_without_tail_calls_the_same_program_nests(self):
        self.compile("-g", "-O2", "-fno-optimize-sibling-calls", SOURCES / "tail_calls.c", "-o", "tail_calls",
                     compiler="karst-gcc")
        self.assert_tree("tail_calls", "nested_calls.txt")


class Plain(unittest.TestCase):
    def test_only_the_helper_and_ids_are_levelled(self):
        self.assertEqual(plain(["# process 1 a thread 2 b", "init", "  __static_initialization_and_destruction_0(int, int)",
                                "    A::A()", "      f()", "main", "  f()"]),
                         ["# process PID a thread TID b", "init", "  A::A()", "    f()", "main", "  f()"])


if __name__ == "__main__":
    main()
