"""karst tail and karst run --live: what is printed while the program runs, against its trace and what it counted itself."""
import contextlib
import fcntl
import os
import pathlib
import re
import signal
import struct
import subprocess
import termios
import time
from collections import Counter, defaultdict

import support
from support import KARST, ROOT, TIMEOUT, TracedTest, build, main

INCLUDE = ("-I", str(ROOT / "include"))
LINE = re.compile(r" *(?P<time>-?\d+\.\d{6}) +(?P<tid>\d+) (?P<duration>[ .\w]{10}) (?P<begin>[ (<])(?P<end>[ !~=)>]) "
                  r"(?P<indent> *)(?P<text>.*)$")
HEAD = re.compile(r"# process (\d+) (\S+) thread (\d+) (.*)$")
MISSED = re.compile(r"\.\.\. (about )?([\d,]+) calls? not shown$")


class Line:
    """One line: kind is "begin", "end", "call", "note" or "missed"."""

    def __init__(self, text):
        match = LINE.match(text)
        assert match, text
        self.tid, self.level = int(match["tid"]), len(match["indent"]) // 2
        self.time, self.duration, self.marks = float(match["time"]), match["duration"].strip(), match["begin"] + match["end"]
        text = match["text"]
        self.missed = 0
        if missed := MISSED.match(text):
            self.kind, self.missed = "missed", int(missed[2].replace(",", ""))
        elif text.startswith("} "):
            self.kind, text = "end", text[2:]
        elif text.endswith(" {"):
            self.kind, text = "begin", text[:-2]
        else:
            self.kind = "call" if self.duration else "note"
        self.name = text


class Shown:
    """What was printed."""

    def __init__(self, text):
        self.lines, self.heads = [], []
        for line in text.splitlines():
            if head := HEAD.match(line):
                self.heads.append((int(head[1]), head[2], int(head[3]), head[4]))
            else:
                self.lines.append(Line(line))

    @property
    def calls(self):
        """Of those that began since the start."""
        return Counter(line.name for line in self.lines
                       if line.kind in ("begin", "call") and line.time >= 0 and line.marks[0] == " ")

    def trees(self):
        """By thread: names, indented, in order of their begin."""
        trees = defaultdict(list)
        for line in self.lines:
            if line.kind in ("begin", "call"):
                trees[line.tid].append("  " * line.level + line.name)
        return trees


def hears_interrupts():
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # what runs tests in the background ignores it, which is inherited


def number(text):
    return int(text.replace(",", ""))


def summary(err):
    """Calls shown, missed and overwritten, as the last line says."""
    found = [re.search(pattern, err) for pattern in (r"([\d,]+) calls? shown", r"([\d,]+) calls? came too fast",
                                                     r"about ([\d,]+) calls? (?:was|were) overwritten")]
    return [number(match[1]) if match else 0 for match in found]


class Tail(TracedTest):
    def program(self):
        return build("tail_program", "tail/program.cc", "-O1", "-pthread", "-fno-optimize-sibling-calls", *INCLUDE)

    def start(self, *arguments, options=(), command="run"):
        """The program, traced, which waits for a line; its own pid is self.pid."""
        self.trace = self.directory / "run.karst"
        output = ("--output", str(self.trace)) if command == "run" else ()
        sched = self.SCHED if command == "run" else ()
        self.run_process = subprocess.Popen([KARST, command, *output, *sched, *options, "--", self.program(), *arguments],
                                            cwd=self.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end_process, self.run_process)
        self.assertEqual(self.run_process.stdout.readline(), "ready\n")
        of_run = pathlib.Path(f"/proc/{self.run_process.pid}/task").glob("*/children")
        children = [int(c) for task in of_run for c in task.read_text().split()]
        (self.pid,) = [c for c in children if os.readlink(f"/proc/{c}/exe") == os.path.realpath(self.program())]

    def end_process(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def tail(self, *options):
        """A karst tail that has begun: the line of `main`, which is open, is there, unless the options leave it out."""
        out = self.directory / f"tail{len(list(self.directory.glob('tail*')))}"
        with open(out, "w", encoding="utf-8") as to:
            process = subprocess.Popen([KARST, "tail", str(self.pid), *options], stdout=to, stderr=subprocess.PIPE, text=True,
                                       preexec_fn=hears_interrupts)
        process.shown_in = out
        self.addCleanup(self.end_process, process)
        return process

    def wait_for(self, process, pattern):
        end = time.monotonic() + TIMEOUT
        while not re.search(pattern, process.shown_in.read_text(encoding="utf-8")):
            self.assertLess(time.monotonic(), end, pattern)
            self.assertIsNone(process.poll())
            time.sleep(0.01)

    def go(self):
        self.run_process.stdin.write("go\n")
        self.run_process.stdin.flush()

    def end(self, *tails):
        """Lets the program go and end; its output, and the lines of each tail."""
        out, err = self.run_process.communicate("go\n\n", timeout=TIMEOUT)
        self.assertEqual(self.run_process.returncode, 0, err)
        shown = []
        for tail in tails:
            _, tail.err = tail.communicate(timeout=TIMEOUT)
            self.assertEqual(tail.returncode, 0, tail.err)
            self.assertRegex(tail.err, r"process \d+ \(tail_program\) has ended")
            shown.append(Shown(tail.shown_in.read_text(encoding="utf-8")))
        return dict(line.split() for line in out.splitlines()), shown

    def assert_closed(self, shown):
        """Each call that has a line where it begins has one where it ends, in the right place."""
        stacks = defaultdict(list)
        for line in shown.lines:
            if line.kind in ("begin", "call"):
                self.assertEqual(line.level, len(stacks[line.tid]), line.name)
            if line.kind == "begin":
                stacks[line.tid].append(line.name)
            if line.kind == "end":
                self.assertEqual((line.level, line.name), (len(stacks[line.tid]) - 1, stacks[line.tid].pop()))
        self.assertEqual([stack for stack in stacks.values() if stack], [])

    def test_a_run_shows_each_call_of_its_trace(self):
        live = self.directory / "live"
        run = self.run_traced(self.program(), "paced", "40", options=[f"--live={live}"], input="go\n")
        shown = Shown(live.read_text(encoding="utf-8"))
        self.assertEqual(shown.calls, run.trace.counts)
        self.assertEqual(summary(run.err), [sum(run.trace.counts.values()), 0, 0])
        self.assert_closed(shown)
        self.assertEqual({(p, tid, name) for p, _, tid, name in shown.heads},
                         {(p["pid"], t["tid"], t["name"]) for p in run.trace.processes for t in p["threads"]})
        trees = shown.trees()
        for thread in run.trace.threads:
            self.assertEqual(trees[thread["tid"]], run.trace.tree("--thread", str(thread["tid"]))[1:])
        times = [line.time for line in shown.lines if line.kind in ("begin", "call", "note")]
        self.assertLess(sum(a > b for a, b in zip(times, times[1:])), len(times) / 10)  # threads: in order in each look
        thrown = [line for line in shown.lines if line.name.startswith("throwing")]
        self.assertEqual(Counter(line.marks[1] for line in thrown), {"!": 60, " ": 60})
        notes = [line for line in shown.lines if line.kind == "note" and line.name.startswith('"')]
        self.assertEqual({(line.name, line.level) for line in notes}, {('"a step"', trees_level(trees, "step") + 1)})
        logs = Counter(line.name for line in shown.lines if line.kind == "note" and not line.name.startswith('"'))
        self.assertEqual(logs, Counter({f"warning: round {n} of work": 3 for n in range(40)}))
        self.assertEqual(len(notes), shown.calls["step(int, char const*)"])

    def test_a_process_that_runs(self):
        self.start("paced", "40")
        tail = self.tail()
        self.wait_for(tail, r"main \{")
        counted, (shown,) = self.end(tail)
        calls = shown.calls
        for name, count in counted.items():
            self.assertEqual(sum(n for full, n in calls.items() if full.split("(")[0] == name), int(count), name)
        self.assertEqual(shown.lines[0].name, "main")
        self.assertLess(shown.lines[0].time, 0)
        self.assertEqual(shown.lines[-1].name, "main")
        self.assert_closed(shown)
        self.assertEqual(summary(tail.err), [sum(calls.values()), 0, 0])
        self.assertEqual({name for _, _, _, name in shown.heads}, {"tail_program", "worker0", "worker1", "worker2"})

    def test_what_options_leave_out(self):
        self.start("paced", "20")
        options = {"function": ["-f", "^round_of"], "not": ["--not-function", "^step"], "depth": ["-d", "2"],
                   "below": ["--depth", "1", "--depth", "^step:1"], "long": ["--min-duration", "1ms", "--no-notes"],
                   "thread": ["-t", "worker1"], "others": ["--not-thread", "worker1"], "quiet": ["--no-notes"],
                   "nothing": ["-f", "^no such"]}
        tails = {name: self.tail(*more) for name, more in options.items()}
        tails["all"] = self.tail()
        self.wait_for(tails["all"], r"main \{")
        self.wait_for(tails["depth"], r"main \{")
        self.wait_for(tails["below"], r"main \{")
        time.sleep(0.5)  # the others show nothing yet
        _, all_shown = self.end(*tails.values())
        shown = dict(zip(tails, all_shown))
        everything = shown["all"].calls
        named = {name: {call.split("(")[0]: n for call, n in s.calls.items()} for name, s in shown.items()}
        self.assertEqual(named["function"], {"round_of": 60, "step": 240, "leaf": 720, "throwing": 60})
        self.assertEqual({line.level for line in shown["function"].lines if line.name.startswith("round_of")}, {0})
        self.assertEqual(shown["not"].calls, Counter({call: n for call, n in everything.items()
                                                      if not re.match("step|leaf", call)}))
        self.assertLess(max(line.level for line in shown["depth"].lines), 2 + 1)
        self.assertNotIn("leaf", named["depth"])
        self.assertEqual((named["below"]["step"], named["below"]["leaf"]), (240, 720))
        self.assertNotIn("round_of", named["below"])
        self.assertNotIn("leaf", named["long"])
        self.assertEqual(named["long"]["pause_a_while"], 60)
        self.assert_closed(shown["long"])
        self.assertEqual((named["thread"]["leaf"], named["others"]["leaf"]), (240, 480))
        self.assertEqual({name for *_, name in shown["thread"].heads}, {"worker1"})
        self.assertEqual(shown["quiet"].calls, everything)
        self.assertEqual([line for line in shown["quiet"].lines if line.kind == "note"], [])
        self.assertEqual(shown["nothing"].lines, [])
        self.assertIn("no call was seen that the options let through", tails["nothing"].err)

    def test_too_many_calls_are_counted(self):
        self.start("fast", "6000000")
        tail = self.tail()
        self.wait_for(tail, r"main \{")
        _, (shown,) = self.end(tail)
        self.check_counts(tail, shown, 6_000_001)

    def check_counts(self, tail, shown, calls):
        """What was shown, what was missed and what was overwritten are all that were made."""
        told, missed, overwritten = summary(tail.err)
        self.assertEqual(told, sum(shown.calls.values()))
        self.assertEqual(missed + overwritten, sum(line.missed for line in shown.lines))
        gaps = sum(line.kind == "missed" for line in shown.lines)
        if overwritten:  # which calls began in a gap, or how full its last block was, nobody knows
            self.assertLessEqual(abs(told + missed + overwritten - calls), 260 * gaps)
        else:
            self.assertEqual(told + missed, calls)
        return missed, overwritten

    def test_what_was_overwritten_is_counted(self):
        self.start("fast", "1000000", options=["--memory", "1M"])
        tail = self.tail()
        self.wait_for(tail, r"main \{")
        os.kill(tail.pid, signal.SIGSTOP)
        self.go()
        self.assertEqual(self.run_process.stdout.readline(), "quick_leaf 1000000\n")
        os.kill(tail.pid, signal.SIGCONT)
        _, (shown,) = self.end(tail)
        _, overwritten = self.check_counts(tail, shown, 1_000_001)
        self.assertGreater(overwritten, 800_000)

    def test_threads_that_come_and_go_are_counted(self):
        live = self.directory / "live"
        whole = self.run_traced(self.program(), "churn", "3000", options=[f"--live={live}"], input="go\n")
        self.assertEqual(Shown(live.read_text(encoding="utf-8")).calls, whole.trace.counts)
        (of_main,) = [sum(whole.trace.counts_of("--thread", str(t["tid"])).values()) for t in whole.trace.threads[:1]]
        of_thread = (sum(whole.trace.counts.values()) - of_main) // 3000
        run = self.run_traced(self.program(), "churn", "3000", options=[f"--live={live}", "--memory", "256K"], input="go\n")
        shown = Shown(live.read_text(encoding="utf-8"))
        told, missed, overwritten = summary(run.err)
        gone = re.search(r"of ([\d,]+) threads? nothing was left", run.err)
        self.assertEqual(told, sum(shown.calls.values()))
        gone = of_thread * number(gone[1]) if gone else 0
        # Of those that were overwritten in part only a bound is known.
        left = of_main + 3000 * of_thread - told - missed - gone
        self.assertTrue(0 <= left <= 252 * sum(line.kind == "missed" for line in shown.lines) if overwritten else left == 0,
                        run.err)

    def test_calls_are_there_while_they_are_open(self):
        self.start("deep", "5")
        tail = self.tail("--width", "100")
        self.wait_for(tail, r"main \{")
        for level in range(5):
            self.go()
            self.wait_for(tail, rf"(?m)^.{{35}}{'  ' * (level + 1)}deeper \{{$")
        os.kill(self.pid, signal.SIGKILL)
        _, err = tail.communicate(timeout=TIMEOUT)
        self.assertEqual(tail.returncode, 0, err)
        self.assertIn("has ended", err)

    def test_an_interrupt_ends_karst_alone(self):
        self.start("paced", "1")
        for number in (signal.SIGINT, signal.SIGTERM):
            tail = self.tail()
            self.wait_for(tail, r"main \{")
            os.kill(tail.pid, number)
            _, err = tail.communicate(timeout=TIMEOUT)
            self.assertEqual((tail.returncode, err), (0, "karst: 0 calls shown\n"))
        counted, _ = self.end()
        self.assertEqual(counted["round_of"], "3")

    def test_a_reader_that_goes_away(self):
        self.start("paced", "20")
        tail = subprocess.Popen([KARST, "tail", str(self.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end_process, tail)
        self.assertRegex(tail.stdout.readline(), r"^# process ")
        tail.stdout.close()
        self.end()
        self.assertEqual((tail.wait(TIMEOUT), tail.stderr.read()), (1, ""))

    def on_terminal(self, columns, **environment):
        """What a tail of a run shows on a terminal."""
        self.start("paced", "3")
        master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        tail = subprocess.Popen([KARST, "tail", str(self.pid)], stdout=slave, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "TERM": "xterm", **environment})
        self.addCleanup(self.end_process, tail)
        os.close(slave)
        self.addCleanup(os.close, master)
        text = b""
        while b"main" not in text:
            text += os.read(master, 1 << 16)
        out, _ = self.run_process.communicate("go\n\n", timeout=TIMEOUT)
        self.assertIn("round_of 9", out)
        with contextlib.suppress(OSError):  # the terminal's end
            while more := os.read(master, 1 << 16):
                text += more
        tail.communicate(timeout=TIMEOUT)
        return text.decode().replace("\r", "")

    def test_a_terminal_has_colours_and_an_end(self):
        coloured = self.on_terminal(90)
        plain = re.sub(r"\x1b\[[\d;]*m", "", coloured)
        self.assertNotIn("\x1b", plain)
        self.assertLessEqual(max(map(len, plain.splitlines())), 90)
        colours = {tid: set(re.findall(rf"\x1b\[(\d+)m +{tid} \x1b", coloured)) for _, _, tid, _ in Shown(plain).heads}
        self.assertEqual(len(colours), 4)
        self.assertEqual([len(of_thread) for of_thread in colours.values()], [1] * 4)
        self.assertEqual(len(set.union(*colours.values())), 4)

    def test_a_terminal_without_colours(self):
        self.assertNotIn("\x1b", self.on_terminal(90, NO_COLOR="1"))

    def test_silence_is_explained(self):
        self.start("paced", "1", options=["--off"])
        tail = self.tail()
        self.assertIn("no traced function was called yet; tracing is off ('karst on ", tail.stderr.readline())
        os.kill(tail.pid, signal.SIGINT)
        self.assertIn("no traced function was called\n", tail.communicate(timeout=TIMEOUT)[1])
        self.end()

    def test_values_stand_at_their_calls(self):
        live = self.directory / "live"
        self.run_traced(self.program(), "paced", "2", input="go\n",
                        options=[f"--live={live}", "--args", "^step", "--returns", "^step"])
        shown = Shown(live.read_text(encoding="utf-8"))
        steps = [line for line in shown.lines if line.name.startswith("step")]
        self.assertEqual(Counter(line.name for line in steps if line.kind == "begin"),
                         {f'step(i={i}, what="step")': 6 for i in range(4)})
        self.assertEqual(Counter(line.name for line in steps if line.kind == "end"),
                         {f'step(i={i}, what="step") = {i + 1}': 6 for i in range(4)})

    def test_all_processes_of_a_run(self):
        program = build("tail_forks", "tail/forks.c", "-O1", compiler="karst-gcc")
        live = self.directory / "live"
        run = self.run_traced(program, "again", options=[f"--live={live}"])
        shown = Shown(live.read_text(encoding="utf-8"))
        self.assertEqual(len(shown.heads), 6)
        self.assertEqual(Counter(pid for pid, *_ in shown.heads), Counter(p["pid"] for p in run.trace.processes))
        self.assertEqual(shown.calls, run.trace.counts)

    def test_all_ways_out_of_calls(self):
        live = self.directory / "live"
        for name in ("contexts.c", "jumps.c", "caught.cc", "tail_calls.cc", "signals.cc", "threads.cc"):
            with self.subTest(name):
                compiler = "karst-gcc" if name.endswith(".c") else "karst-g++"
                program = build("tail_" + name.replace(".", "_"), "ways_out/" + name, "-O1", "-pthread", *INCLUDE, compiler=compiler)
                run = self.run_traced(program, options=[f"--live={live}"])
                self.assertEqual(Shown(live.read_text(encoding="utf-8")).calls, run.trace.counts)

    def test_a_run_prints_to_stderr(self):
        run = self.run_traced(self.program(), "paced", "2", options=["--live"], input="go\n")
        self.assertEqual(run.out.splitlines()[0], "ready")
        lines = [line for line in run.err.splitlines() if not line.startswith("karst: ")]
        self.assertEqual(Shown("\n".join(lines)).calls, run.trace.counts)

    def test_what_cannot_be(self):
        def refused(status, *arguments):
            done = subprocess.run([KARST, *arguments], capture_output=True, text=True, timeout=TIMEOUT)
            self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
            return done.stderr

        self.assertIn("there is no process 999999999", refused(1, "tail", "999999999"))
        self.assertIn("is not traced by Karst", refused(1, "tail", str(os.getpid())))
        self.assertIn("no traced process is called 'nobody here'", refused(1, "tail", "nobody here"))
        for depth in ("0", "x", "x:", ":3", "3x"):
            self.assertIn("a number of levels is needed", refused(2, "tail", "1", "--depth", depth))
        self.assertIn("--min-duration: '3' is not a time", refused(2, "tail", "1", "--min-duration", "3"))
        self.assertIn("cannot write /nowhere/x", refused(1, "run", "--live=/nowhere/x", "true"))
        self.start("paced", "1", command="count")
        self.assertIn("counts its calls only", refused(1, "tail", str(self.pid)))


def trees_level(trees, name):
    """The level that all calls of this function have."""
    (level,) = {(len(line) - len(line.lstrip())) // 2 for tree in trees.values() for line in tree
                if line.strip().startswith(name + "(")}
    return level


if __name__ == "__main__":
    main()
