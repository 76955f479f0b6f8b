"""What can be done with a trace and how fast: decoding, reports and exports, on synthetic traces."""

import os
import re
import shutil
from pathlib import Path

from measure import Row, BenchError, interleaved, karst_tool, median, progress, run_child

DECODE_TARGET = 50e6  # events a second, file to columns, one core
EXPORT_TARGET = 2e6  # calls a second
OF_TABLES = ("sqlite", "csv", "parquet")  # all that karst query has of each call
TABLES_TARGET = 1e6  # calls a second
REPORT_TARGET_SECONDS, REPORT_TARGET_BYTES = 10, 4 << 30


def parse_rate(output):
    found = re.search(r"^seconds ([0-9.]+) events ([0-9]+)", output, re.M)
    if not found:
        raise BenchError(f"no result in the output: {output!r}")
    return float(found.group(1)), int(found.group(2))


def make_trace(scratch, name, events, threads, shape):
    path = f"{scratch}/{name}.karst"
    progress(f"traces: making {name}")
    run_child([karst_tool("karst-trace-bench"), "make", path, events, threads, shape])
    progress("")
    return path


def decode_rows(scratch, events, rounds, notes):
    rows = []
    for shape in ("fib", "flat"):
        path = make_trace(scratch, f"decode-{shape}", events, 1, shape)

        def timed(what, trace=path):
            return lambda: parse_rate(run_child([karst_tool("karst-trace-bench"), what, trace]).output)[0]

        samples, failures = interleaved({"open": timed("open"), "decode": timed("decode")}, rounds, f"decode {shape}")
        os.remove(path)
        notes += [f"decode {shape}: {name} failed: {why}" for name, why in failures.items()]
        if failures:
            continue
        group = f"decode: {events / 1e6:g} M events, one thread, one core"
        opening, rebuilding = median(samples["open"]), median(samples["decode"])
        rows.append(Row(group, f"{shape}: open and check", events / opening / 1e6, "M events/s"))
        rows.append(Row(group, f"{shape}: rebuild calls", events / rebuilding / 1e6, "M events/s"))
        rate = events / (opening + rebuilding)
        rows.append(Row(group, f"{shape}: file to columns", rate / 1e6, "M events/s",
                        target=f">= {DECODE_TARGET / 1e6:g} M", met=rate >= DECODE_TARGET))
    return rows


def export_rows(scratch, events, rounds, notes):
    path = make_trace(scratch, "export", events, 2, "fib")
    sizes = {}

    def export(kind, to):
        def run():
            seconds = run_child([karst_tool("karst"), "export", path, "--to", kind, "-o", to]).seconds
            if os.path.isdir(to):
                sizes[kind] = sum(file.stat().st_size for file in Path(to).rglob("*") if file.is_file())
                shutil.rmtree(to)
            elif os.path.isfile(to):
                sizes[kind] = os.path.getsize(to)
                os.remove(to)
            return seconds
        return run

    kinds = ("chrome", "perfetto", "speedscope", "callgrind", "pprof", "firefox", "fxt", *OF_TABLES)
    runs = {kind: export(kind, f"{scratch}/export.{kind}") for kind in kinds}
    samples, failures = interleaved(runs, rounds, "export")
    os.remove(path)
    notes += [f"export: {name} failed: {why}" for name, why in failures.items()]
    rows = []
    for kind, values in samples.items():
        rate = events / 2 / median(values)
        note = f"{sizes[kind] / (events / 2):.0f} bytes a call" if kind in sizes else ""
        target = TABLES_TARGET if kind in OF_TABLES else EXPORT_TARGET
        rows.append(Row(f"export: {events / 2e6:g} M calls of two threads, whole command", f"to {kind}", rate / 1e6,
                        "M calls/s", target=f">= {target / 1e6:g} M", met=rate >= target, note=note))
    return rows


def report_rows(scratch, events, rounds, quick, notes):
    path = make_trace(scratch, "report", events, 2, "fib")
    peaks = []

    def run():
        child = run_child([karst_tool("karst"), "report", path, "--limit", "15"])
        peaks.append(child.peak_bytes)
        return child.seconds

    samples, failures = interleaved({"karst report": run}, min(rounds, 3), "report")
    size = os.path.getsize(path)
    os.remove(path)
    notes += [f"report: {name} failed: {why}" for name, why in failures.items()]
    if failures:
        return []
    group = f"report: {events / 1e6:g} M events of two threads, whole command, file of {size / 2**20:.0f} MiB"
    seconds, peak = median(samples["karst report"]), max(peaks)
    # The promise is about 100 M events; a quick run judges nothing.
    judged = not quick
    return [
        Row(group, "wall time", seconds, "s", target=f"< {REPORT_TARGET_SECONDS} s" if judged else "",
            met=seconds < REPORT_TARGET_SECONDS if judged else None),
        Row(group, "peak memory", peak / 2**30, "GiB",
            target=f"< {REPORT_TARGET_BYTES >> 30} GiB" if judged else "",
            met=peak < REPORT_TARGET_BYTES if judged else None),
    ]


def bench_traces(rounds, quick, scratch, notes):
    scale = 10 if quick else 1
    rows = decode_rows(scratch, 50_000_000 // scale, rounds, notes)
    rows += export_rows(scratch, 10_000_000 // scale, min(rounds, 3), notes)
    rows += report_rows(scratch, 100_000_000 // scale, rounds, quick, notes)
    return rows
