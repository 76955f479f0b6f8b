"""karst slow on examples/server: one request in a thousand flushes a buffer with the cache locked."""
import csv
import io
import json
import os
import pty
import re
import subprocess

from support import KARST, ROOT, TIMEOUT, TracedTest, build, main


class Slow(TracedTest):
    SCHED = ()

    def server(self):
        program = build("server", ROOT / "examples/server/server.cc", "-O2", "-pthread")
        run = self.run_traced(program, 4000)
        self.assertIn("4000 requests, ", run.out)
        return run.trace.path

    def slow(self, path, *options):
        done = subprocess.run([KARST, "slow", str(path), "--format", "json", *options], capture_output=True, text=True,
                              timeout=TIMEOUT)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    # The program says which call and how many pages; the kernel counts its faults.
    def test_a_storm_of_page_faults_is_named(self):
        program = build("slow-faults", "slow/faults.c", "-O2", compiler="karst-gcc")
        for call, pages in ((3, 600), (77, 3000), (199, 1500), (50, 2000)):
            trace = self.run_traced(program, call, pages).trace
            # The slowest may be another one, as a busy machine may take the CPU away.
            done = subprocess.run([KARST, "calls", "--format", "csv", "--function", "^request$", trace.path],
                                  capture_output=True, text=True, timeout=TIMEOUT, check=True)
            name = list(csv.DictReader(io.StringIO(done.stdout)))[call]["call"]
            done = subprocess.run([KARST, "explain", "--call", name, "--format", "json", trace.path],
                                  capture_output=True, text=True, timeout=TIMEOUT, check=True)
            if trace.info["states"]["page_faults"] is None:
                self.skipTest("perf events are not permitted")
            explained = json.loads(done.stdout)
            cause, = [c for c in explained["causes"] if c["kind"] == "computing" and [step["function"] for step in c["path"]] == ["store"]]
            # Each 16th of a thread on a CPU is a record; a busy machine may move it to another CPU now and then.
            self.assertAlmostEqual(cause["page_faults"], pages, delta=64)
            self.assertLess(cause["usual_page_faults"], 1)
            self.assertRegex(cause["what"], r"^computing, with about [\d,]+ page faults \(usual are 0\)$")
            # A busy machine may take the CPU away meanwhile: that is another cause.
            others = sum(c["excess_ns"] for c in explained["causes"] if c["kind"] == "without a CPU")
            self.assertGreater(cause["excess_ns"], 0.9 * (explained["excess_ns"] - others), explained)

    @staticmethod
    def plain(name):
        return re.split(r"[(\[]", name)[0]

    def names(self, path):
        return [self.plain(step["function"]) for step in path]

    def test_names_the_request_and_where_its_time_went(self):
        path = self.server()
        slow = self.slow(path)["slow"]
        self.assertEqual(slow[0]["function"], "Server::serve(int)")
        self.assertGreater(slow[0]["duration_ns"], 10_000_000)
        self.assertLess(slow[0]["usual_ns"], 5_000_000)
        each = self.slow(path, "--each", "--limit", "100")["slow"]
        paths = [self.names(call["path"]) for call in each if call["duration_ns"] > 10_000_000]
        self.assertIn(["Cache::lookup", "Journal::append", "Disk::flush"], paths)

    def test_rows_are_as_csv_and_as_a_table(self):
        path = self.server()
        ask = lambda *options: subprocess.run([KARST, "slow", str(path), "--limit", "3", *options], check=True,
                                              capture_output=True, text=True, timeout=TIMEOUT).stdout
        rows = list(csv.DictReader(io.StringIO(ask("--format", "csv"))))
        told = self.slow(path, "--limit", "3")["slow"]
        self.assertEqual([(row["function"], int(row["duration_ns"]), int(row["usual_ns"]), row["wait_words"]) for row in rows],
                         [(one["function"], one["duration_ns"], one["usual_ns"], one.get("wait_words", "")) for one in told])
        head, *lines = ask("--columns", "duration,such_calls,function").splitlines()
        self.assertEqual((head.split(), len(lines) >= len(rows)), (["duration", "such_calls", "function"], True))

    def test_follows_from_who_waits_to_who_made_it_wait(self):
        path = self.server()
        info = json.loads(subprocess.run([KARST, "info", "--format", "json", str(path)], check=True, capture_output=True,
                                         text=True).stdout)
        if not info["states"].get("own_wakers"):
            self.skipTest("who ended a wait is not recorded here: tracepoints are not permitted")
        each = self.slow(path, "--each", "--limit", "100", "--follow")["slow"]
        ends = [call["chain"][-1]["path"][-1]["function"] for call in each
                if call["chain"] and call["chain"][-1]["path"]]
        self.assertIn("Disk::flush", [self.plain(name) for name in ends])

    def test_what_is_long_in_a_range(self):
        """Of functions that are called too seldom to have a usual time, where nothing else is listed."""
        trace = self.run_traced(build("slow-once", "slow/once.c", "-O1", compiler="karst-gcc"),
                                options=("--sched", "off", "--not-functions", "^rest$")).trace.path
        rare = lambda *options: [call["function"] for call in self.slow(trace, *options)["rare"]]
        self.assertEqual((rare(), rare("--range", "700ms..")), (["load"], ["once"]))

    def test_explain_names_the_lock_or_the_disk_first(self):
        path = self.server()
        text = subprocess.run([KARST, "explain", "--function", "^Server::serve", str(path)], check=True,
                              capture_output=True, text=True, timeout=TIMEOUT).stdout
        first = text.splitlines()[0]
        self.assertRegex(first, r"^Server::serve took [\d.]+ ms instead of .*: [\d.]+% of the excess in "
                                r"(Cache::lookup|Journal::append)")
        shares = [float(share) for share in re.findall(r"(?m)^ +(-?[\d.]+)% ", text)]
        self.assertAlmostEqual(sum(shares), 100, 3)

    def test_on_a_terminal_no_line_is_wider(self):
        path = self.server()
        for width in (80, 120, 200):
            command = [KARST, "slow", str(path), "--follow"]
            parent, child = pty.openpty()
            process = subprocess.Popen(command, stdout=child, env={**os.environ, "COLUMNS": str(width), "NO_COLOR": "1"})
            os.close(child)
            text = b""
            while True:
                try:
                    more = os.read(parent, 65536)
                except OSError:  # the other end is closed
                    break
                if not more:
                    break
                text += more
            os.close(parent)
            self.assertEqual(process.wait(TIMEOUT), 0)
            lines = text.decode().splitlines()
            self.assertTrue(any("Server::serve took" in line for line in lines), lines)
            self.assertLessEqual(max(map(len, lines[1:])), width)


if __name__ == "__main__":
    main()
