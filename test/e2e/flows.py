"""Flows: what leads from call to call, in whatever thread, and C++20 coroutines, against what programs log of them."""
import json
import subprocess
from collections import defaultdict
from pathlib import Path

import support
from support import BIN, KARST, ROOT, TracedTest, build, main

INCLUDE = ("-I", str(ROOT / "include"))
SLEPT_NS = 10_000_000


def karst(*arguments, status=0):
    done = subprocess.run([KARST, *map(str, arguments)], capture_output=True, text=True, timeout=support.TIMEOUT)
    if done.returncode != status:
        raise AssertionError(f"karst {arguments} ended with {done.returncode}, not {status}: {done.stderr}")
    return done.stderr if status else done.stdout


def flows_of(path, *options):
    return json.loads(karst("flows", path, "--json", *options))["flows"]


def short(name):
    return name.split("(")[0]


class Flows(TracedTest):
    def said(self):
        """A run of the program of flows that it says, and what it logged: steps in order, for each flow."""
        run = self.run_traced(build("flows_said", "flows/said.cc", "-O1", "-pthread", *INCLUDE, compiler="karst-g++"))
        self.assert_whole(run.trace)
        truth, going = [], {}
        for line in run.out.splitlines():
            flow, function, tid, last = line.split()
            if flow not in going:
                truth.append((int(flow), []))
                going[flow] = truth[-1][1]
            going[flow].append((function, int(tid)))
            if last == "1":
                del going[flow]
                truth[-1 if truth[-1][0] == int(flow) else self.last_of(truth, int(flow))][1].append("ends")
        return run.trace.path, truth

    @staticmethod
    def last_of(truth, flow):
        return max(i for i, (number, _) in enumerate(truth) if number == flow)

    def test_said_ones_are_as_the_program_logs_them(self):
        path, truth = self.said()
        found = [(f["id"], [(short(s["call"]), s["tid"]) for s in f["steps"]] + (["ends"] if f["ended"] else []))
                 for f in flows_of(path, "--sort", "begin")]
        self.assertEqual(len(truth), 301)
        self.assertEqual(found, truth)
        # The greatest number is one as well; it never ends.
        self.assertEqual(found[0], (2**64 - 1, [("make", found[0][1][0][1])]))

    def test_said_ones_in_text_csv_and_the_filters(self):
        path, truth = self.said()
        text = karst("flows", path)
        self.assertIn("301 flows, between two steps p50 ", text)
        self.assertRegex(text, "(make|change) > (change|store)")
        steps = karst("flows", path, "--id", "7")
        self.assertEqual(steps.count("flow 7: "), 3)
        self.assertIn("after the last", steps)
        rows = karst("flows", path, "--format", "csv").splitlines()
        self.assertEqual(rows[0], "pid,flow,id,coroutine,begin_ns,duration_ns,ended,step_count,threads,between_ns,"
                                  "longest_ns,where")
        self.assertEqual(len(rows), 302)
        stored = flows_of(path, "-f", "^store")
        self.assertEqual(len(stored), 300)
        longest = [f["longest_ns"] for f in stored]
        self.assertEqual(longest, sorted(longest, reverse=True))
        self.assertIn("passes all filters", karst("flows", path, "--min-duration", "10s", status=1))
        self.assertIn("has no flow 4711", karst("flows", path, "--id", "4711", status=1))
        self.assertIn("'x7'", karst("flows", path, "--id", "x7", status=2))
        # The tree has them where they were said.
        tree = karst("tree", path)
        self.assertIn("step of flow 7\n", tree)
        self.assertIn("last step of flow 7\n", tree)

    def test_said_ones_are_arrows_in_exports(self):
        path, truth = self.said()
        arrows = sum(len([s for s in steps if s != "ends"]) - 1 for _, steps in truth)
        out = self.directory / "flows.json"
        karst("export", path, "--to", "chrome", "-o", out)
        events = [e for e in json.loads(out.read_text())["traceEvents"] if e.get("cat") == "flow"]
        starts = {e["id"]: e for e in events if e["ph"] == "s"}
        ends = {e["id"]: e for e in events if e["ph"] == "f"}
        self.assertEqual(len(starts), arrows)
        self.assertEqual(starts.keys(), ends.keys())
        for number, start in starts.items():
            self.assertLessEqual(start["ts"], ends[number]["ts"])
            self.assertEqual(start["name"], ends[number]["name"])
        # Of a range those alone that lie in it.
        at = sorted(s["begin_ns"] for f in flows_of(path) for s in f["steps"])[450]
        inside = sum(a["begin_ns"] < at and b["begin_ns"] < at
                     for f in flows_of(path) for a, b in zip(f["steps"], f["steps"][1:]))
        karst("export", path, "--to", "chrome", "--range", f"..{at}ns", "-o", out)
        some = [e for e in json.loads(out.read_text())["traceEvents"] if e.get("cat") == "flow" and e["ph"] == "s"]
        self.assertAlmostEqual(len(some), inside, delta=2)  # ranges are in ticks
        self.assertLess(len(some), arrows)

    def coroutines(self, program):
        run = self.run_traced(program)
        self.assert_whole(run.trace)
        self.check_coroutines(run.trace.path, run.out)
        return run.trace.path

    def check_coroutines(self, path, out):
        truth = []
        for line in out.splitlines():
            function, frame, resumed, longest, destroyed = line.split()
            truth.append((function, int(frame, 16), int(resumed), int(longest), destroyed == "1"))
        self.assertEqual(len(truth), 48)
        found = {}
        for flow in flows_of(path, "--sort", "begin"):
            self.assertTrue(flow["coroutine"])
            found.setdefault((short(flow["flow"].split(" [")[0]), flow["id"]), []).append(flow)
        expected = defaultdict(list)
        for told in truth:
            expected[told[:2]].append(told)
        self.assertEqual({at: len(flows) for at, flows in found.items()},
                         {at: len(told) for at, told in expected.items()})
        # The first part is a resumption as well where the function that makes the coroutine calls it (gcc), and part of
        # that function where it is inlined there (clang, -O2): one way for all coroutines of a function.
        first = {}
        for at, told in expected.items():
            for (function, _, resumed, longest, destroyed), flow in zip(told, found[at]):
                steps = flow["steps"]
                self.assertIn(first.setdefault(function, len(steps) - resumed), (0, 1), (at, flow))
                self.assertEqual(len(steps), resumed + first[function], (at, flow))
                self.assertEqual(flow["ended"], destroyed, (at, flow))
                # The program measures from within one step to before the next one: a busy machine may stop it in either.
                # Of those that begin at once it measures also what follows the first part, where that is no step.
                if longest < SLEPT_NS or (function != "lazy" and first[function] == 0):
                    continue
                times = [after["after_ns"] + before["duration_ns"] for before, after in zip(steps, steps[1:])]
                self.assertTrue(times, (at, flow))
                self.assertGreaterEqual(max(times), longest - 50_000, (at, flow))

    def test_coroutines_of_gcc(self):
        for level in ("-O0", "-O2"):
            with self.subTest(level=level):
                program = build("flows_gcc" + level, "flows/coroutines.cc", level, "-g", "-std=c++20", "-pthread",
                                compiler="karst-g++")
                self.coroutines(program)

    def test_coroutines_of_clang(self):
        for level in ("-O0", "-O2"):
            with self.subTest(level=level):
                program = build("flows_clang" + level, "flows/coroutines.cc", level, "-g", "-std=c++20", "-pthread",
                                "-fcoroutines-ts", compiler=str(BIN / "karst-clang++"))
                self.coroutines(program)

    def test_coroutines_in_every_command(self):
        program = build("flows_gcc-O2", "flows/coroutines.cc", "-O2", "-g", "-std=c++20", "-pthread",
                        compiler="karst-g++")
        path = self.coroutines(program)
        self.assertIn("48 coroutines resumed ", karst("flows", path))
        self.assertIn("(coroutine frame=0x", karst("tree", path))
        out = self.directory / "coroutines.json"
        karst("export", path, "--to", "chrome", "-o", out)
        events = [e for e in json.loads(out.read_text())["traceEvents"] if e.get("cat") == "coroutine"]
        flows = flows_of(path)
        self.assertEqual(len(events), 2 * sum(len(f["steps"]) - 1 for f in flows))
        # Asked not to, karst notes none.
        off = self.directory / "off.karst"
        karst("run", "--coroutines=none", "-o", off, program)
        self.assertIn("has no flows", karst("flows", off, status=1))
        self.assertIn("all or none is needed", karst("run", "--coroutines=some", program, status=2))

    def test_a_program_as_it_is(self):
        """Its functions are patched where they are; those that resume coroutines as well."""
        for compiler, ends in ((("g++-12", "-O1"), False), (("clang++-14", "-O2", "-fcoroutines-ts"), True)):
            with self.subTest(compiler=compiler):
                program = self.directory / compiler[0]
                subprocess.run([*compiler, "-g", "-std=c++20", "-pthread", ROOT / "test/e2e/flows/coroutines.cc", "-o",
                                program], check=True)
                path = self.directory / (compiler[0] + ".karst")
                out = subprocess.run([KARST, "run", "--budget", "off", "-o", path, program], check=True,
                                     capture_output=True, text=True, timeout=support.TIMEOUT).stdout
                if ends:
                    self.check_coroutines(path, out)
                    continue
                # gcc's destroying functions have no room for a patch: a destruction shows as a resumption.
                resumed = sum(int(line.split()[2]) for line in out.splitlines())
                destroyed = sum(line.endswith(" 1") for line in out.splitlines())
                steps = sum(len(flow["steps"]) for flow in flows_of(path))
                self.assertEqual(steps, resumed + 48 + destroyed)


if __name__ == "__main__":
    main()
