"""Building and timing the benchmark's programs: interleaved rounds, medians, child processes' time and memory."""

import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
WORK = BUILD / "bench"
FIXTURES = ROOT / "bench" / "fixtures"


class BenchError(Exception):
    """Something that the user can put right; the message says how."""


def shortened(error):
    """The beginning of an error's text, for a note."""
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else text[:300] + "..."


@dataclasses.dataclass
class Row:
    """One line of the table. `ratio` is relative to what `ratio_to` names, measured in the same rounds."""

    group: str
    name: str
    value: float
    unit: str
    ratio: float | None = None
    ratio_to: str = ""
    target: str = ""
    met: bool | None = None
    note: str = ""


@dataclasses.dataclass
class Child:
    """How one child process ended."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    output: str
    errors: str


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}" if text else "\r\033[K", end="", file=sys.stderr, flush=True)


def karst_tool(name):
    """A tool or library of the build under measurement, which script/setup has made."""
    directory = os.environ.get("KARST_BUILD", BUILD)
    return pathlib.Path(directory) / ("lib" if name.endswith(".so") else "bin") / name


def scratch_directory():
    """A directory in memory if there is one: what is measured is the tracer, not the disk."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return tempfile.mkdtemp(prefix="karst-bench-", dir=base)


def compile_program(out, command, sources):
    """Compiles when a source, the command or the compiler is newer than `out`."""
    out = pathlib.Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    compiler = shutil.which(command[0])
    if compiler is None:
        raise BenchError(f"compiler {command[0]} not found")
    line = " ".join(map(str, command))
    stamp = out.with_name(out.name + ".command")
    # karst-gcc's parts lie in lib/karst beside its bin
    inputs = [*map(pathlib.Path, sources), pathlib.Path(compiler), FIXTURES / "timing.h",
              *pathlib.Path(compiler).parent.parent.glob("lib/karst/*")]
    fresh = out.exists() and stamp.exists() and stamp.read_text() == line
    if fresh and all(out.stat().st_mtime >= i.stat().st_mtime for i in inputs):
        return out
    command = list(map(str, command))
    is_source = [word.endswith((".c", ".cc", ".S")) for word in command]
    if "-c" not in command:  # in two steps, as builds do
        options = [word for word, skip in zip(command, is_source) if not skip and not word.endswith(".o") and not word.startswith("-l")]
        for i, source in enumerate(command):
            if is_source[i]:
                command[i] = str(out.with_name(f"{out.name}.{i}.o"))
                build([*options, "-c", source, "-o", command[i]], out)
    build([*command, "-o", str(out)], out)
    stamp.write_text(line)
    return out


def build(command, out):
    done = subprocess.run(command, capture_output=True, text=True, cwd=out.parent)
    if done.returncode != 0:
        raise BenchError(f"cannot build {out.name}: {shlex.join(command)}\n{done.stderr}")


def run_child(command, env=None, cwd=None, timeout=600):
    """Runs to the end; wall time, CPU time and the peak resident size of that child (and what it waited for)."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        begin = time.monotonic()
        child = subprocess.Popen(
            [str(c) for c in command], stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd,
            env={**os.environ, **(env or {})})
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.monotonic() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        result = Child(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, out.read(), err.read())
    if child.returncode != 0:
        line = " ".join(map(str, command))
        raise BenchError(f"{line} ended with {child.returncode}:\n{result.output}{result.errors}")
    return result


def recorded_calls(errors):
    """Kept and overwritten calls by `karst run`'s summary line; None when it wrote none."""
    line = re.search(r"^karst: .* ([\d,]+) calls? kept over .*$", errors, re.M)
    if not line:
        return None
    overwritten = re.search(r"about ([\d,]+) calls? overwritten", line.group(0))
    counts = [line.group(1)] + ([overwritten.group(1)] if overwritten else [])
    return sum(int(count.replace(",", "")) for count in counts)


def karst_run(scratch, flags, command, least_calls, env=None):
    """Runs a program under `karst run`. A run that should trace and recorded fewer than `least_calls` is an error:
    tracing nothing is fast."""
    trace = f"{scratch}/run.karst"
    child = run_child([karst_tool("karst"), "run", "--output", trace, "--no-source", *flags, *command], env=env)
    if os.path.exists(trace):
        os.remove(trace)
    calls = recorded_calls(child.errors)
    if least_calls > 0 and (calls is None or calls < least_calls):
        raise BenchError(f"{command[0]}: {calls} calls recorded, at least {least_calls} were made: {child.errors}")
    return child


def interleaved(variants, rounds, label):
    """Runs every variant once a round, so that a slow minute of the machine hits all of them alike.

    variants: name -> function returning a number. Returns name -> list of numbers. A variant that fails is dropped
    with its reason under the name `name` in the second result.
    """
    samples = {name: [] for name in variants}
    failures = {}
    for round_number in range(rounds):
        for name, measure in variants.items():
            if name in failures:
                continue
            progress(f"{label}: round {round_number + 1}/{rounds}, {name}")
            try:
                samples[name].append(measure())
            except BenchError as error:
                failures[name] = shortened(error)
    progress("")
    return {n: s for n, s in samples.items() if n not in failures}, failures


def median(samples):
    if not samples:
        raise BenchError("none of its runs was a measurement")
    return statistics.median(samples)
