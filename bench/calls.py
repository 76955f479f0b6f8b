"""Nanoseconds per call pair: a leaf call and recursive fib, on one thread and on two, and with a busy neighbour."""

import contextlib
import os
import re
import shutil
import subprocess
import sys

import measure
from measure import FIXTURES, WORK, BenchError, Row, interleaved, karst_tool, median, run_child

FLAGS = ["-O2", "-fno-optimize-sibling-calls", "-pthread"]
WORKLOADS = [("leaf", 1), ("fib", 1), ("leaf", 2), ("fib", 2)]
# An event takes 8 bytes and the default memory is 64 MiB, so that many pairs on each thread fill it: what is timed
# afterwards is the steady state in which old blocks are recycled.
KARST_WARMUP = 5_000_000
ON_RATIO, OFF_EXTRA_NS = 1.04, 0.15
NEIGHBOUR_RATIO = 1.10  # with a busy CPU beside the program's
CHEAPEST_RATIO = 1.03   # of the hook that keeps no promise (fixtures/cheapest_hook.S)
ADDITIONS = "additions"
CHEAPEST = "the cheapest hook, unsafe"
QUIET_RATIO = 1.10  # of a core's additions, of their fastest: beyond it something else works on that core


def parse_ns(output):
    found = re.search(r"^ns_per_pair ([0-9.]+)$", output, re.M)
    if not found:
        raise BenchError(f"no result in the output: {output!r}")
    return float(found.group(1))


def program(name, compiler, flags=(), extra_sources=()):
    source = FIXTURES / "calls.c"
    command = [compiler, *FLAGS, *flags, source, *extra_sources]
    return measure.compile_program(WORK / "calls" / name, command, [source, *extra_sources])


def floor_program():
    source = FIXTURES / "floor.c"
    return measure.compile_program(WORK / "calls" / "floor", ["gcc", *FLAGS, source], [source])


class Core:
    """How much of its core a CPU has: additions that wait for nothing, beside what is measured (fixtures/additions.c)."""

    def __init__(self):
        source = FIXTURES / "additions.c"
        self.program = measure.compile_program(WORK / "calls" / "additions", ["gcc", *FLAGS, source], [source])
        self.best = float("inf")

    def mean(self):
        """Of a tenth of a second, ns."""
        found = re.fullmatch(r"ns_best ([0-9.]+)\nns_mean ([0-9.]+)\n", run_child([self.program, 60]).output)
        if not found:
            raise BenchError("no result of the additions")
        self.best = min(self.best, float(found.group(1)))
        return float(found.group(2))

    def row(self, group, means, notes):
        row = Row(group, "additions, of their fastest", median(means) / self.best, "x")
        if row.value > QUIET_RATIO:
            notes.append(f"{group}: something else works on the same core, as additions that wait for nothing took "
                         f"{row.value:.2f} x as long as they can; targets are those of a quiet machine")
        return row


def arguments(work, threads, pairs, warmup):
    return [work, threads, pairs, warmup]


def own_variants(scratch):
    """name -> function(work, threads) -> ns, for what is always measured."""
    plain = program("plain", "gcc")
    floor = floor_program()
    traced = program("karst", str(karst_tool("karst-gcc")))

    cheapest = program("cheapest", "gcc", ["-pg", "-mfentry", "-minstrument-return=call"],
                       [FIXTURES / "cheapest_hook.S"])

    def karst_off(work, threads):
        run = measure.karst_run(scratch, ["--off"], [traced, *arguments(work, threads, 40_000_000, 1_000_000)], 0)
        return parse_ns(run.output)

    def karst_on(work, threads):
        pairs = 5_000_000
        command = [traced, *arguments(work, threads, pairs, KARST_WARMUP)]
        # a per cent less than all: the summary's overwritten calls are approximate
        return parse_ns(measure.karst_run(scratch, [], command, 0.99 * threads * (pairs + KARST_WARMUP)).output)

    return {
        "floor": lambda work, threads: parse_ns(run_child([floor, threads, 5_000_000, 500_000]).output),
        CHEAPEST: lambda work, threads: parse_ns(
            run_child([cheapest, *arguments(work, threads, 5_000_000, 500_000)], cwd=scratch).output),
        "not instrumented": lambda work, threads: parse_ns(
            run_child([plain, *arguments(work, threads, 40_000_000, 1_000_000)]).output),
        "karst without libkarst": lambda work, threads: parse_ns(
            run_child([traced, *arguments(work, threads, 40_000_000, 1_000_000)]).output),
        "karst off": karst_off,
        "karst on": karst_on,
    }


def uftrace_variants(scratch):
    def variant(name, flags, record_flags):
        built = program(name.replace(" ", "-"), "gcc", flags)

        def off(work, threads):
            # in the scratch directory: a program built with -pg leaves its gmon.out where it runs
            command = [built, *arguments(work, threads, 10_000_000, 1_000_000)]
            return parse_ns(run_child(command, cwd=scratch).output)

        def on(work, threads):
            data = f"{scratch}/uftrace.data"
            shutil.rmtree(data, ignore_errors=True)
            command = ["uftrace", "record", *record_flags, "--no-libcall", "-d", data, built]
            child = run_child([*command, *arguments(work, threads, 1_000_000, 100_000)], cwd=scratch)
            result = parse_ns(child.output)
            shutil.rmtree(data, ignore_errors=True)
            return result

        return {f"{name} off": off, f"{name} on": on}

    return {
        **variant("uftrace -pg", ["-pg"], []),
        **variant("uftrace -pg -mfentry", ["-pg", "-mfentry"], []),
        **variant("uftrace nop-mcount -P", ["-pg", "-mfentry", "-mnop-mcount", "-no-pie", "-fno-pie"], ["-P", "."]),
        **variant("uftrace patchable -P", ["-fpatchable-function-entry=5"], ["-P", "."]),
    }


def xray_program():
    """With XRay's sleds; it records when BENCH_XRAY names a mode."""
    xray_flags = ["-fxray-instrument", "-fxray-instruction-threshold=1"]
    start = FIXTURES / "xray_start.cc"
    start_object = measure.compile_program(
        WORK / "calls" / "xray_start.o", ["clang++-14", *FLAGS, *xray_flags, "-c", start], [start])
    # XRay's runtime is C++.
    return program("xray", "clang-14", [*xray_flags, start_object, "-lstdc++"])


def xray_variants(scratch):
    plain = program("clang-plain", "clang-14")
    built = xray_program()

    def on(mode):
        config = "no_file_flush=true:buffer_size=16777216:buffer_max=4:func_duration_threshold_us=0"

        def run(work, threads):
            environment = {"BENCH_XRAY": mode, "BENCH_XRAY_CONFIG": config}
            command = [built, *arguments(work, threads, 1_000_000, 100_000)]
            return parse_ns(run_child(command, env=environment, cwd=scratch).output)

        return run

    def unpatched(executable):
        return lambda work, threads: parse_ns(
            run_child([executable, *arguments(work, threads, 10_000_000, 1_000_000)]).output)

    return {
        "clang, not instrumented": unpatched(plain),
        "XRay off": unpatched(built),
        "XRay basic on": on("xray-basic"),
        "XRay FDR on": on("xray-fdr"),
    }


def peer_variants(scratch, notes):
    variants = {}
    for needed, make in (("uftrace", uftrace_variants), ("clang++-14", xray_variants)):
        if shutil.which(needed) is None:
            notes.append(f"{needed} is not installed: script/setup bench installs the peers")
        else:
            variants.update(make(scratch))
    return variants


def judge(name, value, floor, plain):
    """(target text, whether it was met) for the rows that the project has promised something about."""
    if name == "karst on":
        return f"<= {ON_RATIO:.2f} x floor", value <= ON_RATIO * floor
    if name == "karst off":
        return f"<= +{OFF_EXTRA_NS} ns", value - plain <= OFF_EXTRA_NS
    return "", None


@contextlib.contextmanager
def busy_neighbours():
    """All CPUs but the first one have something to do, and the bench's children have the first one."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise BenchError("there is one CPU, so no neighbour")
    spin = "import os\nos.sched_setaffinity(0, {%d})\nwhile True: pass"
    spinning = [subprocess.Popen([sys.executable, "-c", spin % cpu]) for cpu in cpus[1:]]
    try:
        os.sched_setaffinity(0, {cpus[0]})
        yield
    finally:
        os.sched_setaffinity(0, cpus)
        for child in spinning:
            child.kill()
            child.wait()


def bench_beside_neighbour(variants, rounds, notes):
    rows = []
    for work in ("leaf", "fib"):
        title = f"{work}, 1 thread, the other CPUs are busy"
        runs = {name: (lambda run=variants[name]: run(work, 1)) for name in ("floor", CHEAPEST, "karst on")}
        try:
            with busy_neighbours():
                samples, failures = interleaved(runs, rounds, f"calls: {title}")
        except BenchError as error:
            notes.append(f"calls, a busy neighbour: {error}")
            return rows
        notes += [f"{title}: {name} failed: {why}" for name, why in failures.items()]
        floor = median(samples["floor"]) if "floor" in samples else None
        for name, values in samples.items():
            row = Row(f"call pair: {title}", name, median(values), "ns", median(values) / floor if floor else None,
                      "floor")
            if name == "karst on" and floor:
                row.target, row.met = f"<= {NEIGHBOUR_RATIO:.2f} x floor", row.ratio <= NEIGHBOUR_RATIO
            rows.append(row)
    return rows


def bench_calls(rounds, peers, scratch, notes):
    variants = own_variants(scratch)
    if peers:
        variants.update(peer_variants(scratch, notes))
    rows = []
    core = Core()
    for work, threads in WORKLOADS:
        title = f"{work}, {threads} thread{'s' if threads > 1 else ''}"
        runs = {name: (lambda run=run: run(work, threads)) for name, run in variants.items()}
        samples, failures = interleaved({**runs, ADDITIONS: core.mean}, rounds, f"calls: {title}")
        notes += [f"{title}: {name} failed: {why}" for name, why in failures.items()]
        if "floor" not in samples or "not instrumented" not in samples:
            raise BenchError(f"{title}: the floor or the plain program did not run: {failures}")
        floor, plain = median(samples["floor"]), median(samples["not instrumented"])
        if ADDITIONS in samples:
            rows.append(core.row(f"call pair: {title}", samples.pop(ADDITIONS), notes))
        for name, values in samples.items():
            value = median(values)
            target, met = judge(name, value, floor, plain)
            rows.append(Row(f"call pair: {title}", name, value, "ns", value / floor, "floor", target, met))
        if CHEAPEST in samples and "karst on" in samples:
            ratio = median(samples["karst on"]) / median(samples[CHEAPEST])
            rows.append(Row(f"call pair: {title}", "karst on, of the cheapest hook", ratio, "x",
                            target=f"<= {CHEAPEST_RATIO:.2f} x", met=ratio <= CHEAPEST_RATIO))
    return rows + bench_beside_neighbour(variants, rounds, notes)
