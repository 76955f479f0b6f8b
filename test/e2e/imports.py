"""karst import: our own export of Chrome's format comes back, clang's -ftime-trace is taken, damage is told."""
import csv
import gzip
import io
import json
import random
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import support
from support import HERE, KARST, ROOT, TracedTest, build, main

UFTRACE = shutil.which("uftrace")
CLANG = shutil.which("clang++-14") or shutil.which("clang++")


def karst(*arguments, status=0):
    done = subprocess.run([KARST, *map(str, arguments)], capture_output=True, text=True, timeout=support.TIMEOUT)
    if done.returncode != status:
        raise AssertionError(f"karst {arguments} ended with {done.returncode}, not {status}: {done.stderr}")
    return done.stderr if status or arguments[0] == "import" else done.stdout


def calls_of(path):
    return json.loads(karst("calls", path, "--raw", "--format", "json"))["calls"]


def calls_table(path):
    """Each call as thread, tid, function and nanoseconds, in order of thread and begin."""
    rows = csv.DictReader(io.StringIO(karst("calls", path, "--raw", "--format", "csv")))
    return sorted(((row["thread"], int(row["tid"]), row["function"], int(row["duration_ns"]), int(row["begin_ns"]))
                   for row in rows), key=lambda row: (row[1], row[4], -row[3]))


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

    def test_each_of_our_exports_gives_the_same_calls(self):
        path, _ = self.export()
        wanted = calls_table(path)
        self.assertGreater(len(wanted), 1000)
        for form in ("chrome", "speedscope", "perfetto"):
            out = self.directory / f"again.{form}"
            karst("export", path, "--to", form, "-o", out)
            back = self.directory / f"again.{form}.karst"
            karst("import", out, "-o", back)
            found = calls_table(back)
            self.assertEqual([row[:3] for row in found], [row[:3] for row in wanted], form)
            for one, other in zip(found, wanted):
                self.assertLessEqual(abs(one[3] - other[3]), 1, form)  # both ends are rounded to a nanosecond
            self.assertEqual(calls_table(out), found, form)  # opened as it is

    def test_commands_open_a_foreign_file_as_it_is(self):
        file = self.directory / "other.json"
        events = [{"ph": "X", "pid": 1, "tid": 2, "ts": 10 * i, "dur": 5 + 90 * (i == 50), "name": "work"}
                  for i in range(100)]
        file.write_text(json.dumps(events + [{"ph": "s"}]))
        for words in (("info", file), ("report", file), ("slow", file), ("explain", file), ("tree", file),
                      ("calls", file), ("diff", file, file), ("flame", file, "-o", self.directory / "f.svg"),
                      ("query", file, "SELECT count(*) FROM calls"),
                      ("export", file, "--to", "html", "-o", self.directory / "p.html")):
            done = subprocess.run([KARST, *map(str, words)], capture_output=True, text=True, timeout=support.TIMEOUT)
            self.assertEqual(done.returncode, 0, (words, done.stderr))
            self.assertEqual(done.stderr.count("other.json is of the format chrome: 100 calls of "), 1, words)
            self.assertEqual(done.stderr.count("left out: 1 flow arrows"), 1, words)
        self.assertIn("work took 95.00 us", karst("slow", file))
        self.assertEqual(list(self.directory.glob("other*.karst")), [])

    def test_view_opens_a_foreign_file(self):
        file = self.directory / "other.json"
        file.write_text('[{"ph":"X","pid":1,"tid":2,"ts":1,"dur":5,"name":"work"}]')
        view = subprocess.Popen([KARST, "view", "--no-browser", file], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)
        try:
            self.assertRegex(view.stdout.readline(), "^http://127.0.0.1:")
        finally:
            view.terminate()
            _, said = view.communicate(timeout=support.TIMEOUT)
        self.assertIn("other.json is of the format chrome: 1 call of", said)

    def test_what_is_no_trace_is_told(self):
        file = self.directory / "none"
        for content, said in ((b"hello", "is not a Karst trace"), (b"{}", "without a list of events"),
                              (gzip.compress(b"hello"), "is not a Karst trace"), (b"[{", "it is no JSON"),
                              (gzip.compress(b"[" * 100)[:-6], "cannot be unpacked")):
            file.write_bytes(content)
            self.assertIn(said, karst("info", file, status=1))
        self.assertIn("there are:\n  uftrace", karst("import", KARST, status=1))
        self.assertIn("it is a directory", karst("info", self.directory, status=1))

    def test_a_pipe_is_imported(self):
        out = self.directory / "pipe.karst"
        done = subprocess.run([KARST, "import", "/dev/stdin", "-o", out], capture_output=True, timeout=support.TIMEOUT,
                              input=b'[{"ph":"X","pid":1,"tid":2,"ts":1,"dur":5,"name":"work"}]')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(calls_of(out)), 1)

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

    def test_uftraces_directory(self):
        if UFTRACE is None:
            self.skipTest("there is no uftrace")
        program, data = self.directory / "nested", self.directory / "nested.data"
        subprocess.run(["g++", "-pg", "-O1", "-pthread", str(HERE / "imports/nested.cc"), "-o", program], check=True)
        subprocess.run([UFTRACE, "record", "-d", data, program], check=True, stdout=subprocess.DEVNULL,
                       cwd=self.directory)
        dump = subprocess.run([UFTRACE, "dump", "-d", data], check=True, capture_output=True, text=True).stdout
        wanted = Counter()  # by thread and address, as names are demangled by whoever shows them
        for tid in re.findall(r"(\d+): \[entry\] ", dump):
            wanted[int(tid)] += 1
        rows = calls_table(data)
        self.assertEqual(Counter(tid for _, tid, *_ in rows), wanted)
        count, total = sums((0, function, duration) for _, _, function, duration, _ in rows)
        self.assertEqual((count[0, "Shape::leaf(int)"], count[0, "middle(int)"]), (20, 10))
        # uftrace leaves the kernel's events of its own out of a function's time; totals have them
        report = subprocess.run([UFTRACE, "report", "-d", data, "-f", "total,call", "--no-event", "-s", "call"],
                                check=True, capture_output=True, text=True).stdout
        lines = {name.strip(): (float(time) * {"us": 1e3, "ms": 1e6, "s": 1e9}[unit], int(calls)) for time, unit, calls,
                 name in re.findall(r"^ +([\d.]+) +(us|ms|s) +(\d+) +(\S.*)$", report, re.M)}
        self.assertGreater(len(lines), 3, report)
        for name in ("middle", "Shape::leaf"):
            full = {"middle": "middle(int)", "Shape::leaf": "Shape::leaf(int)"}[name]
            time, calls = lines[name]
            self.assertEqual(calls, count[0, full])
            self.assertAlmostEqual(total[0, full], time, delta=1 + time / 1000)
        self.assertIn("Shape::leaf(int)", karst("report", data))

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
