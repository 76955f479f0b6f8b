"""karst import: our own export of Chrome's format comes back, clang's -ftime-trace is taken, damage is told."""
import gzip
import json
import random
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import support
from support import HERE, KARST, ROOT, TracedTest, build, main

CLANG = shutil.which("clang++-14") or shutil.which("clang++")


def karst(*arguments, status=0):
    done = subprocess.run([KARST, *map(str, arguments)], capture_output=True, text=True, timeout=support.TIMEOUT)
    if done.returncode != status:
        raise AssertionError(f"karst {arguments} ended with {done.returncode}, not {status}: {done.stderr}")
    return done.stderr if status or arguments[0] == "import" else done.stdout


def calls_of(path):
    return json.loads(karst("calls", path, "--raw", "--format", "json"))["calls"]


def sums(rows):
    """Calls and nanoseconds of each function of each thread."""
    count, total = Counter(), Counter()
    for thread, function, duration in rows:
        count[thread, function] += 1
        total[thread, function] += duration
    return count, total


class Imports(TracedTest):
    def export(self):
        """A real trace, and its export."""
        run = self.run_traced(build("flows_said", "flows/said.cc", "-O1", "-pthread", "-I", str(ROOT / "include"),
                                    compiler="karst-g++"))
        exported = Path(run.trace.path).with_suffix(".json")
        karst("export", run.trace.path, "--to", "chrome", "-o", exported)
        return run.trace.path, exported

    def test_our_own_export_comes_back(self):
        path, exported = self.export()
        packed = exported.with_suffix(".json.gz")
        packed.write_bytes(gzip.compress(exported.read_bytes()))
        back = exported.with_suffix(".back.karst")
        said = karst("import", packed, "-o", back)
        self.assertNotIn("overlap", said)
        count, total = sums((c["tid"], c["function"], c["duration_ns"]) for c in calls_of(path))
        count_back, total_back = sums((c["tid"], c["function"], c["duration_ns"]) for c in calls_of(back))
        self.assertGreater(sum(count.values()), 1000)
        self.assertEqual(count_back, count)
        for key, calls in count.items():
            self.assertLessEqual(abs(total_back[key] - total[key]), calls, key)  # each is rounded to a nanosecond
        reports = [{(f["function"], f["file"], f["line"]): f["calls"]
                    for f in json.loads(karst("report", p, "--raw", "--format", "json"))["functions"]}
                   for p in (path, back)]
        self.assertEqual(reports[1], reports[0])

    def test_clangs_time_trace(self):
        if CLANG is None:
            self.skipTest("there is no clang")
        made = self.directory / "said.o"
        subprocess.run([CLANG, "-std=c++17", "-O1", "-I", str(ROOT / "include"), "-ftime-trace",
                        "-ftime-trace-granularity=50", "-c", str(HERE / "flows/said.cc"), "-o", made], check=True)
        events = json.loads(made.with_suffix(".json").read_text())["traceEvents"]
        expected = sums((e["tid"], e["name"], 1000 * e["dur"]) for e in events if e["ph"] == "X")
        self.assertGreater(sum(expected[0].values()), 50)
        back = made.with_suffix(".karst")
        karst("import", made.with_suffix(".json"), "-o", back)
        self.assertEqual(sums((c["tid"], c["function"], c["duration_ns"]) for c in calls_of(back)), expected)

    def test_damage_is_told_and_leaves_no_file(self):
        _, exported = self.export()
        whole = json.dumps(json.loads(exported.read_text())["traceEvents"][:500]).encode()
        file, out = self.directory / "damaged.json", self.directory / "damaged.karst"
        chance = random.Random(1)
        statuses = Counter()
        for turn in range(60):
            damaged = bytearray(whole if turn % 2 else whole[:chance.randrange(1, len(whole))])
            for _ in range(chance.randrange(4)):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            file.write_bytes(damaged)
            done = subprocess.run([KARST, "import", file, "-o", out], capture_output=True, text=True,
                                  timeout=support.TIMEOUT)
            statuses[done.returncode] += 1
            self.assertEqual(out.exists(), done.returncode == 0, done.stderr)
            if done.returncode == 1:
                self.assertRegex(done.stderr, "^karst: ")
            out.unlink(missing_ok=True)
        self.assertEqual(set(statuses), {0, 1})
        self.assertIn("of no format that can be imported", karst("import", KARST, "-o", out, status=1))
        self.assertIn("No such file", karst("import", file.with_name("none"), "-o", out, status=1))


if __name__ == "__main__":
    main()
