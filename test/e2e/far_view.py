"""`karst view ssh://HOST/…`: a page here of what karst has elsewhere. ssh is a script here, which starts a shell; and
Debian's sshd where it is."""
import getpass
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

from support import KARST, TIMEOUT, WORK, build, main

SSH = """#!/bin/sh
printf '%s\\n' "$@" >> {arguments}
while [ "$1" != -- ]; do shift; done
echo "Welcome to $2."
cd {home} && exec sh -c "{how} $3"
"""
KARST_DIRECTORY = str(Path(KARST).parent)


def page(url, path, binary=False):
    with urllib.request.urlopen(url + path, timeout=TIMEOUT) as answer:
        body = answer.read()
    return body if binary else json.loads(body)


def wait_until(what, seconds=TIMEOUT):
    end = time.monotonic() + seconds
    while True:
        found = what()
        if found or time.monotonic() > end:
            return found
        time.sleep(0.05)


class FarView(unittest.TestCase):
    def setUp(self):
        self.directory = WORK / f"far_{self.id().rsplit('.', 1)[-1]}"
        shutil.rmtree(self.directory, ignore_errors=True)
        self.home = self.directory / "home"
        self.home.mkdir(parents=True)
        self.viewers = []
        # The process of karst there is that of ssh here: one that is killed is a connection that is lost.
        self.ssh(self.ssh_that("exec"))

    def tearDown(self):
        for viewer in self.viewers:
            viewer.kill()
            viewer.communicate()

    def ssh_that(self, how):
        return SSH.format(arguments=self.directory / "arguments", home=self.home, how=how)

    def ssh(self, text):
        file = self.directory / "ssh"
        file.write_text(text)
        file.chmod(stat.S_IRWXU)

    def environment(self):
        return {**os.environ, "PATH": f"{self.directory}:{KARST_DIRECTORY}:{os.environ['PATH']}"}

    def viewer(self, *arguments):
        viewer = subprocess.Popen([KARST, "view", "--no-browser", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, env=self.environment())
        self.viewers.append(viewer)
        url = viewer.stdout.readline().strip()
        self.assertRegex(url, r"^http://127\.0\.0\.1:[0-9]+/[0-9a-f]{32}/$")
        return viewer, url

    def end(self, viewer):
        viewer.send_signal(signal.SIGINT)
        said = viewer.communicate(timeout=TIMEOUT)[1]
        self.assertEqual(viewer.returncode, 0, said)
        return said

    def refused(self, *arguments):
        done = subprocess.run([KARST, "view", "--no-browser", *arguments], capture_output=True, text=True, timeout=TIMEOUT,
                              env=self.environment())
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def far_ends(self):
        return [int(pid.name) for pid in Path("/proc").iterdir() if pid.name.isdigit() and self.is_far(pid)]

    def is_far(self, process):
        try:
            return (b"view\0--frames" in (process / "cmdline").read_bytes()
                    and os.readlink(process / "cwd").startswith(str(self.home)) and b"sh\0-c" not in (process / "cmdline").read_bytes())
        except OSError:
            return False

    def cut(self, viewer):
        """The connection, as a network that goes does."""
        ssh = Path(f"/proc/{viewer.pid}/task/{viewer.pid}/children").read_text().split()
        os.kill(int(ssh[0]), signal.SIGKILL)

    def record(self):
        program = build("waiting", "view/waiting.cc", "-O1", "-pthread")
        trace = self.home / "app.karst"
        subprocess.run([KARST, "run", "-o", trace, program], check=True, capture_output=True, timeout=TIMEOUT)
        return trace

    def test_a_file_there_is_as_one_here(self):
        trace = self.record()
        here, near = self.viewer(str(trace))
        there, far = self.viewer("ssh://you@server:2222/app.karst")
        for url in (near, far):
            self.assertEqual(page(url, "api/progress?wait=1")["phase"], "ready")
        facts = page(far, "api/trace")
        self.assertEqual(facts["path"], "app.karst")
        self.assertEqual({**page(near, "api/trace"), "path": 0}, {**facts, "path": 0})
        end = facts["extent"]
        for question in ("functions", "outliers", "flame", f"tiles?begin=0&end={end}&width=800", "minimap?width=500",
                         f"cut?begin=0&end={end}"):
            self.assertEqual(page(near, "api/" + question, True), page(far, "api/" + question, True), question)
        with urllib.request.urlopen(f"{far}api/cut?begin=0&end={end}", timeout=TIMEOUT) as answer:
            self.assertIn("attachment", answer.headers["Content-Disposition"])
        with self.assertRaises(urllib.error.HTTPError) as wrong:
            page(far, "api/call?thread=99&index=0")
        self.assertEqual(wrong.exception.code, 400)
        # The page itself is never from there.
        self.assertEqual(page(near, "", True), page(far, "", True))
        self.assertEqual((self.directory / "arguments").read_text().splitlines()[-5:],
                         ["-p", "2222", "--", "you@server", "karst view --frames"])
        self.assertEqual(self.end(there), "")
        self.end(here)
        self.assertTrue(wait_until(lambda: not self.far_ends()))

    def test_sql_is_asked_there(self):
        self.record()
        viewer, url = self.viewer("ssh://server/app.karst")
        page(url, "api/progress?wait=1")
        try:
            answer = page(url, "api/schema")
        except urllib.error.HTTPError as error:
            answer = json.loads(error.read())
        self.assertNotIn("answers no SQL", str(answer))
        self.end(viewer)

    def test_nothing_listens_there(self):
        self.record()
        viewer, url = self.viewer("ssh://server/app.karst")
        page(url, "api/progress?wait=1")
        far = self.far_ends()
        self.assertEqual(len(far), 1)
        sockets = {os.readlink(file) for file in Path(f"/proc/{far[0]}/fd").iterdir()}
        of_network = {f"socket:[{line.split()[9]}]" for name in ("tcp", "tcp6", "udp", "udp6")
                      for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]}
        self.assertTrue(of_network)
        self.assertFalse(sockets & of_network)
        self.end(viewer)

    def test_a_connection_that_is_lost_is_tried_again(self):
        self.record()
        viewer, url = self.viewer("ssh://server/app.karst")
        page(url, "api/progress?wait=1")
        with urllib.request.urlopen(url + "api/alive?page=x", timeout=TIMEOUT) as events:
            self.cut(viewer)
            seen = []
            while "event: back" not in seen:
                seen.append(events.readline().decode().strip())
            self.assertIn("event: away", seen)
            self.assertIn("connection", seen[seen.index("event: away") + 1])
        self.assertEqual(page(url, "api/progress?wait=1")["phase"], "ready")
        self.assertGreater(page(url, "api/trace")["calls"], 0)
        said = self.end(viewer)
        self.assertIn("trying again\n", said)
        self.assertIn("connected to server again\n", said)

    def test_what_ends_there_for_good_is_said(self):
        trace = self.record()
        viewer, url = self.viewer("ssh://server/app.karst")
        page(url, "api/progress?wait=1")
        trace.unlink()
        self.cut(viewer)
        said = [viewer.stderr.readline()]
        while "trying again" not in said[-1]:  # the shell there may say that it was killed
            said.append(viewer.stderr.readline())
        self.assertIn("there is no file app.karst", viewer.stderr.readline())
        with self.assertRaises(urllib.error.HTTPError) as lost:
            page(url, "api/trace")
        self.assertEqual(lost.exception.code, 503)
        viewer.send_signal(signal.SIGINT)
        self.assertIn("there is no file app.karst", viewer.communicate(timeout=TIMEOUT)[1])
        self.assertEqual(viewer.returncode, 1)

    def test_a_karst_that_is_killed_there_is_not_started_again(self):
        self.ssh(self.ssh_that(":;"))
        self.record()
        viewer, url = self.viewer("ssh://server/app.karst")
        page(url, "api/progress?wait=1")
        os.kill(self.far_ends()[0], signal.SIGKILL)
        self.assertTrue(wait_until(lambda: "has ended" in viewer.stderr.readline()))
        viewer.send_signal(signal.SIGINT)
        viewer.communicate(timeout=TIMEOUT)
        self.assertEqual(viewer.returncode, 1)

    def test_messages(self):
        self.assertIn("names nothing to look at", self.refused("ssh://server"))
        self.assertIn("names no machine", self.refused("ssh://-oProxyCommand=touch/x"))
        self.assertIn("names no machine", self.refused("ssh://a b/x"))
        self.assertIn("99999 is no port", self.refused("ssh://server:99999/x"))
        self.assertIn("one trace is shown", self.refused("ssh://server/x", "y"))
        self.assertIn("--karst is for ssh://", self.refused("x", "--karst", "y"))
        self.assertIn("server: there is no file no'$(touch y) in the home directory, no /no'$(touch y), and no process",
                      self.refused("ssh://server/no'$(touch y)"))
        self.assertIn("is not a Karst trace", self.refused("ssh://server/bin/sh"))
        self.assertIn("there is no karst on server", self.refused("ssh://server/x", "--karst", "/no'where/karst"))
        self.ssh("#!/bin/sh\necho 'ssh: no such host' >&2\nexit 255\n")
        self.assertEqual(self.refused("ssh://server/x"), "karst: server: ssh: no such host\nkarst: there is no connection to server\n")
        self.ssh("#!/bin/sh\necho karst-frames 7 8 2.0\ncat\n")
        self.assertIn("do not understand each other", self.refused("ssh://server/x"))
        self.assertFalse(list(self.home.iterdir()))

    def test_ctrl_c_ends_a_connection_that_is_not_there_yet(self):
        self.ssh("#!/bin/sh\nexec sleep 1000\n")
        viewer = subprocess.Popen([KARST, "view", "ssh://server/x"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=self.environment())
        self.viewers.append(viewer)
        time.sleep(0.3)
        viewer.send_signal(signal.SIGINT)
        said = viewer.communicate(timeout=TIMEOUT)[1]
        self.assertEqual((viewer.returncode, said), (1, "karst: the connection to server was ended\n"))

    def test_a_process_there_is_recorded_while_somebody_looks(self):
        program = build("all_counts", "all/counts.c", "-O1", "-pthread", compiler="karst-gcc")
        # Off until it is looked at.
        traced = subprocess.Popen([KARST, "run", "--off", "-o", self.directory / "own.karst", program, "200000000", "1", "0"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            def child():
                children = Path(f"/proc/{traced.pid}/task/{traced.pid}/children").read_text().split()
                return next((pid for pid in children if os.readlink(f"/proc/{pid}/exe") == str(program)), None)

            self.assertTrue(wait_until(child))
            viewer, url = self.viewer(f"ssh://server/{child()}")
            self.assertEqual(page(url, "api/progress?wait=1")["phase"], "ready")
            self.assertTrue(page(url, "api/trace")["growing"])
            self.assertTrue(list(self.home.glob("*.karst")))
            said = self.end(viewer)
            self.assertIn("all calls of process", said)

            def is_off():
                told = subprocess.run([KARST, "ps"], capture_output=True, text=True, timeout=TIMEOUT).stdout
                return any(line.split()[0] == child() and " off " in line for line in told.splitlines()[1:])

            self.assertTrue(wait_until(is_off))
        finally:
            for pid in Path(f"/proc/{traced.pid}/task/{traced.pid}/children").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
            traced.communicate(timeout=TIMEOUT)

    def test_by_a_real_sshd(self):
        daemon = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin")
        client = shutil.which("ssh")
        if not daemon or not client:
            self.skipTest("no sshd here (package openssh-server), or no ssh")
        trace = self.record()
        for name in ("host", "key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.directory / name], check=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        options = {"ListenAddress": "127.0.0.1", "Port": port, "HostKey": self.directory / "host", "PidFile": "none", "UsePAM": "no",
                   "AuthorizedKeysFile": self.directory / "key.pub", "StrictModes": "no", "PermitRootLogin": "yes"}
        sshd = subprocess.Popen([daemon, "-D", "-e", "-f", "/dev/null", *(f"-o{name}={value}" for name, value in options.items())],
                                stderr=subprocess.PIPE, text=True)
        try:
            config = self.directory / "config"
            config.write_text(f"Host *\nIdentityFile {self.directory}/key\nIdentitiesOnly yes\nStrictHostKeyChecking no\n"
                              f"UserKnownHostsFile {self.directory}/known\nLogLevel ERROR\n")
            self.ssh(f'#!/bin/sh\nexec {client} -F {config} "$@"\n')
            trial = [self.directory / "ssh", "-p", str(port), "127.0.0.1", "true"]
            if not wait_until(lambda: subprocess.run(trial, capture_output=True, timeout=TIMEOUT).returncode == 0, 10):
                self.skipTest("sshd lets nobody in here: " + subprocess.run(trial, capture_output=True, text=True).stderr)
            viewer, url = self.viewer(f"ssh://{getpass.getuser()}@127.0.0.1:{port}{trace}", "--karst", KARST)
            self.assertEqual(page(url, "api/progress?wait=1")["phase"], "ready")
            self.assertGreater(page(url, "api/trace")["calls"], 0)
            self.assertEqual(self.end(viewer), "")
        finally:
            sshd.terminate()
            sshd.communicate(timeout=TIMEOUT)


if __name__ == "__main__":
    main()
