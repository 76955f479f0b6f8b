"""Clients of the servers: each connects and asks one question after the other; a wrong answer raises."""
import socket
import struct
import subprocess
import threading
import time


class Stream:
    def __init__(self, port, host="127.0.0.1"):
        end = time.monotonic() + 40
        while True:
            try:
                self.socket = socket.create_connection((host, port), timeout=40)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def expect(self, wanted):
        got = self.file.read(len(wanted))
        if got != wanted:
            raise AssertionError(f"got {got!r} for {wanted!r}")

    def close(self):
        self.file.close()
        self.socket.close()


class Redis(Stream):
    def ask(self, n):
        key = b"%d.%d" % (threading.get_ident(), n % 100)
        self.socket.sendall(b"SET %s %d\r\nGET %s\r\nINCRBY %s 5\r\nEVAL \"return #ARGV[1]\" 0 %s\r\n" % (key, n, key,
            key, b"x" * (n % 50 + 1)))
        self.expect(b"+OK\r\n$%d\r\n%d\r\n:%d\r\n:%d\r\n" % (len(b"%d" % n), n, n + 5, n % 50 + 1))


class Memcached(Stream):
    def ask(self, n):
        key, value = b"%d.%d" % (threading.get_ident(), n % 100), b"y" * (n % 3000)
        self.socket.sendall(b"set %s 0 0 %d\r\n%s\r\nget %s\r\n" % (key, len(value), value, key))
        self.expect(b"STORED\r\nVALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key, len(value), value))


PAGE = bytes(range(256)) * 100


class Http(Stream):
    PATH = b"/page"

    def ask(self, n):
        self.socket.sendall(b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % (self.PATH if n % 5 else b"/none"))
        status, length = self.file.readline().split(b" ")[1], None
        while (line := self.file.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
            if line.lower().startswith(b"connection: close"):
                raise AssertionError("the server closes the connection")
        body = self.file.read(length)
        if (status, body == PAGE) != ((b"200", True) if n % 5 else (b"404", False)):
            raise AssertionError(f"{status!r}, {len(body)} bytes for question {n}")


class Cached(Http):
    def ask(self, n):
        super().ask(n % 4 + 1)  # what is not there closes the connection to the server behind


class Proxied(Http):
    behind = 0  # port of the server that it asks

    def __init__(self, port):
        super().__init__(port)
        self.PATH = b"http://127.0.0.1:%d%s" % (self.behind, Http.PATH)

    def ask(self, n):
        super().ask(n % 4 + 1)


class Names:
    def __init__(self, port):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(40)
        self.socket.connect(("127.0.0.1", port))
        end = time.monotonic() + 40
        while True:  # a datagram to nobody is an error at once
            try:
                self.ask(1)
                break
            except (OSError, AssertionError):  # nobody is there yet, or has read its zones
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def ask(self, n):
        name = b"h%d" % (n % 50)
        question = b"".join(bytes([len(part)]) + part for part in (name, b"test", b"zone")) + b"\0\0\1\0\1"
        self.socket.send(struct.pack(">HHHHHH", n & 65535, 0x100, 1, 0, 0, 0) + question)
        answer = self.socket.recv(4096)
        count = struct.unpack(">H", answer[6:8])[0]
        at = 12 + len(question)
        if answer[:2] != struct.pack(">H", n & 65535) or count != 1 or answer[at + 12:at + 16] != bytes([10, 0, 0, n % 50]):
            raise AssertionError(f"wrong answer {answer!r}")

    def close(self):
        self.socket.close()


class Postgres(Stream):
    """The protocol, version 3, without a password."""

    def __init__(self, port):
        end = time.monotonic() + 40
        while True:
            super().__init__(port)
            words = b"user\0postgres\0database\0postgres\0\0"
            self.socket.sendall(struct.pack(">II", len(words) + 8, 196608) + words)
            try:
                self.until_ready()
                return
            except AssertionError:  # it is starting up
                self.close()
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def until_ready(self):
        rows = []
        while True:
            kind, length = struct.unpack(">cI", self.file.read(5))
            body = self.file.read(length - 4)
            if kind == b"E":
                raise AssertionError(body)
            if kind == b"D":
                rows.append(body[6:])
            if kind == b"Z":
                return rows

    def ask(self, n):
        query = (b"begin; create temp table if not exists t(a int, b text); insert into t select i, md5(i::text) from "
                 b"generate_series(1, 50) i; select count(distinct b) + %d from t; truncate t; commit;\0" % n)
        self.socket.sendall(b"Q" + struct.pack(">I", len(query) + 4) + query)
        if (rows := self.until_ready()) != [b"%d" % (50 + n)]:
            raise AssertionError(f"{rows}")


class Mariadb:
    """Debian's client, one for all questions."""

    def __init__(self, port):
        Stream(port).close()
        self.client = subprocess.Popen(["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uroot", "-N", "-B",
            "--unbuffered"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.ask(0)

    def ask(self, n):
        self.client.stdin.write(b"create temporary table if not exists test.t(a int primary key, b text) engine=innodb; "
            b"begin; insert into test.t "
                                b"select seq, md5(seq) from test.seqs; select count(distinct b) + %d from test.t; "
                                b"delete from test.t; commit;\n"
                                .replace(b"test.seqs", b"(select 1 seq union select 2 union select 3) s") % n)
        self.client.stdin.flush()
        if (line := self.client.stdout.readline()) != b"%d\n" % (3 + n):
            raise AssertionError(f"{line}")

    def close(self):
        self.client.stdin.close()
        self.client.stdout.close()
        self.client.wait()


class Mqtt(Stream):
    def __init__(self, port):
        super().__init__(port)
        self.topic = b"t%08x" % (threading.get_ident() & 0xffffffff)
        name = b"\0\x09" + self.topic
        self.socket.sendall(b"\x10" + bytes([10 + len(name)]) + b"\0\4MQTT\4\2\0\0" + name)
        self.expect(b"\x20\2\0\0")
        self.socket.sendall(b"\x82" + bytes([2 + len(name) + 1]) + b"\0\1" + name + b"\0")
        self.expect(b"\x90\3\0\1\0")

    def ask(self, n):
        message = b"\x30" + bytes([11 + n % 100]) + b"\0\x09" + self.topic + b"z" * (n % 100)
        self.socket.sendall(message)
        self.expect(message)


class Lines(Stream):
    def ask(self, n):
        self.socket.sendall(b"%d\n" % n)
        self.expect(b"%d\n" % (n * n + 21))
