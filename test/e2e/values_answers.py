"""What reports and explanations make of noted values, against naive sums over the calls one by one."""
import csv
import io
import json
import re
import subprocess
import urllib.request
from collections import defaultdict
from pathlib import Path

import support
from support import KARST, TracedTest, build, main

INCLUDE = ("-I", str(Path(__file__).resolve().parents[2] / "include"))


def karst(*arguments, status=0):
    done = subprocess.run([KARST, *map(str, arguments)], capture_output=True, text=True, timeout=support.TIMEOUT)
    assert done.returncode == status, done.stderr
    return done.stderr if status else done.stdout


def table(*arguments):
    return list(csv.DictReader(io.StringIO(karst(*arguments, "--format", "csv"))))


def naive(trace, key, *filters):
    """Group to [calls, total, self, durations] of all calls that `key` has a group for."""
    sums = defaultdict(lambda: [0, 0, 0, []])
    stacks = defaultdict(list)
    for row in table("calls", trace, *filters):
        begin, duration = int(row["begin_ns"]), int(row["duration_ns"])
        stack = stacks[row["tid"]]
        # A call that begins as its sibling ends may seem to lie in it by what is rounded: its caller tells.
        while stack and (begin >= stack[-1][1] or row["caller"] != stack[-1][3]):
            stack.pop()
        group = key(row)
        of = sums[group]
        if all(above[2] != group for above in stack):
            of[1] += duration
        of[0] += 1
        of[2] += duration
        of[3].append(duration)
        if stack:
            sums[stack[-1][2]][2] -= duration
        stack.append((begin, begin + duration, group, row["function"]))
    sums.pop(None, None)
    return sums


def argument(name, function):
    def key(row):
        if not re.search(function, row["function"]):
            return None
        found = re.search(rf'(?:^|, ){name}=("[^"]*"|[^,]*)', row["arguments"])
        return found[1] if found else "<not noted>"
    return key


def returned(function):
    return lambda row: (row["returned"] or "<not noted>") if re.search(function, row["function"]) else None


class ValuesAnswers(TracedTest):
    VALUES = "^(step|serve|count_down)"

    def record(self, *options):
        program = build("values_answers", "values/answers.cc", "-O1", "-pthread")
        run = self.run_traced(program, "300", options=options or ("--args", self.VALUES, "--returns", self.VALUES))
        self.assert_whole(run.trace)
        return run.trace.path

    def agrees(self, rows, sums):
        self.assertEqual({row["value"] for row in rows}, sums.keys())
        for row in rows:
            calls, total, own, durations = sums[row["value"]]
            self.assertEqual(int(row["calls"]), calls)
            # Each call's time is rounded by itself here.
            self.assertAlmostEqual(int(row["total_ns"]), total, delta=calls + 1)
            self.assertAlmostEqual(int(row["self_ns"]), own, delta=12 * calls + 1)
            durations.sort()
            self.assertEqual(int(row["p50_ns"]), durations[(len(durations) + 1) // 2 - 1])
            self.assertEqual(int(row["max_ns"]), durations[-1])

    def test_report_by_value_is_the_sum_of_its_calls(self):
        trace = self.record()
        for name, function in (("n", "^step"), ("mode", "^step"), ("n", "^count_down"), ("n", "^(step|serve)"),
                               ("mode", "^(step|spin)"), ("id", "^serve")):
            for filters in ((), ("--range", "1us..1ms"), ("--thread", str(table("calls", trace)[0]["tid"]))):
                rows = table("report", trace, "--by", f"arg:{name}", "--function", function, "--raw", *filters)
                with self.subTest(name=name, function=function, filters=filters):
                    if not filters or filters[0] == "--thread":
                        self.agrees(rows, naive(trace, argument(name, function), "--raw", *filters))
                    else:
                        sums = naive(trace, argument(name, function), "--raw", *filters)
                        self.assertEqual({r["value"]: int(r["calls"]) for r in rows},
                                         {value: of[0] for value, of in sums.items()})
        self.agrees(table("report", trace, "--by", "returned", "-f", "^step", "--raw"),
                    naive(trace, returned("^step"), "--raw"))
        self.agrees(table("report", trace, "--by", "returned", "--raw"), naive(trace, returned(self.VALUES), "--raw"))

    def test_report_by_value_in_every_format(self):
        trace = self.record()
        by_calls = table("report", trace, "--by", "arg:id", "-f", "^serve", "--sort", "value")
        self.assertEqual([row["value"] for row in by_calls], [str(i) for i in range(300)])
        answer = json.loads(karst("report", trace, "--by", "arg:id", "-f", "^serve", "--sort", "value", "--json", "-n", 3))
        self.assertEqual([row["value"] for row in answer["values"]], ["0", "1", "2"])
        self.assertEqual([(row["calls"], row["total_ns"]) for row in answer["values"]],
                         [(int(row["calls"]), int(row["total_ns"])) for row in by_calls[:3]])
        self.assertEqual(answer["rest"], {"values": 297, "calls": 594,
                                          "self_ns": sum(int(row["self_ns"]) for row in by_calls[3:])})
        text = karst("report", trace, "--by", "arg:n", "-f", "^step", "--columns", "calls,p50", "--sort", "p50")
        self.assertRegex(text.splitlines()[1], "calls +p50 +value$")
        self.assertRegex(text.splitlines()[2], r"^ +1 +[\d.]+ [mu]s +500000$")
        self.assertIn("... and 299 more values: 598 calls, ", karst("report", trace, "--by", "arg:id", "-f", "^serve", "-n", 1))

    def test_report_by_request_is_that_of_each_request(self):
        program = build("values_requests", "notes/requests.cc", "-O1", "-pthread", *INCLUDE, output="values_requests")
        trace = self.run_traced(program, self.directory / "log", "30").trace.path
        for filters in ((), ("-f", "^step")):
            rows = {row["value"]: row for row in table("report", trace, "--by", "request", "--raw", *filters)}
            self.assertEqual(rows.keys() - {"<no request>"}, {str(i) for i in range(1, 31)} & rows.keys())
            self.assertGreater(len(rows), 20)
            for request in ("1", "17", "30"):
                alone = table("report", trace, "--request", request, "--raw", *filters)
                self.assertEqual(int(rows[request]["calls"]), sum(int(row["calls"]) for row in alone))
                self.assertAlmostEqual(int(rows[request]["self_ns"]), sum(int(row["self_ns"]) for row in alone),
                                       delta=len(alone))

    def test_report_by_frame_is_that_of_each_range_of_time(self):
        program = build("values_frames", "values/frames.cc", "-O1", "-pthread", *INCLUDE, output="values_frames")
        trace = self.run_traced(program).trace.path
        steps = {row["value"]: int(row["calls"]) for row in table("report", trace, "--by", "frame", "-f", "^step")}
        self.assertEqual(steps, {str(frame): frame for frame in range(1, 41)})
        marks = [int(row["time_ns"]) for row in table("notes", trace, "--kind", "frame")]
        self.assertEqual(len(marks), 40)
        rows = {row["value"]: row for row in table("report", trace, "--by", "frame", "--raw", "-f", "^other")}
        for frame in (2, 17, 40):
            alone, = table("report", trace, "--raw", "-f", "^other", "--range", f"{marks[frame - 2]}ns..{marks[frame - 1]}ns")
            self.assertAlmostEqual(int(rows[str(frame)]["self_ns"]), int(alone["self_ns"]), delta=int(alone["calls"]) + 4)
            self.assertAlmostEqual(int(rows[str(frame)]["calls"]), int(alone["calls"]), delta=1)

    def test_report_by_frames_of_several_names(self):
        program = build("values_frames", "values/frames.cc", "-O1", "-pthread", *INCLUDE, output="values_frames")
        trace = self.run_traced(program, "two").trace.path
        for by in ("frame", "frame:nothing"):
            self.assertIn("has frames of these names: --by frame:picture, --by frame:sound",
                          karst("report", trace, "--by", by, status=1))
        sounds = {row["value"]: int(row["calls"]) for row in table("report", trace, "--by", "frame:sound", "-f", "^step")}
        self.assertEqual(sounds, {str(n + 1): sum(range(10 * n + 1, 10 * n + 11)) for n in range(4)})

    def test_the_page_explains_with_the_same_values(self):
        trace = self.record()
        slow, = [row for row in table("calls", trace, "-f", "^serve") if row["arguments"].endswith("n=500000")]
        told = json.loads(karst("explain", trace, "--call", slow["call"], "--json"))
        server = subprocess.Popen([KARST, "view", "--no-browser", "--keep", str(trace)], stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        url = server.stdout.readline().strip() + "api/"

        def ask(what):
            with urllib.request.urlopen(url + what) as answer:
                return json.load(answer)

        ask("progress?wait=1")
        threads = [one["tid"] for one in ask("trace")["threads"]]
        thread = threads.index(int(slow["tid"]))
        rows = [row for row in table("calls", trace, "--raw") if row["tid"] == slow["tid"]]
        index, = [i for i, row in enumerate(rows) if row["call"] == slow["call"] and row["function"] == slow["function"]]
        answer = ask(f"explain?thread={thread}&index={index}")
        self.assertEqual(answer["call"], slow["call"])
        words = lambda values: [value["words"] for value in values]
        self.assertEqual(answer["values"]["words"], words(told["values"]))
        self.assertEqual([cause["values"]["words"] for cause in answer["causes"]],
                         [words(cause["values"]) for cause in told["causes"]])

    def test_explain_names_the_argument_that_took_long(self):
        trace = self.record()
        slow, = [row for row in table("calls", trace, "-f", "^serve") if row["arguments"].endswith("n=500000")]
        self.assertEqual(slow["arguments"], "id=150, n=500000")
        answer = json.loads(karst("explain", trace, "--call", slow["call"], "--json"))
        self.assertTrue(answer["stands_out"])
        of_call, = answer["values"]  # not the id, which is another in each call
        self.assertEqual((of_call["function"], of_call["name"], of_call["here"], of_call["commonest"]),
                         ("serve(int, int)", "n", "500000", "1000"))
        self.assertEqual(of_call["words"], "n=500000 here; n=1000 in {0} of {0} typical calls".format(answer["typical"]))
        first = answer["causes"][0]
        self.assertEqual(first["path"][0]["function"], "step(int, char const*)")
        below, = [value for value in first["values"] if value["name"] == "n"]
        words = "step: n=500000 in the longest of 5 calls; n=1000 in {0} of {0} calls within typical ones".format(
            5 * answer["typical"])
        self.assertEqual(below["words"], words)
        self.assertAlmostEqual(sum(cause["share"] for cause in answer["causes"]) + answer["rest_share"], 1, places=4)
        text = karst("explain", trace, "--call", slow["call"])
        self.assertIn("\n" + of_call["words"] + "\n", text)
        self.assertIn("\n" + 21 * " " + words + "\n", text)
        page = karst("explain", trace, "--call", slow["call"], "--format", "html")
        self.assertIn(f"<p>{of_call['words']}</p>", page)
        self.assertIn(f"<small>{words}</small>", page)

    def test_slow_says_what_slow_calls_were_given(self):
        trace = self.record()
        # Others may have been slow, too: a busy machine stops them.
        slow = ("slow", trace, "--each", "-n", "1000")
        worst, = [row for row in json.loads(karst(*slow, "--json"))["slow"] if row.get("arguments") == "id=150, n=500000"]
        self.assertEqual(worst["function"], "serve(int, int)")
        step = next(row for row in worst["path"] if row["function"].startswith("step"))
        self.assertEqual(step["arguments"], 'n=500000, mode="odd"')
        lines = [line.strip() for line in karst(*slow).splitlines()]
        self.assertIn(f"serve(id=150, n=500000) = {worst['returned']}", lines)
        self.assertIn(f"step(n=500000, mode=\"odd\") = {step['returned']}", lines)

    def test_what_cannot_be_grouped_is_told(self):
        trace = self.record("--args", "^step")
        for arguments, message in (
                (("--by", "arg:n"), "--by arg:n needs --function REGEX"),
                (("--by", "arg:x", "-f", "^step"), "has an argument 'x' noted; there are n, mode"),
                (("--by", "arg:n", "-f", "^spin"), "has no arguments noted of functions that match '^spin'; it has those of step"),
                (("--by", "arg:n", "-f", "^stop"), "did you mean 'step'?"),
                (("--by", "returned", "-f", "^step"), "has no returned values noted: record with 'karst run --returns REGEX"),
                (("--by", "request"), "no thread of "),
                (("--by", "size", "-f", "^step"), "'size' is none of arg:NAME, returned, request"),
                (("--sort", "value"), "--sort value needs --by")):
            done = subprocess.run([KARST, "report", trace, *arguments], capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(message, done.stderr)
        trace = self.record("--not-function", "spin")
        self.assertIn("has no arguments noted: record with 'karst run --args REGEX PROGRAM'",
                      karst("report", trace, "--by", "arg:n", "-f", "^step", status=1))


if __name__ == "__main__":
    main()
