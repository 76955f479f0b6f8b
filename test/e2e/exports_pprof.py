"""karst export --to pprof, decoded by protoc against pprof's published numbers of fields."""
import ast
import csv
import gzip
import io
import json
import re
import shutil
import subprocess
import time
import unittest
from collections import defaultdict

import support
from support import KARST, ROOT, TracedTest, build, main

INCLUDE = ("-I", str(ROOT / "include"))


def run(*words):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, check=True,
                          timeout=support.TIMEOUT).stdout


def parsed(lines):
    """A message in protobuf's text form: lists of values by field."""
    made = defaultdict(list)
    for line in lines:
        line = line.strip()
        if line == "}":
            break
        if match := re.match(r"^(\w+) \{$", line):
            made[match[1]].append(parsed(lines))
            continue
        name, value = line.split(": ", 1)
        if value.startswith('"'):
            value = ast.literal_eval("b" + value).decode()
        else:
            value = value == "true" if value in ("true", "false") else int(value)
        made[name].append(value)
    return made


def only(message, field, default=0):
    return message[field][0] if message[field] else default


class Profile:
    """The profile as pprof's reader checks it: ids are set, unique and known, and strings are in the table."""

    def __init__(self, path):
        done = subprocess.run(["protoc", f"-I{ROOT}/test/export", "--decode=perftools.profiles.Profile", "profile.proto"],
                              input=gzip.decompress(path.read_bytes()), capture_output=True, check=True,
                              timeout=support.TIMEOUT)
        assert not done.stderr, done.stderr
        self.of = parsed(iter(done.stdout.decode().splitlines()))
        self.texts = self.of["string_table"]
        assert self.texts[0] == ""
        self.functions = self.by_id("function")
        self.locations = self.by_id("location")
        self.mappings = self.by_id("mapping")
        self.types = [(self.texts[only(t, "type")], self.texts[only(t, "unit")]) for t in self.of["sample_type"]]

    def by_id(self, field):
        made = {only(m, "id"): m for m in self.of[field]}
        assert len(made) == len(self.of[field]) and 0 not in made
        return made

    def name(self, location):
        line, = self.locations[location]["line"]
        return self.texts[only(self.functions[only(line, "function_id")], "name")]

    def stacks(self):
        """(names from the outside in, calls, ns) of each sample."""
        made = []
        for sample in self.of["sample"]:
            calls, ns = sample["value"]
            assert calls >= 0 and ns >= 0
            made.append((tuple(self.name(at) for at in reversed(sample["location_id"])), calls, ns))
        return made

    def sums(self):
        """(calls, own time, time with callees) by function."""
        made = defaultdict(lambda: [0, 0, 0])
        for stack, calls, ns in self.stacks():
            made[stack[-1]][0] += calls
            made[stack[-1]][1] += ns
            for name in set(stack):
                made[name][2] += ns
        return made


@unittest.skipIf(shutil.which("protoc") is None, "protoc is not installed")
class Pprof(TracedTest):
    def report(self, path, *options):
        return {f["function"]: f for f in json.loads(run(KARST, "report", path, "--json", *options))["functions"]}

    def test_sums_are_those_of_the_report(self):
        before = time.time_ns()
        run_of = self.run_traced(build("exports_shop", "query/shop.cc", "-O1", "-pthread", *INCLUDE),
                                 self.directory / "journal")
        path, out = run_of.trace.path, self.directory / "out.pb.gz"
        tid = json.loads(run(KARST, "info", path, "--json"))["processes"][0]["threads"][1]["tid"]
        for options in ((), ("--thread", str(tid)), ("--function", "^serve"), ("--range", "1ms..3ms")):
            with self.subTest(options):
                run(KARST, "export", path, "--to", "pprof", "-o", out, *options)
                # Of functions with all that they called: --below has that.
                wanted = self.report(path, *(("--below", options[1]) if "--function" in options else options))
                profile = Profile(out)
                self.assertEqual(profile.types, [("calls", "count"), ("time", "nanoseconds")])
                found = profile.sums()
                self.assertEqual({name: (calls, own) for name, (calls, own, _) in found.items() if calls},
                                 {name: (of["calls"], of["self_ns"]) for name, of in wanted.items() if of["calls"]})
                if "--range" not in options:
                    for name, of in wanted.items():
                        self.assertAlmostEqual(found[name][2], of["total_ns"], delta=len(profile.of["sample"]), msg=name)
        run(KARST, "export", path, "--to", "pprof", "-o", out)
        profile = Profile(out)
        # Places are the trace's, and the moment is the wall clock's.
        by_name = {profile.texts[only(f, "name")]: f for f in profile.of["function"]}
        for name, of in self.report(path).items():
            self.assertEqual(profile.texts[only(by_name[name], "filename")], of["file"])
            self.assertEqual(only(by_name[name], "start_line"), of["line"])
        self.assertEqual({profile.texts[only(m, "filename")] for m in profile.of["mapping"]},
                         {of["module"] for of in self.report(path).values()})
        self.assertTrue(before <= only(profile.of, "time_nanos") <= time.time_ns())
        self.assertEqual(profile.texts[only(profile.of, "default_sample_type")], "time")
        # Each stack once, with as many calls as the trace has there.
        stacks = profile.stacks()
        self.assertEqual(len({stack for stack, _, _ in stacks}), len(stacks))
        callers = defaultdict(int)
        for row in csv.DictReader(io.StringIO(run(KARST, "calls", path, "--format", "csv"))):
            callers[(row["caller"], row["function"])] += 1
        found = defaultdict(int)
        for stack, calls, _ in stacks:
            found[(stack[-2] if len(stack) > 1 else "", stack[-1])] += calls
        self.assertEqual(dict(found), dict(callers))

    def test_deep_stacks_keep_both_ends(self):
        run_of = self.run_traced(build("exports_deep", "exports/deep.cc", "-O1"))
        out = self.directory / "out.pb.gz"
        run(KARST, "export", run_of.trace.path, "--to", "pprof", "-o", out)
        stacks = Profile(out).stacks()
        deepest = max(stacks, key=lambda of: len(of[0]))[0]
        self.assertEqual(len(deepest), 1024)
        self.assertEqual(sum(calls for _, calls, _ in stacks), 2003)
        innermost, = [stack for stack, _, _ in stacks if stack[-1].startswith("leaf")]
        self.assertEqual((innermost[0].split("(")[0], innermost.index("(frames left out)")), ("main", 511))
        self.assertEqual({name.split("(")[0] for name in innermost[512:-1]}, {"down"})


if __name__ == "__main__":
    main()
