"""Keeping moments: snapshots of 256 MiB by the process itself, and what an armed trigger costs that is never hit."""

import os

import measure
from measure import FIXTURES, ROOT, WORK, BenchError, Row, karst_tool, median, run_child

SNAPSHOT_TARGET = 2.0  # GB/s
TRIGGER_TARGET = 1.01


def bench_moments(rounds, scratch, notes):
    source = FIXTURES / "moments.cc"
    program = measure.compile_program(
        WORK / "moments" / "karst", [karst_tool("karst-g++"), "-std=c++20", "-O2", "-I", ROOT / "include", source],
        [source, ROOT / "include" / "karst" / "karst.h"])
    library = str(karst_tool("libkarst.so"))
    output = run_child([program, "snapshots", max(rounds, 5), scratch],
                       env={"LD_PRELOAD": library, "KARST_OPTIONS": "memory=256M"}).output
    samples = [list(map(int, line.split())) for line in output.splitlines()]
    if not samples:
        raise BenchError(f"no result in the output: {output!r}")
    speed = [median([s[0] / s[column] for s in samples]) for column in (1, 2, 3)]
    group = "a snapshot of 256 MiB by the process itself"
    rows = [
        Row(group, "into memory", speed[0], "GB/s", target=f">= {SNAPSHOT_TARGET:g} GB/s",
            met=speed[0] >= SNAPSHOT_TARGET),
        Row(group, "from there to a file", speed[1], "GB/s"),
        Row(group, "straight to a file", speed[2], "GB/s"),
    ]
    without, armed = [], []
    karst = karst_tool("karst")
    refused = ""
    for _ in range(rounds):
        for samples, options in ((without, []), (armed, ["--trigger", "never_called"])):
            done = run_child([karst, "run", "-o", os.path.join(scratch, "moments.karst"), *options, "--", program, "calls"])
            samples.append(float(done.output))
            if options and "no trigger can be set" in done.errors:
                refused = done.errors
    if refused:
        notes.append("an armed trigger was not measured: " + measure.shortened(refused))
        return rows
    ratio = median([a / b for a, b in zip(armed, without)])
    group = "a traced call while a trigger is armed that is not hit"
    rows += [Row(group, "without", median(without), "ns"),
             Row(group, "armed", median(armed), "ns", ratio=ratio, ratio_to="without",
                 target=f"<= {TRIGGER_TARGET:g} times", met=ratio <= TRIGGER_TARGET)]
    return rows
