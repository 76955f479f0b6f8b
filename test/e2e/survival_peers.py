"""How much of the finished calls uftrace, XRay and Karst have after the same faults: `script/soak faults peers`.

Each cell is the median of some runs of survival/program.cc, in per cent of what the program's own account has.
"""
import csv
import io
import re
import shutil
import statistics
import subprocess
import tempfile

import survival
from support import HERE, WORK, build

ROUNDS = 3
CALLS = 20000
SHOWN = ("none", "_exit", "SIGKILL", "SIGSEGV", "SIGABRT", "uncaught exception", "stack overflow", "deadlock",
         "SIGKILL from outside", "memory group", "tracer killed")


def count_steps(rows):
    """Calls by step; `rows` are pairs of a function's name and its calls."""
    counts = [0] * survival.STEPS
    for name, calls in rows:
        found = re.search(r"step<(\d+)>", name)
        if found:
            counts[int(found[1])] += int(calls)
    return counts


class Uftrace(survival.Run):
    title = "uftrace"

    def executable(self):
        return build("survival-pg", "survival/program.cc", "-std=c++20", "-O1", "-pthread", "-pg", compiler="g++")

    def prefix(self):
        return ["uftrace", "record", "--no-libcall", "-d", str(self.directory / "data")], {}

    def found(self):
        done = subprocess.run(["uftrace", "report", "--no-pager", "--demangle=full", "-d", str(self.directory / "data"), "-f", "call"],
                              capture_output=True, text=True)
        lines = (line.split(None, 1) for line in done.stdout.splitlines())
        return count_steps((parts[1], parts[0]) for parts in lines if len(parts) == 2 and parts[0].isdigit())


class XRay(survival.Run):
    title = "XRay, flight data recorder"
    name = "survival-xray-fdr"
    sources = (str(HERE / "survival/xray_start.cc"),)
    settings = ""

    def executable(self):
        return build(self.name, "survival/program.cc", *self.sources, "-std=c++20", "-O1", "-pthread",
                     "-fxray-instrument", "-fxray-instruction-threshold=1", compiler="clang++-14")

    def prefix(self):
        return [], {"XRAY_OPTIONS": f"xray_logfile_base={self.directory}/xray. {self.settings}"}

    def found(self):
        total = [0] * survival.STEPS
        for log in self.directory.glob("xray.*"):
            done = subprocess.run(["llvm-xray-14", "account", "-k", "-f", "csv", "-m", self.executable(), str(log)],
                                  capture_output=True, text=True)
            rows = csv.DictReader(io.StringIO(done.stdout))
            counts = count_steps((row.get("function", ""), row.get("count", 0)) for row in rows)
            total = [a + b for a, b in zip(total, counts)]
        return total


class XRayBasic(XRay):
    title = "XRay, basic mode"
    name = "survival-xray"
    sources = ()
    settings = "patch_premain=true xray_mode=xray-basic xray_naive_log_func_duration_threshold_us=0"


class Karst(survival.Run):
    title = "Karst, `karst run`"
    way_name = "run"

    def prefix(self):
        self.traces_by = next(way for way in survival.WAYS if way.name == self.way_name)
        return self.traces_by.start(self)

    def found(self):
        return self.counts(self.traces_by.traces(self))


class KarstFile(Karst):
    title = "Karst, `--file`"
    way_name = "run --file"


TOOLS = (Uftrace, XRay, XRayBasic, Karst, KarstFile)


def share(tool, kind, name):
    """Per cent of the finished calls that are found; None if the tool has no process of its own to kill."""
    if name == "tracer killed" and issubclass(tool, XRay):
        return None
    fault = next(f for f in survival.FAULTS if f.name == name.replace("tracer", "karst run"))
    with tempfile.TemporaryDirectory(dir=WORK) as directory:
        run = tool(kind, fault, None, 0.01, CALLS, directory)
        run.way = survival.Way(tool.title, lambda run: run.prefix(), None)
        run.go()
        finished = sum(run.account.finished)
        return 100 * min(1, sum(run.found()) / finished) if finished else None


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    tools = [tool for tool in TOOLS if shutil.which("uftrace") or tool is not Uftrace]
    for kind in ("single", "threads"):
        print(f"\n| {kind} | " + " | ".join(tool.title for tool in tools) + " |")
        print("| --- |" + " --- |" * len(tools))
        for name in SHOWN:
            if name == "memory group" and not survival.can_confine():
                continue
            cells = []
            for tool in tools:
                shares = [share(tool, kind, name) for _ in range(ROUNDS)]
                cells.append("-" if None in shares else f"{statistics.median(shares):.1f}")
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
