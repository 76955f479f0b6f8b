"""What tracing costs a program before main: patching the sleds, on a generated program with 50,000 of them."""


import measure
from measure import WORK, Row, interleaved, karst_tool, median, run_child

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
    if len(samples) == len(runs):
        patching = median(samples["libkarst, on"]) - median(samples["libkarst, off"])
        whole = median(samples["libkarst, on"]) - median(samples["without libkarst"])
        rows.append(Row(group, "all that libkarst adds", whole, "ms", target=f"<= {PATCH_TARGET_MS} ms",
                        met=whole <= PATCH_TARGET_MS, note=f"patching (on minus off) {patching:.1f} ms"))
    return rows
