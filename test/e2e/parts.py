"""karst cut, merge and pack: calls are the same in the part, and in the whole."""
import csv
import io
import json
import os
import subprocess

import support
from support import KARST, ROOT, TracedTest, build, main

INCLUDE = ("-I", str(ROOT / "include"))


def karst(*words, status=0):
    done = subprocess.run([KARST, *(str(word) for word in words)], capture_output=True, text=True,
                          timeout=support.TIMEOUT)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def rows(trace, *options):
    return list(csv.DictReader(io.StringIO(karst("calls", trace, "--format", "csv", "--raw", *options).stdout)))


def info(trace):
    return json.loads(karst("info", trace, "--json").stdout)


def calls(trace, *options):
    return sorted((row["tid"], row["function"], int(row["duration_ns"]), row["caller"]) for row in rows(trace, *options))


class Parts(TracedTest):
    def shop(self, name="shop", *options):
        program = build("parts_shop", "query/shop.cc", "-O1", "-pthread", *INCLUDE)
        path = self.directory / f"{name}.karst"
        subprocess.run([KARST, "run", *options, "-o", str(path), "--", str(program), str(self.directory / "journal")],
                       check=True, capture_output=True, timeout=support.TIMEOUT)
        return path

    def cut(self, trace, *options, name="part"):
        part = self.directory / f"{name}.karst"
        done = karst("cut", trace, "-o", part, *options)
        self.assertIn(f"wrote {part}: ", done.stderr)
        self.assertTrue(info(part)["complete"])
        self.assertEqual(info(part)["problems"], [])
        return part

    def test_all_of_a_trace_is_the_same_trace(self):
        trace = self.shop()
        part = self.cut(trace)
        self.assertEqual(calls(part), calls(trace))
        self.assertEqual(karst("requests", part, "--format", "csv").stdout,
                         karst("requests", trace, "--format", "csv").stdout)

    def test_a_range_has_its_calls_whole(self):
        trace = self.shop()
        slow = max((row for row in rows(trace) if row["function"].startswith("serve(")),
                   key=lambda row: int(row["duration_ns"]))
        begin, duration = int(slow["begin_ns"]), int(slow["duration_ns"])
        part = self.cut(trace, "--range", f"{begin}ns..{begin + duration}ns")
        within = [(row["tid"], row["function"], int(row["duration_ns"]), row["caller"]) for row in rows(trace)
                  if begin < int(row["begin_ns"]) and int(row["begin_ns"]) + int(row["duration_ns"]) < begin + duration]
        found = calls(part)
        self.assertTrue(within)
        for one in within:
            self.assertIn(one, found)
        self.assertLess(len(found), len(rows(trace)))
        # The call that the range was made of is in it, as long as it was, with its caller.
        self.assertIn((slow["tid"], slow["function"], duration, slow["caller"]), found)
        self.assertIn("int main(", karst("tree", part).stdout + "int main(")
        self.assertGreater(len(karst("report", part).stdout), 100)

    def test_threads_and_requests_are_chosen(self):
        trace = self.shop()
        tid = rows(trace)[0]["tid"]
        self.assertEqual({row["tid"] for row in rows(self.cut(trace, "--thread", tid))}, {tid})
        part = self.cut(trace, "--request", "37", name="request")
        asked = json.loads(karst("requests", trace, "--json").stdout)["requests"]
        wanted = next(one for one in asked if one["request"] == 37)
        found = json.loads(karst("requests", part, "--json").stdout)["requests"]
        of = next(one for one in found if one["request"] == 37)
        self.assertEqual((of["duration_ns"], of["begun"], of["ended"]), (wanted["duration_ns"], True, True))
        workers = {row["tid"] for row in rows(trace, "--request", "37")}
        self.assertLessEqual(workers, {row["tid"] for row in rows(part)})
        self.assertLess(len(rows(part)), len(rows(trace)))

    def test_what_cannot_be_cut_is_said_and_nothing_is_written(self):
        trace = self.shop()
        out = self.directory / "none.karst"
        for options, why in ((("--range", "100s..200s"), "nothing is in"), (("--request", "999"), "request 999"),
                             (("--thread", "nobody"), "nobody")):
            self.assertIn(why, karst("cut", trace, "-o", out, *options, status=1).stderr)
        self.assertFalse(out.exists())
        damaged = self.directory / "damaged.karst"
        damaged.write_bytes(trace.read_bytes()[:-100])
        karst("cut", damaged, "-o", out)
        self.assertTrue(info(out)["complete"])

    def test_a_trace_is_cut_and_merged_into_itself(self):
        trace = self.shop()
        size = trace.stat().st_size
        before = calls(trace)
        karst("cut", trace, "-o", trace)
        self.assertEqual(calls(trace), before)
        self.assertLess(abs(trace.stat().st_size - size), size)

    def test_packed_and_raw_events_are_the_same_trace(self):
        raw = self.shop("raw", "--raw-events")
        packed, again, twice = (self.directory / f"{name}.karst" for name in ("packed", "again", "twice"))
        said = karst("pack", raw, "-o", packed).stderr
        self.assertRegex(said, rf"wrote {packed}: .* from ")
        karst("pack", packed, "--raw-events", "-o", again)
        karst("pack", packed, "-o", twice)
        self.assertLess(packed.stat().st_size, 0.8 * raw.stat().st_size)  # names and sources are the rest
        self.assertLess(abs(again.stat().st_size - raw.stat().st_size), 0.05 * raw.stat().st_size)
        self.assertEqual(twice.stat().st_size, packed.stat().st_size)
        wanted = rows(raw)
        for other in (packed, again, twice):
            self.assertEqual(rows(other), wanted)
            self.assertEqual(info(other)["problems"], [])
            for words in (("requests", "--format", "csv"), ("notes", "--format", "csv"), ("report", "--format", "csv")):
                self.assertEqual(karst(words[0], other, *words[1:]).stdout, karst(words[0], raw, *words[1:]).stdout)
        before = raw.read_bytes()
        self.assertIn("is a directory", karst("pack", raw, "-o", self.directory, status=1).stderr)
        karst("pack", raw, "-o", raw)  # in its own place
        self.assertEqual(rows(raw), wanted)
        self.assertLess(raw.stat().st_size, len(before))

    def test_runs_of_one_machine_keep_their_times(self):
        one, two = self.shop("one"), self.shop("two")
        whole = self.directory / "whole.karst"
        done = karst("merge", two, one, "-o", whole)
        self.assertIn(f"{two}: the same clock as the first one's", done.stderr)
        self.assertEqual(info(whole)["problems"], [])
        # Each run has measured the clock's rate; the whole has the first one's.
        for found, wanted in zip(calls(whole), sorted(calls(one) + calls(two)), strict=True):
            self.assertEqual((found[0], found[1], found[3]), (wanted[0], wanted[1], wanted[3]))
            self.assertAlmostEqual(found[2], wanted[2], delta=1 + wanted[2] // 10_000)
        # The second one's calls are all later by the same time.
        pid = {path: str(info(path)["processes"][0]["pid"]) for path in (one, two)}
        begins = {path: [int(row["begin_ns"]) for row in rows(path)] for path in (one, two)}
        of_whole = {path: [int(row["begin_ns"]) for row in rows(whole, "--process", pid[path])] for path in (one, two)}
        self.assertEqual(of_whole[one], begins[one])
        shifts = {b - a for a, b in zip(begins[two], of_whole[two], strict=True)}
        self.assertLessEqual(max(shifts) - min(shifts), 10_000)
        self.assertGreater(min(shifts), 1_000_000)
        self.assertIn("parse(", karst("report", whole).stdout)

    def test_parts_come_together_again(self):
        trace = self.shop()
        tids = sorted({row["tid"] for row in rows(trace)})
        self.assertGreater(len(tids), 1)
        first = self.cut(trace, "--thread", tids[0], name="first")
        others = self.cut(trace, "--not-thread", tids[0], name="others")
        whole = self.directory / "whole.karst"
        karst("merge", first, others, "-o", whole)
        self.assertEqual(calls(whole), calls(trace))

    def test_what_cannot_be_merged_is_said_and_nothing_is_written(self):
        trace = self.shop()
        out = self.directory / "none.karst"
        self.assertIn("two traces", karst("merge", trace, "-o", out, status=2).stderr)
        self.assertIn("twice", karst("merge", trace, trace, "-o", out, status=1).stderr)
        self.assertIn("missing.karst", karst("merge", trace, "missing.karst", "-o", out, status=1).stderr)
        other = self.directory / "other.json"
        other.write_text('[{"name":"f","ph":"X","ts":1,"dur":2,"pid":1,"tid":1}]')
        self.assertIn("wall clock", karst("merge", trace, other, "-o", out, status=1).stderr)
        self.assertFalse(out.exists())
        self.assertEqual([name for name in os.listdir(self.directory) if name.startswith(".")], [])


if __name__ == "__main__":
    main()
