"""Keeping moments: snapshots of 256 MiB by the process itself, what an armed trigger costs that is never hit, what a
watched call costs, and what it takes until a slow one is kept."""

import mmap
import os
import struct
import subprocess

import measure
from measure import FIXTURES, ROOT, WORK, BenchError, Row, karst_tool, median, run_child

SNAPSHOT_TARGET = 2.0  # GB/s
TRIGGER_TARGET = 1.01
WATCH_TARGET_NS, SAVED_TARGET_MS, DELAY_TARGET_US = 5, 1, 100

# Offsets in ArenaHeader (format/arena.h), ArenaWatching and ArenaMoment (format/watch.h).
PID, WATCHING = 84, 288
SLOTS_USED, MOMENTS = 12, 40
MOMENT = struct.Struct("<4I6Q2I")


def saved_ms(pid):
    """How long after its end each kept call's first copy was done, by the arena of the process."""
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        if not os.readlink(path).startswith("/memfd:karst-arena"):
            continue
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as arena:
            word = lambda at, size=8: int.from_bytes(arena[at:at + size], "little")
            if word(PID, 4) != pid:
                continue
            watching = word(WATCHING)
            offset, used = word(watching + MOMENTS), word(watching + SLOTS_USED, 4)
            found = []
            for slot in range(used):
                turn, _, _, _, begin, end, _, _, _, saved, *_ = MOMENT.unpack_from(arena, offset + slot * MOMENT.size)
                if turn != 0 and turn % 2 == 0 and begin != 0:
                    found.append((end - begin, saved - end))
            return found
    raise BenchError(f"process {pid} has no arena")


def run_moments(program, scratch, options):
    """Ticks of each kept call and of its saving, by `karst run`, and the bursts of the other threads in us."""
    child = subprocess.Popen([karst_tool("karst"), "run", "-o", os.path.join(scratch, "watch.karst"), *options, "--", program,
                              "moments"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pid = int(child.stdout.readline())
    bursts = tuple(map(float, child.stdout.readline().split()))
    kept = saved_ms(pid) if options else []
    _, errors = child.communicate("")
    if child.returncode != 0 or len(bursts) != 2:
        raise BenchError(f"{program} under karst run ended with {child.returncode}:\n{errors}")
    return kept, bursts


def bench_watch(rounds, scratch):
    source = FIXTURES / "watch.cc"
    program = measure.compile_program(
        WORK / "moments" / "watch", [karst_tool("karst-g++"), "-std=c++20", "-O2", "-pthread", "-I", ROOT / "include", source],
        [source, ROOT / "include" / "karst" / "karst.h"])
    karst = karst_tool("karst")
    traced, watched = [], []
    for _ in range(max(rounds, 3)):
        for samples, options in ((traced, []), (watched, ["--over", "^called:1s"])):
            done = run_child([karst, "run", "-o", os.path.join(scratch, "watch.karst"), *options, "--", program, "calls"])
            samples.append(float(done.output))
    more = median([a - b for a, b in zip(watched, traced)])
    group = "a call that is watched (--over) and not slow"
    rows = [Row(group, "traced", median(traced), "ns"),
            Row(group, "watched", median(watched), "ns", ratio=median([a / b for a, b in zip(watched, traced)]),
                ratio_to="traced"),
            Row(group, "more", more, "ns", target=f"<= {WATCH_TARGET_NS} ns", met=more <= WATCH_TARGET_NS)]
    saved, without, during = [], [], []
    for _ in range(max(rounds, 3)):
        without.append(run_moments(program, scratch, [])[1])
        kept, bursts = run_moments(program, scratch, ["--slowest", "^slow_call:50"])
        during.append(bursts)
        # The calls kept took 1.15 to 1.2 ms, which gives the length of a tick.
        tick_ms = 1.175 / median([took for took, _ in kept])
        saved += [ticks * tick_ms for _, ticks in kept]
    group = "calls of 1 ms in a program of 8 threads are kept"
    typical, longest = median(saved), max(saved)
    rows += [Row(group, "saved after its end", typical, "ms", target=f"< {SAVED_TARGET_MS} ms", met=typical < SAVED_TARGET_MS),
             Row(group, "the longest of all", longest, "ms")]
    for column, name in ((0, "other threads' 600 calls, the longest of 999 in 1000"), (1, "the longest of all such")):
        a, b = median([s[column] for s in without]), median([s[column] for s in during])
        judged = {"target": f"<= {DELAY_TARGET_US} us more", "met": b - a <= DELAY_TARGET_US} if column == 0 else {}
        rows += [Row(group, name + ", nothing kept", a, "us"), Row(group, name, b, "us", **judged)]
    return rows



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
    speed = [median([s[0] / s[column] for s in samples]) for column in (1, 2, 3, 4)]
    group = "a snapshot of 256 MiB by the process itself"
    rows = [
        Row(group, "into memory", speed[0], "GB/s", target=f">= {SNAPSHOT_TARGET:g} GB/s",
            met=speed[0] >= SNAPSHOT_TARGET),
        Row(group, "from there to a file", speed[1], "GB/s"),
        Row(group, "straight to a new file", speed[2], "GB/s", target=f">= {SNAPSHOT_TARGET:g} GB/s",
            met=speed[2] >= SNAPSHOT_TARGET),
        Row(group, "as much memory by plain writes", speed[3], "GB/s"),
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
    rows += bench_watch(rounds, scratch)
    if refused:
        notes.append("an armed trigger was not measured: " + measure.shortened(refused))
        return rows
    ratio = median([a / b for a, b in zip(armed, without)])
    group = "a traced call while a trigger is armed that is not hit"
    rows += [Row(group, "without", median(without), "ns"),
             Row(group, "armed", median(armed), "ns", ratio=ratio, ratio_to="without",
                 target=f"<= {TRIGGER_TARGET:g} times", met=ratio <= TRIGGER_TARGET)]
    return rows
