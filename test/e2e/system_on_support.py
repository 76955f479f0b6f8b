"""A server that runs (system_on/server.cc), its clients, and karst, which is asked to record it from some moment on."""
import csv
import io
import socket
import subprocess
from collections import Counter

from support import KARST, TIMEOUT, TracedTest, Trace, build

FLAGS = {
    "now": ("-Wl,-z,now",),
    "lazy": ("-Wl,-z,lazy",),
    "no-plt": ("-fno-plt",),
    "no-pie": ("-no-pie", "-fno-pie", "-Wl,-z,lazy"),
}
ALL = ("--budget", "off", "--min-instructions", "0", "--memory", "256M")


def server(way="now", compiler="g++"):
    return build(f"system_on-{way}-{compiler}", "system_on/server.cc", "-O1", "-pthread", *FLAGS[way],
                 compiler=compiler)


def server_of(child):
    """The only child of karst run."""
    return int(open(f"/proc/{child.pid}/task/{child.pid}/children").read().split()[0])


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(TIMEOUT)
        self.socket.connect(str(path))
        self.lines = self.socket.makefile("rw")
        self.thread = int(self.lines.readline())

    def send(self, request):
        self.lines.write(request + "\n")
        self.lines.flush()

    def ask(self, request):
        self.send(request)
        return self.lines.readline().strip()

    def work(self, numbers):
        for number in numbers:
            if self.ask(f"work {number}") != f"done {number}":
                raise AssertionError(f"request {number} was lost")

    def counts(self):
        return [int(n) for n in self.ask("count").split()]

    def close(self):
        self.lines.close()
        self.socket.close()


class SystemOnTest(TracedTest):
    def karst(self, *words, status=0):
        done = subprocess.run([KARST, *map(str, words)], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout if words[0] in ("files", "locks", "memory", "report", "ps") else done.stderr

    def start(self, *command, before=(), env=None):
        self.path = self.directory / "socket"
        child = subprocess.Popen([*before, *command, str(self.directory), str(self.path)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.directory, env=env)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), "ready\n")
        return child

    def client(self):
        client = Client(self.path)
        self.addCleanup(client.close)
        return client

    def snapshot(self, pid, whole=True):
        path = self.directory / "moment.karst"
        path.unlink(missing_ok=True)
        self.karst("snapshot", pid, "-o", path)
        trace = Trace(path)
        if whole:
            self.assertEqual(trace.problems, [])
        return trace

    def csv(self, command, trace, *options):
        return list(csv.DictReader(io.StringIO(self.karst(command, "--format", "csv", trace.path, *options))))

    def written(self, trace):
        """Bytes and calls by file."""
        told = Counter()
        for call in self.csv("files", trace):
            if call["call"] == "pwrite":
                told[call["file"][-1]] += int(call["written"])
                told["calls"] += 1
        return told

    def bytes_between(self, before, after):
        told = Counter({str(i): after[i + 1] - before[i + 1] for i in range(4)})
        told["calls"] = after[0] - before[0]
        return told
