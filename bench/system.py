"""Whole programs of which is recorded what they ask of their system, beside others that record the same: LevelDB, SQLite
and a program of many small allocations, all as g++ and gcc build them."""

import pathlib
import re
import shutil

import measure
from budget import ROWS, sqlite, written
from measure import FIXTURES, WORK, BenchError, run_child
from programs import leveldb_program, leveldb_seconds, ratio_rows

KARST = ("--function", "^no function of theirs$", "--memory", "256M")
SYSTEMS = ("memory", "memory=512K", "files", "locks", "locks=all")
# ltrace is not among them: it takes some 160 us for each call (memory, locks), hours for these programs.
PEERS = {"heaptrack": ("heaptrack", "-r", "-o", "{scratch}/heaptrack"),
         "strace -f of files": ("strace", "-f", "-qq", "-e", "trace=%file,%desc", "-o", "/dev/null"),
         "strace -f of futexes": ("strace", "-f", "-qq", "-e", "trace=futex", "-o", "/dev/null")}


def allocations_program():
    source = FIXTURES / "allocations.cc"
    return measure.compile_program(WORK / "allocations" / "allocations", ["g++", "-std=c++17", "-O2", "-g", source],
                                   [source])


def sqlite_seconds(output):
    """Of all statements, as the shell's .timer has them."""
    found = re.findall(r"^Run Time: real ([0-9.]+) user ([0-9.]+) sys ([0-9.]+)$", output, re.M)
    if not found:
        raise BenchError(f"no times in the shell's output: {output!r}")
    wall, user, system = (sum(float(times[i]) for times in found) for i in range(3))
    return {"wall time": wall, "CPU time": user + system}


def workloads(quick, scratch):
    """(title, how to build, arguments, how to read the times)."""
    batches, rounds, rows = ("300", "5", 50_000) if quick else ("3000", "50", 1_000_000)
    sql = written(scratch, "rows.sql", ".timer on\n" + ROWS % rows)
    return [("LevelDB, 4 writers", lambda: leveldb_program("plain", "g++"), ["--threads", "4", "--batches", batches],
             leveldb_seconds),
            ("SQLite, rows into a file", lambda: sqlite("plain", "gcc"), [f"{scratch}/rows.db", f".read {sql}"],
             sqlite_seconds),
            ("many small allocations", allocations_program, [rounds], leveldb_seconds)]


def runs_of(program, arguments, seconds, scratch, remarks):
    env = {"TMPDIR": scratch}

    def fresh():
        for left in pathlib.Path(scratch).glob("rows.db*"):
            left.unlink()

    def alone(*before):
        fresh()
        return seconds(run_child([*before, program, *arguments], cwd=scratch, env=env).output)

    def recorded(system):
        fresh()
        return seconds(measure.karst_run(scratch, [*KARST, "--system", system], [program, *arguments], 0, env=env).output)

    runs = {"not instrumented": alone}
    for system in SYSTEMS:
        runs[f"karst --system {system}"] = lambda system=system: recorded(system)
    for name, words in PEERS.items():
        if shutil.which(words[0]) is None:
            remarks.append(f"system: {words[0]} is not installed")
        else:
            before = [word.format(scratch=scratch) for word in words]
            runs[name] = lambda before=before: alone(*before)
    return runs


def bench_system(rounds, quick, scratch, remarks):
    rows = []
    for title, build, arguments, seconds in workloads(quick, scratch):
        try:
            program = build()
        except BenchError as error:
            remarks.append(f"{title} was not measured: {measure.shortened(error)}")
        else:
            rows += ratio_rows(f"{title}, what it asks of its system", runs_of(program, arguments, seconds, scratch, remarks),
                               rounds, remarks)
    return rows
