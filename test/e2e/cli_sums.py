"""Commands that add calls up: flame, stacks, graph, hist, also as pages."""

import base64
import csv
import hashlib
import io
import json
import re
import shutil
import subprocess
import unittest
from xml.etree import ElementTree

from cli_case import Case, main


class Sums(Case):
    """flame, stacks, graph and hist: the same sums as calls and report, on the same filters."""

    FILTERS = ([], ["--range", "100ns..2us"], ["--below", "work|step_1"], ["--min-duration", "100ns"],
               ["--function", "work|step_[12]"], ["--range", "1us..", "--min-duration", "50ns", "--function", "work|step"])

    def folded(self, *arguments):
        lines = [line.rsplit(" ", 1) for line in self.good("flame", *arguments).splitlines()]
        self.assertEqual(len({path for path, _ in lines}), len(lines))
        return {path: int(number) for path, number in lines}

    def test_all_commands_agree(self):
        for name in ("sample.karst", "walk.karst", "costly.karst"):
            for filters in self.FILTERS:
                words = [self.path(name), *filters]
                report = json.loads(self.good("report", "--json", *words))["functions"]
                calls = list(csv.DictReader(io.StringIO(self.good("calls", "--format", "csv", *words))))
                stacks = json.loads(self.good("stacks", "--json", *words))["paths"]
                graph = json.loads(self.good("graph", "--json", *words))
                hist = json.loads(self.good("hist", "--json", *words))["spreads"]
                count = {f["function"]: f["calls"] for f in report}
                self.assertEqual(sum(count.values()), len(calls))
                self.assertEqual(self.by(stacks, "function", "calls"), count)
                self.assertEqual(self.by(hist, "function", "calls"), count)
                self.assertEqual(self.by(graph["functions"], "function", "calls"), count)
                into = [edge for edge in graph["edges"] if edge["function"] in count]
                self.assertEqual(self.by(into, "function", "calls"), count)
                folded = self.folded("--by", "calls", *words)
                self.assertEqual(sum(folded.values()), len(calls))
                for path in folded:
                    self.assertIn(path.split(";")[-1], count)
                for f in hist:
                    self.assertEqual(sum(bucket["calls"] for bucket in f["buckets"]), f["calls"] - f["open_calls"])
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
            self.assertIn("work(int): 1.503 ms (75.1% of all time), 2 calls", svg.read())

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
        [work] = json.loads(self.good("hist", "--json", "--function", "work", self.path("sample.karst")))["spreads"]
        self.assertEqual(sum(bucket["calls"] for bucket in work["buckets"]), 2)
        self.assertLessEqual(work["buckets"][0]["from_ns"], 2500)
        self.assertGreater(work["buckets"][-1]["to_ns"], 1500000)

    def test_graph(self):
        sample = self.path("sample.karst")
        text = self.good("graph", "--function", "work", sample)
        self.assertEqual(text.splitlines()[1], "  4 calls, total 1.504 ms, self 1.504 ms, p50 2.500 us, p99 1.500 ms")
        self.assertEqual([line[38:] for line in text.splitlines()[2:]], ["< main", "< (nothing traced)", "> leaf()"])
        self.assertIn("@ calls of itself", self.good("graph", self.path("walk.karst")))
        dot = self.good("graph", "--format", "dot", sample)
        self.assertIn('f0 -> f1 [label="2 calls, 1.503 ms"];', dot)
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
        for once in ("<main>", "</main>", "<h1>"):
            self.assertEqual(text.count(once), 1, once)
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
        self.assertIn("work(int): 1.503 ms (75.1% of all time), 2 calls",
                      self.page("flame", "--thread", "app", self.path("sample.karst")))

    @unittest.skipIf(shutil.which("chromium") is None, "needs chromium")
    def test_flame_is_searched_and_drawn_by_a_browser(self):
        page = self.path("flame.html")
        self.good("flame", "--format", "html", "-o", page, "--thread", "app", self.path("sample.karst"))
        for sought in ("work", "work(int)"):
            run = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu",
                                  f"--user-data-dir={self.directory}/chromium", "--dump-dom", f"file://{page}#{sought}"],
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


if __name__ == "__main__":
    main()
