"""Times without the tracer in them: karst report's mean of a call against the same program's own, not traced."""

import itertools
import json
import subprocess

import measure
from calls import parse_ns
from measure import FIXTURES, WORK, BenchError, Row, interleaved, karst_tool, median, run_child

# function -> (calls timed, judged: its calls take 50 ns and more, calls that one of them makes, itself too)
FUNCTIONS = {
    "work2": (2_000_000, False, 1),
    "work20": (2_000_000, False, 1),
    "work120": (1_000_000, True, 1),
    "work400": (400_000, True, 1),
    "work4000": (50_000, True, 1),
    "work400000": (500, True, 1),
    "nested": (600_000, True, 3),
    "deeper": (200_000, True, 8),
}
# The thread clock wants a processor of its own, so two threads are timed by the TSC alone.
WAYS = {"tsc": [], "thread clock": ["--clock", "thread"]}
OFF_BY = 0.10


def judge(ratio):
    return abs(ratio - 1) <= OFF_BY


def mean_of(trace, function, *options):
    """Nanoseconds of a call by karst report, and by how many it says a call may be off."""
    command = [str(karst_tool("karst")), "report", str(trace), "--format", "json", "--function", f"^{function}$", *options]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    rows = report["functions"]
    if len(rows) != 1:
        raise BenchError(f"karst report has {len(rows)} functions called {function}")
    return rows[0]["total_ns"] / rows[0]["calls"], report["call_cost_off_by_ns"]


def bench_corrected(rounds, scratch, notes):
    source = FIXTURES / "self_timed.c"
    sources = [source, FIXTURES / "timing.h"]
    flags = ["-O2", "-fno-optimize-sibling-calls", "-pthread", source]
    plain = measure.compile_program(WORK / "corrected" / "plain", ["gcc", *flags], sources)
    traced = measure.compile_program(WORK / "corrected" / "karst", [str(karst_tool("karst-gcc")), *flags], sources)
    trace = f"{scratch}/corrected.karst"
    rows = []
    as_stated = []
    for (function, (pairs, judged, calls)), order, threads in itertools.product(FUNCTIONS.items(), ("apart", "chained"), (1, 2)):
        arguments = [f"{order}-{function}", threads, pairs, pairs // 10]
        variants = {"plain": lambda arguments=arguments: parse_ns(run_child([plain, *arguments]).output)}
        raw, off_by = {}, {}
        ways = WAYS if threads == 1 else {"tsc": []}
        for way, options in ways.items():

            def on(way=way, options=options, arguments=arguments, function=function, raw=raw, off_by=off_by):
                run_child([str(karst_tool("karst")), "run", "--sched", "off", "--memory", "4M", "-o", trace, *options,
                           "--", traced, *arguments])
                raw.setdefault(way, []).append(mean_of(trace, function, "--raw")[0])
                mean, off = mean_of(trace, function)
                off_by.setdefault(way, []).append(off)
                return mean

            variants[way] = on
        samples, failures = interleaved(variants, rounds, f"corrected: {order} {function}, {threads}")
        notes += [f"corrected: {function}: {name} failed: {why}" for name, why in failures.items()]
        if "plain" not in samples:
            continue
        base = median(samples["plain"])
        for way in ways:
            if way not in samples:
                continue
            value = median(samples[way])
            stated = calls * median(off_by[way])
            # Of long calls less is stated than two runs of the same differ by.
            as_stated.append(abs(value - base) <= stated or (judged and judge(value / base)))
            rows.append(Row(f"times without the tracer, {threads} thread{'s' if threads > 1 else ''}", f"{order} {function}, {way}",
                            value, "ns", value / base, "plain", "within 10%" if judged else "",
                            judge(value / base) if judged else None,
                            f"recorded: {median(raw[way]) / base:.2f} x; stated: +-{stated / base:.2f} x"))
    held = sum(as_stated)
    rows.append(Row("times without the tracer", "within what is stated, or within 10%", held, f"of {len(as_stated)} rows",
                    target="all", met=held == len(as_stated)))
    return rows
