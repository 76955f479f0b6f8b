"""Traces made to harm their reader: every command and the server of karst view live through them, in memory that stands
in proportion to the file, and print nothing that a terminal obeys.

KARST_MUTATIONS says how many (script/soak hostile); fuzz/fuzz_answers.cc does the same in one process, faster.
"""
import concurrent.futures
import json
import os
import random
import re
import resource
import shutil
import struct
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

from mutate_trace import Mutator, chunks_of, file_of
from support import KARST, main

ROOT = Path(os.environ["KARST_SOURCE_ROOT"])
SEEDS = ROOT / "fuzz" / "seeds" / "answers"
COUNT = int(os.environ.get("KARST_MUTATIONS", "300"))
FIRST = int(os.environ.get("KARST_FIRST_MUTATION", "0"))
TIMEOUT = 120
# Made by karst for pages; all else is for terminals. Perfetto's format is no text.
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def command_lines():
    lines = (ROOT / "fuzz" / "command_lines.txt").read_text().splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


class HostileTraces(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="karst-hostile-")
        self.addCleanup(temporary.cleanup)
        self.directory = Path(temporary.name)
        self.seeds = [path.read_bytes() for path in sorted(SEEDS.iterdir())]
        self.other = self.directory / "other.karst"
        self.other.write_bytes(self.seeds[0])

    def ask(self, line, trace, most=None):
        """The command's output. What it must not do is die."""
        out = trace.with_suffix(f".{threading.get_ident()}.out")
        words = [{"FILE": trace, "OTHER": self.other, "OUT": out, "NEW": f"{out}.new"}.get(word, word) for word in line]
        done = subprocess.run([KARST, *words], capture_output=True, timeout=TIMEOUT, cwd=self.directory,
                              env={**os.environ, "XDG_CACHE_HOME": str(self.directory / "cache")},
                              preexec_fn=most and (lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most))))
        said = done.stderr.decode("utf-8", "replace")
        self.assertIn(done.returncode, (0, 1, 3), (line, trace, said))
        self.assertNotIn("internal error", said, line)
        if most:
            self.assertNotRegex(said, "out of memory|enough memory|bad_alloc", line)
        out.unlink(missing_ok=True)
        shutil.rmtree(f"{out}.new", ignore_errors=True)
        return done.stdout, said

    def test_no_command_dies_of_a_changed_trace(self):
        mutator = Mutator(self.seeds)
        lines = command_lines()

        def one(number):
            trace = self.directory / f"{number}.karst"
            trace.write_bytes(mutator.make(number))
            # Each has its turn; all of them on each would take minutes for what fuzz_answers does in seconds.
            for line in random.Random(number).sample(lines, 2):
                text, said = self.ask(line, trace)
                self.assertIsNone(HARMFUL.search(text.decode() + said), (line, number))
            trace.unlink()

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for _ in pool.map(one, range(FIRST, FIRST + COUNT)):
                pass

    def test_what_once_broke_something_does_no_more(self):
        for trace in sorted((ROOT / "fuzz" / "regressions" / "answers").iterdir()):
            copy = self.directory / (trace.name + ".karst")
            copy.write_bytes(trace.read_bytes())
            for line in command_lines():
                text, said = self.ask(line, copy)
                self.assertIsNone(HARMFUL.search(text.decode() + said), (line, trace))
            self.serve(copy, 0)

    def test_the_server_lives_through_changed_traces(self):
        mutator = Mutator(self.seeds)
        for number in range(FIRST, FIRST + max(4, COUNT // 75)):
            trace = self.directory / f"{number}.karst"
            trace.write_bytes(mutator.make(1_000_000 + number))
            self.serve(trace, number)
            trace.unlink()

    def serve(self, trace, number):
        server = subprocess.Popen([KARST, "view", "--no-browser", "--keep", trace], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, cwd=self.directory,
                                  env={**os.environ, "XDG_CACHE_HOME": str(self.directory / "cache")})
        try:
            address = server.stdout.readline().decode().strip()
            if address:
                self.questions(address, number)
                self.assertIsNone(server.poll(), "the server is there")
        finally:
            server.terminate()
            _, said = server.communicate(timeout=TIMEOUT)
        self.assertGreaterEqual(server.returncode, -15, (number, said))
        self.assertIn(server.returncode, (0, 1, -15), (number, said))

    def questions(self, address, number):
        def get(path):
            try:
                with urllib.request.urlopen(address + path, timeout=TIMEOUT) as answer:
                    return answer.status, answer.read()
            except urllib.error.HTTPError as error:
                self.assertLess(error.code, 600)
                return error.code, error.read()

        while get("api/trace")[0] == 503:
            time.sleep(0.05)
        for path in ("trace", "functions", "flame", "outliers", "locks", "requests", "notes", "memory", "threads",
                     "frames?function=1", "tiles?width=300", "minimap?width=100"):
            get("api/" + path)
        rng = random.Random(number)
        for _ in range(20):
            where = f"thread={rng.randrange(4)}&index={rng.randrange(200)}"
            for path in ("call", "explain", "values", "flows", "memory", "functions", "align"):
                get(f"api/{path}?{where}")

    def test_ids_of_functions_take_no_more_memory_than_events(self):
        """An event can name a function of any id of 23 bits; so can one in each of a thousand processes."""
        chunks = [chunk for chunk in chunks_of(self.seeds[0]) if chunk[0] == b"CLCK"]
        for process in range(1000):
            far = 0x7FFE00 - process
            begin = 1000 + 20 * process
            events = [begin << 24 | far, (begin + 9) << 24 | 1 << 23 | far]
            chunks.append([b"BLKS", struct.pack("<IIIIQQ2Q", process, 1, 0, len(events), 0, begin, *events)])
        chunks.append([b"ENDT", struct.pack("<QQ", len(chunks), 2000)])
        trace = self.directory / "far.karst"
        trace.write_bytes(file_of(self.seeds[0], chunks))
        self.assertLess(trace.stat().st_size, 100_000)
        for line in command_lines():
            if "html" in line or "OUT" in line or "NEW" in line:
                continue  # the page alone is larger
            self.ask(line, trace, most=256 << 20)
        text, _ = self.ask(["report", "--json", "FILE"], trace, most=256 << 20)
        self.assertIn("functions without a record", text.decode())

    def test_all_commands_that_read_a_trace_are_tried_in_all_formats(self):
        described = json.loads(subprocess.run([KARST, "describe"], capture_output=True, check=True).stdout)
        lines = command_lines()
        # The server is above; import reads other tools' traces (fuzz/fuzz_import.cc); the others read no trace, or processes.
        not_here = {"view", "import", "places", "where"}
        for command in described["commands"]:
            names = [option["position"] for option in command["options"] if option["position"]]
            if command["name"] in not_here or not set(names) & {"FILE", "TRACE", "RAW"}:
                continue
            of_it = [line for line in lines if line[0] == command["name"]]
            self.assertTrue(of_it, command["name"])
            for option in command["options"]:
                if "--format" not in option["names"] and "--to" not in option["names"]:
                    continue
                for word in option["value"].split("|"):
                    first = word == option["value"].split("|")[0] and "--format" in option["names"]
                    said = any(word in line or (word == "json" and "--json" in line) or
                               (first and "--format" not in line) for line in of_it)
                    self.assertTrue(said or word == "viewer", (command["name"], word))


if __name__ == "__main__":
    main()
