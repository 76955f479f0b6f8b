"""What other hooks cost and bring: --min-duration, --clock thread, karst run --count; beside uftrace -t and XRay's threshold."""

import os
import re
import shutil

import calls
import measure
import programs
from measure import BenchError, Row, interleaved, karst_tool, median, run_child

THRESHOLD = "5us"
MIN_DURATION_RATIO, MIN_DURATION_HISTORY = 1.25, 10
CLOCK_RATIO, CLOCK_LUA_RATIO = 0.40, 2.6
COUNT_NS, COUNT_TWO_THREADS = 3.0, 1.5


PIN = {"BENCH_PIN": "1"}  # the loops; who else wants a CPU (a clock thread) has those that are left


def traced_pair(scratch, flags, work, threads, pairs, least=0):
    """In the steady state, in which old blocks are recycled: memory is full before the clock is started."""
    traced = calls.program("karst", str(karst_tool("karst-gcc")))
    command = [traced, *calls.arguments(work, threads, pairs, calls.KARST_WARMUP)]
    return calls.parse_ns(measure.karst_run(scratch, flags, command, least, env=PIN).output)


def counted_pair(scratch, work, threads):
    """A run that did not count every call is an error: counting nothing is fast."""
    traced = calls.program("karst", str(karst_tool("karst-gcc")))
    pairs, warmup = 20_000_000, 1_000_000
    out = f"{scratch}/counts.csv"
    child = run_child([karst_tool("karst"), "run", "--count", "--format", "csv", "-o", out, traced,
                       *calls.arguments(work, threads, pairs, warmup)], env=PIN)
    with open(out, encoding="utf-8") as file:
        counted = sum(int(line.rsplit(",", 1)[1]) for line in file.readlines()[1:])
    if counted < threads * (pairs + warmup):
        raise BenchError(f"karst run --count has {counted} calls of {threads * (pairs + warmup)}")
    return calls.parse_ns(child.output)


def pair_rows(rounds, peers, scratch, notes):
    floor = calls.floor_program()
    plain = calls.program("plain", "gcc")
    rows = []
    for work in ("leaf", "fib"):
        for threads in (1, 2):
            runs = {
                "floor": lambda: calls.parse_ns(run_child([floor, threads, 5_000_000, 500_000], env=PIN).output),
                "not instrumented": lambda: calls.parse_ns(
                    run_child([plain, *calls.arguments(work, threads, 40_000_000, 1_000_000)], env=PIN).output),
                "karst on": lambda: traced_pair(scratch, [], work, threads, 5_000_000, threads * 5_000_000),
                f"karst --min-duration {THRESHOLD}": lambda: traced_pair(
                    scratch, ["--min-duration", THRESHOLD], work, threads, 5_000_000),
                "karst --fibers=stack": lambda: traced_pair(
                    scratch, ["--fibers=stack"], work, threads, 5_000_000, threads * 5_000_000),
                "karst run --count": lambda: counted_pair(scratch, work, threads),
            }
            if threads < (os.cpu_count() or 1):
                runs["karst --clock thread"] = lambda: traced_pair(
                    scratch, ["--clock", "thread"], work, threads, 10_000_000, threads * 10_000_000)
            if peers:
                runs.update(peer_pairs(scratch, work, threads))
            title = f"hooks: {work}, {threads} thread{'s' if threads > 1 else ''}"
            samples, failures = interleaved(runs, rounds, title)
            notes += [f"{title}: {name} failed: {why}" for name, why in failures.items()]
            if "floor" not in samples or "not instrumented" not in samples:
                raise BenchError(f"{title}: the floor or the plain program did not run: {failures}")
            rows += judged_pairs(title, {name: median(values) for name, values in samples.items()}, threads, rows)
    return rows


def judged_pairs(title, medians, threads, before):
    floor, plain = medians["floor"], medians["not instrumented"]
    rows = []
    for name, value in medians.items():
        row = Row(title, name, value, "ns", value / floor, "floor")
        if name.startswith("karst --min-duration"):
            row.target, row.met = f"<= {MIN_DURATION_RATIO} x floor", value <= MIN_DURATION_RATIO * floor
        elif name == "karst --clock thread" and threads == 1:
            row.target, row.met = f"<= {CLOCK_RATIO:.2f} x floor", value <= CLOCK_RATIO * floor
        elif name == "karst run --count":
            added = value - plain
            if threads == 1:
                row.target, row.met = f"<= +{COUNT_NS:.0f} ns", added <= COUNT_NS
            else:
                one = [r for r in before if r.group == title.replace("2 threads", "1 thread")]
                alone = {r.name: r.value for r in one}
                base = alone["karst run --count"] - alone["not instrumented"]
                row.target, row.met = f"<= {COUNT_TWO_THREADS} x 1 thread", added <= COUNT_TWO_THREADS * base
            row.note = f"+{added:.2f} ns"
        rows.append(row)
    return rows


def peer_pairs(scratch, work, threads):
    runs = {}
    if shutil.which("uftrace"):
        built = calls.program("uftrace--pg--mfentry", "gcc", ["-pg", "-mfentry"])

        def uftrace(*flags):
            def run():
                data = f"{scratch}/uftrace.data"
                shutil.rmtree(data, ignore_errors=True)
                child = run_child(["uftrace", "record", *flags, "--no-libcall", "-d", data, built,
                                   *calls.arguments(work, threads, 1_000_000, 100_000)], cwd=scratch)
                shutil.rmtree(data, ignore_errors=True)
                return calls.parse_ns(child.output)
            return run

        runs[f"uftrace -t {THRESHOLD}"] = uftrace("-t", THRESHOLD)
        runs["uftrace --agent"] = uftrace("--agent")  # what listens to commands while all is traced
    if shutil.which("clang++-14"):
        flags = ["-fxray-instrument", "-fxray-instruction-threshold=1"]
        start = measure.FIXTURES / "xray_start.cc"
        start_object = measure.compile_program(measure.WORK / "calls" / "xray_start.o",
                                               ["clang++-14", *calls.FLAGS, *flags, "-c", start], [start])
        xray = calls.program("xray", "clang-14", [*flags, start_object, "-lstdc++"])
        config = "no_file_flush=true:buffer_size=16777216:buffer_max=4:func_duration_threshold_us=5"
        runs["XRay FDR, threshold 5 us"] = lambda: calls.parse_ns(run_child(
            [xray, *calls.arguments(work, threads, 1_000_000, 100_000)], cwd=scratch,
            env={"BENCH_XRAY": "xray-fdr", "BENCH_XRAY_CONFIG": config}).output)
    return runs


def history_seconds(scratch, program, arguments, flags):
    """How far the kept history of the busiest thread reaches back, and for how long the program ran, in seconds."""
    trace = f"{scratch}/history.karst"
    tool = karst_tool("karst")
    child = run_child([tool, "run", "--memory", "4M", "--no-source", "-o", trace, *flags, program, *arguments],
                      env={"TMPDIR": scratch})
    info = run_child([tool, "info", "--format", "json", trace]).output
    os.remove(trace)
    spans = [int(span) for span in re.findall(r'"tid":[^}]*?"span_ns":(\d+)', info)]
    if not spans:
        raise BenchError("no thread in LevelDB's trace")
    return max(spans) / 1e9, programs.leveldb_seconds(child.output)["wall time"]


def history_rows(rounds, quick, scratch):
    """The same memory, with and without the short calls. The work is long enough to fill it both times."""
    traced = programs.leveldb_program("karst", karst_tool("karst-g++"))
    arguments = ["--single", "--batches", "3000" if quick else "30000"]
    runs = {"karst on": lambda: history_seconds(scratch, traced, arguments, [])[0],
            f"karst --min-duration {THRESHOLD}": lambda: history_seconds(
                scratch, traced, arguments, ["--min-duration", THRESHOLD])[0]}
    samples, failures = interleaved(runs, min(rounds, 3), "hooks: history")
    if failures:
        raise BenchError(f"history: {failures}")
    base = median(samples["karst on"])
    rows = []
    for name, values in samples.items():
        value = median(values)
        row = Row("LevelDB, history in 4 MiB", name, value, "s", value / base, "karst on")
        if name != "karst on":
            row.target, row.met = f">= {MIN_DURATION_HISTORY} x", value >= MIN_DURATION_HISTORY * base
        rows.append(row)
    return rows


# The target was set for a program that makes a call every 4 ns; the library calls come twice as often.
# Of a second: the first touch of the trace's memory, which takes a virtual machine 0.1 to 0.4 s, is no hook's cost.
LUA_SCRIPTS = {"library calls": (programs.LUA_SCRIPTS["library calls"][0], 12_000_000, 300_000),
               "recursive fib": (programs.LUA_SCRIPTS["recursive fib"][0], 36, 26),
               "a call every 4 ns": ("""
local s, x, abs = 0, 0, math.abs
for i = 1, %d do
  s = s + abs(i)
  x = x + i; x = x + (i - 1); x = x + (i - 2); x = x + (i - 3)
end
""", 40_000_000, 1_000_000)}


def lua_rows(rounds, options, scratch, notes):
    """By the wall: CPU time would count the clock thread's."""
    plain = programs.lua_program("plain", "gcc")
    traced = programs.lua_program("karst", karst_tool("karst-gcc"))
    rows = []
    for title, (text, size, quick_size) in LUA_SCRIPTS.items():
        script = f"{scratch}/wall-{title.replace(' ', '-')}.lua"
        size = quick_size if options.quick else size
        with open(script, "w", encoding="utf-8") as out:
            out.write(text % size)
        least = programs.LEAST_CALLS if title == "recursive fib" else size

        calls_made = 0

        def under(*flags):
            def run():
                nonlocal calls_made
                begin_end = f"{scratch}/wall"
                command = ["sh", "-c", 'begin=$(date +%s%N); "$@"; end=$(date +%s%N); echo $((end - begin)) > "$0"',
                           begin_end, traced, script]
                # The shell is not what is measured, nor has it a budget.
                child = measure.karst_run(scratch, ["--no-patch", *flags], command, least)
                calls_made = measure.recorded_calls(child.errors)
                with open(begin_end, encoding="utf-8") as file:
                    return int(file.read()) / 1e9
            return run

        runs = {"not instrumented": lambda: run_child([plain, script]).seconds,
                "karst on": under(), "karst --clock thread": under("--clock", "thread")}
        samples, failures = interleaved(runs, rounds, f"Lua 5.4, {title}, wall")
        notes += [f"Lua 5.4, {title}, wall: {name} failed: {why}" for name, why in failures.items()]
        base = median(samples["not instrumented"])
        for name, values in samples.items():
            value = median(values)
            row = Row(f"Lua 5.4, {title}: wall time", name, value, "s", value / base, "not instrumented")
            if name == "karst --clock thread":
                row.target, row.met = f"<= {CLOCK_LUA_RATIO} x", row.ratio <= CLOCK_LUA_RATIO
                row.note = f"{calls_made:,} calls, one every {base / calls_made * 1e9:.1f} ns"
            rows.append(row)
    return rows


def bench_variants(rounds, options, scratch, notes):
    rows = pair_rows(rounds, options.peers, scratch, notes)
    rows += history_rows(rounds, options.quick, scratch)
    if options.lua:
        rows += lua_rows(rounds, options, scratch, notes)
    else:
        notes.append("Lua 5.4 by the clock thread was not measured: --lua")
    return rows
