"""One seed: its program is built twice, plain and by Karst's wrapper, and run in each way; Wrong says what differs."""
import csv
import json
import os
import random
import re
import shlex
import shutil
import subprocess
from collections import Counter

from live_control import DONE, Control, has_ended
from live_toggle import RUNTIME
from support import BIN, HERE, KARST, TIMEOUT, Trace
from cxx_program import Program
import csmith_program
import ways

PLAIN_TIMEOUT = 5  # csmith's programs do not always end
class Unfit(Exception):
    """This seed tells nothing: the compiler fails without Karst, or the program does not end."""


class Wrong(Exception):
    """What Karst did to the program, or says of it wrongly."""


class Endless(Wrong):
    """A command did not end."""


def log_of(output):
    """(calls, whether exactly so many) of each function, as the program logged them."""
    lines = re.finditer(r"^calls (\S+) (exact|most) (\d+)$", output, re.MULTILINE)
    return {m[1]: (int(m[3]), m[2] == "exact") for m in lines}


def base_name(name):
    """A function's name as the log has it: no parameters, no suffix of a copy that the compiler made."""
    name = name.removeprefix("__regcall3__")  # a calling convention that clang puts into names
    name = name.split("(")[0].split(" [")[0]
    return re.sub(r"(\.(lto_priv|llvm|constprop|isra|part|avx2|default|\d+)\b)+.*$", "", name)


def wrong_counts(log, counts, exact):
    """What differs between the program's log and Karst's counts."""
    # An IFUNC's resolver, which chooses between a function's clones, may have the function's own name.
    resolvers = {name.split(" [")[0] for name in counts if "[clone .avx2" in name}
    seen = Counter()
    for name, calls in counts.items():
        if ".resolver" in name or name in resolvers:
            continue
        seen[base_name(name)] += calls
    return [f"{name}: {'' if exact or sure else 'at most '}{calls} calls, Karst has {seen[name]}"
            for name, (calls, sure) in log.items() if (seen[name] != calls if exact or sure else seen[name] > calls)]


class Examined:
    """One seed in a directory of its own."""

    def __init__(self, seed, asked, directory):
        self.way = ways.choose(seed, asked)
        self.seed = seed
        self.random = random.Random(f"examination of {seed}")
        self.directory = directory
        self.commands = []
        self.met = {}  # what the trace had

    def run(self, *words, timeout=TIMEOUT, env=None):
        env = env or {}
        words = [str(word) for word in words]
        variables = [f"{name}={shlex.quote(value)}" for name, value in env.items()]
        self.commands.append(" ".join([*variables, shlex.join(words)]))
        try:
            return subprocess.run(words, cwd=self.directory, env={**os.environ, **env}, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, errors="replace", timeout=timeout)
        except subprocess.TimeoutExpired:
            raise Endless(f"{shlex.join(words)} did not end within {timeout} s") from None

    def write(self):
        if self.way.program == "csmith":
            files = csmith_program.files(self.seed, self.way.exact, self.directory)
        else:
            files = Program(self.seed).files()
            shutil.copy(HERE / "generated" / "prelude.h", self.directory)
        for name, text in files.items():
            (self.directory / name).write_text(text)
        self.sources = [name for name in files if not name.endswith(".h")]

    def build(self):
        way = self.way
        try:
            failed = self.make("plain", way.command)
        except Endless:
            raise Unfit("the compiler takes too long") from None
        if failed:
            raise Unfit(f"{way.command} fails without Karst: {failed[-300:]}")
        variable = "KARST_CC" if way.program == "csmith" else "KARST_CXX"
        failed = self.make("traced", BIN / way.wrapper, f"--karst-method={way.method}", env={variable: way.command})
        if failed:
            raise Wrong(f"{way.wrapper} fails where {way.command} does not: {failed[-1000:]}")

    def make(self, program, *compiler, env=None):
        """Builds it, with a library of its own if the way has one. What the compiler says if it fails."""
        sources, libraries = list(self.sources), []
        if self.way.has_library:
            libraries = [f"lib{program}.so"]
            done = self.run(*compiler, *self.way.flags(), "-shared", sources.pop(), "-o", *libraries, env=env)
            if done.returncode != 0:
                return done.stderr
        link = [*sources, *libraries, "-Wl,-rpath,$ORIGIN", "-o", program]
        done = self.run(*compiler, *self.way.flags(), *link, env=env)
        return done.stderr if done.returncode != 0 else ""

    def compare(self, what, done, expected):
        if (done.returncode, done.stdout) != expected:
            got, right = done.stdout.splitlines(), expected[1].splitlines()
            at = next((n for n, pair in enumerate(zip(got, right)) if pair[0] != pair[1]), 0)
            raise Wrong(f"{what}: status {done.returncode} for {expected[0]}, line {at + 1}: {got[at:at + 2]} for "
                        f"{right[at:at + 2]}; {done.stderr[-500:]}")

    def plain(self):
        try:
            done = self.run("./plain", timeout=PLAIN_TIMEOUT)
        except Endless:
            raise Unfit("the program does not end") from None
        if not 0 <= done.returncode <= 100:
            raise Unfit(f"the program fails without Karst: status {done.returncode}")
        return done.returncode, done.stdout

    def traced(self, expected):
        options = self.way.tracing.split()
        done = self.run(KARST, "run", "--sched", "off", "--no-source", "--memory", "256M", "-o", "trace.karst",
                        *options, "--", "./traced")
        self.compare("traced", done, expected)
        trace = Trace(self.directory / "trace.karst")
        self.met = {what: trace.info[what] for what in ("calls", "unwound_calls", "jumped_calls", "tail_calls")}
        if trace.info["overwritten_events"] or "--min-duration" in options:
            return  # the log cannot be the trace's
        wrong = wrong_counts(log_of(expected[1]), trace.counts, self.way.exact)
        if not self.way.loses_exits:
            wrong += [f"{message} ({count})" for message, count in trace.problems]
            if trace.info["open_calls"] or not trace.info["complete"]:
                wrong.append(f"{trace.info['open_calls']} calls have no exit")
        if wrong:
            raise Wrong("trace: " + "; ".join(wrong))

    def patched(self, expected):
        """The plain program, whose functions are patched as it is loaded, and those of its library."""
        done = self.run(KARST, "run", "--sched", "off", "--no-source", "--memory", "256M", "--budget", "off",
                        "--min-instructions", "0", "--library", "libplain.so", "-o", "patched.karst",
                        *self.way.tracing.split(), "--", "./plain")
        self.compare("patched", done, expected)
        trace = Trace(self.directory / "patched.karst")
        self.met["patched_calls"] = trace.info["calls"]
        if trace.info["overwritten_events"] or "--min-duration" in self.way.tracing:
            return
        alone = self.left_alone()
        # By what -finstrument-functions records, some programs are sure of calls that the compiler inlines here.
        is_sure = self.way.has_calls_as_written or not self.way.exact
        log = {name: (calls, sure and is_sure) for name, (calls, sure) in log_of(expected[1]).items() if name not in alone}
        wrong = wrong_counts(log, trace.counts, self.way.has_calls_as_written)
        wrong += [f"{message} ({count})" for message, count in trace.problems]
        if trace.info["open_calls"] or not trace.info["complete"]:
            wrong.append(f"{trace.info['open_calls']} calls have no exit")
        if wrong:
            raise Wrong("patched: " + "; ".join(wrong))

    def left_alone(self):
        """Names as the log has them."""
        names = set()
        for file in ["plain", *(["libplain.so"] if self.way.has_library else [])]:
            done = self.run(KARST, "places", "--json", "--min-instructions", "0", file)
            if done.returncode != 0:
                raise Wrong(f"places: {done.stderr}")
            names.update(base_name(f["name"]) for f in json.loads(done.stdout)["functions"])
        return names

    def counted(self, expected):
        done = self.run(KARST, "count", "--format", "csv", "-o", "counts.csv", "--", "./traced")
        self.compare("counted", done, expected)
        counts = Counter()
        with open(self.directory / "counts.csv", newline="") as rows:
            for row in csv.DictReader(rows):
                counts[row["name"]] += int(row["calls"])
        wrong = wrong_counts(log_of(expected[1]), counts, self.way.exact)
        if wrong:
            raise Wrong("counts: " + "; ".join(wrong))

    def switched(self, test, switches):
        """Tracing goes off and on, of all and of single functions, while the program repeats its work."""
        test.directory = self.directory
        self.commands.append(f"LD_PRELOAD={RUNTIME} KARST_OPTIONS=memory=4M ./traced on  # and karst off, on, off ...")
        child = test.start("./traced", "on")
        try:
            control = Control(child.pid)
            for turn in range(switches):
                which = self.random.randrange(max(1, control.function_count)) if turn % 2 else None
                for on in (False, True):
                    if which is not None:
                        control.set_function(which, on)
                    if (control.request(5) if which is not None else control.switch(on, 5)) not in (DONE, None):
                        raise Wrong("switching was refused")
                if has_ended(child.pid):
                    break
        except (AssertionError, OSError, ValueError) as error:
            if child.poll() is None and not has_ended(child.pid):
                raise Wrong(f"switched: {error}") from None
        out, err = child.communicate(timeout=TIMEOUT)
        return subprocess.CompletedProcess([], child.returncode, out, err)

    def examine(self, test, switches):
        missing = self.way.missing()
        if missing:
            raise Unfit(f"{missing} is not installed")
        self.write()
        self.build()
        expected = self.plain()
        self.compare("with idle sleds", self.run("./traced"), expected)
        self.traced(expected)
        if self.way.kind != "static":
            self.patched(expected)
        if self.random.random() < 0.3:
            self.counted(expected)
        self.compare("switched", self.switched(test, switches), (expected[0], expected[1].splitlines(True)[0]))
