#!/usr/bin/env python3
"""Programs that nobody here wrote, built by their own build systems with Karst, each function's calls against gcov's.

  script/soak programs [NAME...]      all, or those named; a table of what was tried, status 1 when a count differs

Sources come from Debian's source packages (npm for LevelDB) into build/third_party, builds go to build/programs; neither
is ever committed. The program is built once, with its build system's own variables set to Karst's wrappers and gcov's
flags; gcov's counters and the sleds then count the same runs. -fno-inline makes calls of everything that is a call in the
source; the flags but for the compiler's name are the comparison's need, not Karst's.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "test/e2e"), str(ROOT / "bench")]

from debian_source import SourceError, debian_source  # noqa: E402
from call_counts import Comparison, Gcov, Symbols, callgrind_places, different  # noqa: E402
from recipes import RECIPES  # noqa: E402

FLAGS = "-O1 -g -fno-inline -fno-optimize-sibling-calls --coverage -fprofile-update=atomic"


class ProgramError(Exception):
    """A program could not be had, built or run; the message says why."""


class Bench:
    """One program's directories and what its recipe may use."""

    def __init__(self, recipe, karst_bin, home, third_party, fresh):
        self.recipe = recipe
        self.bin = karst_bin
        self.third_party = third_party
        self.directory = home / recipe.name
        self.options = []  # of karst run, besides
        self.before = []  # a command that starts karst
        self.traces = []
        self.runs = []
        self.log = home / f"{recipe.name}.log"
        if fresh:
            shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.log.write_text("")

    @property
    def source(self):
        """A copy of the sources to build in, made on first use."""
        copy = self.directory / "source"
        if not copy.exists():
            recipe = self.recipe
            original = (debian_source(recipe.package, self.third_party, recipe.folder) if recipe.package
                        else self.third_party / recipe.folder)
            if not original.is_dir():
                raise ProgramError(f"{original} is missing; script/setup fetches it")
            shutil.copytree(original, copy, symlinks=True)
        return copy

    def environment(self, **more):
        environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", **more}
        for name in ("KARST_OPTIONS", "LD_PRELOAD"):
            environment.pop(name, None)
        return environment

    def command(self, *words, cwd=None, env=None, **more):
        """Runs one command; its output goes to the log. Fails on a status that is not 0."""
        words = [str(w) for w in words]
        with open(self.log, "a") as log:
            log.write(f"$ {' '.join(words)}\n")
            log.flush()
            done = subprocess.run(words, cwd=cwd or self.source, env=env or self.environment(), stdout=log, stderr=log,
                                  **{"stdin": subprocess.DEVNULL, **more}, check=False)
        if done.returncode != 0:
            raise ProgramError(f"{' '.join(words)[:300]}: status {done.returncode}, see {self.log}")

    def run(self, *words, cwd=None, env=None, stdin=None, memory="4G"):
        """Runs a program traced."""
        trace = self.directory / f"run-{len(self.traces)}.karst"
        options = ["--memory", memory, "--no-source", *self.options, "-o", trace]
        with open(stdin or os.devnull) as stream:
            self.command(*self.before, self.bin / "karst", "run", "--no-patch", *options, "--", *words, cwd=cwd or self.directory, env=env, stdin=stream)
        self.traces.append(trace)
        self.runs.append((words, cwd or self.directory, env, stdin))

    def run_under_callgrind(self, gcov, symbols):
        """The same runs again, counted by callgrind: calls by place."""
        total = {}
        for words, cwd, env, stdin in self.runs:
            out = self.directory / "callgrind.out"
            with open(stdin or os.devnull) as stream:
                self.command("valgrind", "--tool=callgrind", "--demangle=no", f"--callgrind-out-file={out}", "-q", *words,
                             cwd=cwd, env=env, stdin=stream)
            for place, count in callgrind_places(out, gcov, symbols).items():
                total[place] = total.get(place, 0) + count
        return total


class Arbitration:
    """Where gcov and karst differ, callgrind decides, for programs of one thread. gcov infers a function's count from the
    arcs that it instruments, which a setjmp that returns twice, and a jump to the function's first line, lead astray."""

    def __init__(self, bench, comparison, gcov, symbols):
        self.for_karst = []
        places = [p for p in {*comparison.expected, *comparison.seen}
                  if comparison.expected.get(p, 0) != comparison.seen.get(p, 0)]
        if not places or not bench.recipe.arbitrate or shutil.which("valgrind") is None:
            return
        third = bench.run_under_callgrind(gcov, symbols)
        for place in places:
            if third.get(place, 0) == comparison.seen.get(place, 0):
                self.for_karst += different(comparison, "gcov", {place: comparison.expected.pop(place, 0)},
                                            {place: comparison.seen.pop(place, 0)})


def karst_json(bench, what, trace, *options):
    return json.loads(subprocess.run([bench.bin / "karst", what, "--format", "json", *options, trace], check=True, capture_output=True,
                                     text=True).stdout)


def examine(bench):
    """Builds, runs and compares; (comparison, facts of the traces)."""
    recipe = bench.recipe
    recipe.build(bench, FLAGS)
    for old in bench.directory.rglob("*.gcda"):
        old.unlink()
    recipe.run(bench)
    report, facts = [], {"processes": 0, "threads": 0, "calls": 0, "open": 0, "problems": []}
    for trace in bench.traces:
        info = karst_json(bench, "info", trace)
        facts["processes"] += len(info["processes"])
        facts["threads"] += sum(len(p["threads"]) for p in info["processes"])
        facts["calls"] += info["calls"]
        facts["open"] += info["open_calls"]
        facts["problems"] += [p["message"] for p in info["problems"]]
        if info["overwritten_events"] or info["lost_events"]:
            raise ProgramError(f"{trace.name}: {info['overwritten_events']} events overwritten, {info['lost_events']} lost")
        report += karst_json(bench, "report", trace)["functions"]
    gcov = Gcov(bench.directory)
    symbols = Symbols(*recipe.binaries(bench))
    comparison = Comparison(report, gcov, symbols)
    facts["arbitrated"] = Arbitration(bench, comparison, gcov, symbols).for_karst
    return comparison, facts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(r.name for r in RECIPES))
    parser.add_argument("--karst", type=Path, default=ROOT / "build/bin", help="directory of karst and its wrappers")
    parser.add_argument("--work", type=Path, default=ROOT / "build/programs")
    parser.add_argument("--third-party", type=Path, default=ROOT / "build/third_party")
    parser.add_argument("--keep", action="store_true", help="build upon what an earlier run left")
    options = parser.parse_args()
    known = {r.name: r for r in RECIPES}
    for name in options.names:
        if name not in known:
            parser.error(f"there is no program {name}; there are: {', '.join(known)}")
    failed = False
    rows = []
    for recipe in [known[n] for n in options.names] or RECIPES:
        begin = time.time()
        try:
            missing = [tool for tool in recipe.tools if shutil.which(tool) is None]
            if missing:
                raise ProgramError(f"needs {', '.join(missing)}; see script/setup bench")
            bench = Bench(recipe, options.karst.resolve(), options.work.resolve(), options.third_party.resolve(), not options.keep)
            comparison, facts = examine(bench)
        except (ProgramError, SourceError) as error:
            print(f"{recipe.name}: {error}", flush=True)
            failed = True
            continue
        wrong = comparison.differences()
        print(f"{recipe.name}: {recipe.version(bench)}: "
              f"{'all equal' if not wrong else str(len(wrong)) + ' DIFFERENT'}: {comparison.summary()}; "
              f"{facts['processes']} processes, {facts['threads']} threads, {facts['calls']} calls, "
              f"{facts['open']} of them open; {time.time() - begin:.0f} s", flush=True)
        for line in facts["arbitrated"]:
            print(f"    {line}; callgrind counts as karst does")
        for line in wrong[:40] + facts["problems"]:
            print(f"    {line}")
        failed = failed or bool(wrong)
        rows.append(recipe.name)
    sys.exit(1 if failed or not rows else 0)


if __name__ == "__main__":
    main()
