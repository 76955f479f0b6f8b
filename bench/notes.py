"""Notes of a program (karst/karst.h): each kind beside a traced call, recorded, not recorded and without libkarst."""

import measure
from calls import KARST_WARMUP, parse_ns
from measure import FIXTURES, ROOT, WORK, Row, interleaved, karst_tool, median, run_child

PAIRS = 2_000_000
# kind -> (title, events that one makes, target: times what the reference takes, what that is)
KINDS = {
    "zone": ("a zone", 2, 1.2, "call pair"),
    "message": ("a message without arguments", 2, 1.5, "event"),
    "text": ("a text of 16 bytes", 6, None, "event"),
    "value": ("a value", 3, None, "event"),
    "log": ("a log with two integers", 4, 2.0, "event"),
    "probe": ("a probe (sys/sdt.h) with two integers", 4, None, "event"),
}
OFF_NS = 0.3
# Calls with one argument, which is noted: kind -> (title, target in ns on top of the pair, events that one makes).
ARGUMENTS = {
    "number": ("an argument in a register, noted", 5, 5),
    "name": ("an argument that is a text of 16 bytes, noted", 15, 8),
}


def judge(value, target):
    return ("", None) if target is None else (f"<= {target:.1f} x", value <= target)


def bench_notes(rounds, scratch, remarks):
    source = FIXTURES / "notes.c"
    program = measure.compile_program(WORK / "notes" / "notes",
                                      [str(karst_tool("karst-gcc")), "-O2", "-g", "-pthread", "-I", ROOT / "include", source],
                                      [source, FIXTURES / "timing.h", ROOT / "include/karst/karst.h"])

    def arguments(kind, warmup):
        return [program, kind, 1, PAIRS, warmup]

    def on(kind, events):
        options = ["--probes", "bench:two"] if kind == "probe" else []
        run = measure.karst_run(scratch, options, arguments(kind, KARST_WARMUP * 2 // events), 0)
        return parse_ns(run.output)

    def off(kind):
        run = measure.karst_run(scratch, ["--off"], arguments(kind, PAIRS // 10), 0)
        return parse_ns(run.output)

    variants = {"nothing": lambda: parse_ns(run_child(arguments("nothing", PAIRS)).output), "call": lambda: on("call", 2)}
    for kind, (_, events, _, _) in KINDS.items():
        variants[kind] = lambda kind=kind, events=events: on(kind, events)
        variants[f"{kind} off"] = lambda kind=kind: off(kind)
        variants[f"{kind} without libkarst"] = lambda kind=kind: parse_ns(run_child(arguments(kind, PAIRS)).output)
    def noted(kind, events):
        run = measure.karst_run(scratch, ["--args", f"^{kind}$"], arguments(kind, KARST_WARMUP * 2 // events), 0)
        return parse_ns(run.output)

    for kind, (_, _, events) in ARGUMENTS.items():
        variants[kind] = lambda kind=kind, events=events: noted(kind, events)
    samples, failures = interleaved(variants, rounds, "notes")
    remarks += [f"notes: {name} failed: {why}" for name, why in failures.items()]
    if "nothing" not in samples or "call" not in samples:
        return []
    loop = median(samples["nothing"])
    pair = median(samples["call"]) - loop
    rows = [Row("notes", "a call pair, recorded", pair, "ns", None, "", "", None)]
    for kind, (title, _, target, reference) in KINDS.items():
        if kind in samples:
            value = median(samples[kind]) - loop
            ratio = value / (pair if reference == "call pair" else pair / 2)
            rows.append(Row("notes", title, value, "ns", ratio, reference, *judge(ratio, target)))
        for state in ("off", "without libkarst"):
            if f"{kind} {state}" not in samples:
                continue
            value = median(samples[f"{kind} {state}"]) - loop
            met = value <= OFF_NS if state == "off" else None
            rows.append(Row("notes", f"{title}, {state}", value, "ns", None, "", f"<= {OFF_NS} ns" if state == "off" else "", met))
    for kind, (title, target, _) in ARGUMENTS.items():
        if kind in samples:
            value = median(samples[kind]) - loop - pair
            rows.append(Row("notes", title, value, "ns", value / pair, "call pair", f"<= {target} ns", value <= target))
    return rows
