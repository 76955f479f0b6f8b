"""Libraries that come by dlopen, at any time, and go: every call of theirs is kept under its right name."""
import re
import subprocess
import sys
import sysconfig
import unittest
from pathlib import Path

from modules_support import (KARST_CLANGXX, KARST_GCC, RUNTIME, calls_of_plugin, host, library, need)
from support import ROOT, TIMEOUT, TracedTest, build, main


class LibraryTest(TracedTest):
    def check(self, run, *plugins, runs, n=1, opened=None):
        """Exactly these calls, and those of the host."""
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.info["open_calls"], 0)
        expected = {}
        for plugin in plugins:
            for name, calls in calls_of_plugin(plugin, runs, n, opened or runs).items():
                expected[name] = expected.get(name, 0) + calls
        counts = {name: calls for name, calls in run.trace.counts.items() if "::" in name or name == "plugin_run"}
        self.assertEqual(counts, {name: calls for name, calls in expected.items() if calls})

    def modules_of(self, run, path):
        return [m for p in run.trace.processes for m in p["modules"] if m["path"] == path]

    def unloaded(self, run):
        """When each module was unloaded, by path, as the file has it."""
        text = subprocess.run([sys.executable, ROOT / "test/docs/decode_trace.py", run.trace.path], check=True,
                              capture_output=True, text=True).stdout
        return {m[2]: int(m[1]) for m in re.finditer(r'^module \d+ .* unloaded (\d+) path "(.*?)"', text, re.MULTILINE)}


class Loading(LibraryTest):
    def test_opened_once_and_closed(self):
        run = self.run_traced(host(), "once", library("first"), 10)
        self.assertEqual(run.out, "10\n")
        self.check(run, "first", runs=1, n=10)
        self.assertEqual(run.trace.counts["visit"], 1)
        run = self.run_traced(host(), "deepbind", library("first"), 10)
        self.check(run, "first", runs=1, n=10)

    def test_clangs_library(self):
        need("clang-14")
        run = self.run_traced(host(), "once", library("clangs", compiler=KARST_CLANGXX), 10)
        self.assertEqual(run.out, "10\n")
        self.check(run, "clangs", runs=1, n=10)

    def test_library_with_instrument_functions_comes_and_goes(self):
        # No inlining: gcc records inlined calls too.
        plugin = library("instrumented", "-fno-inline", "--karst-method=finstrument")
        run = self.run_traced(host(), "loop", plugin, 20)
        self.assertEqual(run.out, "20\n")
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.counts["instrumented::leaf(int)"], 80)
        self.assertEqual(run.trace.counts["instrumented::jumps(int)"], 20)
        self.assertEqual(len(self.modules_of(run, plugin)), 1)

    def test_thousands_of_times_at_one_place_with_the_same_ids(self):
        run = self.run_traced(host(), "loop", library("first"), 2000, env={"HOST_PLACES": "1"})
        self.assertEqual(run.out, "2000\n")
        self.check(run, "first", runs=2000)
        # Another thread's mapping may take the place between two visits: the host says where the library lay.
        places = {int(line.split()[1]) for line in run.err.splitlines() if line.startswith("place ")}
        modules = self.modules_of(run, library("first"))
        self.assertEqual(len(modules), len(places))
        self.assertEqual({int(str(m["load_address"]), 0) for m in modules}, places)

    def test_another_library_at_the_same_place_has_its_own_names(self):
        run = self.run_traced(host(), "alternate", library("first"), 200, library("other"))
        self.assertEqual(run.out, "400\n")
        self.check(run, "first", "other", runs=200)

    def test_reopened_elsewhere(self):
        run = self.run_traced(host(), "elsewhere", library("first"), 5)
        self.assertEqual(run.out, "5\n")
        self.check(run, "first", runs=5)
        modules = self.modules_of(run, library("first"))
        self.assertEqual(len({m["load_address"] for m in modules}), 5)
        unloaded = self.unloaded(run)
        self.assertEqual(unloaded[host()], 0)
        self.assertGreater(unloaded[library("first")], 0)

    def test_in_namespaces_of_their_own(self):
        run = self.run_traced(host(), "namespace", library("first"), 3)
        self.assertEqual(run.out, "3\n")
        self.check(run, "first", runs=3)

    def test_runtime_that_comes_into_a_namespace_leaves_all_to_the_first(self):
        run = self.run_traced(host(), "namespace", library("linked", "--karst-link"), 3)
        self.assertEqual(run.out, "3\n")
        self.check(run, "linked", runs=3)
        self.assertEqual(len(run.trace.processes), 1)
        self.assertEqual(run.trace.counts["main"], 1)

    def test_while_other_threads_run_traced_code(self):
        run = self.run_traced(host(), "threads", library("first"), 300, library("other"), options=("--memory", "1M"))
        self.assertEqual(run.out, "600\n")
        self.assert_sound_apart_from_history(run)

    def assert_sound_apart_from_history(self, run):
        self.assertEqual(run.trace.problems, [])
        self.assertGreater(run.trace.counts["step"], 0)
        self.assertEqual(set(run.trace.counts) - {"step", "work", "visits", "main", "visit", "run"},
                         {name for name in run.trace.counts if name.startswith(("first::", "other::", "_GLOBAL_"))
                          or name == "plugin_run"})

    def test_parent_and_forked_child_open_libraries_of_their_own(self):
        run = self.run_traced(host(), "forks", library("first"), 10, library("other"))
        self.assertEqual(run.out, "20\n")
        self.assertEqual(run.trace.problems, [])
        self.assertEqual(len(run.trace.processes), 2)
        for process in run.trace.processes:
            counts = run.trace.counts_of("--process", str(process["pid"]))
            parent = process["pid"] == run.trace.processes[0]["pid"]
            self.assertEqual(counts.get("first::jumps(int)", 0), 10 if parent else 0)
            self.assertEqual(counts.get("other::jumps(int)", 0), 10)

    def test_constructor_whose_threads_run_at_once(self):
        run = self.run_traced(host(), "once", library("threaded", "-DTHREAD", "-pthread"), 10)
        self.assertEqual(run.out, "10\n")
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.counts["threaded::leaf(int)"], 20 + 200 + 2)

    def test_still_open_at_exit_with_a_thread_in_traced_code(self):
        run = self.run_traced(host(), "stays", library("first"), 10, options=("--memory", "1M"))
        self.assertEqual(run.out, "10\n")
        self.assertEqual(run.trace.problems, [])
        self.assertEqual(set(self.unloaded(run).values()), {0})

    def test_functions_are_chosen_of_libraries_that_come_later_as_well(self):
        run = self.run_traced(host(), "loop", library("first"), 5, options=("--functions", "jumps|visit"))
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.counts, {"first::jumps(int)": 5, "visit": 5})

    def test_started_off(self):
        run = self.run_traced(host(), "loop", library("first"), 5, options=("--off",))
        self.assertEqual(run.out, "5\n")
        self.assertEqual(run.trace.info["events"], 0)


class UntracedHosts(LibraryTest):
    def test_library_in_a_plain_program_by_preload_alone(self):
        run = self.run_traced(host(traced=False), "loop", library("first"), 50)
        self.assertEqual(run.out, "50\n")
        self.assert_whole(run.trace)
        self.check(run, "first", runs=50)

    def test_in_threads_of_a_plain_program(self):
        run = self.run_traced(host(traced=False), "threads", library("first"), 100, library("other"))
        self.assertEqual(run.out, "200\n")
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.counts["first::jumps(int)"], 100)
        self.assertEqual(run.trace.counts["other::jumps(int)"], 100)

    def test_only_the_plugin_links_the_runtime(self):
        """Nothing is preloaded: the runtime comes with the plugin, into a process that has threads."""
        plugin = library("linked", "--karst-link")
        run = self.run_traced("env", "-u", "LD_PRELOAD", host(traced=False), "threads", plugin, 50, library("first"))
        self.assertEqual(run.out, "100\n")
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.counts["linked::jumps(int)"], 50)
        self.assertEqual(run.trace.counts["linked::Constructed::~Constructed()"], 50)
        # The other library may have come before the runtime did.
        self.assertLessEqual(run.trace.counts.get("first::jumps(int)", 0), 50)

    def test_only_the_plugin_links_the_runtime_without_karst_run(self):
        plugin = library("linked", "--karst-link")
        done = subprocess.run([host(traced=False), "threads", plugin, "50", library("first")], capture_output=True,
                              text=True, timeout=TIMEOUT, env={"KARST_OPTIONS": "memory=1M"})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "100\n", ""))

    def test_library_in_stock_python_by_ctypes(self):
        plugin = library("first")
        run = self.run_traced("python3", "-c", f"import ctypes; print(ctypes.CDLL({plugin!r}).plugin_run(10))")
        self.assertEqual(run.out, "10\n")
        self.assert_whole(run.trace)
        # The interpreter does not close what ctypes opened, and exit runs its destructors.
        self.assertEqual(run.trace.counts["first::jumps(int)"], 10)
        self.assertEqual(run.trace.counts["first::Constructed::~Constructed()"], 1)

    def test_extension_of_stock_python(self):
        include = sysconfig.get_paths()["include"]
        if not (Path(include) / "Python.h").exists():
            self.skipTest("Python.h is not installed (python3-dev)")
        extension = build("extension", "modules/extension.c", "-O2", "-shared", "-fPIC", f"-I{include}",
                          compiler=KARST_GCC, output="extension.so")
        program = "import extension; print(extension.count(1000))"
        run = self.run_traced(sys.executable, "-c", program, env={"PYTHONPATH": str(Path(extension).parent)}, options=("--no-patch",))
        self.assertEqual(run.out, "999000\n")
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.counts_of_code, {"PyInit_extension": 1, "count": 1, "twice": 1000})


if __name__ == "__main__":
    main()
