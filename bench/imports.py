"""How fast other tools' traces are read: `karst import` of a made-up program's calls, in each format of our exports."""

import os

import measure
from measure import Row, interleaved, karst_tool, median, run_child

CALLS = 2_000_000
CHROME_RATE = 100  # MB/s, of a file that is not packed
FORMATS = ("chrome", "speedscope", "perfetto")


def bench_imports(rounds, options, scratch, notes):
    calls = CALLS // 10 if options.quick else CALLS
    trace, back = f"{scratch}/imports.karst", f"{scratch}/imports.back.karst"
    measure.progress("imports: making a trace")
    run_child([karst_tool("karst-trace-bench"), "make", trace, 2 * calls, 2, "fib", 1])
    karst = karst_tool("karst")
    files = {form: f"{scratch}/imports.{form}" for form in FORMATS}
    for form, path in files.items():
        run_child([karst, "export", trace, "--to", form, "-o", path])
    sizes = {form: os.path.getsize(path) / 1e6 for form, path in files.items()}
    measure.progress("")
    runs = {form: (lambda path=path: run_child([karst, "import", path, "-o", back]).seconds)
            for form, path in files.items()}
    samples, failures = interleaved(runs, min(rounds, 5), "imports")
    for path in (trace, back, *files.values()):
        if os.path.exists(path):
            os.remove(path)
    notes += [f"imports: {name} failed: {why}" for name, why in failures.items()]
    group = f"imports: {calls / 1e6:g} M calls of two threads, whole command, wall time"
    rows = []
    for form in FORMATS:
        if form not in samples:
            continue
        rate = sizes[form] / median(samples[form])
        judged = form == "chrome" and not options.quick
        rows.append(Row(group, form, rate, "MB/s", target=f">= {CHROME_RATE} MB/s" if judged else "",
                        met=rate >= CHROME_RATE if judged else None,
                        note=f"{calls / median(samples[form]) / 1e6:.1f} M calls/s"))
    return rows
