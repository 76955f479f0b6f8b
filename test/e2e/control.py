"""Control from outside: ps, on, off, status, top, snapshot, with programs that run, hang, stop and die."""
import json
import os
import pathlib
import pwd
import random
import re
import shutil
import signal
import subprocess
import time

from support import KARST, TIMEOUT, TracedTest, Trace, build, main


class ControlTest(TracedTest):
    pid = None

    def start(self, *arguments, options=(), name=None):
        """A traced worker that runs until its standard input is closed; self.pid is its own."""
        program = build("control-worker", "control/worker.cc", "-O2", "-pthread", "-fno-optimize-sibling-calls")
        if name is not None:
            program = shutil.copy(program, self.directory / name)
        self.trace_path = self.directory / "run.karst"
        self.karst_run = subprocess.Popen(
            [KARST, "run", "--output", str(self.trace_path), *options, "--", program, *arguments], cwd=self.directory,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.kill_all)
        self.assertEqual(self.karst_run.stdout.readline(), "ready\n")
        run = self.karst_run.pid
        children = [c for task in pathlib.Path(f"/proc/{run}/task").glob("*/children") for c in task.read_text().split()]
        children = [c for c in children if not self.is_karst(c)]  # it has short-lived ones that read the modules
        self.assertEqual(len(children), 1)
        self.pid = int(children[0])
        return self.pid

    def is_karst(self, pid):
        try:
            return os.readlink(f"/proc/{pid}/exe") == os.path.realpath(KARST)
        except FileNotFoundError:
            return True  # it has gone

    def kill_all(self):
        if self.karst_run.poll() is None:
            for pid in filter(None, (self.pid, self.karst_run.pid)):
                try:
                    os.kill(pid, signal.SIGCONT)
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        self.karst_run.communicate()

    def finish(self):
        """Ends the program in order; its trace."""
        _, err = self.karst_run.communicate(timeout=TIMEOUT)
        self.assertEqual(self.karst_run.returncode, 0, err)
        trace = Trace(self.trace_path)
        self.assertEqual(trace.problems, [])
        return trace

    def karst(self, *arguments, status=0):
        done = subprocess.run([KARST, *map(str, arguments)], cwd=self.directory, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=TIMEOUT)
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stdout}{done.stderr}")
        return done

    def status(self):
        return json.loads(self.karst("status", self.pid, "--json").stdout)


class Switching(ControlTest):
    def test_off_and_on_while_eight_threads_run(self):
        self.start("busy")
        self.assertEqual(self.status()["state"], "on")
        self.karst("off", self.pid)
        off = self.status()
        self.assertEqual((off["state"], off["traced"], off["sites"]), ("off", 0, 0))
        time.sleep(0.3)
        self.karst("on", self.pid)
        self.assertEqual(self.status()["state"], "on")
        time.sleep(0.2)
        trace = self.finish()
        self.assertEqual([s["on"] for s in trace.processes[0]["switches"]], [False, True])
        self.assertGreater(trace.info["cut_calls"], 0)
        self.assert_true_tree(trace)
        self.assertIn("nothing was traced for", "\n".join(trace.timed_tree()))
        self.assertRegex(trace._ask("info", str(trace.path)), r"not traced:\s+nothing from .* \(asked for\)")

    def assert_true_tree(self, trace):
        """Each call is inside of what can call it."""
        callers = {"outer": None, "inner": ("outer", "inner"), "leaf_red": ("inner",), "leaf_blue": ("inner",)}
        above = {"leaf_red": ("inner", "outer"), "leaf_blue": ("inner", "outer"), "inner": ("inner", "outer")}
        stack = []
        for line in trace.tree():
            if line.startswith("#"):
                stack = []
                continue
            depth = (len(line) - len(line.lstrip())) // 2
            name = line.strip()
            del stack[depth:]
            if name in callers and stack and callers[name] is not None:
                self.assertIn(stack[-1], above[name], f"{name} below {stack}")
            if name in ("leaf_red", "leaf_blue") and stack:
                self.assertNotIn(stack[-1], ("leaf_red", "leaf_blue"))
            stack.append(name)

    def test_functions_by_regex_go_and_come_alone(self):
        self.start("busy")
        said = self.karst("off", self.pid, "--functions", "^leaf_", "--not-functions", "blue").stderr
        self.assertRegex(said, r"tracing is on, \d+ of \d+ functions")
        self.assertEqual(self.status()["state"], "partly")
        time.sleep(0.2)
        self.karst("snapshot", self.pid, "--last", "100ms", "-o", "red_off.karst")
        self.karst("on", self.pid, "--functions", "leaf_red")
        self.assertEqual(self.status()["state"], "on")
        time.sleep(0.2)
        counts = Trace(self.directory / "red_off.karst").counts
        self.assertNotIn("leaf_red", counts)
        self.assertGreater(counts["leaf_blue"], 0)
        trace = self.finish()
        self.assert_true_tree(trace)
        lines = trace._ask("info", str(trace.path))
        self.assertRegex(lines, r"1 function at times, 0 of them by the budget; 0 at the end")
        self.assertRegex(lines, r"leaf_red(\(\))? for .* once from .* \(asked for\)")

    def test_only_these_of_a_process_that_was_off(self):
        self.start("busy", options=["--off"])
        self.assertEqual(self.status()["state"], "off")
        self.karst("on", self.pid, "--functions", "^inner")
        time.sleep(0.2)
        counts = self.finish().counts
        self.assertEqual(set(counts), {"inner"})

    def test_for_a_time(self):
        self.start("busy", options=["--off"])
        self.assertIn("for 200.0 ms; then it goes off by itself", self.karst("on", self.pid, "--for", "200ms").stderr)
        deadline = time.monotonic() + TIMEOUT
        while self.status()["enabled"] and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertFalse(self.status()["enabled"])
        self.karst("on", self.pid)
        said = self.karst("off", self.pid, "--for", "100ms").stderr
        self.assertIn("tracing is on", said.splitlines()[-1])
        self.assertTrue(self.status()["enabled"])
        reasons = [s["reason"] for s in self.finish().processes[0]["switches"]]
        self.assertIn("its time was up", reasons)

    def test_some_functions_for_a_time_leave_all_as_it_was(self):
        for options, state in (([], "on"), (["--off"], "off")):
            self.start("busy", options=options)
            before = self.status()
            self.karst("on", self.pid, "--function", "^inner", "--for", "100ms")
            after = self.status()
            self.assertEqual([after[k] for k in ("state", "chosen", "traced")],
                             [before[k] for k in ("state", "chosen", "traced")])
            self.assertEqual(after["state"], state)
            self.finish()

    def test_on_brings_back_what_off_took_out(self):
        self.start("busy", options=["--not-function", "^outer"])
        chosen = self.status()["chosen"]
        self.karst("off", self.pid, "--function", "^inner")
        self.assertLess(self.status()["chosen"], chosen)
        self.karst("on", self.pid)
        self.assertEqual(self.status()["chosen"], chosen)
        self.finish()

    def test_libraries_come_and_go_meanwhile(self):
        library = build("control-library", "control/library.cc", "-O1", "-fPIC", "-shared", output="libcontrol.so")
        self.start("busy", library)
        for _ in range(10):
            self.karst("off", self.pid, "--functions", "in_library_leaf")
            self.karst("on", self.pid, "--functions", "in_library_leaf")
        self.karst("off", self.pid)
        self.karst("on", self.pid)
        trace = self.finish()
        self.assertGreater(trace.counts["in_library"], 0)
        for line in trace.tree():
            if line.strip() == "in_library":
                self.assertFalse(line.startswith("    "), line)  # nothing but main can be around it


class Budgets(ControlTest):
    def wait_for(self, is_so, what):
        deadline = time.monotonic() + TIMEOUT
        while not is_so(self.status()):
            self.assertLess(time.monotonic(), deadline, f"{what}: {self.status()}")
            time.sleep(0.02)

    def test_given_to_a_running_process_and_taken_back(self):
        self.start("hot")
        self.assertNotIn("budget", self.status())
        self.karst("on", self.pid, "--budget", "1%")
        self.assertEqual(self.status()["budget"], 0.01)
        self.wait_for(lambda s: s["culled"] > 0, "nothing was left out")
        self.karst("on", self.pid, "--budget", "off")
        now = self.status()
        self.assertEqual((now.get("budget"), now["culled"], now["state"]), (None, 0, "on"))
        trace = self.finish()
        reasons = {(s["reason"], s["on"]) for s in trace.processes[0]["switches"]}
        self.assertIn(("by the budget", False), reasons)
        self.assertIn(("by the budget", True), reasons)

    def test_functions_to_keep_come_back_at_once(self):
        self.start("hot")
        self.karst("on", self.pid, "--budget", "0.5%")
        self.wait_for(lambda s: s["culled"] > 0, "nothing was left out")
        self.karst("on", self.pid, "--keep", ".")
        self.assertEqual(self.status()["culled"], 0)
        time.sleep(0.1)
        self.assertEqual(self.status()["culled"], 0)
        self.finish()

    def test_refused(self):
        self.start("paced", options=["--min-duration", "1us"])
        self.assertIn("cannot keep to a budget: it runs with --min-duration",
                      self.karst("on", self.pid, "--budget", "5%", status=1).stderr)
        for bad in ("5", "0%", "most"):
            self.assertIn("a share of time from 0.1% to 100% is needed",
                          self.karst("on", self.pid, "--budget", bad, status=2).stderr)
        self.assertIn("no function of process", self.karst("on", self.pid, "--keep", "^nothing$", status=1).stderr)
        self.assertIn("has a name that matches 'leaf_rde'; did you mean 'leaf_red'?",
                      self.karst("off", self.pid, "--functions", "leaf_rde", status=1).stderr)


class Looking(ControlTest):
    def test_calls_per_second_are_what_the_program_makes(self):
        self.start("paced")
        time.sleep(2.5)
        rate = self.status()["calls_per_second"]
        # A thread that sleeps a millisecond between calls makes at most 1000; a loaded machine wakes it late.
        self.assertLessEqual(rate, 1100)
        self.assertGreater(rate, 300)
        top = self.karst("top", self.pid, "--once", "--interval", "2s").stdout
        self.assertIn("paced", top)
        self.assertIn("of what was recorded then", top)
        ps = json.loads(self.karst("ps", "--json").stdout)["processes"]
        self.assertIn(self.pid, [p["pid"] for p in ps])
        self.assertNotIn(self.karst_run.pid, [p["pid"] for p in ps], "karst run holds an arena that is not its own")
        self.finish()

    def backtraces(self):
        done = subprocess.run(["gdb", "-p", str(self.pid), "-batch", "-nx", "-ex", "thread apply all bt"],
                              capture_output=True, text=True, timeout=TIMEOUT)
        stacks = {}
        for part in re.split(r"^Thread \d+ ", done.stdout, flags=re.M)[1:]:
            tid = int(re.search(r"LWP (\d+)", part).group(1))
            stacks[tid] = re.findall(r"^#\d+ .*?(?:in )?(hold_first|hold_second|take_first|take_second|main) \(", part,
                                     flags=re.M)[::-1]
        return stacks

    def open_calls(self, path):
        trace = Trace(path)
        names = {"hold_first", "hold_second", "take_first", "take_second", "main"}
        calls = {t["tid"]: [re.sub(r"\(.*", "", line.strip()) for line in trace.tree("--thread", str(t["tid"]))]
                 for t in trace.threads}
        return {tid: [name for name in of if name in names] for tid, of in calls.items()}

    def check_against_gdb(self, *options):
        if shutil.which("gdb") is None:
            self.skipTest("gdb is not installed")
        self.karst("snapshot", self.pid, "-o", "hung.karst", *options)
        ours = self.open_calls(self.directory / "hung.karst")
        theirs = {tid: stack for tid, stack in self.backtraces().items() if stack}
        self.assertTrue(any("take_first" in s for s in theirs.values()), theirs)
        for tid, stack in theirs.items():
            self.assertEqual(ours.get(tid, []), stack)

    def test_snapshot_of_a_deadlock_shows_the_calls_that_it_hangs_in(self):
        self.start("deadlock")
        time.sleep(1)
        self.check_against_gdb()

    def test_snapshot_of_the_last_moments_of_a_deadlock_in_which_nothing_happened(self):
        self.start("deadlock")
        time.sleep(1)
        self.check_against_gdb("--last", "200ms")
        marks = Trace(self.directory / "hung.karst").timed_tree("--marks")
        calls = [line for line in marks if "take_first" in line]
        self.assertEqual(len(calls), 1)
        self.assertIn("[begun before, open]", calls[0])
        self.assertRegex(calls[0], r"^ *(199\.\d|200\.0) ms")

    def test_snapshot_of_a_stopped_process(self):
        self.start("deadlock")
        time.sleep(1)
        os.kill(self.pid, signal.SIGSTOP)
        self.karst("snapshot", self.pid, "-o", "stopped.karst")
        calls = sum(self.open_calls(self.directory / "stopped.karst").values(), [])
        self.assertTrue(any(c.startswith("take_second") for c in calls), calls)
        # What applies it is no thread of the process, and goes on.
        self.karst("off", self.pid)
        self.assertEqual(self.status()["state"], "off")
        os.kill(self.pid, signal.SIGCONT)

    def test_snapshots_have_names_of_their_own(self):
        self.start("busy")
        for number in (1, 2):
            self.karst("snapshot", self.pid, "--last", "50ms", "--no-source")
            name = f"control-worker-{self.pid}-{number}.karst"
            trace = Trace(self.directory / name)
            self.assertEqual(trace.problems, [])
            self.assertLessEqual(trace.info["span_ns"], 50_000_000)
            self.assertIn("outer", {re.sub(r"\(.*", "", n) for n in trace.counts})
        self.finish()


class Refusals(ControlTest):
    def refused(self, *arguments):
        done = self.karst(*arguments, status=1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr

    def test_what_cannot_be_looked_into(self):
        self.assertIn("there is no process 999999", self.refused("status", "999999"))
        plain = subprocess.Popen(["sleep", "100"])
        self.addCleanup(plain.wait)
        self.addCleanup(plain.kill)
        self.assertIn("is not traced by Karst", self.refused("status", plain.pid))
        zombie = subprocess.Popen(["true"])
        self.addCleanup(zombie.wait)
        while ") Z " not in open(f"/proc/{zombie.pid}/stat").read():
            time.sleep(0.01)
        self.assertIn("zombie", self.refused("status", zombie.pid))
        self.assertIn("no traced process is called 'nobody-has-this-name'", self.refused("off", "nobody-has-this-name"))

    def test_by_name(self):
        name = f"named-{os.getpid()}"  # other tests run at the same time
        self.start("busy", name=name)
        self.assertEqual(json.loads(self.karst("status", name, "--json").stdout)["pid"], self.pid)

    def test_a_process_without_the_thread_for_it(self):
        os.environ["KARST_OPTIONS"] = "control=0"
        self.addCleanup(os.environ.pop, "KARST_OPTIONS")
        self.start("busy")
        self.assertIn("cannot be switched while it runs", self.refused("off", self.pid))
        self.assertEqual(self.status()["state"], "on (no control)")
        self.karst("snapshot", self.pid, "--last", "50ms")

    def test_another_users_process(self):
        if os.geteuid() != 0:
            self.skipTest("to be another user takes root")
        nobody = pwd.getpwnam("nobody")
        self.start("busy")
        reachable = subprocess.run([KARST, "--version"], user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[],
                                   capture_output=True, cwd="/") if os.access(KARST, os.X_OK) else None
        if reachable is None or reachable.returncode != 0:
            self.skipTest("nobody cannot run the karst that was built here")
        for command in ("status", "off", "snapshot"):
            done = subprocess.run([KARST, command, str(self.pid)], user=nobody.pw_uid, group=nobody.pw_gid,
                                  extra_groups=[], capture_output=True, text=True, cwd="/", timeout=TIMEOUT)
            self.assertEqual(done.returncode, 1)
            self.assertIn("belongs to user root; only that user and root may look into it", done.stderr)


class Deaths(ControlTest):
    def test_karst_killed_in_the_middle_of_any_command(self):
        self.start("busy")
        chance = random.Random(5)
        commands = [("off",), ("on",), ("off", "--functions", "leaf"), ("on", "--functions", "."), ("status",),
                    ("snapshot", "--last", "20ms"), ("top",), ("on", "--budget", "1%"), ("on", "--keep", "inner")]
        for turn in range(28):
            command, *options = commands[turn % len(commands)]
            child = subprocess.Popen([KARST, command, str(self.pid), *options], cwd=self.directory,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            time.sleep(chance.random() * 0.06)
            child.kill()
            child.wait()
            self.assertIsNone(self.karst_run.poll(), "the program died")
        self.karst("on", self.pid, "--budget", "off")
        self.karst("off", self.pid)
        self.karst("on", self.pid, "--functions", ".")
        self.assertEqual(self.status()["state"], "on")
        time.sleep(0.1)
        self.finish()

    def test_the_program_killed_in_the_middle_of_a_command(self):
        for command in (("off",), ("top", "--interval", "50ms"), ("on", "--functions", "."), ("snapshot",)):
            self.start("busy")
            child = subprocess.Popen([KARST, command[0], str(self.pid), *command[1:]], cwd=self.directory, text=True,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
            time.sleep(0.02)
            os.kill(self.pid, signal.SIGKILL)
            _, err = child.communicate(timeout=TIMEOUT)
            # It was done before, or it says what happened.
            self.assertIn(child.returncode, (0, 1), (command, err))
            if child.returncode == 1:
                self.assertRegex(err, r"ended|no process", command)
            self.karst_run.communicate(timeout=TIMEOUT)

    def test_two_karsts_at_once(self):
        self.start("busy")
        children = [subprocess.Popen([KARST, command, str(self.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                     text=True) for command in ("off", "on") * 3]
        for child in children:
            _, err = child.communicate(timeout=TIMEOUT)
            self.assertEqual(child.returncode, 0, err)
        self.karst("on", self.pid)
        self.assertEqual(self.status()["state"], "on")
        self.finish()


if __name__ == "__main__":
    main()
