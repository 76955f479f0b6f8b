"""Names, lines and inlined functions in traces of programs whose debug information lies apart."""
import os
import re
import shutil
import socket
import subprocess
import time

from support import KARST, TIMEOUT, TracedTest, build, main

TREE = """\
main
  work(int volatile*)
    [inlined] helper(int volatile*) (2 copies)
      [inlined] deeper(int volatile*) (2 copies)
    leaf(int)
    leaf(int)
  work(int volatile*)
    leaf(int)
    leaf(int)"""


def program():
    return build("symbols_inlined", "symbols/inlined.cc", "-O2")


def build_id(path):
    notes = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)


class Inlined(TracedTest):
    def test_tree_shows_what_was_inlined_where_and_how_often(self):
        trace = self.run_traced(program()).trace
        lines = trace.tree("--inlined")
        self.assertEqual("\n".join(lines[1:]), TREE)
        self.assertEqual([line for line in lines if "[inlined]" not in line], trace.tree())
        timed = [line for line in trace.timed_tree("--inlined") if "helper" in line or "deeper" in line]
        self.assertEqual(timed, ["   inlined        helper(int volatile*) (2 copies)",
                                 "   inlined          deeper(int volatile*) (2 copies)"])
        self.assertNotIn("deeper", "\n".join(trace.tree("--inlined", "--depth", "3")))

    def test_the_trace_has_it_without_the_program(self):
        copy = self.directory / "app"
        shutil.copy(program(), copy)
        trace = self.run_traced(copy).trace
        copy.unlink()
        self.assertIn("      [inlined] deeper(int volatile*) (2 copies)", trace.tree("--inlined"))


class Apart(TracedTest):
    def setUp(self):
        super().setUp()
        # A build of its own: a cached table would make up for what a test takes away.
        self.env = {"XDG_CACHE_HOME": str(self.directory / "cache"), "DEBUGINFOD_URLS": ""}
        self.app = self.directory / "app"
        self.debug = self.directory / "app.debug"
        shutil.copy(program(), self.app)
        subprocess.run(["objcopy", "--only-keep-debug", self.app, self.debug], check=True)
        subprocess.run(["objcopy", "--strip-all", self.app], check=True)

    def by_build_id(self, root):
        digits = build_id(self.app)
        path = root / ".build-id" / digits[:2] / (digits[2:] + ".debug")
        path.parent.mkdir(parents=True)
        return path

    def assert_named(self, run):
        self.assertEqual(len(self.lines_of_karst(run)), 1, run.err)
        work = [f for f in run.trace.report() if f["function"] == "work(int volatile*)"]
        self.assertEqual(len(work), 1)
        self.assertTrue(work[0]["file"].endswith("symbols/inlined.cc"), work)
        self.assertIn("      [inlined] deeper(int volatile*) (2 copies)", run.trace.tree("--inlined"))

    def test_nothing_there_is_one_line_that_says_what_to_get(self):
        self.debug.unlink()
        run = self.run_traced(self.app, env=self.env)
        lines = self.lines_of_karst(run)
        self.assertEqual(len(lines), 2, run.err)
        self.assertIn(build_id(self.app), lines[0])
        self.assertIn("--debug-dir", lines[0])
        self.assertTrue(any(name.startswith("app+0x") for name in run.trace.counts))

    def test_debug_dir_by_option_and_environment(self):
        root = self.directory / "debug"
        shutil.move(self.debug, self.by_build_id(root))
        self.assert_named(self.run_traced(self.app, env=self.env, options=["--debug-dir", str(root)]))
        shutil.rmtree(self.directory / "cache")
        self.assert_named(self.run_traced(self.app, env={**self.env, "KARST_DEBUG_DIR": str(root)}))

    def test_a_debuginfod_server_on_loopback_has_it(self):
        server = shutil.which("debuginfod")
        if server is None:
            self.skipTest("debuginfod is not installed")
        root = self.directory / "served"
        root.mkdir()
        shutil.move(self.debug, root / "app.debug")
        port = self.serve(server, root)
        env = {**self.env, "DEBUGINFOD_URLS": f"http://127.0.0.1:{port}",
               "DEBUGINFOD_CACHE_PATH": str(self.directory / "client")}
        not_asked = self.run_traced(self.app, env=env)
        self.assertIn("--debuginfod, which tells the servers of DEBUGINFOD_URLS this build-id",
                      self.lines_of_karst(not_asked)[0])
        self.assertFalse((self.directory / "client").exists(), "the client was started")
        self.assert_named(self.run_traced(self.app, env=env, options=["--debuginfod"]))
        shutil.rmtree(self.directory / "cache")
        self.assert_named(self.run_traced(self.app, env={**env, "KARST_DEBUGINFOD": "1"}))

    def test_no_server_hears_of_a_program_unless_asked_to(self):
        """Distributions set DEBUGINFOD_URLS for everybody. A build-id tells which program somebody works on."""
        self.debug.unlink()
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            env = {**self.env, "DEBUGINFOD_URLS": f"http://127.0.0.1:{listener.getsockname()[1]}",
                   "DEBUGINFOD_CACHE_PATH": str(self.directory / "client"), "DEBUGINFOD_TIMEOUT": "1"}
            run = self.run_traced(self.app, env=env)
            self.assertIn("--debuginfod", self.lines_of_karst(run)[0])
            listener.settimeout(0.1)
            with self.assertRaises(TimeoutError):
                listener.accept()
            self.run_traced(self.app, env=env, options=["--debuginfod"])
            listener.accept()[0].close()

    def test_debuginfod_without_servers_is_not_understood(self):
        done = subprocess.run([KARST, "run", "--debuginfod", self.app], env={**os.environ, **self.env},
                              capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("DEBUGINFOD_URLS names no servers", done.stderr)

    def serve(self, server, root):
        """The port of a server that has indexed what lies below `root`. A free port may be another's a moment later:
        the server ends then, and the next port is tried."""
        environment = {**os.environ, "DEBUGINFOD_URLS": "", "HOME": str(self.directory)}
        for attempt in range(10):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            with open(self.directory / "server.log", "wb") as log:
                process = subprocess.Popen([server, "-F", "-d", str(self.directory / f"index-{attempt}.sqlite"), "-p",
                                            str(port), str(root)], stdout=log, stderr=log, env=environment)
            self.addCleanup(process.wait)
            self.addCleanup(process.terminate)
            if self.wait_for_index(process, port):
                return port
        return self.fail((self.directory / "server.log").read_text(errors="replace"))

    def wait_for_index(self, process, port):
        """Until the server has seen the file; asks for it as any client does. False if the server has ended."""
        request = f"GET /buildid/{build_id(self.app)}/debuginfo HTTP/1.0\r\n\r\n".encode()
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            if process.poll() is not None:
                return False
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                    connection.sendall(request)
                    if b" 200 " in connection.recv(4096).split(b"\r\n")[0] + b" ":
                        return process.poll() is None
            except OSError:
                pass
            time.sleep(0.2)
        return self.fail("the debuginfod server did not index the file")

    def test_a_server_that_is_not_there_is_said_in_the_same_line(self):
        self.debug.unlink()
        run = self.run_traced(self.app, options=["--debuginfod"],
                              env={**self.env, "DEBUGINFOD_URLS": "http://127.0.0.1:1",
                                   "DEBUGINFOD_CACHE_PATH": str(self.directory / "client")})
        lines = self.lines_of_karst(run)
        self.assertEqual(len(lines), 2, run.err)
        self.assertIn("http://127.0.0.1:1", lines[0])


if __name__ == "__main__":
    main()
