"""Leaving functions out: lists by name and path, sizes, marks in the source, and what programs carry."""
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from support import BIN, HERE, KARST, TIMEOUT, TracedTest, main  # noqa: E402

SOURCES = HERE / "filters"
ALL = {"main", "app::tiny", "app::tiny_loop", "app::large", "app::always", "library::inlined", "plugin",
       "plugins::help"}


class ListsTest(TracedTest):
    compiler = "karst-g++"

    def command(self, *arguments, status=0, **more):
        done = subprocess.run(list(map(str, arguments)), cwd=self.directory, capture_output=True, text=True,
                              timeout=TIMEOUT, **more)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def build(self, *flags, library_flags=(), compiler=None, debug=("-g",)):
        compiler = BIN / (compiler or self.compiler)
        common = [*debug, "-O1", "-fno-optimize-sibling-calls", "-Wall", "-Werror"]
        self.command(compiler, *common, "-shared", "-fPIC", *library_flags, SOURCES / "plugin.cc", "-o",
                     "libplugin.so")
        self.command(compiler, *common, *flags, SOURCES / "program.cc", "-L.", "-lplugin", "-Wl,-rpath,$ORIGIN", "-o",
                     "program")

    def write(self, name, *lines):
        (self.directory / name).write_text("".join(line + "\n" for line in lines))
        return str(self.directory / name)

    def traced(self, *options, env=None, said=()):
        run = self.run_traced("./program", options=options, env=env)
        self.assertEqual(run.out, self.command("./program").stdout)
        self.assert_whole(run.trace)
        lines = self.lines_of_karst(run)
        self.assertEqual(len(lines), 1 + len(said), run.err)
        for text in said:
            self.assertIn(text, run.err)
        return {name.split("(")[0] for name in run.trace.counts}

    def refused(self, *options, env=None):
        done = subprocess.run([KARST, "run", *options, "--", "./program"], cwd=self.directory, capture_output=True,
                              text=True, env={**os.environ, **(env or {})})
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        return done.stderr


class Running(ListsTest):
    def test_lists_on_the_command_line(self):
        self.build()
        self.assertEqual(self.traced(), ALL)
        no = self.write("no", "# what is small", "app::tiny*", "", "  plugins::?elp(int)   # there")
        self.assertEqual(self.traced("--no-trace", no), ALL - {"app::tiny", "app::tiny_loop", "plugins::help"})
        only = self.write("only", "main", "app::*")
        self.assertEqual(self.traced("--only", only),
                         {"main", "app::tiny", "app::tiny_loop", "app::large", "app::always"})
        self.assertEqual(self.traced("--only", only, "--no-trace", no), {"main", "app::large", "app::always"})
        self.assertEqual(self.traced("--only", only, "--only", self.write("more", "plugin")),
                         {"main", "app::tiny", "app::tiny_loop", "app::large", "app::always", "plugin"})

    def test_source_paths_headers_included(self):
        self.build()
        self.assertEqual(self.traced("--no-trace", self.write("no", "filters/*.h", "*/plugin.cc")),
                         ALL - {"library::inlined", "plugin", "plugins::help"})
        self.assertEqual(self.traced("--only", self.write("only", str(SOURCES / "header.h"))),
                         {"library::inlined", "app::always"})
        self.assertEqual(self.traced("--no-trace", self.write("dir", str(HERE) + "/")), {"app::always"})

    def test_paths_without_debug_information_are_said_to_match_nothing(self):
        self.build(debug=())
        no = self.write("no", "filters/*.h")
        self.assertEqual(self.traced("--no-trace", no, said=["program, which has no debug information: compile it with -g",
                                                             "libplugin.so, which has no debug information",
                                                             "no function matches the glob 'filters/*.h'"]), ALL)

    def test_least_number_of_instructions(self):
        self.build()
        small = {"app::tiny", "library::inlined", "plugins::help"}
        self.assertEqual(self.traced("--min-instructions", "5"), ALL - small)
        self.assertEqual(self.traced("--min-instructions", "0"), ALL)
        self.assertEqual(self.traced("--min-instructions", "20") & {"app::large", "app::tiny_loop", "app::always"},
                         {"app::large", "app::tiny_loop", "app::always"})
        self.assertEqual(self.traced("--min-instructions", "100000"), {"app::tiny_loop", "app::always"})

    def test_environment(self):
        self.build()
        no = self.write("no", "app::*")
        self.assertEqual(self.traced(env={"KARST_OPTIONS": f"no-trace={no},min-instructions=5"}),
                         {"main", "app::always", "plugin"})
        self.assertEqual(self.traced("--min-instructions", "0", env={"KARST_OPTIONS": f"no-trace={no},min-instructions=5"}),
                         {"main", "app::always", "library::inlined", "plugin", "plugins::help"})

    def test_what_is_marked_always_gives_way_to_one_option_alone(self):
        self.build()
        self.assertEqual(self.traced("--functions", "^main$"), {"main", "app::always"})
        self.assertNotIn("app::always", self.traced("--not-functions", "always"))

    def test_without_a_rebuild_another_list_is_another_trace(self):
        self.build()
        before = (self.directory / "program").read_bytes()
        file = self.write("list", "app::large")
        self.assertEqual(self.traced("--no-trace", file), ALL - {"app::large"})
        self.write("list", "app::tiny")
        self.assertEqual(self.traced("--no-trace", file), ALL - {"app::tiny"})
        self.assertEqual((self.directory / "program").read_bytes(), before)

    def test_errors_name_the_file_and_the_line(self):
        self.build()
        bad = self.write("bad", "fine", "", "operator[")
        self.assertIn(f"--no-trace: {bad}:3: a [ without its ]", self.refused("--no-trace", bad))
        self.assertIn(f"--only: {bad}:3:", self.refused(env={"KARST_OPTIONS": f"only={bad}"}))
        self.assertIn("cannot read nowhere: No such file", self.refused("--no-trace", "nowhere"))
        self.assertIn("has no globs, so nothing would be traced", self.refused("--only", self.write("none", "# none")))
        self.assertIn("--min-instructions few", self.refused("--min-instructions", "few"))
        (self.directory / "binary").write_bytes(b"\x7fELF\0\0")
        self.assertIn("binary:1: a NUL byte", self.refused("--no-trace", "binary"))

    def test_a_list_that_leaves_nothing_says_so(self):
        self.build()
        run = self.run_traced("./program", options=["--not-functions", "."])
        self.assertIn("leave none", run.err)


class Carried(ListsTest):
    def test_lists_given_when_linking(self):
        self.build("--karst-no-trace=" + self.write("no", "app::tiny"), library_flags=["--karst-min-instructions=5"])
        self.assertEqual(self.traced(), ALL - {"app::tiny", "plugins::help"})
        os.remove(self.directory / "no")  # the program has it
        self.assertEqual(self.traced("--no-trace", self.write("more", "app::large")),
                         ALL - {"app::tiny", "app::large", "plugins::help"})
        self.assertEqual(self.traced("--min-instructions", "0"), ALL - {"app::tiny"})
        self.assertEqual(self.traced("--no-carried-lists"), ALL)
        self.assertEqual(self.traced(env={"KARST_OPTIONS": "carried-lists=0"}), ALL)

    def test_carried_only_is_of_its_module_and_gives_way(self):
        self.build("--karst-only=" + self.write("only", "main", "app::large"))
        self.assertEqual(self.traced(), {"main", "app::large", "app::always", "plugin", "plugins::help"})
        self.assertEqual(self.traced("--only", self.write("other", "app::tiny")), {"app::tiny", "app::always"})

    def test_lists_outlive_strip_and_section_collection_with_each_linker(self):
        for linker in ("bfd", "gold", "lld", "mold"):
            with self.subTest(linker=linker):
                self.build("--karst-no-trace=" + self.write("no", "app::tiny"), "-fuse-ld=" + linker,
                           "-ffunction-sections", "-Wl,--gc-sections")
                self.command("objcopy", "--only-keep-debug", "program", "program.debug")
                self.command("strip", "--strip-debug", "program")
                self.command("objcopy", "--add-gnu-debuglink=program.debug", "program")
                self.assertEqual(self.traced(), ALL - {"app::tiny"})


class OtherCompilers(ListsTest):
    def each(self, compiler, *flags):
        self.compiler = compiler
        self.build(*flags, "--karst-no-trace=" + self.write("no", "app::tiny"), library_flags=flags)
        self.assertEqual(self.traced(), ALL - {"app::tiny"})
        self.assertEqual(self.traced("--no-trace", self.write("more", "filters/*.h", "plugin*")),
                         {"main", "app::tiny_loop", "app::large", "app::always"})

    def test_clang(self):
        self.each("karst-clang++")
        self.assertEqual(self.traced("--no-carried-lists", "--min-instructions", "5"),
                         ALL - {"app::tiny", "library::inlined", "plugins::help"})
        self.assertEqual(self.traced("--no-carried-lists", "--functions", "^main$"), {"main", "app::always"})

    def test_clang_with_lto(self):
        self.each("karst-clang++", "-flto")

    def test_gcc_calls(self):
        self.each("karst-g++", "--karst-method=finstrument")

    def test_clang_calls(self):
        self.each("karst-clang++", "--karst-method=finstrument-after-inlining")

    def test_threshold_of_clang(self):
        self.build("--karst-threshold=20", library_flags=["--karst-threshold=20"], compiler="karst-clang++")
        names = self.traced()
        self.assertNotIn("app::tiny", names)  # IR instructions; what loops has its sleds all the same
        self.assertLessEqual({"app::tiny_loop", "app::always"}, names)

    def test_marks_mean_nothing_to_plain_compilers(self):
        for compiler in ("g++", "gcc-11", "clang++-14", "clang++-19"):
            for language in ("c", "c++"):
                with self.subTest(compiler=compiler, language=language):
                    source = self.write("marks." + ("c" if language == "c" else "cc"), "#include <karst/karst.h>",
                                        "KARST_NOTRACE int f(int x); KARST_ALWAYS int g(int x);",
                                        "int f(int x) { return x; }", "int g(int x) { return x; }",
                                        "static inline KARST_NOTRACE int h(int x) { return x; }",
                                        "int i(int x); KARST_ALWAYS int i(int x) { return h(x); }")
                    try:
                        self.command(compiler, "-x", language, "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                                     *(["-Weverything", "-Wno-c++98-compat", "-Wno-missing-prototypes"]
                                       if "clang" in compiler else ["-Wattributes"]),
                                     "-I", Path(os.environ["KARST_SOURCE_ROOT"]) / "include", "-c", source, "-o",
                                     "marks.o")
                    except FileNotFoundError:
                        continue
                    self.assertNotIn("karst", self.command("readelf", "-SW", "marks.o").stdout)


if __name__ == "__main__":
    main()
