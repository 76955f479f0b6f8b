"""karst check is silent on programs without such trouble: 20 of them, recorded with all that detectors look at."""
import json
import os
import subprocess
import unittest

import support
from support import BIN, KARST, ROOT, TracedTest, build, main

FLAGS = ("-std=c++20", "-O1", "-pthread", "-I", str(ROOT / "include"))
EXAMPLES = os.path.relpath(ROOT / "examples", ROOT / "test/e2e")
EVERYTHING = ("--system", "locks,files,net,memory,time", "--args", ".", "--returns", ".", "--budget", "off",
              "--memory", "256M")
# Name, source, arguments.
PROGRAMS = {
    "pool_free": ("check/pool.cc", 4, 40, 0, 500),
    "pool_short": ("check/pool.cc", 4, 200, 0, 100),
    "pool_alone": ("check/pool.cc", 1, 40, 500, 20),
    "batch": (EXAMPLES + "/moments/batch.cc",),
    "game": (EXAMPLES + "/moments/game.cc",),
    "shop": ("query/shop.cc", "journal"),
    "echo": ("files/echo.cc",),
    "kinds_of_files": ("files/kinds.cc",),
    "kinds_of_locks": ("locks/kinds.cc",),
    "named_locks": ("locks/named.cc",),
    "rings": ("locks/rings.cc", 1, "order"),
    "values": ("values/program.cc",),
    "coroutines": ("flows/coroutines.cc",),
    "noted": ("exports/noted.cc",),
    "requests": ("notes/requests.cc", "log"),
    "computing": ("viewer_samples.cc",),
    "values_of_calls": ("viewer_values.cc",),
    "recursion": ("viewer_workload.cc",),
    "notes": ("viewer_notes.cc",),
    "waits": ("sched/waits.cc", 20),
}


class Clean(TracedTest):
    SCHED = ()

    def setUp(self):
        super().setUp()
        if not (BIN.parent / "lib/karst-sql/libduckdb.so").exists():
            raise unittest.SkipTest("script/setup has not fetched DuckDB")

    def silent(self, names):
        looked = set()
        for name in names:
            source, *arguments = PROGRAMS[name]
            with self.subTest(name):
                run = self.run_traced(build("clean_" + name, source, *FLAGS), *arguments, options=EVERYTHING)
                done = subprocess.run([KARST, "check", "--json", str(run.trace.path)], capture_output=True, text=True,
                                      timeout=support.TIMEOUT, env={**os.environ, "XDG_CONFIG_HOME": "/nonexistent"})
                self.assertEqual(done.returncode, 0, done.stderr)
                found = json.loads(done.stdout)
                self.assertEqual(found["check_findings"], [])
                looked |= {o["detector"] for o in found["check_outcomes"] if o["outcome"] == "nothing"}
        return looked

    def test_pools(self):
        looked = self.silent(["pool_free", "pool_short", "pool_alone"])
        # They did look: who looks at nothing is silent, too.
        self.assertLessEqual({"long-tail-by-argument", "busy-waiting", "allocation-in-hot-path"}, looked)

    def test_programs_with_locks(self):
        looked = self.silent(["kinds_of_locks", "named_locks", "rings", "waits"])
        self.assertLessEqual({"lock-contention", "lock-convoy", "serial-pool", "expensive-copies"}, looked)

    def test_programs_with_files(self):
        looked = self.silent(["shop", "echo", "kinds_of_files"])
        self.assertLessEqual({"n-plus-one", "slow-writes", "busy-waiting", "long-tail-by-argument"}, looked)

    def test_programs_with_requests(self):
        self.silent(["requests", "noted", "coroutines", "notes"])

    def test_programs_that_compute(self):
        self.silent(["batch", "game", "values", "computing", "values_of_calls", "recursion"])

    def test_there_are_twenty(self):
        self.assertGreaterEqual(len(PROGRAMS), 20)


if __name__ == "__main__":
    main()
