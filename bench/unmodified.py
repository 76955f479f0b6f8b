"""Programs that nobody rebuilt: what a call costs that is patched, patching itself, stops to attach, and the budget."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import calls
import measure
from measure import ROOT, BenchError, Row, interleaved, karst_tool, median, run_child
from sqlite_source import sqlite_source

SLED_RATIO = 1.6            # of a sled's pair
START_TARGET_S = 0.5        # for so many functions:
START_FUNCTIONS = 20_000
STOP_TARGET_MS = 5
BUDGET_TARGET = 1.07        # as for programs with sleds (budget.py)
WORKLOADS = (("fib", 1), ("fib", 2))  # a leaf of two instructions has no room for a jump
UNTOUCHED_NS = 0.15         # above not instrumented
ALL = ("--functions", "^(fib|leaf)$", "--min-instructions", "1", "--budget", "off")


def pairs_of(command, pairs, scratch, without=None):
    """Nanoseconds of wall time a pair, of a program that something stops from outside: its own clock would not count that.
    `without`: what the same takes with no pair traced."""
    base = run_child(without, cwd=scratch).seconds if without else 0
    return (run_child(command, cwd=scratch).seconds - base) / pairs * 1e9


def gdb_run(plain, pairs, places):
    arguments = ["gdb", "-q", "-batch", "-nx"]
    for number, place in enumerate(places, 1):
        arguments += ["-ex", f"break {place}", "-ex", f"ignore {number} 1000000000"]
    return [*arguments, "-ex", "run", "--args", plain, "fib", "1", str(pairs), "0"]


def returns_of_fib(plain):
    """Where it returns, for breakpoints there."""
    listing = run_child(["gdb", "-q", "-batch", "-nx", "-ex", "disassemble fib", plain]).output
    offsets = re.findall(r"<\+(\d+)>:\s+ret", listing)
    if not offsets:
        raise BenchError(f"gdb finds no return in fib: {listing!r}")
    return [f"*fib+{offset}" for offset in offsets]


def peer_variants(scratch, notes):
    plain = calls.program("plain-no-pie", "gcc", ["-no-pie", "-fno-pie"])
    variants = {}

    def gdb(pairs=57313):  # one fib(22): fewer are none
        return pairs_of(gdb_run(plain, pairs, ["fib", *returns_of_fib(plain)]), pairs, scratch, gdb_run(plain, pairs, []))

    def uprobes(pairs=573_130):
        try:
            for name, place in (("enter", "fib"), ("leave", "fib%return")):
                run_child(["perf", "probe", "-q", "-x", plain, "--add", f"karst_bench:{name}={place}"])
            command = ["perf", "record", "-q", "-e", "karst_bench:*", "-o", f"{scratch}/perf.data", plain, "fib", "1",
                       str(pairs), "0"]
            return calls.parse_ns(run_child(command, cwd=scratch).output)
        finally:
            subprocess.run(["perf", "probe", "-q", "--del", "karst_bench:*"], capture_output=True, check=False)

    def uftrace(work, threads, *flags):
        data = f"{scratch}/uftrace.data"
        shutil.rmtree(data, ignore_errors=True)
        child = run_child(["uftrace", "record", *flags, "-P", "fib", "--no-libcall", "-d", data, plain,
                           *calls.arguments(work, threads, 1_000_000, 100_000)], cwd=scratch)
        lines = subprocess.run(["uftrace", "report", "-d", data], capture_output=True, text=True, check=False).stdout
        shutil.rmtree(data, ignore_errors=True)
        if not re.search(r"\bfib\b", lines):
            raise BenchError("uftrace -P patched nothing of a program that was not built for it")
        return calls.parse_ns(child.output)

    if shutil.which("gdb"):
        variants["gdb, breakpoints"] = lambda work, threads: gdb()
    if shutil.which("perf") and os.geteuid() == 0:
        variants["uprobes, by perf"] = lambda work, threads: uprobes()
    if shutil.which("uftrace"):
        variants["uftrace -P, not rebuilt"] = uftrace
        variants["uftrace -P with its agent, not rebuilt"] = lambda work, threads: uftrace(work, threads, "--agent")
    for name in ("gdb", "perf", "uftrace"):
        if shutil.which(name) is None:
            notes.append(f"unmodified: {name} is not installed: script/setup bench")
    return variants


def judge_pair(value, sled):
    return f"<= {SLED_RATIO:.1f} x a sled's", value <= SLED_RATIO * sled


def bench_pairs(rounds, peers, scratch, notes):
    own = calls.own_variants(scratch)
    plain = calls.program("plain", "gcc")
    pairs = 5_000_000

    def patched(work, threads):
        command = [plain, *calls.arguments(work, threads, pairs, calls.KARST_WARMUP)]
        return calls.parse_ns(measure.karst_run(scratch, ALL, command,
                                                0.99 * threads * (pairs + calls.KARST_WARMUP)).output)

    def patched_off(work, threads):
        command = [plain, *calls.arguments(work, threads, 40_000_000, 1_000_000)]
        return calls.parse_ns(measure.karst_run(scratch, [*ALL, "--off"], command, 0).output)

    def untouched(work, threads):
        command = [plain, *calls.arguments(work, threads, 40_000_000, 1_000_000)]
        options = ["--function", "^main$", "--min-instructions", "1", "--budget", "off"]
        return calls.parse_ns(measure.karst_run(scratch, options, command, 1).output)

    variants = {name: own[name] for name in ("floor", "not instrumented")}
    variants["a sled, karst on"] = own["karst on"]
    variants["karst on, not rebuilt"] = patched
    variants["karst off, not rebuilt"] = patched_off
    variants["karst on main() alone"] = untouched
    rows = []
    for work, threads in WORKLOADS:
        title = f"{work}, {threads} thread{'s' if threads > 1 else ''}"
        now = dict(variants)
        if peers and threads == 1:
            now.update(peer_variants(scratch, notes))
        runs = {name: (lambda run=run: run(work, threads)) for name, run in now.items()}
        samples, failures = interleaved(runs, rounds, f"unmodified: {title}")
        notes += [f"unmodified, {title}: {name} failed: {why}" for name, why in failures.items()]
        sled = median(samples["a sled, karst on"]) if "a sled, karst on" in samples else None
        plain_ns = median(samples["not instrumented"]) if "not instrumented" in samples else None
        for name, values in samples.items():
            row = Row(f"call pair of a program as it is: {title}", name, median(values), "ns",
                      median(values) / sled if sled else None, "a sled's")
            if name == "karst on, not rebuilt" and sled:
                row.target, row.met = judge_pair(row.value, sled)
            if name == "karst on main() alone" and plain_ns:
                row.target, row.met = f"<= +{UNTOUCHED_NS} ns", row.value <= plain_ns + UNTOUCHED_NS
            rows.append(row)
    return rows


def patched_functions(program):
    """So many functions of the file karst patches, by its own list."""
    out = run_child([karst_tool("karst"), "places", "--min-instructions", "0", program]).output
    found = re.search(r"^(?:.*: )?([\d,]+) of [\d,]+ functions", out, re.M)
    if not found:
        raise BenchError(f"karst places does not say how many functions it patches: {out[:300]!r}")
    return int(found.group(1).replace(",", ""))


def judge_start(added, functions):
    return f"< {START_TARGET_S} s for {START_FUNCTIONS:,}", added * START_FUNCTIONS / functions < START_TARGET_S


def bench_start(rounds, scratch, notes):
    compiler = run_child(["gcc", "-print-prog-name=cc1"]).output.strip()
    source = pathlib.Path(scratch) / "empty.c"
    source.write_text("int x;\n")
    command = [compiler, "-quiet", source, "-o", "/dev/null"]
    functions = patched_functions(compiler)

    def traced(*options):
        return lambda: measure.karst_run(scratch, ["--sched", "off", "--budget", "off", "--min-instructions", "0",
                                                   *options], command, 1).seconds

    runs = {"alone": lambda: run_child(command).seconds, "karst run": traced()}
    samples, failures = interleaved(runs, rounds, "unmodified: start")
    notes += [f"unmodified, start: {name} failed: {why}" for name, why in failures.items()]
    group = f"start and end of gcc's cc1 as it is, {functions:,} functions patched"
    rows = [Row(group, name, median(values), "s") for name, values in samples.items()]
    if not failures:
        added = median(samples["karst run"]) - median(samples["alone"])
        target, met = judge_start(added, functions)
        rows.append(Row(group, "all that karst run adds", added, "s", target=target, met=met))
    return rows


SERVER = """
import ctypes, sys, threading, time
for library in sys.argv[1:]: ctypes.CDLL(library)
def work():
    while True: sum(i * i for i in range(2000))
for _ in range(4): threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
time.sleep(600)
"""


LARGE_LIBRARY = "libLLVM-14.so.1"


def attach_stop_ms(program, *options):
    """The longest time for which threads were stopped while karst attached, as it says itself."""
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as child:
        try:
            if child.stdout.readline() != "ready\n":
                raise BenchError(f"{program[0]} did not start")
            time.sleep(0.2)
            said = run_child([karst_tool("karst"), "attach", *options, child.pid])
            text = said.output + said.errors
            found = re.search(r"threads were stopped (?:once, for|\d+ times, for) ([\d.]+) (ns|us|ms|s)\b", text)
            if not found:
                raise BenchError(f"karst attach does not say how long threads were stopped: {text!r}")
            return float(found.group(1)) * {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}[found.group(2)]
        finally:
            child.send_signal(signal.SIGKILL)


def bench_attach(rounds, notes):
    python = shutil.which("python3", path="/usr/bin:/bin")
    if python is None:
        notes.append("unmodified: Debian's python3 is not installed")
        return []
    runs = {"the longest stop": lambda: attach_stop_ms([python, "-c", SERVER]),
            f"the longest stop, with {LARGE_LIBRARY}": lambda: attach_stop_ms([python, "-c", SERVER, LARGE_LIBRARY],
                                                                             "--library", LARGE_LIBRARY)}
    samples, failures = interleaved(runs, rounds, "unmodified: attach")
    notes += [f"unmodified, attach: {why}" for why in failures.values()]
    return [Row("karst attach to Debian's python3, 4 threads that compute", name, median(values), "ms",
                target=f"<= {STOP_TARGET_MS} ms", met=median(values) <= STOP_TARGET_MS,
                note=f"the longest of {len(values)} rounds: {max(values):.2f} ms") for name, values in samples.items()]


PYTHON_WORK = """
import time
begin = time.perf_counter()
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
fib(%d)
text = " ".join(str(i) for i in range(%d)).split()
text.sort()
print(f"seconds {time.perf_counter() - begin:.6f}")
"""
LUA_WORK = """
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local begin = os.clock()
fib(%d)
print(string.format("seconds %%.6f", os.clock() - begin))
"""
SQL_WORK = """.timer on
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
  SELECT count(*), sum(length('part ' || i)) FROM n;
"""


def written(scratch, name, text):
    path = f"{scratch}/{name}"
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    return path


def stock_programs(quick, scratch):
    """name -> (command, what its own clock says in its output)."""
    size = (24, 100_000, 22, 200_000) if quick else (32, 1_500_000, 35, 8_000_000)
    seconds = r"^seconds ([0-9.]+)$"
    found = {
        "python3": (["/usr/bin/python3", written(scratch, "work.py", PYTHON_WORK % size[:2])], seconds),
        "lua5.4": (["/usr/bin/lua5.4", written(scratch, "work.lua", LUA_WORK % size[2])], seconds),
        "sqlite3": (["/usr/bin/sqlite3", ":memory:", f".read {written(scratch, 'work.sql', SQL_WORK % size[3])}"],
                    r"^Run Time: real ([0-9.]+)"),
        "git": (["/usr/bin/git", "-C", str(ROOT), "log", "--stat", "-n", "20" if quick else "400"],
                r"exit elapsed:([0-9.]+)"),
    }
    source = sqlite_source() / "shell.c"
    run_child(["gcc", "-E", source, "-o", f"{scratch}/work.i"])
    compiler = run_child(["gcc", "-print-prog-name=cc1"]).output.strip()
    # User, system and wall time, then memory.
    found["cc1"] = ([compiler, "-quiet", "-fpreprocessed", "-ftime-report", "-O0", f"{scratch}/work.i", "-o", "/dev/null"],
                    r"^\s*TOTAL\s*:\s*[0-9.]+\s+[0-9.]+\s+([0-9.]+)\s")
    return found


def own_time(child, pattern):
    found = re.search(pattern, child.output + child.errors, re.M)
    if not found:
        raise BenchError(f"no time in the output: {(child.output + child.errors)[-300:]!r}")
    return float(found.group(1))


def bench_budget(rounds, quick, scratch, notes):
    rows = []
    for name, (command, pattern) in stock_programs(quick, scratch).items():
        if not os.access(command[0], os.X_OK):
            notes.append(f"unmodified: Debian's {name} is not installed: script/setup bench")
            continue
        env = {"GIT_TRACE2": "1", "GIT_PAGER": "cat"} if name == "git" else {}
        runs = {"alone": lambda: own_time(run_child(command, env=env), pattern),
                "karst run": lambda: own_time(measure.karst_run(scratch, [], command, 1, env=env), pattern)}
        samples, failures = interleaved(runs, rounds, f"unmodified: {name}")
        notes += [f"unmodified, {name}: {variant} failed: {why}" for variant, why in failures.items()]
        for variant, values in samples.items():
            pairs = [value / other for value, other in zip(values, samples.get("alone", []))]
            row = Row(f"Debian's {name} at karst run's budget of 5%, its own clock", variant, median(values), "s",
                      median(pairs) if pairs else None, "alone")
            if variant == "karst run" and pairs:
                row.target, row.met = f"<= {BUDGET_TARGET:.2f} x", row.ratio <= BUDGET_TARGET
            rows.append(row)
    return rows


def bench_unmodified(rounds, options, scratch, notes):
    rows = bench_pairs(rounds, options.peers, scratch, notes)
    rows += bench_start(rounds, scratch, notes)
    rows += bench_attach(rounds, notes)
    return rows + bench_budget(rounds, options.quick, scratch, notes)
