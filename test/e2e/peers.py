"""Doors between karst and traced processes: each attack as a stranger or a process of the run would try it."""
import array
import contextlib
import ctypes
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import unittest

from support import BIN, KARST, TIMEOUT, TracedTest, Trace, build, main

NOBODY = 65534
RUNTIME = str(BIN.parent / "lib" / "libkarst.so.0")
HELLO = "<8I2QQ2Q"  # format/session.h, up to the secret: origin is start_ticks, pid and tid, ticks; then a stretch
PR_SET_CHILD_SUBREAPER = 36
MAGIC, VERSION, TRACING, START = 0x5453524B, 5, 0, 0
needs_root = unittest.skipIf(os.geteuid() != 0, "needs root, to become another user")


def become_nobody():
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def stays():
    return build("stays", "peers/stays.cc", "-O1", "-fno-optimize-sibling-calls", "-pthread")


class PeersTest(TracedTest):
    def start(self, *options, **more):
        """`karst run` and the program that does what it is told; self.pid is the program."""
        self.path = self.directory / "trace.karst"
        self.run = subprocess.Popen([KARST, "run", "--output", str(self.path), *self.SCHED, *options, "--", stays()],
                                    cwd=self.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, **more)
        self.addCleanup(self.end_all)
        self.assertEqual(self.run.stdout.readline(), "ready\n")
        children = pathlib.Path(f"/proc/{self.run.pid}/task/{self.run.pid}/children").read_text().split()
        self.assertEqual(len(children), 1)
        self.pid = int(children[0])

    def end_all(self):
        for pid in (self.run.pid, self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.run.communicate()

    def tell(self, what):
        """The program's answer."""
        self.run.stdin.write(what + "\n")
        self.run.stdin.flush()
        return self.run.stdout.readline().strip()

    def kill_karst(self, number=signal.SIGKILL):
        os.kill(self.run.pid, number)
        os.waitid(os.P_PID, self.run.pid, os.WEXITED | os.WNOWAIT)

    def finish(self):
        _, err = self.run.communicate("end\n", timeout=TIMEOUT)
        return err

    def options(self):
        environment = pathlib.Path(f"/proc/{self.pid}/environ").read_bytes().split(b"\0")
        return next(e for e in environment if e.startswith(b"KARST_OPTIONS=")).decode()

    def arena_of(self, pid):
        for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            if os.readlink(entry).startswith("/memfd:karst-arena"):
                return os.open(entry, os.O_RDWR)
        self.fail("no arena")

    def session(self):
        """As anybody finds it."""
        names = re.findall(rf"@(karst-{self.run.pid}-[0-9a-f]+)$", pathlib.Path("/proc/net/unix").read_text(), re.M)
        self.assertEqual(len(set(names)), 1, names)
        return "\0" + names[0]


class Impostor:
    """Binds the session's name once it is free, in a process of its own, and counts the descriptors that it is sent."""

    def __init__(self, name, become=None):
        self.read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                if become is not None:
                    become()
                listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                listener.bind(name)
                listener.listen(16)
                os.write(write, b"b")
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        _, descriptors, _, _ = socket.recv_fds(connection, 4096, 4)
                    os.write(write, b"d" if descriptors else b"n")
            finally:
                os._exit(1)
        os.close(write)
        assert os.read(self.read, 1) == b"b"

    def end(self):
        """What it got: d for each message with a descriptor."""
        got = b""
        while select.select([self.read], [], [], 0.2)[0] and (more := os.read(self.read, 100)):
            got += more
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.read)
        return got


class Impostors(PeersTest):
    def check(self, what, status, become=None):
        self.start()
        name = self.session()
        self.kill_karst()
        impostor = Impostor(name, become)
        answer = self.tell(what)
        got = impostor.end()
        err = self.finish()
        self.assertEqual(answer, status)
        self.assertNotIn(b"d", got, "the impostor has the trace memory")
        lines = [line for line in err.splitlines() if "runs untraced" in line]
        self.assertEqual(len(lines), 1, err)
        self.assertIn("the session's socket belongs to another user or process", lines[0])

    @needs_root
    def test_another_user_who_binds_the_name_gets_no_fork(self):
        self.check("fork", "7", become_nobody)

    @needs_root
    def test_another_user_who_binds_the_name_gets_no_program_that_is_started(self):
        self.check("exec", "5", become_nobody)

    def test_another_process_of_the_user_gets_no_fork(self):
        """A sandbox has the same user, and cannot look into the process."""
        self.check("fork", "7")

    def test_another_process_of_the_user_gets_no_program_that_is_started(self):
        self.check("exec", "5")


class Strangers(PeersTest):
    def hello(self, secret, pid=None, descriptor=None):
        """Reports a process to the session; whether it was answered."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(TIMEOUT)
            connection.connect(self.session())
            message = struct.pack(HELLO, MAGIC, VERSION, pid or os.getpid(), TRACING, 1, START, 0, 0, 0, 0, 0, 0, 0) + secret
            rights = [] if descriptor is None else [
                (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]).tobytes())]
            connection.sendmsg([message], rights)
            return connection.recv(16) != b""

    def secret(self):
        return bytes.fromhex(self.options().rpartition(":")[2])

    @needs_root
    def test_another_users_process_is_not_in_roots_trace(self):
        self.start()
        stranger = subprocess.run([stays(), "once"], preexec_fn=become_nobody, capture_output=True, text=True,
                                  env={"LD_PRELOAD": RUNTIME, "KARST_OPTIONS": "session=" + self.session()[1:]})
        self.assertEqual(self.tell("fork"), "7")
        self.finish()
        self.assertEqual(stranger.returncode, 5, stranger.stderr)
        self.assertEqual(len(Trace(self.path).processes), 2)  # the program and its child

    @needs_root
    def test_a_process_of_roots_refuses_another_users_session(self):
        """Under sudo, say, in a program that another user runs under karst."""
        self.directory.chmod(0o777)
        if subprocess.run([KARST, "--version"], preexec_fn=become_nobody, capture_output=True).returncode != 0:
            self.skipTest("another user cannot reach the build")
        self.start(preexec_fn=become_nobody)
        roots = subprocess.run([stays(), "once"], capture_output=True, text=True, timeout=TIMEOUT,
                               env={"LD_PRELOAD": RUNTIME, "KARST_OPTIONS": self.options().partition("=")[2]})
        self.finish()
        self.assertEqual(roots.returncode, 5)
        self.assertIn("this program runs untraced: the session's socket belongs to another user", roots.stderr)
        self.assertEqual(len(Trace(self.path).processes), 1)

    def test_a_process_without_the_secret_is_not_heard(self):
        self.start()
        wrong = bytearray(self.secret())
        wrong[15] ^= 1
        self.assertFalse(self.hello(bytes(wrong), descriptor=self.arena_of(self.pid)))
        self.assertFalse(self.hello(bytes(16), descriptor=self.arena_of(self.pid)))
        self.finish()
        trace = Trace(self.path)
        self.assertEqual((len(trace.processes), trace.problems), (1, []))

    def test_a_process_that_sends_anothers_arena_is_refused(self):
        self.start()
        for pid in (os.getpid(), self.pid):
            self.assertFalse(self.hello(self.secret(), pid, self.arena_of(self.pid)))
        err = self.finish()
        self.assertEqual(len(Trace(self.path).processes), 1)
        self.assertIn("sent the trace memory of another process", err)

    def test_the_secret_is_in_no_name_arena_and_trace(self):
        self.start()
        secret = self.options().rpartition(":")[2]
        self.assertRegex(secret, "^[0-9a-f]{32}$")
        self.assertNotIn(secret, pathlib.Path("/proc/net/unix").read_text())
        self.tell("work")
        inside = self.directory / "inside.karst"
        subprocess.run([KARST, "snapshot", str(self.pid), "-o", str(inside)], check=True, capture_output=True)
        with os.fdopen(self.arena_of(self.pid), "rb") as arena:
            while chunk := arena.read(1 << 20):
                self.assertNotIn(secret.encode(), chunk)
                self.assertNotIn(bytes.fromhex(secret), chunk)
        self.finish()
        for path in (inside, self.path):
            self.assertNotIn("session", Trace(path).processes[0]["options"])

    @needs_root
    def test_children_of_a_daemon_that_has_become_another_user_are_traced(self):
        self.start()
        self.assertEqual(self.tell("drop"), "0")
        self.assertEqual(self.tell("fork"), "7")
        self.finish()
        trace = Trace(self.path)
        self.assertEqual((len(trace.processes), trace.problems), (2, []))


class KarstDies(PeersTest):
    """Whatever kills karst: the program ends as it would, and what its memory holds can be had while it lives."""

    def check(self, number):
        if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1) != 0:
            self.skipTest("this kernel gives orphans to init alone")
        self.start()
        self.assertEqual(self.tell("work"), "worked")
        self.kill_karst(number)
        self.assertEqual(self.tell("work"), "worked")
        self.assertEqual(self.tell("fork"), "7")
        self.assertEqual(self.tell("exec"), "5")
        path = self.directory / "rest.karst"
        taken = subprocess.run([KARST, "snapshot", str(self.pid), "-o", str(path)], capture_output=True, text=True)
        self.assertEqual(taken.returncode, 0, taken.stderr)
        self.assertEqual(Trace(path).counts["(anonymous namespace)::leaf(long)"], 2000)
        self.assertEqual(self.finish(), "")  # a program whose karst is gone says nothing of it
        _, status = os.waitpid(self.pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 3)

    def test_karst_dies_by_sigkill(self):
        self.check(signal.SIGKILL)

    def test_karst_dies_by_sigbus(self):
        self.check(signal.SIGBUS)


class Secure(TracedTest):
    """A setuid program that carries the runtime: whoever starts it chooses KARST_OPTIONS."""

    def check(self, name, *flags):
        program = pathlib.Path(build(name, "peers/secure.c", "-O1", *flags, compiler="karst-gcc"))
        copy = self.directory / name
        copy.write_bytes(program.read_bytes())
        os.chown(copy, NOBODY, NOBODY)
        copy.chmod(0o6755)
        environment = {"KARST_OPTIONS": "memory=1M,stats=1,colour=blue,session=karst-1-2:3",
                       "LD_LIBRARY_PATH": str(BIN.parent / "lib")}
        self.assertIn("threads 1 children 1 arenas 1 snapshot 1", self.of(program, environment).stdout)
        run = self.of(copy, environment)
        if not run.stdout.startswith("secure 1"):
            self.skipTest("the file system is mounted with nosuid")
        self.assertEqual(run.stdout, "secure 1 threads 1 children 0 arenas 0 snapshot 0 options none\n")
        self.assertEqual(run.stderr, "")

    def of(self, program, environment, **more):
        run = subprocess.run([program], capture_output=True, text=True, env=environment, timeout=TIMEOUT, **more)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run

    @needs_root
    def test_a_program_with_file_capabilities(self):
        """Nobody's process gets a right by exec that nobody has not."""
        program = pathlib.Path(build("secure_static", "peers/secure.c", "-O1", "--karst-link", "-static",
                                     compiler="karst-gcc"))
        place = pathlib.Path(tempfile.mkdtemp(prefix="karst-"))  # nobody has to reach it
        self.addCleanup(shutil.rmtree, place)
        place.chmod(0o755)
        copy = place / "secure"
        copy.write_bytes(program.read_bytes())
        copy.chmod(0o755)
        environment = {"KARST_OPTIONS": "memory=1M"}
        as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self.assertIn("arenas 1", self.of(copy, environment, **as_nobody).stdout)
        try:  # linux/capability.h: revision 2, effective; CAP_NET_RAW
            os.setxattr(copy, "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))
        except OSError as error:
            self.skipTest(f"no file capabilities here: {error}")
        run = self.of(copy, environment, **as_nobody)
        if not run.stdout.startswith("secure 1"):
            self.skipTest("the file system is mounted with nosuid")
        self.assertEqual(run.stdout, "secure 1 threads 1 children 0 arenas 0 snapshot 0 options none\n")

    @needs_root
    def test_a_setuid_program_that_is_linked_with_the_runtime(self):
        self.check("secure", "--karst-link")

    @needs_root
    def test_a_static_setuid_program(self):
        if not (BIN.parent / "lib" / "libkarst.a").exists():
            self.skipTest("libkarst.a is not built")
        self.check("secure_static", "--karst-link", "-static")


class ForeignFiles(TracedTest):
    @needs_root
    def test_a_file_whose_link_reads_as_an_arena_is_not_opened(self):
        """So are others that come into the arena's place between the look at the link and its opening."""
        program = build("masquerade", "peers/masquerade.c", "-O1", compiler="gcc")
        attacker = subprocess.Popen([program, self.directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(attacker.communicate)
        self.addCleanup(attacker.kill)
        link = attacker.stdout.readline()
        if not link and attacker.wait() == 77:
            self.skipTest("no file system can be mounted here, or this kernel takes O_PATH for opening")
        self.assertEqual(link, "/memfd:karst-arena (deleted)\n")
        subprocess.run([KARST, "status", str(attacker.pid)], capture_output=True, text=True, timeout=TIMEOUT)
        subprocess.run([KARST, "ps"], capture_output=True, text=True, timeout=TIMEOUT)
        attacker.stdin.write("\n")
        attacker.stdin.flush()
        self.assertEqual(attacker.stdout.readline(), "0\n")


class Voice(TracedTest):
    """What libkarst says goes to the stderr that it found at the start, or nowhere, and never holds up the program."""
    SAID = "gives up reading the processor's clock"

    def start(self, *how, stderr=subprocess.PIPE):
        process = subprocess.Popen([build("voice", "peers/voice.c", "-O1", compiler="karst-gcc"), *how], stderr=stderr,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, "LD_PRELOAD": RUNTIME})
        self.addCleanup(process.kill)
        return process

    def finish(self, process, out="done\n", dropped=True):
        """Its stderr, if that is a pipe."""
        self.assertEqual(process.stdout.readline(), out)
        status = subprocess.run([KARST, "status", str(process.pid)], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(status.returncode, 0, status.stderr)
        self.assertEqual("messages     1 of libkarst's not written" in status.stdout, dropped, status.stdout)
        _, err = process.communicate("\n", timeout=TIMEOUT)
        self.assertEqual(process.returncode, 3)
        return err

    def test_is_heard_on_stderr(self):
        self.assertIn(self.SAID, self.finish(self.start(), dropped=False))

    def test_is_not_in_a_file_that_took_the_place_of_stderr(self):
        file = self.directory / "data"
        self.assertEqual(self.finish(self.start("file", file)), "")
        self.assertEqual(file.read_text(), "")

    def test_is_not_in_a_connection_that_took_the_place_of_stderr(self):
        self.assertEqual(self.finish(self.start("socket"), "0 bytes done\n"), "")

    def test_does_not_wait_for_the_reader_of_a_pipe(self):
        self.assertNotIn(self.SAID, self.finish(self.start("full")))

    def test_does_not_end_a_program_whose_pipe_nobody_reads(self):
        read, write = os.pipe()
        os.close(read)
        process = self.start(stderr=write)
        os.close(write)
        self.finish(process)

    def test_does_not_end_a_program_that_may_write_no_file(self):
        with open(self.directory / "stderr", "w") as file:
            process = self.start("limit", stderr=file)
        self.finish(process)

    def test_that_it_was_not_heard_is_said_by_karst_run(self):
        run = self.run_traced(build("voice", "peers/voice.c", "-O1", compiler="karst-gcc"), "file",
                              self.directory / "data", status=3)
        self.assertIn("could not say something of its tracing", run.err)


class Scribbled(PeersTest):
    """Whoever holds the memfd may write to it: a forked child that gave up its rights, say. The trace is lost then; the
    program is not."""

    def scribble(self, arena, value):
        end = os.fstat(arena).st_size
        at = 0
        while at < end:
            try:
                at = os.lseek(arena, at, os.SEEK_DATA)
            except OSError:  # nothing but a hole
                return
            behind = os.lseek(arena, at, os.SEEK_HOLE)
            while at < behind:
                size = min(behind - at, 1 << 16)
                os.pwrite(arena, value(size), at)
                at += size

    def check(self, value, *options):
        self.start(*options)
        arena = self.arena_of(self.pid)
        self.addCleanup(os.close, arena)
        for _ in range(5):
            self.scribble(arena, value)
            for command, answer in (("work", "worked"), ("threads", "0"), ("fork", "7"), ("name", "0")):
                self.assertEqual(self.tell(command), answer)
        self.tell("save " + str(self.directory / "own.karst"))
        self.scribble(arena, value)
        self.assertEqual(self.tell("exec"), "5")
        self.assertEqual(self.tell("work"), "worked")
        self.kill_karst()
        self.finish()
        _, status = os.waitpid(self.pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 3)

    def setUp(self):
        super().setUp()
        if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1) != 0:
            self.skipTest("this kernel gives orphans to init alone")

    def test_arena_full_of_ones_harms_no_program(self):
        self.check(lambda size: b"\xff" * size)

    def test_arena_full_of_small_numbers_harms_no_program(self):
        self.check(lambda size: b"\x01\0\0\0" * (size // 4))

    def test_arena_full_of_random_numbers_harms_no_program(self):
        self.check(os.urandom)

    def test_scribbled_tables_of_watches_harm_no_program(self):
        for value in (os.urandom, lambda size: b"\x01\0\0\0" * (size // 4)):
            self.check(value, "--slowest", "leaf:10", "--over", "work:1us:1000", "--memory", "256K")

    def test_a_scribbled_arena_under_a_budget_harms_no_program(self):
        self.check(os.urandom, "--budget", "1%", "--memory", "256K")


if __name__ == "__main__":
    main()
