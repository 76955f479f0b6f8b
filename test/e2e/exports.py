"""karst export --to callgrind and speedscope: what callgrind_annotate reads of it, and what its events say replayed."""
import csv
import io
import json
import re
import shutil
import subprocess
import unittest
from collections import defaultdict

import support
from support import KARST, ROOT, TracedTest, build, main

INCLUDE = ("-I", str(ROOT / "include"))


def run(*words):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, check=True,
                          timeout=support.TIMEOUT).stdout


class Exports(TracedTest):
    def traced(self):
        run_of = self.run_traced(build("exports_shop", "query/shop.cc", "-O1", "-pthread", *INCLUDE),
                                 self.directory / "journal")
        return run_of.trace.path

    def report(self, path, *options):
        return {f["function"]: f for f in json.loads(run(KARST, "report", path, "--json", *options))["functions"]}

    def annotated(self, out, *options):
        """What callgrind_annotate prints: numbers by function."""
        done = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", *options, str(out)],
                              capture_output=True, text=True, check=True, timeout=support.TIMEOUT)
        self.assertNotRegex(done.stdout + done.stderr, "malformed|[Ii]gnoring|negative")
        found = {}
        for line in done.stdout.splitlines():
            match = re.match(r"^ *([\d,]+) \([^)]*\)  (.*)$", line)
            if match and "PROGRAM TOTALS" not in line:
                name = re.sub(r" \[[^\]]*\]+( \[.*)?$", "", match[2])
                found[name.split(":", 1)[1]] = int(match[1].replace(",", ""))
        return found

    @unittest.skipIf(shutil.which("callgrind_annotate") is None, "valgrind is not installed")
    def test_callgrind_annotate_reads_the_sums_of_the_report(self):
        path, out = self.traced(), self.directory / "callgrind.out"
        for options in ((), ("--thread", "1"), ("--function", "^serve")):
            if options[:1] == ("--thread",):
                options = ("--thread", str(json.loads(run(KARST, "info", path, "--json"))["processes"][0]["threads"][1]["tid"]))
            with self.subTest(options):
                run(KARST, "export", path, "--to", "callgrind", "-o", out, *options)
                # Of functions with all that they called: --below has that.
                wanted = self.report(path, *(("--below", options[1]) if "--function" in options else options))
                own = self.annotated(out)
                for name, of in wanted.items():
                    if of["self_ns"] != 0:
                        self.assertEqual(own.get(name), of["self_ns"], name)
                self.assertEqual(sum(own.values()), sum(f["self_ns"] for f in wanted.values()))
                inclusive = self.annotated(out, "--inclusive=yes")
                for name, of in wanted.items():
                    if of["total_ns"] != 0:  # rounded down for each pair
                        self.assertAlmostEqual(inclusive[name], of["total_ns"], delta=len(wanted), msg=name)
        # The number of calls of each pair is the trace's.
        run(KARST, "export", path, "--to", "callgrind", "-o", out)
        pairs = defaultdict(int)
        names, function, callee = {}, None, None
        for line in out.read_text().splitlines():
            if match := re.match(r"^c?fn=\((\d+)\)(?: (.*))?$", line):
                name = names.setdefault(match[1], match[2])
                function, callee = (function, name) if line.startswith("c") else (name, None)
            elif match := re.match(r"^calls=(\d+) ", line):
                pairs[(function, callee)] += int(match[1])
        calls = defaultdict(int)
        for row in csv.DictReader(io.StringIO(run(KARST, "calls", path, "--format", "csv"))):
            if row["caller"]:
                calls[(row["caller"], row["function"])] += 1
        self.assertEqual(dict(pairs), dict(calls))

    def test_speedscope_has_every_call(self):
        path, out = self.traced(), self.directory / "speedscope.json"
        run(KARST, "export", path, "--to", "speedscope", "-o", out)
        file = json.loads(out.read_text())
        self.assertEqual(file["$schema"], "https://www.speedscope.app/file-format-schema.json")
        frames = file["shared"]["frames"]
        self.assertTrue(all(set(f) in ({"name"}, {"name", "file", "line"}) for f in frames))
        found = []
        for profile in file["profiles"]:
            self.assertEqual((profile["type"], profile["unit"]), ("evented", "nanoseconds"))
            self.assertLessEqual(profile["startValue"], profile["events"][0]["at"])
            stack, latest = [], 0
            for event in profile["events"]:
                self.assertGreaterEqual(event["at"], latest)
                latest = event["at"]
                if event["type"] == "O":
                    stack.append((event["frame"], latest, len(found)))
                    found.append(None)
                    continue
                frame, begin, number = stack.pop()
                self.assertEqual((event["type"], event["frame"]), ("C", frame))
                found[number] = (profile["name"], frames[frame]["name"], begin, latest)
            self.assertEqual(stack, [])
            self.assertLessEqual(latest, profile["endValue"])
        wanted = [(f"{r['thread']} {r['tid']}", r["function"], int(r["begin_ns"]),
                   int(r["begin_ns"]) + int(r["duration_ns"]))
                  for r in csv.DictReader(io.StringIO(run(KARST, "calls", path, "--raw", "--format", "csv")))]
        self.assertEqual(len(found), len(wanted))
        for one, other in zip(found, wanted):
            self.assertEqual(one[:3], other[:3])
            self.assertAlmostEqual(one[3], other[3], delta=1)  # both ends are rounded down
        # A filter.
        run(KARST, "export", path, "--to", "speedscope", "-o", out, "--function", "^append")
        file = json.loads(out.read_text())
        roots = set()
        for profile in file["profiles"]:
            depth = 0
            for event in profile["events"]:
                if event["type"] == "O" and depth == 0:
                    roots.add(file["shared"]["frames"][event["frame"]]["name"].split("(")[0])
                depth += 1 if event["type"] == "O" else -1
        self.assertEqual(roots, {"append"})


if __name__ == "__main__":
    main()
