"""Ways to link and to generate code: each gives the one tree, no text relocations and no executable stack."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import matrix_builds  # noqa: E402
from matrix_builds import LINKERS, SOURCES, STEADY, level_ids  # noqa: E402
from support import BIN, main  # noqa: E402

WRAPPERS = ["karst-g++", "karst-clang++"]
GC = ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"]


class LinksTest(matrix_builds.BuildsTest):
    def make(self, wrapper, flags=(), library=(), program=(), sources=()):
        common = [BIN / wrapper, *STEADY, "-O2", *flags]
        self.command(*common, "-fPIC", "-shared", *library, SOURCES / "library.cc", "-o", "libbuilds.so")
        self.command(*common, *program, SOURCES / "program.cc", *sources, "-L.", "-lbuilds", "-Wl,-rpath,$ORIGIN", "-o",
                     "builds")

    def each_linker(self, flags=(), library=(), linkers=LINKERS, **more):
        for wrapper in WRAPPERS:
            for linker in linkers:
                with self.subTest(wrapper=wrapper, linker=linker, flags=flags):
                    self.make(wrapper, [*flags, "-fuse-ld=" + linker], library, **more)
                    self.assert_same()

    def each_flag(self, *sets, wrappers=WRAPPERS):
        for wrapper in wrappers:
            for flags in sets:
                with self.subTest(wrapper=wrapper, flags=flags):
                    self.make(wrapper, flags)
                    self.assert_same()


class Links(LinksTest):
    def test_section_collection(self):
        self.each_linker(GC)

    def test_identical_code_folding(self):
        """What is folded has one name of several; here constructors and destructors can be the same code."""
        def folded(lines):
            return [line.replace("~", "").replace("destructor", "constructor") for line in level_ids(lines)]
        for wrapper in WRAPPERS:
            for linker in ("gold", "lld", "mold"):
                with self.subTest(wrapper=wrapper, linker=linker):
                    self.make(wrapper, [*GC, "-Wl,--icf=all", "-fuse-ld=" + linker])
                    self.assert_linked_well("builds")
                    self.assert_linked_well("libbuilds.so")
                    run = self.run_traced(self.directory / "builds")
                    self.assert_whole(run.trace)
                    self.assertEqual(folded(run.trace.tree()), folded((SOURCES / "tree.txt").read_text().splitlines()))

    def test_hardening_and_strict_libraries(self):
        (self.directory / "map").write_text("{ global: _ZN6builds*; _ZTV*; _ZTI*; _ZTS*; local: *; };\n")
        self.each_linker(["-Wl,-z,now", "-Wl,-z,relro", "-Wl,-z,noexecstack", "-Wl,-z,text"],
                         ["-Wl,--no-undefined", "-Wl,-Bsymbolic", "-Wl,--version-script=map"])

    def test_layouts(self):
        self.each_flag(["-Wl,-z,separate-code"], ["-Wl,-z,noseparate-code"], ["-Wl,--emit-relocs"],
                       ["-Wl,--build-id=none"], ["-Wl,--hash-style=sysv"], ["-rdynamic"], ["-Wl,-z,norelro"])

    def test_separate_debug_files_and_strip(self):
        for wrapper in WRAPPERS:
            for linker in LINKERS:
                with self.subTest(wrapper=wrapper, linker=linker):
                    self.make(wrapper, ["-fuse-ld=" + linker])
                    for file in ("builds", "libbuilds.so"):
                        self.command("objcopy", "--only-keep-debug", file, file + ".debug")
                        self.command("strip", file)
                        self.command("objcopy", "--add-gnu-debuglink=" + file + ".debug", file)
                    self.assert_same()

    def test_stripped_without_a_debug_file(self):
        for wrapper in WRAPPERS:
            with self.subTest(wrapper=wrapper):
                self.make(wrapper, ["-s"])
                self.assert_linked_well("builds")
                run = self.run_traced(self.directory / "builds")
                lines = level_ids(run.trace.tree())
                shape = [len(line) - len(line.lstrip()) for line in lines]
                tree = (SOURCES / "tree.txt").read_text().splitlines()
                self.assertEqual(shape, [len(line) - len(line.lstrip()) for line in tree])
                self.assertTrue(any("builds+0x" in line for line in lines))

    def test_code_generation(self):
        self.each_flag(["-fcf-protection=full"], ["-march=native"], ["-fno-plt"],
                       ["-fstack-protector-strong", "-D_FORTIFY_SOURCE=2", "-fstack-clash-protection"],
                       ["-fno-semantic-interposition"], ["-fomit-frame-pointer"], ["-fno-omit-frame-pointer"])
        self.each_flag(["-mcmodel=medium"], wrappers=["karst-g++"])

    def test_static(self):
        for wrapper in WRAPPERS:
            for linker in LINKERS:
                for kind in (["-static"], ["-static-pie", "-fPIE"]):
                    if linker == "gold" and kind[0] == "-static-pie":
                        continue  # it does not know --no-dynamic-linker
                    with self.subTest(wrapper=wrapper, linker=linker, kind=kind):
                        self.command(BIN / wrapper, *STEADY, "-O2", "-fuse-ld=" + linker, *kind, SOURCES / "library.cc",
                                     SOURCES / "program.cc", "-o", "builds")
                        self.assertNotIn("INTERP", self.command("readelf", "-lW", "builds"))
                        self.assert_tree_of("builds")

    def assert_tree_of(self, file):
        self.assert_linked_well_statically(file)
        alone = self.command(self.directory / file)
        run = self.run_traced(self.directory / file)
        self.assertEqual(run.out, alone)
        self.assert_whole(run.trace)
        self.assertEqual(level_ids(run.trace.tree()), (SOURCES / "tree.txt").read_text().splitlines())

    def assert_linked_well_statically(self, file):
        self.assertNotIn("TEXTREL", self.command("readelf", "-dW", file))
        self.assertNotIn("RWE", self.command("readelf", "-lW", file))


class Large(LinksTest):
    def test_program_of_more_than_100_MB_of_code(self):
        (self.directory / "large.s").write_text(
            '\t.text\n\t.globl large\nlarge:\tret\n\t.zero 125829120\n\t.section .note.GNU-stack,"",@progbits\n')
        for wrapper in WRAPPERS:
            with self.subTest(wrapper=wrapper):
                # Functions in front of the large part and behind it.
                self.command(BIN / wrapper, "-c", "large.s", "-o", "large.o")
                self.command(BIN / wrapper, *STEADY, "-O2", "-fPIC", "-c", SOURCES / "library.cc", "-o", "library.o")
                self.command(BIN / wrapper, *STEADY, "-O2", SOURCES / "program.cc", "large.o", "library.o", "-o",
                             "builds")
                self.assertGreater((self.directory / "builds").stat().st_size, 100 << 20)
                self.assert_tree()

    def test_data_of_three_gigabytes_in_the_medium_model(self):
        (self.directory / "data.c").write_text("char large[3L << 30];\nchar *get(long i) { return &large[i]; }\n")
        for wrapper in WRAPPERS:
            for kind in (["-fPIE", "-pie"], ["-fno-pie", "-no-pie"]):
                if wrapper == "karst-clang++" and "-pie" in kind:
                    continue  # clang 14 makes text relocations of such code, with Karst or without
                with self.subTest(wrapper=wrapper, kind=kind):
                    compiler = {"karst-g++": "karst-gcc", "karst-clang++": "karst-clang"}[wrapper]
                    self.command(BIN / compiler, "-O2", "-mcmodel=medium", *kind[:1], "-c", "data.c")
                    self.command(BIN / wrapper, *STEADY, "-O2", "-mcmodel=medium", *kind, SOURCES / "library.cc",
                                 SOURCES / "program.cc", "data.o", "-o", "builds")
                    self.assert_tree()

    def assert_tree(self):
        self.assert_linked_well("builds")
        run = self.run_traced(self.directory / "builds")
        self.assert_whole(run.trace)
        self.assertEqual(level_ids(run.trace.tree()), (SOURCES / "tree.txt").read_text().splitlines())


if __name__ == "__main__":
    main()
