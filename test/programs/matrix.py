#!/usr/bin/env python3
"""Real programs in every build: method x compiler x linker x LTO x PIE, by their own build systems.

  script/soak matrix programs [NAME...]   all, or those named; status 1 when a cell does not build or counts otherwise

Built with -O0, so that no compiler has a choice of what is a call: each function's calls must be the same in all cells of a
method (with always_inline functions -finstrument-functions sees more than sleds do). The first cell of all, gcc's sleds
linked by GNU ld, is what script/soak programs compares with gcov. Programs are made to do the same each time.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from debian_source import SourceError, debian_source  # noqa: E402

LINKERS = ("bfd", "gold", "lld", "mold")
PIE = {"pie": ("-fPIE", "-pie"), "no-pie": ("-fno-pie", "-no-pie")}
COMPILERS = {"gcc-12": "karst-gcc", "gcc-11": "karst-gcc", "clang-14": "karst-clang", "clang-19": "karst-clang"}
# Link-time optimisation tells functions of the same name in several files apart by these.
LTO_SUFFIX = re.compile(r"((\.lto_priv|\.llvm)?\.\d+)+$")
METHODS = {"karst-gcc": ("sled", "finstrument"), "karst-clang": ("sled", "finstrument", "finstrument-after-inlining")}


class CellError(Exception):
    """A cell was not built or not run; the message says why."""


def build_lua(source, compiler, plain, flags, linking):
    for name in ("lua", "luac"):
        (source / "src" / name).unlink(missing_ok=True)
    # Without these two Lua's tables depend on the time and on where its text lies.
    steady = "'-Dluai_makeseed(L)=0' -DSTRCACHE_N=1 -DSTRCACHE_M=1"
    words = ["make", "linux", f"CC={compiler} -std=gnu99", f"MYCFLAGS={flags} {steady}", f"MYLDFLAGS={linking}"]
    if "clang" in compiler and "-flto" in flags:
        # Its library: without this GNU's ar does not know what is in clang's objects, with Karst or without.
        plugin = Path(shutil.which(plain)).resolve().parent.parent / "lib/LLVMgold.so"
        words += [f"AR=ar --plugin={plugin} rcsu", "RANLIB=true"]
    return words


def run_lua():
    return ["src/lua", HERE / "workload.lua"]


def build_zstd(source, compiler, plain, flags, linking):
    for name in ("programs/zstd", "programs/obj/cell/zstd", "out.zst"):
        (source / name).unlink(missing_ok=True)
    return ["make", "-C", "programs", "zstd", f"CC={compiler}", f"CFLAGS={flags}", f"LDFLAGS={linking}", "HAVE_LZMA=0",
            "HAVE_LZ4=0", "HAVE_ZLIB=0", "HAVE_THREAD=0", "BUILD_DIR=obj/cell"]


def run_zstd():
    return ["programs/zstd", "-q", "-f", "-3", "lib/compress/zstd_compress.c", "-o", "out.zst"]


@dataclass
class Program:
    package: str
    folder: str
    build: Callable
    run: Callable  # in the directory of the sources: to Lua the length of a path is a different number of calls


PROGRAMS = {"lua": Program("lua5.4", "lua-source", build_lua, run_lua),
            "zstd": Program("libzstd", "libzstd", build_zstd, run_zstd)}


def cells(methods, compilers):
    """(compiler, method, LTO, PIE), each built once, to be linked by each linker."""
    for compiler in compilers:
        wrapper = COMPILERS[compiler]
        for method in METHODS[wrapper]:
            if method not in methods:
                continue
            for lto in ("", "-flto", "-flto=thin") if wrapper == "karst-clang" else ("", "-flto"):
                for pie in PIE:
                    yield compiler, method, lto, pie


class Matrix:
    def __init__(self, name, options):
        self.program = PROGRAMS[name]
        self.name = name
        self.bin = options.karst.resolve()
        self.directory = options.work.resolve() / f"matrix-{name}"
        self.log = options.work.resolve() / f"matrix-{name}.log"
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        self.log.write_text("")
        self.original = debian_source(self.program.package, options.third_party.resolve(), self.program.folder)
        self.expected = {}
        self.lock = threading.Lock()  # of what follows, the log and the expectations
        self.good = self.bad = 0
        self.missing = []

    def command(self, words, cwd, env=None):
        words = [str(w) for w in words]
        environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", **(env or {})}
        for variable in ("KARST_OPTIONS", "LD_PRELOAD", "MAKEFLAGS"):
            environment.pop(variable, None)
        done = subprocess.run(words, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")
        with self.lock, open(self.log, "a") as log:
            log.write(f"$ {' '.join(words)}\n{done.stdout if len(done.stdout) < 100_000 else ''}")
        if done.returncode != 0:
            raise CellError(f"{' '.join(words)[:200]}: status {done.returncode}, see {self.log}")
        return done.stdout

    def counts(self, source):
        trace = source / "cell.karst"
        self.command([self.bin / "karst", "run", "--no-patch", "--memory", "2G", "--no-source", "--sched", "off", "-o", trace, "--",
                      *self.program.run()], source)
        info = json.loads(self.command([self.bin / "karst", "info", "--format", "json", trace], source))
        if info["problems"] or info["overwritten_events"] or info["lost_events"]:
            raise CellError(f"the trace is not whole: {info['problems']}")
        report = json.loads(self.command([self.bin / "karst", "report", "--format", "json", trace], source))
        counts = {}
        for function in report["functions"]:
            name = LTO_SUFFIX.sub("", function["function"])
            counts[name] = counts.get(name, 0) + function["calls"]
        return counts

    def examine(self, method, source):
        binary = self.program.run()[0]
        dynamic = self.command(["readelf", "-dW", binary], source)
        if "TEXTREL" in dynamic:
            raise CellError("DT_TEXTREL")
        if any("GNU_STACK" in line and "RWE" in line
               for line in self.command(["readelf", "-lW", binary], source).splitlines()):
            raise CellError("an executable stack")
        counts = self.counts(source)
        with self.lock:
            expected = self.expected.setdefault(method, counts)
        wrong = sorted(n for n in {*counts, *expected} if counts.get(n, 0) != expected.get(n, 0))
        if wrong:
            raise CellError(f"{len(wrong)} functions differ: " + ", ".join(
                f"{n} {counts.get(n, 0)} for {expected.get(n, 0)}" for n in wrong[:5]))

    def build_and_examine(self, build, linkers):
        """One build, linked by each linker."""
        compiler, method, lto, pie = build
        source = self.directory / "-".join(filter(None, (compiler, method, lto.strip("-").replace("=", "-"), pie)))
        shutil.copytree(self.original, source, symlinks=True)
        for linker in linkers:
            if linker == "lld" and lto and compiler.startswith("gcc"):
                continue  # lld does not know gcc's LTO objects, with Karst or without
            common = f"-O0 -g1 --karst-method={method} {lto}"
            linking = f"{common} -fuse-ld={linker} {PIE[pie][1]}"
            wrong = None
            try:
                words = self.program.build(source, COMPILERS[compiler], compiler, f"{common} {PIE[pie][0]}", linking)
                self.command(words, source, {"KARST_CC": compiler})
                self.examine(method, source)
            except (CellError, OSError) as error:
                wrong = error
            with self.lock:
                self.good += wrong is None
                self.bad += wrong is not None
                if wrong is not None:
                    print(f"{self.name}: {' '.join(filter(None, (compiler, method, linker, lto, pie)))}: {wrong}", flush=True)
        shutil.rmtree(source, ignore_errors=True)

    def run(self, methods, compilers, linkers, jobs):
        """Prints the cells that do not hold, and what there was."""
        begin = time.time()
        builds = []
        for build in cells(methods, compilers):
            if shutil.which(build[0]) is not None:
                builds.append(build)
            elif f"{build[0]} is not installed" not in self.missing:
                self.missing.append(f"{build[0]} is not installed")
        with ThreadPoolExecutor(jobs) as pool:
            for done in [pool.submit(self.build_and_examine, build, linkers) for build in builds]:
                done.result()
        seen = ", ".join(f"{method}: {len(counts)} functions, {sum(counts.values()):,} calls"
                         for method, counts in sorted(self.expected.items()))
        print("; ".join([f"{self.name}: {self.good} of {self.good + self.bad} builds have the same calls of each function", seen,
                         *self.missing, f"{time.time() - begin:.0f} s"]), flush=True)
        return self.good != 0 and self.bad == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROGRAMS))
    parser.add_argument("--karst", type=Path, default=ROOT / "build/bin", help="directory of karst and its wrappers")
    parser.add_argument("--work", type=Path, default=ROOT / "build/programs")
    parser.add_argument("--third-party", type=Path, default=ROOT / "build/third_party")
    parser.add_argument("--method", action="append", help="this one alone; may be repeated")
    parser.add_argument("--compiler", action="append", choices=list(COMPILERS), help="this one alone; may be repeated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="builds at a time")
    parser.add_argument("--linker", action="append", choices=LINKERS, help="this one alone; may be repeated")
    options = parser.parse_args()
    failed = False
    for name in options.names or PROGRAMS:
        if name not in PROGRAMS:
            parser.error(f"there is no program {name}; there are: {', '.join(PROGRAMS)}")
        try:
            matrix = Matrix(name, options)
        except SourceError as error:
            print(f"{name}: {error}", flush=True)
            failed = True
            continue
        if not matrix.run(options.method or METHODS["karst-clang"], options.compiler or COMPILERS, options.linker or LINKERS,
                          max(1, options.jobs)):
            failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
