"""Recording thread states: what it costs a program that switches all the time, and LevelDB."""

import json
import os
import pathlib
import shutil

import measure
import programs
from measure import FIXTURES, WORK, BenchError, Row, interleaved, karst_tool, median, run_child, shortened

ROUNDS = 5  # at most: two programs in six ways
INSTANCES = pathlib.Path("/sys/kernel/tracing/instances")
INSTANCE = f"bench-{os.getpid()}"


def trace_cmd(out):
    """Its own way of ftrace, with the events that Karst records.

    In an instance (-B), and without the parts for tracing of functions (-d, -k), which some systems forbid to touch
    even to root; then it leaves the instance behind.
    """
    return ["trace-cmd", "record", "-q", "-d", "-k", "-B", INSTANCE, "-F", "-c", "-e", "sched_switch", "-e", "sched_waking",
            "-o", out]


PEERS = {
    "perf sched record": lambda out: ["perf", "sched", "record", "-o", out],
    "trace-cmd record": trace_cmd,
}


def states_of(trace):
    text = run_child([karst_tool("karst"), "info", "--format", "json", trace]).output
    return json.loads(text)["states"]


def under_karst(program, arguments, parse, scratch, backend):
    def run():
        trace = f"{scratch}/sched.karst"
        done = run_child([karst_tool("karst"), "run", "--no-source", "-o", trace, "--sched", backend, program, *arguments],
                         env={"TMPDIR": scratch})
        states = states_of(trace)
        os.remove(trace)
        if states["backend"] != ("none" if backend == "off" else backend):
            raise BenchError(states["note"])
        return {"seconds": parse(done.output), "lost": states["lost_events"], "records": states["records"]}

    return run


def under_peer(make, program, arguments, parse, scratch):
    def run():
        out = f"{scratch}/peer.data"
        try:
            done = run_child([*make(out), program, *arguments], cwd=scratch, env={"TMPDIR": scratch})
            return {"seconds": parse(done.output), "lost": 0, "records": 0}
        finally:
            pathlib.Path(out).unlink(missing_ok=True)
            if (INSTANCES / INSTANCE).is_dir():
                (INSTANCES / INSTANCE).rmdir()

    return run


def compare(group, unit, plain, traced, arguments, parse, rounds, scratch, notes):
    """Karst's rows are relative to Karst without states, the peers' to the program that nobody traces."""
    runs = {
        "not traced": lambda: {"seconds": parse(run_child([plain, *arguments], env={"TMPDIR": scratch}).output)},
        "karst, no states": under_karst(traced, arguments, parse, scratch, "off"),
        "karst, perf events": under_karst(traced, arguments, parse, scratch, "perf"),
        "karst, ftrace": under_karst(traced, arguments, parse, scratch, "ftrace"),
    }
    for name, make in PEERS.items():
        if shutil.which(make("")[0]):
            runs[name] = under_peer(make, plain, arguments, parse, scratch)
        else:
            notes.append(f"{group}: {name} is not installed")
    samples, failures = interleaved(runs, rounds, group)
    notes += [f"{group}: {name} cannot run here: {shortened(why)}" for name, why in failures.items()]
    rows = []
    for name, results in samples.items():
        base = "karst, no states" if name.startswith("karst, ") and name != "karst, no states" else "not traced"
        value = median([r["seconds"] for r in results])
        ratio = median([r["seconds"] / b["seconds"] for r, b in zip(results, samples[base])]) if base in samples else None
        lost = sum(r.get("lost", 0) for r in results)
        note = f"{lost} records lost" if lost else ""
        rows.append(Row(group, name, value, unit, ratio=ratio, ratio_to=base if ratio is not None else "", note=note))
    return rows


def bench_states(rounds, quick, scratch, notes):
    rounds = min(rounds, ROUNDS)
    source = FIXTURES / "ping_pong.cc"
    flags = ["-std=c++20", "-O2", "-pthread", source]
    plain = measure.compile_program(WORK / "sched" / "plain", ["g++", *flags], [source])
    traced = measure.compile_program(WORK / "sched" / "karst", [karst_tool("karst-g++"), *flags], [source])
    count = "10000" if quick else "50000"
    rows = compare("thread states: pipe ping-pong", "ns a round", plain, traced, [count], float, rounds, scratch, notes)

    def seconds(output):
        return programs.leveldb_seconds(output)["wall time"]

    arguments = ["--threads", "4", "--batches", "100" if quick else "600"]
    rows += compare("thread states: LevelDB, 4 writers", "s", programs.leveldb_program("plain", "g++"),
                    programs.leveldb_program("karst", karst_tool("karst-g++")), arguments, seconds, rounds, scratch,
                    notes)
    return rows
