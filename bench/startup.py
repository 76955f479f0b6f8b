"""What tracing costs a program before main: patching the sleds, on a generated program with 50,000 of them."""

import re

import measure
from measure import WORK, BenchError, Row, interleaved, karst_tool, median, run_child

FUNCTIONS = 25_000  # each has one place of entry and one of return
SITES = 2 * FUNCTIONS
PATCH_TARGET_MS = 50


def many_functions():
    source = WORK / "startup" / "many_functions.c"
    text = "".join(f"__attribute__((noinline)) int f{i}(int x) {{ return x + {i}; }}\n" for i in range(FUNCTIONS))
    text += "int main(void) { return 0; }\n"
    source.parent.mkdir(parents=True, exist_ok=True)
    if not source.exists() or source.read_text() != text:
        source.write_text(text)
    return source


def patch_ms(program, library):
    """What the runtime itself says it took; an error unless it found all sites."""
    errors = run_child([program], env={"LD_PRELOAD": str(library), "KARST_OPTIONS": "stats=1"}).errors
    found = re.search(r"(\d+) sleds found and patched in (\d+) us", errors)
    if not found or int(found.group(1)) < SITES:
        raise BenchError(f"the runtime did not say that it patched {SITES} sites: {errors!r}")
    return int(found.group(2)) / 1000


def bench_startup(rounds, scratch, notes):
    source = many_functions()
    traced = measure.compile_program(
        WORK / "startup" / "karst", [karst_tool("karst-gcc"), "-O1", source], [source])
    library = karst_tool("libkarst.so")

    def start(**environment):
        return lambda: run_child([traced], env=environment).seconds * 1000

    runs = {
        "without libkarst": start(),
        "libkarst, off": start(LD_PRELOAD=str(library), KARST_OPTIONS="off=1"),
        "libkarst, on": start(LD_PRELOAD=str(library)),
    }
    samples, failures = interleaved(runs, max(rounds, 5) * 4, "start")
    notes += [f"start: {name} failed: {why}" for name, why in failures.items()]
    group = f"start and end of a program with {SITES:,} sites, main does nothing"
    rows = [Row(group, name, median(values), "ms") for name, values in samples.items()]
    if not failures:
        added = median(samples["libkarst, on"]) - median(samples["without libkarst"])
        rows.append(Row(group, "all that libkarst adds", added, "ms"))
    patching = median([patch_ms(traced, library) for _ in range(20)])
    rows.append(Row(group, "finding and patching", patching, "ms", target=f"< {PATCH_TARGET_MS} ms",
                    met=patching < PATCH_TARGET_MS))
    return rows
