"""How calls ended is in everything that shows calls: tree, report, info, exports, and what the page is given."""
import base64
import csv
import gzip
import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from support import KARST, TIMEOUT, TracedTest, build, main  # noqa: E402
from ways_out import STEADY_GCC, shown  # noqa: E402

TREE = ["# thread", "main  [open]", "  passes()  [unwound]", "    throws()  [unwound]", "  passes_jump()  [jumped]",
        "    jumps()  [jumped]", *["  tail()  [tail]", "    plain()", "    last()"] * 3, "  plain()", "  ends()  [open]", "    plain()"]
MARKS = {"main": "open", "passes()": "unwound", "throws()": "unwound", "passes_jump()": "jumped", "jumps()": "jumped",
         "tail()": "tail", "ends()": "open"}
COUNTS = {"open": 2, "unwound": 2, "jumped": 2, "tail": 3}
LETTERS = {"open": ">", "unwound": "!", "jumped": "~", "tail": "="}
FLAGS = {"open": 2, "unwound": 4, "jumped": 8, "tail": 16}  # docs/viewer-protocol.md
CALLS = len(TREE) - 1


def names_of(trace):
    """Names of functions by number, from the facts of api/trace."""
    return dict(zip(trace["functions"]["number"], trace["functions"]["name"]))


class Marks(TracedTest):
    def setUp(self):
        super().setUp()
        self.trace = self.run_traced(build("ways_out.marks", "ways_out/marks/marks.cc", "-O2", *STEADY_GCC)).trace

    def karst(self, *arguments):
        return subprocess.run([KARST, *map(str, arguments)], check=True, capture_output=True, text=True, timeout=TIMEOUT,
                              cwd=self.directory).stdout

    def export(self, form):
        out = self.directory / form
        self.karst("export", self.trace.path, "--to", form, "-o", out)
        return out.read_bytes()

    def test_tree(self):
        self.assertEqual(shown(self.trace.tree("--marks")), TREE)
        letters = Counter(line[12] for line in self.trace.timed_tree()[1:])
        self.assertEqual(letters, Counter({**{LETTERS[m]: n for m, n in COUNTS.items()}, " ": CALLS - sum(COUNTS.values())}))

    def test_report_and_info(self):
        for word, count in COUNTS.items():
            self.assertEqual(self.trace.info[f"{word}_calls"], count)
        rows = list(csv.DictReader(self.karst("report", "--format", "csv", self.trace.path).splitlines()))
        text = self.karst("report", self.trace.path).splitlines()
        for functions in (self.trace.report(), rows):
            for f in functions:
                mark = MARKS.get(f["function"])
                self.assertEqual({word: int(f[f"{word}_calls"]) for word in COUNTS},
                                 {word: COUNTS["tail"] if word == mark == "tail" else int(word == mark) for word in COUNTS}, f["function"])
        for name, mark in MARKS.items():
            (line,) = [line for line in text if re.search(rf"\s{re.escape(name)}(\s|$)", line)]
            self.assertIn(f"+{3 if mark == 'tail' else 1} {mark}", line)

    def test_chrome(self):
        events = [e for e in json.loads(self.export("chrome"))["traceEvents"] if e.get("ph") == "X"]
        self.assertEqual(len(events), CALLS)
        for e in events:
            mark = MARKS.get(e["name"].split(" (/")[0])  # behind it stands the place in the source
            args = e.get("args", {})
            self.assertEqual((args.get("ended"), args.get("open")),
                             (None, "end") if mark == "open" else (mark, None), e["name"])

    def test_perfetto(self):
        data = self.export("perfetto")
        for word in ("unwound", "jumped", "tail"):
            # A string in protobuf: its length stands before it. ("tail()" and "jumps()" are names of functions.)
            self.assertEqual(data.count(bytes([len(word)]) + word.encode()), COUNTS[word], word)
        self.assertEqual(data.count(b"\x03end"), COUNTS["open"])

    def test_exported_page(self):
        """It holds the trace itself; its engine answers as the server does (page/test/unit/engine.test.ts)."""
        packed = re.search(rb'id="karst-trace">(.*?)</script>', self.export("html"), re.DOTALL)[1]
        self.assertEqual(gzip.decompress(base64.b64decode(packed)), self.trace.path.read_bytes())

    def assert_flags(self, calls):
        calls = list(calls)
        self.assertEqual(len(calls), CALLS)
        for name, flags in calls:
            self.assertEqual(flags, FLAGS[MARKS[name]] if name in MARKS else 0, name)

    def test_page_of_karst_view(self):
        server = subprocess.Popen([KARST, "view", "--no-browser", str(self.trace.path)], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        url = server.stdout.readline().strip()

        def get(what):
            while True:
                try:
                    with urllib.request.urlopen(url + what, timeout=TIMEOUT) as answer:
                        return json.load(answer)
                except urllib.error.HTTPError as error:
                    with error:
                        if error.code != 503:  # not read yet
                            raise
                time.sleep(0.02)

        names = names_of(get("api/trace"))
        calls = [get(f"api/call?thread=0&index={index}") for index in range(CALLS)]
        self.assert_flags((names[call["function"]], call["flags"]) for call in calls)


if __name__ == "__main__":
    main()
