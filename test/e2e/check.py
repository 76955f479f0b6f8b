"""karst check: each detector finds what was planted for it, and what a broken or a stranger's detector can do."""
import csv
import io
import json
import os
import re
import subprocess
import unittest

import support
from support import BIN, KARST, ROOT, TracedTest, build, main

DETECTORS = ROOT / "detectors"
GUIDE = ROOT / "docs/guide/check.md"
COLUMNS = ("title", "sentence", "begin_ns", "duration_ns", "tid", "thread", "call", "amount", "unit", "total_ns", "sure")
EMPTY = "SELECT " + ", ".join(f"NULL AS {name}" for name in COLUMNS) + " WHERE false"


def detector(name="mine", sql=EMPTY, needs=""):
    return f"-- name: {name}\n-- sentence: Tells what a test wants.\n-- needs: {needs}\n{sql};\n"


def answer(**values):
    """SQL of one finding."""
    plain = {"title": "'it'", "sentence": "'It is so.'", "begin_ns": 1, "duration_ns": 2, "tid": "NULL",
             "thread": "NULL", "call": "NULL", "amount": 3, "unit": "'things'", "total_ns": 4, "sure": 0.5}
    return "SELECT " + ", ".join(f"{value} AS {name}" for name, value in {**plain, **values}.items())


class Check(TracedTest):
    SCHED = ()

    def setUp(self):
        super().setUp()
        if not (BIN.parent / "lib/karst-sql/libduckdb.so").exists():
            raise unittest.SkipTest("script/setup has not fetched DuckDB")
        self.config = self.directory / "config"
        self.own = self.config / "karst/detectors"
        self.environment = {**os.environ, "XDG_CONFIG_HOME": str(self.config)}

    def karst(self, *words, status=0):
        done = subprocess.run([KARST, "check", *map(str, words)], capture_output=True, text=True,
                              timeout=support.TIMEOUT, env=self.environment, cwd=self.directory)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout if status in (0, 3) else done.stdout + done.stderr

    def asked(self, path, *words, status=0):
        return json.loads(self.karst(path, "--json", *words, status=status).split("\nkarst:")[0])

    def planted(self, name, *arguments, options=(), flags=("-O1", "-pthread"), status=0):
        run = self.run_traced(build("check_" + name, f"check/{name}.cc", *flags), *arguments, options=options,
                              status=status)
        self.assert_sound(run.trace)
        return run.trace.path

    def first(self, path, name):
        """The first finding of this detector, which all detectors beside it leave in the list."""
        found = self.asked(path)
        self.assertEqual([o for o in found["check_outcomes"] if o["outcome"] == "failed"], [])
        mine = [f for f in found["check_findings"] if f["detector"] == name]
        self.assertEqual(len(mine), 1, found)
        finding = mine[0]
        self.assertEqual(self.asked(path, "--detector", name)["check_findings"][0], finding)
        self.assertTrue(0.5 < finding["sure"] < 1, finding)
        self.assertGreater(finding["total_ns"], 0)
        if "call" in finding:  # karst explain knows the call
            explained = subprocess.run([KARST, "explain", str(path), "--call", finding["call"]], capture_output=True,
                                       text=True, timeout=support.TIMEOUT)
            self.assertEqual(explained.returncode, 0, explained.stderr)
        return finding

    def function_of(self, path, finding):
        done = subprocess.run([KARST, "query", str(path), "--format", "json",
                               f"SELECT function FROM calls WHERE call = '{finding['call']}'"],
                              capture_output=True, text=True, timeout=support.TIMEOUT, check=True)
        return json.loads(done.stdout)[0]["function"].split("(")[0]

    def test_n_plus_one(self):
        shop = self.directory / "shop"
        shop.mkdir()
        path = self.planted("orders", shop, options=("--system", "files"))
        found = self.first(path, "n-plus-one")
        self.assertEqual((found["amount"], found["unit"]), (200, "calls"))
        self.assertEqual(found["title"], "load_orders calls load_order 200 times, and each asks a file or a socket")
        self.assertIn("Such calls of load_orders in all: 2.", found["sentence"])
        self.assertEqual(self.function_of(path, found), "load_orders")
        self.assertEqual(self.asked(path)["check_findings"][0]["detector"], "n-plus-one")

    def test_locks(self):
        path = self.planted("pool", 4, 40, 500, 20, options=("--system", "locks"))
        contention = self.first(path, "lock-contention")
        self.assertIn("ledger_mutex, mostly in book", contention["title"])
        self.assertEqual(self.function_of(path, contention), "book")
        waits = list(csv.DictReader(io.StringIO(subprocess.run(
            [KARST, "locks", "--by", "wait", "--format", "csv", str(path)], capture_output=True, text=True,
            check=True).stdout)))
        mutex = [int(w["duration_ns"]) for w in waits if w["kind"] == "mutex"]
        self.assertEqual((contention["amount"], contention["total_ns"], contention["duration_ns"]),
                         (len(mutex), sum(mutex), max(mutex)))
        convoy = self.first(path, "lock-convoy")
        self.assertIn("4 threads queue for mutex", convoy["title"])
        self.assertIn("in book", convoy["title"])
        self.assertGreaterEqual(convoy["amount"], 10)
        pool = self.first(path, "serial-pool")
        self.assertEqual((pool["title"], pool["amount"]), ("4 threads of work run one at a time", 4))

    def test_two_threads_are_no_convoy(self):
        path = self.planted("pool", 2, 40, 500, 20, options=("--system", "locks"))
        self.first(path, "lock-contention")
        self.assertEqual({f["detector"] for f in self.asked(path)["check_findings"]}, {"lock-contention"})

    def test_slow_writes(self):
        path = self.planted("writer", options=("--system", "files"))
        found = self.first(path, "slow-writes")
        self.assertEqual(found["unit"], "slow writes")
        self.assertGreaterEqual(found["amount"], 3)
        self.assertRegex(found["title"], r"^append_page waits up to [\d.]+ ms to write to pipe 1 of process \d+$")
        self.assertEqual(self.function_of(path, found), "append_page")

    def test_busy_waiting(self):
        path = self.planted("busy", options=("--budget", "off", "--returns", "^is_done"))
        found = self.first(path, "busy-waiting")
        self.assertGreaterEqual(found["amount"], 5000)
        self.assertRegex(found["title"], r"^wait_until_done asks is_done \d+ times until it returns true$")
        self.assertEqual(self.function_of(path, found), "wait_until_done")

    def test_long_tail_by_argument(self):
        path = self.planted("tail", options=("--args", "^answer"))
        found = self.first(path, "long-tail-by-argument")
        self.assertEqual(found["title"], "answer is slow with kind=7")
        self.assertGreaterEqual(found["amount"], 20)
        self.assertEqual(self.function_of(path, found), "answer")

    def test_expensive_copies(self):
        path = self.planted("copies")
        found = self.first(path, "expensive-copies")
        self.assertEqual((found["title"], found["amount"]), ("Table is copied 1000 times, mostly in add_up", 1000))
        self.assertEqual(self.function_of(path, found), "Table::Table")

    def test_allocation_in_hot_path(self):
        path = self.planted("allocations", options=("--system", "memory"))
        found = self.first(path, "allocation-in-hot-path")
        self.assertEqual(found["title"], "draw_line takes memory 20000 times and frees it at once")
        self.assertEqual(self.function_of(path, found), "draw_line")

    def test_thread_residency(self):
        if len(os.sched_getaffinity(0)) < 2 or not {0, 1} <= os.sched_getaffinity(0):
            self.skipTest("there is one CPU")
        path = self.planted("wanderer", status=None)
        states = [o for o in self.asked(path)["check_outcomes"] if o["detector"] == "thread-residency"]
        if states[0]["outcome"] == "not looked for":
            self.skipTest("thread states are not permitted here")
        found = self.first(path, "thread-residency")
        self.assertGreaterEqual(found["amount"], 200)
        self.assertIn("wanderer changes its CPU", found["title"])

    def test_what_a_trace_lacks_is_said(self):
        path = self.planted("tail", options=("--sched", "off"))
        outcomes = {o["detector"]: o for o in self.asked(path)["check_outcomes"]}
        wanted = {"n-plus-one": "files", "slow-writes": "files", "lock-contention": "locks", "lock-convoy": "locks",
                  "serial-pool": "locks", "busy-waiting": "--returns", "long-tail-by-argument": "--args",
                  "allocation-in-hot-path": "memory", "thread-residency": "--sched"}
        for name, word in wanted.items():
            self.assertEqual(outcomes[name]["outcome"], "not looked for", name)
            self.assertIn(word, outcomes[name]["why"])
        self.assertEqual(outcomes["expensive-copies"]["outcome"], "nothing")
        text = self.karst(path)
        self.assertIn("nothing was found", text)
        self.assertIn("looked for, and not found: expensive-copies", text)
        self.assertRegex(text, r"not looked for: lock-contention, lock-convoy, serial-pool: the trace has no waits for "
                               r"locks; karst run --system locks")

    def test_forms_and_exit_status(self):
        path = self.planted("copies")
        text = self.karst(path)
        self.assertRegex(text, r"(?m)^ 1\. Table is copied 1000 times, mostly in add_up$")
        self.assertRegex(text, rf"(?m)^      expensive-copies; karst explain {re.escape(str(path))} --call \d+@\d+ns$")
        rows = list(csv.DictReader(io.StringIO(self.karst(path, "--format", "csv"))))
        as_json = self.asked(path)["check_findings"]
        self.assertEqual([r["title"] for r in rows], [f["title"] for f in as_json])
        self.assertEqual(rows[0]["amount"], "1000")
        self.karst(path, "--fail", status=3)
        self.karst(path, "--fail", "--detector", "slow-writes")
        self.assertIn("there is no detector 'none'", self.karst(path, "--detector", "none", status=2))
        both = self.asked(path, path, "--detector", "expensive-copies")
        self.assertEqual(len(both["check_findings"]), 2)
        self.assertIn("copied", self.karst("--columns", "title"))  # the newest trace

    def test_list_is_of_the_files(self):
        listed = json.loads(self.karst("--list", "--json"))["detectors"]
        self.assertEqual(sorted(d["detector"] + ".sql" for d in listed), sorted(p.name for p in DETECTORS.glob("*")))
        for one in listed:
            self.assertIn(f"-- sentence: {one['sentence']}\n", (DETECTORS / f"{one['detector']}.sql").read_text())

    def test_guide_has_each_detector(self):
        rows = re.findall(r"(?m)^\| \[([a-z-]+)\]\(\.\./\.\./detectors/([a-z-]+)\.sql\) \| (.*) \| (.*) \|$", GUIDE.read_text())
        listed = json.loads(self.karst("--list", "--json"))["detectors"]
        self.assertEqual(rows, [(d["detector"], d["detector"], d["sentence"], d["needs"] or "calls alone")
                                for d in listed])

    def test_guide_shows_how_to_write_one(self):
        self.own.mkdir(parents=True)
        (self.own / "deep.sql").write_text(re.search(r"```sql\n(-- name: deep.*?)```", GUIDE.read_text(), re.S)[1])
        source = self.directory / "deep.cc"
        source.write_text("__attribute__((noinline)) int down(int n) { return n == 0 ? 0 : down(n - 1) + n; }\n"
                          "int main(int argc, char**) { return down(1200 + argc) == 0; }\n")
        path = self.run_traced(build("check_deep", str(source), "-O1", "-fno-optimize-sibling-calls")).trace.path
        found = self.asked(path, "--detector", "deep-recursion")["check_findings"]
        self.assertEqual([(f["title"], f["amount"]) for f in found], [("down is called 1202 deep", 1202)])

    def test_own_detectors(self):
        path = self.planted("copies")
        self.own.mkdir(parents=True)
        (self.own / "a.sql").write_text(detector("mine", answer(title="'first'")))
        (self.own / "copies.sql").write_text(detector("expensive-copies"))
        (self.own / "b.py").write_text("print('no')\n")
        (self.own / "notes.txt").write_text("nothing\n")
        found = self.asked(path)
        self.assertEqual([f["title"] for f in found["check_findings"]], ["first"])  # one replaces Karst's
        other = self.directory / "other"
        other.mkdir()
        (other / "z.sql").write_text(detector("mine", answer(title="'second'", call="'1@2ns'", sure="1")))
        self.assertEqual([f["title"] for f in self.asked(path, "--directory", other)["check_findings"]], ["second"])
        done = subprocess.run([KARST, "check", "--list"], capture_output=True, text=True, env=self.environment)
        self.assertIn("b.py is not run: detectors are written in SQL", done.stderr)
        self.assertNotIn("notes.txt", done.stderr)
        self.assertIn("none is not read", self.karst(path, "--directory", self.directory / "none", status=1))

    def test_one_that_fails_is_named_and_the_others_run(self):
        path = self.planted("copies")
        self.own.mkdir(parents=True)
        secret = self.directory / "secret.csv"
        secret.write_text("word\nxyzzy\n")
        cases = {
            detector(sql="SELECT nothing FROM calls"): "nothing",
            detector(sql="SELECT 1 +"): "syntax error",
            detector(sql="SELECT 1 AS title"): "no column 'sentence'",
            detector(sql=answer(more=1)): "a finding has no column 'more'",
            detector(sql=answer(sure=7)): "'sure' of a finding is '7'",
            detector(sql=answer(sure="'nan'::DOUBLE")): "'sure' of a finding is 'nan'",
            detector(sql=answer(begin_ns=-5)): "'begin_ns' of a finding is '-5'",
            detector(sql=answer(total_ns="NULL")): "'total_ns' of a finding is ''",
            detector(sql=answer(amount="1e300")): "'amount' of a finding is",
            detector(sql=answer(title="''")): "a finding has no title",
            detector(sql=answer() + " FROM range(5000)"): "more than 1000",
            detector(sql="CREATE TABLE t AS SELECT 1"): "no SELECT",
            detector(sql=f"SELECT * FROM read_csv('{secret}')"): "disabled",
            detector(sql=f"COPY (SELECT 1) TO '{self.directory}/written'; {EMPTY}"): "disabled",
        }
        for text, why in cases.items():
            with self.subTest(text):
                (self.own / "mine.sql").write_text(text)
                found = self.asked(path, status=1)
                outcome = [o for o in found["check_outcomes"] if o["detector"] == "mine"]
                self.assertEqual(outcome[0]["outcome"], "failed")
                self.assertIn(why, outcome[0]["why"])
                self.assertNotIn("xyzzy", json.dumps(found))
                self.assertEqual([f["detector"] for f in found["check_findings"]], ["expensive-copies"])
                self.assertIn("failed: mine: ", self.karst(path, "--detector", "mine", status=1))
        self.assertFalse((self.directory / "written").exists())
        heads = {"SELECT 1": "-- name: ", "-- name: A B\n": "letters a-z", "-- name: x\nSELECT 1": "-- sentence: ",
                 "-- name: x\n-- sentence: y\n-- needs: luck\n": "it needs 'luck'; what can be needed are states",
                 "-- name: x\n-- sentence: y\n\0": "byte 0", "-- " + "x" * (1 << 20) + "\n": "more than"}
        for text, why in heads.items():
            with self.subTest(text[:40]):
                (self.own / "mine.sql").write_text(text)
                said = self.karst(path, status=1)
                self.assertIn(why, said)
                self.assertIn("Table is copied", said)
        (self.own / "mine.sql").unlink()
        os.mkfifo(self.own / "mine.sql")
        self.assertIn("no regular file", self.karst(path, status=1))

    def test_what_it_says_is_shown_as_text(self):
        path = self.planted("copies")
        self.own.mkdir(parents=True)
        odd = "chr(27) || '[31m' || chr(10) || 'x' || chr(8238)"
        (self.own / "mine.sql").write_text(detector(sql=answer(title=odd, sentence=odd, unit=odd, thread=odd, tid="1",
                                                               call=odd)))
        text = self.karst(path, "--detector", "mine")
        self.assertNotIn("\x1b", text)
        self.assertIn("1. \\x1b[31m\\nx", text)
        self.assertEqual(self.asked(path, "--detector", "mine")["check_findings"][0]["title"], "\x1b[31m\nx\u202e")
        # What one makes, or takes away, is nothing to the next one.
        (self.own / "a.sql").write_text(detector("a", "CREATE OR REPLACE VIEW calls AS SELECT 1; DROP MACRO plain; "
                                                 "CREATE TABLE lasts AS SELECT 1; " + EMPTY))
        (self.own / "b.sql").write_text(detector("b", "CREATE TABLE lasts AS SELECT 1; " + EMPTY))
        outcomes = {o["detector"]: o["outcome"] for o in self.asked(path)["check_outcomes"]}
        self.assertEqual(outcomes["b"], "nothing")
        self.assertEqual(outcomes["expensive-copies"], "found")

    def test_root_reads_no_detectors_that_others_may_write(self):
        if os.geteuid() != 0:
            self.skipTest("only root can be led by others")
        path = self.planted("copies")
        self.own.mkdir(parents=True)
        (self.own / "mine.sql").write_text(detector("mine", answer()))
        seen = lambda *words: "mine" in {d["detector"] for d in json.loads(
            self.karst("--list", "--json", *words))["detectors"]}
        self.assertTrue(seen())
        nobody = 65534
        for part in (self.own, self.config, self.directory):
            mode = part.stat().st_mode
            with self.subTest(part):
                for bits in (0o002, 0o020):
                    part.chmod(mode | bits)
                    self.assertFalse(seen(), oct(bits))
                part.chmod(mode)
                os.chown(part, nobody, -1)
                self.assertFalse(seen())
                os.chown(part, 0, -1)
                self.assertTrue(seen())
        file = self.own / "mine.sql"
        for change, undo in ((lambda: file.chmod(0o666), lambda: file.chmod(0o644)),
                             (lambda: os.chown(file, nobody, -1), lambda: os.chown(file, 0, -1))):
            change()
            self.assertIn("karst runs as root", self.karst("--list", status=1))
            undo()
        self.assertTrue(seen())
        stranger = self.directory / "stranger.sql"
        stranger.write_text(detector("stranger"))
        (self.own / "link.sql").symlink_to(stranger)
        self.assertIn("symbolic link", self.karst("--list", status=1))
        (self.own / "link.sql").unlink()
        # A link in the way is followed, and where it leads is looked at.
        elsewhere = self.directory / "elsewhere"
        elsewhere.mkdir()
        os.chown(elsewhere, nobody, -1)
        (self.directory / "way").symlink_to(elsewhere)
        self.assertIn("belongs to user", self.karst(path, "--directory", self.directory / "way", status=1))


if __name__ == "__main__":
    main()
