"""How fast the commands that answer questions are: on synthetic traces; and peers, on traces of one program."""

import os
import shutil
import struct

import calls
import measure
from measure import BenchError, Row, interleaved, karst_tool, median, run_child

RATE_TARGET = 50e6  # events a second, whole command
EXPLAIN_TARGET_SECONDS, DIFF_TARGET_SECONDS = 2, 4  # on 10 million calls, and on two such traces
EVENTS = 20_000_000  # 10 million calls
PEER_PAIRS = 1_000_000

COMMANDS = ("slow", "explain", "stacks", "flame", "graph", "hist", "report", "calls", "diff", "requests")


def make_traces(scratch, events):
    """Two traces of one program, and one with requests."""
    traces = {}
    for name, shape, seed in (("a", "fib", 1), ("b", "fib", 2), ("requests", "requests", 1)):
        traces[name] = f"{scratch}/answers-{name}.karst"
        measure.progress(f"answers: making {traces[name]}")
        run_child([karst_tool("karst-trace-bench"), "make", traces[name], events, 1, shape, seed])
    measure.progress("")
    return traces


def words_of(command, traces):
    if command == "requests":
        return [command, traces["requests"]]
    return [command, traces["a"]] + ([traces["b"]] if command == "diff" else [])


def judge(command, events, seconds, quick):
    """(target text, whether it was met)."""
    if quick:  # the promises are about 10 million calls
        return "", None
    limit = {"explain": EXPLAIN_TARGET_SECONDS, "diff": DIFF_TARGET_SECONDS}.get(command)
    if limit is not None:
        return f"< {limit} s", seconds < limit
    return f">= {RATE_TARGET / 1e6:g} M", events / seconds >= RATE_TARGET


def run_to_null(command):
    """CPU seconds of a whole command; what it prints goes nowhere, as it does in a pipe that takes all."""
    return run_child(["sh", "-c", 'exec "$@" >/dev/null', "sh", *command]).cpu_seconds


def karst_rows(rounds, quick, scratch, notes):
    events = EVENTS // 10 if quick else EVENTS
    traces = make_traces(scratch, events)
    runs = {command: (lambda words=words_of(command, traces): run_to_null([karst_tool("karst"), *words]))
            for command in COMMANDS}
    samples, failures = interleaved(runs, rounds, "answers")
    for path in traces.values():
        os.remove(path)
    notes += [f"answers: karst {name} failed: {why}" for name, why in failures.items()]
    rows = []
    for command, values in samples.items():
        seconds = median(values)
        looked_at = events * (2 if command == "diff" else 1)
        target, met = judge(command, looked_at, seconds, quick)
        rows.append(Row(f"answers: {events / 2e6:g} M calls of one thread, whole command, CPU time", f"karst {command}",
                        looked_at / seconds / 1e6, "M events/s", target=target, met=met, note=f"{seconds:.2f} s"))
    return rows


def uftrace_events(data):
    """Records are 16 bytes; arguments are not recorded."""
    return sum(os.path.getsize(entry) for entry in os.scandir(data) if entry.name.endswith(".dat")
               and entry.name.split(".")[0].isdigit()) // 16


def uftrace_runs(scratch):
    built = calls.program("uftrace--pg", "gcc", ["-pg"])
    data = f"{scratch}/answers-uftrace"
    run_child(["uftrace", "record", "--no-libcall", "-d", data, built, *calls.arguments("fib", 1, PEER_PAIRS, 1)],
              cwd=scratch)
    count = uftrace_events(data)
    return {f"uftrace {command}": (lambda command=command: run_to_null(["uftrace", command, "-d", data]), count)
            for command in ("report", "graph", "dump")}


def xray_log(scratch, built, number):
    """One run's log in basic mode, which all of llvm-xray's commands read."""
    directory = f"{scratch}/answers-xray-{number}"
    os.makedirs(directory)
    environment = {"BENCH_XRAY": "xray-basic", "XRAY_OPTIONS": "xray_logfile_base=log.",
                   "BENCH_XRAY_CONFIG": "func_duration_threshold_us=0"}
    run_child([built, *calls.arguments("fib", 1, PEER_PAIRS, 1)], env=environment, cwd=directory)
    logs = sorted((entry for entry in os.scandir(directory) if entry.name.startswith("log.")),
                  key=lambda entry: entry.stat().st_size)
    if not logs:
        raise BenchError("XRay wrote no log")
    return logs[-1].path


def xray_events(log):
    """A head of 32 bytes, then records of 32."""
    with open(log, "rb") as file:
        version, kind = struct.unpack("<HH", file.read(4))
    if kind != 0:
        raise BenchError(f"{log} is not of XRay's basic mode: version {version}, type {kind}")
    return os.path.getsize(log) // 32 - 1


def xray_runs(scratch):
    built = calls.xray_program()
    first, second = xray_log(scratch, built, 1), xray_log(scratch, built, 2)
    count = xray_events(first)
    mapped = ["-m", built]
    return {
        "llvm-xray account": (lambda: run_to_null(["llvm-xray-14", "account", first, *mapped, "-k"]), count),
        "llvm-xray graph-diff": (lambda: run_to_null(
            ["llvm-xray-14", "graph-diff", first, second, "-m1", built, "-m2", built]), count + xray_events(second)),
    }


def peer_rows(rounds, scratch, notes):
    runs = {}
    for needed, make in (("uftrace", uftrace_runs), ("llvm-xray-14", xray_runs)):
        if shutil.which(needed) is None:
            notes.append(f"answers: {needed} is not installed: script/setup bench installs the peers")
            continue
        try:
            runs.update(make(scratch))
        except BenchError as error:
            notes.append(f"answers: {needed} was not measured: {measure.shortened(error)}")
    samples, failures = interleaved({name: run for name, (run, _) in runs.items()}, rounds, "answers: peers")
    notes += [f"answers: {name} failed: {why}" for name, why in failures.items()]
    group = f"answers: peers, {PEER_PAIRS / 1e6:g} M calls of fib, whole command, CPU time"
    return [Row(group, name, runs[name][1] / median(values) / 1e6, "M events/s",
                note=f"{runs[name][1] / 1e6:.1f} M events of its own, {median(values):.2f} s")
            for name, values in samples.items()]


def bench_answers(rounds, options, scratch, notes):
    rounds = min(rounds, 3)
    rows = karst_rows(rounds, options.quick, scratch, notes)
    if options.peers:
        rows += peer_rows(rounds, scratch, notes)
    return rows
