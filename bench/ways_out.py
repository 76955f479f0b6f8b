"""Ways out of functions, traced against not traced: throw to catch, setjmp and longjmp, a coroutine's switch."""

import measure
from calls import parse_ns
from measure import FIXTURES, WORK, Row, interleaved, karst_tool, median, run_child

FLAGS = ["-std=c++20", "-O2", "-fno-optimize-sibling-calls", "-pthread"]
# What takes nanoseconds is timed as calls are (calls.py): the warm-up fills the default memory of 64 MiB. Fresh memory
# costs the kernel 5 ns an event here.
FILLS_MEMORY = 4_500_000
# name of the workload -> (title, rounds, rounds before, calls a round, target: times the plain program)
WORKLOADS = {
    "throw1": ("throw to catch through 1 frame", 100_000, 10_000, 1, 3.0),
    "throw10": ("throw to catch through 10 frames", 50_000, 5_000, 10, 3.0),
    "throw100": ("throw to catch through 100 frames", 10_000, 1_000, 100, 3.0),
    "jump": ("setjmp, a call, longjmp out of it", 2_000_000, FILLS_MEMORY, 1, 3.0),
    "coroutine": ("a coroutine resumed and suspended", 2_000_000, FILLS_MEMORY, 1, None),
}


def program(name, compiler):
    source = FIXTURES / "ways_out.cc"
    return measure.compile_program(WORK / "ways_out" / name, [compiler, *FLAGS, source], [source])


def judge(ratio, target):
    return ("", None) if target is None else (f"<= {target:.0f} x not traced", ratio <= target)


def bench_ways_out(rounds, scratch, notes):
    plain = program("plain", "g++")
    traced = program("karst", str(karst_tool("karst-g++")))
    rows = []
    for work, (title, times, before, calls, target) in WORKLOADS.items():
        arguments = [work, 1, times, before]

        def on(arguments=arguments, least=0.9 * times * calls):
            run = measure.karst_run(scratch, [], [traced, *arguments], least)
            return parse_ns(run.output)

        variants = {
            "not traced": lambda arguments=arguments: parse_ns(run_child([plain, *arguments]).output),
            "karst on": on,
        }
        samples, failures = interleaved(variants, rounds, f"ways out: {title}")
        notes += [f"{title}: {name} failed: {why}" for name, why in failures.items()]
        if "not traced" not in samples:
            continue
        base = median(samples["not traced"])
        for name, values in samples.items():
            value = median(values)
            text, met = judge(value / base, target) if name == "karst on" else ("", None)
            rows.append(Row(f"ways out: {title}", name, value, "ns", value / base, "not traced", text, met))
    return rows
