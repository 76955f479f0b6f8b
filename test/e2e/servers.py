"""Servers as Debian has them, under load on loopback: --system locks,files,net,memory at once.

Each client keeps what it was answered, and how many bytes went either way. Answers are those of an untraced server. The
trace has each client by its port with exactly these bytes; the clients are the oracle. script/setup installs none of the
servers, as they are daemons: what is missing is skipped.
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

from support import KARST, TIMEOUT, TracedTest, Trace, main

CLIENTS, REQUESTS = 8, 250
SYSTEM = ("--system", "locks,files,net,memory", "--memory", "1G", "--budget", "off")


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        self.port = self.socket.getsockname()[1]
        self.sent = self.received = 0
        self.answers = []

    def send(self, data):
        self.socket.sendall(data)
        self.sent += len(data)

    def line(self):
        return self.take(self.file.readline())

    def bytes(self, size):
        return self.take(self.file.read(size))

    def take(self, data):
        assert data, "the server has closed the connection"
        self.received += len(data)
        self.answers.append(data)
        return data


def redis(client, number):
    for request in range(REQUESTS):
        client.send(b"SET %d:%d %d\r\nGET %d:%d\r\nLPUSH list%d %s\r\n"
                    % (number, request, request, number, request, number, b"x" * (request + 1)))
        for _ in range(4):
            client.line()
    client.send(b"LRANGE list%d 0 -1\r\n" % number)
    for _ in range(1 + 2 * REQUESTS):
        client.line()


def memcached(client, number):
    for request in range(REQUESTS):
        key, value = b"%d.%d" % (number, request), b"y" * (request * 20)
        client.send(b"set %s 0 0 %d\r\n%s\r\nget %s\r\ndelete %s\r\n" % (key, len(value), value, key, key))
        for _ in range(5):
            client.line()


def nginx(client, number):
    for request in range(REQUESTS):
        client.send(b"GET /%s HTTP/1.1\r\nHost: here\r\n\r\n" % (b"page" if request % 10 else b"none"))
        length = 0
        while (line := client.line()) != b"\r\n":
            if line.startswith(b"Date:"):
                client.answers[-1] = b"Date"  # the one line that is not the same in each run
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        client.bytes(length)


class Servers(TracedTest):
    def need(self, name):
        found = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
        if found is None:
            self.skipTest(f"there is no {name}; it is a daemon, so script/setup installs none")
        return found

    def free_port(self):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            return probe.getsockname()[1]

    def serve(self, command, port, work, before=()):
        server = subprocess.Popen([*before, *command], cwd=self.directory, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(server.kill)
        end = time.monotonic() + TIMEOUT
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                if server.poll() is not None or time.monotonic() > end:
                    self.fail(server.communicate()[0])
                time.sleep(0.05)
        clients, failures = [None] * CLIENTS, []

        def one(number):
            try:
                clients[number] = Client(port)
                work(clients[number], number)
            except Exception as error:  # told by the thread that can fail the test
                failures.append(repr(error))

        threads = [threading.Thread(target=one, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.send_signal(signal.SIGTERM)
        out, _ = server.communicate(timeout=TIMEOUT)
        for client in clients:
            if client is not None:
                client.file.close()
                client.socket.close()
        self.assertEqual(failures, [], out)
        self.assertEqual(server.returncode, 0, out)
        return clients, out

    def asked(self, command, trace):
        done = subprocess.run([KARST, command, "--json", str(trace)], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def check(self, command, port, work, has_threads=True):
        plain, _ = self.serve(command, port, work)
        path = self.directory / "trace.karst"
        traced, out = self.serve(command, port, work, (KARST, "run", *self.SCHED, *SYSTEM, "-o", path, "--"))
        self.assertEqual([client.answers for client in traced], [client.answers for client in plain])
        trace = Trace(path)
        self.assertEqual(trace.info["overwritten_events"], 0, out)
        self.assertTrue(trace.info["complete"])
        files = {f["file"]: f for f in self.asked("files", path)["files"]}
        for client in traced:
            peer = files[f"127.0.0.1:{client.port}"]
            self.assertEqual((peer["read"], peer["written"]), (client.sent, client.received), peer)
        memory = self.asked("memory", path)
        self.assertGreater(memory["all"]["allocations"], 10)
        if has_threads:
            self.assertNotEqual(self.asked("locks", path)["locks"], [])
        return files

    def test_redis(self):
        program, port = self.need("redis-server"), self.free_port()
        command = [program, "--port", str(port), "--save", "", "--appendonly", "yes", "--io-threads", "2",
                   "--dir", self.directory, "--daemonize", "no"]

        def answers_of_a_fresh_server(*of, **more):
            shutil.rmtree(self.directory / "appendonlydir", ignore_errors=True)
            return Servers.serve(self, *of, **more)

        self.serve = answers_of_a_fresh_server
        files = self.check(command, port, redis)
        journal = [f for name, f in files.items() if name.endswith(".aof")]
        self.assertTrue(any(f["written"] > CLIENTS * REQUESTS * 20 for f in journal), sorted(files))

    def test_memcached(self):
        program, port = self.need("memcached"), self.free_port()
        user = ("-u", "root") if os.geteuid() == 0 else ()
        self.check([program, "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-t", "4", *user], port, memcached)

    def test_nginx(self):
        program, port = self.need("nginx"), self.free_port()
        (self.directory / "page").write_bytes(bytes(range(256)) * 100)
        configuration = self.directory / "nginx.conf"
        user = "user root;" if os.geteuid() == 0 else ""
        temporary = "".join(f"{kind}_temp_path {self.directory}/{kind};"
                            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        configuration.write_text(f"""{user} daemon off; worker_processes 2; pid {self.directory}/pid; error_log stderr;
            events {{ worker_connections 64; }}
            http {{ access_log off; keepalive_requests 100000; etag off; {temporary}
              server {{ listen 127.0.0.1:{port}; root {self.directory}; }} }}""")
        command = [program, "-c", str(configuration), "-p", str(self.directory)]
        files = self.check(command, port, nginx, has_threads=False)
        page = files[str(self.directory / "page")]
        pages = CLIENTS * sum(1 for request in range(REQUESTS) if request % 10)
        self.assertEqual(page["read"], pages * 25600, page)


if __name__ == "__main__":
    main()
