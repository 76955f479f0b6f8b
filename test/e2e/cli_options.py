"""One language in all commands: options, filters, help, and what is said of mistakes."""

import csv
import json
import os
import re
import shutil
import tempfile

from cli_case import Case, PLAIN, main


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
        self.assertIn("FILE", self.bad(2, "recover"))
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
            (["--range=-1ms.."], {"main": 1, "work(int)": 1}),
            (["--range=..-1ms"], {"main": 1, "work(int)": 2, "leaf()": 1}),
            (["--not-function", "work"], {"main": 1, "leaf()": 1}),
            (["--not-function", "main", "--min-duration", "1us"], {"work(int)": 2}),
            (["--not-thread", "worker"], {"main": 1, "work(int)": 2, "leaf()": 1}),
            (["--not-thread", "worker", "--below", "work"], {"work(int)": 2, "leaf()": 1}),
            (["--not-thread", "worker", "--below", "leaf"], {"leaf()": 1}),
            (["--not-thread", "worker", "--min-duration", "1us"], {"main": 1, "work(int)": 2}),
            (["--thread", "app", "--below", "work", "--range", "..2us"], {"work(int)": 1, "leaf()": 1}))

    def test_names_as_they_are_printed_find_their_functions(self):
        sample = self.path("sample.karst")
        for printed in ("work(int)", "work(", "(int)", "^work", "work"):
            for option in ("--function", "--below"):
                report = json.loads(self.good("report", "--json", option, printed, sample))
                self.assertIn("work(int)", [f["function"] for f in report["functions"]], (option, printed))
            self.assertIn("work", self.good("explain", "--slowest", printed, sample))
        for command in ("calls", "tree", "hist", "slow", "graph", "stacks", "flame"):
            self.good(command, "--function", "work(int)", sample)
            self.assertIn("has a name that matches '?' ('?' is no regular expression",
                          self.bad(1, command, "--function", "?", sample))

    def test_the_same_calls_in_report_tree_and_export(self):
        sample = self.path("sample.karst")
        for filters, expected in self.PASS:
            filters = filters if "--thread" in filters else [*filters, "--thread", "app"]
            report = json.loads(self.good("report", "--json", sample, *filters))
            self.assertEqual({f["function"]: f["calls"] for f in report["functions"]}, expected, filters)
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
                    (["--range=-1ms..-5ms"], 2, "'-1ms..-5ms' is empty"),
                    (["--range=-1ms..500ns"], 1, "nothing is in -1ms..500ns: "),
                    (["--not-function", "wrok"], 1, "did you mean 'work'?"),
                    (["--below", "[a"], 1, "has a name that matches '[a' ('[a' is no regular expression: missing ]"),
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
        self.assertIn("has no notes: a program makes them", self.bad(1, "notes", one))
        for filters in (["--kind", "log"], ["--function", "main"], ["--range", "0ns..1us"]):
            self.assertIn("no note of", self.bad(1, "notes", one, *filters))

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
        self.assertIn("nameless.karst have no names to compare by, as synthetic+0x1", said)


class Language(Case):
    """One language in all commands: help, options, and what is said of mistakes."""

    COMMANDS = ("run", "view", "slow", "explain", "calls", "flame", "diff", "report", "tree", "notes", "info",
                "export", "import", "cut", "merge", "ps", "top", "on", "off", "snapshot", "attach", "resolve", "help")

    def test_help_fits_80_columns_and_has_nothing_of_the_parsers(self):
        everything = self.good("help")
        self.assertEqual(re.findall(r"(?m)^  (\w+) {2,}\S", everything)[:2], ["run", "attach"])
        for text in [everything] + [self.good("help", command) for command in self.COMMANDS]:
            self.assertLessEqual(max(map(len, text.splitlines())), 80, text)
            self.assertEqual(text.count("Usage: "), 1, text)
            self.assertNotRegex(text, r"\{\S|\(\d+x\)|REQUIRED| \.\.\.\n|UINT|TEXT|sleds")

    def test_run_has_its_options_in_groups_and_examples(self):
        text = self.good("run", "--help-all")
        self.assertEqual(len(re.findall(r"(?m)^[A-Z][a-z ]+:$", text)), 12, text)
        self.assertEqual(len(re.findall(r"(?m)^  karst run ", text)), 4, text)

    def test_commands_are_in_groups_by_what_people_want(self):
        groups = re.findall(r"(?m)^([A-Z].*):\n  \w", self.good("help"))
        self.assertEqual(groups, ["Record a program", "Look at a trace", "Ask it one thing",
                                  "Look into a program that runs, and switch its tracing", "Convert a trace",
                                  "Learn more"])

    def test_help_of_many_options_has_those_that_are_needed_most(self):
        for command in json.loads(self.good("describe"))["commands"]:
            name = command["name"]
            listed = {n for option in command["options"] for n in option["names"]}
            few, every = self.good(name, "--help"), self.good(name, "--help-all")
            shown = re.findall(r"(?m)^  (?:-\w, )?(--[a-z-]+)", few)
            if len([option for option in command["options"] if option["names"]]) <= 20:
                self.assertEqual(few, every)
                continue
            self.assertLessEqual(len(shown), 12, few)
            self.assertEqual(shown[-1], "--help-all")
            for option in listed:
                self.assertIn(option, every, name)

    def test_did_you_mean(self):
        sample = self.path("sample.karst")
        self.assertIn("Did you mean 'karst report'?", self.bad(2, "reprot"))
        for others, ours in (("record", "run"), ("stat", "run --count"), ("replay", "tree")):  # of perf and uftrace
            self.assertIn(f"Did you mean 'karst {ours}'?", self.bad(2, others))
        self.assertIn("there is no option '--formt'; did you mean '--format'?", self.bad(2, "report", "--formt", "csv", sample))
        self.assertIn("did you mean 'total'?", self.bad(2, "report", "--sort", "totl", sample))
        for typed in ("^wrok$", "WORK", "Wrok"):
            self.assertIn("did you mean 'work'?", self.bad(1, "tree", "--function", typed, sample))

    def test_numbers_that_are_none(self):
        sample = self.path("sample.karst")
        self.assertIn("karst: --limit abc: a number is needed\n", self.bad(2, "report", "--limit", "abc", sample))
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
                self.assertIn("was not built for tracing", self.bad(1, command, "--no-patch", option, "work", "true"))
            self.assertIn("process 999999999", self.bad(1, "on", option, "work", "999999999"))

    def test_view_of_what_is_no_trace_ends(self):
        self.assertIn("not a Karst trace", self.bad(1, "view", "--no-browser", self.write("no.karst", b"\x7fELF" + bytes(999))))
        self.assertIn("no such file", self.bad(1, "view", "--no-browser", self.path("none.karst")))

    def test_a_value_of_strip_behind_a_space(self):
        message = self.bad(1, "resolve", "--strip", "source", self.path("none.karst"))
        self.assertIn("none.karst", message)

    def test_without_a_file_the_newest_trace_of_ones_own_is_meant(self):
        with tempfile.TemporaryDirectory() as directory:
            for command in ("report", "tree", "slow", "info"):
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


if __name__ == "__main__":
    main()
