"""karst export --to firefox, checked by the profiler's published types and replayed as its stack chart does."""
import csv
import io
import json
import subprocess
from collections import defaultdict

import support
from support import KARST, ROOT, TracedTest, build, main

INCLUDE = ("-I", str(ROOT / "include"))
# src/types/profile.js of firefox-devtools/profiler, at version 60 of the processed format: columns by table.
TABLES = {
    "stackTable": "frame prefix",
    "frameTable": "address inlineDepth category subcategory func nativeSymbol innerWindowID line column",
    "funcTable": "name isJS relevantForJS resource source lineNumber columnNumber",
    "resourceTable": "lib name host type",
    "nativeSymbols": "libIndex address name functionSize",
    "sources": "uuid filename",
}
SAMPLES = "stack time weight"
MARKERS = "data name startTime endTime phase category"
THREAD = ("processType processStartupTime processShutdownTime registerTime unregisterTime pausedRanges name isMainThread "
          "pid tid samples markers").split()
META = ("interval startTime processType categories product stackwalk version preprocessedProfileVersion "
        "markerSchema").split()


def run(*words):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, check=True,
                          timeout=support.TIMEOUT).stdout


def ns(ms):
    return round(ms * 1e6)


class Firefox(TracedTest):
    def columns(self, table, names):
        for name in names.split():
            self.assertEqual(len(table[name]), table["length"], name)

    def in_range(self, places, size, none=()):
        for place in places:
            self.assertTrue(place in none or 0 <= place < size, place)

    def checked(self, out):
        """The profile, after what its types demand was looked at."""
        profile = json.loads(out.read_text())
        for key in META:
            self.assertIn(key, profile["meta"])
        self.assertEqual(profile["meta"]["preprocessedProfileVersion"], 60)
        self.assertIn("grey", [category["color"] for category in profile["meta"]["categories"]])
        shared = profile["shared"]
        for name, columns in TABLES.items():
            self.columns(shared[name], columns)
        texts = shared["stringArray"]
        self.assertTrue(all(isinstance(text, str) for text in texts))
        self.assertEqual(len(set(texts)), len(texts))
        size = {name: shared[name]["length"] for name in TABLES}
        self.in_range(shared["stackTable"]["frame"], size["frameTable"])
        for at, prefix in enumerate(shared["stackTable"]["prefix"]):
            self.assertTrue(prefix is None or 0 <= prefix < at)
        self.in_range(shared["frameTable"]["func"], size["funcTable"])
        self.in_range(shared["frameTable"]["category"], len(profile["meta"]["categories"]))
        self.in_range(shared["funcTable"]["name"], len(texts))
        self.in_range(shared["funcTable"]["resource"], size["resourceTable"], (-1,))
        self.in_range(shared["funcTable"]["source"], size["sources"], (None,))
        self.in_range(shared["resourceTable"]["name"], len(texts))
        self.in_range(shared["sources"]["filename"], len(texts))
        schemas = {schema["name"] for schema in profile["meta"]["markerSchema"]}
        for thread in profile["threads"]:
            for key in THREAD:
                self.assertIn(key, thread)
            self.assertIsInstance(thread["pid"], str)
            samples, markers = thread["samples"], thread["markers"]
            self.columns(samples, SAMPLES)
            self.columns(markers, MARKERS)
            self.assertEqual(samples["weightType"], "tracing-ms")
            self.in_range(samples["stack"], size["stackTable"], (None,))
            self.assertEqual(samples["time"], sorted(samples["time"]))
            for at, weight in enumerate(samples["weight"]):
                until = samples["time"][min(at + 1, len(samples["time"]) - 1)]
                wanted = 0 if samples["stack"][at] is None else ns(until) - ns(samples["time"][at])
                self.assertEqual(ns(weight), wanted)
            self.in_range(markers["name"], len(texts))
            self.assertEqual(markers["startTime"], sorted(markers["startTime"]))
            for phase, begin, end, data in zip(*(markers[k] for k in ("phase", "startTime", "endTime", "data"))):
                self.assertIn(data["type"], schemas)
                self.assertTrue(end is None if phase == 0 else begin <= end)
        return profile

    def calls_in(self, profile):
        """The boxes of the stack chart: a box goes on while it is in the next sample's stack, from the outside in."""
        shared = profile["shared"]
        names = [shared["stringArray"][at] for at in shared["funcTable"]["name"]]
        frame, prefix = shared["stackTable"]["frame"], shared["stackTable"]["prefix"]
        found = []
        for thread in profile["threads"]:
            open_boxes = []
            for stack, time in zip(thread["samples"]["stack"], thread["samples"]["time"]):
                path = []
                while stack is not None:
                    path.append(stack)
                    stack = prefix[stack]
                path.reverse()
                while open_boxes and open_boxes[-1][0] not in path:
                    found[open_boxes.pop()[1]][4] = ns(time)
                for at in path[len(open_boxes):]:
                    open_boxes.append((at, len(found)))
                    name = names[shared["frameTable"]["func"][frame[at]]]
                    found.append([thread["name"], thread["tid"], name, ns(time), None])
            self.assertEqual(open_boxes, [])
        return found

    def test_every_call_is_in_the_stack_chart(self):
        run_of = self.run_traced(build("exports_shop", "query/shop.cc", "-O1", "-pthread", *INCLUDE),
                                 self.directory / "journal")
        path, out = run_of.trace.path, self.directory / "firefox.json"
        run(KARST, "export", path, "--to", "firefox", "-o", out)
        profile = self.checked(out)
        found = self.calls_in(profile)
        wanted = list(csv.DictReader(io.StringIO(run(KARST, "calls", path, "--raw", "--format", "csv"))))
        self.assertEqual([of[:4] for of in found],
                         [[r["thread"], int(r["tid"]), r["function"], int(r["begin_ns"])] for r in wanted])
        for one, row in zip(found, wanted):
            self.assertAlmostEqual(one[4], int(row["begin_ns"]) + int(row["duration_ns"]), delta=1)
        # The call tree's own times are the report's.
        shared = profile["shared"]
        own = defaultdict(int)
        for thread in profile["threads"]:
            for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
                if stack is not None:
                    func = shared["frameTable"]["func"][shared["stackTable"]["frame"][stack]]
                    own[shared["stringArray"][shared["funcTable"]["name"][func]]] += ns(weight)
        for of in json.loads(run(KARST, "report", path, "--raw", "--json"))["functions"]:
            self.assertAlmostEqual(own[of["function"]], of["self_ns"], delta=len(found), msg=of["function"])
        # Notes are markers, and each request is one.
        markers = defaultdict(list)
        for thread in profile["threads"]:
            of = thread["markers"]
            for name, begin, end, data in zip(of["name"], of["startTime"], of["endTime"], of["data"]):
                markers[shared["stringArray"][name]].append((data["text"], ns(begin), None if end is None else ns(end)))
        requests = json.loads(run(KARST, "requests", path, "--raw", "--json"))["requests"]
        self.assertEqual([(text, begin) for text, begin, _ in markers["request"]],
                         sorted([(str(r["request"]), r["begin_ns"]) for r in requests], key=lambda r: r[1]))
        self.assertEqual(len(requests), 60)
        notes = [n for n in csv.DictReader(io.StringIO(run(KARST, "notes", path, "--format", "csv")))
                 if n["kind"] == "message"]
        self.assertEqual(sorted((text, begin) for text, begin, _ in markers["message"]),
                         sorted((n["value"], int(n["time_ns"])) for n in notes))
        self.assertEqual(len(notes), 60)
        run(KARST, "export", path, "--to", "firefox", "-o", out, "--function", "^append")
        self.assertEqual({of[2].split("(")[0] for of in self.calls_in(self.checked(out))}, {"append"})


if __name__ == "__main__":
    main()
