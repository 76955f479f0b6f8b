"""Packed events: bytes in the file, how fast they are read, and what `karst run --all` costs a program."""

import json
import os
import shutil

import measure
from measure import Row, interleaved, karst_tool, median, run_child

MOST_BYTES = 1.5  # an event, all of the file
LEAST_SPEED = 0.8  # of reading and rebuilding raw events


def sqlite_script(scratch, rows):
    path = f"{scratch}/packed.sql"
    with open(path, "w", encoding="utf-8") as file:
        file.write("create table t(a integer primary key, b text);\n"
                   f"with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows})\n"
                   "insert into t select i, hex(i * 7919 % 104729) from n;\n"
                   "create index tb on t(b);\nselect count(*) from (select b from t group by substr(b, 1, 4));\n")
    return path


def programs_of(scratch, quick, notes):
    """Name -> (options of karst run, command)."""
    found = {}
    if shutil.which("sqlite3"):
        script = sqlite_script(scratch, 3_000 if quick else 30_000)
        found["sqlite3, patched"] = ("--library=libsqlite3*",), ["sqlite3", ":memory:", f".read {script}"]
    demo = measure.BUILD / "demo" / "leveldb" / "leveldb-workload"
    if demo.is_file():
        found["LevelDB, built for it"] = (), [str(demo), "--threads", "1", "--batches", "2000" if quick else "20000"]
    else:
        notes.append("packed: LevelDB is not there: script/demo builds it")
    compiler = run_child(["gcc", "-print-prog-name=cc1"]).output.strip()
    source = f"{scratch}/packed.c"
    with open(source, "w", encoding="utf-8") as file:
        file.write("".join(f"int f{i}(int x) {{ for (int k = 0; k < x; ++k) x += k % {i + 2}; return x; }}\n"
                           for i in range(30 if quick else 300)))
    found["gcc's cc1, patched"] = (), [compiler, "-O2", "-quiet", source, "-o", "/dev/null"]
    return found


def read_seconds(trace):
    tool = karst_tool("karst-trace-bench")
    return sum(float(run_child([tool, what, trace]).output.split()[1]) for what in ("open", "decode"))


def bench_packed(rounds, options, scratch, notes):
    rows = []
    karst = karst_tool("karst")
    for name, (flags, command) in programs_of(scratch, options.quick, notes).items():
        raw, packed, every = (f"{scratch}/packed-{kind}.karst" for kind in ("raw", "small", "all"))
        record = [karst, "run", "--sched", "off", "--budget", "off", *flags]
        for path, more in ((raw, ["--raw-events"]), (packed, [])):
            run_child([*record, *more, "--memory", "1G", "-o", path, "--", *command])
        events = {path: json.loads(run_child([karst, "info", "--json", path]).output)["events"] for path in (raw, packed)}
        size = {path: os.path.getsize(path) / events[path] for path in (raw, packed)}
        group = f"packed: {name}, {events[packed] / 1e6:.1f} M events"
        judged = not options.quick
        rows.append(Row(group, "bytes an event", size[packed], "bytes", size[packed] / size[raw], "raw",
                        target=f"<= {MOST_BYTES}" if judged else "", met=size[packed] <= MOST_BYTES if judged else None))
        reading, failures = interleaved({"raw": lambda: read_seconds(raw) / events[raw],
                                         "packed": lambda: read_seconds(packed) / events[packed]}, min(rounds, 5), name)
        if not failures:
            speed = median(reading["raw"]) / median(reading["packed"])
            rows.append(Row(group, "file to columns", 1e-6 / median(reading["packed"]), "M events/s", speed, "raw",
                            target=f">= {LEAST_SPEED} x" if judged else "", met=speed >= LEAST_SPEED if judged else None))
        runs = {kind: (lambda more=more: run_child([*record, *more, "-o", every, "--", *command]).seconds)
                for kind, more in (("newest", []), ("all", ["--all"]))}
        costs, more_failures = interleaved(runs, min(rounds, 5), f"{name}, --all")
        notes += [f"packed: {kind} failed: {why}" for kind, why in {**failures, **more_failures}.items()]
        if not more_failures:
            facts = json.loads(run_child([karst, "info", "--json", every]).output)
            rows.append(Row(group, "karst run --all, whole command", median(costs["all"]), "s",
                            median(costs["all"]) / median(costs["newest"]), "newest",
                            note=f"{facts['overwritten_events']} events overwritten"))
        for path in (raw, packed, every):
            if os.path.exists(path):
                os.remove(path)
    return rows
