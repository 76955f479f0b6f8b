"""Every way out of a function: method x compiler x optimisation x kind of program, one tree of calls for each program.

Each compiler with each method is a test. By itself it runs every cell of level and kind with some of the corpus, in turn, so
that each cell has programs and each program has a cell; gcc 12's sleds run each program at every level. KARST_MATRIX=full
runs each program in each cell (script/soak matrix). What cannot be is named in IMPOSSIBLE, with the reason; a test fails if
a cell that must be did not run, and in the full matrix also if a compiler is not there.
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from support import BIN, HERE, TIMEOUT, TracedTest, main  # noqa: E402
from ways_out import (BEFORE_END, CORPUS, ENDS, FLAGS, NO_PIE, PIE, STEADY, STEADY_GCC, shown, sources)  # noqa: E402

FULL = os.environ.get("KARST_MATRIX") == "full"
COMPILERS = {"gcc_12": "g++-12", "gcc_11": "g++-11", "clang_14": "clang++-14", "clang_19": "clang++-19"}
METHODS = {"gcc": ("sled", "finstrument"), "clang": ("sled", "finstrument", "finstrument-after-inlining")}
LEVELS = ("-O0", "-O2", "-O3")
# name: how the program is compiled and linked, and whether the corpus is a shared library of it
KINDS = {"pie": (PIE, False), "no-pie": (NO_PIE, False), "shared": (PIE, True), "shared-no-pie": (NO_PIE, True)}
AT_EACH_LEVEL = {("gcc_12", "sled")}
IMPOSSIBLE = {
    ("clang", "faults"): "clang's code may throw in calls alone: -fnon-call-exceptions means nothing to it",
}
# What compilers inline or not, and what they add, is not told of by the trees of these programs: such lines are taken
# out, and what is in them stands where they stood.
LEVELLED = {
    "carried": re.compile(r"std::"),
    # Beside the library's: the parts of a coroutine but for that which goes on, and (clang, -O0) its nameless helpers.
    "coroutines": re.compile(r"std::|Task::|\S+\+0x|body\(\)$|body\(.*\[clone \.(destroy|cleanup)\]"),
}

# clang's code has a handler there that terminates, and -finstrument-functions a cleanup in the frames before: they are gone.
NOEXCEPT_BY_A_HANDLER = ["        promises()  [open]", "          throws()  [unwound]", "          terminates()  [open]",
                         "            before()"]


def family_of(compiler):
    return compiler.split("_")[0]


def without(name, lines):
    """The tree without the calls of that name; what is in them stands where they stood."""
    out, gone = [], []
    for line in lines:
        depth = len(line) - len(line.lstrip(" "))
        while gone and depth <= gone[-1]:
            gone.pop()
        if name.match(line.strip()):
            gone.append(depth)
        else:
            out.append(line[2 * len(gone):])
    return out


def levelled(program, lines, compiler, method):
    """The tree without what compilers choose; what goes on of a coroutine has one name."""
    lines = without(LEVELLED[program], lines)
    if program == "coroutines":
        lines = [re.sub(r"body\(.*\) \[clone \.(actor|resume)\]", "body", line) for line in lines]
        lines = [line for line in lines if line != "  body"]  # up to its first suspension: called by main, or part of it
        if family_of(compiler) == "clang" and method == "finstrument":
            lines = without(re.compile("body"), lines)  # which clang made of a function that it calls for no more
    return lines


def programs():
    """name: arguments of each run"""
    return {**{source.stem: [()] for source in sources()}, "ends": [(how,) for how in ENDS]}


def source_of(program):
    return next(path for path in (CORPUS / f"{program}.cc", CORPUS / f"{program}.c") if path.exists())


def must(compiler, method):
    """The (program, level, kind) that a compiler with a method must run."""
    cells = [(level, kind) for level in LEVELS for kind in KINDS]
    possible = [program for program in programs() if (family_of(compiler), program) not in IMPOSSIBLE]
    for at, program in enumerate(possible):
        turn = at + 3 * list(COMPILERS).index(compiler)
        for number, cell in enumerate(cells):
            of_level = (compiler, method) in AT_EACH_LEVEL and number % len(KINDS) == (turn + number // len(KINDS)) % len(KINDS)
            if FULL or number == turn % len(cells) or of_level:
                yield (program, *cell)


class Matrix(TracedTest):
    def command(self, *arguments, env=None):
        done = subprocess.run(list(map(str, arguments)), cwd=self.directory, capture_output=True, text=True,
                              timeout=TIMEOUT, env={**os.environ, **(env or {})})
        self.assertEqual((done.returncode, done.stderr), (0, ""), " ".join(map(str, arguments)))

    def make(self, compiler, method, program, level, kind):
        """Builds the program as NAME-LEVEL-KIND."""
        source = source_of(program)
        cxx = source.suffix == ".cc"
        gcc = family_of(compiler) == "gcc"
        name = COMPILERS[compiler] if cxx else COMPILERS[compiler].replace("clang++", "clang").replace("g++", "gcc")
        wrapper = BIN / {("gcc", True): "karst-g++", ("gcc", False): "karst-gcc", ("clang", True): "karst-clang++",
                         ("clang", False): "karst-clang"}[family_of(compiler), cxx]
        env = {"KARST_CXX" if cxx else "KARST_CC": name}
        flags = [level, f"--karst-method={method}", *STEADY, *(STEADY_GCC if gcc else []), *FLAGS.get(source.name, []),
                 "-pthread", *(["-std=c++20"] if cxx else [])]
        how, shared = KINDS[kind]
        file = f"{program}{level}-{kind}"
        if not shared:
            self.command(wrapper, *flags, *how, source, "-o", file, env=env)
            return file
        library = f"lib{program}{level}.so"
        if not (self.directory / library).exists():
            self.command(wrapper, *flags, "-fPIC", "-shared", "-Dmain=corpus_main", source, "-o", library, env=env)
        takes = ["-DWITH_ARGUMENTS"] if program == "ends" else []
        self.command(wrapper, *flags, *how, *takes, "-x", "c++" if cxx else "c", CORPUS / "shared/host.cc", "-x", "none", library,
                     "-Wl,-rpath,$ORIGIN", "-o", file, env=env)
        return file

    def make_layers(self, compiler, method, level):
        """The program of ways_out/layers: beside it a library of the same make, and one by the compiler alone."""
        family = family_of(compiler)
        cxx, c = (("karst-g++", "karst-gcc") if family == "gcc" else ("karst-clang++", "karst-clang"))
        plain = COMPILERS[compiler]
        env = {"KARST_CXX": plain, "KARST_CC": plain.replace("clang++", "clang").replace("g++", "gcc")}
        flags = [level, f"--karst-method={method}", *STEADY, *(STEADY_GCC if family == "gcc" else [])]
        layers = CORPUS / "layers"
        self.command(plain, level, "-fPIC", "-shared", layers / "stranger.cc", "-o", "libstranger.so")
        self.command(BIN / cxx, *flags, "-fPIC", "-shared", layers / "library.cc", "-o", "liblayers.so", env=env)
        self.command(BIN / c, *flags, "-fPIE", "-c", layers / "frame.c", "-o", "frame.o", env=env)
        self.command(BIN / cxx, *flags, "-fPIE", "-pie", layers / "program.cc", "frame.o", "libstranger.so", "liblayers.so",
                     "-Wl,-rpath,$ORIGIN", "-o", "layers", env=env)

    def check_layers(self, compiler, method):
        expected = (CORPUS / "layers/layers.tree").read_text().splitlines()
        if method != "sled":
            expected = [line.replace("  [unwound]", "") for line in expected]
        for level in LEVELS if FULL else ["-O2"]:
            with self.subTest(level=level, program="layers"):
                self.make_layers(compiler, method, level)
                tree = self.run_all({"layers": ("layers",)})["layers"][0]
                if method != "sled":
                    tree = [line.replace("  [unwound]", "") for line in tree]
                self.assertEqual(tree, expected)

    def run_all(self, runs):
        """One trace of all runs (key: command): the tree and the status of each."""
        script = ["#!/bin/sh"]
        for number, (file, *arguments) in enumerate(runs.values()):
            script += [f"./{file} {' '.join(arguments)} & child=$!", "wait $child", f"echo {number} $child $?"]
        (self.directory / "all").write_text("\n".join(script) + "\n")
        (self.directory / "all").chmod(0o755)
        run = self.run_traced(self.directory / "all", options=("--no-source", "--memory", "4M", "--no-patch"))
        self.assert_whole(run.trace)
        trees = {}
        for line in run.trace.tree("--marks"):
            header = re.match(r"# process (\d+) ", line)
            if header:
                tree = trees.setdefault(int(header[1]), [])
            tree.append(line)
        ended = [tuple(map(int, line.split())) for line in run.out.splitlines()]
        self.assertEqual([number for number, _, _ in ended], list(range(len(runs))))
        self.assertEqual(set(trees), {pid for _, pid, _ in ended})
        return {key: (shown(trees[pid]), status) for key, (_, pid, status) in zip(runs, ended)}

    def expected(self, program, arguments, compiler, level, method):
        """The tree, and the status."""
        if program == "ends":
            status, last = ENDS[arguments[0]]
            if arguments == ("noexcept",) and (family_of(compiler), method) != ("gcc", "sled"):
                last = NOEXCEPT_BY_A_HANDLER
            return [*BEFORE_END, *last], status
        nested = program == "tail_calls" and (level == "-O0" or method != "sled")
        return (CORPUS / f"{program}{'.nested' if nested else ''}.tree").read_text().splitlines(), 0

    def check(self, compiler, method):
        if shutil.which(COMPILERS[compiler]) is None:
            self.assertFalse(FULL, f"{COMPILERS[compiler]} is not installed")
            self.skipTest(f"{COMPILERS[compiler]} is not installed")
        runs = {}
        for cell in must(compiler, method):
            with self.subTest("build", cell=cell):
                file = self.make(compiler, method, *cell)
                runs |= {(cell, arguments): (file, *arguments) for arguments in programs()[cell[0]]}
        ran = set()
        for (cell, arguments), (tree, status) in self.run_all(runs).items():
            program, level, kind = cell
            with self.subTest(cell=cell, arguments=arguments):
                expected, expected_status = self.expected(program, arguments, compiler, level, method)
                if KINDS[kind][1]:
                    tree = [re.sub(r"^corpus_main(\(.*\))?( |$)", r"main\2", line) for line in tree]
                if method != "sled":  # the compiler's own cleanups record exits, without a mark
                    tree, expected = ([line.replace("  [unwound]", "") for line in t] for t in (tree, expected))
                if program in LEVELLED and (family_of(compiler), level, method) != ("gcc", "-O2", "sled"):
                    tree, expected = (levelled(program, t, compiler, method) for t in (tree, expected))
                self.assertEqual(tree, expected)
                self.assertEqual(status, expected_status)
                ran.add(cell)
        self.assertEqual(ran, set(must(compiler, method)))
        self.check_layers(compiler, method)

    def test_gcc_12_sled(self):
        self.check("gcc_12", "sled")

    def test_gcc_12_finstrument(self):
        self.check("gcc_12", "finstrument")

    def test_gcc_11_sled(self):
        self.check("gcc_11", "sled")

    def test_gcc_11_finstrument(self):
        self.check("gcc_11", "finstrument")

    def test_clang_14_sled(self):
        self.check("clang_14", "sled")

    def test_clang_14_finstrument(self):
        self.check("clang_14", "finstrument")

    def test_clang_14_finstrument_after_inlining(self):
        self.check("clang_14", "finstrument-after-inlining")

    def test_clang_19_sled(self):
        self.check("clang_19", "sled")

    def test_clang_19_finstrument(self):
        self.check("clang_19", "finstrument")

    def test_clang_19_finstrument_after_inlining(self):
        self.check("clang_19", "finstrument-after-inlining")


class Cells(TracedTest):
    def test_no_cell_of_the_matrix_is_left_out(self):
        wanted = {f"test_{compiler}_{method.replace('-', '_')}" for compiler in COMPILERS
                  for method in METHODS[family_of(compiler)]}
        self.assertEqual({name for name in dir(Matrix) if name.startswith("test_")}, wanted)
        for compiler in COMPILERS:
            for method in METHODS[family_of(compiler)]:
                cells = set(must(compiler, method))
                self.assertEqual({cell[1:] for cell in cells}, {(level, kind) for level in LEVELS for kind in KINDS})
                impossible = {program for family, program in IMPOSSIBLE if family == family_of(compiler)}
                self.assertEqual({cell[0] for cell in cells}, set(programs()) - impossible)
                if (compiler, method) in AT_EACH_LEVEL:
                    self.assertEqual({cell[:2] for cell in cells},
                                     {(program, level) for program in set(programs()) - impossible for level in LEVELS})

    def test_each_program_is_in_the_table_and_has_its_tree(self):
        table = (CORPUS / "README.md").read_text()
        named = set(re.findall(r"`([a-z_/]+\.(?:cc|c|adb|tree))`", table))
        self.assertEqual({name for name in named if not (CORPUS / name).exists()}, set())
        self.assertEqual({source.name for source in [*sources(), CORPUS / "ends.cc"]} - named, set())
        self.assertEqual({source.name for source in sources() if not source.with_suffix(".tree").exists()}, set())
        self.assertEqual({path.name for path in CORPUS.iterdir() if path.is_dir()} - {"shared"},
                         set(re.findall(r"^\|.*`([a-z]+)/", table, re.MULTILINE)))

    def test_functions_of_the_corpus_have_cold_parts(self):
        program = self.directory / "cold"
        subprocess.run([BIN / "karst-g++", "-O2", *STEADY, *STEADY_GCC, CORPUS / "cold.cc", "-o", program], check=True)
        names = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
        for function in ("guarded", "catches"):
            self.assertRegex(names, rf"_Z\d+{function}i\.cold")

    def test_what_cannot_be_fails_without_karst_too(self):
        for compiler in ("clang++-14", "clang++-19"):
            if shutil.which(compiler) is None:
                continue
            program = self.directory / compiler
            subprocess.run([compiler, "-O2", "-std=c++20", *FLAGS["faults.cc"], CORPUS / "faults.cc", "-o", program], check=True,
                           capture_output=True)
            done = subprocess.run([program], capture_output=True, timeout=TIMEOUT)
            self.assertNotEqual(done.returncode, 0)

    def test_what_is_left_out_of_a_tree_leaves_what_was_in_it(self):
        tree = ["# thread", "main", "  std::a", "    b", "      std::c", "    d  [unwound]", "  e"]
        self.assertEqual(without(re.compile("std::"), tree), ["# thread", "main", "  b", "  d  [unwound]", "  e"])


if __name__ == "__main__":
    main()
