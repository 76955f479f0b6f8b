#!/usr/bin/env python3
"""Measures Karst, and its peers when asked, on this machine. docs/speed/rows.md says what each row means."""

import argparse
import dataclasses
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import answers  # noqa: E402
import budget  # noqa: E402
import calls  # noqa: E402
import changes  # noqa: E402
import corrected  # noqa: E402
import files  # noqa: E402
import imports  # noqa: E402
import packed  # noqa: E402
import live  # noqa: E402
import locks  # noqa: E402
import memory  # noqa: E402
import moments  # noqa: E402
import notes as program_notes  # noqa: E402
import programs  # noqa: E402
import python  # noqa: E402
import query  # noqa: E402
import start  # noqa: E402
import startup  # noqa: E402
import sizes  # noqa: E402
import states  # noqa: E402
import sampling  # noqa: E402
import system  # noqa: E402
import traces  # noqa: E402
import unmodified  # noqa: E402
import variants  # noqa: E402
import viewer  # noqa: E402
import usage  # noqa: E402
import ways_out  # noqa: E402
import wrapper_cost  # noqa: E402
from measure import WORK, BenchError, Row, scratch_directory  # noqa: E402

SECTIONS = ("calls", "variants", "unmodified", "ways_out", "notes", "locks", "memory", "files", "system", "sampling",
            "python", "usage", "corrected", "start", "startup", "live", "moments", "budget", "programs", "sched",
            "traces", "packed", "answers", "imports", "query", "changes", "wrappers", "sizes", "viewer")


def parse_arguments():
    parser = argparse.ArgumentParser(prog="script/bench", description=__doc__)
    parser.add_argument("--peers", action="store_true", help="measure uftrace and clang's XRay beside Karst")
    parser.add_argument("--lua", action="store_true", help="measure Lua 5.4 too; fetches its source from Debian once")
    parser.add_argument("--json", metavar="FILE", help="write the results as JSON; - is standard output, without table")
    parser.add_argument("--quick", action="store_true", help="2 rounds, small traces: no measurement")
    parser.add_argument("--rounds", type=int, default=6, help="interleaved rounds; medians are shown (default 6)")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="only this section; may be repeated")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("argument --rounds: 1 or more")
    return options


def machine():
    """What the figures depend on; no names of hosts or users."""
    cpu = "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    compiler = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=False).stdout.strip()
    return {"cpu": cpu, "cpus": os.cpu_count(), "kernel": platform.release(), "gcc": compiler}


def verdict(row: Row):
    if row.met is None:
        return ""
    return f"{row.target}: {'ok' if row.met else 'MISSED'}"


def print_table(rows, notes, host):
    print(f"{host['cpu']}, {host['cpus']} CPUs, Linux {host['kernel']}, gcc {host['gcc']}")
    group = None
    for row in rows:
        if row.group != group:
            group = row.group
            print(f"\n{group}")
        number = f"{row.value:,.2f}" if row.value < 1000 else f"{row.value:,.0f}"
        ratio = f"{row.ratio:.2f} x {row.ratio_to}" if row.ratio is not None else ""
        line = f"  {row.name:<28}{number:>12} {row.unit:<12} {ratio:<26}{verdict(row)}"
        print(line.rstrip() + (f"  ({row.note})" if row.note else ""))
    for note in dict.fromkeys(notes):
        print(f"\nnote: {note}")
    judged = [row for row in rows if row.met is not None]
    missed = [row for row in judged if not row.met]
    print(f"\n{len(judged) - len(missed)} of {len(judged)} targets met")


def main():
    options = parse_arguments()
    rounds = 2 if options.quick else options.rounds
    wanted = options.only or SECTIONS
    WORK.mkdir(parents=True, exist_ok=True)
    scratch = scratch_directory()
    rows, notes = [], []
    sections = {
        "calls": lambda: calls.bench_calls(rounds, options.peers, scratch, notes),
        "variants": lambda: variants.bench_variants(rounds, options, scratch, notes),
        "unmodified": lambda: unmodified.bench_unmodified(rounds, options, scratch, notes),
        "ways_out": lambda: ways_out.bench_ways_out(rounds, scratch, notes),
        "notes": lambda: program_notes.bench_notes(rounds, scratch, notes),
        "locks": lambda: locks.bench_locks(rounds, scratch, notes),
        "memory": lambda: memory.bench_memory(rounds, scratch, notes),
        "files": lambda: files.bench_files(rounds, scratch, notes),
        "system": lambda: system.bench_system(rounds, options.quick, scratch, notes),
        "sampling": lambda: sampling.bench_sampling(rounds, options.quick, scratch, notes),
        "python": lambda: python.bench_python(rounds, options.quick, scratch, notes),
        "usage": lambda: usage.bench_usage(rounds, options.quick, scratch),
        "corrected": lambda: corrected.bench_corrected(rounds, scratch, notes),
        "start": lambda: start.bench_start(rounds, scratch, notes),
        "startup": lambda: startup.bench_startup(rounds, scratch, notes),
        "live": lambda: live.bench_live(rounds, notes),
        "moments": lambda: moments.bench_moments(rounds, scratch, notes),
        "programs": lambda: programs.bench_programs(rounds, options, scratch, notes),
        "budget": lambda: budget.bench_budget(rounds, options.quick, scratch, notes),
        "sched": lambda: states.bench_states(rounds, options.quick, scratch, notes),
        "traces": lambda: traces.bench_traces(rounds, options.quick, scratch, notes),
        "answers": lambda: answers.bench_answers(rounds, options, scratch, notes),
        "packed": lambda: packed.bench_packed(rounds, options, scratch, notes),
        "imports": lambda: imports.bench_imports(rounds, options, scratch, notes),
        "query": lambda: query.bench_query(rounds, options, scratch, notes),
        "changes": lambda: changes.bench_changes(options.quick, scratch, notes),
        "wrappers": lambda: wrapper_cost.bench_wrapper_cost(rounds, scratch, notes),
        "sizes": lambda: sizes.bench_sizes(scratch, notes),
        "viewer": lambda: viewer.bench_viewer(options.quick, scratch, notes),
    }
    failed = False
    try:
        for section in (name for name in SECTIONS if name in wanted):
            try:
                rows += sections[section]()
            except BenchError as error:  # the other sections are worth having
                failed = True
                notes.append(f"{section} was not measured: {error}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    host = machine()
    if options.json != "-":
        print_table(rows, notes, host)
    if options.json:
        text = json.dumps({"machine": host, "rounds": rounds, "notes": notes,
                           "rows": [dataclasses.asdict(row) for row in rows]}, indent=2) + "\n"
        if options.json == "-":
            sys.stdout.write(text)
        else:
            pathlib.Path(options.json).write_text(text)
    if failed:
        return 2
    return 1 if any(row.met is False for row in rows) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"script/bench: {error}", file=sys.stderr)
        sys.exit(2)
