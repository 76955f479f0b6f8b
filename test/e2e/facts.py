"""Answers that are relations: their table, their CSV and their JSON say the same, and are sorted, cut and chosen alike."""
import csv
import io
import json
import os
import subprocess

from support import BIN, KARST, TIMEOUT, TracedTest, build, main

RUNTIME = str(BIN.parent / "lib" / "libkarst.so.0")


class Facts(TracedTest):
    def program(self):
        return build("commands_program", "recover/program.cc", "-O1", "-fno-inline", "-fno-optimize-sibling-calls",
                     "-pthread", compiler="karst-g++")

    def karst(self, *words, status=0):
        done = subprocess.run([KARST, *map(str, words)], capture_output=True, text=True, timeout=TIMEOUT,
                              cwd=self.directory, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, status, (words, done.stderr))
        return done.stdout if status == 0 else done.stderr

    def rows(self, *words):
        return list(csv.DictReader(io.StringIO(self.karst(*words, "--format", "csv"))))

    def alike(self, key, *words):
        """The rows of CSV, which are those of the list `key` in JSON."""
        rows = self.rows(*words)
        found = json.loads(self.karst(*words, "--json"))[key]
        self.assertEqual(len(rows), len(found))
        for row, told in zip(rows, found):
            for name, value in row.items():
                want = told.get(name, "")
                self.assertEqual(value, str(int(want)) if isinstance(want, bool) else str(want), (words, name))
        return rows

    def test_how_durations_spread(self):
        trace = self.run_traced(self.program(), "tell").trace.path
        rows = self.alike("spreads", "report", "--hist", trace)
        by_name = self.alike("spreads", "report", "--hist", trace, "--sort", "function")
        self.assertEqual([row["function"] for row in by_name], sorted(row["function"] for row in rows))
        self.assertEqual(self.rows("report", "--hist", trace, "--limit", "1"), rows[:1])
        table = self.karst("report", "--hist", trace, "--columns", "p90,calls", "--limit", "0").splitlines()
        self.assertEqual(table[0].split(), ["p90", "calls", "function"])
        self.assertEqual([line.split()[-1] for line in table[1:]], [row["function"].split()[-1] for row in rows])

    def test_who_calls_whom(self):
        trace = self.run_traced(self.program(), "tell").trace.path
        rows = self.alike("edges", "report", "--callers", trace)
        self.assertIn("main", [row["caller"] for row in rows])
        calls = [int(row["calls"]) for row in self.rows("report", "--callers", trace, "--sort", "calls")]
        self.assertEqual(calls, sorted((int(row["calls"]) for row in rows), reverse=True))
        self.assertIn("there is no column 'p90' of edges to sort by",
                      self.karst("report", "--callers", trace, "--sort", "p90", status=1))

    def test_what_can_be_patched(self):
        program = build("plain.choice", "plain/choice.cc", "-O2", compiler="g++")
        rows = self.alike("functions", "places", program, "--all")
        self.assertIn("step(int)", [row["function"] for row in rows])
        self.assertEqual({row["patched"] for row in rows}, {"0", "1"})
        self.assertTrue(all((row["reason"] == "") == (row["patched"] == "1") for row in rows), rows)
        sizes = [int(row["size"]) for row in self.rows("places", program, "--all", "--sort", "size")]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        self.assertEqual(self.alike("probes", "places", program, "--probes"), [])

    def test_traced_processes(self):
        process = subprocess.Popen([self.program(), "pause"], stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, "LD_PRELOAD": RUNTIME})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        row, = [row for row in self.rows("ps") if row["pid"] == str(process.pid)]
        one = json.loads(self.karst("ps", process.pid, "--json"))
        self.assertEqual((row["name"], row["functions"], row["state"]), (one["name"], str(one["functions"]), one["state"]))
        table = self.karst("ps", "--columns", "traced,pid").splitlines()
        self.assertEqual(table[0].split(), ["traced", "pid", "name"])
        self.assertIn([row["traced"], row["pid"]], [line.split()[:2] for line in table[1:]])

    def test_all_that_a_trace_holds(self):
        trace = self.run_traced(self.program(), "tell").trace.path
        info = json.loads(self.karst("info", "--json", trace))
        process, = info["processes"]
        self.assertEqual(sum(thread["calls"] for thread in process["threads"]), info["calls"])
        self.assertEqual((process["command_line"][1:], process["exit_status"]), (["tell"], 0))
        self.assertFalse({"signal", "parent"} & set(process))
        self.assertIn("load_address", process["modules"][0])


if __name__ == "__main__":
    main()
