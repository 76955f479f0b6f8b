"""What --budget 5% costs: Lua's fib(32), SQLite inserting a million rows, LevelDB; and that what it leaves is whole."""

import json
import os
import re
import subprocess
import sys

import measure
from measure import ROOT, WORK, BenchError, Row, compile_program, interleaved, karst_tool, median, run_child
from programs import leveldb_program, lua_program
from sqlite_source import sqlite_source

BUDGET = "5%"
TARGET = 1.07
LONG_NS = 100_000
OUT_TARGET_MS = 50  # from a program's first event until what is hot from the start is out
# Wall time of the program alone, its start under libkarst and the patching of its sleds included; the start of
# `karst run` before and the writing of the trace behind it are not the program's.
TIMER = ("import subprocess, sys, time\n"
         "begin = time.perf_counter()\n"
         "status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
         "print(f'wall {time.perf_counter() - begin:.6f}')\n"
         "sys.exit(status)")

FIB = """
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
for _ = 1, %d do fib(%d) end
"""
ROWS = """
CREATE TABLE part(id INTEGER PRIMARY KEY, name TEXT, size REAL, parent INTEGER);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
  INSERT INTO part SELECT i, 'part ' || i, i * 1.5, i / 2 FROM n;
COMMIT;
"""


def sqlite(name, compiler, *flags):
    source = sqlite_source()
    files = [source / "sqlite3.c", source / "shell.c"]
    return compile_program(WORK / "sqlite" / name, [compiler, "-O2", "-g", *flags, "-DSQLITE_OMIT_LOAD_EXTENSION",
                                                    "-I", source, *files, "-lm", "-lpthread"], files)


def written(scratch, name, text):
    path = f"{scratch}/{name}"
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    return path


def workloads(quick, scratch):
    """(title, how to build, arguments, arguments of a run short enough to be traced whole)."""
    batches = ("500", "100") if quick else ("6000", "200")
    fib = [written(scratch, f"fib-{i}.lua", FIB % size) for i, size in enumerate([(2, 27) if quick else (10, 32), (1, 24)])]
    rows = [written(scratch, f"rows-{i}.sql", ROWS % n) for i, n in enumerate([100_000 if quick else 1_000_000, 20_000])]
    return [
        ("Lua 5.4, fib(32)", lua_program, ("gcc", "karst-gcc"), [fib[0]], [fib[1]]),
        ("SQLite, a million rows", sqlite, ("gcc", "karst-gcc"), [":memory:", f".read {rows[0]}"],
         [":memory:", f".read {rows[1]}"]),
        ("LevelDB, 4 writers", leveldb_program, ("g++", "karst-g++"), ["--threads", "4", "--batches", batches[0]],
         ["--threads", "4", "--batches", batches[1]]),
        ("LevelDB, 1 thread", leveldb_program, ("g++", "karst-g++"), ["--single", "--batches", batches[0]],
         ["--single", "--batches", batches[1]]),
    ]


def wall(child):
    found = re.search(r"^wall ([0-9.]+)$", child.output, re.M)
    if not found:
        raise BenchError(f"no time in the output: {child.output!r}")
    return float(found.group(1))


def timed_runs(plain, traced, arguments, scratch):
    env = {"TMPDIR": scratch}
    timer = [sys.executable, "-c", TIMER]

    def under(*flags):
        return lambda: wall(measure.karst_run(scratch, flags, [*timer, traced, *arguments], 0, env=env))

    return {"not instrumented": lambda: wall(run_child([*timer, plain, *arguments], env=env)),
            f"karst --budget {BUDGET}": under("--budget", BUDGET),
            "karst off": under("--off"),
            "the traced build alone": lambda: wall(run_child([*timer, traced, *arguments], env=env))}


def first_out_ms(scratch, traced, arguments):
    """From the first event of a run under the budget until the first functions were out; None when none had to go."""
    trace = f"{scratch}/out.karst"
    try:
        run_child([karst_tool("karst"), "run", "-o", trace, "--no-source", "--budget", BUDGET, traced, *arguments],
                  env={"TMPDIR": scratch})
        info = json.loads(run_child([karst_tool("karst"), "info", "--format", "json", trace]).output)
    finally:
        if os.path.exists(trace):
            os.remove(trace)
    ends = [s["end_ns"] for p in info["processes"] for s in p["switches"]
            if not s["on"] and s["reason"] == "by the budget" and s["end_ns"] is not None]
    return min(ends) / 1e6 if ends else None


def functions_of(scratch, traced, arguments, *flags):
    """The functions of a run in which nothing gave way, by name, as `karst report` tells of them."""
    trace = f"{scratch}/whole.karst"
    ask = [karst_tool("karst")]
    try:
        run_child([*ask, "run", "-o", trace, "--no-source", "--memory", "3G", *flags, traced, *arguments],
                  env={"TMPDIR": scratch})
        report = json.loads(run_child([*ask, "report", "--format", "json", trace]).output)
        info = json.loads(run_child([*ask, "info", "--format", "json", trace]).output)
    finally:
        if os.path.exists(trace):
            os.remove(trace)
    if info["overwritten_events"] or info["lost_events"]:
        raise BenchError(f"{traced}: memory was full")
    return {f["function"]: f for f in report["functions"]}


def compare(title, traced, arguments, same_calls, scratch, notes):
    """One run traced whole, one under the budget. What lasts 100 us in the mean must be in the second as in the first:
    the same number of calls, where a program makes the same ones in each run."""
    whole = functions_of(scratch, traced, arguments)
    some = functions_of(scratch, traced, arguments, "--budget", BUDGET)
    calls = {name: some[name]["calls"] if name in some else 0 for name in whole}
    structure = {name for name, f in whole.items() if f["mean_ns"] >= LONG_NS and f["calls"] > f["open_calls"]}
    wrong = sorted(n for n in structure if calls[n] == 0 or (same_calls and calls[n] != whole[n]["calls"]))
    note = f"{title}, a short run: {len(structure)} functions with calls of 100 us in the mean, {len(wrong)} not whole"
    if same_calls:
        complete = [name for name, f in whole.items() if calls[name] == f["calls"]]
        # What the tracing of all else makes longer is not long without it: judged by what the second run says.
        long = [name for name, f in some.items() if f["max_ns"] >= LONG_NS]
        note += (f"; all calls of {len(complete)} of {len(whole)} functions are there, and of "
                 f"{sum(name in complete for name in long)} of the {len(long)} that have any call over 100 us")
    notes.append(note + (f": {', '.join(wrong)}" if wrong else ""))
    return not wrong


def bench_budget(rounds, quick, scratch, notes):
    rows = []
    for title, build, compilers, arguments, short in workloads(quick, scratch):
        plain = build("plain", compilers[0])
        traced = build("karst", karst_tool(compilers[1]))
        samples, failures = interleaved(timed_runs(plain, traced, arguments, scratch), rounds, title)
        notes += [f"{title}: {name} failed: {why}" for name, why in failures.items()]
        base = median(samples["not instrumented"]) if "not instrumented" in samples else None
        for name, values in samples.items():
            # Of pairs: the runs of one round share the machine's mood.
            pairs = [value / other for value, other in zip(values, samples.get("not instrumented", []))]
            row = Row(f"Budget: {title}", name, median(values), "s", median(pairs) if pairs else None, "not instrumented")
            if name.startswith("karst --budget") and base is not None:
                row.target, row.met = f"<= {TARGET:.2f} x", row.ratio <= TARGET
            rows.append(row)
        out = [ms for ms in (first_out_ms(scratch, traced, arguments) for _ in range(min(rounds, 3))) if ms is not None]
        if out:
            rows.append(Row(f"Budget: {title}", "the first functions are out", median(out), "ms",
                            target=f"< {OUT_TARGET_MS} ms", met=median(out) < OUT_TARGET_MS,
                            note=f"the longest of {len(out)} runs: {max(out):.1f} ms"))
        if not compare(title, traced, short, not title.startswith("LevelDB"), scratch, notes):
            rows.append(Row(f"Budget: {title}", "what was never left out", 0, "whole", None, "", "whole", False))
    return rows
