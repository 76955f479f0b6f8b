"""karst run --system locks is a guest: no program computes anything else with it. Each program runs twice."""
import csv
import io
import os
import shutil
import subprocess

from support import KARST, TIMEOUT, TracedTest, build, main

LOCKS = ("--system", "locks")
ALL = ("--system", "locks=all")
PRELOADED = ("libjemalloc.so.2", "libtcmalloc_minimal.so.4")


def build_plain(name, source, *flags, compiler="gcc", **more):
    return build(name, f"locks/{source}", "-O1", "-pthread", *flags, compiler=compiler, **more)


class LocksGuest(TracedTest):
    def assert_same(self, *command, env=None, status=0, **more):
        """Output and status are what they are untraced, also where all locks are told. Returns a run and the lines."""
        alone = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=TIMEOUT,
                               env={**os.environ, **(env or {})}, cwd=self.directory)
        self.assertEqual(alone.returncode, status, alone.stderr)
        for options in (ALL, LOCKS):
            run = self.run_traced(*command, options=options, env=env, status=status, **more)
            self.assertEqual(run.out, alone.stdout)
            self.assertEqual(run.trace.problems, [])
        return run, alone.stdout.splitlines()

    def waits(self, run):
        done = subprocess.run([KARST, "locks", "--by", "wait", "--format", "csv", str(run.trace.path)], capture_output=True, text=True,
                              timeout=TIMEOUT)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def test_results_and_errno_of_locks_of_all_kinds(self):
        for name, flags in {"results": (), "results_now": ("-Wl,-z,now", "-fno-plt")}.items():
            _, lines = self.assert_same(build_plain(name, "results.c", "-Wno-nonnull", *flags))
            self.assertGreater(len(lines), 800)
            counted = [line.split()[-1] for line in lines if ": counted " in line]
            self.assertEqual(counted, ["6000"] * 32)

    def test_ways_out_of_waits(self):
        for compiler in ("g++", "karst-g++"):
            program = build_plain("ways_out_" + compiler, "ways_out.cc", "-std=c++20", compiler=compiler)
            run, lines = self.assert_same(program)
            self.assertEqual(lines[-1], "child: 7")
            self.assertEqual(run.trace.problems, [])
            waits = self.waits(run)
            self.assertGreater(len(waits), 40)
            self.assertEqual({wait["open"] for wait in waits}, {"0"}, "a wait is open though its thread left it")

    def test_first_wait_of_a_thread_that_dlopen_waits_for(self):
        program = build_plain("ways_out_g++", "ways_out.cc", "-std=c++20", compiler="g++")
        library = build_plain("opened", "opened.cc", "-shared", "-fPIC", compiler="g++", output="libopened.so")
        run, lines = self.assert_same(program, library)
        self.assertEqual(lines, ["opened"])

    def test_a_library_whose_constructor_comes_before_ours(self):
        library = build_plain("opened", "opened.cc", "-shared", "-fPIC", compiler="g++", output="libopened.so")
        program = build_plain("linked_opened", "old_condition.c", "-Wl,--no-as-needed", library)
        self.assert_same(program)

    def test_conditions_of_before_glibc_2_3_2(self):
        run, lines = self.assert_same(build_plain("old_condition", "old_condition.c"))
        self.assertEqual(lines, ["110 64"])
        self.assertNotIn("condition", {wait["kind"] for wait in self.waits(run)})

    def test_sanitizers_with_locks_of_their_own(self):
        for sanitizer, compiler in (("thread", "g++"), ("address", "g++"), ("thread", "clang++-14"), ("address", "clang++-14")):
            if shutil.which(compiler) is None:
                continue
            program = build_plain(f"random_{sanitizer}_{compiler}", "random.cc", "-std=c++20",
                                  f"-fsanitize={sanitizer}", compiler=compiler)
            with self.subTest(sanitizer=sanitizer, compiler=compiler):
                run = self.run_traced(program, "1", "5", options=LOCKS)
                logged = [line.split() for line in run.out.splitlines()]
                self.assertEqual(len(logged), 5)
                self.assertNotIn("WARNING", run.err)
                self.assertNotIn("ERROR", run.err)
                if compiler == "g++":  # clang's sanitizer has the functions itself, and calls ours behind it
                    waits = {(wait["tid"], wait["lock"], wait["holder_tid"]) for wait in self.waits(run)}
                    self.assertLessEqual({tuple(line[:3]) for line in logged}, waits)

    def test_allocators_that_are_preloaded(self):
        program = build_plain("results", "results.c", "-Wno-nonnull")
        found = [path for library in PRELOADED if os.path.exists(path := f"/usr/lib/x86_64-linux-gnu/{library}")]
        if not found:
            self.skipTest(f"there is none of {', '.join(PRELOADED)}")
        for path in found:
            with self.subTest(path=path):
                self.assert_same(program, env={"LD_PRELOAD": path})

    def test_what_is_started_by_exec_is_the_same(self):
        program = build_plain("results", "results.c", "-Wno-nonnull")
        run, _ = self.assert_same("/bin/sh", "-c", f"exec {program}")
        self.assertNotEqual(self.waits(run), [])


if __name__ == "__main__":
    main()
