"""Records of memory: what `karst run --system memory` costs, of a malloc() and free() pair."""

import shutil

import measure
from calls import parse_ns
from measure import FIXTURES, WORK, Row, interleaved, karst_tool, median, run_child

PAIRS = 5_000_000
SLOW_PAIRS = 20_000
MOST_PAIRS = 2.0
MOST_MORE_NS = 3.0
EXACT = ("--system", "memory")
SAMPLED = ("--system", "memory=512K")
# Others that record each allocation, and how many pairs they get.
PEERS = {"heaptrack": (("heaptrack", "-r", "-o"), PAIRS // 10),
         "ltrace": (("ltrace", "-f", "-e", "malloc+free", "-o"), SLOW_PAIRS)}


def bench_memory(rounds, scratch, remarks):
    source = FIXTURES / "memory.c"
    program = measure.compile_program(WORK / "memory" / "memory",
                                      [str(karst_tool("karst-gcc")), "-O2", "-g", "-pthread", "-fno-builtin",
                                       "-Wl,-z,lazy", source],
                                      [source, FIXTURES / "timing.h"])

    def command(kind, pairs=PAIRS):
        return [program, kind, 1, pairs, pairs // 5]

    def traced(options, kind):
        return parse_ns(measure.karst_run(scratch, options, command(kind), 1).output)

    variants = {"nothing": lambda: parse_ns(run_child(command("nothing")).output),
                "plain": lambda: parse_ns(run_child(command("heap")).output),
                "call": lambda: traced([], "call"),
                "exact": lambda: traced(EXACT, "heap"),
                "sampled": lambda: traced(SAMPLED, "heap")}
    for name, (words, pairs) in PEERS.items():
        if shutil.which(words[0]) is None:
            remarks.append(f"memory: {name} is not installed")
        else:
            variants[name] = lambda words=words, pairs=pairs: parse_ns(
                run_child([*words, f"{scratch}/memory", *command("heap", pairs)]).output)
    samples, failures = interleaved(variants, rounds, "memory")
    remarks += [f"memory: {name} failed: {why}" for name, why in failures.items()]
    if not {"nothing", "plain", "call", "exact", "sampled"} <= samples.keys():
        return []
    loop, plain = median(samples["nothing"]), median(samples["plain"])
    call = median(samples["call"]) - loop
    rows = [Row("memory", "malloc+free of 40 bytes", plain - loop, "ns", None, "", "", None),
            Row("memory", "a traced call", call, "ns", None, "", "", None)]
    exact = median(samples["exact"]) - plain
    rows.append(Row("memory", "malloc+free, --system memory: more", exact, "ns", exact / call, "a traced call",
                    f"<= {MOST_PAIRS}x", exact / call <= MOST_PAIRS))
    sampled = median(samples["sampled"]) - plain
    rows.append(Row("memory", "malloc+free, --system memory=512K: more", sampled, "ns", sampled / call, "a traced call",
                    f"<= {MOST_MORE_NS} ns", sampled <= MOST_MORE_NS))
    for name in PEERS:
        if name in samples:
            value = median(samples[name]) - plain
            rows.append(Row("memory", f"malloc+free, {name}: more", value, "ns", value / call, "a traced call", "", None))
    return rows
