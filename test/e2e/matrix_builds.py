"""Method x compiler x linker x LTO x PIE: one program and its shared library have one tree of calls.

Each compiler with each method is a test. By itself it builds every pairing of linker and kind of LTO, half of them as PIE and
half not, alternating, so that each linker and each kind of LTO meets both. KARST_MATRIX=full builds all of it, at
several levels of optimisation: script/soak matrix. A cell that cannot be is named in IMPOSSIBLE, with the reason; any
other that fails to build, or differs, fails the test.
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from support import BIN, HERE, TIMEOUT, TracedTest, main  # noqa: E402

SOURCES = HERE / "matrix" / "builds"
FULL = os.environ.get("KARST_MATRIX") == "full"
LEVELS = ["-O0", "-O1", "-O2", "-O3", "-Os"] if FULL else ["-O2"]
LINKERS = ["bfd", "gold", "lld", "mold"]
STEADY = ["-std=c++17", "-g1", "-Wall", "-Wextra", "-Werror", "-fno-optimize-sibling-calls"]
IMPOSSIBLE = {
    ("gcc", "-flto", "lld"): "lld takes no gcc plugin: it does not know gcc's LTO objects, with Karst or without",
}


def level_ids(lines):
    return [re.sub(r"^# process \d+ (\S+) thread \d+ ", r"# process PID \1 thread TID ", line) for line in lines]


class BuildsTest(TracedTest):
    def command(self, *arguments, env=None):
        done = subprocess.run(list(map(str, arguments)), cwd=self.directory, capture_output=True, text=True,
                              timeout=TIMEOUT, env={**os.environ, **(env or {})})
        self.assertEqual((done.returncode, done.stderr), (0, ""), " ".join(map(str, arguments)))
        return done.stdout

    def assert_linked_well(self, file):
        self.assertNotIn("TEXTREL", self.command("readelf", "-dW", file))
        stack = [line for line in self.command("readelf", "-lW", file).splitlines() if "GNU_STACK" in line]
        self.assertEqual(len(stack), 1)
        self.assertNotIn("RWE", stack[0])
        self.assertNotIn("xray", self.command("nm", "-D", "--undefined-only", file))

    def assert_same(self):
        self.assert_linked_well("builds")
        self.assert_linked_well("libbuilds.so")
        alone = self.command(self.directory / "builds")
        self.assertEqual(alone, "3 2 141 3.25 73 4\n")
        run = self.run_traced(self.directory / "builds")
        self.assertEqual(run.out, alone)
        self.assert_whole(run.trace)
        self.assertEqual(level_ids(run.trace.tree()), (SOURCES / "tree.txt").read_text().splitlines())


class Matrix(BuildsTest):
    def kinds_of_lto(self, family):
        return [[], ["-flto"]] + ([["-flto=thin"]] if family == "clang" else [])

    def cells(self, family):
        """(level, PIE or not, LTO, linker)"""
        for level in LEVELS:
            for at, lto in enumerate(self.kinds_of_lto(family)):
                for linker_at, linker in enumerate(LINKERS):
                    if IMPOSSIBLE.get((family, " ".join(lto), linker)):
                        continue
                    for pie in (True, False) if FULL else [(at + linker_at) % 2 == 0]:
                        yield level, pie, lto, linker

    def builds(self, compiler, method="sled"):
        family = "clang" if "clang" in compiler else "gcc"
        if shutil.which(compiler) is None:
            self.skipTest(f"{compiler} is not installed")
        wrapper = BIN / ("karst-clang++" if family == "clang" else "karst-g++")
        env = {"KARST_CXX": compiler}
        made = set()
        for level, pie, lto, linker in self.cells(family):
            flags = [f"--karst-method={method}", *STEADY, level, *lto]
            kinds = {"pie": ["-fPIE"], "no-pie": ["-fno-pie"], "pic": ["-fPIC"]}
            kind = "pie" if pie else "no-pie"
            with self.subTest(level=level, pie=pie, lto=lto, linker=linker):
                objects = {}
                for name, source in ((kind, "program.cc"), ("pic", "library.cc")):
                    objects[name] = "-".join([name, level, *lto]) + ".o"
                    if objects[name] in made:
                        continue
                    self.command(wrapper, *flags, *kinds[name], "-c", SOURCES / source, "-o", objects[name], env=env)
                    made.add(objects[name])
                link = [wrapper, *flags, "-fuse-ld=" + linker]
                self.command(*link, "-shared", objects["pic"], "-o", "libbuilds.so", env=env)
                self.command(*link, "-pie" if pie else "-no-pie", objects[kind], "-L.", "-lbuilds",
                             "-Wl,-rpath,$ORIGIN", "-o", "builds", env=env)
                self.assert_same()

    def test_gcc_12(self):
        self.builds("g++-12")

    def test_gcc_12_finstrument(self):
        self.builds("g++-12", "finstrument")

    def test_gcc_11(self):
        self.builds("g++-11")

    def test_gcc_11_finstrument(self):
        self.builds("g++-11", "finstrument")

    def test_clang_14(self):
        self.builds("clang++-14")

    def test_clang_14_finstrument(self):
        self.builds("clang++-14", "finstrument")

    def test_clang_14_finstrument_after_inlining(self):
        self.builds("clang++-14", "finstrument-after-inlining")

    def test_clang_19(self):
        self.builds("clang++-19")

    def test_clang_19_finstrument(self):
        self.builds("clang++-19", "finstrument")

    def test_clang_19_finstrument_after_inlining(self):
        self.builds("clang++-19", "finstrument-after-inlining")


class Impossible(BuildsTest):
    def test_what_cannot_be_fails_without_karst_too(self):
        (self.directory / "a.cc").write_text("int main() {}\n")
        for wrapper in ("g++", BIN / "karst-g++"):
            done = subprocess.run([wrapper, "-flto", "-fuse-ld=lld", "a.cc", "-o", "a"], cwd=self.directory,
                                  capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0)


class Mixed(BuildsTest):
    def test_each_module_by_another_compiler_and_method(self):
        makers = [("karst-g++", "g++-12", "sled"), ("karst-clang++", "clang++-14", "sled"),
                  ("karst-g++", "g++-12", "finstrument"), ("karst-clang++", "clang++-14", "finstrument-after-inlining")]
        for program in makers:
            for library in makers:
                with self.subTest(program=program, library=library):
                    for (wrapper, compiler, method), rest in (
                            (library, ["-fPIC", "-shared", SOURCES / "library.cc", "-o", "libbuilds.so"]),
                            (program, [SOURCES / "program.cc", "-L.", "-lbuilds", "-Wl,-rpath,$ORIGIN", "-o",
                                       "builds"])):
                        self.command(BIN / wrapper, f"--karst-method={method}", *STEADY, "-O2", *rest,
                                     env={"KARST_CXX": compiler})
                    self.assert_same()

    def test_sleds_of_both_compilers_in_one_module(self):
        self.command(BIN / "karst-clang++", *STEADY, "-O2", "-c", SOURCES / "library.cc")
        self.command(BIN / "karst-g++", *STEADY, "-O2", "-c", SOURCES / "program.cc")
        for wrapper in ("karst-g++", "karst-clang++"):
            with self.subTest(linked_by=wrapper):
                self.command(BIN / wrapper, "library.o", "program.o", "-o", "builds")
                self.assert_linked_well("builds")
                run = self.run_traced(self.directory / "builds")
                self.assert_whole(run.trace)
                self.assertEqual(level_ids(run.trace.tree()), (SOURCES / "tree.txt").read_text().splitlines())


if __name__ == "__main__":
    main()
