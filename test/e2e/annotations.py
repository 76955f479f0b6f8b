"""Programs annotated for Intel's ITT and NVIDIA's NVTX: what they say is in the trace, with nothing rebuilt."""
import json
import os
import subprocess
import unittest
from collections import Counter
from pathlib import Path

from support import BIN, KARST, TIMEOUT, TracedTest, build, main

RUNTIME = BIN.parent / "lib" / "libkarst.so"
LISTENERS = ("INTEL_LIBITTNOTIFY64", "NVTX_INJECTION64_PATH")
PLAIN = ("-O1", "-Wall", "-Wextra", "-pthread", "-ldl")
NVTX_HEADERS = (os.environ.get("KARST_NVTX_INCLUDE", ""), "/usr/include", "/usr/local/cuda/include")


class Annotations(TracedTest):
    SCHED = ()

    def setUp(self):
        super().setUp()
        for name in LISTENERS:
            os.environ.pop(name, None)

    def notes_of(self, path, *options):
        done = subprocess.run([KARST, "notes", "--json", str(path), *options], check=True, capture_output=True, text=True,
                              timeout=TIMEOUT)
        return json.loads(done.stdout)["notes"]

    def said(self, run):
        return [(n["kind"], n["name"], n["value"], n["in"]) for n in self.notes_of(run.trace.path)]

    def assert_all_fits(self, trace):
        self.assertEqual(trace.problems, [])

    def itt(self, *wrong, compiler="gcc", **more):
        return self.run_traced(build("itt", "annotations/itt.c", *PLAIN, compiler=compiler, output=f"itt_{compiler}"),
                               *wrong, options=("--min-instructions", "0"), **more)

    def nvtx(self, *wrong, compiler="gcc", **more):
        return self.run_traced(build("nvtx", "annotations/nvtx.c", *PLAIN, compiler=compiler, output=f"nvtx_{compiler}"),
                               *wrong, options=("--min-instructions", "0"), **more)

    def test_itt_says_all_that_karst_has_a_note_for(self):
        for compiler in ("gcc", "karst-gcc", "clang-14"):
            with self.subTest(compiler=compiler):
                run = self.itt(compiler=compiler)
                self.assertEqual(run.out, "4996\n")
                self.assert_all_fits(run.trace)
                said = self.said(run)
                ranges = [value for kind, _, value, _ in said if kind.startswith("request")]
                first, second = ranges[:2]
                self.assertEqual(ranges, [first, second, first, second])
                self.assertTrue(all(int(r) >= 2**40 for r in ranges))
                within = "other::passing name"
                self.assertEqual(said, [
                    ("frame", "com.example", "", "work"),
                    ("integer", "size", "1", within), ("integer", "size", "2", within), ("integer", "size", "3", within),
                    ("number", "size", "0.25", within), ("integer", "size", "-5", within), ("text", "", "size: large", within),
                    ("frame", "com.example", "", "work"), ("frame", "com.example", "", "work"),
                    ("message", "", "com.example::size", "work"),
                    ("message", "", "com.example::step", "work"), ("request begins", "", first, "work"),
                    ("message", "", "com.example::step", "work"), ("request begins", "", second, "work"),
                    ("request ends", "", first, "work"), ("request ends", "", second, "work"),
                    ("integer", "com.example::count", "1", "work"), ("integer", "com.example::count", "2", "work"),
                    ("integer", "com.example::count", "-3", "work"), ("number", "com.example::level", "1.5", "work"),
                    ("message", "", "an event", "work"), ("message", "", "an event ends", "work")])
                tree = run.trace.tree("--below", "^work$")
                self.assertEqual([line.strip() for line in tree[1:] if line.strip() != "none"], [
                    "work", "step", "com.example::step", "com.example::made before", within, "step", "own::step",
                    "com.example::", "wait for spin lock of the test", "wait for a lock"])
                self.assertEqual([t["name"] for t in run.trace.threads], ["its own name"])

    def test_itt_of_other_versions_is_left_alone(self):
        for wrong in ("magic", "version", "build", "none"):
            with self.subTest(wrong=wrong):
                run = self.itt(wrong)
                self.assertEqual(run.out, "nothing was filled in\n")
                self.assertIn("ittnotify is of a version that Karst does not know", run.err)
                self.assertEqual(self.said(run), [])
        run = self.itt("groups")
        self.assertEqual(run.out, "4996\n1\n")  # what is of other groups, or unknown, is what the program has for it
        self.assertNotIn("its own name", [t["name"] for t in run.trace.threads])
        self.assertFalse([n for n in self.said(run) if n[1].startswith("com.example::")])
        run = self.itt("", "early")
        self.assertEqual(run.out, "nothing was filled in\n")

    def test_itt_may_say_more_than_there_is_room_for(self):
        run = self.itt("many")
        self.assertEqual(run.out, "0\n")
        self.assertIn("there are too many names", run.err)
        self.assertEqual(run.trace.counts, {"main": 1, "(further ITT tasks)": 1})
        self.assert_all_fits(run.trace)
        run = self.itt("deep")
        self.assertEqual(run.trace.counts, {"main": 1, "deep::level": 64, "step": 1})
        self.assert_all_fits(run.trace)

    def test_nvtx_says_all_that_karst_has_a_note_for(self):
        for compiler in ("gcc", "karst-gcc", "clang-14"):
            with self.subTest(compiler=compiler):
                run = self.nvtx(compiler=compiler)
                self.assertEqual(run.out, "1\n-35\n")
                self.assert_all_fits(run.trace)
                self.assertEqual(self.said(run), [
                    ("message", "", "a mark", "work"), ("message", "", "ä😀", "work"),
                    ("number", "payload", "1.5", "with attributes"), ("color", "", "#ff0000", "with attributes"),
                    ("text", "", "category: disk", "with attributes"),
                    ("integer", "payload", "-7", "solver::registered"),
                    ("color", "", "#ff0000", "solver::registered"),
                    ("message", "", "solver::", "work"), ("integer", "solver::", "-7", "work"),
                    ("message", "", "", "work"), ("message", "", "", "work"), ("message", "", "", "work"),
                    ("message", "", "crossing", "work"), ("request begins", "", str(2**40), "work"),
                    ("request ends", "", str(2**40), "other_thread")])
                tree = run.trace.tree("--below", "^work$", "--thread", str(run.trace.threads[0]["tid"]))
                self.assertEqual([line.strip() for line in tree[1:]], [
                    "work", "with attributes", "passing name", "wïde", "solver::registered", "within"])
                self.assertEqual([t["name"] for t in run.trace.threads if t["calls"] != 0][-1:], ["second"])

    def test_nvtx_of_other_shapes_is_left_alone(self):
        for wrong, out in (("short", "1\n1 -2\n"), ("small", "0\n0 -2\n"), ("null", "0\n0 -2\n")):
            with self.subTest(wrong=wrong):
                run = self.nvtx(wrong)
                self.assertEqual(run.out, out)
                self.assertEqual(self.said(run), [])

    def test_nvtx_by_its_own_headers(self):
        include = next((i for i in NVTX_HEADERS if i and (Path(i) / "nvtx3/nvToolsExt.h").exists()), None)
        if include is None:
            self.skipTest("NVTX's headers are not here; KARST_NVTX_INCLUDE may name their directory")
        for level in ("-O0", "-O2"):
            with self.subTest(level=level):
                program = build("nvtx_real", "annotations/nvtx_real.c", level, "-isystem", include, "-ldl", compiler="karst-gcc",
                                output=f"nvtx_real{level}")
                run = self.run_traced(program, options=("--min-instructions", "0"))
                self.assert_all_fits(run.trace)
                counts = run.trace.counts
                self.assertEqual((counts["outer"], counts["inner"], counts["work"]), (1, 3, 3))
                self.assertEqual([(n[0], n[2]) for n in self.said(run)], [("message", "a mark")])

    def test_other_tools_keep_their_place(self):
        env = {**os.environ, **{name: "/nowhere/tool.so" for name in LISTENERS}}
        run = self.itt(env=env)
        self.assertEqual(run.out, "no library\nnothing was filled in\n")
        run = self.nvtx(env=env)
        self.assertEqual(run.out, "-1\n0 -2\n")

    def test_children_that_are_not_followed_have_no_listener(self):
        run = self.run_traced(build("itt", "annotations/itt.c", *PLAIN, compiler="gcc", output="itt_gcc"), env={
            **os.environ, "KARST_OPTIONS": "follow=0"})
        self.assertEqual(run.out, "no library\nnothing was filled in\n")

    def test_a_setuid_program_says_nothing(self):
        """Whoever starts it may name libkarst to ittnotify, which does not ask for the program's rights."""
        if os.geteuid() != 0:
            self.skipTest("needs root")
        if os.statvfs(self.directory).f_flag & os.ST_NOSUID:
            self.skipTest("the file system is mounted with nosuid")
        nobody = 65534
        program = Path(build("itt", "annotations/itt.c", *PLAIN, compiler="gcc", output="itt_gcc"))
        copy = self.directory / "setuid_itt"
        copy.write_bytes(program.read_bytes())
        os.chown(copy, nobody, nobody)
        copy.chmod(0o6755)
        names = {name: str(RUNTIME) for name in LISTENERS}
        left = self.directory / "left"
        options = {"KARST_OPTIONS": f"memory=1M,stats=1,colour=blue,file={left}"}
        run = subprocess.run([copy], capture_output=True, text=True, timeout=TIMEOUT, env={**names, **options})
        plain = subprocess.run([program], capture_output=True, text=True, timeout=TIMEOUT, env={**names, **options})
        self.assertIn("colour", plain.stderr)  # there it is heard
        if run.stdout.startswith("no library"):
            self.skipTest("nobody cannot reach libkarst here")
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "4996\n", ""))
        self.assertFalse(left.exists())

    def test_random_ranges_of_threads_handlers_and_children(self):
        for seed, compiler in ((1, "karst-gcc"), (2, "gcc"), (3, "karst-clang")):
            with self.subTest(seed=seed, compiler=compiler):
                program = build("random", "annotations/random.c", *PLAIN, output=f"random_{compiler}",
                                compiler=str(BIN / compiler) if compiler == "karst-clang" else compiler)
                run = self.run_traced(program, str(seed), "3000", options=("--min-instructions", "0", "--budget", "off"))
                self.assert_all_fits(run.trace)
                logged = {}
                for line in run.out.splitlines():
                    pid, _, rest = line.partition(" ")
                    name, _, count = rest.partition(":")
                    if int(count) != 0:
                        logged[(int(pid), name)] = int(count)
                self.assertEqual(len({pid for pid, _ in logged}), 2)
                for pid in {pid for pid, _ in logged}:
                    expected = {name: count for (of, name), count in logged.items() if of == pid}
                    counts = run.trace.counts_of("--process", str(pid))
                    marks = Counter(n["value"] for n in self.notes_of(run.trace.path, "--kind", "message") if n["pid"] == pid)
                    self.assertEqual({n: c for n, c in counts.items() if n.startswith("level") or n == "handler"},
                                     {n: c for n, c in expected.items() if n != "a mark"})
                    self.assertEqual(marks["a mark"], expected["a mark"])
                    self.assertEqual(marks["handled"], expected.get("handler", 0))
                self.assert_levels_nest(run.trace)

    def assert_levels_nest(self, trace):
        """Level N lies in level N - 1, whatever wrapped it, and level 0 in no other level."""
        stack = []
        for line in trace.tree()[1:]:
            name = line.strip()
            depth = (len(line) - len(line.lstrip())) // 2
            del stack[depth:]
            if name.startswith("level "):
                level = int(name.split()[1])
                around = [n for n in stack if n.startswith("level ")]
                self.assertEqual(around, [f"level {i}" for i in range(level)], line)
            stack.append(name)

    def test_one_tbb(self):
        if not Path("/usr/include/oneapi/tbb/flow_graph.h").exists():
            self.skipTest("libtbb-dev is not installed")
        program = build("tbb", "annotations/tbb.cc", "-O2", "-DTBB_USE_PROFILING_TOOLS=1", "-ltbb", "-pthread", compiler="g++")
        run = self.run_traced(program)
        self.assertEqual(run.out, "40 bodies, 2870, 1225\n")
        self.assert_all_fits(run.trace)
        counts = Counter(run.trace.counts)
        self.assertEqual((counts["tbb.flow::body"], counts["wait for the lock"]), (40, 50))
        self.assertIn("tbb::tbb_parallel_for", counts)
        alone = subprocess.run([program], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(alone.stdout, run.out)

    def test_openmp_of_llvm(self):
        if not Path("/usr/lib/llvm-14/lib/libomp.so").exists():
            self.skipTest("libomp-14-dev is not installed")
        program = build("openmp", "annotations/openmp.c", "-O2", "-fopenmp", compiler="clang-14")
        run = self.run_traced(program)
        alone = subprocess.run([program], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual((run.out, alone.stdout), ("1499985\n", "1499985\n"))
        self.assert_all_fits(run.trace)
        waits = Counter()
        for name, calls in run.trace.counts.items():
            if name.startswith("wait for OMP "):
                waits[name.split(" ;")[0].removeprefix("wait for OMP ")] += calls
        self.assertEqual(waits["Explicit Barrier"], 2 * 5)
        self.assertIn("Join Barrier", waits)
        self.assertIn("Critical", waits)
        frames = {n["name"].split("@")[0] for n in self.notes_of(run.trace.path, "--kind", "frame")}
        self.assertIn("main$omp$parallel:2", frames)
        self.assertTrue(all(t["name"].startswith("OMP ") for t in run.trace.threads), run.trace.threads)


if __name__ == "__main__":
    main()
