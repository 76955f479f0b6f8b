"""Files as calls: what `karst run --system files` costs a read of one byte, and an open and close, beside others."""

import re
import shutil

import measure
from measure import FIXTURES, WORK, Row, interleaved, karst_tool, median, run_child

READS, OPENS = 1_000_000, 200_000
FEW = 20_000  # for those that stop the program at each call
FILES, TIME = ("--system", "files"), ("--system", "time")
PEERS = {"strace -f": ("strace", "-f", "-qq", "-e", "trace=read,openat,close", "-o", "/dev/null"),
         "ltrace -f": ("ltrace", "-f", "-e", "read+open+close", "-o", "/dev/null")}


def wall_ns(child):
    return float(re.search(r"wall_ns_per_pair ([\d.]+)", child.output)[1])


def bench_files(rounds, scratch, remarks):
    source = FIXTURES / "files.c"
    program = measure.compile_program(WORK / "files" / "files",
                                      [str(karst_tool("karst-gcc")), "-O2", "-g", "-pthread", source],
                                      [source, FIXTURES / "timing.h"])
    works = {"read": ("a read of one byte", READS), "open": ("an open and a close", OPENS)}
    variants = {}
    for work, (_, count) in works.items():
        command = [program, work, count, count // 10]
        few = [program, work, FEW, 0]
        variants[work] = lambda command=command: wall_ns(run_child(command))
        for name, options in (("", ()), (" time", TIME), (" files", FILES)):
            variants[work + " traced" + name] = lambda options=options, command=command: wall_ns(
                measure.karst_run(scratch, options, command, 1))
        for name, peer in PEERS.items():
            if shutil.which(peer[0]) is not None:
                variants[f"{work} {name}"] = lambda peer=peer, few=few: wall_ns(run_child([*peer, *few]))
    remarks += [f"files: {peer[0]} is not installed" for peer in PEERS.values() if shutil.which(peer[0]) is None]
    samples, failures = interleaved(variants, rounds, "files")
    remarks += [f"files: {name} failed: {why}" for name, why in failures.items()]
    rows = []
    for work, (title, _) in works.items():
        if work not in samples:
            continue
        plain = median(samples[work])
        rows.append(Row("files", title, plain, "ns", None, "", "", None))
        for name, how in ((" traced", "traced"), (" traced time", "traced with --system time"),
                          (" traced files", "traced with --system files"), *((" " + peer, peer) for peer in PEERS)):
            if work + name in samples:
                value = median(samples[work + name])
                rows.append(Row("files", f"{title}, {how}", value, "ns", value / plain, "plain", "", None))
    return rows
