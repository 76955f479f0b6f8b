"""What karst run adds to short programs: a shell that starts many, and programs with much code, at their first start and
at later ones, when their patch tables are kept."""

import pathlib
import re
import shutil
import tempfile

from measure import BenchError, Row, interleaved, karst_tool, median, progress, run_child

PROCESSES = 500
PROCESS_TARGET_MS = 1
# title, program, options, target in s of what karst adds at a later start
PROGRAMS = (
    ("node -e 0", ["node", "-e", "0"], [], 0.2),
    ("clang-14 --version, libLLVM whole", ["clang-14", "--version"], ["--library", "*LLVM*"], 2),
    ("python3 -c 0", ["python3", "-c", "0"], [], None),
    ("git --version", ["git", "--version"], [], None),
)


def took(child):
    """What karst itself says, in seconds: all, before, after."""
    line = re.search(r"karst took ([\d.]+) s: ([\d.]+) s before the program began.*, ([\d.]+) s after it ended", child.errors)
    if not line:
        raise BenchError(f"karst run did not say how long it took: {child.errors!r}")
    return [float(number) for number in line.groups()]


def bench_shell(rounds, scratch, cache, notes):
    group = f"a shell that runs true {PROCESSES} times"
    script = pathlib.Path(scratch) / "loop.sh"
    script.write_text(f"i=0; while [ $i -lt {PROCESSES} ]; do /bin/true; i=$((i+1)); done\n")
    cpu = {}

    def run(name, command):
        child = run_child(command, env={"XDG_CACHE_HOME": cache})
        cpu.setdefault(name, []).append(child.cpu_seconds)
        return child.seconds

    karst = [karst_tool("karst"), "run", "-o", f"{scratch}/loop.karst"]
    ways = {"alone": ["sh", script], "karst run": [*karst, "sh", script],
            "karst run --sched off": [*karst, "--sched", "off", "sh", script]}
    runs = {name: (lambda name=name, command=command: run(name, command)) for name, command in ways.items()}
    samples, failures = interleaved(runs, rounds, group)
    notes += [f"{group}: {name} failed: {why}" for name, why in failures.items()]
    rows = [Row(group, f"{name}, wall", median(values), "s") for name, values in samples.items()]
    rows += [Row(group, f"{name}, CPU", median(cpu[name]), "s") for name in samples]
    if "alone" in samples:
        for name in ("karst run", "karst run --sched off"):
            if name not in samples:
                continue
            added = (median(samples[name]) - median(samples["alone"])) / PROCESSES * 1000
            rows.append(Row(group, f"{name} adds", added, "ms/process", target=f"< {PROCESS_TARGET_MS} ms",
                            met=added < PROCESS_TARGET_MS))
    return rows


def bench_program(title, command, options, target, rounds, scratch, notes):
    group = f"start and end of {title}"
    karst = [karst_tool("karst"), "run", "-o", f"{scratch}/start.karst", *options, *command]

    def traced(cache):
        return run_child(karst, env={"XDG_CACHE_HOME": str(cache)})

    def first():
        with tempfile.TemporaryDirectory(dir=scratch) as cache:
            return traced(cache).seconds

    kept = pathlib.Path(scratch) / "kept"
    progress(f"{group}: filling the cache")
    traced(kept)
    said = []

    def later():
        child = traced(kept)
        said.append(took(child))
        return child.seconds

    samples, failures = interleaved({"alone": lambda: run_child(command).seconds, "first start": first,
                                     "later start": later}, rounds, group)
    notes += [f"{group}: {name} failed: {why}" for name, why in failures.items()]
    rows = [Row(group, f"{name}, wall", median(values), "s") for name, values in samples.items()]
    if "later start" in samples:
        whole = median([times[0] for times in said])
        rows.append(Row(group, "later start, as karst says", whole, "s", note=(
            f"{median([times[1] for times in said]):.2f} s before, {median([times[2] for times in said]):.2f} s after"),
            target="" if target is None else f"< {target} s", met=None if target is None else whole < target))
    return rows


def bench_start(rounds, scratch, notes):
    with tempfile.TemporaryDirectory(dir=scratch) as cache:
        rows = bench_shell(rounds, scratch, cache, notes)
    for title, command, options, target in PROGRAMS:
        if shutil.which(command[0]) is None:
            notes.append(f"start: {command[0]} is not installed")
            continue
        rows += bench_program(title, command, options, target, rounds, scratch, notes)
    return rows
