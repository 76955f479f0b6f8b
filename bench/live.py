"""Switching tracing off and on while 8 threads run, on a program with 50,000 sleds; and what a call costs afterwards."""

import re

import measure
from measure import FIXTURES, ROOT, WORK, BenchError, Row, interleaved, karst_tool, median, run_child

FUNCTIONS = 25_000  # each has one place of entry and one of return
SITES = 2 * FUNCTIONS
THREADS = 8
TOGGLE_TARGET_MS, HELD_TARGET_MS, OFF_EXTRA_NS = 100, 1, 0.3
FLAGS = ["-O2", "-pthread", "-I", ROOT, "-I", FIXTURES]


def functions():
    source = WORK / "live" / "functions.cc"
    text = 'extern "C" {\n'
    text += "".join(f"__attribute__((noinline)) int f{i}(int x) {{ return x + {i}; }}\n" for i in range(FUNCTIONS))
    text += f"extern const unsigned bench_function_count;\nconst unsigned bench_function_count = {FUNCTIONS};\n"
    names = ", ".join(f"f{i}" for i in range(FUNCTIONS))
    text += "extern int (*const bench_functions[])(int);\n"
    text += f"int (*const bench_functions[])(int) = {{{names}}};\n}}\n"
    source.parent.mkdir(parents=True, exist_ok=True)
    if not source.exists() or source.read_text() != text:
        source.write_text(text)
    return source


def program(name, compiler):
    sources = [functions(), FIXTURES / "live.cc"]
    return measure.compile_program(WORK / "live" / name, [compiler, "-std=c++20", *FLAGS, *sources], sources)


def numbers(output):
    found = {name: float(value) for name, value in re.findall(r"(\w+) ([0-9.]+)", output)}
    if not found:
        raise BenchError(f"no result in the output: {output!r}")
    return found


def bench_live(rounds, notes):
    traced = program("karst", karst_tool("karst-g++"))
    plain = program("plain", "g++")
    library = str(karst_tool("libkarst.so"))

    def toggles():
        result = numbers(run_child([traced, "toggle", THREADS, 40], env={"LD_PRELOAD": library}).output)
        if result["sites"] < SITES:
            raise BenchError(f"only {result['sites']} sites were switched")
        return result

    samples = [toggles() for _ in range(max(rounds, 3))]
    group = f"switching {SITES:,} sites under {THREADS} running threads"
    taken = median([s["median_ms"] for s in samples])
    longest = max(s["longest_ms"] for s in samples)
    held = median([s["held_ms"] for s in samples])
    anyway = median([s["held_before_ms"] for s in samples])
    often, often_anyway = (sum(s[name] for s in samples) for name in ("held_over", "held_over_before"))
    rows = [
        Row(group, "from asking to done", taken, "ms", target=f"< {TOGGLE_TARGET_MS} ms", met=taken < TOGGLE_TARGET_MS),
        Row(group, "the longest", longest, "ms"),
        Row(group, "of which changing code", median([s["patch_ms"] for s in samples]), "ms"),
        Row(group, "longest hold of a thread", held, "ms", target=f"< {HELD_TARGET_MS} ms", met=held < HELD_TARGET_MS,
            note="in the same run, in as much time without switching: " + f"{anyway:.2f} ms"),
        # The machine itself holds threads (8 of them on its CPUs): what the switching adds is judged by how often.
        Row(group, "holds of over 1 ms", often, "", target="no more than without switching", met=often <= often_anyway,
            note=f"without: {often_anyway:.0f}; {len(samples)} runs of 40 switchings"),
    ]

    calls = 20_000_000
    runs = {
        "not instrumented": lambda: numbers(run_child([plain, "leaf", calls]).output)["after_ns"],
        "off from the start": lambda: numbers(run_child(
            [traced, "leaf", calls], env={"LD_PRELOAD": library, "KARST_OPTIONS": "off=1"}).output)["first_ns"],
        "off after on": lambda: numbers(run_child(
            [traced, "leaf", calls], env={"LD_PRELOAD": library, "KARST_OPTIONS": "off=1"}).output)["after_ns"],
    }
    samples, failures = interleaved(runs, max(rounds, 5), "off after on")
    notes += [f"live: {name} failed: {why}" for name, why in failures.items()]
    group = "a leaf call, tracing switched off"
    base = median(samples["not instrumented"]) if "not instrumented" in samples else None
    for name, values in samples.items():
        row = Row(group, name, median(values), "ns")
        if name == "off after on" and base is not None:
            row.target, row.met = f"+ {OFF_EXTRA_NS} ns", median(values) - base <= OFF_EXTRA_NS
        rows.append(row)
    return rows
