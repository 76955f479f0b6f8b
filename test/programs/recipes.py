"""How each program is built, with its own build system, and what it is made to do."""
import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

HERE = Path(__file__).resolve().parent
JOBS = "-j2"


@dataclass
class Recipe:
    name: str
    folder: str  # below build/third_party
    build: Callable
    run: Callable
    binaries: Callable
    package: str = ""  # Debian's source package
    tools: list = field(default_factory=list)  # commands it needs besides
    arbitrate: bool = False  # one thread, and the same calls in each run: callgrind can count them, too

    def version(self, bench):
        if not self.package:
            return self.folder
        names = [p.name for p in (bench.third_party / self.folder).iterdir() if p.is_dir()]
        return names[-1]


def executables(directory, *patterns):
    """ELF files of these names below a directory, links left out."""
    found = []
    for pattern in patterns:
        for path in sorted(directory.rglob(pattern)):
            if path.is_file() and not path.is_symlink() and path.open("rb").read(4) == b"\x7fELF":
                found.append(path)
    return found


# Lua: make ---------------------------------------------------------------------------------------------------------

def build_lua(bench, flags):
    bench.command("make", JOBS, "linux", "CC=karst-gcc -std=gnu99", f"MYCFLAGS={flags}", "MYLDFLAGS=--coverage")


def run_lua(bench):
    bench.run(bench.source / "src/lua", HERE / "workload.lua")


# Lua as C++, as Debian has it too: each error and each yield is an exception -------------------------------------------

def build_lua_cxx(bench, flags):
    bench.command("make", JOBS, "linux", "CC=karst-g++", f"MYCFLAGS={flags}", "MYLDFLAGS=--coverage")


def run_lua_cxx(bench):
    for work in ("workload.lua", "workload_errors.lua"):
        bench.run(bench.source / "src/lua", HERE / work)


# SQLite's shell: autotools -------------------------------------------------------------------------------------------

def build_sqlite(bench, flags):
    if not (bench.source / "Makefile").exists():
        bench.command("./configure", "CC=karst-gcc", f"CFLAGS={flags}", "LDFLAGS=--coverage", "--disable-tcl", "--disable-readline",
                      "--disable-shared")
    bench.command("make", JOBS, "sqlite3")


def run_sqlite(bench):
    bench.run(bench.source / "sqlite3", ":memory:", stdin=HERE / "workload.sql")


# zstd: make, threads -------------------------------------------------------------------------------------------------

def build_zstd(bench, flags):
    bench.command("make", JOBS, "-C", "programs", "zstd", "CC=karst-gcc", f"CFLAGS={flags}", "LDFLAGS=--coverage", "HAVE_LZMA=0",
                  "HAVE_LZ4=0", "HAVE_ZLIB=0")


def run_zstd(bench):
    text = bench.directory / "text"
    with text.open("w") as file:
        for path in sorted((bench.source / "lib").rglob("*.c"))[:12]:
            file.write(path.read_text(errors="replace"))
    zstd = bench.source / "programs/zstd"
    bench.run(zstd, "-f", "-T4", "-B256KB", "-5", text, "-o", bench.directory / "text.zst")
    bench.run(zstd, "-f", "-d", bench.directory / "text.zst", "-o", bench.directory / "text.back")
    bench.command("cmp", text, bench.directory / "text.back")


# LevelDB of npm's classic-level: our ninja file, threads ---------------------------------------------------------------

def build_leveldb(bench, flags):
    root = HERE.parent.parent
    bench.command(root / "examples/leveldb/build", bench.directory / "out", *flags.split(),
                  env=bench.environment(CXX=str(bench.bin / "karst-g++"),
                                        KARST_LEVELDB_SOURCES=str(bench.source / "node_modules/classic-level/deps")))


def run_leveldb(bench):
    bench.run(bench.directory / "out/leveldb-workload", "--threads", "4", "--batches", "300")


# Cap'n Proto: CMake, exceptions, nine shared libraries -----------------------------------------------------------------

def build_capnproto(bench, flags):
    out = bench.directory / "out"
    if not (out / "CMakeCache.txt").exists():
        bench.command("cmake", "-G", "Ninja", "-S", bench.source, "-B", out, "-DCMAKE_CXX_COMPILER=karst-g++",
                      "-DBUILD_SHARED_LIBS=ON", f"-DCMAKE_CXX_FLAGS={flags}", "-DCMAKE_BUILD_TYPE=None", "-DWITH_OPENSSL=OFF")
    bench.command("ninja", "-C", out, JOBS, "kj-tests")


# Exceptions thrown through callers of all kinds, threads, containers. Left out: tests of tables that make a billion calls, and
# those that fork children which end by _exit, where gcov's counters are lost.
KJ_TESTS = ("exception", "common", "arena", "array", "function", "map", "memory", "mutex", "one-of", "refcount", "string",
            "string-tree", "list", "tuple", "encoding", "units", "time", "thread")


def run_capnproto(bench):
    filters = [word for test in KJ_TESTS for word in ("-f", f"{test}-test.c++")]
    bench.run(bench.directory / "out/src/kj/kj-tests", *filters, cwd=bench.directory / "out/src/kj",
              env=bench.environment(KJ_CLEAN_SHUTDOWN="1"))  # else by _exit, without gcov's counters


# GoogleTest's own tests: CMake ------------------------------------------------------------------------------------------

# Left out: what ends by design in ways that leave gcov's counters unwritten, scripts that run other tests, and one that
# takes no filter from outside.
GOOGLE_LEFT_OUT = re.compile(r"death-test|premature_exit|throw_on_failure|stress|repeat_test|\.py")


def build_googletest(bench, flags):
    out = bench.directory / "out"
    if not (out / "CMakeCache.txt").exists():
        bench.command("cmake", "-G", "Ninja", "-S", bench.source, "-B", out, "-DCMAKE_C_COMPILER=karst-gcc",
                      "-DCMAKE_CXX_COMPILER=karst-g++", "-Dgtest_build_tests=ON", "-DBUILD_GMOCK=OFF",
                      f"-DCMAKE_CXX_FLAGS={flags}", "-DCMAKE_BUILD_TYPE=None", "-DBUILD_SHARED_LIBS=ON",
                      # Else destructors of the library's statics run in the program's copies of templates, and after the
                      # program's counters were written.
                      "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,-Bsymbolic-functions")
    bench.command("ninja", "-C", out, JOBS)


def google_tests(bench):
    """The C++ programs that `ctest` would run."""
    out = bench.directory / "out"
    listed = json.loads(subprocess.run(["ctest", "--show-only=json-v1"], cwd=out, check=True, capture_output=True,
                                       text=True).stdout)["tests"]
    commands = [t["command"][0] for t in listed if not GOOGLE_LEFT_OUT.search(" ".join(t["command"]))]
    return sorted({Path(c) for c in commands if Path(c).is_relative_to(out)})


def run_googletest(bench):
    for test in google_tests(bench):
        # Death tests abort their children: gcov's counters are lost there, karst's are not. One has another name.
        bench.run(test, "--gtest_brief=1", "--gtest_filter=-*Death*:TestResultPropertyTest.GetTestProperty", memory="1G")


# CPython's _json in Debian's python3: setuptools ------------------------------------------------------------------------

def build_python(bench, flags):
    module = bench.directory / "module"
    module.mkdir(exist_ok=True)
    (module / "setup.py").write_text(
        "from setuptools import Extension, setup\n"
        f"setup(name='karst-json', ext_modules=[Extension('_json', ['_json.c'])])\n")
    (module / "_json.c").write_text((bench.source / "Modules/_json.c").read_text())
    bench.command("/usr/bin/python3", "setup.py", "-q", "build_ext", "--inplace", cwd=module,
                  env=bench.environment(CC="karst-gcc", CFLAGS=f"{flags} -I/usr/include/python3.11/internal",
                                        LDSHARED="karst-gcc -shared --coverage"))


def run_python(bench):
    bench.run("/usr/bin/python3", "-I", HERE / "workload.py", bench.directory / "module")


RECIPES = [
    Recipe("lua", "lua-source", build_lua, run_lua, lambda b: [b.source / "src/lua"], "lua5.4", ["make"], True),
    Recipe("lua-c++", "lua-source", build_lua_cxx, run_lua_cxx, lambda b: [b.source / "src/lua"], "lua5.4", ["make"], True),
    Recipe("sqlite", "sqlite3", build_sqlite, run_sqlite, lambda b: [b.source / "sqlite3"], "sqlite3", ["make", "tclsh"], True),
    Recipe("zstd", "libzstd", build_zstd, run_zstd, lambda b: [b.source / "programs/zstd"], "libzstd", ["make"]),
    Recipe("leveldb", "leveldb", build_leveldb, run_leveldb, lambda b: [b.directory / "out/leveldb-workload"]),
    Recipe("capnproto", "capnproto", build_capnproto, run_capnproto,
           lambda b: executables(b.directory / "out", "*.so.*", "*.so", "kj-tests"), "capnproto", ["cmake"]),
    Recipe("googletest", "googletest", build_googletest, run_googletest,
           lambda b: executables(b.directory / "out", "*.so.*") + google_tests(b), "googletest", ["cmake"]),
    Recipe("python", "python3.11", build_python, run_python, lambda b: executables(b.directory / "module", "*.so"), "python3.11"),
]
