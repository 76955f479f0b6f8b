"""karst attach PID brings libkarst into a program that was started plainly; the program computes what it would have."""
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from support import KARST, TIMEOUT, TracedTest, Trace, build, main

ROUNDS = int(os.environ.get("KARST_ATTACH_ROUNDS", "18"))


def worker():
    return build("inject-worker", "inject/worker.cc", "-O2", "-pthread")


def plain_worker():
    return build("inject-plain-worker", "inject/worker.cc", "-O2", "-pthread", compiler="g++")


def unoptimised_worker():
    """Its jumps have no padding, and stand where instructions were that threads may be at."""
    return build("inject-unoptimised-worker", "inject/worker.cc", "-O0", "-pthread", compiler="g++")


def workers():
    return worker(), plain_worker()


class InjectTest(TracedTest):
    def start(self, *command):
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True, cwd=self.directory)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), "ready\n")
        return child

    def attach(self, pid, *options, status=0):
        done = subprocess.run([KARST, "attach", str(pid), *options], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def finish(self, child):
        """The program ends by itself and has computed the same."""
        out, err = child.communicate(timeout=TIMEOUT)
        self.assertEqual(child.returncode, 0, out + err)
        self.assertRegex(out, r"^right \d+\n$")

    def check_calls_after_attaching(self, way):
        for program in workers():
            with self.subTest(program=program):
                child = self.start(program, way)
                descriptors = len(os.listdir(f"/proc/{child.pid}/fd"))
                threads = len(os.listdir(f"/proc/{child.pid}/task"))
                self.assertIn("is traced from now on",
                              self.attach(child.pid, "--min-instructions", "0", "--budget", "off"))
                time.sleep(0.1)
                path = self.directory / "moment.karst"
                subprocess.run([KARST, "snapshot", str(child.pid), "-o", str(path)], check=True, capture_output=True,
                               timeout=TIMEOUT)
                # The arena. The maintenance process is no thread.
                self.assertLessEqual(len(os.listdir(f"/proc/{child.pid}/fd")), descriptors + 1)
                self.assertLessEqual(len(os.listdir(f"/proc/{child.pid}/task")), threads)
                self.finish(child)
                calls = {f["function"]: f["calls"] for f in Trace(path).report()}
                self.assertGreater(calls["step(unsigned int)"], 1000)


class Attaching(InjectTest):
    def test_threads_that_never_make_system_calls(self):
        self.check_calls_after_attaching("compute")

    def test_threads_that_sleep(self):
        self.check_calls_after_attaching("sleep")

    def test_threads_that_poll(self):
        self.check_calls_after_attaching("poll")

    def test_threads_that_wait_for_events(self):
        self.check_calls_after_attaching("epoll")

    def test_threads_in_the_allocator(self):
        self.check_calls_after_attaching("malloc")

    def test_a_thread_that_waits_for_signals(self):
        self.check_calls_after_attaching("pause")

    def asleep(self, *how):
        return self.start(build("inject-asleep", "inject/asleep.c", "-O1", compiler="gcc"), *how)

    def test_the_only_thread_is_above_old_words(self):
        for how in (("old",), ("old", "computes"), ("call",), ("call", "computes")):
            with self.subTest(how=how):
                child = self.asleep(*how)
                self.assertIn("is traced from now on", self.attach(child.pid, "--min-instructions", "0"))
                child.stdin.write("on\n")
                self.finish(child)

    def test_the_only_thread_is_where_it_has_a_lock(self):
        children = [self.asleep(*how) for how in (("callback",), ("handler",), ("callback", "computes"), ("handler", "computes"))]
        with ThreadPoolExecutor() as side_by_side:  # each is looked at for 5 s
            for child, said in zip(children, side_by_side.map(lambda child: self.attach(child.pid, status=1), children)):
                self.assertIn("in the dynamic linker, the allocator or a signal handler", said)
                child.stdin.write("on\n")
                self.finish(child)

    def test_a_thread_that_waits_where_jumps_would_be(self):
        """Its system call begins anew when it goes on: before its instruction, and there is the first jump's middle."""
        for how in ("dense", "apart"):
            with self.subTest(how=how):
                child = self.start(build("inject-stands", "inject/stands.c", "-O1", "-pthread", compiler="gcc"), how)
                time.sleep(0.1)
                self.attach(child.pid, "--min-instructions", "0")
                self.finish(child)

    def test_ways_out_that_were_bound_before(self):
        """libkarst does not stand before libc and the unwinder in a process that it comes to late."""
        for compiler, *kinds in (("g++", ("-Wl,-z,lazy",), ("-Wl,-z,now",), ("-fno-plt",), ("-fno-pie", "-no-pie")),
                                 ("karst-g++", (), ("-Wl,-z,lazy",))):
            for flags in kinds:
                with self.subTest(compiler=compiler, flags=flags):
                    child = self.start(build("-".join(("inject-leaves", compiler, *flags)).replace(",", "."), "inject/leaves.cc",
                                             "-O1", "-falign-functions=16", *flags, compiler=compiler))
                    before = 0
                    for again in range(2):
                        self.attach(child.pid, "--min-instructions", "0", "--budget", "off", "--memory", "64M")
                        time.sleep(0.2)
                        path = self.directory / "moment.karst"
                        subprocess.run([KARST, "snapshot", str(child.pid), "-o", str(path)], check=True,
                                       capture_output=True, timeout=TIMEOUT)
                        trace = Trace(path)
                        # Sleds are on as soon as libkarst is there, some milliseconds before it sees ways out.
                        missed = sum(count for _, count in trace.problems)
                        if again or compiler == "g++":
                            self.assertEqual(missed, before)
                        before = missed
                        calls = {f["function"].split("(")[0]: f for f in trace.report()}
                        # A call may be open as each history ends.
                        for name, way in (("throws", "unwound"), ("passes", "unwound"), ("jumps", "jumped"), ("between", "jumped")):
                            self.assertGreater(calls[name]["calls"], 100)  # the machine may be busy
                            self.assertLessEqual(calls[name]["calls"] - calls[name][f"{way}_calls"], missed + 1 + again, name)
                        subprocess.run([KARST, "detach", str(child.pid)], check=True, capture_output=True, timeout=TIMEOUT)
                    child.stdin.write("on\n")
                    self.finish(child)

    def test_fibers(self):
        """Which the program is known to have, or which were asked for; none where they are not wanted."""
        program = build("inject-fibers", "inject/fibers.cc", "-O1", "-falign-functions=16", "-I",
                        os.path.join(os.environ["KARST_SOURCE_ROOT"], "include"), compiler="g++")
        for options, why in (((), True), (("--fibers", "stack"), False), (("--fibers", "none"), False)):
            with self.subTest(options=options):
                child = self.start(program)
                said = self.attach(child.pid, "--min-instructions", "0", "--budget", "off", *options)
                self.assertEqual("as it has the function co_switch (--fibers=none" in said, why, said)
                time.sleep(0.1)
                path = self.directory / "moment.karst"
                subprocess.run([KARST, "snapshot", str(child.pid), "-o", str(path)], check=True, capture_output=True,
                               timeout=TIMEOUT)
                trace = Trace(path)
                self.assertEqual(len([t for t in trace.threads if t["fiber"]]), 0 if "none" in options else 2)
                if "none" not in options:
                    self.assert_whole(trace)
                child.stdin.write("on\n")
                self.finish(child)
        self.assertIn("stack or none is needed", self.attach(1, "--fibers=boost", status=2))

    def test_attaching_twice_is_attaching_once(self):
        child = self.start(worker(), "sleep")
        self.attach(child.pid)
        self.assertIn("was traced already", self.attach(child.pid))
        self.finish(child)

    def test_karst_is_killed_at_any_instant(self):
        ways = ("compute", "sleep", "poll", "epoll", "malloc", "pause")
        for i in range(ROUNDS):
            with self.subTest(way=ways[i % len(ways)], round=i):
                child = self.start((*workers(), unoptimised_worker())[i // len(ways) % 3], ways[i % len(ways)])
                karst = subprocess.Popen([KARST, "attach", str(child.pid)], stderr=subprocess.DEVNULL)
                time.sleep(random.uniform(0, 0.12 if i // len(ways) % 3 else 0.06))
                karst.kill()
                karst.wait()
                time.sleep(0.02)
                self.finish(child)


def code_end(program):
    """Where the program's code ends in its file; behind it karst may have put code of its own."""
    data = pathlib.Path(program).read_bytes()
    at, size, count = (*struct.unpack_from("<Q", data, 0x20), *struct.unpack_from("<HH", data, 0x36))
    for i in range(count):
        kind, rights, offset, _, _, in_file = struct.unpack_from("<IIQQQQ", data, at + i * size)
        if kind == 1 and rights & 1:
            return offset + in_file


def code_that_differs(pid, program):
    """Addresses of the program's code where the process's memory has other bytes than the file."""
    differing = []
    code_ends = code_end(program)
    with open(f"/proc/{pid}/mem", "rb") as memory, open(program, "rb") as file:
        compared = 0
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, rights, offset, *_, path = line.split()
            if "x" not in rights or path != program:
                continue
            begin, end = (int(each, 16) for each in span.split("-"))
            memory.seek(begin)
            file.seek(int(offset, 16))
            size = min(end - begin, code_ends - int(offset, 16))
            code = memory.read(size)
            as_filed = file.read(size)
            compared += len(as_filed)
            differing += [hex(begin + at) for at, (has, should) in enumerate(zip(code, as_filed)) if has != should]
    assert compared > 1000
    return differing


class Detaching(InjectTest):
    def detach(self, pid, status=0, **user):
        done = subprocess.run([KARST, "detach", str(pid)], capture_output=True, text=True, timeout=TIMEOUT, **user)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def detaching_refused(self, pid, words, **user):
        said = self.detach(pid, status=1, **user)
        self.assertIn(words, said)
        self.assertEqual(len(said.splitlines()), 1, said)

    def status(self, pid):
        return json.loads(subprocess.run([KARST, "status", str(pid), "--json"], check=True, capture_output=True, text=True,
                                         timeout=TIMEOUT).stdout)

    def recent_calls(self, pid):
        path = self.directory / "moment.karst"
        path.unlink(missing_ok=True)
        subprocess.run([KARST, "snapshot", str(pid), "--last", "20ms", "-o", str(path)], check=True,
                       capture_output=True, timeout=TIMEOUT)
        return Trace(path).counts.get("step(unsigned int)", 0)

    def test_rounds_of_attaching_and_detaching(self):
        """While detached, the program's code is its file's. Each attaching records."""
        programs = (*workers(), unoptimised_worker())
        for program, way in zip(programs * 2, ("sleep", "compute", "sleep", "compute", "sleep", "compute")):
            with self.subTest(program=program, way=way):
                child = self.start(program, way)
                self.assertEqual(code_that_differs(child.pid, program), [])
                for i in range(ROUNDS // 2):
                    self.assertIn("is traced again" if i else "is traced from now on",
                                  self.attach(child.pid, "--min-instructions", "0", "--budget", "off"))
                    self.assertNotEqual(code_that_differs(child.pid, program), [])
                    time.sleep(0.02)
                    if i % 10 == 1:
                        self.assertGreater(self.recent_calls(child.pid), 100)
                    self.assertIn("is not traced any more", self.detach(child.pid))
                    self.assertEqual(code_that_differs(child.pid, program), [])
                self.assertIn("was detached already", self.detach(child.pid))
                self.finish(child)

    def test_signals_that_come_meanwhile(self):
        """A wait that a signal ends is ended by it, and goes on where it would have."""
        program = build("inject-signalled", "inject/signalled.c", "-O1", compiler="gcc")
        for how in ("suspend", "ends", "goes-on", "ignored"):
            with self.subTest(how=how):
                child = self.start(program, how)
                for _ in range(ROUNDS):
                    self.attach(child.pid, "--min-instructions", "0")
                    self.detach(child.pid)
                self.finish(child)

    def test_functions_that_have_their_code_back(self):
        """A budget takes jumps back while threads run; detaching takes the rest, and attaching again writes all."""
        program = plain_worker()
        child = self.start(program, "compute")
        patched = None
        for budget in ("off", "2%", "off"):
            self.attach(child.pid, "--min-instructions", "0", "--budget", budget)
            if budget == "off":
                patched = len(code_that_differs(child.pid, program))
                self.assertGreater(self.recent_calls(child.pid), 100)
                self.assertEqual(self.status(child.pid)["culled_for_good"], 0)
            else:
                until = time.monotonic() + TIMEOUT
                while self.status(child.pid)["culled_for_good"] == 0 and time.monotonic() < until:
                    time.sleep(0.02)
                self.assertLess(len(code_that_differs(child.pid, program)), patched)
                time.sleep(0.05)
                self.assertEqual(self.recent_calls(child.pid), 0)
                subprocess.run([KARST, "on", str(child.pid), "--budget", "off"], check=True, capture_output=True,
                               timeout=TIMEOUT)
                self.assertEqual(self.recent_calls(child.pid), 0)
                status = self.status(child.pid)
                self.assertGreater(status["culled_for_good"], 0)
                self.assertEqual(status["culled"], status["culled_for_good"])
            self.assertIn("is not traced any more", self.detach(child.pid))
            self.assertEqual(code_that_differs(child.pid, program), [])
        self.finish(child)

    def test_options_of_a_process_that_has_sleds(self):
        """A budget counts at any time; what only a process that is patched can have is said to be of no use."""
        program = worker()
        child = self.start(program, "compute")
        said = self.attach(child.pid, "--memory", "1M", "--min-instructions", "3", "--fibers", "none")
        for option in ("--memory", "--min-instructions", "--fibers"):
            self.assertIn(f"{option} adds nothing to a process that has sleds", said)
        self.assertEqual(self.status(child.pid)["culled"], 0)
        for again in range(2):
            self.assertIn("is traced again" if again else "was traced already", self.attach(child.pid, "--budget", "1%"))
            until = time.monotonic() + TIMEOUT
            while self.status(child.pid)["culled"] == 0 and time.monotonic() < until:
                time.sleep(0.02)
            self.assertGreater(self.status(child.pid)["culled"], 0)
            self.attach(child.pid, "--budget", "off")
            self.assertEqual(self.status(child.pid)["culled"], 0)
            self.detach(child.pid)
        self.finish(child)

    def test_code_that_the_program_writes_to_itself(self):
        """It stays writable, where functions lie that the budget leaves out and between them. Attaching leaves it alone."""
        for compiler, what, by_attaching in (("gcc", "culled_for_good", 4), ("karst-gcc", "culled", 5)):
            program = build(f"inject-own-pages-{compiler}", "inject/own_pages.c", "-O1", "-fno-toplevel-reorder",
                            compiler=compiler)
            for attached, wanted in ((True, by_attaching), (False, 5)):
                with self.subTest(compiler=compiler, attached=attached):
                    if attached:
                        child = self.start(program)
                        pid = child.pid
                        self.attach(pid, "--budget", "5%")
                    else:
                        child = self.start(KARST, "run", "--budget", "5%", "-o", self.directory / f"{compiler}.karst", program)
                        pid = next(int(pid) for pid in pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
                                   if os.path.samefile(f"/proc/{pid}/exe", program))
                    until = time.monotonic() + TIMEOUT
                    while self.status(pid)[what] < wanted and time.monotonic() < until:
                        time.sleep(0.02)
                    self.assertEqual(self.status(pid)[what], wanted)
                    time.sleep(0.1)
                    self.finish(child)

    def test_detaching_ends_watches(self):
        child = self.start(worker(), "sleep")
        self.attach(child.pid)
        subprocess.run([KARST, "on", str(child.pid), "--slowest", "^step"], check=True, capture_output=True,
                       timeout=TIMEOUT)
        self.detach(child.pid)
        self.assertEqual(code_that_differs(child.pid, worker()), [])
        ended = subprocess.run([KARST, "off", str(child.pid), "--watches"], capture_output=True, text=True,
                               timeout=TIMEOUT)
        self.assertIn("nothing was watched", ended.stderr)
        self.finish(child)

    def test_a_place_in_a_process_that_was_detached(self):
        """What led there are calls: it is traced again."""
        for program in workers():
            with self.subTest(program=program):
                child = self.start(program, "sleep")
                self.attach(child.pid, "--min-instructions", "0", "--budget", "off")
                self.detach(child.pid)
                path = self.directory / "place.karst"
                done = subprocess.run([KARST, "attach", str(child.pid), "--trigger", "clock_nanosleep:40", "-o", str(path)],
                                      capture_output=True, text=True, timeout=TIMEOUT)
                self.assertIn("is traced again", done.stderr)
                if "perf_event_paranoid" in done.stderr or "has no hardware breakpoints" in done.stderr:
                    self.finish(child)
                    self.skipTest("there are no breakpoints, or they are not permitted")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertGreater(Trace(path).counts.get("step(unsigned int)", 0), 100)
                path.unlink()
                self.finish(child)

    def test_detaching_from_no_process(self):
        self.detaching_refused(999999999, "there is no process 999999999")

    def test_detaching_from_what_is_not_traced(self):
        child = self.start(worker(), "sleep")
        self.detaching_refused(child.pid, "is not traced by Karst")
        self.finish(child)

    def test_detaching_from_another_users_process(self):
        if os.geteuid() != 0:
            self.skipTest("to be another user takes root")
        nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        if subprocess.run(["test", "-x", KARST], **nobody).returncode != 0:
            self.skipTest("nobody cannot run the karst that was built here")
        child = self.start(worker(), "sleep")
        self.attach(child.pid)
        self.detaching_refused(child.pid, "belongs to user root", **nobody)
        self.finish(child)

    def test_options_that_need_a_trigger(self):
        for option in (["--sched", "perf"], ["--syscalls"], ["--last", "1s"], ["--no-source"], ["-o", "x.karst"]):
            done = subprocess.run([KARST, "attach", "1", *option], capture_output=True, text=True, timeout=TIMEOUT)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("needs a place to wait for: --trigger", done.stderr)


class Others(InjectTest):
    def test_hundreds_of_threads(self):
        """They are stopped and let go on, each time."""
        for compiler in ("gcc", "karst-gcc"):
            with self.subTest(compiler=compiler):
                program = build(f"inject-many-threads-{compiler}", "inject/many_threads.c", "-O2", "-pthread", compiler=compiler)
                child = self.start(program, "300")
                for _ in range(3):
                    self.attach(child.pid, "--min-instructions", "0")
                    done = subprocess.run([KARST, "detach", str(child.pid)], capture_output=True, text=True, timeout=TIMEOUT)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertNotIn("still", done.stderr)
                self.finish(child)

    def test_a_child_that_was_forked_in_a_handler(self):
        """It never leaves the handler, which came while its parent slept."""
        parent = self.start(build("inject-forks", "inject/forks.c", "-O2", compiler="gcc"), "handler")
        time.sleep(0.1)
        parent.send_signal(signal.SIGUSR1)
        child = int(parent.stdout.readline())
        self.addCleanup(os.kill, child, signal.SIGKILL)
        self.assertIn("is traced from now on", self.attach(child, "--min-instructions", "0"))
        time.sleep(0.1)
        path = self.directory / "trace.karst"
        subprocess.run([KARST, "snapshot", str(child), "-o", path], check=True, capture_output=True, timeout=TIMEOUT)
        self.assertGreater(Trace(path).counts["work"], 0)

    def test_a_program_with_addresses_reserved_below_its_libraries(self):
        child = self.start(build("inject-reserves", "inject/reserves.c", "-O2", "-lm", compiler="gcc"))
        self.attach(child.pid, "--library", "*", "--min-instructions", "0")
        subprocess.run([KARST, "detach", str(child.pid)], check=True, capture_output=True, timeout=TIMEOUT)
        self.attach(child.pid)
        self.finish(child)

    def test_a_child_that_was_forked_while_its_parent_was_off(self):
        program = build("inject-forks", "inject/forks.c", "-O2", compiler="gcc")
        parent = self.start(program)

        def child():
            parent.stdin.write("\n")
            parent.stdin.flush()
            number = int(parent.stdout.readline())
            self.addCleanup(os.kill, number, signal.SIGKILL)
            time.sleep(0.05)
            return number

        def is_traced(number):
            self.assertRegex(self.attach(number, "--min-instructions", "0"), "is traced (from now on|again)|was traced already")
            time.sleep(0.1)
            path = self.directory / f"{number}.karst"
            subprocess.run([KARST, "snapshot", str(number), "-o", path], check=True, capture_output=True, timeout=TIMEOUT)
            self.assertGreater(Trace(path).counts["work"], 0)

        self.attach(parent.pid, "--min-instructions", "0")
        is_traced(child())
        for command in ("off", "detach"):
            subprocess.run([KARST, command, str(parent.pid)], check=True, capture_output=True, timeout=TIMEOUT)
            is_traced(child())
        self.assertGreater(child(), 0)  # the parent goes on


class Stock(InjectTest):
    def test_an_interpreter_that_runs(self):
        """Debian's own python3, from inside of what it does: it prints the same, and its calls are seen."""
        script = ("import re, sys\nprint('ready', flush=True)\nn = 0\n"
                  "while True:\n    for i in range(2000): n += len(re.sub('a+', 'b', 'xaay%d' % i))\n"
                  "    if select.select([0], [], [], 0)[0]: break\n"
                  "print('right', n % 2000)\n").replace("import re", "import re, select")
        child = self.start("/usr/bin/python3", "-c", script)
        said = self.attach(child.pid)
        self.assertRegex(said, r"python3\S*: [\d,]+ of [\d,]+ functions patched as it runs")
        time.sleep(0.2)
        path = self.directory / "moment.karst"
        subprocess.run([KARST, "snapshot", str(child.pid), "-o", str(path)], check=True, capture_output=True,
                       timeout=TIMEOUT)
        subprocess.run([KARST, "detach", str(child.pid)], check=True, capture_output=True, timeout=TIMEOUT)
        out, err = child.communicate(timeout=TIMEOUT)
        self.assertEqual(child.returncode, 0, err)
        self.assertRegex(out, r"^right \d+\n$")
        self.assertGreater(sum(f["calls"] for f in Trace(path).report()), 1000)

    def test_some_functions_alone(self):
        for program in workers():
            with self.subTest(program=program):
                child = self.start(program, "compute")
                said = self.attach(child.pid, "--min-instructions", "0", "--budget", "off", "--function", "stpe", status=1)
                self.assertIn("has a name that matches 'stpe'; did you mean 'step'?", said)
                said = self.attach(child.pid, "--budget", "off", "--function", "step(unsigned int)")
                self.assertRegex(said, r"is traced again, 1 of \d+ functions|was traced already, 1 of \d+ functions")
                time.sleep(0.1)
                path = self.directory / "some.karst"
                subprocess.run([KARST, "snapshot", str(child.pid), "--last", "50ms", "-o", str(path)], check=True,
                               capture_output=True, timeout=TIMEOUT)
                self.finish(child)
                calls = {f["function"]: f["calls"] for f in Trace(path).report()}
                self.assertGreater(calls.pop("step(unsigned int)"), 1000)
                self.assertEqual(calls, {})

    def test_left_alone_if_asked(self):
        child = self.start(plain_worker(), "sleep")
        said = self.attach(child.pid, "--no-patch", status=1)
        self.assertIn("has libkarst loaded and traces nothing", said)
        self.assertEqual(code_that_differs(child.pid, plain_worker()), [])
        self.assertIn("is traced from now on", self.attach(child.pid))
        self.finish(child)


class Refusing(InjectTest):
    def refused(self, pid, words):
        said = self.attach(pid, status=1)
        self.assertIn(words, said)
        self.assertEqual(len(said.splitlines()), 1, said)

    def test_no_such_process(self):
        self.refused(999999999, "there is no process 999999999")

    def test_a_zombie(self):
        child = subprocess.Popen(["true"])
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        self.refused(child.pid, "zombie")
        child.wait()

    def test_a_stopped_process(self):
        child = self.start(worker(), "sleep")
        child.send_signal(signal.SIGSTOP)
        while " T " not in pathlib.Path(f"/proc/{child.pid}/stat").read_text():
            time.sleep(0.001)
        self.refused(child.pid, f"kill -CONT {child.pid}")
        child.send_signal(signal.SIGCONT)
        self.finish(child)

    def test_a_static_program(self):
        program = build("inject-static", "inject/worker.cc", "-O2", "-pthread", "-static", compiler="g++")
        child = self.start(program, "sleep")
        self.refused(child.pid, "static program")
        self.finish(child)

    def test_a_traced_process(self):
        program = build("inject-tracer", "inject/tracer.c", compiler="gcc")
        child = self.start(worker(), "sleep")
        tracer = subprocess.Popen([program, str(child.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual(tracer.stdout.readline(), "traced\n")
        self.refused(child.pid, f"process {tracer.pid} (a debugger, or strace) traces it already")
        tracer.communicate()
        self.finish(child)

    def test_a_seccomp_filter(self):
        program = build("inject-filtered", "inject/filtered.c", compiler="gcc")
        child = self.start(program, worker(), "sleep")
        self.refused(child.pid, "seccomp filter")
        self.finish(child)

    def test_a_limit_on_address_space(self):
        child = self.start("sh", "-c", 'exec "$0" sleep', worker())
        size = int(pathlib.Path(f"/proc/{child.pid}/statm").read_text().split()[0]) * 4096
        subprocess.run(["prlimit", f"--as={size}", "--pid", str(child.pid)], check=True)
        self.refused(child.pid, "no memory for the call")
        self.finish(child)


if __name__ == "__main__":
    main()
