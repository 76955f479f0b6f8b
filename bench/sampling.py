"""What it costs to sample a program that was built without Karst, beside perf: CPU time of all that runs for it."""

import pathlib
import shutil

import measure
from measure import karst_tool, run_child
from programs import leveldb_program, ratio_rows

RATES = (1000, 10000)


def bench_sampling(rounds, quick, scratch, remarks):
    program = leveldb_program("plain", "g++")
    arguments = ["--threads", "2", "--batches", "3000" if quick else "30000"]
    env = {"TMPDIR": scratch}

    def of(*before):
        child = run_child([*before, program, *arguments], cwd=scratch, env=env)
        return {"wall time": child.seconds, "CPU time with the tool's": child.cpu_seconds}

    def karst(*options):
        return lambda: of(karst_tool("karst"), "run", "--sched", "off", "--no-patch", *options, "-o",
                          pathlib.Path(scratch) / "sampled.karst", "--")

    def perf(rate):
        return lambda: of("perf", "record", "-q", "-e", "cpu-clock", "-c", str(10**9 // rate), "--call-graph",
                          "dwarf,16384", "-o", pathlib.Path(scratch) / "perf.data", "--")

    runs = {"not instrumented": of}
    for rate in RATES:
        runs[f"karst run --sample {rate}"] = karst("--sample", str(rate))
    if shutil.which("perf") is None:
        remarks.append("sampling: perf (linux-perf) is not installed")
    else:
        runs["perf record, 1000 with stacks, unread"] = perf(RATES[0])
    return ratio_rows("sampling LevelDB, 2 writers", runs, rounds, remarks)
