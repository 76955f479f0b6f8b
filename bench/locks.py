"""Waits for locks: what `karst run --system locks` costs, of a mutex that is free, and where each of two threads
waits for the other."""

import re
import shutil

import measure
from calls import parse_ns
from measure import FIXTURES, WORK, Row, interleaved, karst_tool, median, run_child

PAIRS = 20_000_000
TURNS = 10_000
MOST_MORE_NS = 3.0
LOCKS = ("--system", "locks")
ALL = ("--system", "locks=all")
# Others that say where threads wait.
PEERS = {"strace -f -e futex": ("strace", "-f", "-qq", "-e", "trace=futex", "-o", "/dev/null"),
         "ltrace -f": ("ltrace", "-f", "-e", "sem_wait", "-o", "/dev/null")}


def wall_ns(child):
    return float(re.search(r"wall_ns_per_pair ([\d.]+)", child.output)[1])


def bench_locks(rounds, scratch, remarks):
    source = FIXTURES / "locks.c"
    program = measure.compile_program(WORK / "locks" / "locks",
                                      [str(karst_tool("karst-gcc")), "-O2", "-g", "-pthread", source],
                                      [source, FIXTURES / "timing.h"])

    def free(*kind):
        return [program, *kind, 1, PAIRS, PAIRS // 10]

    turns = [program, "turns", 2, TURNS, 0]
    variants = {"nothing": lambda: parse_ns(run_child(free("nothing")).output),
                "plain": lambda: parse_ns(run_child(free("lock")).output),
                "traced": lambda: parse_ns(measure.karst_run(scratch, [], free("lock"), 1).output),
                "with waits": lambda: parse_ns(measure.karst_run(scratch, LOCKS, free("lock"), 1).output),
                "with holds": lambda: parse_ns(measure.karst_run(scratch, ALL, free("lock"), 1).output),
                "turns": lambda: wall_ns(run_child(turns)),
                "turns, traced": lambda: wall_ns(measure.karst_run(scratch, [], turns, 1)),
                "turns, with waits": lambda: wall_ns(measure.karst_run(scratch, LOCKS, turns, 1))}
    for name, command in PEERS.items():
        if shutil.which(command[0]) is None:
            remarks.append(f"locks: {command[0]} is not installed")
        else:
            variants[name] = lambda command=command: wall_ns(run_child([*command, *turns]))
    samples, failures = interleaved(variants, rounds, "locks")
    remarks += [f"locks: {name} failed: {why}" for name, why in failures.items()]
    if not {"nothing", "plain", "traced", "with waits", "turns"} <= samples.keys():
        return []
    loop, plain = median(samples["nothing"]), median(samples["plain"])
    rows = [Row("locks", "uncontended mutex lock+unlock", plain - loop, "ns", None, "", "", None)]
    for name, title in (("traced", "traced"), ("with waits", "traced with --system locks"),
                        ("with holds", "traced with --system locks=all")):
        if name not in samples:
            continue
        value = median(samples[name])
        target = f"<= {MOST_MORE_NS} ns more" if name == "with waits" else ""
        met = value - plain <= MOST_MORE_NS if name == "with waits" else None
        rows.append(Row("locks", f"uncontended mutex lock+unlock, {title}", value - loop, "ns",
                        (value - loop) / (plain - loop), "plain", target, met))
    alone = median(samples["turns"])
    rows.append(Row("locks", "two threads take turns by semaphores, a turn", alone, "ns", None, "", "", None))
    for name in ("turns, traced", "turns, with waits", *PEERS):
        if name in samples:
            value = median(samples[name])
            title = name.replace("turns, ", "").replace("with waits", "traced with --system locks")
            rows.append(Row("locks", f"two threads take turns by semaphores, a turn, {title}", value, "ns", value / alone, "plain",
                            "", None))
    return rows
