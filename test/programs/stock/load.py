"""A server that runs, and clients that ask it all the time."""
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

from clients import PAGE, Proxied
from servers import BEHIND


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def family(pid):
    """The process and all below it but Karst's own: number and time of start."""
    parents, found = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
            fields = rest.split()
        except OSError:
            continue
        if fields[0] != "Z" and "(karst-" not in name:
            parents[int(path.parent.name)] = (int(fields[1]), fields[19])
    todo = [pid]
    while todo:
        one = todo.pop()
        if one in parents:
            found[one] = parents[one][1]
        todo += [p for p, (parent, _) in parents.items() if parent == one]
    return found


class Load:
    """Clients that ask until they are told to stop."""

    def __init__(self, server, port, clients=3):
        self.counts, self.gaps, self.failures, self.stopping = [0] * clients, [0.0] * clients, [], False
        self.started = threading.Barrier(clients + 1)
        self.threads = [threading.Thread(target=self.one, args=(server, port, n), daemon=True) for n in range(clients)]
        for thread in self.threads:
            thread.start()
        try:
            self.started.wait(60)
        except threading.BrokenBarrierError:
            self.stopping = True

    def one(self, server, port, number):
        try:
            client = server.client(port)
            client.ask(1)
            self.started.wait(60)
            while not self.stopping:
                begin = time.monotonic()
                client.ask(self.counts[number])
                self.gaps[number] = max(self.gaps[number], time.monotonic() - begin)
                self.counts[number] += 1
                time.sleep(0.001)
            client.close()
        except Exception as error:  # told by who looks at failures
            self.failures.append(repr(error)[:300])
            self.started.abort()

    def gap(self):
        """The longest since the last time this was asked."""
        longest, self.gaps[:] = max(self.gaps), [0.0] * len(self.gaps)
        return longest

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join(60)
        if any(thread.is_alive() for thread in self.threads):
            self.failures.append("a client waits for its answer")


class Running:
    """A server that was started, and its load."""

    def __init__(self, bench, server, before=(), behind=None):
        self.server, self.directory = server, bench.home / f"server-{server.name}"
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir()
        self.directory.chmod(0o777 if server.name == "squid" else 0o755)  # squid has a user of its own
        self.port = free_port()
        places = {"{d}": str(self.directory), "{p}": str(self.port), "{b}": str(behind.port if behind else 0)}
        if server is not BEHIND:
            Proxied.behind = behind.port if behind else 0

        def filled(text):
            for name, value in places.items():
                text = text.replace(name, value)
            return text
        (self.directory / "page").write_bytes(PAGE)
        for name, text in server.files.items():
            (self.directory / name).write_text(filled(text))
        if server.user != "root":
            shutil.chown(self.directory, server.user)
        environment = {**bench.environment, "HOME": str(self.directory)}
        user = {} if server.user == "root" else {"user": server.user, "group": server.user, "extra_groups": []}
        if server.prepare:
            subprocess.run(filled(server.prepare), shell=True, cwd=self.directory, env=environment, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, **user)
        self.log = open(bench.home / f"{server.name}.log", "wb")
        if before and user:
            before, user = [*before[:-1], "--user", server.user, "--"], {}
        begin = time.monotonic()
        self.process = subprocess.Popen([*before, *map(filled, server.words)], cwd=self.directory, env=environment,
            stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, start_new_session=True, **user)
        self.load = Load(server, self.port)
        self.seconds = time.monotonic() - begin

    def stop(self):
        """Ends load and server: status."""
        self.load.stop()
        time.sleep(0.2)  # lighttpd's status says whether it still had connections
        alive = self.process.poll() is None
        if alive:
            self.process.send_signal(self.server.stop)
        try:
            status = self.process.wait(60)
        except subprocess.TimeoutExpired:
            status = "does not end"
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.log.close()
        return status if alive else f"had ended with {status}"
