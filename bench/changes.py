"""What `karst diff` finds: 40 changes that are planted in a program, and as many pairs of runs of one binary, with one
run a side and with three. A change is of a kind, and of a size in percent of the time of all the program."""

import json
import os
import subprocess

import measure
from measure import FIXTURES, WORK, BenchError, Row, karst_tool, progress

SIZES = (2, 10, 30, 100, 200)
RUNS = 3
LEAST_FIRST, MOST_FALSE = 36, 2
# By kind: the function that the change is in, and whether its number of calls changes.
KINDS = {"calls": ("leaf", True), "slower": ("parse", False), "new": ("added", True), "gone": ("added", True),
         "moved": ("call_leaves", True), "lock": ("guarded", False), "io": ("save", False),
         "allocation": ("fill", False)}
SWAPPED = {"gone": "new"}  # the same programs, the other way round


def build(*flags):
    source = FIXTURES / "changes.cc"
    name = "changes" + "".join(flag.replace("-D", "-").replace("=", "") for flag in flags)
    return measure.compile_program(WORK / "changes" / name, [str(karst_tool("karst-g++")), "-O2", "-g", "-pthread", *flags, source],
                                   [source])


def pair_of(kind, size):
    base = {"moved": ["-DBASE_MOVED", f"-DSIZE={size}"], "lock": ["-DKIND_LOCK"]}
    sides = [build(*base.get(kind, [])),
             build(f"-DKIND_{SWAPPED.get(kind, kind).upper()}", f"-DSIZE={size}")]
    return sides[::-1] if kind in SWAPPED else sides


def record(scratch, pair):
    """Runs of both sides, in turns."""
    sides = [], []
    for run in range(RUNS):
        for side, program in enumerate(pair):
            trace = os.path.join(scratch, f"{side}-{run}.karst")
            measure.run_child([karst_tool("karst"), "run", "--no-source", "-o", trace, program])
            sides[side].append(trace)
    return sides


def compare(sides, runs):
    """The answer, and whether it fails."""
    command = [karst_tool("karst"), "diff", "--json", "--fail-over", "5%", *sides[0][:runs], "--with", *sides[1][:runs]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode not in (0, 3):
        raise BenchError(f"karst diff: {done.stderr}")
    return json.loads(done.stdout), done.returncode == 3


def named(finding):
    return finding["function"].split("::")[-1].split("(")[0]


def alarms_of(answer):
    """Functions that are said to differ in time, and how."""
    return [f"{named(f)} {key}" for f in answer["compared_functions"] for key in ("changed", "self_changed") if f[key]]


def place_of(answer, kind):
    """Of the planted change among the findings, from 1 on; 0: it is none."""
    function = KINDS[kind][0]
    return next((at for at, f in enumerate(answer["findings"], 1) if named(f) == function), 0)


def bench_changes(quick, scratch, remarks):
    counts, first, failing, alarms, planted = 0, {1: 0, RUNS: 0}, {1: 0, RUNS: 0}, {1: 0, RUNS: 0}, 0
    for kind, (function, counted) in KINDS.items():
        for size in SIZES[::4] if quick else SIZES:
            progress(f"changes: {kind} of {size}%")
            pair = pair_of(kind, size)
            sides = record(scratch, pair)
            planted += 1
            for runs in first:
                answer, failed = compare(sides, runs)
                place = place_of(answer, kind)
                first[runs] += place in (1, 2)
                failing[runs] += failed
                counts += counted and any(named(f) == function and f["kind"] == "count" for f in answer["findings"])
                if place not in (1, 2):
                    remarks.append(f"changes: {kind} of {size}% with {runs} a side is number {place}")
            same = record(scratch, [pair[1], pair[1]])
            for runs in first:
                answer, failed = compare(same, runs)
                wrong = alarms_of(answer)
                alarms[runs] += failed or bool(wrong)
                if failed or wrong:
                    remarks.append(f"changes: an alarm at one binary, {kind} of {size}%, {runs} a side: {', '.join(wrong)}")
    progress("")
    counted = 2 * planted * sum(c for _, c in KINDS.values()) // len(KINDS)
    rows = [Row("changes", f"changed counts that are told, of {counted}", counts, "", None, "", "all", counts == counted)]
    for runs in first:
        rows += [Row("changes", f"first or second of {planted}, {runs} a side", first[runs], "", None, "",
                     f">= {LEAST_FIRST}", quick or first[runs] >= LEAST_FIRST),
                 Row("changes", f"alarms without a change of {planted}, {runs} a side", alarms[runs], "", None, "",
                     f"<= {MOST_FALSE}", alarms[runs] <= MOST_FALSE),
                 Row("changes", f"--fail-over 5% fails of {planted}, {runs} a side", failing[runs], "", None, "", "", None)]
    return rows
