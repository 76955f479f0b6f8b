"""Every way out of a function: a corpus of small programs, each with its one true tree beside it."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from support import BIN, HERE, TracedTest, build, main  # noqa: E402

CORPUS = HERE / "ways_out"
# What a compiler may take from the tree or add to it by its own choice.
STEADY = ["-fno-optimize-sibling-calls"]
STEADY_GCC = ["-fno-ipa-cp", "-fno-ipa-sra", "-fno-ipa-icf"]
PIE = ["-fPIE", "-pie"]
NO_PIE = ["-fno-pie", "-no-pie"]
FLAGS = {"faults.cc": ["-fnon-call-exceptions"], "tail_calls.cc": ["-foptimize-sibling-calls"]}
# Inline functions of the standard library show at -O0; without optimisation there are no tail calls.
OPTIMISED_ONLY = {"tail_calls.cc", "carried.cc"}
O2_ONLY = {"coroutines.cc"}  # what of a coroutine is inlined into what is different at each level


def shown(lines):
    """The tree without what differs from run to run."""
    return [re.sub(r"^# process \d+ \S+ thread \d+ .*", "# thread", line) for line in lines]


def sources():
    return sorted(p for p in CORPUS.iterdir() if p.suffix in (".c", ".cc") and p.name != "ends.cc")


class WaysOut(TracedTest):
    def program(self, source, level, kind, clang=False, method=()):
        cxx = source.suffix == ".cc"
        flags = [level, *kind, *method, *STEADY, *([] if clang else STEADY_GCC), *FLAGS.get(source.name, []), "-pthread"]
        if cxx:
            flags.append("-std=c++20")
        compiler = ("karst-clang" if clang else "karst-g") + ("++" if cxx else "" if clang else "cc")
        name = f"ways_out.{source.stem}.{'clang' if clang else 'gcc'}{level}{''.join(method)}"
        return build(name, f"ways_out/{source.name}", *flags, compiler=str(BIN / compiler) if clang else compiler)


class Agreement(WaysOut):
    def test_all_that_read_events_agree(self):
        """What `top`, forked children, snapshots, counts and the budget make of events is what the reader does."""
        threads = of_budget = 0
        for source in sources():
            with self.subTest(source=source.name):
                run = self.run_traced(self.program(source, "-O2", PIE))
                done = subprocess.run([BIN / "karst-agreement", self.directory / "trace.karst"], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                compared = re.fullmatch(r"(\d+) threads, (\d+) with the budget\n", done.stdout)
                threads += int(compared[1])
                of_budget += int(compared[2])
        self.assertGreaterEqual(threads, len(sources()))
        self.assertGreaterEqual(of_budget, threads // 2)


BEFORE_END = ["# thread", "main  [open]", "  deep(int)  [open]", "    deep(int)  [open]", "      ends()  [open]"]


# How: status, and what is seen below. Where nothing may catch, the unwinder calls terminate() from the throw: no frame is left.
ENDS = {
    "exit": (0, ["        at_exit()"]),
    "_exit": (0, []),
    "quick_exit": (0, ["        at_quick_exit()"]),
    "abort": (128 + 6, []),
    "exec": (0, []),
    "noexcept": (0, ["        promises()  [open]", "          throws()  [open]", "            terminates()  [open]",
                     "              before()"]),
    "uncaught": (0, ["        throws()  [open]", "          terminates()  [open]", "            before()"]),
}


class Ends(TracedTest):
    """Processes that end in the depth: nothing is invented, what was running is open."""

    def test_processes_that_end_in_the_depth(self):
        source = CORPUS / "ends.cc"
        program = build("ways_out.ends", f"ways_out/{source.name}", "-O2", *STEADY, *STEADY_GCC)
        for how, (status, last) in ENDS.items():
            with self.subTest(how=how):
                run = self.run_traced(program, how, status=status)
                self.assertEqual(shown(run.trace.tree("--marks")), [*BEFORE_END, *last])
                self.assert_whole(run.trace)


class Inside(TracedTest):
    """The unwinder and libc, or the unwinder alone, are in the module itself."""

    SOURCES = ("caught.cc", "jumps.c", "contexts.c", "threads.cc", "vforks.c")

    def same_trees(self, *kind, clang=False, sources=SOURCES):
        for name in sources:
            cxx = name.endswith(".cc")
            with self.subTest(source=name):
                compiler = "karst-clang" + ("++" if cxx else "") if clang else "karst-g" + ("++" if cxx else "cc")
                run = self.run_traced(build(
                    f"ways_out.{name}.{compiler}{''.join(kind)}", f"ways_out/{name}", "-O1", *STEADY,
                    *([] if clang else STEADY_GCC), *(["-std=c++20"] if cxx else []), "-pthread", *kind,
                    compiler=str(BIN / compiler) if clang else compiler), options=("--no-patch",))
                self.assertEqual(shown(run.trace.tree("--marks")),
                                 (CORPUS / name).with_suffix(".tree").read_text().splitlines())
                self.assert_whole(run.trace)

    def test_static(self):
        self.same_trees("-static")

    def test_static_pie_by_lld(self):
        if shutil.which("ld.lld") is None:
            self.skipTest("no lld")
        self.same_trees("-static-pie", "-fPIE", "-fuse-ld=lld")

    def test_unwinder_in_the_program(self):
        # pthread_cancel, which unwinds by libgcc_s, aborts such programs without Karst, too.
        self.same_trees("-static-libgcc", "-static-libstdc++", sources=("caught.cc", "jumps.c"))

    def test_static_by_clang(self):
        if not (BIN / "karst-clang++").exists() or not any(map(shutil.which, ("clang++", "clang++-14"))):
            self.skipTest("no clang")
        self.same_trees("-static", clang=True)


class Ada(TracedTest):
    def test_exceptions_of_ada_through_c(self):
        if shutil.which("gnatmake") is None or not (BIN / "karst-gnatmake").exists():
            self.skipTest("no Ada compiler")
        sources = CORPUS / "ada"
        for command in ([BIN / "karst-gcc", "-g", "-O1", "-fexceptions", "-c", sources / "frames.c"],
                        [BIN / "karst-gnatmake", "-q", "-g", "-O1", sources / "exceptions_main.adb", "-largs", "frames.o"]):
            made = subprocess.run(list(map(str, command)), cwd=self.directory, capture_output=True, text=True)
            self.assertEqual(made.returncode, 0, made.stderr)
        run = self.run_traced(self.directory / "exceptions_main")
        once = ["exceptions_pkg.catches", "  exceptions_pkg.passes  [unwound]", "    c_passes  [unwound]",
                "      exceptions_pkg.fails  [unwound]", "  handled"]
        tree = shown(run.trace.tree("--marks", "--function", "^exceptions_pkg.catches$"))
        self.assertEqual(tree, ["# thread", *once, *once])


class Folded(TracedTest):
    def test_functions_that_the_linker_folds_end_as_they_ended(self):
        expected = (CORPUS / "folded/folded.tree").read_text().splitlines()
        for compiler, linker in ((c, l) for c in ("gcc", "clang") for l in ("gold", "lld")):
            clang = compiler == "clang"
            needed = ["ld." + linker, *(["clang++"] if clang else [])]
            if not all(map(shutil.which, needed)) or (clang and not (BIN / "karst-clang++").exists()):
                continue
            with self.subTest(compiler=compiler, linker=linker):
                run = self.run_traced(build(
                    f"ways_out.folded.{compiler}.{linker}", "ways_out/folded/folded.cc", "-O2", "-std=c++17",
                    *([] if clang else STEADY_GCC), "-ffunction-sections", "-fuse-ld=" + linker, "-Wl,--icf=all",
                    compiler=str(BIN / "karst-clang++") if clang else "karst-g++"))
                # Functions with tables of handlers are not folded by each of the linkers.
                self.assertLessEqual({"throws", "last", "tail", "tail_throws"}, set(run.out.split()))
                tree = [re.sub("_(one|two)", "", line) for line in shown(run.trace.tree("--marks"))]
                self.assertEqual(tree, expected)
                self.assert_whole(run.trace)


class Brought(TracedTest):
    """Where libkarst and the unwinder come from."""

    TREE = ["run", "  guarded()  [unwound]", "    throws()  [unwound]", "    Guard::~Guard()", "      cleanup()",
            "  handler()"]

    def test_plugin_that_brings_the_unwinder_into_a_c_program(self):
        plugin = build("ways_out.plugin.so", "ways_out/plugin/plugin.cc", "-O1", "-fPIC", "-shared", *STEADY)
        for compiler in ("gcc", "karst-gcc"):
            main_program = build(f"ways_out.plugin.{compiler}", "ways_out/plugin/main.c", "-O1", compiler=compiler)
            run = self.run_traced(main_program, plugin)
            tree = shown(run.trace.tree("--marks", "--function", "^run$"))
            self.assertEqual(tree, ["# thread", *self.TREE])

    def test_runtime_that_is_linked_stands_before_libgcc_and_libc(self):
        for source in ("caught.cc", "jumps.c"):
            cxx = source.endswith(".cc")
            program = build(f"ways_out.linked.{source}", f"ways_out/{source}", "-O1", "--karst-link", *STEADY, *STEADY_GCC,
                            compiler="karst-g++" if cxx else "karst-gcc")
            run = self.run_traced(program)
            self.assertEqual(shown(run.trace.tree("--marks")),
                             (CORPUS / source).with_suffix(".tree").read_text().splitlines())


if __name__ == "__main__":
    main()
