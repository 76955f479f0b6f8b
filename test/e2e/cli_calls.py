"""Commands that show calls: tree, report, calls."""

import csv
import io
import json
import os
import signal
import subprocess

from cli_case import Case, KARST, PLAIN, TREE, main


class Tree(Case):
    def test_plain_is_exact(self):
        self.assertEqual(self.good("tree", "--plain", self.path("sample.karst")), PLAIN)

    def test_times_and_marks(self):
        self.assertEqual(self.good("tree", self.path("sample.karst")), TREE)

    def test_the_guide_shows_what_is_printed(self):
        guide = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/guide/tree.md")
        with open(guide, encoding="utf-8") as file:
            text = file.read()
        self.assertIn(f"<!-- tree -->\n```\n{TREE}```\n", text)
        self.assertIn(f"<!-- plain -->\n```\n{PLAIN}```\n", text)

    def test_selection(self):
        sample = self.path("sample.karst")
        worker = PLAIN[PLAIN.index("# process 10 app thread 11") :]
        self.assertEqual(self.good("tree", "--plain", sample, "--thread", "worker"), worker)
        self.assertEqual(self.good("tree", "--plain", sample, "--thread", "11", "--process", "10"), worker)
        self.assertEqual(
            self.good("tree", "--plain", sample, "--thread", "10", "--depth", "2"),
            "# process 10 app thread 10 app\nmain\n  work(int)\n  work(int)\n",
        )
        self.assertEqual(
            self.good("tree", "--plain", sample, "--thread", "10", "--min-duration", "1ms"),
            "# process 10 app thread 10 app\nmain\n  work(int)\n",
        )
        self.assertEqual(
            self.good("tree", "--plain", sample, "--thread", "10", "--function", "^work"),
            "# process 10 app thread 10 app\nwork(int)\n  leaf()\nwork(int)\n",
        )

    def test_slowest_come_first_with_their_callers(self):
        text = self.good("tree", self.path("sample.karst"), "--function", "work", "--slowest", "2")
        self.assertEqual(
            text,
            "# process 10 app thread 10 app\n# at 3.000 us in main\n  1.500 ms    work(int)\n"
            "# process 10 app thread 10 app\n# at 100 ns in main\n  2.500 us    work(int)\n     50 ns      leaf()\n",
        )

    def test_deep_recursion_is_indented_only_so_far(self):
        lines = self.good("tree", self.path("deep.karst")).splitlines()
        self.assertEqual(len(lines), 1 + 20_000)
        self.assertIn("[19999] ", lines[-1])
        self.assertLess(len(lines[-1]), 300)

    def test_names_cannot_control_the_terminal(self):
        for arguments in (["tree"], ["tree", "--plain"], ["report"], ["info"], ["report", "--format", "csv"]):
            run = self.karst(*arguments, self.path("names.karst"))
            self.assertEqual(run.returncode, 0, run.stderr)
            text = run.stdout.decode()  # must be UTF-8
            self.assertEqual([c for c in text if (c < " " and c != "\n") or c in "\x7f\u202e"], [], arguments)
        plain = self.good("tree", "--plain", self.path("names.karst")).splitlines()
        self.assertEqual(
            plain,
            [
                r"# process 10 e\x1b[31mvil\n# process thread 10 t\tab\x0d",
                r"f\x1b]0;title\x07()",
                r"two\nlines",
                r"\xff\xfe",
                r"rtl\u{202e}()",
            ],
        )

    def test_a_reader_that_goes_away_is_no_trouble(self):
        for command in (["tree"], ["tree", "--plain"], ["export", "--to", "chrome", "-o", "-"]):
            for sigpipe in (signal.SIG_DFL, signal.SIG_IGN):
                process = subprocess.Popen(
                    [KARST, *command, self.path("big.karst")],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    restore_signals=False,
                    preexec_fn=lambda how=sigpipe: signal.signal(signal.SIGPIPE, how),
                )
                process.stdout.readline()
                process.stdout.close()
                self.assertEqual(process.stderr.read(), b"")
                process.stderr.close()
                process.wait(timeout=60)


class Report(Case):
    def test_json(self):
        data = json.loads(self.good("report", "--format", "json", self.path("sample.karst")))
        rows = {row["function"]: row for row in data["functions"]}
        self.assertEqual([row["function"] for row in data["functions"]], ["main", "work(int)", "leaf()"])
        self.assertEqual(
            rows["work(int)"],
            {
                "self_share": 0.751282,
                "total_share": round((2500 + 1_500_000 + 1000 + 300) / 2_001_300, 6),
                "name": "work(int)",
                "function": "work(int)",
                "module": "/bin/sample",
                "file": "/src/sample.cc",
                "line": 20,
                "calls": 4,
                "open_calls": 2,
                "unwound_calls": 0,
                "jumped_calls": 0,
                "tail_calls": 0,
                "left_calls": 0,
                "left_max_ns": 0,
                "total_ns": 2500 + 1_500_000 + 1000 + 300,
                "self_ns": 2450 + 1_500_000 + 990 + 100,
                "min_ns": 2500,
                "mean_ns": (2500 + 1_500_000) // 2,
                "p50_ns": 2500,
                "p99_ns": 1_500_000,
                "max_ns": 1_500_000,
                "total_cost_ns": 0,
                "self_cost_ns": 0,
                "tracing_ns": 0,
            },
        )
        self.assertEqual(data["calls"], 8)
        self.assertEqual(data["threads"], 2)

    def test_csv_says_the_same(self):
        rows = list(csv.DictReader(io.StringIO(self.good("report", "--format", "csv", self.path("sample.karst")))))
        data = json.loads(self.good("report", "--format", "json", self.path("sample.karst")))
        for row, told in zip(rows, data["functions"], strict=True):
            self.assertEqual({key: value for key, value in row.items() if value != "" or key in told},
                             {key: str(value) for key, value in told.items()})

    def test_sort_limit_and_filter(self):
        def names(*arguments):
            text = self.good("report", "--format", "json", self.path("sample.karst"), *arguments)
            return [row["function"] for row in json.loads(text)["functions"]]

        self.assertEqual(names("--sort", "self"), ["work(int)", "main", "leaf()"])
        self.assertEqual(names("--sort", "calls"), ["work(int)", "leaf()", "main"])
        # main lasts as long as its thread: it comes last.
        self.assertEqual(names("--sort", "max"), ["work(int)", "leaf()", "main"])
        self.assertEqual(names("--sort", "function"), ["leaf()", "main", "work(int)"])
        self.assertEqual(names("--function", "leaf"), ["leaf()"])
        self.assertEqual(names("--thread", "worker"), ["work(int)", "leaf()"])

    def test_text(self):
        lines = self.good("report", self.path("sample.karst")).splitlines()
        self.assertEqual(len(lines), 5)
        self.assertIn("8 calls by 2 threads in 2.000 ms", lines[0])
        self.assertRegex(lines[3], r"1\.504 ms +1\.504 ms +4 .* work\(int\)  \[sample\]  /src/sample\.cc:20  \+2 open$")


class Calls(Case):
    def rows(self, *arguments):
        return list(csv.DictReader(io.StringIO(self.good("calls", "--format", "csv", *arguments))))

    def test_rows(self):
        sample = self.path("sample.karst")
        rows = self.rows("--function", "work", sample)
        self.assertEqual(rows[1], {"call": "10@3000ns", "function": "work(int)", "begin_ns": "3000", "duration_ns": "1500000",
                                   "open": "", "pid": "10", "tid": "10", "thread": "app", "caller": "main",
                                   "arguments": "", "returned": ""})
        self.assertEqual([(row["open"], row["caller"]) for row in rows[2:]], [("begin", ""), ("end", "")])
        data = json.loads(self.good("calls", "--json", sample))["calls"]
        self.assertEqual([{key: str(value) for key, value in row.items()} for row in data], self.rows(sample))
        lines = self.good("calls", "--function", "work", sample).splitlines()
        self.assertEqual(lines[2].split(), ["3.000", "us", "1.500", "ms", "10@3000ns", "work(int)"])

    def test_the_same_sums_as_the_report(self):
        # Calls by function, and their self time: a call's duration less those of the calls it made.
        for name in ("sample.karst", "long.karst", "walk.karst"):
            for filters in ([], ["--range", "100ns..2us"], ["--range", "500us..700us"], ["--below", "work|leaf|step_1"],
                            ["--min-duration", "100ns"],
                            ["--range", "1us..", "--min-duration", "50ns", "--below", "w|f|step_[23]"]):
                run = self.karst("report", "--json", self.path(name), *filters)
                if run.returncode != 0:  # nothing in that range, or no such function
                    self.assertEqual(self.karst("calls", self.path(name), *filters).stderr, run.stderr)
                    continue
                report = {f["function"]: [f["calls"], f["self_ns"]] for f in json.loads(run.stdout)["functions"]}
                own, callees = {}, {}
                for row in self.rows(self.path(name), *filters):
                    duration = int(row["duration_ns"])
                    own.setdefault(row["function"], [0, 0])
                    own[row["function"]][0] += 1
                    own[row["function"]][1] += duration
                    if row["caller"]:
                        own[row["caller"]][1] -= duration
                        callees[row["caller"]] = callees.get(row["caller"], 0) + 1
                self.assertEqual({f: of[0] for f, of in own.items()}, {f: of[0] for f, of in report.items()})
                for function, (calls, self_ns) in own.items():
                    # walk.karst's ticks are 0.4 ns: each row is rounded down by less than 1 ns. The others' are 1 ns.
                    away = self_ns - report[function][1]
                    least, most = (-calls, callees.get(function, 0) + 1) if name == "walk.karst" else (0, 0)
                    self.assertTrue(least <= away <= most, (name, filters, function, away))


if __name__ == "__main__":
    main()
