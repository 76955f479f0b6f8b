"""What the end-to-end tests share: building programs with the wrappers, running them under karst, reading traces.

A script calls main(); `script.py TEST` runs one test method and ends with 77 when it was skipped. From the
environment: KARST_BIN (where karst and karst-g++ are), KARST_E2E_WORK (a directory to build in),
KARST_SOURCE_ROOT (the repository).
"""
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BIN = Path(os.environ["KARST_BIN"])
WORK = Path(os.environ["KARST_E2E_WORK"])
ROOT = Path(os.environ["KARST_SOURCE_ROOT"])
HERE = Path(__file__).resolve().parent
KARST = str(BIN / "karst")
WRAPPERS = ("karst-gcc", "karst-g++")
SKIPPED = 77
TIMEOUT = 120  # seconds a program may take before its test fails; never part of what is claimed

# The host's own settings must not steer the programs under test.
os.environ.pop("KARST_OPTIONS", None)
os.environ.pop("LD_PRELOAD", None)
os.environ["XDG_CACHE_HOME"] = str(WORK / "cache")


def newest(paths):
    return max((p.stat().st_mtime_ns for p in paths if p.is_file()), default=0)


def build(name, source, *flags, compiler="karst-g++", output=None, at_once=False):
    """Compiles test/e2e/SOURCE into WORK/programs/NAME unless it is there and newer; safe for tests run side by side.
    clang compiles and links in two steps, as builds do, unless `at_once`: its tables differ (docs/how-it-works.md)."""
    directory = WORK / "programs"
    directory.mkdir(parents=True, exist_ok=True)
    program = directory / (output or name)
    command = [str(BIN / compiler) if compiler in WRAPPERS else compiler]
    if compiler in ("karst-g++", "g++"):
        command.append("-std=c++17")
    commands = [[*command, "-g", str(HERE / source), *flags, "-o", str(program)]]
    if "karst-clang" in compiler and not at_once and "-c" not in flags:
        part = str(program) + ".part.o"
        options = [flag for flag in flags
                   if not flag.startswith(("-l", "-Wl,")) and not flag.endswith((".c", ".cc", ".S", ".o", ".a", ".so"))]
        commands = [[*command, "-g", "-c", str(HERE / source), *options, "-o", part],
                    [*command, "-g", part, *flags, "-o", str(program)]]
    stamp = directory / (program.name + ".command")
    with open(directory / (program.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        used = [HERE / source, *(HERE / source).parent.glob("*.h"), BIN / "karst-g++",
                *(BIN.parent / "lib" / "karst").glob("*")]
        fresh = (program.exists() and stamp.exists() and stamp.read_text() == repr(commands)
                 and program.stat().st_mtime_ns > newest(used))
        for command in [] if fresh else commands:
            made = subprocess.run(command, capture_output=True, text=True)
            if made.returncode != 0:
                raise AssertionError(f"{' '.join(command)} failed:\n{made.stderr}")
        stamp.write_text(repr(commands))
    return str(program)


class Trace:
    """A .karst file, as `karst` itself tells of it."""

    def __init__(self, path):
        self.path = path
        self._info = None
        self._report = None

    @staticmethod
    def _ask(*arguments):
        return subprocess.run([KARST, *arguments], check=True, capture_output=True, text=True, timeout=TIMEOUT).stdout

    @property
    def info(self):
        if self._info is None:
            self._info = json.loads(self._ask("info", "--format", "json", str(self.path)))
        return self._info

    @property
    def problems(self):
        return [(p["message"], p["count"]) for p in self.info["problems"]]

    @property
    def processes(self):
        return self.info["processes"]

    @property
    def threads(self):
        return [t for p in self.processes for t in p["threads"]]

    # As recorded: programs that log what they do have the tracer's cost in their times, too.
    def report(self, *options):
        return json.loads(self._ask("report", "--raw", "--format", "json", str(self.path), *options))["functions"]

    @property
    def counts(self):
        """Calls by function name, of all processes."""
        if self._report is None:
            self._report = self.report()
        counts = {}
        for f in self._report:
            counts[f["function"]] = counts.get(f["function"], 0) + f["calls"]
        return counts

    @property
    def counts_of_code(self):
        """The same without what an interpreter executes."""
        code = {f["function"] for f in self.report() if not f["module"].startswith("[")}
        return {name: calls for name, calls in self.counts.items() if name in code}

    def counts_of(self, *options):
        """The same for a selection: --process PID, --thread TID."""
        counts = {}
        for f in self.report(*options):
            counts[f["function"]] = counts.get(f["function"], 0) + f["calls"]
        return counts

    def tree(self, *options):
        """Lines of `karst tree --plain`."""
        return self._ask("tree", "--plain", str(self.path), *options).splitlines()

    def timed_tree(self, *options):
        return self._ask("tree", "--raw", str(self.path), *options).splitlines()


class Run:
    def __init__(self, done, path):
        self.status = done.returncode
        self.out = done.stdout
        self.err = done.stderr
        self.trace = Trace(path)
        self.written = path.exists()


class TracedTest(unittest.TestCase):
    maxDiff = None
    # Making room for states takes the kernel a tenth of a second a run, and many runs at once wait for each other. Tests
    # of states, and of plain runs, do without this.
    SCHED = ("--sched", "off")

    def setUp(self):
        WORK.mkdir(parents=True, exist_ok=True)
        self.directory = Path(tempfile.mkdtemp(prefix=self._testMethodName + ".", dir=WORK))
        self.directory.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def run_traced(self, *command, options=(), env=None, status=0, text=True, launcher=(), **more):
        """`karst run OPTIONS -- COMMAND` in the test's own directory; checks the status unless it is None."""
        path = self.directory / "trace.karst"
        path.unlink(missing_ok=True)  # one without calls would not take the place of an older one
        more.setdefault("stdin", None if "input" in more else subprocess.DEVNULL)
        if "input" in more:
            del more["stdin"]
        done = subprocess.run(
            [*launcher, KARST, "run", "--output", str(path), *self.SCHED, *options, "--", *map(str, command)],
            cwd=self.directory, env={**os.environ, **(env or {})}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=text, timeout=TIMEOUT, **more)
        run = Run(done, path)
        if status is not None:
            self.assertEqual(run.status, status, f"stdout: {run.out}\nstderr: {run.err}")
        return run

    def assert_sound(self, trace):
        """No event of the whole trace was in doubt."""
        self.assertEqual(trace.problems, [])
        self.assertTrue(trace.info["complete"])

    def assert_whole(self, trace):
        """Nothing was overwritten or lost, either."""
        self.assert_sound(trace)
        self.assertEqual(trace.info["overwritten_events"], 0, "memory= is too small for this test")
        self.assertEqual(trace.info["lost_events"], 0)

    def lines_of_karst(self, run):
        return [line for line in run.err.splitlines() if line.startswith("karst:")]


def main():
    if len(sys.argv) == 1:
        unittest.main()
    module = sys.modules["__main__"]
    suite = unittest.TestSuite()
    for each in unittest.defaultTestLoader.loadTestsFromModule(module):
        for test in each:
            if test._testMethodName == sys.argv[1]:
                suite.addTest(test)
    if suite.countTestCases() != 1:
        sys.exit(f"{sys.argv[1]}: no such test, or more than one")
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    for _, reason in result.skipped:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    sys.exit(0 if result.wasSuccessful() else 1)
