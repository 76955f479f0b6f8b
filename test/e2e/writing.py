"""Events are safe in the file before any name is looked up, whatever happens to karst or to what it reads then."""
import os
import pwd
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

from support import BIN, KARST, ROOT, TIMEOUT, Trace, TracedTest, build, main

sys.path.append(str(ROOT / "test" / "docs"))
import decode_trace  # noqa: E402

CALLS = {"main": 1, "work(int volatile*)": 2, "leaf(int)": 4}


class Held(TracedTest):
    """karst is held, by a library before elfutils, where it reads the program's symbols."""

    def setUp(self):
        super().setUp()
        self.app = self.directory / "app"
        shutil.copy(build("symbols_inlined", "symbols/inlined.cc", "-O2"), self.app)
        self.flag = self.directory / "flag"
        self.flag.write_bytes(b"\0")
        self.path = self.directory / "trace.karst"
        self.shim = build("hold.so", "writing/hold.c", "-O1", "-shared", "-fPIC", "-ldl", compiler="gcc")
        self.before = set(os.listdir(self.directory)) | {"cache"}

    def start(self, *options, how=None):
        environment = {**os.environ, "LD_PRELOAD": self.shim, "HOLD_FLAG": str(self.flag),
                       "HOLD_HOW": how or str(self.app), "XDG_CACHE_HOME": str(self.directory / "cache")}
        return subprocess.Popen([KARST, "run", "-o", self.path, "--sched", "off", *options, "--", self.app],
                                cwd=self.directory, env=environment, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def wait_until_it_reads(self, karst):
        end = time.monotonic() + TIMEOUT
        while self.flag.read_bytes() != b"\1":
            self.assertIsNone(karst.poll(), "it has ended")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def end(self, karst):
        try:
            out, err = karst.communicate(timeout=TIMEOUT)
        finally:
            karst.kill()
        return out, err

    def assert_all_events_are_there(self):
        trace = Trace(self.path)
        self.assert_whole(trace)
        self.assertEqual(trace.info["calls"], sum(CALLS.values()))
        self.assertEqual(set(os.listdir(self.directory)) - self.before, {"trace.karst"}, "nothing else is left")
        return trace

    def test_a_module_that_becomes_shorter_meanwhile_costs_its_names(self):
        karst = self.start()
        self.wait_until_it_reads(karst)
        os.truncate(self.app, 0)
        _, err = self.end(karst)
        self.assertEqual(karst.returncode, 0, err)
        self.assertIn("its reader died by SIGBUS: the file became shorter", err)
        self.assertIn("7 calls kept", err)
        trace = self.assert_all_events_are_there()
        self.assertTrue(all(name.startswith("app+0x") for name in trace.counts), trace.counts)

    def test_a_crash_while_names_are_read_costs_names(self):
        karst = self.start(how="crash")
        _, err = self.end(karst)
        self.assertEqual(karst.returncode, 0, err)
        self.assertIn("its reader died by signal 11", err)
        trace = self.assert_all_events_are_there()
        self.assertTrue(all(name.startswith("app+0x") for name in trace.counts), trace.counts)

    def test_a_crash_while_the_program_waits_for_its_patterns_harms_it_not(self):
        karst = self.start("--not-functions", "leaf", "--min-instructions", "2", how="crash")
        out, err = self.end(karst)
        self.assertEqual((karst.returncode, out), (0, "36\n"), err)
        self.assert_all_events_are_there()

    def test_ctrl_c_leaves_names_out_which_resolve_adds(self):
        karst = self.start()
        self.wait_until_it_reads(karst)
        karst.send_signal(signal.SIGINT)
        _, err = self.end(karst)
        self.assertEqual(karst.returncode, 0, err)
        self.assertIn("interrupted; 'karst resolve' adds them", err)
        trace = self.assert_all_events_are_there()
        self.assertFalse(trace.info["resolved"])
        subprocess.run([KARST, "resolve", self.path], check=True, capture_output=True, timeout=TIMEOUT)
        trace = self.assert_all_events_are_there()
        self.assertTrue(trace.info["resolved"])
        self.assertEqual(trace.counts, CALLS)
        self.assertIn("SRCF", [kind for kind, _ in decode_trace.chunks(self.path.read_bytes())])

    def test_ctrl_c_with_nobody_to_read_what_it_says(self):
        """Its line goes into a pipe without a reader: a failed write, and no SIGPIPE."""
        karst = self.start()
        self.wait_until_it_reads(karst)
        karst.stderr.close()
        karst.send_signal(signal.SIGINT)
        self.assertEqual(karst.wait(TIMEOUT), 0)
        self.assertFalse(self.assert_all_events_are_there().info["resolved"])
        karst.stdout.close()

    def test_a_second_ctrl_c_ends_it_at_once_and_leaves_the_events(self):
        karst = self.start()
        self.wait_until_it_reads(karst)
        karst.send_signal(signal.SIGSTOP)  # both come before it has done anything about one
        karst.send_signal(signal.SIGINT)
        karst.send_signal(signal.SIGTERM)
        karst.send_signal(signal.SIGCONT)
        _, err = self.end(karst)
        self.assertIn(karst.returncode, (-signal.SIGINT, -signal.SIGTERM), err)
        self.assertFalse(self.assert_all_events_are_there().info["resolved"])

    def test_a_karst_that_dies_while_it_writes_events_is_replaced(self):
        karst = self.start(how="die")
        _, err = self.end(karst)  # waits for all that have its stderr
        self.assertEqual(karst.returncode, -signal.SIGBUS, err)
        self.assertIn("a second process of karst has written it", err)
        self.assertFalse(self.assert_all_events_are_there().info["resolved"])

    def test_a_killed_karst_leaves_the_events(self):
        karst = self.start()
        self.wait_until_it_reads(karst)
        karst.kill()
        karst.communicate(timeout=TIMEOUT)
        trace = self.assert_all_events_are_there()
        self.assertFalse(trace.info["resolved"])


class Foreign(TracedTest):
    def test_nothing_is_written_into_another_users_home(self):
        """sudo may leave HOME as it was: neither karst's cache and marks nor debuginfod's client make anything there."""
        if os.geteuid() != 0:
            self.skipTest("needs root: there is no home of another user")
        home = self.directory / "home"
        home.mkdir()
        nobody = pwd.getpwnam("nobody")
        os.chown(home, nobody.pw_uid, nobody.pw_gid)
        app = build("symbols_inlined", "symbols/inlined.cc", "-O2")
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "DEBUGINFOD_CACHE_PATH")}
        environment |= {"HOME": str(home), "DEBUGINFOD_URLS": "http://127.0.0.1:1", "KARST_DEBUGINFOD": "1"}
        stripped = self.directory / "app"
        subprocess.run(["objcopy", "--strip-debug", app, stripped], check=True)
        for sched in ("off", "auto"):
            done = subprocess.run([KARST, "run", "-o", self.directory / "trace.karst", "--sched", sched, "--", stripped],
                                  cwd=self.directory, env=environment, capture_output=True, text=True, timeout=TIMEOUT)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(list(home.iterdir()), [], done.stderr)
        info = subprocess.run([KARST, "info", self.directory / "trace.karst"], capture_output=True, text=True,
                              check=True, env=environment, timeout=TIMEOUT)
        self.assertEqual(list(home.iterdir()), [])
        self.assertIn("debuginfod servers are not asked", done.stderr + info.stdout)

    def test_a_snapshot_by_root_reads_as_the_programs_user(self):
        if os.geteuid() != 0:
            self.skipTest("needs root: there are no other rights to take")
        secret = self.directory / "secret"
        secret.write_text("the password of root is swordfish\n")
        secret.chmod(0o600)
        nobody = pwd.getpwnam("nobody")
        theirs = Path("/tmp") / f"karst-{os.getpid()}"
        theirs.mkdir(mode=0o755)
        self.addCleanup(shutil.rmtree, theirs, ignore_errors=True)
        app = theirs / "app"
        shutil.copy(build("writing_secret", "writing/secret.cc", "-O1", f'-DSECRET="{secret}"',
                          output=f"writing_secret-{os.getpid()}"), app)
        os.chown(theirs, nobody.pw_uid, nobody.pw_gid)
        karst = subprocess.Popen([KARST, "run", "-o", theirs / "own.karst", "--sched", "off", "--", app], cwd=theirs,
                                 user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[], stderr=subprocess.PIPE,
                                 env={**os.environ, "HOME": str(theirs), "XDG_CACHE_HOME": str(theirs)})
        try:
            path = self.directory / "root.karst"
            end = time.monotonic() + TIMEOUT
            taken = None
            while not path.exists() and time.monotonic() < end and karst.poll() is None:
                taken = subprocess.run([KARST, "snapshot", "app", "-o", path], cwd=self.directory, text=True,
                                       capture_output=True, timeout=TIMEOUT)
                if ": 0 threads" in taken.stderr:  # it has its arena, and has still to begin
                    path.unlink()
                time.sleep(0.05)
        finally:
            karst.terminate()
            _, err = karst.communicate(timeout=TIMEOUT)
        self.assertTrue(path.exists(), (taken, err))
        self.assertIn("Permission denied", taken.stderr)
        self.assertIn("named()", Trace(path).counts)
        for kind, payload in decode_trace.chunks(path.read_bytes()):
            self.assertNotIn(b"swordfish", payload, kind)


class Strip(TracedTest):
    """What a trace reveals can be taken out; looked for in the file's bytes by a second decoder."""

    PLANTED = {"source": b"// planted-source", "commands": b"planted-argument", "options": b"memory=1313K",
               "paths": b"planted-directory", "names": b"planted_function", "thread": b"hush"}

    def found(self, path):
        content = b"".join(payload for _, payload in decode_trace.chunks(path.read_bytes()))
        return {name for name, text in self.PLANTED.items() if text in content}

    def setUp(self):
        super().setUp()
        place = self.directory / "planted-directory"
        place.mkdir()
        # Copied there, so that the source's path has it, too.
        source = place / "hush.cc"
        shutil.copy(ROOT / "test/e2e/writing/hush.cc", source)
        self.app = place / "hush"
        subprocess.run([BIN / "karst-g++", "-g", "-O1", source, "-o", self.app], check=True, timeout=TIMEOUT)
        self.run_traced(self.app, "planted-argument", options=("--memory", "1313K"))
        self.path = self.directory / "trace.karst"
        self.stripped = self.directory / "stripped.karst"

    def strip(self, *how, of=None):
        return subprocess.run([KARST, "resolve", *how, of or self.path, "-o", self.stripped], text=True,
                              capture_output=True, timeout=TIMEOUT)

    def test_all_but_names_goes_if_nothing_is_said(self):
        self.assertEqual(self.found(self.path), set(self.PLANTED), "else this test would find nothing, whatever it did")
        done = self.strip("--strip")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.found(self.stripped), {"names", "thread"})
        trace = Trace(self.stripped)
        self.assertEqual(trace.counts, Trace(self.path).counts)
        function = next(f for f in trace.report() if f["function"] == "planted_function()")
        self.assertEqual((function["file"], function["line"]), ("hush.cc", 4))
        for module in trace.processes[0]["modules"]:
            self.assertNotIn("/", module["path"])
            self.assertEqual(module["build_id"], "")

    def test_each_kind_by_itself_and_all(self):
        for what, gone in (("source", {"source"}), ("commands", {"commands", "options"}), ("paths,commands", {"paths", "commands", "options"}),
                           ("names,source", {"names", "source", "thread"}), ("host,build-ids,values", set())):
            done = self.strip(f"--strip={what}")
            self.assertEqual(done.returncode, 0, done.stderr)
            left = self.found(self.stripped) - ({"thread"} if "thread" in gone else set())
            self.assertEqual(left, set(self.PLANTED) - gone, what)
        done = self.strip("--strip=all")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLessEqual(self.found(self.stripped), {"thread"}, "modules' last parts stay")
        self.assertEqual(sorted(Trace(self.stripped).counts.values()), [1, 1])
        self.assertEqual(self.strip("--strip=hats").returncode, 2)

    def test_a_raw_trace_is_named_and_stripped_at_once(self):
        raw = self.directory / "raw.karst"
        self.write_raw(raw)
        self.assertFalse(Trace(raw).info["resolved"])
        done = self.strip("--strip=source,paths,commands", of=raw)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.found(self.stripped), {"names", "thread"})
        self.assertEqual(Trace(self.stripped).counts, Trace(self.path).counts)

    def write_raw(self, to):
        """The trace without what is looked up."""
        data = self.path.read_bytes()
        header = bytearray(data[:32])
        header[16:24] = bytes(8)
        header[28:32] = decode_trace.crc32c(bytes(header[:28])).to_bytes(4, "little")
        out = bytes(header)
        at = 32
        while at < len(data):
            kind, _, stored = struct.unpack_from("<4sIQ", data, at)
            size = 32 + (stored + 7) // 8 * 8
            if kind not in (b"SYMB", b"INLN", b"SRCF", b"ENDT"):
                out += data[at:at + size]
            at += size
        to.write_bytes(out)


if __name__ == "__main__":
    main()
