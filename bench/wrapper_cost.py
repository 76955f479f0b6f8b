"""What the wrappers add to a compilation and to a link: karst-gcc and karst-clang beside the compilers they run."""

import pathlib
import resource
import shutil
import statistics
import subprocess
import time

from measure import BUILD, BenchError, Row

BIN = BUILD / "bin"

COMPILE_TARGET_MS = 5.0
LINK_TARGET_MS = 20.0
XRAY_CC1_FLAGS = ["-Xclang", "-fxray-instrument", "-Xclang", "-fxray-instruction-threshold=1"]
COMPILE_TARGET_PERCENT = 1.0
SOURCE = "#include <stdio.h>\n#include <stdlib.h>\n" + "".join(
    f"int f{i}(int x) {{ return x < {i} ? x : printf(\"%d\", x); }}\n" for i in range(20)) + "int main(void) { return 0; }\n"


def cpu_time():
    """Of the children that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(command, directory, clock):
    begin = clock()
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    end = clock()
    if done.returncode != 0:
        raise BenchError(f"{' '.join(map(str, command))} failed: {done.stderr.strip()}")
    return (end - begin) * 1000


def added(plain, traced, directory, repeats, clock=time.perf_counter):
    """Median of the differences of interleaved runs, in milliseconds, and the plain median."""
    pairs = []
    for i in range(repeats):
        first, second = (plain, traced) if i % 2 == 0 else (traced, plain)
        times = {id(first): timed(first, directory, clock), id(second): timed(second, directory, clock)}
        pairs.append((times[id(plain)], times[id(traced)]))
    return statistics.median(t - p for p, t in pairs), statistics.median(p for p, _ in pairs)


def bench_wrapper_cost(rounds, scratch, notes):
    directory = pathlib.Path(scratch) / "wrapper_cost"
    directory.mkdir(exist_ok=True)
    (directory / "a.c").write_text(SOURCE)
    rows = []
    repeats = 5 * rounds + 1
    for wrapper, compiler in (("karst-gcc", "gcc"), ("karst-clang", "clang-14")):
        if shutil.which(compiler) is None:
            notes.append(f"{compiler} is not installed: {wrapper} was not measured")
            continue
        own = ["env", "KARST_CC=" + compiler, str(BIN / wrapper)]
        plain = ["env", "KARST_CC=" + compiler, compiler]
        for name, arguments, target in (("compile", ["-O2", "-c", "a.c", "-o", "a.o"], COMPILE_TARGET_MS),
                                        ("link", ["a.o", "-o", "a"], LINK_TARGET_MS)):
            cost, base = added(plain + arguments, own + arguments, directory, repeats)
            rows.append(Row("wrappers", f"{wrapper}, {name}", cost, "ms added", target=f"< {target:g} ms",
                            met=cost < target, note=f"plain {base:.0f} ms"))
    return rows + compiling_leveldb(rounds, directory, notes)


def compiling_leveldb(rounds, directory, notes):
    """Its largest source, as examples/leveldb/build compiles it, by CPU time."""
    deps = BUILD / "third_party/leveldb/node_modules/classic-level/deps"
    found = sorted(deps.glob("leveldb/leveldb-*/db/db_impl.cc"))
    if not found:
        notes.append("LevelDB's sources are not there: script/setup")
        return []
    leveldb = found[0].parent.parent
    arguments = ["-O2", "-g", "-std=c++17", "-DLEVELDB_PLATFORM_POSIX=1", "-DOS_LINUX=1", "-DNDEBUG", f"-I{leveldb}",
                 f"-I{leveldb}/include", "-c", str(found[0]), "-o", "db_impl.o"]
    rows = []
    for wrapper, compiler, sleds in (("karst-g++", "g++", []), ("karst-clang++", "clang++-14", XRAY_CC1_FLAGS)):
        if shutil.which(compiler) is None:
            continue
        plain = ["env", "KARST_CXX=" + compiler]
        own = [*plain, str(BIN / wrapper), *arguments]
        # clang's sleds are its own; what Karst adds is told against clang with them.
        cost, base = added([*plain, compiler, *sleds, *arguments], own, directory, 2 * rounds + 1, cpu_time)
        rows.append(Row("wrappers", f"{wrapper}, compile LevelDB's db_impl.cc", 100 * cost / base, "% added",
                        target=f"<= {COMPILE_TARGET_PERCENT:g}%", met=cost <= base * COMPILE_TARGET_PERCENT / 100,
                        note=f"{'with sleds' if sleds else 'plain'} {base:.0f} ms"))
    return rows
