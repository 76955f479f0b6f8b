"""Handlers: a plugin's own code at enter and leave of functions, against what the program and its trace say."""
import os
import shutil
import subprocess
import time
from pathlib import Path

from support import KARST, ROOT, TIMEOUT, TracedTest, build, main

INCLUDE = ("-I", str(ROOT / "include"))
VARIANTS = ((), ("--clock", "thread"), ("--slowest", "last:3"), ("--args", "shown|last", "--returns", "shown|nested"),
            ("--min-duration", "100ns"))


class Handlers(TracedTest):
    def setUp(self):
        super().setUp()
        self.log = self.directory / "log"
        self.plugin = build("handlers-plugin.so", "handlers/plugin.c", "-O2", "-fPIC", "-shared", *INCLUDE,
                            compiler="gcc")

    def program(self, compiler="karst-gcc"):
        return build(f"handlers-{compiler}", "handlers/program.c", "-O2", "-w", "-rdynamic", "-pthread", "-ldl",
                     compiler=compiler)

    def run_handled(self, program, *options, pattern=".*"):
        run = self.run_traced(*program, options=("--plugin", self.plugin, *options),
                              env={"HANDLERS_LOG": str(self.log), "HANDLERS_PATTERN": pattern})
        self.lines = self.log.read_text().splitlines()
        self.log.unlink()
        self.seen = {}
        for line in self.lines:
            if line.startswith("seen "):
                *name, entered, left, total, calls = line[len("seen "):].split(" ")
                self.seen[" ".join(name)] = (int(entered), int(left), int(calls))
        return run

    def test_the_program_computes_the_same(self):
        for compiler in ("karst-gcc", "gcc"):
            program = self.program(compiler)
            alone = subprocess.run([program], capture_output=True, text=True, timeout=TIMEOUT).stdout
            self.assertIn("1 cleaned after 100", alone)
            for options in VARIANTS:
                if compiler == "gcc":  # its budget of 5% leaves on what the plugin has named
                    options += ("--min-instructions", "1")
                run = self.run_handled([program], *options)
                self.assertEqual(run.out, alone, options)
                self.assertGreater(self.seen["last"][0], 8000)

    def test_each_call_once(self):
        run = self.run_handled([self.program()])
        self.assert_whole(run.trace)
        counts = run.trace.counts
        # What a handler calls has no handlers called, and is in the trace.
        self.assertEqual(counts.pop("last"), self.seen["last"][0] + self.seen["nested"][0])
        del self.seen["last"]
        self.assertEqual(self.seen.pop("cancelled"), (1, 0, 1))  # it does not return
        del counts["cancelled"]
        self.assertEqual(self.seen, {name: (calls,) * 3 for name, calls in counts.items()})
        self.assertEqual([line for line in self.lines if line.startswith("returned")],
                         [f"returned {n}" for n in (1, 5, 12, 18, 19, 19)])

    def test_patterns_choose(self):
        self.run_handled([self.program()], pattern="^(nested|shown)$")
        self.assertEqual(self.lines[0], "handled 2")
        self.assertEqual(set(self.seen), {"nested", "shown"})
        for pattern, said in (("no function", 0), ("(", -22), ("x" * 1001, -22)):
            self.run_handled([self.program()], pattern=pattern)
            self.assertEqual((self.lines[0], self.seen), (f"handled {said}", {}))

    def test_arguments(self):
        self.run_handled([self.program()], "--args", "shown", pattern="^(shown|many)$")
        self.assertEqual([line for line in self.lines if line.startswith(("value", "many"))],
                         ["many 0.250 7.000", "value shown 0: 0 0 ",
                          f"value shown 1: 0 {int.from_bytes(b'a text t', 'little')} a text that is read",
                          f"value shown 2: 0 {0xc004000000000000 - 2**64} ", "value shown 3: 0 7 ",
                          "value shown 4: 0 16 "])

    def test_libraries_that_come_later(self):
        library = build("handlers-late.so", "handlers/late.c", "-O2", "-fPIC", "-shared", compiler="karst-gcc")
        run = self.run_handled([self.program(), library], pattern="^late_function$")
        self.assertIn("late: 14\n", run.out)
        self.assertEqual((self.lines[0], self.seen), ("handled 0", {"late_function": (2, 2, 2)}))

    def karst(self, *arguments, status=0):
        done = subprocess.run([KARST, *map(str, arguments)], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def rounds_of(self, rows, function):
        """Level and calls in a table of karst ps --levels."""
        row, = [line.split() for line in rows.splitlines() if line.endswith(" " + function)]
        return int(row[1]), int(row[0])

    def test_levels_while_it_runs(self):
        program = shutil.copy(self.program(), self.directory)
        trace = self.directory / "trace.karst"
        run = subprocess.Popen([KARST, "run", "--plugin", self.plugin, "-o", trace, *self.SCHED, "--", program, "rounds"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "HANDLERS_LOG": str(self.log), "HANDLERS_PATTERN": "^(shown|nested)$"})
        self.addCleanup(run.communicate)
        self.addCleanup(run.kill)
        while "cleaned" not in run.stdout.readline():
            pass
        pid, = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        rows = self.karst("ps", "--levels", pid).stdout
        self.assertEqual(rows, self.karst("level", pid).stdout)  # its old name
        self.assertEqual((self.rounds_of(rows, "shown"), self.rounds_of(rows, "nested")), ((1, 1), (1, 6)))
        said = self.karst("on", pid, "--level", 3, "--function", "show").stderr
        self.assertRegex(said, r"^karst: process \d+ \(handlers-karst-g\S*\): level 3 for the handlers of 1 function\n$")
        self.karst("level", pid, 0, "--function", "^nested$")
        run.stdin.write("x")
        run.stdin.flush()
        while self.rounds_of(self.karst("level", pid).stdout, "shown") != (3, 2):
            time.sleep(0.01)
        for arguments, status in (((pid, "-3"), 2), ((pid, "many"), 2), ((pid, "1", "--function", "("), 1),
                                  ((pid, "1", "--function", "nothing"), 1), ((os.getpid(),), 1)):
            self.assertRegex(self.karst("level", *arguments, status=status).stderr, "^karst: ", arguments)
        self.assertEqual(self.rounds_of(self.karst("level", pid).stdout, "nested"), (0, 12))
        run.communicate(timeout=TIMEOUT)
        self.assertEqual(run.returncode, 0)
        log = self.log.read_text()
        self.assertIn("seen nested 6 6 15 12\n", log)
        self.assertIn("seen shown 2 2 1 2\n", log)
        # What a handler says stands in the call.
        tree = subprocess.run([KARST, "tree", "--raw", "--function", "^shown$", trace], check=True, capture_output=True,
                              text=True, timeout=TIMEOUT).stdout
        self.assertRegex(tree, r'shown\n.*\n?.*shown\n\s+"level 3"')

    def test_in_the_program_itself_and_its_child(self):
        for kind, flags in (("dynamic", ()), ("static", ("-static",))):
            program = build(f"handlers-own-{kind}", "handlers/own.c", "-O2", *flags, compiler="karst-gcc")
            self.assertEqual(self.run_traced(program).out, "1 1 -2 -22\nchild 21 1\n204\n", kind)
            alone = subprocess.run([program], capture_output=True, text=True, timeout=TIMEOUT)
            self.assertEqual(alone.stdout, "-38 -38 -38 -38\nchild 0 -38\n0\n", kind)

    def test_without_karst(self):
        env = {**os.environ, "LD_PRELOAD": self.plugin, "HANDLERS_LOG": str(self.log), "HANDLERS_PATTERN": ".*"}
        done = subprocess.run([self.program()], capture_output=True, text=True, env=env, timeout=TIMEOUT)
        self.assertEqual((done.returncode, self.log.read_text()), (0, "handled -38\n"))

    def test_plugins_that_cannot_be(self):
        spaced = self.directory / "a b.so"
        shutil.copy(self.plugin, spaced)
        for plugin, why in ((ROOT / "README.md", "it is no shared library"), (self.directory / "none", "No such file"),
                            (spaced, "a path without spaces and colons is needed")):
            done = self.karst("run", "--plugin", plugin, "--", "true", status=2)
            self.assertIn(why, done.stderr)


if __name__ == "__main__":
    main()
