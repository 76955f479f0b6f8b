"""Every way out of a function by several threads or processes at once (script/soak: eight), while tracing is switched off and on.

What is left must be true: a call that shows no sign of a switch has exactly the calls in it that the program's own tree
has, and of all others each is below a call that it is below there. KARST_LIVE_SECONDS (1): how long, in all.

Run by `script/soak live`: on a machine with a hundred threads waiting for two processors each switch takes its time.
"""
import os
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import ways_out_random  # noqa: E402
from live_control import DONE, Control  # noqa: E402
from support import KARST, TIMEOUT, TracedTest, Trace, build, main  # noqa: E402
from ways_out import FLAGS, PIE, STEADY, STEADY_GCC, sources  # noqa: E402

SECONDS = float(os.environ.get("KARST_LIVE_SECONDS", "1"))
AT_ONCE = 8 if SECONDS >= 10 else 3
MOST_SECONDS = 2  # of one run: the log of switches has room for 65,536
# What these do is the process's own: static data, handlers, alternate stacks.
OF_A_PROCESS = {"contexts.c", "faults.cc", "jumps.c", "signals.cc", "threads.cc"}
IN_PIECES = {"coroutines.cc"}  # calls are shown in pieces, whose callers may have been left out
STACKS = {"contexts.c"}  # calls there are shown in pieces, too, and what was before a time without tracing is not known
UNSURE = ("cut", "open", "begun before", "switched", "resumed")


def node_of(line):
    """(depth, name, signs) of a line of `karst tree --plain --marks`."""
    name, _, signs = line.strip().partition("  [")
    name = re.sub(r"\(.*\)$", "", name.replace("(anonymous namespace)::", ""))
    return (len(line) - len(line.lstrip(" "))) // 2, "main" if name == "corpus_main" else name, signs.rstrip("]")


class Shape:
    """The calls of trees: of each what is in it, and who is inside of whom."""

    def __init__(self, lines):
        self.nodes = []  # (name, signs, parent)
        self.whole = []  # all that is in it, as text
        path = []
        for line in lines:
            if line.startswith("#"):
                path = []
                continue
            depth, name, signs = node_of(line)
            del path[depth:]
            self.nodes.append((name, signs, path[-1] if path else None))
            self.whole.append([])
            path.append(len(self.nodes) - 1)
            for level, outer in enumerate(path):
                self.whole[outer].append((depth - level, name, signs))

    def inside(self):
        """(outer, inner) names."""
        pairs = set()
        for name, _, parent in self.nodes:
            while parent is not None:
                pairs.add((self.nodes[parent][0], name))
                parent = self.nodes[parent][2]
        return pairs


class Truth:
    def __init__(self, lines):
        shape = Shape(lines)
        self.names = {name for name, _, _ in shape.nodes}
        self.whole = {tuple(whole) for whole in shape.whole}
        self.inside = shape.inside()

    def untruths(self, lines, in_pieces=False):
        """What is wrong with a tree, and how many of its calls are known to be whole."""
        shape = Shape(lines)
        wrong, whole = [], 0
        for (name, signs, parent), content in zip(shape.nodes, shape.whole):
            if name not in self.names:
                wrong.append(f"there is no {name}")
            elif parent is not None and (shape.nodes[parent][0], name) not in self.inside:
                wrong.append(f"{name} in {shape.nodes[parent][0]}")
            elif not in_pieces and not any(sign in signs for sign in UNSURE):
                whole += 1
                if tuple(content) not in self.whole:
                    wrong.append(f"{name} [{signs}]: {content}")
        return wrong, whole


class Program:
    """A program under `karst run`, which somebody toggles as fast as it goes until it is told to end."""

    def __init__(self, test, path, command, memory):
        self.test, self.path = test, path
        self.toggles = 0
        self.over = False
        self.fault = None
        self.karst = subprocess.Popen([KARST, "run", "--memory", memory, "--no-source", "--output", str(path), "--",
                                       *map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, cwd=test.directory)
        test.addCleanup(self.kill)

    def kill(self):
        self.over = True
        if self.karst.poll() is None:
            self.karst.send_signal(signal.SIGKILL)
        self.karst.communicate()

    def toggle(self):
        self.thread = threading.Thread(target=self._toggle)
        self.thread.start()

    def _toggle(self):
        try:
            children = []
            while not children and self.karst.poll() is None:
                children = Path(f"/proc/{self.karst.pid}/task/{self.karst.pid}/children").read_text().split()
            control = Control(int(children[0]), timeout=TIMEOUT)
            while not self.over and self.karst.poll() is None:
                for on in (False, True):
                    outcome = control.switch(on, wait=1)
                    if outcome not in (DONE, None):  # None: it has ended, or has no processor
                        self.fault = f"outcome {outcome}"
                        return
                self.toggles += 1
                time.sleep(0.0005)
        except (AssertionError, OSError, IndexError) as error:
            if self.karst.poll() is None:
                self.fault = repr(error)

    def end(self):
        self.over = True
        self.thread.join(TIMEOUT)
        out, err = self.karst.communicate(timeout=TIMEOUT)
        self.test.assertEqual((self.karst.returncode, self.fault), (0, None), out + err)
        return out


class LiveWaysOut(TracedTest):
    def again(self, source):
        """The program that does what `source` does over and over."""
        cxx = source.suffix == ".cc"
        flags = ["-O2", *PIE, *STEADY, *STEADY_GCC, *FLAGS.get(source.name, []), "-pthread",
                 *(["-std=c++20"] if cxx else []), f'-DCORPUS="../ways_out/{source.name}"']
        return build(f"again.{source.stem}", "live/again.cc" if cxx else "live/again.c", *flags,
                     compiler="karst-g++" if cxx else "karst-gcc")

    def check(self, program, truth, source):
        trace = Trace(program.path)
        known = ["missing within"]  # of some thread a block was kept that is older than others: a gap
        if source.name in STACKS and trace.info["overwritten_events"]:
            known.append("returns that fit no call")  # on a stack whose calls were overwritten
        self.assertEqual([m for m, _ in trace.problems if not any(part in m for part in known)], [])
        wrong, whole = truth.untruths(trace.tree("--marks"), source.name in IN_PIECES | STACKS)
        self.assertEqual(wrong[:5], [])
        return whole

    def toggled(self, source, seconds):
        """So many calls are known to be whole."""
        threads, processes = (1, AT_ONCE) if source.name in OF_A_PROCESS else (AT_ONCE, 1)
        truth = Truth(source.with_suffix(".tree").read_text().splitlines())
        binary = self.again(source)
        programs = [Program(self, self.directory / f"{source.stem}.{i}.karst", [binary, threads], "512K")
                    for i in range(processes)]
        for program in programs:
            self.assertEqual(program.karst.stdout.readline(), "ready\n")
            program.toggle()
        end = time.monotonic() + seconds
        while time.monotonic() < end or any(p.toggles < 2 and not p.fault for p in programs):
            time.sleep(0.01)
        whole = 0
        for program in programs:
            program.end()
            whole += self.check(program, truth, source)
        return whole, sum(program.toggles for program in programs)

    def corpus(self, chosen):
        end = time.monotonic() + SECONDS
        share = min(MOST_SECONDS, SECONDS / len(chosen))
        whole = dict.fromkeys((source.name for source in chosen), 0)
        toggles = 0
        while True:
            for source in chosen:
                with self.subTest(source=source.name):
                    some, times = self.toggled(source, share)
                    whole[source.name] += some
                    toggles += times
            if time.monotonic() > end:
                break
        self.assertGreater(sum(whole.values()), 0)
        if SECONDS >= 10:
            print(f"{toggles} times off and on; calls known to be whole: {whole}")

    def test_the_corpus_by_threads(self):
        self.corpus([source for source in sources() if source.name not in OF_A_PROCESS])

    def test_the_corpus_by_processes(self):
        self.corpus([source for source in sources() if source.name in OF_A_PROCESS])

    def test_random_programs(self):
        program = ways_out_random.program("-O2")
        end = time.monotonic() + SECONDS
        first = 5000
        whole = toggles = 0
        while True:
            run = Program(self, self.directory / "random.karst", [program, first, 96], "64M")
            run.toggle()
            out, err = run.karst.communicate(timeout=TIMEOUT)
            run.over = True
            run.thread.join(TIMEOUT)
            self.assertEqual((run.karst.returncode, run.fault), (0, None), err)
            truth = ways_out_random.by_thread(out.splitlines())
            trace = Trace(run.path)
            self.assertEqual(trace.problems, [])
            for name, tree in ways_out_random.by_thread(trace.tree("--marks")).items():
                if not name.startswith("seed-"):
                    continue  # the main thread, and threads whose name came while nothing was traced
                wrong, some = Truth(truth[name]).untruths(tree)
                self.assertEqual(wrong[:5], [], name)
                whole += some
            toggles += run.toggles
            first += 96
            if time.monotonic() > end:
                break
        self.assertGreater(whole, 0)
        self.assertGreater(toggles, 0)

    def test_an_untruth_is_noticed(self):
        truth = Truth(["# t", "main", "  a", "    b  [unwound]", "  c"])
        for right in (["main", "  a", "    b  [unwound]", "  c"], ["main  [cut]", "  b  [unwound]"], ["a  [cut]"], ["c", "c"],
                      ["a  [cut]", "  b  [cut, open]", "main  [cut, begun before]", "  c"]):
            self.assertEqual(truth.untruths(right)[0], [], right)
        for wrong in (["x"], ["a"], ["a", "  b"], ["b"], ["main", "  a", "    b  [unwound]"], ["c", "  a  [cut]"],
                      ["main  [cut]", "  a  [cut]", "    c"]):
            self.assertNotEqual(truth.untruths(wrong)[0], [], wrong)


if __name__ == "__main__":
    main()
