"""What is left of a program that ends badly: program x fault x moment x way to the trace, by chance, from a seed.

    survival.py                    the short form, as CI has it
    survival.py RUNS [SEED]        script/soak faults

Each program (survival/program.cc) keeps an account of the calls that it has finished in a file of its own. A host is
harmed when it ends otherwise than without Karst. An event is lost when the account has a call that the trace lacks.
"""
import collections
import csv
import io
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from modules_support import library
from support import BIN, KARST, WORK, TracedTest, build, main

LIBRARY = BIN.parent / "lib" / "libkarst.so.0"
SHORT = 30
STEPS = 16
ENDLESS = 1 << 40
PATIENCE = 30  # seconds until a run is taken to hang
KINDS = ("single", "threads", "forks", "library", "exceptions", "signals")


def program():
    return build("survival", "survival/program.cc", "-std=c++20", "-O1", "-pthread")


class Account:
    def __init__(self, path):
        self.path = path

    def words(self):
        data = self.path.read_bytes() if self.path.exists() else b""
        count = 2 * STEPS + 3
        return struct.unpack_from(f"{count}q", data) if len(data) >= 8 * count else (0,) * count

    finished = property(lambda self: self.words()[:STEPS])
    before = property(lambda self: self.words()[STEPS:2 * STEPS])
    process = property(lambda self: self.words()[-3])
    struck = property(lambda self: self.words()[-2])
    ended = property(lambda self: self.words()[-1])

    def wait_for(self, what):
        until = time.monotonic() + PATIENCE
        while not getattr(self, what):
            if time.monotonic() > until:
                return False
            time.sleep(0.0002)
        return True


# ---- faults: what is done from outside, if the program does not do it to itself ----------------------------------


def kill_at(run):
    time.sleep(run.moment)
    os.kill(run.account.process, signal.SIGKILL)


def stop_and_kill(run):
    time.sleep(run.moment)
    os.kill(run.account.process, signal.SIGSTOP)
    time.sleep(0.002)
    run.while_stopped()
    os.kill(run.account.process, signal.SIGKILL)


def kill_hanging(run):
    run.account.wait_for("struck")
    time.sleep(0.002)
    run.while_stopped()
    os.kill(run.account.process, signal.SIGKILL)


def kill_karst(run):
    time.sleep(run.moment)
    run.child.kill()
    run.account.wait_for("ended")


Fault = collections.namedtuple("Fault", "name core outside ways", defaults=(False, None, None))
CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "uncaught exception", "stack overflow")
FAULTS = (
    Fault("none"), Fault("SIGKILL"), *(Fault(name, core=True) for name in CRASHES),
    Fault("_exit"),
    Fault("processor time", core=True), Fault("address space", core=True), Fault("memory group"),
    Fault("SIGKILL from outside", outside=kill_at), Fault("SIGSTOP, then SIGKILL", outside=stop_and_kill),
    Fault("deadlock", outside=kill_hanging), Fault("karst run killed", outside=kill_karst, ways=("run", "run --file")),
    Fault("full disk", ways=("run", "run --file", "file=")),
)
# A second each, by the kernel's clock: one in a short form is enough.
SLOW = ("processor time",)
# What a fault leaves nothing of, by the nature of the way; the host must be unharmed all the same.
NOTHING_LEFT = {("run", "karst run killed"), ("run", "full disk"), ("run --file", "full disk"), ("file=", "full disk")}


# ---- ways to the trace: how the program is started, and what makes a trace of what it left -----------------------


class Way:
    def __init__(self, name, start, traces, takes=lambda fault, kind: True, core=False, stopped=None):
        self.name, self.start, self.traces, self.takes = name, start, traces, takes
        self.core, self.stopped = core, stopped  # a core is wanted; what is done while the process is stopped


def karst(run, *command):
    return subprocess.run([KARST, *map(str, command)], cwd=run.directory, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=PATIENCE)


def start_under_run(*options):
    return lambda run: ([KARST, "run", "--sched", "off", "--no-source", "--memory", "128M", *options,
                         "-o", str(run.output), "--"], {})


def start_preloaded(options):
    return lambda run: ([], {"LD_PRELOAD": str(LIBRARY), "KARST_OPTIONS": options.format(directory=run.directory)})


def written(run):
    return [run.output] if run.output.exists() else []


def recovered(pattern):
    def traces(run):
        made = []
        for n, left in enumerate(sorted(run.directory.glob(pattern))):
            trace = run.directory / f"recovered-{n}.karst"
            done = karst(run, "recover", left, "--no-source", "-o", trace)
            run.said.append(done.stderr)
            if done.returncode == 0:
                made.append(trace)
        return made
    return traces


WAYS = (
    Way("run", start_under_run(), written),
    Way("run --file", start_under_run("--file", "arena.%p"), lambda run: written(run) or recovered("arena.*")(run)),
    Way("file=", start_preloaded("memory=128M,file={directory}/arena.%p"), recovered("arena.*")),
    # These two are of the process that ended alone, so not for programs whose children have calls of their own.
    Way("core", start_preloaded("memory=128M"), recovered("core*"),
        lambda fault, kind: fault.core and kind != "forks" and cores_are_written_here(), core=True),
    Way("on-crash=1", start_preloaded("memory=128M,on-crash=1"), lambda run: sorted(run.directory.glob("*.karst")),
        lambda fault, kind: fault.name in CRASHES and kind != "forks"),
    # Of a process that is stopped, before it is killed.
    Way("snapshot", start_preloaded("memory=128M"), written,
        lambda fault, kind: fault.outside in (stop_and_kill, kill_hanging) and kind != "forks",
        stopped=lambda run: karst(run, "snapshot", run.account.process, "--no-source", "-o", run.output)),
)


def cores_are_written_here():
    return Path("/proc/sys/kernel/core_pattern").read_text().strip() in ("core", "core.%p")


# ---- one run ------------------------------------------------------------------------------------------------------


class Run:
    def __init__(self, kind, fault, way, moment, calls, directory):
        self.kind, self.fault, self.way, self.moment = kind, fault, way, moment
        self.calls = calls if fault.outside is None or fault.name == "deadlock" else ENDLESS
        if fault.name == "karst run killed":
            self.calls = 5 * calls  # in all some 40 MB of history, which fits
        self.directory = Path(directory)
        self.disk = self.directory / "disk"
        self.output = (self.disk if fault.name == "full disk" else self.directory) / "trace.karst"
        self.account = Account(self.directory / "account")
        self.said = []
        self.before = None  # what was finished when the trace's moment came, if that was not the end

    def executable(self):
        return program()

    def while_stopped(self):
        if self.way is not None and self.way.stopped is not None:
            self.before = self.account.finished
            self.said.append(self.way.stopped(self).stderr)

    def go(self):
        """Returns what the outside sees: status, output, errors that are not Karst's; or why it hangs."""
        before, environment = self.way.start(self) if self.way else ([], {})
        command = [*before, self.executable(), self.kind, self.fault.name, str(self.calls), str(self.account.path)]
        confine = lambda: None
        if self.way is not None and self.way.core:
            confine = lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
        if self.fault.name == "full disk":
            self.disk.mkdir()
            environment = {k: v.replace(f"{self.directory}/arena", f"{self.disk}/arena")
                           for k, v in environment.items()}
            command = ["unshare", "-m", "sh", "-c", f"mount -t tmpfs -o size=64k none {self.disk} && exec \"$@\"", "sh",
                       "env", *(f"{k}={v}" for k, v in environment.items()), *command]
            environment = {}
        if self.fault.name == "memory group":
            group = Path("/sys/fs/cgroup/memory") / f"karst-{os.getpid()}"
            group.mkdir(exist_ok=True)
            (group / "memory.limit_in_bytes").write_text(str(300 << 20))
            confine = lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
        self.child = subprocess.Popen(command, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, preexec_fn=confine, start_new_session=True,
                                      env={**os.environ, "SURVIVAL_LIBRARY": library("first"), **environment})
        try:
            if self.fault.outside is not None and self.account.wait_for("process"):
                self.fault.outside(self)
            out, err = self.child.communicate(timeout=PATIENCE)
        except (subprocess.TimeoutExpired, ProcessLookupError) as why:
            os.killpg(self.child.pid, signal.SIGKILL)
            self.child.communicate()
            return f"hangs, or was not there: {why}"
        finally:
            if self.fault.name == "memory group":
                time.sleep(0.01)
                group.rmdir()
        status = self.child.returncode
        lines = err.splitlines()
        self.said += [line for line in lines if line.startswith("karst:")]
        if self.fault.name == "karst run killed":
            return self.account.ended, out
        return (status if status >= 0 else 128 - status, out, [line for line in lines if not line.startswith("karst:")])

    def counts(self, traces):
        counts = [0] * STEPS
        for trace in traces:
            for row in csv.DictReader(io.StringIO(karst(self, "report", "--format", "csv", trace).stdout)):
                name = row["function"]
                if name.startswith("step<"):
                    counts[int(name[5:name.index(">")])] += int(row["calls"])
        return counts


# ---- many ---------------------------------------------------------------------------------------------------------


class Tally:
    def __init__(self):
        self.runs = self.harmed = self.possible = self.recovered = self.lost = self.invented = 0


class Campaign:
    def __init__(self, seed, say=print):
        self.random = random.Random(seed)
        self.seed, self.say = seed, say
        self.alone = {}
        self.by_fault = {}
        self.bad = []

    def cells(self):
        for fault in FAULTS:
            if fault.name in ("memory group", "full disk") and not can_confine():
                continue
            for way in WAYS:
                if fault.ways is not None and way.name not in fault.ways:
                    continue
                for kind in KINDS:
                    if way.takes(fault, kind):
                        yield kind, fault, way

    def plan(self, runs):
        """All cells in an order by chance, again and again; in a short form each fault comes once before the rest."""
        cells = list(self.cells())
        chosen = []
        while len(chosen) < runs:
            self.random.shuffle(cells)
            if not chosen:
                first = {cell[1].name: cell for cell in cells}
                chosen += first.values()
                if runs <= 100:
                    cells = [cell for cell in cells if cell[1].name not in SLOW]
            chosen += cells
        return chosen[:runs]

    def one(self, kind, fault, way, moment=None):
        moment = self.random.uniform(0, 0.03) if moment is None else moment
        calls = self.random.randrange(1, 20000)
        with tempfile.TemporaryDirectory(dir=WORK) as directory:
            if (kind, fault.name) not in self.alone:
                with tempfile.TemporaryDirectory(dir=WORK) as other:
                    plain = fault if fault.name != "karst run killed" else FAULTS[0]
                    seen = Run(kind, plain, None, moment, calls, other).go()
                self.alone[kind, fault.name] = seen if fault.name != "karst run killed" else (1, seen[1])
            run = Run(kind, fault, way, moment, calls, directory)
            seen = run.go()
            tally = self.by_fault.setdefault(fault.name, Tally())
            tally.runs += 1
            what = f"{kind}, {fault.name}, {way.name}, {moment * 1e6:.0f} us, {calls} calls"
            if seen != self.alone[kind, fault.name]:
                tally.harmed += 1
                self.bad.append(f"harmed: {what}: {seen}, alone {self.alone[kind, fault.name]}; {run.said}")
                return
            if (way.name, fault.name) in NOTHING_LEFT:
                return
            tally.possible += 1
            finished = run.account.finished
            before = run.before or (run.account.before if way.name == "on-crash=1" else finished)
            traces = way.traces(run)
            if not traces:
                self.bad.append(f"no trace: {what}: {run.said}")
                return
            tally.recovered += 1
            counts = run.counts(traces)
            lost = sum(max(0, f - c) for f, c in zip(before, counts))
            invented = sum(max(0, c - f - 1) for f, c in zip(finished, counts))
            tally.lost += lost
            tally.invented += invented
            if lost or invented:
                self.bad.append(f"lost {lost}, invented {invented}: {what}: {before} {counts}; {run.said}")

    def go(self, runs):
        """True if no host was harmed, and nothing that could be had was lost."""
        self.say(f"{runs} runs, seed {self.seed}")
        for n, cell in enumerate(self.plan(runs)):
            if n != 0 and n % 50 == 0:
                self.say(f"{n} runs, {len(self.bad)} bad")
            self.one(*cell)
        self.say(f"{'fault':24}{'runs':>6}{'harmed':>8}{'traces':>12}{'lost':>6}")
        total = Tally()
        for name, tally in sorted(self.by_fault.items()):
            self.row(name, tally)
            for field in vars(total):
                setattr(total, field, getattr(total, field) + getattr(tally, field))
        self.row("all", total)
        for each in self.bad[:20]:
            self.say(each)
        return not self.bad

    def row(self, name, tally):
        traces = f"{tally.recovered} of {tally.possible}"
        self.say(f"{name:24}{tally.runs:6}{tally.harmed:8}{traces:>12}{tally.lost:6}")


def can_confine():
    return os.geteuid() == 0 and os.access("/sys/fs/cgroup/memory/cgroup.procs", os.W_OK)


class Survival(TracedTest):
    def test_programs_that_end_badly(self):
        lines = []
        self.assertTrue(Campaign(int(time.time()), lines.append).go(SHORT), "\n".join(lines))

    def test_children_whose_arenas_lie_in_files_need_no_karst_run(self):
        """It is killed at once: most children are forked when nobody hears of them any more."""
        campaign = Campaign(1, lambda line: None)
        fault, way = (next(each for each in table if each.name == name)
                      for table, name in ((FAULTS, "karst run killed"), (WAYS, "run --file")))
        for _ in range(4):
            campaign.one("forks", fault, way, moment=0)
        self.assertEqual(campaign.bad, [])

    def test_what_is_lost_or_harmed_is_noticed(self):
        with_gaps = Way("gaps", start_under_run("--not-functions", "step<0>*"), written)
        campaign = Campaign(1, lambda line: None)
        campaign.one("single", FAULTS[1], with_gaps)
        self.assertIn("lost", campaign.bad[0])
        without = Way("nothing", start_preloaded("memory=128M"), written)
        campaign.one("single", FAULTS[1], without)
        self.assertIn("no trace", campaign.bad[1])
        harmful = Way("harmful", lambda run: (["sh", "-c", '"$@" || exit 1', "sh"], {}), written)
        campaign.one("single", FAULTS[2], harmful)
        self.assertIn("harmed", campaign.bad[2])


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        WORK.mkdir(parents=True, exist_ok=True)
        seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 31)
        sys.exit(0 if Campaign(seed).go(int(sys.argv[1])) else 1)
    main()
