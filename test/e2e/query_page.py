"""SQL that the page's server answers: as karst query does, within the same limits, and without harm to the server."""
import csv
import io
import json
import os
import subprocess
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import support
from support import BIN, KARST, TracedTest, build, main


class QueryPage(TracedTest):
    SCHED = ()

    def setUp(self):
        super().setUp()
        if not (BIN.parent / "lib/karst-sql/libduckdb.so").exists():
            raise unittest.SkipTest("script/setup has not fetched DuckDB")
        self.path = self.run_traced(build("waiting", "view/waiting.cc", "-O1", "-pthread")).trace.path
        self.server = subprocess.Popen([KARST, "view", "--no-browser", "--keep", self.path], stdout=subprocess.PIPE,
                                       text=True, cwd=self.directory)
        self.addCleanup(self.server.stdout.close)
        self.addCleanup(self.server.wait)
        self.addCleanup(self.server.kill)
        self.url = self.server.stdout.readline().strip()

    def get(self, what, **parameters):
        """Status and answer, once the trace is read."""
        address = f"{self.url}api/{what}?{urllib.parse.urlencode(parameters)}"
        while True:
            try:
                with urllib.request.urlopen(address, timeout=support.TIMEOUT) as reply:
                    return reply.status, json.loads(reply.read())
            except urllib.error.HTTPError as error:
                with error:
                    if error.code != 503:
                        return error.code, json.loads(error.read())
            time.sleep(0.05)

    def ask(self, sql, **parameters):
        return self.get("query", sql=sql, **parameters)

    def asked_processes(self):
        children = Path(f"/proc/{self.server.pid}/task").glob("*/children")
        return [int(pid) for file in children for pid in file.read_text().split()]

    def test_the_answer_is_the_commands(self):
        sql = "SELECT call, function, begin_ns, duration_ns, 1 AS \"a,b\", NULL AS \"a,b\" FROM calls"
        for words, parameters in (((), {}), (("--raw",), {"raw": 1})):
            said = subprocess.run([KARST, "query", self.path, "--format", "csv", *words, sql], capture_output=True,
                                  text=True, check=True, timeout=support.TIMEOUT).stdout
            status, answer = self.ask(sql, **parameters)
            self.assertEqual(status, 200, answer)
            head, *rows = csv.reader(io.StringIO(said))
            self.assertEqual([column["name"] for column in answer["columns"]], head)
            self.assertEqual([[value or "" for value in row] for row in answer["rows"]], rows)
            self.assertEqual([column["unit"] for column in answer["columns"]], ["", "", "moment", "ns", "", ""])

    def test_a_call_is_found_by_its_name(self):
        _, answer = self.ask("SELECT tid, begin_ns, function FROM calls WHERE depth = 0 LIMIT 1")
        tid, begin, function = answer["rows"][0]
        _, facts = self.get("trace")
        thread = next(i for i, of in enumerate(facts["threads"]) if of["tid"] == int(tid))
        status, call = self.get("call", thread=thread, at=begin)
        self.assertEqual(status, 200, call)
        self.assertLessEqual(abs(call["begin"] - int(begin)), 1)
        functions = facts["functions"]
        self.assertEqual(functions["name"][functions["number"].index(call["function"])], function)
        self.assertEqual(self.get("call", thread=thread, at=2**60)[0], 400)
        self.assertEqual(self.get("call", thread=10**9, at=1)[0], 400)

    def test_sql_has_no_way_out(self):
        before = sorted(os.listdir(self.directory))
        for sql in ("SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM read_text('/proc/self/environ')",
                    "SELECT * FROM glob('/*')", "SELECT * FROM '/etc/passwd'", "COPY calls TO 'x.csv'",
                    "COPY (SELECT 1) TO '/dev/stdout'", "ATTACH 'x.db'", "EXPORT DATABASE 'x'", "INSTALL httpfs",
                    "LOAD '/tmp/x.so'", "SET enable_external_access = true", "PRAGMA temp_directory='.'",
                    "RESET lock_configuration", "SET memory_limit = '1TB'",
                    "CREATE SECRET s (TYPE s3)", "PRAGMA enable_profiling; PRAGMA profile_output='x'; SELECT 1",
                    "SELECT 1; ATTACH ':memory:' AS o; COPY FROM DATABASE memory TO o; ATTACH 'y.db'"):
            with self.subTest(sql):
                status, answer = self.ask(sql)
                self.assertEqual(status, 400, answer)
                self.assertNotIn("root:", json.dumps(answer))
        # DuckDB takes this, and fails, or dies, as it opens the file.
        self.ask("CALL enable_logging(storage='file', storage_path='logs'); SELECT 1")
        self.assertEqual(sorted(os.listdir(self.directory)), before)
        self.assertEqual(self.get("trace")[0], 200)

    def test_odd_sql_is_an_error(self):
        for sql in ("", ";", "-- nothing", "SELECT", "'", "/*", "SELECT 1 FROM", "\0", "SELECT 'a\0b'", "$$",
                    "(" * 5000, "SELECT " + "-" * 3000 + "1"):
            with self.subTest(sql[:20]):
                status, answer = self.ask(sql)
                self.assertEqual(status, 400, answer)
                self.assertTrue(answer["error"])
        self.assertEqual(self.ask("SELECT '" + "x" * 40000 + "'")[0], 414)

    def test_large_answers_are_bounded(self):
        status, answer = self.ask("SELECT * FROM range(7000)")
        self.assertEqual((status, len(answer["rows"]), answer["more"], answer["counted"]), (200, 5000, 2000, True))
        status, answer = self.ask("SELECT repeat('\u00e9', 20000) FROM range(6000)")
        self.assertEqual((status, answer["cut"]), (200, True))
        self.assertLess(len(answer["rows"]), 5000)
        self.assertEqual(len(answer["rows"]) + answer["more"], 6000)
        self.assertEqual(set(answer["rows"][0][0]), {"\u00e9"})
        status, answer = self.ask("SELECT * FROM range(100000000000)")
        self.assertEqual((status, answer["counted"]), (200, False))

    def test_what_hears_no_stop_is_ended(self):
        self.assertEqual(self.ask("SELECT 42")[0], 200)  # the trace is read
        # DuckDB folds the constant before anything can interrupt it.
        endless = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n FROM r) SELECT count(*) FROM r"
        for n, sql in enumerate(("SELECT length(repeat('x', 4000000000))", endless)):
            with self.subTest(sql):
                asked = subprocess.Popen(["curl", "-sG", f"{self.url}api/query", "--data-urlencode", f"sql={sql}",
                                          "-d", f"job=mine.{n}"], stdout=subprocess.PIPE, text=True)
                deadline = time.monotonic() + 60
                while not self.asked_processes() and time.monotonic() < deadline:
                    time.sleep(0.05)
                self.assertTrue(self.asked_processes())
                self.assertEqual(self.get("check")[0], 429)
                self.get("stop", job=f"mine.{n}")
                self.assertIn("stopped", asked.communicate(timeout=60)[0])
                self.assertEqual(self.asked_processes(), [])
                self.assertEqual(self.ask("SELECT 42")[1]["rows"], [["42"]])

    def test_it_ends_with_the_server(self):
        self.assertEqual(self.ask("SELECT 42")[0], 200)
        asked = subprocess.Popen(["curl", "-sG", f"{self.url}api/query", "--data-urlencode",
                                  "sql=SELECT length(repeat('x', 4000000000))"], stdout=subprocess.DEVNULL)
        self.addCleanup(asked.wait)
        deadline = time.monotonic() + 60
        while not self.asked_processes() and time.monotonic() < deadline:
            time.sleep(0.05)
        [pid] = self.asked_processes()
        time.sleep(1)  # until it has asked to end with the server
        self.server.kill()
        self.server.wait()
        while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
            if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
                return
            time.sleep(0.05)
        self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def test_findings_and_tables_are_the_commands(self):
        said = json.loads(subprocess.run([KARST, "check", self.path, "--json", "--limit", "0"], capture_output=True,
                                         text=True, check=True, timeout=support.TIMEOUT).stdout)
        status, answer = self.get("check")
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["outcomes"], said["check_outcomes"])
        self.assertEqual(answer["findings"], said["check_findings"])
        schema = subprocess.run([KARST, "query", "--schema"], capture_output=True, text=True, check=True).stdout
        status, answer = self.get("schema")
        self.assertEqual(answer["missing"], "")
        for table in answer["tables"]:
            self.assertIn(f"{table['name']}: ", schema)

    def test_a_file_that_was_replaced(self):
        self.assertEqual(self.ask("SELECT 1")[0], 200)
        copy = f"{self.path}.copy"
        Path(copy).write_bytes(Path(self.path).read_bytes())
        os.rename(copy, self.path)
        self.assertEqual(self.ask("SELECT 1")[0], 409)


if __name__ == "__main__":
    main()
