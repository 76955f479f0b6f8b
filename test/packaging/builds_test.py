"""Karst added to builds: CMake (one target, a whole build), Meson; the calls traced are those that were asked for."""
import shutil
import unittest

from installed import ALL_CALLS, APP_CALLS, Installed, command

SHARED = """
cmake_minimum_required(VERSION 3.18)
project(shared LANGUAGES CXX)
find_package(Karst REQUIRED)
add_library(plain STATIC plain.cc)
set_target_properties(plain PROPERTIES POSITION_INDEPENDENT_CODE ON)
add_library(traced SHARED traced.cc)
target_link_libraries(traced PRIVATE Karst::trace plain)
add_executable(app main.cc)
target_link_libraries(app PRIVATE traced)
"""


class CMakeBuilds(Installed):
    def build(self, source, *options, env=None):
        out = self.directory / "out"
        log = command("cmake", "-G", "Ninja", "-S", source, "-B", out, "-DCMAKE_BUILD_TYPE=Debug", *options, env=env)
        command("cmake", "--build", out)
        return out, log

    def test_one_target_is_traced_with_gcc(self):
        out, _ = self.build(self.example(), f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DTRACE=ON", "-DCMAKE_C_COMPILER=gcc",
                            "-DCMAKE_CXX_COMPILER=g++")
        self.assertEqual(self.counts(out / "app"), APP_CALLS)
        self.assertNotIn("TEXTREL", command("readelf", "-d", out / "app"))

    def with_clang(self, version, *options):
        if shutil.which(f"clang-{version}") is None:
            self.skipTest(f"clang-{version} is not installed")
        out, _ = self.build(self.example(), f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DTRACE=ON",
                            f"-DCMAKE_C_COMPILER=clang-{version}", f"-DCMAKE_CXX_COMPILER=clang++-{version}", *options)
        self.assertEqual(self.counts(out / "app"), APP_CALLS)

    def test_one_target_is_traced_with_clang_14(self):
        self.with_clang(14)

    def test_one_target_is_traced_with_clang_19(self):
        self.with_clang(19)

    def test_method_finstrument_with_clang(self):
        self.with_clang(14, "-DKARST_METHOD=finstrument")

    def test_method_finstrument_with_gcc(self):
        out, _ = self.build(self.example(), f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DTRACE=ON", "-DCMAKE_C_COMPILER=gcc",
                            "-DCMAKE_CXX_COMPILER=g++", "-DKARST_METHOD=finstrument")
        self.assertEqual(self.counts(out / "app"), APP_CALLS)

    def test_one_target_is_traced_from_a_place_with_a_space(self):
        spaced = self.directory / "with space"
        shutil.copytree(self.prefix, spaced, symlinks=True)
        out, _ = self.build(self.example(), f"-DCMAKE_PREFIX_PATH={spaced}", "-DTRACE=ON", "-DCMAKE_C_COMPILER=gcc",
                            "-DCMAKE_CXX_COMPILER=g++")
        self.assertEqual(self.counts(out / "app"), APP_CALLS)

    def test_shared_library_alone_is_traced(self):
        source = self.directory / "source"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(SHARED)
        (source / "plain.cc").write_text("int plain(int n) { return n + 1; }\n")
        (source / "traced.cc").write_text("int plain(int);\nint traced(int n) { return plain(n) * 2; }\n")
        (source / "main.cc").write_text("int traced(int);\nint main() { return traced(1) == 4 ? 0 : 1; }\n")
        out, _ = self.build(source, f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_CXX_COMPILER=g++")
        self.assertEqual(self.counts(out / "app"), {"traced(int)": 1})

    def test_linked_runtime_is_loaded_without_preload(self):
        source = self.directory / "source"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.18)\nproject(linked LANGUAGES C)\nfind_package(Karst REQUIRED)\n"
            "add_executable(app main.c)\ntarget_link_libraries(app PRIVATE Karst::trace Karst::runtime)\n")
        (source / "main.c").write_text("#include <karst/karst.h>\nKARST_NOTRACE int main(void) { return 0; }\n")
        out, _ = self.build(source, f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_C_COMPILER=gcc")
        self.assertIn("libkarst.so.0", command("readelf", "-d", out / "app"))
        command(out / "app")

    def test_whole_build_is_traced_by_the_toolchain_file(self):
        out, log = self.build(self.example(), f"-DCMAKE_TOOLCHAIN_FILE={self.prefix}/lib/cmake/Karst/KarstToolchain.cmake",
                              "-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON")
        self.assertNotIn("warning", log.lower())
        self.assertEqual(self.counts(out / "app"), ALL_CALLS)

    def test_package_adds_nothing_where_the_wrappers_compile_already(self):
        out, _ = self.build(self.example(), f"-DCMAKE_TOOLCHAIN_FILE={self.prefix}/lib/cmake/Karst/KarstToolchain.cmake",
                            f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DTRACE=ON")
        self.assertEqual(self.counts(out / "app"), ALL_CALLS)

    def test_toolchain_file_for_clang(self):
        if shutil.which("clang") is None:
            self.skipTest("clang is not installed")
        out, _ = self.build(self.example(), f"-DCMAKE_TOOLCHAIN_FILE={self.prefix}/lib/cmake/Karst/KarstToolchain.cmake",
                            "-DKARST_COMPILER=clang")
        self.assertEqual(self.counts(out / "app"), ALL_CALLS)

    def test_wrong_settings_are_refused_with_the_reason(self):
        for options, reason in (((f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DTRACE=ON", "-DKARST_METHOD=magic"),
                                 "KARST_METHOD=magic"),
                                ((f"-DCMAKE_TOOLCHAIN_FILE={self.prefix}/lib/cmake/Karst/KarstToolchain.cmake",
                                  "-DKARST_COMPILER=icc"), "KARST_COMPILER=icc")):
            with self.assertRaises(AssertionError) as refused:
                self.build(self.example(), *options)
            self.assertIn(reason, str(refused.exception))
            shutil.rmtree(self.directory / "builds")
            shutil.rmtree(self.directory / "out", ignore_errors=True)


class MesonBuild(Installed):
    def test_meson_takes_the_wrappers_for_gcc(self):
        if shutil.which("meson") is None:
            self.skipTest("meson is not installed")
        copy = self.example()
        command("meson", "setup", "out", cwd=copy, env=self.environment(CC="karst-gcc", CXX="karst-g++"))
        command("ninja", "-C", copy / "out", env=self.environment())
        self.assertEqual(self.counts(copy / "out/app"), ALL_CALLS)


if __name__ == "__main__":
    unittest.main(verbosity=2)
