"""What programs leave that nobody collected: cores, arenas in files, traces that a crash wrote; and where they stand."""
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

import support
from support import BIN, KARST, TIMEOUT, Trace, build

RUNTIME = str(BIN.parent / "lib" / "libkarst.so.0")
STACK = ["main", "middle(char const*)", "marker(char const*)"]


def program(compiler="karst-g++", output="recover_program"):
    return build("recover_program", "recover/program.cc", "-O1", "-fno-inline", "-fno-optimize-sibling-calls", "-pthread",
                 compiler=compiler, output=output)


def karst(*words, **environment):
    return subprocess.run([KARST, *map(str, words)], capture_output=True, text=True, timeout=TIMEOUT,
                          stdin=subprocess.DEVNULL, env=dict(os.environ, **environment))


class Recover(support.TracedTest):
    def setUp(self):
        super().setUp()
        self.here = Path(self.directory)

    def run_plain(self, how, *arguments, options="", traced=True, core=False, path=None, **more):
        """The program as its user starts it, without karst run."""
        environment = dict(os.environ)
        if traced:
            environment["LD_PRELOAD"] = RUNTIME
        if options:
            environment["KARST_OPTIONS"] = options
        size = resource.RLIM_INFINITY if core else 0
        return subprocess.run([path or program(), how, *map(str, arguments)], cwd=self.here, env=environment, text=True,
                              capture_output=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (size, size)), **more)

    def start(self, how, *arguments, options=""):
        environment = dict(os.environ, LD_PRELOAD=RUNTIME)
        if options:
            environment["KARST_OPTIONS"] = options
        started = subprocess.Popen([program(), how, *map(str, arguments)], cwd=self.here, env=environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(started.communicate)
        self.addCleanup(started.kill)
        return started

    def started(self, how, *arguments, options=""):
        process = self.start(how, *arguments, options=options)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def core_of(self, how, *arguments, **more):
        pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
        if "/" in pattern or pattern.startswith("|"):
            self.skipTest(f"cores go elsewhere here (core_pattern is {pattern})")
        for old in self.here.glob("core*"):
            old.unlink()
        self.run_plain(how, *arguments, core=True, **more)
        found = list(self.here.glob("core*"))
        self.assertEqual(len(found), 1, found)
        return found[0]

    def recovered(self, source, *options):
        output = self.here / "recovered.karst"
        done = karst("recover", source, "-o", output, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return Trace(output), done.stderr

    def where(self, of, *options, **environment):
        done = karst("where", of, "--json", *options, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["processes"]

    def functions(self, thread):
        return [call["function"] for call in reversed(thread["calls"])]

    def check_whole(self, trace, leaves=1000):
        tree = trace.tree()
        self.assertEqual(sum(line.endswith(" leaf()") for line in tree), leaves)
        self.assertEqual(trace.info["lost_events"], 0)
        self.assertEqual(trace.info["open_calls"], 3)

    # ---- cores ----

    def test_a_core_has_the_whole_history(self):
        core = self.core_of("segv")
        trace, said = self.recovered(core)
        self.check_whole(trace)
        self.assertIn("ended by SIGSEGV at address 0x10 in thread", said)
        (process,) = trace.processes
        self.assertEqual(process["signal"], signal.SIGSEGV)
        (moment,) = trace.info["kept"]
        self.assertEqual((moment["kind"], moment["what"]), ("crash", "SIGSEGV at address 0x10"))
        for source in (core, trace.path):
            (seen,) = self.where(source)
            self.assertEqual(seen["crash"], "SIGSEGV at address 0x10")
            (thread,) = seen["threads"]
            self.assertEqual(thread["tid"], seen["crashed_tid"])
            self.assertEqual(self.functions(thread), STACK)
        text = karst("where", core).stdout
        self.assertRegex(text, r"thread \d+ recover_program: crashed here\n +\S+ \S+ +#0 +marker\(char const\*\)  program.cc:\d+\n")

    def test_gdb_sees_the_same_calls_in_the_core(self):
        if shutil.which("gdb") is None:
            self.skipTest("gdb is not installed")
        core = self.core_of("abort")
        gdb = subprocess.run(["gdb", "-nx", "-batch", "-ex", "bt", program(), str(core)], capture_output=True, text=True)
        names = re.findall(r"^#\d+ .*?(?:in )?(marker|middle|main) \(", gdb.stdout, re.M)
        (seen,) = self.where(core)
        self.assertEqual([f.split("(")[0] for f in self.functions(seen["threads"][0])], names[::-1])

    def test_a_core_of_many_threads_names_the_one_that_crashed(self):
        core = self.core_of("threads")
        (seen,) = self.where(core)
        self.assertEqual(len(seen["threads"]), 2)
        crashed, other = seen["threads"]
        self.assertEqual((crashed["tid"], self.functions(crashed)), (seen["crashed_tid"], STACK))
        self.assertEqual((other["name"], self.functions(other)), ("waiter", ["waiter(void*)"]))

    def test_a_core_of_a_forked_child(self):
        core = self.core_of("fork")
        trace, _ = self.recovered(core)
        self.assertEqual(sum(line.endswith(" leaf()") for line in trace.tree()), 10)

    def test_a_core_grows_by_the_history_in_use(self):
        plain_program = program("g++", "recover_plain")

        def size(**more):
            status = self.core_of("segv", **more).stat()
            return status.st_blocks * 512

        plain = size(path=plain_program, traced=False)
        self.assertLess(size(), plain + (2 << 20))
        self.assertLess(size(options="memory=1M"), plain + (2 << 20))
        # 1,000,000 calls are 16 MB of events.
        many = self.core_of("segv", 1_000_000).stat().st_blocks * 512
        self.assertLess(many, plain + 16_300_000 + (2 << 20))
        off = self.core_of("segv", 1_000_000, options="core=off")
        self.assertLess(off.stat().st_blocks * 512, plain + (1 << 20))
        refused = karst("recover", off)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("this core has no trace: its program ran with core=off or file=PATH", refused.stderr)

    def test_a_core_whose_program_has_moved(self):
        moved = self.here / "moved"
        shutil.copy(program(), moved)
        core = self.core_of("segv", path=moved)
        moved.rename(self.here / "elsewhere")
        (seen,) = self.where(core, XDG_CACHE_HOME=str(self.here / "no-cache"))
        self.assertRegex(self.functions(seen["threads"][0])[0], r"moved\+0x")
        (seen,) = self.where(core, "--program", self.here / "elsewhere")
        self.assertEqual(self.functions(seen["threads"][0]), STACK)

    def test_cores_that_are_cut_or_damaged(self):
        core = self.core_of("segv", 100_000)
        whole = core.read_bytes()
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        damaged = self.here / "damaged"
        for turn in range(40):
            content = bytearray(whole if turn % 2 else whole[:rng.randrange(len(whole))])
            for _ in range(turn * 5):
                if content:  # headers and notes lie in the first pages
                    content[rng.randrange(min(len(content), 1 << rng.randrange(6, 24)))] = rng.randrange(256)
            damaged.write_bytes(content)
            done = karst("recover", damaged, "-o", self.here / "damaged.karst")
            self.assertIn(done.returncode, (0, 1), (seed, turn, done.stderr))
            self.assertTrue(done.stderr.startswith("karst: "), (seed, turn, done.stderr))

    # ---- arenas in files ----

    def test_a_file_has_what_a_killed_program_did(self):
        run = self.run_plain("kill", options="file=app-%e-%%-%p.arena")
        self.assertEqual(run.returncode, -signal.SIGKILL)
        self.assertEqual(run.stderr, "")
        (file,) = self.here.glob("app-recover_program-%-*.arena")
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        self.check_whole(self.recovered(file)[0])
        (seen,) = self.where(file)
        self.assertEqual((self.functions(seen["threads"][0]), seen.get("crash")), (STACK, None))

    def test_a_file_is_read_while_its_program_lives(self):
        process = self.started("pause", options="file=app.arena")
        _, said = self.recovered(self.here / "app.arena")
        self.assertIn("which runs on", said)
        for of in (self.here / "app.arena", process.pid):
            (seen,) = self.where(of)
            self.assertEqual((self.functions(seen["threads"][0]), seen["threads"][0]["state"]), (STACK, "blocked in pause"))
        self.assertIn(str(process.pid), karst("ps").stdout)
        self.assertEqual(karst("off", process.pid).returncode, 0)
        self.assertEqual(karst("on", process.pid).returncode, 0)

    def test_what_lies_under_the_name_of_a_file(self):
        file = self.here / "app.arena"
        self.run_plain("kill", options="file=app.arena")
        first = file.read_bytes()[:4096]
        self.run_plain("kill", options="file=app.arena")
        self.assertEqual((self.here / "app.arena.old").read_bytes()[:4096], first)
        self.assertNotEqual(file.read_bytes()[:4096], first)
        # A living program keeps its own; the next one's has its number behind the name.
        process = self.started("pause", options="file=app.arena")
        mine = file.stat().st_ino
        self.run_plain("kill", options="file=app.arena")
        self.assertEqual(file.stat().st_ino, mine)
        self.assertEqual(len(list(self.here.glob("app.arena.[0-9]*"))), 1)
        process.kill()
        # Nothing else is replaced or followed.
        (self.here / "diary").write_text("dear diary")
        (self.here / "link").symlink_to("nowhere")
        for name in ("diary", "link", "missing/app.arena", "x" * 180):
            run = self.run_plain("tell", options=f"file={name}")
            self.assertEqual(run.returncode, 0)
            if len(name) < 180:
                self.assertIn(f"{name} ignored: ", run.stderr)
        self.assertEqual((self.here / "diary").read_text(), "dear diary")
        self.assertFalse((self.here / "nowhere").exists())

    def test_forked_children_have_files_of_their_own(self):
        run = self.run_plain("fork", options="file=app.arena")
        child = re.search(r"child (\d+) 6", run.stdout)[1]
        trace, _ = self.recovered(self.here / f"app.arena.{child}")
        self.assertEqual(sum(line.endswith(" leaf()") for line in trace.tree()), 10)
        self.check_tree_of_parent(self.recovered(self.here / "app.arena")[0])

    def check_tree_of_parent(self, trace):
        self.assertEqual(sum(line.endswith(" leaf()") for line in trace.tree()), 1000)
        self.assertEqual(trace.info["open_calls"], 0)

    def test_karst_run_keeps_a_file_as_well(self):
        path = self.here / "run.karst"
        done = karst("run", "--file", self.here / "app.arena", "-o", path, program(), "kill")
        self.assertEqual(done.returncode, 128 + signal.SIGKILL, done.stderr)
        self.check_whole(Trace(path))
        self.check_whole(self.recovered(self.here / "app.arena")[0])

    def test_after_the_machine_was_started_again(self):
        self.run_plain("kill", 200_000, options="file=app.arena")
        before = self.recovered(self.here / "app.arena")[0].info["span_ns"]
        file = self.here / "app.arena"
        content = bytearray(file.read_bytes()[:4096])
        boot = bytes.fromhex(Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", ""))
        at = content.index(boot)
        with open(file, "r+b") as f:
            f.seek(at)
            f.write(bytes(16 * [7]))
        trace, said = self.recovered(file)
        self.check_whole(trace, 200_000)
        after = trace.info["span_ns"]
        if "by this machine's clock rate" not in said:  # it lived for 10 ms
            self.assertEqual(trace.info["clock"]["rate_source"], "measured against CLOCK_MONOTONIC_RAW")
        self.assertLess(abs(after - before), before / 1000)

    def test_file_systems_that_are_full_or_unfit(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, for mounts of its own")
        script = """
            mount -t tmpfs -o size=3m none {here} && cd {here} || exit 77
            KARST_OPTIONS=file=app.arena LD_PRELOAD={runtime} {program} tell 1000000 >/dev/null || exit 1
            {karst} recover app.arena -o /dev/null.karst 2>/dev/null
            {karst} where app.arena --json >/dev/null || exit 2
            mount -t ramfs none {here} && cd {here} || exit 77
            KARST_OPTIONS=file=app.arena LD_PRELOAD={runtime} {program} tell >/dev/null || exit 3
            test ! -e app.arena || exit 4
        """.format(here=self.here, runtime=RUNTIME, program=program(), karst=KARST)
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=TIMEOUT)
        if done.returncode == 77:
            self.skipTest("nothing can be mounted here: " + done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("memory is short: the trace keeps to", done.stderr)
        self.assertIn("file system may lose space that was allocated", done.stderr)

    # ---- on-crash=1 ----

    def check_crash_file(self, how, number, what, stack=STACK, **more):
        plain = self.run_plain(how, traced=False, path=program("g++", "recover_plain"))
        run = self.run_plain(how, options="on-crash=1", **more)
        self.assertEqual((run.returncode, run.stdout), (plain.returncode, plain.stdout))
        self.assertEqual(run.returncode, -number)
        (file,) = self.here.glob("*.karst")
        self.assertIn(f"karst: {what} in thread ", run.stderr)
        self.assertIn(f"wrote {file.name}", run.stderr)
        (seen,) = self.where(file)
        self.assertEqual(seen["crash"], what)
        (thread,) = seen["threads"]
        self.assertEqual(self.functions(thread)[:len(stack)], stack)
        file.unlink()
        return run, thread

    def test_crashes_write_a_trace_and_stay_crashes(self):
        for how, number, what in (("abort", signal.SIGABRT, "SIGABRT"), ("segv", signal.SIGSEGV, "SIGSEGV at address 0x10"),
                                  ("sent", signal.SIGBUS, "SIGBUS, sent by a process"),
                                  ("throw", signal.SIGABRT, "SIGABRT")):
            with self.subTest(how):
                run, _ = self.check_crash_file(how, number, what)
                places = re.search(r"open calls, innermost first:((?: \S+\+0x[0-9a-f]+)+)\n", run.stderr)[1].split()
                names = subprocess.run(["addr2line", "-f", "-C", "-e", program(), *(p.split("+")[1] for p in places)],
                                       capture_output=True, text=True).stdout.split("\n")[::2]
                self.assertEqual(names[-4:-1], STACK[::-1])

    def test_faults_with_an_address_of_code(self):
        for how, number in (("ill", signal.SIGILL), ("fpe", signal.SIGFPE)):
            run = self.run_plain(how, options="on-crash=1")
            self.assertEqual(run.returncode, -number)
            self.assertRegex(run.stderr, rf"karst: {number.name} at address 0x[0-9a-f]+ in thread ")

    def test_a_stack_that_overflowed_has_a_trace(self):
        run = self.run_plain("overflow", options="on-crash=1,memory=256M")
        self.assertEqual(run.returncode, -signal.SIGSEGV)
        (file,) = self.here.glob("*.karst")
        (seen,) = self.where(file)
        self.assertGreater(sum(f == "overflow(long)" for f in self.functions(seen["threads"][0])), 1000)

    def test_the_programs_own_handler_comes_first(self):
        self.check_crash_file("handled", signal.SIGSEGV, "SIGSEGV, sent by a process")

    def test_the_program_does_not_see_our_handler(self):
        plain = self.run_plain("tell", traced=False, path=program("g++", "recover_plain"))
        run = self.run_plain("tell", options="on-crash=1")
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, plain.stdout, ""))
        self.assertEqual(list(self.here.glob("*.karst")), [])

    def test_a_core_behind_a_crash_file_is_the_programs_own(self):
        core = self.core_of("segv", options="on-crash=1")
        (seen,) = self.where(core)
        self.assertEqual((seen["crash"], self.functions(seen["threads"][0])), ("SIGSEGV at address 0x10", STACK))

    def test_children_that_crash_write_their_own(self):
        run = self.run_plain("fork", options="on-crash=1")
        child = re.search(r"child (\d+) 6", run.stdout)[1]
        (file,) = self.here.glob("*.karst")
        self.assertEqual(file.name, f"recover_program-{child}-1.karst")
        self.assertEqual(run.returncode, 0)

    # ---- processes that hang ----

    def test_where_a_deadlock_stands(self):
        process = self.start("deadlock")
        for _ in range(200):
            time.sleep(0.05)
            done = karst("where", process.pid, "--json")
            threads = json.loads(done.stdout)["processes"][0]["threads"] if done.returncode == 0 else []
            if len(threads) == 2 and all(t.get("holder_tid") for t in threads):
                break
        by_name = {thread["name"]: thread for thread in threads}
        first, second = by_name["recover_program"], by_name["second"]
        self.assertEqual((first["holder_tid"], second["holder_tid"]), (second["tid"], first["tid"]))
        self.assertEqual(self.functions(second)[-1], "take_both(pthread_mutex_t*, pthread_mutex_t*)")
        self.assertEqual(self.functions(first)[:3], STACK)
        text = karst("where", process.pid).stdout
        self.assertIn(f"blocked in futex; it looks like a mutex that {second['tid']} second holds", text)
        # Stopped altogether, all of it works as well.
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)  # all its threads have stopped then
        (seen,) = self.where(process.pid)
        self.assertEqual([t["state"] for t in seen["threads"]], ["stopped by a signal"] * 2)
        done = karst("snapshot", process.pid, "-o", self.here / "stopped.karst")
        self.assertEqual(done.returncode, 0, done.stderr)
        (seen,) = self.where(self.here / "stopped.karst")
        self.assertEqual({t["name"]: self.functions(t)[-1] for t in seen["threads"]},
                         {"recover_program": self.functions(first)[-1], "second": self.functions(second)[-1]})

    def test_a_process_in_a_debugger(self):
        if shutil.which("gdb") is None:
            self.skipTest("gdb is not installed")
        process = self.started("pause")
        where = self.here / "where.json"
        gdb = subprocess.run(["gdb", "-nx", "-batch", "-p", str(process.pid), "-ex",
                              f"shell {KARST} where {process.pid} --json > {where}"], capture_output=True, text=True,
                             timeout=TIMEOUT)
        if "Could not attach" in gdb.stderr or "ptrace: Operation not permitted" in gdb.stderr:
            self.skipTest("gdb may not attach here")
        (seen,) = json.loads(where.read_text())["processes"]
        (thread,) = seen["threads"]
        self.assertEqual((thread["state"], self.functions(thread)), ("stopped by a debugger", STACK))

    def gdb(self, *words):
        if shutil.which("gdb") is None:
            self.skipTest("gdb is not installed")
        script = str(support.ROOT / "packaging" / "karst-gdb.py")
        commands = [part for word in (f"source {script}", *words) for part in ("-ex", word)]
        target = commands.pop()
        return lambda *what: subprocess.run(["gdb", "-nx", "-batch", *what, *commands, target], capture_output=True,
                                            text=True, timeout=TIMEOUT, cwd=self.here, stdin=subprocess.DEVNULL,
                                            env=dict(os.environ, PATH=f"{BIN}:{os.environ['PATH']}"))

    def test_commands_in_gdb(self):
        debug = self.gdb("karst where", "karst save saved.karst")
        core = self.core_of("segv")
        done = debug(program(), str(core))
        self.assertRegex(done.stdout, r"crashed here\n.*#0 +marker\(char const\*\)")
        self.check_whole(Trace(self.here / "saved.karst"))
        process = self.started("pause")
        done = debug("-p", str(process.pid))
        if "Could not attach" in done.stderr or "Operation not permitted" in done.stderr:
            self.skipTest("gdb may not attach here")
        self.assertRegex(done.stdout, r"stopped by a debugger\n.*#0 +marker\(char const\*\)")
        self.check_whole(Trace(self.here / "saved.karst"))
        done = self.gdb("karst where")()
        self.assertIn("there is neither a process nor a core to look at", done.stderr)

    def test_clear_words_for_what_is_none(self):
        (self.here / "text").write_text("no trace\n" * 100)
        (self.here / "packed").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(100))
        (self.here / "empty").write_bytes(b"")
        os.mkfifo(self.here / "fifo")
        plain = self.run_plain("tell")
        self.assertEqual(plain.returncode, 0)
        for name, words in (("text", "neither a trace, the file of an arena (file=PATH) nor a core file"), ("missing", "No such file"),
                            ("packed", "it is compressed: unpack it first"), ("empty", "neither"), ("fifo", "no regular file"),
                            (program(), "it is no core file of an x86-64 program")):
            for command in ("resolve", "recover", "where"):
                done = karst(command, self.here / name)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(list(self.here.glob("*.karst")), [])


if __name__ == "__main__":
    support.main()
