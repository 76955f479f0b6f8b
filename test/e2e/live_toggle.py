"""Sleds that are switched off and on while many threads execute them. KARST_LIVE_SECONDS (1): how long each time."""
import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from live_control import DONE, RUNNING, Control, has_ended  # noqa: E402
from modules_support import host, library  # noqa: E402
from support import BIN, KARST, TIMEOUT, TracedTest, Trace, build, main  # noqa: E402
from ways_out import sources  # noqa: E402

RUNTIME = str(BIN.parent / "lib" / "libkarst.so")
SECONDS = float(os.environ.get("KARST_LIVE_SECONDS", "1"))
BUILDS = {"gcc": ("karst-g++", ["-O2"]), "small": ("karst-g++", ["-Os"]), "cet": ("karst-g++", ["-O2", "-fcf-protection"]),
          "clang": (str(BIN / "karst-clang++"), ["-O2"]),
          "finstrument": ("karst-g++", ["-O2", "--karst-method=finstrument"]),
          "both": ("karst-g++", ["-O2", "-finstrument-functions"]),
          "static": ("karst-g++", ["-O2", "-static"])}


class LiveTest(TracedTest):
    def start(self, *command, options="memory=4M", launcher=()):
        """The program with the runtime and nobody else, its standard input a pipe."""
        env = {**os.environ, "LD_PRELOAD": RUNTIME, "KARST_OPTIONS": options}
        child = subprocess.Popen([*launcher, *map(str, command)], env=env, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.directory)
        self.addCleanup(self.end, child)
        return child

    @staticmethod
    def end(child):
        if child.poll() is None:
            child.kill()
        child.communicate()

    def finish(self, child, status=0, text="q"):
        out, err = child.communicate(text, timeout=TIMEOUT)
        self.assertEqual(child.returncode, status, out + err)
        return out

    def toggle(self, control, seconds=SECONDS, child=None):
        """Off and on as fast as it goes; how often."""
        count = 0
        end = time.monotonic() + seconds
        while time.monotonic() < end and (child is None or child.poll() is None):
            for on in (False, True):
                outcome = control.switch(on, wait=TIMEOUT if child is None else 1)
                if outcome is None:  # it has ended
                    return count
                self.assertEqual(outcome, DONE)
                count += 1
        return count


class Toggle(LiveTest):
    def under_threads(self, name):
        compiler, flags = BUILDS[name]
        program = build(f"toggled-{name}", "live/toggled.cc", "-pthread", *flags, compiler=compiler)
        child = self.start(program, 8)
        self.assertEqual(child.stdout.readline(), "ready\n")
        control = Control(child.pid)
        before = (control.patched_functions, control.patched_sites)
        if name != "finstrument":  # its calls are not sleds
            self.assertGreater(before[1], 20)
        self.assertEqual(control.unpatchable_sites, 0)
        self.assertGreater(self.toggle(control), 10)
        self.assertEqual((control.patched_functions, control.patched_sites), before)
        control.switch(False)
        self.assertEqual((control.patched_functions, control.patched_sites), (0, 0))
        self.assert_recording(control, False)
        self.assertEqual(control.switch(True), DONE)
        self.assert_recording(control, True)
        self.assertEqual(control.switch(False), DONE)
        log = control.switches
        self.assertEqual([entry[2:] for entry in log[-2:]], [(0, 0, 1, 0), (0, 0, 0, 0)])
        for earlier, later in zip(log, log[1:]):
            self.assertLess(earlier[0], earlier[1])
            self.assertLessEqual(earlier[1], later[0])
        self.assertEqual(self.finish(child), "right\n")

    def assert_recording(self, control, on):
        """All threads call without end."""
        if on:
            before = control.blocks_taken
            end = time.monotonic() + TIMEOUT
            while control.blocks_taken == before:
                self.assertLess(time.monotonic(), end, "nothing is recorded")
                time.sleep(0.01)
            return
        # A hook that the scheduler has stopped may still take a block.
        quiet = 0
        for _ in range(int(TIMEOUT / 0.1)):
            before = control.blocks_taken
            time.sleep(0.1)
            quiet = quiet + 1 if control.blocks_taken == before else 0
            if quiet == 3:
                return
        self.fail("it is still recorded")

    def test_off_from_the_start(self):
        for name in ("gcc", "clang", "finstrument", "static"):
            with self.subTest(name):
                compiler, flags = BUILDS[name]
                program = build(f"toggled-{name}", "live/toggled.cc", "-pthread", *flags, compiler=compiler)
                child = self.start(program, 4, options="off=1")
                self.assertEqual(child.stdout.readline(), "ready\n")
                control = Control(child.pid)
                self.assertEqual((control.enabled, control.patched_sites), (0, 0))
                self.assert_recording(control, False)
                self.assertEqual(control.switch(True), DONE)
                self.assert_recording(control, True)
                self.assertEqual(self.finish(child), "right\n")

    def test_gcc(self):
        self.under_threads("gcc")

    def test_gcc_for_size(self):
        self.under_threads("small")

    def test_gcc_with_endbr64(self):
        self.under_threads("cet")

    def test_clang(self):
        self.under_threads("clang")

    def test_finstrument(self):
        self.under_threads("finstrument")

    def test_sleds_and_finstrument(self):
        self.under_threads("both")

    def test_static(self):
        self.under_threads("static")

    def test_while_libraries_come_and_go_and_children_are_forked(self):
        program = build("comings", "live/comings.cc", "-O2", "-pthread")
        child = self.start(program, library("first"), library("other"))
        self.assertEqual(child.stdout.readline(), "ready\n")
        self.assertGreater(self.toggle(Control(child.pid), 2 * SECONDS), 10)
        self.assertEqual(self.finish(child), "right\n")

    def test_single_functions(self):
        program = build("toggled-gcc", "live/toggled.cc", "-pthread", "-O2")
        child = self.start(program, 4)
        self.assertEqual(child.stdout.readline(), "ready\n")
        control = Control(child.pid)
        sites = control.patched_sites
        functions = range(1, control.function_count + 1)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for which in functions:
                control.set_function(which, False)
                self.assertEqual(control.request(), DONE)
                self.assertLess(control.patched_sites, sites + (control.flags(which) & 2))
                control.set_function(which, True)
                self.assertEqual(control.request(), DONE)
        self.assertEqual(control.patched_sites, sites)
        for begin, ended, first, count, on, reason in control.switches:
            self.assertTrue(0 < begin < ended and first in functions and count == 1 and reason == 0, on)
        self.assertEqual(self.finish(child), "right\n")

    def test_ways_out(self):
        """Each program of the corpus, while somebody toggles as fast as it goes."""
        toggles = 0
        for source in sources():
            cxx = source.suffix == ".cc"
            extra = ["-fnon-call-exceptions"] if source.name == "faults.cc" else []
            program = build(f"toggled.{source.stem}", f"ways_out/{source.name}", "-O2", "-pthread", *extra,
                            *(["-std=c++20"] if cxx else []), compiler="karst-g++" if cxx else "karst-gcc")
            plain = subprocess.run([program], cwd=self.directory, capture_output=True, timeout=TIMEOUT)
            with self.subTest(source=source.name):
                for _ in range(max(2, int(SECONDS * 3))):
                    child = self.start(program)
                    try:
                        toggles += self.toggle(Control(child.pid, timeout=5), 5, child)
                    except PermissionError:  # its memory has gone already, which root sees as a process without descriptors
                        pass
                    except (AssertionError, OSError):  # it has ended, or its last thread is about to
                        if child.poll() is None and not has_ended(child.pid):
                            raise
                    out, err = child.communicate(timeout=TIMEOUT)
                    self.assertEqual((child.returncode, out), (plain.returncode, plain.stdout.decode()), err)
        self.assertGreater(toggles, 10)

    def test_what_comes_after_the_last_switch_is_whole(self):
        program = build("comings", "live/comings.cc", "-O2", "-pthread")
        path = self.directory / "trace.karst"
        child = subprocess.Popen([KARST, "run", "--memory", "16M", "--output", str(path), "--", program,
                                  library("first"), "finale"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, cwd=self.directory)
        self.addCleanup(self.end, child)
        self.assertEqual(child.stdout.readline(), "ready\n")
        children = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
        self.toggle(Control(int(children[0])))
        self.finish(child)
        counts = Trace(path).counts
        finale = [calls for name, calls in counts.items() if "finale(int)" in name]
        self.assertEqual(finale, [1000], counts)


    def test_a_runtime_that_comes_late_traces_what_runs_already(self):
        """Nothing is preloaded: the runtime comes with a plugin, while two threads execute traced code."""
        run = self.run_traced("env", "-u", "LD_PRELOAD", host(), "threads", library("linked", "--karst-link"), 200,
                              library("first"), options=("--memory", "16M"))
        self.assertEqual(run.out, "400\n")
        self.assertGreater(run.trace.counts["step"], 0)
        self.assertGreater(run.trace.counts["visit"], 0)
        self.assertEqual(run.trace.counts["linked::jumps(int)"], 200)


class Faults(LiveTest):
    def test_the_program_is_killed_in_the_middle(self):
        program = build("toggled-gcc", "live/toggled.cc", "-pthread", "-O2")
        child = self.start(program, 4)
        self.assertEqual(child.stdout.readline(), "ready\n")
        control = Control(child.pid)
        self.toggle(control, 0.2)
        child.send_signal(signal.SIGKILL)
        child.wait()
        self.assertIsNone(control.switch(False, wait=0.2))

    def test_a_requester_dies_in_the_middle(self):
        program = build("toggled-gcc", "live/toggled.cc", "-pthread", "-O2")
        child = self.start(program, 4)
        self.assertEqual(child.stdout.readline(), "ready\n")
        control = Control(child.pid)
        sites = control.patched_sites
        dying = os.fork()
        if dying == 0:
            control.put("holder", os.getpid())
            control.set_function(1, False)
            os._exit(0)
        os.waitpid(dying, 0)
        self.assertEqual(control.patched_sites, sites)
        self.assertEqual(control.request(), DONE)
        self.assertLess(control.patched_sites, sites)
        self.assertEqual(control.thread, RUNNING)
        self.assertEqual(self.finish(child), "right\n")

    def test_off_at_a_time(self):
        program = build("toggled-gcc", "live/toggled.cc", "-pthread", "-O2")
        child = self.start(program, 1)
        self.assertEqual(child.stdout.readline(), "ready\n")
        control = Control(child.pid)
        control.put("off_at_ticks", 1)
        control.request()
        self.assertEqual((control.enabled, control.patched_sites, control.off_at_ticks), (0, 0, 0))
        self.assertEqual(control.switches[-1][5], 1)
        self.assertEqual(self.finish(child), "right\n")


if __name__ == "__main__":
    main()
