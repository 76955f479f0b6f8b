"""libkarst-reader and the Python module: their columns against karst calls and karst query, and files of anybody's."""
import csv
import gc
import io
import os
import random
import subprocess
import sys
import threading
import unittest
from collections import Counter

import support
from support import BIN, KARST, ROOT, TracedTest, build, main

os.environ["KARST_LIBRARY"] = str(BIN.parent / "lib/libkarst-reader.so.0")
os.environ["KARST"] = str(KARST)
sys.path.insert(0, str(ROOT / "python"))
import karst  # noqa: E402

INCLUDE = ("-I", str(ROOT / "include"))


def printed(*words):
    return subprocess.run([KARST, *map(str, words)], capture_output=True, text=True, check=True,
                          timeout=support.TIMEOUT).stdout


NEEDS_QUERIES = unittest.skipUnless((BIN.parent / "lib/karst-sql/libduckdb.so").exists(),
                                    "script/setup has not fetched DuckDB")


class ReaderLibrary(TracedTest):
    def shop(self):
        program = build("query_shop", "query/shop.cc", "-O1", "-pthread", *INCLUDE)
        path = self.directory / "shop.karst"
        subprocess.run([KARST, "run", "-o", str(path), "--", program, str(self.directory / "journal")],
                       capture_output=True, check=True, timeout=support.TIMEOUT)
        return path

    def test_columns_are_what_the_commands_say(self):
        path = self.shop()
        trace = karst.open(path)
        self.assertEqual(trace.problems, [])
        wanted = list(csv.DictReader(io.StringIO(printed("calls", path, "--format", "csv"))))
        found = [{"begin_ns": call.begin_ns, "duration_ns": call.duration_ns, "function": call.name, "tid": call.thread.tid,
                  "pid": call.thread.pid, "thread": call.thread.name,
                  "caller": call.parent.name if call.parent else ""} for call in trace]
        self.assertGreater(len(found), 100)
        self.assertEqual([{k: str(v) for k, v in row.items()} for row in found],
                         [{k: row[k] for k in found[0]} for row in wanted])

    @NEEDS_QUERIES
    def test_self_times_and_the_tree_are_those_of_queries(self):
        trace = karst.open(self.shop())
        rows = trace.query("SELECT id, last, depth, self_ns, end_ns, parent FROM calls ORDER BY id")
        self.assertEqual(rows.columns, ["id", "last", "depth", "self_ns", "end_ns", "parent"])
        by_thread = {}
        for row in rows:
            by_thread.setdefault(row["id"] >> 32, []).append(row)
        for thread, of in zip((t for t in trace.threads if len(t.calls)), by_thread.values()):
            calls, first = thread.calls, of[0]["id"]
            self.assertEqual(len(calls), len(of))
            for at, row in enumerate(of):
                self.assertEqual((calls.depth[at], calls.self_ns[at]), (row["depth"], row["self_ns"]))
                self.assertEqual(calls.below_end[at] - 1, row["last"] - first)
                self.assertLessEqual(abs(calls.end_ns[at] - row["end_ns"]), 1)  # ns are rounded once here, twice there
                self.assertEqual(None if row["parent"] is None else row["parent"] - first,
                                 None if calls.parent[at] == karst.NO_CALL else calls.parent[at])
            for call in calls:
                self.assertTrue(all(child.parent.row == call.row for child in call.children))

    def test_columns_are_buffers_that_keep_their_trace(self):
        path = self.shop()
        begin = karst.open(path).threads[0].calls.begin_ns  # nobody else knows the trace
        gc.collect()
        self.assertEqual(list(begin), list(karst.open(path).threads[0].calls.begin_ns))
        self.assertTrue(begin.readonly)
        with self.assertRaises(TypeError):
            begin[0] = 1
        try:
            import numpy
        except ImportError:
            return
        arrays = karst.open(path).threads[0].calls.numpy()
        self.assertEqual(arrays["begin_ns"].dtype, numpy.uint64)
        self.assertEqual(arrays["begin_ns"].tolist(), list(begin))

    def test_from_several_threads_at_once(self):
        trace = karst.open(self.shop())
        wanted, found = [len(t.calls) for t in karst.open(trace.path).threads], []
        threads = [threading.Thread(target=lambda: found.append([len(t.calls) for t in trace.threads])) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [wanted] * 8)

    def test_a_program_in_c(self):
        path = self.shop()
        program = self.directory / "sums"
        subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *INCLUDE,
                        str(ROOT / "test/e2e/reader_library/sums.c"), "-o", str(program), "-L", str(BIN.parent / "lib"),
                        "-lkarst-reader", f"-Wl,-rpath,{BIN.parent / 'lib'}"], check=True)
        subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *INCLUDE, "-fsyntax-only",
                        "-x", "c++", str(ROOT / "include/karst/reader.h")], check=True)
        out = subprocess.run([program, path], capture_output=True, text=True, check=True).stdout
        wanted = Counter((row["tid"], row["function"], row["duration_ns"])
                         for row in csv.DictReader(io.StringIO(printed("calls", path, "--format", "csv"))))
        self.assertEqual(Counter((line.split(" ", 1)[0], *line.split(" ", 1)[1].rsplit(" ", 1))
                                 for line in out.splitlines()), wanted)
        done = subprocess.run([program, self.directory / "none"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no such file", done.stderr)

    @NEEDS_QUERIES
    def test_files_of_anybody(self):
        path = self.shop()
        for name, content in (("empty", b""), ("text", b"hello"), ("older", b"karst" * 20)):
            other = self.directory / name
            other.write_bytes(content)
            with self.assertRaises(karst.Error):
                karst.open(other)
        with self.assertRaisesRegex(karst.Error, "directory"):
            karst.open(self.directory)
        with self.assertRaisesRegex(karst.Error, "--allow-files"):
            karst.open(path).query(f"SELECT * FROM read_text('{path}')")
        whole, damaged = path.read_bytes(), self.directory / "damaged.karst"
        chance = random.Random(7)
        for _ in range(60):
            content = bytearray(whole[:chance.choice((len(whole), chance.randrange(100, len(whole))))])
            for _ in range(chance.randrange(1, 6)):
                at = chance.randrange(len(content))
                content[at:at + 8] = chance.randbytes(chance.choice((1, 8)))
            damaged.write_bytes(content)
            try:
                trace = karst.open(damaged)
            except karst.Error:
                continue
            for call in trace:
                self.assertLessEqual(call.begin_ns, call.end_ns)
                self.assertTrue(isinstance(call.name, str))
            self.assertTrue(all(isinstance(text, str) for text in trace.problems))

    @NEEDS_QUERIES
    def test_a_trace_without_calls_and_a_command_that_is_not_there(self):
        path = self.shop()
        self.assertEqual(karst.open(path).query("SELECT 1 AS one WHERE false"), [])
        os.environ["KARST"] = "/nonexistent/karst"
        try:
            with self.assertRaises((karst.Error, OSError)):
                karst.open(path).query("SELECT 1")
        finally:
            os.environ["KARST"] = str(KARST)
        with self.assertRaises(IndexError):
            karst.open(path).threads[0].calls[10**9]


if __name__ == "__main__":
    main()
