"""Snapshots of a process under karst run carry its thread states, kept calls and triggers: by karst snapshot, by the
program itself, by a signal. Where karst run cannot answer they say why."""
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest
from pathlib import Path

import support
from support import KARST, TIMEOUT

sys.path.insert(0, str(support.ROOT / "test" / "docs"))
import decode_trace  # noqa: E402

AT, UNKNOWN_TID = 7, 0xffffffff
NOBODY = 65534
MAGIC, VERSION, ASKS, OTHER_USER = 0x5453524B, 5, 4, 1


class SnapshotsTest(support.TracedTest):
    def setUp(self):
        super().setUp()
        self.program = support.build("snapshots", "sched/snapshots.cc", "-O1", "-pthread")
        self.path = self.directory / "whole.karst"

    def start(self, *options):
        self.run_ = subprocess.Popen(
            [KARST, "run", "--sched", "perf", "--signal", "USR2", "--snapshots", str(self.directory), *options, "-o",
             str(self.path), "--", str(self.program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.run_.communicate)
        self.addCleanup(self.run_.kill)
        self.assertEqual(self.run_.stdout.readline(), "ready\n")
        (self.pid,) = (int(p) for p in
                       Path(f"/proc/{self.run_.pid}/task/{self.run_.pid}/children").read_text().split())

    def tell(self, *words):
        self.run_.stdin.write(" ".join(words) + "\n")
        self.run_.stdin.flush()
        return self.run_.stdout.readline().split()

    def save(self, name="own.karst"):
        """The trace that the program writes of itself, and how many milliseconds it took."""
        path = self.directory / name
        word, result, took = self.tell("save", str(path))
        self.assertEqual((word, result), ("saved", "0"))
        return path, float(took)

    def snapshot(self, *options):
        path = self.directory / f"outside{len(options)}.karst"
        done = subprocess.run([KARST, "snapshot", str(self.pid), *options, "-o", str(path)], capture_output=True,
                              text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def by_signal(self):
        os.kill(self.pid, signal.SIGUSR2)
        path = self.directory / f"snapshots-{self.pid}-1.karst"
        self.assertTrue(any(path.exists() or time.sleep(0.01) for _ in range(TIMEOUT * 100)))
        return path

    def finish(self):
        self.run_.stdin.close()
        self.run_.stdin = None
        err = self.run_.communicate(timeout=TIMEOUT)[1]
        self.assertEqual(self.run_.returncode, 0, err)

    @staticmethod
    def records(path):
        """The records, and the stretch that they tell of. What a part says of its begin, or of doubts, is left out."""
        trace = decode_trace.Trace(path.read_bytes())
        told = [r for r in trace.states if r[5] != AT and (r[1], r[2]) != (UNKNOWN_TID, UNKNOWN_TID)]
        return told, trace.state_source

    def assert_same_states(self, part):
        states = support.Trace(part).info["states"]
        whole, _ = self.records(self.path)
        some, source = self.records(part)
        begin, end = source[4], source[5]
        expected = [r for r in whole if begin <= r[0] < end]
        self.assertGreater(len({r[1] for r in some} - {UNKNOWN_TID}), 1, "the two that work are in it")
        self.assertEqual([r for r in some if r[0] < end], expected)
        self.assertGreater(states["records"], 10)

    def assert_kept(self, part):
        kept = support.Trace(part).info["kept"]
        self.assertEqual(len({m["number"] for m in kept}), len(kept))
        self.assertIn("request(int)", [m["function"] for m in kept if m["kind"] == "slowest"], kept)
        if self.triggers:
            (trigger,) = [m for m in kept if m["kind"] == "trigger"]
            self.assertEqual((trigger["function"], int(trigger["arguments"][0], 16) & 0xffffffff), ("rare(int)", 7))

    def test_states_kept_calls_and_triggers_of_the_range(self):
        self.start("--slowest", "^request:1", "--trigger", "rare")
        self.assertEqual(self.tell("rare"), ["done"])
        time.sleep(0.2)  # the kept call is copied, the whole is longer than the part
        parts = [self.save()[0], self.by_signal(), self.snapshot()]
        short = self.snapshot("--last", "60ms")
        self.finish()
        whole = support.Trace(self.path)
        if whole.info["states"]["backend"] == "none":
            self.skipTest(whole.info["states"]["note"])
        self.triggers = any(m["kind"] == "trigger" for m in whole.info["kept"])  # not on machines without breakpoints
        for part in parts:
            with self.subTest(part.name):
                self.assert_same_states(part)
                self.assert_kept(part)
        self.assert_same_states(short)
        self.assertEqual([m["kind"] for m in support.Trace(short).info["kept"]], ["snapshot"])
        # What the process wrote itself has them after karst resolve, too.
        named = self.directory / "named.karst"
        subprocess.run([KARST, "resolve", str(parts[0]), "-o", str(named)], check=True, capture_output=True)
        self.assert_same_states(named)

    def assert_not_recorded(self, path, why):
        states = support.Trace(path).info["states"]
        self.assertEqual((states["backend"], states["records"]), ("none", 0))
        self.assertIn(why, states["note"])

    def test_karst_run_was_killed(self):
        self.start()
        self.run_.kill()
        self.run_.wait(TIMEOUT)
        path, took = self.save()
        self.assertLess(took, 1500, "nobody is waited for")
        self.assert_not_recorded(path, "had ended")
        self.assert_not_recorded(self.snapshot(), "had ended")

    def test_karst_run_is_stopped(self):
        self.start()
        os.kill(self.run_.pid, signal.SIGSTOP)
        path, took = self.save()
        self.assertGreater(took, 1900)
        self.assert_not_recorded(path, "did not answer in time")
        os.kill(self.run_.pid, signal.SIGCONT)
        self.finish()

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_another_user_with_the_secret_is_told_nothing(self):
        self.start()
        words = Path(f"/proc/{self.pid}/environ").read_bytes().split(b"\0")
        (options,) = [w.decode() for w in words if w.startswith(b"KARST_OPTIONS=")]
        name, secret = re.search(r"session=([^:,]+):(\w+)", options).groups()
        end = time.monotonic_ns()
        message = struct.pack("<8I2QQ2Q", MAGIC, VERSION, os.getpid(), 0, 0, ASKS, 1, 0, 0, self.pid, 0, 0,
                              end) + bytes.fromhex(secret)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
                connection.settimeout(TIMEOUT)
                connection.connect("\0" + name)
                connection.send(message)
                answer, rights, *_ = connection.recvmsg(64, 64)
                os.write(writer, answer + bytes(len(rights)))
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writer)
        with os.fdopen(reader, "rb") as said:
            self.assertEqual(said.read(), struct.pack("<4I", MAGIC, VERSION, OTHER_USER, 0))
        self.finish()


if __name__ == "__main__":
    support.main()
