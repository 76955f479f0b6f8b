"""karst export --to sqlite, csv and parquet: the tables of karst query, read by SQLite, Python's csv and DuckDB."""
import csv
import io
import json
import os
import sqlite3
import subprocess
import unittest

import support
from support import BIN, KARST, ROOT, TracedTest, build, main

INCLUDE = ("-I", str(ROOT / "include"))


def run(*words, check=True):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, check=check,
                          timeout=support.TIMEOUT)


HAS_DUCKDB = (BIN.parent / "lib/karst-sql/libduckdb.so").exists()


def schema():
    """Columns by table, in order, with their types, as karst query --schema has them."""
    made, name = {}, None
    for line in run(KARST, "query", "--schema").stdout.splitlines():
        if line and not line.startswith(" ") and ": " in line:
            name = line.split(": ")[0]
            made[name] = {}
        elif line.startswith("  ") and name and not line.startswith("    ") and len(line.split()) > 2:
            column, kind = line.split()[:2]
            if kind in ("BIGINT", "UBIGINT", "VARCHAR", "DOUBLE", "BOOLEAN"):
                made[name][column] = kind
    return {name: columns for name, columns in made.items() if columns}


class Tables(TracedTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.schema = schema()

    def traced(self):
        if not hasattr(self, "path"):
            self.path = self.run_traced(build("exports_shop", "query/shop.cc", "-O1", "-pthread", *INCLUDE),
                                        self.directory / "journal").trace.path
        return self.path

    def asked(self, sql):
        return json.loads(run(KARST, "query", self.traced(), sql, "--format", "json").stdout)

    def sqlite(self):
        out = self.directory / "trace.sqlite"
        run(KARST, "export", self.traced(), "--to", "sqlite", "-o", out)
        of = sqlite3.connect(f"file:{out}?mode=ro", uri=True)
        self.addCleanup(of.close)
        of.row_factory = sqlite3.Row
        return of

    def test_sqlite_has_the_tables_of_the_schema(self):
        of = self.sqlite()
        self.assertEqual(of.execute("PRAGMA integrity_check").fetchone()[0], "ok")
        names = [row[0] for row in of.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        self.assertEqual(sorted(names), sorted(self.schema))
        for name, columns in self.schema.items():
            self.assertEqual([row["name"] for row in of.execute(f'PRAGMA table_info("{name}")')], list(columns), name)
        made = of.execute("SELECT sql FROM sqlite_master WHERE name = 'calls'").fetchone()[0]
        self.assertIn('"duration_ns" INTEGER, -- with all it called', made)

    @unittest.skipUnless(HAS_DUCKDB, "DuckDB is not installed")
    def test_sqlite_has_what_karst_query_answers(self):
        of = self.sqlite()
        for name in self.schema:
            wanted = self.asked(f"SELECT * FROM {name}")
            found = [dict(row) for row in of.execute(f'SELECT * FROM "{name}"')]
            as_sqlite = [{k: int(v) if isinstance(v, bool) else v for k, v in row.items()} for row in wanted]
            key = lambda row: json.dumps(row, sort_keys=True)
            self.assertEqual(sorted(map(key, found)), sorted(map(key, as_sqlite)), name)
        self.assertGreater(of.execute("SELECT count(*) FROM calls").fetchone()[0], 600)
        self.assertEqual(of.execute("SELECT count(*) FROM requests").fetchone()[0], 60)
        # Shares are of the time of all calls, which is known when all threads have been gone through.
        self.assertAlmostEqual(of.execute("SELECT sum(self_share) FROM functions").fetchone()[0], 1, places=3)
        # A call and its caller are joined by their numbers.
        rows = of.execute("SELECT a.caller, b.function FROM calls a JOIN calls b ON a.parent = b.id").fetchall()
        self.assertTrue(rows and all(one == other for one, other in rows))

    def test_csv_is_a_directory_of_tables(self):
        out = self.directory / "tables"
        run(KARST, "export", self.traced(), "--to", "csv", "-o", out)
        self.assertEqual(sorted(os.listdir(out)), sorted(f"{name}.csv" for name in self.schema))
        of = self.sqlite()
        for name, columns in self.schema.items():
            with open(out / f"{name}.csv", newline="", encoding="utf-8") as file:
                found = list(csv.reader(file, strict=True))
            self.assertEqual(found[0], list(columns), name)
            self.assertEqual(len(found) - 1, of.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0], name)
            self.assertTrue(all(len(row) == len(columns) for row in found), name)
        with open(out / "calls.csv", newline="", encoding="utf-8") as file:
            own = sum(int(row["self_ns"]) for row in csv.DictReader(file))
        self.assertEqual(own, of.execute("SELECT sum(self_ns) FROM calls").fetchone()[0])

    @unittest.skipUnless(HAS_DUCKDB, "DuckDB is not installed")
    def test_parquet_is_read_back_by_duckdb(self):
        out = self.directory / "parquet"
        run(KARST, "export", self.traced(), "--to", "parquet", "-o", out)
        self.assertEqual(sorted(os.listdir(out)),
                         sorted("calls" if name == "calls" else f"{name}.parquet" for name in self.schema))
        pid = self.asked("SELECT DISTINCT pid FROM calls")[0]["pid"]
        self.assertEqual(os.listdir(out / "calls"), [f"pid={pid}"])
        of = self.sqlite()
        for name, columns in self.schema.items():
            files = f"{out}/calls/*/*.parquet" if name == "calls" else f"{out}/{name}.parquet"
            rows = json.loads(run(KARST, "query", "--allow-files", self.traced(),
                                  f"SELECT * FROM read_parquet('{files}', hive_partitioning = false)", "--format",
                                  "json").stdout)
            wanted = [dict(row) for row in of.execute(f'SELECT * FROM "{name}"')]
            found = [{k: int(v) if isinstance(v, bool) else v for k, v in row.items()} for row in rows]
            key = lambda row: json.dumps(row, sort_keys=True)
            self.assertEqual(sorted(map(key, found)), sorted(map(key, wanted)), name)
            described = json.loads(run(KARST, "query", "--allow-files", self.traced(), "SELECT column_name, column_type "
                                       f"FROM (DESCRIBE SELECT * FROM read_parquet('{files}', hive_partitioning = "
                                       "false))", "--format", "json").stdout)
            self.assertEqual({c["column_name"]: c["column_type"] for c in described}, columns, name)

    def test_hard_texts_survive(self):
        self.path = self.run_traced(build("exports_noted", "exports/noted.cc", "-O1", *INCLUDE)).trace.path
        text = "a \"quote\", it's\nb\x01\ufffd\u00e9;--"  # a byte that is no UTF-8 is U+FFFD
        found = self.sqlite().execute("SELECT value FROM notes WHERE kind = 'message'").fetchall()
        self.assertEqual([row[0] for row in found], [text])
        out = self.directory / "tables"
        run(KARST, "export", self.path, "--to", "csv", "-o", out)
        with open(out / "notes.csv", newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file, strict=True) if row["kind"] == "message"]
        with_csv = list(csv.DictReader(io.StringIO(run(KARST, "notes", self.path, "--format", "csv").stdout)))
        # CSV of Karst escapes control characters, as it does everywhere.
        self.assertEqual([row["value"] for row in rows], [r["value"] for r in with_csv if r["kind"] == "message"])
        self.assertEqual(len(rows), 1)
        self.assertTrue(rows[0]["value"].startswith('a "quote", it\'s'))
        if HAS_DUCKDB:
            out = self.directory / "parquet"
            run(KARST, "export", self.path, "--to", "parquet", "-o", out)
            rows = json.loads(run(KARST, "query", "--allow-files", self.path, "SELECT value FROM "
                                  f"read_parquet('{out}/notes.parquet') WHERE kind = 'message'", "--format",
                                  "json").stdout)
            self.assertEqual(rows, [{"value": text}])

    def test_filters_choose_calls(self):
        out = self.directory / "part.sqlite"
        run(KARST, "export", self.traced(), "--to", "sqlite", "-o", out, "--function", "^append")
        of = sqlite3.connect(out)
        self.addCleanup(of.close)
        self.assertEqual([row[0] for row in of.execute("SELECT DISTINCT function FROM calls")], ["append(unsigned long)"])
        self.assertEqual(of.execute("SELECT count(*) FROM functions").fetchone()[0], 1)

    def test_a_place_that_is_taken_is_left_alone(self):
        taken = self.directory / "taken"
        taken.mkdir()
        (taken / "mine").write_text("mine")
        link = self.directory / "link"
        link.symlink_to(taken)
        for out in (taken, f"{taken}/", link, taken / "mine"):
            done = run(KARST, "export", self.traced(), "--to", "csv", "-o", out, check=False)
            self.assertEqual((done.returncode, "choose a new name" in done.stderr), (1, True), done.stderr)
        self.assertEqual(os.listdir(taken), ["mine"])
        self.assertEqual((taken / "mine").read_text(), "mine")
        done = run(KARST, "export", self.traced(), "--to", "sqlite", "-o", taken, check=False)
        self.assertIn("SQLite needs a file", done.stderr)
        # An empty one is taken, by whatever path.
        for name in ("empty", "other/"):
            (self.directory / name).mkdir()
            run(KARST, "export", self.traced(), "--to", "csv", "-o", f"{self.directory}/{name}")
            self.assertIn("calls.csv", os.listdir(self.directory / name))
        self.assertEqual([name for name in os.listdir(self.directory) if name.startswith(".")], [])

    def test_what_cannot_be_written_leaves_nothing(self):
        for kind in ("sqlite", "csv"):
            command = f"ulimit -f 20; exec {KARST} export {self.traced()} --to {kind} -o {self.directory}/full"
            done = subprocess.run(["bash", "-c", f"trap '' XFSZ; {command}"], capture_output=True, text=True,
                                  timeout=support.TIMEOUT)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("cannot write", done.stderr)
            self.assertEqual([name for name in os.listdir(self.directory) if "full" in name], [])


if __name__ == "__main__":
    main()
