"""The karst command as a user meets it: output, messages, exit statuses.

Usage: cli_test.py KARST CLI_TRACES [unittest options]
"""

import base64
import csv
import fcntl
import hashlib
import io
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
from xml.etree import ElementTree

KARST, CLI_TRACES = sys.argv[1:3]

PLAIN = """\
# process 10 app thread 10 app
main
  work(int)
    leaf()
  work(int)
# process 10 app thread 11 worker
work(int)
  leaf()
work(int)
  leaf()
"""

TREE = """\
# process 10 app thread 10 app
  2.000 ms    main
  2.500 us      work(int)
     50 ns        leaf()
  1.500 ms      work(int)
# process 10 app thread 11 worker
  1.000 us <  work(int)
     10 ns      leaf()
    300 ns  > work(int)
    200 ns      leaf()
"""


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="karst_cli_")
        subprocess.run([CLI_TRACES, cls.directory], check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.directory)

    def path(self, name):
        return os.path.join(self.directory, name)

    def karst(self, *arguments, **options):
        return subprocess.run([KARST, *arguments], capture_output=True, timeout=60, **options)

    def good(self, *arguments):
        """Standard output of a command that must succeed without a word on stderr."""
        run = self.karst(*arguments)
        self.assertEqual((run.returncode, run.stderr), (0, b""))
        return run.stdout.decode()

    def bad(self, status, *arguments):
        """The message of a command that must fail with `status`, print nothing, and not crash."""
        run = self.karst(*arguments)
        message = run.stderr.decode()
        self.assertEqual(run.returncode, status, message)
        self.assertEqual(run.stdout, b"")
        self.assertTrue(message.startswith("karst: "), message)
        return message

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def sample(self):
        with open(self.path("sample.karst"), "rb") as file:
            return file.read()


class CommandLine(Case):
    def test_version_and_help(self):
        self.assertRegex(self.good("--version"), r"^karst \d+\.\d+\.\d+\n$")
        everything = self.good("help")
        self.assertEqual(everything, self.good("--help"))
        for command in ("run", "info", "tree", "report", "export"):
            self.assertIn(f"  {command} ", everything)
            text = self.good("help", command)
            self.assertEqual(text, self.good(command, "--help"))
            self.assertIn(f"karst {command}", text)

    def test_karst_alone_shows_its_help(self):
        run = self.karst()
        self.assertEqual((run.returncode, run.stdout), (2, b""))
        self.assertIn(b"karst run ./app", run.stderr)

    def test_unknown_commands_and_options(self):
        self.assertIn("no command 'tre'; there are: ", self.bad(2, "tre"))
        self.assertIn("no command 'x'; there are: ", self.bad(2, "help", "x"))
        self.assertIn("--frobnicate", self.bad(2, "tree", "--frobnicate", self.path("sample.karst")))
        self.assertIn("--frobnicate", self.bad(2, "--frobnicate"))
        self.assertIn("FILE", self.bad(2, "info"))
        self.assertIn("Try 'karst help report'", self.bad(2, "report", self.path("sample.karst"), "extra"))

    def test_values_that_are_none(self):
        sample = self.path("sample.karst")
        self.assertIn("--sort", self.bad(2, "report", sample, "--sort", "size"))
        self.assertIn("--format", self.bad(2, "report", sample, "--format", "xml"))
        self.assertIn("--format", self.bad(2, "info", sample, "--format", "csv"))
        self.assertIn("--depth", self.bad(2, "tree", sample, "--depth", "0"))
        self.assertIn("'10 parsecs'", self.bad(2, "tree", sample, "--min-duration", "10 parsecs"))
        self.assertIn("--function", self.bad(2, "tree", sample, "--slowest", "3"))
        message = self.bad(2, "export", sample, "--to", "svg", "-o", self.path("x"))
        self.assertIn("'svg'", message)
        self.assertIn("perfetto", message)
        self.assertIn("chrome", message)

    def test_bad_patterns(self):
        for command in (["tree"], ["report"], ["export", "--to", "chrome", "-o", self.path("x")]):
            message = self.bad(1, *command, self.path("sample.karst"), "--function", "operator(")
            self.assertIn("operator(", message)
        self.assertFalse(os.path.exists(self.path("x")))

    def test_what_the_trace_does_not_have(self):
        sample = self.path("sample.karst")
        self.assertIn("worker (11)", self.bad(1, "tree", sample, "--thread", "nobody"))
        self.assertIn("10 (app)", self.bad(1, "tree", sample, "--process", "77"))
        self.assertIn("'nothing'", self.bad(1, "tree", sample, "--function", "nothing"))


class Filters(Case):
    """One set of filters: the same calls pass in every command."""

    # Threads 10 (app): main(0-2ms) work(100ns) leaf work(3us). 11 (worker): work leaf work leaf.
    PASS = ((["--range", "100ns..200ns"], {"main": 1, "work(int)": 1}),
            (["--range", "200ns..3us"], {"main": 1, "work(int)": 1, "leaf()": 1}),
            (["--range", "1ms.."], {"main": 1, "work(int)": 1}),
            (["--not-thread", "worker"], {"main": 1, "work(int)": 2, "leaf()": 1}),
            (["--not-thread", "worker", "--below", "work"], {"work(int)": 2, "leaf()": 1}),
            (["--not-thread", "worker", "--below", "leaf"], {"leaf()": 1}),
            (["--not-thread", "worker", "--min-duration", "1us"], {"main": 1, "work(int)": 2}),
            (["--thread", "app", "--below", "work", "--range", "..2us"], {"work(int)": 1, "leaf()": 1}))

    def test_the_same_calls_in_report_tree_and_export(self):
        sample = self.path("sample.karst")
        for filters, expected in self.PASS:
            filters = filters if "--thread" in filters else [*filters, "--thread", "app"]
            report = json.loads(self.good("report", "--json", sample, *filters))
            self.assertEqual({f["name"]: f["calls"] for f in report["functions"]}, expected, filters)
            tree = [line.strip() for line in self.good("tree", "--plain", sample, *filters).splitlines()]
            self.assertEqual({name: tree.count(name) for name in tree if not name.startswith("#")}, expected, filters)
            chrome = json.loads(self.good("export", "--to", "chrome", "-o", "-", sample, *filters))
            calls = [event["name"].rsplit(" (", 1)[0] for event in chrome["traceEvents"] if event["ph"] == "X"]
            self.assertEqual({name: calls.count(name) for name in calls}, expected, filters)

    def test_mistakes_are_told_in_the_same_words_everywhere(self):
        sample = self.path("sample.karst")
        for command in (["report"], ["tree"], ["calls"], ["slow"], ["explain"], ["flame"], ["stacks"], ["graph"], ["hist"],
                        ["export", "--to", "chrome", "-o", self.path("x")]):
            for filters, status, words in (
                    (["--range", "5"], 2, "--range: '5' is no range; a range looks like 12.5ms..13ms"),
                    (["--range", "2ms..1ms"], 2, "'2ms..1ms' is empty"),
                    (["--range", "1ms..x"], 2, "'x' is not a time"),
                    (["--range", "5ms.."], 1, "nothing is in 5ms..: "),
                    (["--below", "("], 2, "--below"),
                    (["--below", "wrok"], 1, "did you mean 'work'?"),
                    (["--min-duration", "10 parsecs"], 2, "'10 parsecs'"),
                    (["--not-thread", "nobody"], 1, "to leave out; it has app (10), worker (11)")):
                self.assertIn(words, self.bad(status, *command, sample, *filters))
        self.assertFalse(os.path.exists(self.path("x")))

    ANSWERS = ("report", "calls", "slow", "explain", "flame", "stacks", "graph", "hist", "order", "tree")

    def test_nothing_passes(self):
        for command in ("report", "calls", "explain", "flame", "stacks", "graph", "hist", "order"):
            said = self.bad(1, command, "--min-duration", "1s", "--thread", "app", self.path("sample.karst"))
            self.assertRegex(said, "passes (all filters|the filter)|was called in what was asked for", command)
        for command in self.ANSWERS:
            said = self.bad(1, command, "--function", "mian", self.path("one.karst"))
            self.assertIn("no function of one.karst has a name that matches 'mian'; did you mean 'main'?",
                          said.replace(self.directory + "/", ""))

    def test_one_call(self):
        one = self.path("one.karst")
        self.assertIn("nothing says what is usual", self.good("slow", one))
        self.assertIn("it is the only complete call, so nothing says what is usual", self.good("explain", one))
        self.assertIn("1 with too few calls to tell", self.good("diff", one, one))
        for command in ("report", "calls", "flame", "stacks", "graph", "hist", "tree"):
            self.assertIn("main", self.good(command, one))
        self.assertIn("have no linker's names", self.bad(1, "order", one))
        self.assertIn("has no requests: a program tells of them", self.bad(1, "requests", one))

    def test_a_trace_without_names(self):
        nameless = self.path("nameless.karst")
        for command in self.ANSWERS:
            run = self.karst(command, nameless)
            self.assertEqual(run.returncode, 1 if command == "order" else 0, command)
            self.assertIn(b"its functions are shown as synthetic+0x...", run.stderr)
            if command != "order":
                self.assertIn(b"synthetic+0x10", run.stdout, command)
        # By address they are the same in two parts of it, and in no trace of another build.
        self.assertIn("4 functions compared", self.karst("diff", nameless, nameless).stdout.decode())
        said = self.karst("diff", nameless, self.path("walk.karst")).stderr.decode()
        self.assertIn("no function was called both in", said)


class Tree(Case):
    def test_plain_is_exact(self):
        self.assertEqual(self.good("tree", "--plain", self.path("sample.karst")), PLAIN)

    def test_times_and_marks(self):
        self.assertEqual(self.good("tree", self.path("sample.karst")), TREE)

    def test_the_guide_shows_what_is_printed(self):
        guide = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/guide.md")
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
        rows = {row["name"]: row for row in data["functions"]}
        self.assertEqual([row["name"] for row in data["functions"]], ["main", "work(int)", "leaf()"])
        self.assertEqual(
            rows["work(int)"],
            {
                "name": "work(int)",
                "module": "/bin/sample",
                "file": "/src/sample.cc",
                "line": 20,
                "calls": 4,
                "open_calls": 2,
                "unwound_calls": 0,
                "jumped_calls": 0,
                "tail_calls": 0,
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
        self.assertEqual(data["trace"]["calls"], 8)
        self.assertEqual(data["trace"]["threads"], 2)

    def test_csv_says_the_same(self):
        rows = list(csv.DictReader(io.StringIO(self.good("report", "--format", "csv", self.path("sample.karst")))))
        data = json.loads(self.good("report", "--format", "json", self.path("sample.karst")))
        self.assertEqual(rows, [{key: str(value) for key, value in row.items()} for row in data["functions"]])

    def test_sort_limit_and_filter(self):
        def names(*arguments):
            text = self.good("report", "--format", "json", self.path("sample.karst"), *arguments)
            return [row["name"] for row in json.loads(text)["functions"]]

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
                report = {f["name"]: [f["calls"], f["self_ns"]] for f in json.loads(run.stdout)["functions"]}
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


class Sums(Case):
    """flame, stacks, graph and hist: the same sums as calls and report, on the same filters."""

    FILTERS = ([], ["--range", "100ns..2us"], ["--below", "work|step_1"], ["--min-duration", "100ns"],
               ["--function", "work|step_[12]"], ["--range", "1us..", "--min-duration", "50ns", "--function", "work|step"])

    def folded(self, *arguments):
        lines = [line.rsplit(" ", 1) for line in self.good("flame", *arguments).splitlines()]
        self.assertEqual(len({path for path, _ in lines}), len(lines))
        return {path: int(number) for path, number in lines}

    def test_all_commands_agree(self):
        for name in ("sample.karst", "walk.karst"):
            for filters in self.FILTERS:
                words = [self.path(name), *filters]
                report = json.loads(self.good("report", "--json", *words))["functions"]
                calls = list(csv.DictReader(io.StringIO(self.good("calls", "--format", "csv", *words))))
                stacks = json.loads(self.good("stacks", "--json", *words))["paths"]
                graph = json.loads(self.good("graph", "--json", *words))
                hist = json.loads(self.good("hist", "--json", *words))["functions"]
                count = {f["name"]: f["calls"] for f in report}
                self.assertEqual(sum(count.values()), len(calls))
                self.assertEqual(self.by(stacks, "function", "calls"), count)
                self.assertEqual(self.by(hist, "name", "calls"), count)
                self.assertEqual(self.by(graph["functions"], "name", "calls"), count)
                into = [edge for edge in graph["edges"] if edge["callee_name"] in count]
                self.assertEqual(self.by(into, "callee_name", "calls"), count)
                folded = self.folded("--by", "calls", *words)
                self.assertEqual(sum(folded.values()), len(calls))
                for path in folded:
                    self.assertIn(path.split(";")[-1], count)
                for f in hist:
                    self.assertEqual(sum(f["counts"]), f["calls"] - f["open_calls"])
                self_ns = sum(f["self_ns"] for f in report)
                # Each path is rounded down by less than a nanosecond.
                for ns, parts in ((sum(self.folded(*words).values()), len(stacks)),
                                  (sum(path["self_ns"] for path in stacks), len(stacks)),
                                  (sum(edge["self_ns"] for edge in into), len(into))):
                    self.assertLessEqual(abs(self_ns - ns), max(parts, len(report)), (name, filters))

    def by(self, rows, name, number):
        sums = {}
        for row in rows:
            sums[row[name]] = sums.get(row[name], 0) + row[number]
        return {key: value for key, value in sums.items() if value}

    def test_folded_is_exact(self):
        sample = self.path("sample.karst")
        self.assertEqual(self.folded("--thread", "app", sample),
                         {"main": 497500, "main;work(int)": 1502450, "main;work(int);leaf()": 50})
        self.assertEqual(self.folded("--by", "calls", "--function", "leaf", sample),
                         {"main;work(int);leaf()": 1, "work(int);leaf()": 2})

    def test_a_deep_recursion_is_cut_and_adds_up(self):
        lines = self.folded("--by", "calls", self.path("deep.karst"))
        self.assertEqual(sum(lines.values()), 20000)
        self.assertEqual(max(path.count(";") for path in lines), 1000)
        self.assertIn("(deeper)", [path.split(";")[-1] for path in lines])

    def test_names_cannot_forge_a_path(self):
        for path in self.folded("--by", "calls", self.path("names.karst")):
            self.assertNotIn(";", path)
        self.assertIn("f\\x1b]0\\x3btitle\\x07()", self.folded(self.path("names.karst")))

    def test_svg_is_xml_and_as_wide_as_the_time(self):
        for name in ("sample", "names", "long", "deep", "walk"):
            picture = ElementTree.fromstring(self.good("flame", "--format", "svg", self.path(name + ".karst")))
            frames = list(picture.iter("{http://www.w3.org/2000/svg}g"))
            self.assertLess(len(frames), 3000)
            self.assertTrue(frames[0][0].text.startswith("all: "), name)
            self.assertAlmostEqual(float(frames[0][1].get("width")), 1199.5)
        file = self.path("out.svg")
        self.assertEqual(self.good("flame", "--format", "svg", "-o", file, self.path("sample.karst")), "")
        with open(file) as svg:
            self.assertIn("work(int): 1.502 ms (75.1% of all time), 2 calls", svg.read())

    def test_stacks(self):
        lines = self.good("stacks", "--thread", "app", self.path("sample.karst")).splitlines()
        self.assertEqual(lines[0], self.path("sample.karst") + ": 4 calls on 3 paths, 2.000 ms")
        self.assertEqual(lines[2].split(), ["2.000", "ms", "497.5", "us", "1", "main"])
        self.assertEqual(lines[3][36:], "    work(int)"[2:])
        self.assertEqual(lines[4].split()[-2:], ["(1", "smaller)"])
        whole = self.good("stacks", "--share", "0", "--thread", "app", self.path("sample.karst")).splitlines()
        self.assertEqual(whole[4][36:], "    leaf()")
        self.assertEqual(len(self.good("stacks", "--share", "0", "--depth", "1", "--thread", "app",
                                       self.path("sample.karst")).splitlines()), 3)

    def test_hist(self):
        text = self.good("hist", "--function", "work", self.path("sample.karst"))
        self.assertIn("work(int)\n  4 calls, 2 of them open, 1.504 ms in all\n", text)
        self.assertIn("p50 2.500 us  p90 1.500 ms  p99 1.500 ms  max 1.500 ms\n", text)
        bars = [line for line in text.splitlines() if line.endswith("#" * 60)]
        self.assertEqual(len(bars), 2, text)
        self.assertIn("1 more function; --function REGEX chooses", self.good("hist", "-n", "2", self.path("sample.karst")))
        [work] = json.loads(self.good("hist", "--json", "--function", "work", self.path("sample.karst")))["functions"]
        self.assertEqual((len(work["edges_ns"]), sum(work["counts"])), (len(work["counts"]) + 1, 2))
        self.assertLessEqual(work["edges_ns"][0], 2500)
        self.assertGreater(work["edges_ns"][-1], 1500000)

    def test_graph(self):
        sample = self.path("sample.karst")
        text = self.good("graph", "--function", "work", sample)
        self.assertEqual(text.splitlines()[1], "  4 calls, total 1.504 ms, self 1.504 ms, p50 2.500 us, p99 1.500 ms")
        self.assertEqual([line[38:] for line in text.splitlines()[2:]], ["< main", "< (nothing traced)", "> leaf()"])
        self.assertIn("@ calls of itself", self.good("graph", self.path("walk.karst")))
        dot = self.good("graph", "--format", "dot", sample)
        self.assertIn('f0 -> f1 [label="2 calls, 1.502 ms"];', dot)
        self.assertIn('f1["work<br>4 calls, total 1.504 ms, self 1.504 ms"]', self.good("graph", "--format", "mermaid", sample))
        # No name may end a label.
        for line in self.good("graph", "--format", "dot", self.path("names.karst")).splitlines():
            self.assertEqual(len(re.findall(r'(?<!\\\\)"', line)) % 2, 0, line)

    def test_mistakes(self):
        sample = self.path("sample.karst")
        for command in ("flame", "stacks"):
            self.assertIn("does not say when threads were on a CPU, as --by cpu needs", self.bad(1, command, "--by", "cpu", sample))
        for command in ("flame", "stacks", "graph", "hist"):
            self.assertIn("passes all filters", self.bad(1, command, "--min-duration", "1s", "--thread", "app", sample))
        self.assertIn("'150' is no number from 0 to 100", self.bad(2, "stacks", "--share", "150", sample))


class Pages(Case):
    """flame and explain as pages: one file each, which loads nothing and runs nothing but its own script."""

    def page(self, *arguments):
        text = self.good(*arguments, "--format", "html")
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text).group(1)
        self.assertTrue(policy.startswith("default-src 'none'; "), policy)
        scripts = re.findall(r"<script>(.*?)</script>", text, re.S)
        allowed = re.findall(r"'sha256-([^']*)'", policy)
        hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
        self.assertEqual(hashes, allowed)
        self.assertNotRegex(text.replace("http://www.w3.org/2000/svg", ""),
                            r"https?://|\bsrc=|\bhref=|@import|url\(|\bon\w+=")
        self.assertIn("prefers-color-scheme: dark", text)
        self.assertEqual(len(re.findall(r"<svg", text)), len(re.findall(r"</svg>", text)))
        return text

    def test_flame(self):
        for name in ("sample", "names", "deep", "walk"):
            text = self.page("flame", self.path(name + ".karst"))
            picture = ElementTree.fromstring(re.search(r"<svg.*</svg>", text, re.S).group(0))
            frames = list(picture.iter("{http://www.w3.org/2000/svg}g"))
            # Exact widths, for the script.
            self.assertAlmostEqual(float(frames[0][1].get("width")), 1200)
            self.assertTrue(frames[0][0].text.startswith("all: "), name)
            # The script takes what is before the last ": " for the name.
            for frame in frames:
                self.assertNotIn(": ", frame[0].text.rpartition(": ")[2])
        self.assertIn("work(int): 1.502 ms (75.1% of all time), 2 calls",
                      self.page("flame", "--thread", "app", self.path("sample.karst")))

    @unittest.skipIf(shutil.which("chromium") is None, "needs chromium")
    def test_flame_is_searched_and_drawn_by_a_browser(self):
        page = self.path("flame.html")
        self.good("flame", "--format", "html", "-o", page, "--thread", "app", self.path("sample.karst"))
        run = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu",
                              f"--user-data-dir={self.directory}/chromium", "--dump-dom", f"file://{page}#work"],
                             capture_output=True, text=True, timeout=300)
        self.assertEqual(run.stdout.count('class="hit"'), 1, run.stderr)
        self.assertRegex(run.stdout, r"<output>1 found, 75\.1% of all</output>")

    def test_explain(self):
        sample = self.path("sample.karst")
        text = self.page("explain", "--slowest", "work", sample)
        plain = self.good("explain", "--slowest", "work", sample)
        self.assertIn("<h1>" + plain.splitlines()[0].replace(">", "&gt;") + "</h1>", text)
        rows = re.findall(r"<tr><td>(.*?)%</td>", text)
        self.assertAlmostEqual(sum(map(float, rows)), 100, 1)
        for line, row in zip(plain.splitlines()[3:], rows):
            self.assertTrue(line.strip().startswith(row + "%"), (line, row))
        self.assertNotIn("<table>", self.page("explain", "--slowest", "main", sample))
        for name in ("names", "long", "walk"):
            self.page("explain", "--slowest", ".", self.path(name + ".karst"))


class Diff(Case):
    def functions(self, *arguments):
        return {f["name"].split("::")[-1]: f for f in json.loads(self.good("diff", "--json", *arguments))["functions"]}

    def test_a_trace_and_itself(self):
        walk = self.path("walk.karst")
        self.assertIn("4 functions compared: none changed", self.good("diff", walk, walk))
        self.good("diff", "--fail-over", "0%", walk, walk)
        report = {f["name"].split("::")[-1]: f for f in json.loads(self.good("report", "--json", walk))["functions"]}
        for name, f in self.functions(walk, walk).items():
            self.assertEqual(f["a"], f["b"])
            self.assertEqual({key: f["a"][key] for key in ("calls", "total_ns", "self_ns", "p50_ns")},
                             {key: report[name][key] for key in ("calls", "total_ns", "self_ns", "p50_ns")})

    def test_what_became_slower_is_listed_and_fails(self):
        # The same program with twice the time for one function.
        before, after = self.path("before.karst"), self.path("after.karst")
        text = self.good("diff", "--width", "80", before, after)
        self.assertIn("2 functions compared: 1 changed", text.replace("\n", " "))
        self.assertRegex(text, r"\+100\.\d% .* slower$")
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        self.assertEqual(self.functions(before, after)["slower"]["changed"], True)
        run = self.karst("diff", "--fail-over", "5%", before, after)
        self.assertEqual((run.returncode, run.stderr), (3, b"karst: calls of 1 function take over 5% longer\n"))
        for fine in (["--fail-over", "150%", before, after], ["--fail-over", "5%", after, before],
                     ["--fail-over", "5%", "--function", "same", before, after]):
            self.assertEqual(self.karst("diff", *fine).returncode, 0)

    def test_two_ranges_of_one_trace(self):
        after = self.path("after.karst")
        whole = self.functions(after, after)["same"]["a"]["calls"]
        parts = self.functions(after, "--range-a", "..8us", "--range-b", "8us..")["same"]
        self.assertEqual(parts["a"]["complete"] + parts["b"]["complete"], whole)
        self.assertGreater(min(parts["a"]["calls"], parts["b"]["calls"]), 10)

    def test_mistakes(self):
        sample, walk = self.path("sample.karst"), self.path("walk.karst")
        self.assertIn("no function was called both in", self.bad(1, "diff", sample, walk))
        self.assertIn("--range-a and --range-b say which", self.bad(2, "diff", sample))
        self.assertIn("it goes with neither", self.bad(2, "diff", "--range", "1us..", "--range-a", "..2us", sample, walk))
        self.assertIn("'5' is no percentage; one looks like 5%", self.bad(2, "diff", "--fail-over", "5", sample, walk))
        self.assertIn("'x' is no range", self.bad(2, "diff", "--range-a", "x", sample))
        self.assertIn("passes all filters", self.bad(1, "diff", "--min-duration", "5s", "--thread", "app", sample, sample))
        run = self.karst("diff", sample, self.path("long.karst"))
        self.assertEqual((run.returncode, run.stderr), (0, b""))
        self.assertRegex(run.stdout.decode(), r"(?m)^ +gone .* work\(int\)$")


class Explain(Case):
    def test_which_call(self):
        sample = self.path("sample.karst")
        answer = json.loads(self.good("explain", "--json", "--slowest", "work", sample))
        self.assertEqual((answer["call"], answer["duration_ns"], answer["siblings"]), ("10@3000ns", 1_500_000, 1))
        self.assertEqual(answer["usual_ns"], 2500)
        self.assertEqual([cause["path"] for cause in answer["causes"]], [[]])
        self.assertAlmostEqual(sum(c["share"] for c in answer["causes"]) + answer["rest_share"], 1, 2)
        again = json.loads(self.good("explain", "--json", "--call", answer["call"], sample))
        self.assertEqual(again, answer)
        longer = json.loads(self.good("explain", "--json", "--function", "work", "--min-duration", "1ms", sample))
        self.assertEqual(longer, answer)
        self.assertIn("it is the only complete call", self.good("explain", "--slowest", "main", sample))

    def test_mistakes(self):
        sample = self.path("sample.karst")
        self.assertIn("'5' names no call", self.bad(1, "explain", "--call", "5", sample))
        self.assertIn("no call that begins at 10@5ns", self.bad(1, "explain", "--call", "10@5ns", sample))
        self.assertIn("end or begin of call 11@6000ns", self.bad(1, "explain", "--call", "11@6000ns", sample))
        self.assertIn("no complete call to explain", self.bad(1, "explain", "--min-duration", "1s", sample))
        self.assertIn("each says which call", self.bad(2, "explain", "--slowest", "a", "--call", "1@2s", sample))


class Language(Case):
    """One language in all commands: help, options, and what is said of mistakes."""

    COMMANDS = ("run", "view", "slow", "explain", "calls", "flame", "stacks", "graph", "hist", "diff", "report", "tree", "notes", "info",
                "export", "ps", "top", "on", "off", "status", "snapshot", "attach", "detach", "count", "resolve", "help")

    def test_help_fits_80_columns_and_has_nothing_of_the_parsers(self):
        everything = self.good("help")
        self.assertEqual(re.findall(r"(?m)^  (\w+) {2,}\S", everything[everything.index("Commands:"):])[:2], ["run", "view"])
        for text in [everything] + [self.good("help", command) for command in self.COMMANDS]:
            self.assertLessEqual(max(map(len, text.splitlines())), 80, text)
            self.assertEqual(text.count("Usage: "), 1, text)
            self.assertNotRegex(text, r"\{|\(\d+x\)|REQUIRED| \.\.\.\n|UINT|TEXT|sleds")

    def test_run_has_its_options_in_groups_and_examples(self):
        text = self.good("help", "run")
        self.assertEqual(len(re.findall(r"(?m)^[A-Z][a-z ]+:$", text)), 11, text)
        self.assertEqual(len(re.findall(r"(?m)^  karst run ", text)), 3, text)

    def test_did_you_mean(self):
        sample = self.path("sample.karst")
        self.assertIn("Did you mean 'karst report'?", self.bad(2, "reprot"))
        self.assertIn("there is no option '--formt'; did you mean '--format'?", self.bad(2, "report", "--formt", "csv", sample))
        self.assertIn("did you mean 'total'?", self.bad(2, "report", "--sort", "totl", sample))
        self.assertIn("did you mean 'work'?", self.bad(1, "tree", "--function", "^wrok$", sample))

    def test_numbers_that_are_none(self):
        sample = self.path("sample.karst")
        self.assertIn("karst: --limit: 'abc' is no number from 1 on\n", self.bad(2, "report", "--limit", "abc", sample))
        self.assertIn("karst: --depth: '-1' is no number from 1 on\n", self.bad(2, "tree", "--depth=-1", sample))
        self.assertIn("karst: --limit needs a value\n", self.bad(2, "report", sample, "--limit"))

    def test_one_spelling_and_short_forms(self):
        sample = self.path("sample.karst")
        self.assertEqual(self.good("report", "-j", "-n", "1", "-s", "calls", sample),
                         self.good("report", "--format", "json", "--limit", "1", "--sort", "calls", sample))
        self.assertEqual(self.good("tree", "-f", "^leaf", "-t", "worker", "-d", "1", sample),
                         self.good("tree", "--function", "^leaf", "--thread", "worker", "--depth", "1", sample))
        for option in ("--function", "-f", "--functions", "--not-function", "--not-functions"):
            for command in ("run", "count"):
                self.assertIn('bad regular expression "("', self.bad(2, command, option, "(", "true"))
            self.assertIn('bad regular expression "("', self.bad(2, "on", option, "(", "1"))

    def test_view_of_what_is_no_trace_ends(self):
        self.assertIn("not a Karst trace", self.bad(1, "view", "--no-browser", self.write("no.karst", b"\x7fELF" + bytes(999))))
        self.assertIn("no such file", self.bad(1, "view", "--no-browser", self.path("none.karst")))

    def test_a_value_of_strip_behind_a_space(self):
        message = self.bad(1, "resolve", "--strip", "source", self.path("none.karst"))
        self.assertIn("none.karst", message)

    def test_without_a_file_the_newest_trace_of_ones_own_is_meant(self):
        with tempfile.TemporaryDirectory() as directory:
            for command in ("report", "tree", "slow"):
                run = self.karst(command, cwd=directory)
                self.assertEqual(run.returncode, 1)
                self.assertIn(b"there is no trace of yours here", run.stderr)
            shutil.copy(self.path("big.karst"), os.path.join(directory, "old.karst"))
            os.utime(os.path.join(directory, "old.karst"), (1, 1))
            shutil.copy(self.path("sample.karst"), os.path.join(directory, "new.karst"))
            os.symlink(self.path("deep.karst"), os.path.join(directory, "link.karst"))
            os.mkfifo(os.path.join(directory, "fifo.karst"))
            if os.geteuid() == 0:
                shutil.copy(self.path("long.karst"), os.path.join(directory, "foreign.karst"))
                os.chown(os.path.join(directory, "foreign.karst"), 12345, 12345)
            run = self.karst("tree", "--plain", cwd=directory)
            self.assertEqual((run.returncode, run.stdout.decode()), (0, PLAIN))
            self.assertEqual(run.stderr, b"karst: this is new.karst, the newest trace here\n")


class Terminal(Case):
    """Commands whose output, and with `typed` also the input, is a terminal."""

    def on_terminal(self, *arguments, columns=80, typed=False, **variables):
        parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "PAGER", "KARST_PAGER", "NO_COLOR",
                                                                          "SUDO_UID")}
        process = subprocess.Popen([KARST, *arguments], stdin=child if typed else subprocess.DEVNULL, stdout=child,
                                   stderr=subprocess.PIPE, env={**environment, "TERM": "xterm", **variables})
        os.close(child)
        text = b""
        while True:
            try:
                part = os.read(parent, 65536)
            except OSError:  # the terminal's other end is closed
                break
            if not part:
                break
            text += part
        os.close(parent)
        self.status = process.wait(timeout=60)
        self.said = process.stderr.read().decode()
        process.stderr.close()
        return text.decode().replace("\r", "")

    def plain_lines(self, *arguments, **options):
        return re.sub(r"\x1b\[[0-9;]*m", "", self.on_terminal(*arguments, **options)).splitlines()

    def test_no_line_is_wider_than_the_terminal(self):
        for name in ("sample", "long", "names"):
            for command in (["report", "--sort", "p99"], ["info"], ["slow"], ["explain"], ["explain", "--slowest", "."], ["calls"], ["tree"], ["tree", "--no-fold"],
                            ["stacks"], ["stacks", "--share", "0"], ["graph"], ["hist"],
                            ["tree", "--function", ".", "--slowest", "3"]):
                for columns in (40, 80, 120, 200):
                    lines = self.plain_lines(*command, self.path(name + ".karst"), columns=columns)
                    self.assertEqual((self.status, self.said), (0, ""))
                    self.assertLessEqual(max(map(len, lines)), columns, (command, name, columns))

    def test_the_name_is_never_pushed_out(self):
        lines = self.plain_lines("report", self.path("long.karst"), "--sort", "calls")
        self.assertRegex(lines[1], r"^ *self% +self +total +calls .* max  function$")
        self.assertRegex(lines[2], r"^ +0\.\d% .* 300 .* app::leaf$")
        self.assertRegex(lines[3], r" app::Server::handle_request$")

    def test_messages_fit_a_terminal_too(self):
        parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        for arguments in (["reprot"], ["report", "--sort", "totl"], ["export", "--to", "svg", "-o", "x", self.path("sample.karst")]):
            subprocess.run([KARST, *arguments], stderr=child, timeout=60)
            lines = os.read(parent, 65536).decode().splitlines()
            self.assertTrue(lines[0].startswith("karst: "))
            self.assertLessEqual(max(map(len, lines)), 80, lines)
        os.close(child)
        os.close(parent)

    def test_repeats_fold_where_nothing_is_below_them(self):
        lines = self.plain_lines("tree", self.path("long.karst"))
        self.assertEqual([line for line in lines if "leaf" in line], ["  1.500 us        app::leaf  x300"])
        self.assertEqual(len([line for line in lines if "handle_request" in line]), 31)
        self.assertEqual(len([line for line in self.plain_lines("tree", self.path("long.karst"), "--no-fold")
                              if "leaf" in line]), 300)
        text = self.good("tree", self.path("long.karst"))
        self.assertEqual((text.count("app::leaf()\n"), " x300" in text), (300, False))
        self.assertIn("app::leaf()  x300\n", self.good("tree", "--fold", self.path("long.karst")))

    def test_columns_are_those_that_are_asked_for(self):
        lines = self.plain_lines("report", self.path("long.karst"), "--columns", "p99,calls", "--sort", "calls")
        self.assertRegex(lines[1], r"^ +p99 +calls  function$")
        self.assertRegex(lines[2], r"^ +5 ns +300  app::leaf$")
        self.assertIn("there is no column 'size'; there are: self%, ",
                      self.bad(2, "report", self.path("sample.karst"), "--columns", "size"))

    def test_wide_is_what_a_pipe_gets(self):
        path = self.path("long.karst")
        for command in ("report", "info"):
            piped = self.good(command, path)
            self.assertEqual("\n".join(self.plain_lines(command, path, "--wide")) + "\n", piped)
            self.assertEqual("\n".join(self.plain_lines(command, path)), self.good(command, path, "--width", "80")[:-1])

    def test_colour_is_left_out_where_nobody_wants_it(self):
        path = self.path("sample.karst")
        self.assertIn("\x1b[1m", self.on_terminal("report", path))
        self.assertNotIn("\x1b", self.on_terminal("report", path, NO_COLOR="1"))
        self.assertNotIn("\x1b", self.good("report", path))

    def test_the_pager_gets_what_is_printed_and_keeps_the_status(self):
        path = self.path("sample.karst")
        paged = self.on_terminal("report", path, typed=True, KARST_PAGER="sed s/^/paged:/", NO_COLOR="1")
        self.assertEqual(self.status, 0)
        self.assertTrue(all(line.startswith("paged:") for line in paged.splitlines()), paged)
        self.assertIn("work", paged)
        for without in ({"KARST_PAGER": ""}, {"KARST_PAGER": "cat"}, {"KARST_PAGER": "no-such-pager"}, {"TERM": "dumb"},
                        {"KARST_PAGER": "sed s/^/paged:/", "PAGER": "false", "typed": False}):
            text = self.on_terminal("report", path, **{"typed": True, **without})
            self.assertIn("work", text)
            self.assertNotIn("paged:", text)
        self.assertNotIn("paged:", self.on_terminal("report", path, "--no-pager", typed=True, PAGER="sed s/^/paged:/"))
        # Errors are not paged, and a pager that is left at once is none.
        self.on_terminal("report", self.path("none.karst"), typed=True, PAGER="sed s/^/paged:/")
        self.assertEqual(self.status, 1)
        self.assertIn("no such file", self.said)
        self.on_terminal("tree", self.path("big.karst"), typed=True, PAGER="head -1")
        self.assertEqual((self.status, self.said), (0, ""))

    @unittest.skipIf(os.geteuid() != 0, "only root is protected")
    def test_the_environment_chooses_no_pager_for_root_under_sudo(self):
        text = self.on_terminal("report", self.path("sample.karst"), typed=True, PAGER="sed s/^/paged:/", SUDO_UID="1000")
        self.assertIn("work", text)
        self.assertNotIn("paged:", text)


class Info(Case):
    def test_text(self):
        text = self.good("info", self.path("sample.karst"))
        for part in ("with names, complete", "process 10 app: app --flag", "exited with status 0", "worker", "01ab",
                     "/bin/sample", "2023-11-14 22:13:20", "1,000,000,000 ticks a second", "8, 2 of them open"):
            self.assertIn(part, text)

    def test_json(self):
        data = json.loads(self.good("info", "--format", "json", self.path("sample.karst")))
        self.assertEqual(data["size"], os.path.getsize(self.path("sample.karst")))
        self.assertEqual((data["calls"], data["open_calls"], data["complete"]), (8, 2, True))
        process = data["processes"][0]
        self.assertEqual((process["pid"], process["exit_status"], process["signal"]), (10, 0, None))
        self.assertEqual([(t["tid"], t["name"], t["calls"]) for t in process["threads"]],
                         [(10, "app", 4), (11, "worker", 4)])
        self.assertEqual(process["modules"][0],
                         {"path": "/bin/sample", "build_id": "01ab", "load_address": "0x10000", "functions": 3})

    def test_a_cut_file_shows_what_is_left_and_says_so(self):
        data = self.sample()
        cut = self.write("cut.karst", data[: len(data) - 40])
        run = self.karst("info", cut)
        self.assertEqual(run.returncode, 0)
        self.assertIn(b"cut short", run.stdout)
        self.assertIn(b"\nproblems\n", run.stdout)
        run = self.karst("tree", "--plain", cut)
        self.assertEqual((run.returncode, run.stdout.decode()), (0, PLAIN))
        self.assertIn(b"damaged or incomplete", run.stderr)


class Export(Case):
    def test_both_formats_arrive_under_their_name(self):
        for to in ("chrome", "perfetto"):
            out = self.path("out." + to)
            self.assertEqual(self.good("export", self.path("sample.karst"), "--to", to, "-o", out), "")
            self.assertGreater(os.path.getsize(out), 100)
            run = self.karst("export", self.path("sample.karst"), "--to", to, "-o", "-")
            with open(out, "rb") as file:
                self.assertEqual(run.stdout, file.read())
        with open(self.path("out.chrome"), encoding="utf-8") as file:
            events = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]
        self.assertEqual(len(events), 8)
        self.assertEqual(sorted(n for n in os.listdir(self.directory) if n.startswith("out.")),
                         ["out.chrome", "out.perfetto"])

    def test_places_that_cannot_be_written(self):
        sample = self.path("sample.karst")
        for out, reason in ((self.path("no/out"), "No such file"), (self.directory, "is a directory"),
                            ("/dev/full", "No space left")):
            for to in ("chrome", "perfetto"):
                message = self.bad(1, "export", sample, "--to", to, "-o", out)
                self.assertIn(reason, message)
                self.assertIn(out, message)

    @unittest.skipIf(os.geteuid() == 0, "root may write anywhere")
    def test_a_directory_that_is_not_ours(self):
        self.assertIn("Permission denied",
                      self.bad(1, "export", self.path("sample.karst"), "--to", "chrome", "-o", "/usr/karst.json"))

    def test_a_full_disk_leaves_nothing_behind(self):
        # A limit on the file's size fails in the middle of writing, as a full disk does, and needs no root.
        before = sorted(os.listdir(self.directory))
        run = subprocess.run(
            ["sh", "-c", 'trap "" XFSZ; ulimit -f 64; exec "$@"', "sh", KARST, "export", self.path("big.karst"), "--to",
             "chrome", "-o", self.path("full.json")],
            capture_output=True, timeout=60)
        self.assertEqual(run.returncode, 1)
        self.assertIn(b"full.json: File too large", run.stderr)
        self.assertEqual(sorted(os.listdir(self.directory)), before)

    def test_stdout_that_is_full(self):
        with open("/dev/full", "wb") as full:
            for command in (["tree"], ["report"], ["info"], ["export", "--to", "chrome", "-o", "-"]):
                run = subprocess.run([KARST, *command, self.path("sample.karst")], stdout=full, stderr=subprocess.PIPE,
                                     timeout=60)
                self.assertEqual(run.returncode, 1, command)
                self.assertIn(b"No space left", run.stderr)


class BadFiles(Case):
    COMMANDS = (["info"], ["tree"], ["report"], ["export", "--to", "chrome", "-o", "-"])

    def every_command_refuses(self, path, *parts):
        for command in self.COMMANDS:
            message = self.bad(1, *command, path)
            self.assertIn(path, message)
            for part in parts:
                self.assertIn(part, message)

    def test_missing(self):
        self.every_command_refuses(self.path("nowhere.karst"), "no such file")

    def test_directory(self):
        self.every_command_refuses(self.directory, "directory")

    def test_empty(self):
        self.every_command_refuses(self.write("empty.karst", b""), "empty")

    def test_foreign(self):
        self.every_command_refuses(self.write("elf.karst", b"\x7fELF" + bytes(1000)), "not a Karst trace")
        self.every_command_refuses(self.write("text.karst", b"{\"traceEvents\": []}" * 10), "not a Karst trace")

    def test_header_alone_is_cut_but_readable_or_refused_never_a_crash(self):
        data = self.sample()
        for size in (1, 7, 8, 31):
            self.every_command_refuses(self.write("short.karst", data[:size]))
        for size in range(32, len(data), 97):
            path = self.write("short.karst", data[:size])
            for command in self.COMMANDS:
                run = self.karst(*command, path)
                self.assertIn(run.returncode, (0, 1), (size, command, run.stderr))
                self.assertNotEqual(run.stderr if command != ["info"] else run.stdout, b"")

    def test_future_version(self):
        data = bytearray(self.sample())
        struct.pack_into("<H", data, 8, 2)
        struct.pack_into("<I", data, 28, crc32c(data[:28]))
        self.every_command_refuses(self.write("future.karst", data), "version 2")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
