"""What tracing costs a program before main and behind it: libkarst alone, and karst run. Two programs that do nothing: a
small one, and a generated one with 50,000 sites."""

import contextlib
import os
import pathlib
import re
import shutil
import tempfile

import measure
from measure import WORK, BenchError, Row, interleaved, karst_tool, median, run_child

FUNCTIONS = 25_000  # each has one place of entry and one of return
SITES = 2 * FUNCTIONS
PATCH_TARGET_MS = 50
ADDED_TARGET_MS = {"small": 1, "large": 5}  # by libkarst
RUN_TARGET_MS = 20  # by karst run, for the small program
AS_NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def program(name, functions):
    source = WORK / "startup" / f"{name}.c"
    text = "".join(f"__attribute__((noinline)) int f{i}(int x) {{ return x + {i}; }}\n" for i in range(functions))
    text += "int main(void) { return 0; }\n"
    source.parent.mkdir(parents=True, exist_ok=True)
    if not source.exists() or source.read_text() != text:
        source.write_text(text)
    return measure.compile_program(WORK / "startup" / name, [karst_tool("karst-gcc"), "-O1", source], [source])


def patch_ms(traced, library):
    """What the runtime itself says it took; an error unless it found all sites."""
    errors = run_child([traced], env={"LD_PRELOAD": str(library), "KARST_OPTIONS": "stats=1"}).errors
    found = re.search(r"(\d+) sleds found and patched in (\d+) us", errors)
    if not found or int(found.group(1)) < SITES:
        raise BenchError(f"the runtime did not say that it patched {SITES} sites: {errors!r}")
    return int(found.group(2)) / 1000


def bench_library(group, size, traced, rounds, notes):
    library = karst_tool("libkarst.so")

    def start(**environment):
        return lambda: run_child([traced], env=environment).seconds * 1000

    runs = {
        "without libkarst": start(),
        "libkarst, off": start(LD_PRELOAD=str(library), KARST_OPTIONS="off=1"),
        "libkarst, on": start(LD_PRELOAD=str(library)),
    }
    samples, failures = interleaved(runs, rounds, f"start, {size}")
    notes += [f"start, {size}: {name} failed: {why}" for name, why in failures.items()]
    rows = [Row(group, name, median(values), "ms") for name, values in samples.items()]
    if not failures:
        added = median(samples["libkarst, on"]) - median(samples["without libkarst"])
        target = ADDED_TARGET_MS[size]
        rows.append(Row(group, "all that libkarst adds", added, "ms", target=f"< {target} ms", met=added < target))
    return rows


def bench_karst_run(group, size, traced, rounds, notes):
    """The whole command beside the program alone, by wall and CPU time, each way of recording thread states."""
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="karst-bench-")))
        directory.chmod(0o777)
        usual = "karst run"
        ways = {usual: [], "karst run --sched off": ["--sched", "off"]}
        before = {}
        if os.geteuid() == 0:
            ways["karst run --sched ftrace"] = ["--sched", "ftrace"]
            if shutil.which(AS_NOBODY[0]):
                ways["karst run, as nobody"] = []
                before["karst run, as nobody"] = AS_NOBODY
        cpu = {name: [] for name in ways}

        def run(name):
            trace = directory / "run.karst"
            child = run_child([*before.get(name, []), karst_tool("karst"), "run", "-o", trace, *ways[name], traced],
                              env={"XDG_CACHE_HOME": str(directory / ("nobody" if name in before else "cache"))})
            trace.unlink()
            cpu[name].append(child.cpu_seconds * 1000)
            return child.seconds * 1000

        runs = {"the program alone": lambda: run_child([traced]).seconds * 1000}
        runs |= {name: (lambda name=name: run(name)) for name in ways}
        samples, failures = interleaved(runs, rounds, f"karst run, {size}")
    notes += [f"karst run, {size}: {name} failed: {why}" for name, why in failures.items()]
    rows = [Row(group, f"{name}, wall", median(values), "ms") for name, values in samples.items()]
    rows += [Row(group, f"{name}, CPU", median(cpu[name]), "ms") for name in ways if name not in failures]
    if size == "small" and usual in samples and "the program alone" in samples:
        added = median(samples[usual]) - median(samples["the program alone"])
        rows.append(Row(group, "all that karst run adds", added, "ms", target=f"< {RUN_TARGET_MS} ms",
                        met=added < RUN_TARGET_MS))
    return rows


def bench_startup(rounds, scratch, notes):
    rounds = max(rounds, 4) * 4
    programs = {"small": program("one_function", 1), "large": program("many_functions", FUNCTIONS)}
    groups = {"small": "start and end of a program with one function, main does nothing",
              "large": f"start and end of a program with {SITES:,} sites, main does nothing"}
    rows = []
    for size, traced in programs.items():
        rows += bench_library(groups[size], size, traced, rounds, notes)
        rows += bench_karst_run(groups[size], size, traced, rounds, notes)
    patching = median([patch_ms(programs["large"], karst_tool("libkarst.so")) for _ in range(20)])
    rows.append(Row(groups["large"], "finding and patching", patching, "ms", target=f"< {PATCH_TARGET_MS} ms",
                    met=patching < PATCH_TARGET_MS))
    return rows
