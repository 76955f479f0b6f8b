"""The installed tree, moved elsewhere: it is whole, names no place, and its wrappers and karst work from there."""
import os
import shutil
import subprocess
import unittest

from installed import ALL_CALLS, BUILD, ROOT, Installed, command, machine_code


class InstallTest(Installed):
    def test_tree_has_every_part(self):
        expected = """bin/karst bin/karst-gcc bin/karst-g++ bin/karst-clang bin/karst-clang++ lib/libkarst.so lib/libkarst.so.0 lib/libkarst-contexts.so lib/libkarst-contexts.so.0 lib/libkarst-old-glibc.so.0 lib/libkarst.a
            lib/karst/karst-as lib/karst/karst-gcc.specs lib/karst/module.o include/karst/karst.h include/karst/note.h include/karst/log.h include/karst/handle.h include/karst/reader.h
            lib/libkarst-reader.so lib/libkarst-reader.so.0 share/karst/python/karst/__init__.py
            lib/cmake/Karst/KarstConfig.cmake lib/cmake/Karst/KarstConfigVersion.cmake
            lib/cmake/Karst/KarstToolchain.cmake lib/pkgconfig/karst.pc share/man/man1/karst.1.gz share/man/man1/karst-run.1.gz
            share/man/man1/karst-gcc.1.gz share/man/man1/karst-g++.1.gz share/bash-completion/completions/karst
            share/zsh/vendor-completions/_karst share/karst/karst.html share/karst/karst-gdb.py share/karst/detectors/n-plus-one.sql share/doc/karst/copyright share/doc/karst/docs/guide/README.md""".split()
        self.assertEqual([part for part in expected if not (self.prefix / part).exists()], [])

    def test_no_file_of_the_tree_names_where_it_was_built_or_installed(self):
        for path in self.prefix.rglob("*"):
            if path.is_symlink():
                self.assertFalse(os.path.isabs(os.readlink(path)), path)
            elif path.is_file() and not machine_code(path):
                text = path.read_text(errors="replace")
                for place in (str(BUILD), str(self.staged), str(ROOT)):
                    self.assertNotIn(place, text, path)

    def test_programs_search_for_libraries_where_the_system_does(self):
        for path in (self.bin / "karst", self.prefix / "lib/libkarst.so"):
            dynamic = command("readelf", "-d", path)
            self.assertNotIn("RUNPATH", dynamic, path)
            self.assertNotIn("RPATH", dynamic, path)

    def test_moved_tree_builds_traces_and_reports(self):
        copy = self.example()
        command("make", "-C", copy, "CC=karst-gcc", "CXX=karst-g++", env=self.environment())
        self.assertEqual(self.counts(copy / "app"), ALL_CALLS)

    def test_static_program_is_traced_from_the_moved_tree(self):
        copy = self.example()
        command("make", "-C", copy, "CC=karst-gcc", "CXX=karst-g++", "LDFLAGS=-static", env=self.environment())
        self.assertEqual(self.counts(copy / "app"), ALL_CALLS)

    def test_links_to_the_commands_work_from_another_directory(self):
        copy = self.example()
        links = self.directory / "links"
        links.mkdir()
        for name in ("karst", "karst-gcc", "karst-g++"):
            (links / name).symlink_to(self.bin / name)
        command("make", "-C", copy, f"CC={links}/karst-gcc", f"CXX={links}/karst-g++")
        trace = self.directory / "linked.karst"
        command(links / "karst", "run", "-o", trace, copy / "app")
        self.assertIn("calls kept", command(links / "karst", "run", "-o", trace, copy / "app"))

    def test_traces_are_read_from_the_moved_tree(self):
        copy = self.example()
        command("make", "-C", copy, "CC=karst-gcc", "CXX=karst-g++", env=self.environment())
        trace = self.directory / "app.karst"
        command(self.bin / "karst", "run", "-o", trace, copy / "app")
        script = f"import karst; print(sum(1 for _ in karst.open({str(trace)!r})))"
        calls = command("python3", "-B", "-c", script,
                        env={**os.environ, "PYTHONPATH": str(self.prefix / "share/karst/python")})
        self.assertEqual(int(calls), len(command(self.bin / "karst", "calls", "--format", "csv", trace).splitlines()) - 1)
        project = self.directory / "reads"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.18)\nproject(reads LANGUAGES C)\nfind_package(Karst REQUIRED)\n"
            "add_executable(reads main.c)\ntarget_link_libraries(reads PRIVATE Karst::reader)\n")
        (project / "main.c").write_text(
            "#include <karst/reader.h>\n#include <stdio.h>\nint main(int argc, char** argv) {\n"
            "  struct karst_trace* trace = karst_trace_open(argv[argc - 1], 0, 0);\n"
            "  printf(\"%u\\n\", trace ? karst_trace_threads(trace) : 0);\n  karst_trace_close(trace);\n  return 0;\n}\n")
        command("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        command("cmake", "--build", project / "build")
        self.assertGreaterEqual(int(command(project / "build/reads", trace)), 1)

    def test_place_with_a_space_is_refused_with_the_reason(self):
        # The dynamic linker takes a space in LD_PRELOAD for the end of a name.
        copy = self.example()
        command("make", "-C", copy, "CC=karst-gcc", "CXX=karst-g++", env=self.environment())
        spaced = self.directory / "with space"
        shutil.copytree(self.prefix, spaced, symlinks=True)
        done = subprocess.run([spaced / "bin/karst", "run", "-o", self.directory / "x.karst", copy / "app"],
                              capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("with space", done.stderr)
        self.assertFalse((self.directory / "x.karst").exists())

    def test_wrappers_work_from_a_place_with_a_space(self):
        copy = self.example()
        spaced = self.directory / "with space"
        shutil.copytree(self.prefix, spaced, symlinks=True)
        command("make", "-C", copy, "CC=karst-gcc", "CXX=karst-g++",
                env={**os.environ, "PATH": f"{spaced / 'bin'}:{os.environ['PATH']}"})
        self.assertEqual(self.counts(copy / "app"), ALL_CALLS)

    def test_pkg_config_finds_header_and_runtime_where_they_are_now(self):
        ask = ["env", f"PKG_CONFIG_PATH={self.prefix / 'lib/pkgconfig'}", "pkg-config", "--define-prefix"]
        source = self.directory / "linked.c"
        source.write_text("#include <karst/karst.h>\nKARST_NOTRACE static int quiet(void) { return 0; }\n"
                          "int main(void) { return quiet(); }\n")
        flags = command(*ask, "--cflags", "--libs", "karst").split()
        self.assertTrue(any(os.path.realpath(f[2:]) == str(self.prefix / "include") for f in flags if f.startswith("-I")), flags)
        program = self.directory / "linked"
        command("gcc", source, "-Wl,--no-as-needed", *flags, f"-Wl,-rpath,{self.prefix / 'lib'}", "-o", program)
        self.assertIn("libkarst.so.0", command("readelf", "-d", program))
        command(program)


if __name__ == "__main__":
    unittest.main(verbosity=2)
