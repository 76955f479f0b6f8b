"""Ways out of functions, traced against not traced: throw to catch, setjmp and longjmp, a coroutine's switch."""

import measure
from calls import parse_ns
from measure import FIXTURES, WORK, Row, interleaved, karst_tool, median, run_child

FLAGS = ["-std=c++20", "-O2", "-fno-optimize-sibling-calls", "-pthread"]
# name of the workload -> (title, rounds, calls a round, target: times the plain program)
WORKLOADS = {
    "throw1": ("throw to catch through 1 frame", 100_000, 1, 3.0),
    "throw10": ("throw to catch through 10 frames", 50_000, 10, 3.0),
    "throw100": ("throw to catch through 100 frames", 10_000, 100, 3.0),
    "jump": ("setjmp, a call, longjmp out of it", 2_000_000, 1, 3.0),
    "coroutine": ("a coroutine resumed and suspended", 2_000_000, 1, None),
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
    for work, (title, times, calls, target) in WORKLOADS.items():
        arguments = [work, 1, times, times // 10]

        def on(arguments=arguments, calls=calls, times=times):
            run = measure.karst_run(scratch, [], [traced, *arguments], 0.99 * times * calls)
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
