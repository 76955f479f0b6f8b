"""Commands that compare calls: diff, explain."""

import csv
import io
import json
import re

from cli_case import Case, main


class Diff(Case):
    def functions(self, *arguments):
        answer = json.loads(self.good("diff", "--json", *arguments))
        return {f["function"].split("::")[-1]: f for f in answer["compared_functions"]}

    @staticmethod
    def side(of, side):
        """What a function has on that side, by name."""
        return {re.sub(rf"_{side}(_ns)?$", r"\1", key): value for key, value in of.items()
                if re.search(rf"_{side}(_ns)?$", key)}

    def test_a_trace_and_itself(self):
        walk = self.path("walk.karst")
        self.assertIn("4 functions compared: none changed (rank test; 1% of", self.good("diff", walk, walk))
        self.good("diff", "--fail-over", "0%", walk, walk)
        report = {f["function"].split("::")[-1]: f for f in json.loads(self.good("report", "--json", walk))["functions"]}
        for name, f in self.functions(walk, walk).items():
            self.assertEqual(self.side(f, "a"), self.side(f, "b"))
            self.assertEqual({key: self.side(f, "a")[key] for key in ("calls", "total_ns", "self_ns", "p50_ns")},
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

    def test_calls_that_are_more_come_first_and_fail(self):
        few, many = self.path("few.karst"), self.path("many.karst")
        text = self.good("diff", few, many)
        self.assertIn("\nhandle calls lookup 300 times, before 100: +", text)
        self.assertNotIn("lookup calls leaf", text)  # follows from it
        self.assertRegex(text, r"1 changed; calls of 2 differ in number")
        first = json.loads(self.good("diff", "--json", few, many))["findings"][0]
        self.assertEqual((first["kind"], first["caller"], first["function"], first["certain"]),
                         ("count", "handle", "lookup", True))
        self.assertEqual(self.karst("diff", "--fail-over", "5%", few, many).returncode, 3)
        self.assertEqual(self.karst("diff", "--fail-over", "5%", many, few).returncode, 0)
        self.assertEqual(self.karst("diff", "--fail-over", "5%", many, many).returncode, 0)

    def test_rows_are_sorted_and_chosen(self):
        before, after = self.path("before.karst"), self.path("after.karst")
        rows = list(csv.DictReader(io.StringIO(self.good("diff", "--format", "csv", "--sort", "total_b", before, after))))
        self.assertEqual({row["function"].split("::")[-1] for row in rows}, set(self.functions(before, after)))
        totals = [int(row["total_b_ns"]) for row in rows]
        self.assertEqual(totals, sorted(totals, reverse=True))
        text = self.good("diff", "--columns", "counts,function", before, after)
        self.assertRegex(text, r"(?m)^counts +function$")
        self.assertIn("there is no column", self.bad(1, "diff", "--columns", "luck", before, after))

    def test_several_runs_a_side(self):
        before, after = self.path("before.karst"), self.path("after.karst")
        text = self.good("diff", before, before, "--with", after, after, after)
        self.assertIn("2 functions compared: 1 changed (2 and 3 runs, t-test; ", text)
        one, several = self.functions(before, after), self.functions(before, before, "--with", after, after, after)
        for name, f in several.items():
            for side, runs in (("a", 2), ("b", 3)):
                for key in ("calls", "total_ns", "self_ns"):
                    self.assertEqual(self.side(f, side)[key], runs * self.side(one[name], side)[key])
                for key in ("p50_ns", "middle_ns"):
                    self.assertEqual(self.side(f, side)[key], self.side(one[name], side)[key])
        # Of several runs the table has the mean.
        row = next(line for line in text.splitlines() if line.endswith("slower"))
        self.assertEqual(row.split()[-3:-1], [f"{one['slower']['calls_' + side]:,}" for side in "ab"])
        self.assertIn("rank test; runs are taken to differ", self.good("diff", before, "--with", after))
        self.assertIn("(2 and 1 runs, t-test; ", self.good("diff", before, before, "--with", after))
        self.assertIn("'karst diff A1 A2 --with B1 B2'"[1:-1], self.bad(2, "diff", before, before, after))
        self.assertIn("svg is of one trace a side", self.bad(2, "diff", "--format", "svg", before, before, "--with", after))
        self.assertIn("no such file", self.bad(1, "diff", before, before + "x", "--with", after))

    def test_two_ranges_of_one_trace(self):
        after = self.path("after.karst")
        whole = self.functions(after, after)["same"]["calls_a"]
        parts = self.functions(after, "--range-a", "..8us", "--range-b", "8us..")["same"]
        self.assertEqual(parts["complete_a"] + parts["complete_b"], whole)
        self.assertGreater(min(parts["calls_a"], parts["calls_b"]), 10)

    def test_functions_of_one_side_alone(self):
        sample, long = self.path("sample.karst"), self.path("long.karst")
        row = next(f for f in json.loads(self.good("report", "--json", sample))["functions"] if "work" in f["function"])
        for traces, words, side in (([sample, long], "gone", "a"), ([long, sample], "new", "b")):
            for option in ("--function", "--below"):
                self.assertRegex(self.good("diff", option, "^work", *traces), rf"(?m)^ +{words} .* work\(int\)$")
                f = self.functions(option, "^work", *traces)["work(int)"]
                self.assertEqual((f["calls_" + side], f["calls_" + "ab".replace(side, "")]), (row["calls"], 0))
        self.assertIn("has a name that matches 'wrk'; did you mean", self.bad(1, "diff", "--function", "wrk", sample, long))

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


if __name__ == "__main__":
    main()
