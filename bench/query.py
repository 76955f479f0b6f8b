"""How fast SQL over a trace is: whole commands on a synthetic trace; and, as a peer, DuckDB over a CSV of its calls."""

import os
import subprocess

import measure
from measure import Row, interleaved, karst_tool, median, run_child

CALLS = 20_000_000
# (what, SQL, seconds that it may take at 20 million calls)
QUESTIONS = (
    ("count and sum by function", "SELECT function, count(*), sum(duration_ns) FROM {} GROUP BY function", 3),
    ("a filter", "SELECT count(*) FROM {} WHERE duration_ns > 100000", 0.5),
    ("99th percentile by function", "SELECT function, quantile_disc(duration_ns, 0.99) FROM {} GROUP BY function", 4),
)
PARQUET_RATE, PARQUET_BYTES = 4e6, 12


def bench_query(rounds, options, scratch, notes):
    quick, peers = options.quick, options.peers
    calls = CALLS // 10 if quick else CALLS
    trace, table, parquet = (f"{scratch}/query.{end}" for end in ("karst", "csv", "parquet"))
    measure.progress("query: making a trace")
    run_child([karst_tool("karst-trace-bench"), "make", trace, 2 * calls, 2, "fib", 1])
    measure.progress("")
    ask = [karst_tool("karst"), "query", trace]
    runs = {what: (lambda sql=sql: run_child([*ask, sql.format("calls")]).seconds) for what, sql, _ in QUESTIONS}
    sizes = []

    def write_parquet():
        seconds = run_child([*ask, "--format", "parquet", "-o", parquet, "SELECT * FROM calls"]).seconds
        sizes.append(os.path.getsize(parquet))
        return seconds

    runs["parquet"] = write_parquet
    if peers:
        with open(table, "w", encoding="utf-8") as out:
            subprocess.run([karst_tool("karst"), "calls", trace, "--format", "csv"], stdout=out, check=True)
        for what, sql, _ in QUESTIONS:
            of_csv = sql.format(f"read_csv('{table}')")
            runs[f"{what}: DuckDB over CSV"] = lambda of_csv=of_csv: run_child([*ask, "--allow-files", of_csv]).seconds
    samples, failures = interleaved(runs, min(rounds, 3), "query")
    for path in (trace, table, parquet):
        if os.path.exists(path):
            os.remove(path)
    notes += [f"query: {name} failed: {why}" for name, why in failures.items()]
    group = f"query: SQL over {calls / 1e6:g} M calls of two threads, whole command, wall time"
    rows = []
    for what, _, most in QUESTIONS:
        if what not in samples:
            continue
        seconds = median(samples[what])
        judged = not quick  # the promises are about 20 million calls
        rows.append(Row(group, what, seconds, "s", target=f"< {most} s" if judged else "",
                        met=seconds < most if judged else None))
        peer = samples.get(f"{what}: DuckDB over CSV")
        if peer:
            rows.append(Row(group, f"{what}: DuckDB over CSV", median(peer), "s", ratio=median(peer) / seconds,
                            ratio_to="karst query"))
    if "parquet" in samples:
        rate, size = calls / median(samples["parquet"]), sizes[-1] / calls
        rows.append(Row(group, "all columns to Parquet", rate / 1e6, "M calls/s",
                        target=f">= {PARQUET_RATE / 1e6:g} M, <= {PARQUET_BYTES} bytes",
                        met=rate >= PARQUET_RATE and size <= PARQUET_BYTES if not quick else None,
                        note=f"{size:.1f} bytes a call"))
    return rows
