"""karst query: tables against what the other commands say, what SQL may not do, and each question of docs/guide."""
import csv
import io
import json
import re
import shutil
import subprocess
import unittest
from collections import Counter, defaultdict

import support
from support import BIN, KARST, ROOT, TracedTest, build, main

INCLUDE = ("-I", str(ROOT / "include"))
REQUESTS = 60
SLOW, SLEPT_NS = 37, 20_000_000


def karst(*arguments, status=0, cwd=None):
    done = subprocess.run([KARST, *map(str, arguments)], capture_output=True, text=True, timeout=support.TIMEOUT,
                          cwd=cwd)
    if done.returncode != status:
        raise AssertionError(f"karst {arguments} ended with {done.returncode}, not {status}: {done.stderr}")
    return done.stderr if status else done.stdout


def ask(path, sql, *options):
    return json.loads(karst("query", path, "--format", "json", *options, sql))


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


class Query(TracedTest):
    path = None

    def setUp(self):
        super().setUp()
        if not (BIN.parent / "lib/karst-sql/libduckdb.so").exists():
            raise unittest.SkipTest("script/setup has not fetched DuckDB")

    def shop(self):
        """A trace of the small server with all that it can have."""
        program = build("query_shop", "query/shop.cc", "-O1", "-pthread", *INCLUDE)
        path = self.directory / "shop.karst"
        done = subprocess.run([KARST, "run", "-o", str(path), "--args", "^(serve|append)", "--system",
                               "locks=all,files,memory", "--", program, str(self.directory / "journal")],
                              capture_output=True, text=True, timeout=support.TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def test_calls_are_those_of_the_other_commands(self):
        path = self.shop()
        wanted = rows_of(karst("calls", path, "--format", "csv"))
        found = ask(path, "SELECT * FROM calls")
        self.assertEqual(len(found), len(wanted))
        for one, other in zip(found, wanted):
            for key, value in other.items():
                self.assertEqual("" if one[key] is None else str(one[key]), value, key)
        # Sums by function are the report's.
        report = {f["function"]: f for f in json.loads(karst("report", path, "--json"))["functions"]}
        sums = ask(path, "SELECT function, count(*) AS calls, sum(self_ns) AS self_ns, percentile(duration_ns, 99) AS "
                         "p99_ns, max(duration_ns) AS max_ns FROM calls WHERE open = '' GROUP BY function")
        self.assertEqual(sorted(s["function"] for s in sums), sorted(report))
        for one in sums:
            other = report[one["function"]]
            self.assertEqual(one["calls"], other["calls"] - other["open_calls"], one["function"])
            for key in ("p99_ns", "max_ns"):
                self.assertEqual(one[key], other[key], one["function"])
            self.assertAlmostEqual(one["self_ns"], other["self_ns"], delta=2 * one["calls"] + 2)
        self.assertEqual(ask(path, "SELECT * FROM functions ORDER BY function"),
                         sorted(ask(path, "SELECT * FROM functions"), key=lambda f: f["function"]))

    def test_ids_lead_to_callers_and_to_what_was_called(self):
        path = self.shop()
        calls = ask(path, "SELECT id, parent, last, depth, tid, begin_ns, duration_ns, end_ns, function, caller FROM "
                          "calls")
        by_id = {c["id"]: c for c in calls}
        self.assertEqual(len(by_id), len(calls))
        below = defaultdict(set)
        for call in calls:
            above, depth = call["parent"], 0
            self.assertEqual(by_id[above]["function"] if above else None, call["caller"])
            while above:
                below[above].add(call["id"])
                self.assertLessEqual(by_id[above]["begin_ns"], call["begin_ns"])
                self.assertGreaterEqual(by_id[above]["end_ns"], call["end_ns"])
                above, depth = by_id[above]["parent"], depth + 1
            self.assertEqual(call["depth"], depth)
        for call in calls:
            self.assertEqual(below[call["id"]], {i for i in by_id if call["id"] < i <= call["last"]})
        serve = max((c for c in calls if c["function"].startswith("serve")), key=lambda c: c["duration_ns"])
        self.assertGreater(serve["duration_ns"], SLEPT_NS)
        number = serve["id"]
        self.assertEqual({c["id"] for c in ask(path, f"SELECT id FROM below({number})")}, below[number])
        self.assertEqual({c["id"] for c in ask(path, f"SELECT id FROM children({number})")},
                         {c["id"] for c in calls if c["parent"] == number})
        above = [c["id"] for c in ask(path, f"SELECT id FROM ancestors({number})")]
        self.assertEqual([by_id[a]["depth"] for a in above], list(range(serve["depth"])))
        during = {c["id"] for c in ask(path, f"SELECT id FROM calls_during({number})")}
        self.assertEqual(during, {c["id"] for c in calls if c["tid"] != serve["tid"]
                                  and c["begin_ns"] < serve["end_ns"] and c["end_ns"] > serve["begin_ns"]})
        self.assertGreater(len(during), 0)

    def test_tables_are_the_answers_of_their_commands(self):
        path = self.shop()
        for table, words in (("requests", ["requests"]), ("flows", ["flows"]), ("notes", ["notes"]),
                             ("lock_waits", ["locks", "--by", "wait"]), ("lock_holds", ["locks", "--by", "hold"]),
                             ("locks", ["locks"]), ("file_calls", ["files"]), ("functions", ["report"]),
                             ("slow", ["slow", "--limit", "1000"])):
            with self.subTest(table):
                wanted = rows_of(karst(*words, path, "--format", "csv"))
                found = rows_of(karst("query", path, "--format", "csv", f"SELECT * FROM {table}"))
                self.assertGreater(len(wanted), 0)
                # Flags are numbers there, and words here.
                plain = [{k: {"true": "1", "false": "0"}.get(v, v) for k, v in row.items()} for row in found]
                number = re.compile(r"^-?[0-9.]+(e-[0-9]+)?$")
                same = lambda v: f"{float(v):.6f}" if number.match(v) else v
                self.assertEqual(sorted(([(k, same(v)) for k, v in row.items()] for row in plain), key=str),
                                 sorted(([(k, same(v)) for k, v in row.items()] for row in wanted), key=str))

    def test_what_stands_beside_slow_calls_is_tables(self):
        path = self.shop()
        said = json.loads(karst("slow", path, "--limit", "1000", "--json"))
        known = lambda rows: [{k: v for k, v in row.items() if v is not None} for row in rows]
        flat = lambda rows: [{k: v for k, v in row.items() if not isinstance(v, (list, dict))} for row in rows]
        self.assertEqual(known(ask(path, "SELECT * FROM slow")), flat(said["slow"]))  # in its order, too
        self.assertGreater(len(said["slow"]), 0)
        self.assertEqual(known(ask(path, "SELECT * FROM rare_functions")), flat(said["rare"]))
        self.assertEqual(known(ask(path, "SELECT * FROM left_functions")), flat(said["left"]))
        # Calls of different traces do not make each other usual.
        twice = json.loads(karst("query", path, path, "--format", "json", "SELECT * EXCLUDE trace FROM slow"))
        self.assertEqual(known(twice), 2 * flat(said["slow"]))

    def test_what_a_trace_holds_is_tables_too(self):
        path = self.shop()
        info = json.loads(karst("info", path, "--json"))
        table = lambda name: ask(path, f"SELECT * FROM {name}")
        known = lambda rows: [{k: v for k, v in row.items() if v is not None} for row in rows]
        flat = lambda row: {k: v for k, v in row.items() if not isinstance(v, (list, dict))}
        self.assertEqual(known(table("processes")), [flat(p) for p in info["processes"]])
        for name in ("threads", "modules", "switches"):
            wanted = [{"pid": p["pid"], **flat(row)} for p in info["processes"] for row in p[name]]
            self.assertEqual(known(table(name)), wanted, name)
        self.assertGreater(len(table("threads")), 1)
        self.assertEqual(known(table("problems")), info["problems"])
        memory = rows_of(karst("memory", path, "--format", "csv"))
        self.assertEqual(sorted((m["function"], m["bytes"], m["allocations"]) for m in memory),
                         sorted((m["function"], str(m["bytes"]), str(m["allocations"]))
                                for m in table("memory_of_functions")))
        users = json.loads(karst("files", path, "--by", "function", "--json"))["file_users"]
        self.assertEqual(known(table("file_users")), [flat(u) for u in users])

    def test_states_of_a_call_are_what_explain_says(self):
        path = self.shop()
        if json.loads(karst("info", path, "--json"))["states"]["backend"] == "none":
            self.skipTest("this user may not record thread states")
        slow = ask(path, "SELECT id, call, blocked_ns, end_ns - begin_ns AS length_ns FROM calls WHERE function LIKE 'serve%' "
                         "ORDER BY duration_ns DESC LIMIT 1")[0]
        states = ask(path, f"SELECT state, overlap_ns, begin_ns, end_ns, duration_ns FROM states_during({slow['id']})")
        self.assertEqual(sum(s["overlap_ns"] for s in states), slow["length_ns"])
        self.assertTrue(all(s["end_ns"] - s["begin_ns"] == s["duration_ns"] for s in states))
        sums = Counter()
        for s in states:
            sums[s["state"]] += s["overlap_ns"]
        self.assertGreater(sums["blocked"], SLEPT_NS * 0.9)
        self.assertAlmostEqual(sums["blocked"], slow["blocked_ns"], delta=2 * len(states))  # as explain has them
        every = ask(path, "SELECT tid, begin_ns, end_ns FROM thread_states ORDER BY tid, begin_ns")
        for one, other in zip(every, every[1:]):
            if one["tid"] == other["tid"]:
                self.assertEqual(one["end_ns"], other["begin_ns"])  # they follow each other without a gap

    def test_calls_of_one_thread_are_read_alone(self):
        path = self.shop()
        threads = ask(path, "SELECT tid, any_value(thread) AS thread, count(*) AS calls FROM calls GROUP BY tid")
        self.assertGreater(len(threads), 2)
        for one in threads:
            self.assertEqual(ask(path, f"SELECT * FROM calls(tid := {one['tid']})"),
                             ask(path, f"SELECT * FROM calls WHERE tid = {one['tid']}"))
            name = one["thread"].replace("'", "''")
            self.assertEqual(ask(path, f"SELECT id FROM calls(thread := '{name}') ORDER BY id"),
                             ask(path, f"SELECT id FROM calls WHERE thread = '{name}' ORDER BY id"))
        count = lambda of: ask(path, f"SELECT count(*) AS n FROM {of}")[0]["n"]
        self.assertEqual(count("calls()"), count("calls"))
        self.assertEqual(count("calls(tid := NULL)"), count("calls"))
        for none in ("tid := -1", "tid := 9223372036854775807", "thread := ''", f"tid := {threads[0]['tid']}, thread := 'x'"):
            self.assertEqual(count(f"calls({none})"), 0, none)
        for wrong in ("calls(tid := 'x')", "calls(nothing := 1)", "calls(7)", "requests(tid := 1)"):
            karst("query", path, f"SELECT * FROM {wrong}", status=1)

    def test_several_traces_are_one_database(self):
        path = self.shop()
        other = self.directory / "other.karst"
        shutil.copy(path, other)
        both = lambda sql: json.loads(karst("query", path, other, "--format", "json", sql))
        counts = both("SELECT trace, count(*) AS calls FROM calls GROUP BY trace")
        self.assertEqual({c["trace"] for c in counts}, {str(path), str(other)})
        self.assertEqual(counts[0]["calls"], counts[1]["calls"])
        self.assertEqual(both("SELECT count(DISTINCT id) AS ids FROM calls"), [{"ids": 2 * counts[0]["calls"]}])

    def test_sql_reads_and_writes_no_file(self):
        path = self.shop()
        secret = self.directory / "secret.csv"
        secret.write_text("word\nxyzzy\n")
        written = self.directory / "written"
        before = sorted(p.name for p in self.directory.iterdir())
        for sql in (f"SELECT * FROM read_csv('{secret}')", f"SELECT * FROM '{secret}'",
                    f"SELECT * FROM read_text('{secret}')", f"SELECT * FROM read_blob('{secret}')",
                    f"SELECT * FROM glob('{self.directory}/*')", f"COPY calls TO '{written}'",
                    f"CREATE TABLE t (a VARCHAR); COPY t FROM '{secret}'; SELECT * FROM t",
                    f"EXPORT DATABASE '{written}'", f"IMPORT DATABASE '{self.directory}'", f"ATTACH '{written}' AS w",
                    "INSTALL httpfs", f"LOAD '{secret}'", f"SELECT * FROM read_json('{secret}')",
                    f"CALL enable_logging(storage='file', storage_path='{written}'); SELECT 1",
                    f"SELECT * FROM parquet_scan('{secret}')", "SELECT * FROM read_csv('/dev/stdin')",
                    f"SET enable_external_access = true; SELECT * FROM '{secret}'", f"SET temp_directory = '{written}'",
                    "SET lock_configuration = false", f"PRAGMA enable_profiling = 'json'",
                    f"PRAGMA profiling_output = '{written}'", f"SET log_query_path = '{written}'",
                    f"SET allowed_paths = ['{secret}']", f"SET secret_directory = '{written}'",
                    f"SET home_directory = '{written}'"):
            with self.subTest(sql):
                done = subprocess.run([KARST, "query", str(path), sql], capture_output=True, text=True,
                                      timeout=support.TIMEOUT, cwd=self.directory)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertNotIn("xyzzy", done.stdout + done.stderr)
                self.assertEqual(sorted(p.name for p in self.directory.iterdir()), before)
        self.assertIn("--allow-files", karst("query", path, f"SELECT * FROM '{secret}'", status=1))
        self.assertEqual(ask(path, f"SELECT * FROM read_csv('{secret}')", "--allow-files"), [{"word": "xyzzy"}])

    def test_parquet(self):
        path = self.shop()
        out = self.directory / "calls.parquet"
        karst("query", path, "--format", "parquet", "-o", out, "SELECT * FROM calls")
        self.assertEqual((out.read_bytes()[:4], out.read_bytes()[-4:]), (b"PAR1", b"PAR1"))
        self.assertEqual(ask(path, f"SELECT * FROM '{out}' ORDER BY id", "--allow-files"),
                         ask(path, "SELECT * FROM calls ORDER BY id"))
        whole = out.read_bytes()
        # What fails leaves what was there.
        karst("query", path, "--format", "parquet", "-o", out, "SELECT nothing FROM calls", status=1)
        karst("query", path, "--format", "parquet", "-o", out, f"COPY calls TO '{out}'", status=1)
        self.assertEqual(out.read_bytes(), whole)
        self.assertEqual([p.name for p in self.directory.iterdir() if "parquet" in p.name], ["calls.parquet"])
        # With a file to write SQL still reads and writes no other.
        secret = self.directory / "secret.csv"
        secret.write_text("word\nxyzzy\n")
        karst("query", path, "--format", "parquet", "-o", out, f"SELECT * FROM '{secret}'", status=1)
        self.assertIn("needs -o", karst("query", path, "--format", "parquet", "SELECT 1", status=2))
        self.assertIn("goes with", karst("query", path, "-o", out, "SELECT 1", status=2))

    def test_values_of_all_kinds_survive(self):
        path = self.shop()
        odd = "it's \"odd\", \\ and\n\x01 \u202e ünï"
        sql = "SELECT '" + odd.replace("'", "''") + "' AS \"a \"\"b\"\"\", [1, 2] AS l, {'x': 1.5} AS s, NULL AS n, " \
              "'inf'::DOUBLE AS i, true AS f, 170141183460469231731687303715884105727::HUGEINT AS h, 1.50::DECIMAL(9,2) " \
              "AS d, DATE '2026-01-02' AS day; -- and a comment"
        self.assertEqual(ask(path, sql), [{'a "b"': odd, "l": [1, 2], "s": {"x": 1.5}, "n": None, "i": None, "f": True,
                                          "h": 2**127 - 1, "d": 1.5, "day": "2026-01-02"}])
        for options in ([], ["--format", "csv"]):
            text = karst("query", path, *options, sql)
            self.assertNotIn("\x01", text)
            self.assertIn("\\x01", text)
        self.assertEqual(karst("query", path, "--format", "csv", "SELECT 1 AS a, 1 AS a, 'x' AS b"), '"a","a","b"\n1,1,"x"\n')
        self.assertEqual(ask(path, "SELECT 1 WHERE false"), [])
        self.assertIn("FILTER", karst("query", path, "EXPLAIN SELECT * FROM calls WHERE depth = 1"))

    def test_mistakes_are_told_with_their_place(self):
        path = self.shop()
        text = karst("query", path, "SELECT functin FROM calls", status=1)
        self.assertIn('"function"', text)
        self.assertIn("LINE 1: SELECT functin FROM calls\n               ^", text)
        self.assertIn('Did you mean "calls"', karst("query", path, "SELECT * FROM cals", status=1))
        self.assertIn("syntax error", karst("query", path, "SELECT 1 +", status=1))
        for words in ([path], [path, ""], [path, " ;"]):
            self.assertIn("no SQL is given", karst("query", *words, status=2))
        self.assertIn("cannot read", karst("query", path, "-f", self.directory / "none.sql", status=2))
        karst("query", self.directory / "none.karst", "SELECT 1", status=1)
        text = karst("query", path, "--memory", "16M", "SELECT count(*) FROM (SELECT DISTINCT a.i * 1000 + b.i FROM "
                     "range(20000) a(i), range(2000) b(i))", status=1)
        self.assertIn("--memory", text)
        self.assertIn("no size", karst("query", path, "--memory", "1K", "SELECT 1", status=2))
        damaged = self.directory / "damaged.karst"
        damaged.write_bytes(path.read_bytes()[:-5000])
        self.assertGreater(ask(damaged, "SELECT count(*) AS n FROM calls")[0]["n"], 0)

    def test_a_file_of_statements_and_the_newest_trace(self):
        path = self.shop()
        sql = self.directory / "q.sql"
        sql.write_text("-- a view; and what it has\nCREATE VIEW v AS SELECT * FROM calls WHERE function LIKE 'serve%';\n"
                       "SELECT count(*) AS n FROM v;\n")
        found = json.loads(karst("query", "-f", sql, "--format", "json", cwd=self.directory))
        self.assertEqual(found, [{"n": REQUESTS}])
        text = karst("query", path, "--limit", "3", "SELECT function FROM calls")
        self.assertIn("(the first 3 rows; --limit 0: all)", text)
        # Names are shortened so that numbers are seen.
        lines = karst("query", path, "--width", "70", "SELECT function, count(*) AS n, repeat('long', 90) AS text, "
                      "max(duration_ns) AS longest FROM calls WHERE function LIKE 'serve%' GROUP BY function").splitlines()
        self.assertEqual(lines[0].split(), ["function", "n", "text", "longest"])
        self.assertTrue(all(len(line) <= 70 for line in lines), lines)
        self.assertRegex(lines[1], rf"^serve.* {REQUESTS} .*\.\.\. +\d{{8}}$")
        schema = karst("query", "--schema")
        for table in ("calls: ", "requests: ", "lock_waits: ", "below(call_id)"):
            self.assertIn(table, schema)
        # Columns are as DESCRIBE has them.
        for name in re.findall(r"^([a-z_]+): ", schema, re.M):
            described = [c["column_name"] for c in ask(path, f"SELECT column_name FROM (DESCRIBE {name})")]
            part = schema.split(f"{name}: ", 1)[1].split("\n\n")[0]
            self.assertEqual(re.findall(r"^  ([a-z0-9_]+) +[A-Z]+ ", part, re.M), described, name)

    def test_each_question_of_the_guide_has_an_answer(self):
        path = self.shop()
        pages = "".join((ROOT / "docs/guide" / name).read_text() for name in ("query.md", "questions.md"))
        questions = re.findall(r"```sql\n(.*?)```", pages, re.S)
        self.assertGreaterEqual(len(questions), 38)
        for sql in questions:
            with self.subTest(sql):
                self.assertGreater(len(ask(path, sql)), 0)
        # What the page says of the slow request is so.
        slow = ask(path, "SELECT request, most_in FROM requests ORDER BY duration_ns DESC LIMIT 60")
        self.assertIn(SLOW, [s["request"] for s in slow])
        self.assertEqual(Counter(n["value"] for n in ask(path, "SELECT value FROM notes WHERE kind = 'message'")),
                         {"served": REQUESTS - 1, "slow one": 1})


if __name__ == "__main__":
    main()
