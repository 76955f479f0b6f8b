"""Slowdown of whole programs: LevelDB under our workload, and the Lua 5.4 interpreter."""

import os
import re
import shutil
import subprocess

import measure
from lua_source import lua_source
from measure import ROOT, WORK, BenchError, Row, interleaved, karst_tool, median, run_child

OFF_RATIO = 1.015
CLANG_PLAIN = "clang, not instrumented"
LEAST_CALLS = 100_000  # a traced run that recorded fewer did not trace the program
# What the interpreter, compiled with all its functions traced, is made to do. The first makes about 40 million C calls,
# one every 4 ns, which is the worst that we know of real programs; the second is the usual recursion.
LUA_SCRIPTS = {
    "library calls": ("""
local s, abs, byte = 0, math.abs, string.byte
local begin = os.clock()
for i = 1, %d do s = s + abs(i) + select("#", i, s) + byte("x") end
print(string.format("seconds %%.6f", os.clock() - begin))
""", 3_000_000, 300_000),
    "recursive fib": ("""
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local begin = os.clock()
fib(%d)
print(string.format("seconds %%.6f", os.clock() - begin))
""", 32, 26),
}
XRAY_FLAGS = ["-fxray-instrument", "-fxray-instruction-threshold=1"]
XRAY_CONFIG = "no_file_flush=true:buffer_size=16777216:buffer_max=8:func_duration_threshold_us=0"


def leveldb_program(name, compiler, *flags):
    out = WORK / "leveldb" / name
    command = [ROOT / "examples/leveldb/build", out, "-O2", "-g", *flags]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False,
                          env={**os.environ, "CXX": str(compiler)})
    if done.returncode != 0:
        raise BenchError(f"cannot build LevelDB with {compiler}:\n{done.stdout}{done.stderr}")
    return out / "leveldb-workload"


def lua_program(name, compiler, *flags):
    source = lua_source()
    files = sorted(path for path in source.glob("*.c") if path.name != "luac.c")
    command = [compiler, "-O2", "-g", "-DLUA_USE_POSIX", *flags, *files, "-lm"]
    return measure.compile_program(WORK / "lua" / name, command, files)


def leveldb_seconds(output):
    """Wall and CPU time."""
    found = re.search(r"^wall ([0-9.]+) ms, cpu ([0-9.]+) ms", output, re.M)
    if not found:
        raise BenchError(f"no times in the workload's output: {output!r}")
    return {"wall time": float(found.group(1)) / 1000, "CPU time": float(found.group(2)) / 1000}


def lua_seconds(output):
    found = re.search(r"^seconds ([0-9.]+)$", output, re.M)
    if not found:
        raise BenchError(f"no time in the script's output: {output!r}")
    return {"CPU time": float(found.group(1))}


def under_karst(program, arguments, parse, scratch, least_calls, *flags):
    return lambda: parse(measure.karst_run(scratch, flags, [program, *arguments], least_calls,
                                           env={"TMPDIR": scratch}).output)


def own_runs(build, compilers, arguments, parse, scratch):
    """One program by gcc and by clang, without Karst and with it; `build` is leveldb_program or lua_program."""
    gcc, clang, karst_gcc, karst_clang = compilers
    plain, traced = build("plain", gcc), build("karst", karst_tool(karst_gcc))
    runs = {"not instrumented": plain_run(plain, arguments, parse, scratch),
            "karst without libkarst": plain_run(traced, arguments, parse, scratch),
            "karst off": under_karst(traced, arguments, parse, scratch, 0, "--off", "--sched", "off"),
            "karst off, states": under_karst(traced, arguments, parse, scratch, 0, "--off"),
            "karst on": under_karst(traced, arguments, parse, scratch, LEAST_CALLS)}
    if shutil.which(clang):
        plain, traced = build("clang-plain", clang), build("karst-clang", karst_tool(karst_clang))
        runs |= {CLANG_PLAIN: plain_run(plain, arguments, parse, scratch),
                 "karst-clang off": under_karst(traced, arguments, parse, scratch, 0, "--off", "--sched", "off")}
    return runs


def uftrace_run(program, arguments, parse, scratch):
    def run():
        data = f"{scratch}/uftrace.data"
        command = ["uftrace", "record", "--no-libcall", "-d", data, program, *arguments]
        try:
            return parse(run_child(command, cwd=scratch, env={"TMPDIR": scratch}).output)
        finally:
            shutil.rmtree(data, ignore_errors=True)

    return run


def plain_run(program, arguments, parse, scratch, **environment):
    return lambda: parse(run_child([program, *arguments], cwd=scratch, env={"TMPDIR": scratch, **environment}).output)


def xray_start_object():
    source = measure.FIXTURES / "xray_start.cc"
    return measure.compile_program(WORK / "xray_start.o", ["clang++-14", "-O2", *XRAY_FLAGS, "-c", source], [source])


def peer_runs(build, compilers, arguments, parse, scratch, notes):
    """The peers' runs of one program; `build` is leveldb_program or lua_program, `compilers` the gcc and the clang."""
    runs = {}
    gcc, clang = compilers

    def add(name, compiler, flags, make_runs):
        try:
            program = build(name, compiler, *flags)
        except BenchError as error:
            notes.append(f"not measured: {name}: {measure.shortened(error)}")
        else:
            runs.update(make_runs(program))

    def plain(program, **environment):
        return plain_run(program, arguments, parse, scratch, **environment)

    if shutil.which("uftrace"):
        add("uftrace-pg", gcc, ["-pg"], lambda program: {
            "uftrace -pg off (gprof)": plain(program),
            "uftrace -pg on": uftrace_run(program, arguments, parse, scratch)})
        add("uftrace-patchable", gcc, ["-fpatchable-function-entry=5"], lambda program: {
            "uftrace patchable off": plain(program)})
    if shutil.which(clang):
        # LLVM's XRay runtime is C++; -Wl so that the start object counts at the link alone.
        add("xray", clang, [*XRAY_FLAGS, f"-Wl,{xray_start_object()}", "-lstdc++"], lambda program: {
            "XRay off": plain(program),
            "XRay FDR on": plain(program, BENCH_XRAY="xray-fdr", BENCH_XRAY_CONFIG=XRAY_CONFIG)})
    return runs


def ratio_rows(group, runs, rounds, notes):
    """One table for each kind of time that the runs return."""
    samples, failures = interleaved(runs, rounds, group)
    notes += [f"{group}: {name} failed: {why}" for name, why in failures.items()]
    rows = []
    for kind in next(iter(samples.values()))[0] if samples else ():
        medians = {name: median([times[kind] for times in values]) for name, values in samples.items()}
        for name, value in medians.items():
            # clang's programs are compared with clang's own plain build
            base = CLANG_PLAIN if name.startswith(("XRay", "karst-clang")) else "not instrumented"
            if base not in medians:
                raise BenchError(f"{group}: {base} did not run: {failures}")
            row = Row(f"{group}: {kind}", name, value, "s", value / medians[base], base)
            # Threads wait for each other and for files: their wall time says little.
            if name in ("karst off", "karst-clang off") and kind == "CPU time":
                row.target, row.met = f"<= {OFF_RATIO:.3f} x", row.ratio <= OFF_RATIO
            rows.append(row)
    return rows


def bench_leveldb(rounds, options, scratch, notes, group, arguments):
    compilers = ("g++", "clang++-14", "karst-g++", "karst-clang++")
    runs = own_runs(leveldb_program, compilers, arguments, leveldb_seconds, scratch)
    if options.peers:
        runs.update(peer_runs(leveldb_program, compilers[:2], arguments, leveldb_seconds, scratch, notes))
    return ratio_rows(group, runs, rounds, notes)


def bench_lua(rounds, options, scratch, notes):
    compilers = ("gcc", "clang-14", "karst-gcc", "karst-clang")
    rows = []
    for title, (text, size, quick_size) in LUA_SCRIPTS.items():
        script = f"{scratch}/{title.replace(' ', '-')}.lua"
        with open(script, "w", encoding="utf-8") as out:
            out.write(text % (quick_size if options.quick else size))
        runs = own_runs(lua_program, compilers, [script], lua_seconds, scratch)
        if options.peers:
            runs.update(peer_runs(lua_program, compilers[:2], [script], lua_seconds, scratch, notes))
        rows += ratio_rows(f"Lua 5.4, {title}", runs, rounds, notes)
    return rows


def bench_programs(rounds, options, scratch, notes):
    batches = "500" if options.quick else "3000"
    rows = bench_leveldb(rounds, options, scratch, notes, "LevelDB, 1 thread", ["--single", "--batches", batches])
    rows += bench_leveldb(rounds, options, scratch, notes, "LevelDB, 4 writers and compaction",
                          ["--threads", "4", "--batches", batches])
    if options.lua:
        rows += bench_lua(rounds, options, scratch, notes)
    else:
        notes.append("Lua 5.4 was not measured: --lua")
    return rows
