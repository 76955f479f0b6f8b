"""karst run --system locks on servers and tools as Debian has them: no request is lost, and the waits are the kernel's.

All listen on a socket in the test's directory. The oracle for waits is `strace -f -k` of the same run: where a thread
slept in futex(), a wait of that thread for a lock at that address must have been recorded.
"""
import bisect
import csv
import io
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import defaultdict

from support import KARST, TIMEOUT, TracedTest, main

CLIENTS, REQUESTS = 6, 300
LARGEST_LOCK = 56  # bytes of a rwlock, the largest of them
# Lines of strace -k: a thread goes to sleep, its call ended, and the frames behind that. pthread_join() is no wait for
# a lock; its futex is not private.
SLEEPS = re.compile(r"^(\d+) .*futex\((0x[0-9a-f]+), FUTEX_WAIT(?:_BITSET)?_PRIVATE")
ENDS = re.compile(r"^(\d+) .*futex")
FRAME = re.compile(r"^ > \S*\((\w+)")


def need(test, name):
    found = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if found is None:
        test.skipTest(f"there is no {name}")
    return found


class Client:
    """Lines to a server, and its answers."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(TIMEOUT)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rwb")

    def ask(self, line, lines=1):
        self.file.write(line)
        self.file.flush()
        return b"".join(self.file.readline() for _ in range(lines))

    def close(self):
        self.file.close()
        self.socket.close()


class LocksServers(TracedTest):
    def serve(self, path, work, *command, options=(), launcher=(), status=0):
        """Runs the server under karst, has CLIENTS threads do work(client, number), ends it by SIGTERM."""
        trace = self.directory / "trace.karst"
        server = subprocess.Popen([*launcher, KARST, "run", "--output", str(trace), *self.SCHED, "--system", "locks",
                                   *options, "--", *map(str, command)], cwd=self.directory, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(server.kill)
        end = time.monotonic() + TIMEOUT
        while not path.exists() and server.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        failures = []

        def one(number):
            try:
                client = Client(path)
                work(client, number)
                client.close()
            except Exception as error:  # told by the thread that can fail the test
                failures.append(repr(error))

        threads = [threading.Thread(target=one, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.pid_of(server).send() if launcher else server.send_signal(signal.SIGTERM)
        out, _ = server.communicate(timeout=TIMEOUT)
        self.assertEqual(failures, [], out)
        self.assertEqual(server.returncode, status, out)
        return trace, out

    def pid_of(self, launcher):
        """The karst that a launcher started."""
        children = pathlib.Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()

        class Of:
            @staticmethod
            def send():
                os.kill(int(children[0]), signal.SIGTERM)

        return Of

    def waits(self, trace):
        done = subprocess.run([KARST, "locks", "--by", "wait", "--format", "csv", str(trace)], capture_output=True, text=True,
                              timeout=TIMEOUT)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def commands_tell(self, trace):
        for command in ("locks", "slow", "explain", "tree", "report"):
            done = subprocess.run([KARST, command, str(trace)], capture_output=True, text=True, timeout=TIMEOUT)
            self.assertEqual((done.returncode, done.stdout == ""), (0, False), f"{command}: {done.stderr}")

    def memcached(self, requests=REQUESTS, **more):
        program = need(self, "memcached")
        path = self.directory / "socket"

        def work(client, number):
            client.ask(b"add shared 0 0 1\r\n0\r\n")
            for request in range(requests):
                client.ask(b"incr shared 1\r\n")
                key = b"%d.%d" % (number, request)
                self.assertEqual(client.ask(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(key), key)), b"STORED\r\n")
                self.assertEqual(client.ask(b"get %s\r\n" % key, 3).split()[-2], key)
            if b"%d" % (CLIENTS * requests) in client.ask(b"get shared\r\n", 3):
                self.counted.append(number)

        self.counted = []
        user = ("-u", "root") if os.geteuid() == 0 else ()
        found = self.serve(path, work, program, "-s", path, "-t", "4", "-m", "64", *user, **more)
        self.assertNotEqual(self.counted, [], "increments were lost")
        return found

    def test_memcached(self):
        trace, _ = self.memcached()
        waits = self.waits(trace)
        self.assertLessEqual({wait["kind"] for wait in waits}, {"mutex", "condition"})
        self.assertIn("condition", {wait["kind"] for wait in waits})
        self.commands_tell(trace)

    def test_memcached_against_strace(self):
        log = self.directory / "futex"
        trace, _ = self.memcached(3 * REQUESTS, launcher=self.strace(log))  # of 300 it slept for 3 to 16
        self.assert_all_sleeps_told(log, trace)

    def test_pigz_against_strace(self):
        pigz = need(self, "pigz")
        data = self.directory / "data"
        data.write_bytes(pathlib.Path(KARST).read_bytes()[:12_000_000])
        command = (pigz, "-p", "4", "-b", "64", "-c", "-n", str(data))
        expected = subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT).stdout
        log = self.directory / "futex"
        run = self.run_traced(*command, options=("--system", "locks"), launcher=self.strace(log), text=False)
        self.assertEqual(run.out, expected)
        self.assert_all_sleeps_told(log, run.trace.path)

    def strace(self, log):
        strace = need(self, "strace")
        if subprocess.run([strace, "-k", "-o", "/dev/null", "true"], capture_output=True).returncode != 0:
            self.skipTest("strace shows no stacks, or may not trace")
        return (strace, "-f", "-k", "-qq", "-e", "trace=futex", "-e", "signal=none", "-o", str(log))

    def assert_all_sleeps_told(self, log, trace):
        told, untold = self.slept(log, trace)
        self.assertGreater(told, 3)
        self.assertEqual(untold, [], f"{told} are told")

    def slept(self, log, trace):
        """How many sleeps in futex() strace saw, by whether a wait of that thread for that lock was recorded. A thread
        that waits for a condition sleeps for the mutex, too, when it takes that again."""
        locks = defaultdict(set)
        for wait in self.waits(trace):
            locks[wait["tid"]].add(int(wait["lock"], 16))
        locks = {tid: sorted(of) for tid, of in locks.items()}
        told, untold, asleep, sleeps_seen, stack = 0, [], {}, [], None
        for line in log.read_text().splitlines():
            if frame := FRAME.match(line):
                if stack is not None:
                    stack.append("karst itself" if f" {os.path.realpath(KARST)}(" in line else frame[1])
                continue
            stack = None
            if sleeps := SLEEPS.match(line):
                asleep[sleeps[1]] = (line, int(sleeps[2], 16))
            if "unfinished" not in line and (ends := ENDS.match(line)) and ends[1] in asleep:
                if re.search(r"= \?", line):  # the process ended meanwhile: strace shows no stack
                    asleep.pop(ends[1])
                    continue
                stack = []
                sleeps_seen.append((ends[1], *asleep.pop(ends[1]), stack))
        for tid, line, address, stack in sleeps_seen:
            if "karst itself" in stack:
                continue
            of = locks.get(tid, [])
            at = bisect.bisect_right(of, address) - 1
            if at >= 0 and address < of[at] + LARGEST_LOCK:
                told += 1
            elif not any(name.startswith("pthread_cond_") for name in stack):
                untold.append((line, stack))
        return told, untold

    def test_nginx_with_threads(self):
        program = need(self, "nginx")
        if "--with-threads" not in subprocess.run([program, "-V"], capture_output=True, text=True).stderr:
            self.skipTest("this nginx has no threads")
        path = self.directory / "socket"
        page = bytes(range(256)) * 64
        (self.directory / "page").write_bytes(page)
        configuration = self.directory / "nginx.conf"
        user = "user root;" if os.geteuid() == 0 else ""
        temporary = "".join(f"{kind}_temp_path {self.directory}/{kind};"
                            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        configuration.write_text(f"""{user} daemon off; worker_processes 2; pid {self.directory}/pid; error_log stderr;
            events {{ worker_connections 64; }} thread_pool default threads=3;
            http {{ access_log off; aio threads; sendfile off; {temporary}
              server {{ listen unix:{path}; root {self.directory}; }} }}""")

        def work(client, number):
            for _ in range(REQUESTS // 10):
                client.file.write(b"GET /page HTTP/1.1\r\nHost: here\r\n\r\n")
                client.file.flush()
                self.assertEqual(client.file.readline().split()[1], b"200")
                headers = dict(line.split(b": ") for line in iter(lambda: client.file.readline().strip(), b""))
                self.assertEqual(client.file.read(int(headers[b"Content-Length"])), page)

        trace, out = self.serve(path, work, program, "-c", configuration, "-p", self.directory)
        self.assertNotIn("[alert]", out)
        waits = self.waits(trace)
        self.assertGreater(len({wait["pid"] for wait in waits}), 1, "each worker has threads that wait for work")
        self.commands_tell(trace)

    def test_redis(self):
        program = need(self, "redis-server")
        path = self.directory / "socket"

        def work(client, number):
            for request in range(REQUESTS):
                client.ask(b"INCR shared\r\n")
                self.assertEqual(client.ask(b"SET k%d %d\r\n" % (number, request)), b"+OK\r\n")
                self.assertEqual(client.ask(b"GET k%d\r\n" % number, 2).split()[-1], b"%d" % request)
            if client.ask(b"GET shared\r\n", 2).split()[-1] == b"%d" % (CLIENTS * REQUESTS):
                self.counted.append(number)

        self.counted = []
        trace, _ = self.serve(path, work, program, "--port", "0", "--unixsocket", path, "--save", "", "--io-threads",
                              "3", "--io-threads-do-reads", "yes")
        self.assertNotEqual(self.counted, [], "increments were lost")
        self.assertIn("condition", {wait["kind"] for wait in self.waits(trace)})
        self.commands_tell(trace)


if __name__ == "__main__":
    main()
