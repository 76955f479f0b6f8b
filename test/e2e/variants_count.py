"""karst run --count: exactly what karst run traces, and gcov counts, without events."""
import csv
import io
import json
import os
import signal
import subprocess
from pathlib import Path

import ways_out
from call_counts import Comparison, Gcov, Symbols
from support import BIN, HERE, KARST, ROOT, TIMEOUT, WORK, TracedTest, build, main

# Their calls follow from the program alone, not from how its threads or signals fell.
STEADY = ("caught.cc", "carried.cc", "folded", "gotos.c", "jumps.c", "nested.cc", "tail_calls.cc", "threads.cc")


class Count(TracedTest):
    def count(self, *command, options=(), status=0, form="json", env=None):
        path = self.directory / "counts"
        done = subprocess.run([KARST, "count", "--format", form, "-o", str(path), *options, "--", *map(str, command)],
                              cwd=self.directory, env={**os.environ, **(env or {})}, capture_output=True, text=True,
                              timeout=TIMEOUT, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, status, done.stderr)
        self.out = done.stdout
        self.err = done.stderr
        return path.read_text()

    def counts(self, *command, **more):
        counts = {}
        self.all = json.loads(self.count(*command, **more))
        for f in self.all["functions"]:
            counts[f["function"]] = counts.get(f["function"], 0) + f["calls"]
        return counts

    def assert_same(self, program, *arguments, options=()):
        run = self.run_traced(program, *arguments, options=("--memory", "1G", *options))
        self.assert_whole(run.trace)
        self.assertEqual(self.counts(program, *arguments, options=options), run.trace.counts)

    def lives(self):
        return build("lives", "variants/lives.cc", "-O1", "-fno-inline", "-pthread")

    def test_every_way_out_of_a_function(self):
        corpus = ways_out.WaysOut("program")
        for source in ways_out.sources():
            if source.name not in STEADY:
                continue
            with self.subTest(source=source.name):
                self.assert_same(corpus.program(source, "-O2", ways_out.PIE))

    def test_with_instrument_functions(self):
        corpus = ways_out.WaysOut("program")
        self.assert_same(corpus.program(ways_out.CORPUS / "nested.cc", "-O2", ways_out.PIE,
                                        method=["--karst-method=finstrument"]))

    def test_ten_thousand_threads(self):
        program = build("threads", "torture/threads.cc", "-O1", "-fno-inline", "-pthread")
        counts = self.counts(program, "waves", 10000, 3)
        self.assertEqual(counts["leaf()"], 60000)
        self.assertEqual(counts["branch(int)"], 20000)
        self.assertEqual(counts["short_life(int)"], 10000)
        self.assertEqual(self.all["uncounted_calls"], 0)

    def test_threads_that_pthread_knows_nothing_of(self):
        program = build("clones", "torture/clones.cc", "-O1", "-fno-inline", "-pthread")
        self.assert_same(program, "own", 4)

    def test_children_by_fork(self):
        counts = self.counts(self.lives(), "forks", 30)
        self.assertEqual(counts["leaf()"], 5 + 2 + 30 * 3)
        self.assertEqual(counts["branch(int)"], 32)
        self.assertEqual(self.all["processes"], 31)

    def test_a_killed_programs_counts_are_there(self):
        counts = self.counts(self.lives(), "killed", 5000, status=128 + signal.SIGKILL)
        self.assertEqual(counts["leaf()"], 10000)

    def test_signal_handlers_calls_count(self):
        counts = self.counts(self.lives(), "handler", 300)
        rounds, ticks = map(int, self.out.split())
        self.assertEqual(counts["leaf()"], 1000 * rounds)
        self.assertEqual(counts["in_handler()"], 100 * ticks)

    def test_libraries_that_come_and_go(self):
        library = build("counted", "variants/plugin.cc", "-O1", "-fno-inline", "-shared", "-fPIC", output="counted.so")
        host = build("loads", "variants/loads.cc", "-O1", "-fno-inline", "-ldl")
        counts = self.counts(host, library, 20)
        self.assertEqual(counts["plugged(int)"], 20 * 11)
        self.assertEqual(counts["load(char const*)"], 20)

    def test_only_chosen_functions(self):
        for options in (("--functions", "^leaf"), ("--not-functions", "^leaf"), ("--min-instructions", "8")):
            with self.subTest(options=options):
                self.assert_same(self.lives(), "many", 50, options=options)

    def test_those_of_gcov(self):
        objects = self.directory
        binary = objects / "lives"
        subprocess.run([str(BIN / "karst-g++"), "-std=c++17", "-O1", "-g", "-fno-inline", "-fno-optimize-sibling-calls",
                        "--coverage", "-pthread", "-c", str(HERE / "variants/lives.cc"), "-o", str(objects / "lives.o")],
                       check=True)
        subprocess.run([str(BIN / "karst-g++"), "--coverage", "-pthread", str(objects / "lives.o"), "-o", str(binary)],
                       check=True)
        self.count(binary, "many", 200, options=("--no-patch",))
        report = json.loads((self.directory / "counts").read_text())["functions"]
        compared = Comparison(report, Gcov(objects), Symbols(binary))
        self.assertEqual(compared.differences(), [])
        self.assertGreaterEqual(len(compared.seen), 3)

    def test_text_and_csv(self):
        text = self.count(self.lives(), "many", 10, form="text")
        self.assertRegex(text.splitlines()[0], r"^ +calls +share +function")
        self.assertRegex(text, r"(?m)^ +70 +\d+\.\d\d%  leaf\(\)  \[lives\]  .*lives.cc:\d+$")
        run = subprocess.run([KARST, "count", "--width", "40", self.lives(), "many", "10"], capture_output=True, text=True)
        self.assertIn("leaf", run.stdout)
        self.assertLessEqual(max(map(len, run.stdout.splitlines())), 40, run.stdout)
        rows = list(csv.DictReader(io.StringIO(self.count(self.lives(), "many", 10, form="csv"))))
        self.assertEqual([r["calls"] for r in rows if r["function"] == "leaf()"], ["70"])
        calls = [int(r["calls"]) for r in rows]
        self.assertEqual(calls, sorted(calls, reverse=True))
        shown = json.loads(self.count(self.lives(), "many", 10, options=("--show", "^branch", "--limit", "1")))
        self.assertEqual([f["function"] for f in shown["functions"]], ["branch(int)"])

    def test_a_suggested_list_leaves_out_what_it_names(self):
        found = self.count(self.lives(), "handler", 300, form="text", options=("--suggest", "0.1%"))
        lists = self.directory / "list"
        lists.write_text(found)
        globs = [line.split("  #")[0] for line in found.splitlines() if not line.startswith("#")]
        self.assertIn("leaf()", globs)
        counts = self.counts(self.lives(), "many", 10, options=("--no-trace", str(lists)))
        self.assertNotIn("leaf()", counts)
        self.assertEqual(set(counts) & set(globs), set())
        everything = self.count(self.lives(), "many", 10, form="text", options=("--suggest", "100%"))
        self.assertEqual([line for line in everything.splitlines() if not line.startswith("#")], [])

    def test_what_cannot_be_understood_is_refused(self):
        for wrong, said in ((["--suggest", "5"], "a share of time"),
                            (["--suggest", "5%", "--format", "json"], "takes no --format")):
            done = subprocess.run([KARST, "count", *wrong, "/bin/true"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, wrong)
            self.assertIn(said, done.stderr)
        done = subprocess.run([KARST, "count", "--no-patch", "/bin/true"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("so there is no count", done.stderr)


if __name__ == "__main__":
    main()
