"""Where outputs go: no link, pipe or directory that another user put in the way leads karst, run by root, to another
file. The user's own links, pipes and devices are written to as they are by any tool."""
import os
import pwd
import shutil
import signal
import stat
import subprocess
import time
import unittest
from pathlib import Path

from support import KARST, TIMEOUT, Trace, TracedTest, build, main

KEPT = "root's own\n"
NOBODY = pwd.getpwnam("nobody")


def program():
    return build("outputs", "outputs/work.c", "-O1", compiler="karst-gcc")


class OutputsTest(TracedTest):
    def karst(self, *arguments, status=None, cwd=None, environment=None, **more):
        done = subprocess.run([KARST, *map(str, arguments)], cwd=cwd or self.directory, text=True, timeout=TIMEOUT,
                              stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})},
                              capture_output="stdout" not in more, **more)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stderr)
        return done

    def trace(self):
        """A trace of a run, made once."""
        path = self.directory / "made.karst"
        if not path.exists():
            self.karst("run", "-o", path, *self.SCHED, program(), status=0)
        return path

    def outputs(self):
        """Commands by what they are called, each a list that wants its output's name."""
        trace = self.trace()
        return {
            "run": ["run", *self.SCHED, program(), "-o"],
            "live": ["run", *self.SCHED, "-o", self.directory / "beside.karst", program(), "--live"],
            "export": ["export", trace, "--to", "chrome", "-o"],
            "page": ["export", trace, "--to", "html", "-o"],
            "flame": ["flame", trace, "--format", "svg", "-o"],
            "order": ["order", trace, "-o"],
            "resolve": ["resolve", trace, "-o"],
            "count": ["count", program(), "-o"],
        }

    def write_to(self, command, path, **more):
        """The command with its output at that path. Of run and count the options come before the program."""
        if command[-1] == "--live":
            return self.karst(*command[:-2], f"--live={path}", command[-2], **more)
        if command[0] in ("run", "count"):
            return self.karst(*command[:-2], "-o", path, command[-2], **more)
        return self.karst(*command, path, **more)


@unittest.skipIf(os.geteuid() != 0, "needs root: to be another user, and to be who is led astray")
class Attacks(OutputsTest):
    def setUp(self):
        super().setUp()
        self.directory.chmod(0o711)
        self.own = self.directory / "own"  # root's alone
        self.own.mkdir(mode=0o700)
        self.target = self.own / "target"
        self.target.write_text(KEPT)
        self.target.chmod(0o600)
        self.shared = Path("/tmp") / f"karst-outputs-{os.getpid()}"
        self.shared.mkdir()
        self.addCleanup(shutil.rmtree, self.shared, ignore_errors=True)

    def nobody(self, *command):
        subprocess.run(list(map(str, command)), check=True, cwd="/", user=NOBODY.pw_uid, group=NOBODY.pw_gid,
                       extra_groups=[], timeout=TIMEOUT)

    def places(self):
        """Directories that nobody may write to: as /tmp is, open to all, of its own, of a group of its own."""
        for name, mode, owner, group in (("sticky", 0o1777, 0, 0), ("open", 0o777, 0, 0), ("theirs", 0o755, NOBODY.pw_uid, 0),
                                         ("group", 0o775, 0, NOBODY.pw_gid)):
            place = self.shared / name
            place.mkdir(exist_ok=True)
            os.chown(place, owner, group)
            place.chmod(mode)
            yield place

    def check_refused(self, done, what):
        self.assertEqual(self.target.read_text(), KEPT, what)
        self.assertEqual(os.stat(self.target).st_uid, 0, what)
        self.assertNotEqual(done.returncode, 0, what)
        self.assertLess(done.returncode, 128, what)
        self.assertRegex(done.stderr, "(?m)^karst: ", what)

    def test_links_to_a_file_of_roots(self):
        for place in self.places():
            link = place / "link"
            self.nobody("ln", "-s", self.target, link)
            for name, command in self.outputs().items():
                with self.subTest(place=place.name, command=name):
                    done = self.write_to(command, link)
                    self.check_refused(done, done.stderr)
                    self.assertIn("symbolic link", done.stderr)
                    self.assertTrue(link.is_symlink())
                    self.assertEqual(os.listdir(place), ["link"])

    def test_links_that_lead_to_nothing_yet(self):
        for place in self.places():
            link = place / "link"
            new = self.own / "new"
            self.nobody("ln", "-s", new, link)
            for name, command in self.outputs().items():
                with self.subTest(place=place.name, command=name):
                    self.assertNotEqual(self.write_to(command, link).returncode, 0)
                    self.assertFalse(new.exists())

    def test_links_on_the_way(self):
        for place in self.places():
            self.nobody("ln", "-s", self.own, place / "way")
            for name, command in self.outputs().items():
                for path in (place / "way" / "target", place / "way" / "new", f"{place}/way/../own/target"):
                    with self.subTest(place=place.name, command=name, path=path):
                        self.check_refused(self.write_to(command, path), path)
                        self.assertEqual(os.listdir(self.own), ["target"])

    def test_the_default_name(self):
        for place in self.places():
            shutil.copy(program(), place / "hello")
            for way in ("hello", "hello.karst"):
                link = place / (way + ".karst")
                self.nobody("ln", "-sf", self.target, link)
                shutil.copy(program(), place / way)
                with self.subTest(place=place.name, name=way):
                    self.check_refused(self.karst("run", *self.SCHED, f"./{way}", cwd=place), way)
                link.unlink()

    def test_resolve_in_the_place_of_a_raw_trace(self):
        raw = self.own / "raw.karst"
        shutil.copy(self.trace(), raw)
        before = raw.read_bytes()
        for place in self.places():
            link = place / "raw.karst"
            self.nobody("ln", "-s", raw, link)
            self.assertNotEqual(self.karst("resolve", "--strip", link).returncode, 0)
            self.assertEqual(raw.read_bytes(), before)

    def test_a_snapshot(self):
        own = shutil.copy(program(), self.directory / "outputs_snapped")  # others run the program, too
        karst = subprocess.Popen([KARST, "run", "-o", self.directory / "run.karst", *self.SCHED, own, "pause"],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(karst.stdout.close)
        self.addCleanup(karst.wait)
        self.addCleanup(karst.terminate)
        self.assertEqual(karst.stdout.readline(), "ready\n")
        for place in self.places():
            link = place / "link"
            self.nobody("ln", "-s", self.target, link)
            self.check_refused(self.karst("snapshot", "outputs_snapped", "-o", link), place)
            self.nobody("ln", "-s", self.own, place / "way")
            self.check_refused(self.karst("snapshot", "outputs_snapped", "-o", place / "way" / "new"), place)
            self.assertEqual(os.listdir(self.own), ["target"])
        done = self.karst("snapshot", "outputs_snapped", cwd=self.shared / "theirs", status=0)
        self.assertRegex(done.stderr, r"outputs_snapped-\d+-1\.karst")

    def test_files_of_the_program_itself(self):
        """The arena's file and snapshots that the program writes, as root."""
        for place in self.places():
            self.nobody("ln", "-s", self.own, place / "way")
            done = self.karst("run", "-o", self.directory / "t.karst", *self.SCHED, "--file", place / "way" / "arena",
                              program(), status=0)
            self.assertIn("a symbolic link leads there that another user may have made", done.stderr)
            self.assertEqual(os.listdir(self.own), ["target"])
            self.karst("run", "-o", self.directory / "t.karst", *self.SCHED, "--file", place / "arena", program(),
                       status=0)
            self.assertTrue((place / "arena").is_file())
            for directory, expected in ((place / "way", 0), (place, 1)):
                karst = subprocess.Popen(
                    [KARST, "run", "-o", self.directory / "t.karst", *self.SCHED, "--signal", "USR2", "--snapshots",
                     directory, program(), "pause"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.assertEqual(karst.stdout.readline(), "ready\n")
                child = Path(f"/proc/{karst.pid}/task/{karst.pid}/children").read_text().split()[0]
                os.kill(int(child), signal.SIGUSR2)
                if expected == 0:
                    self.assertIn("snapshot", karst.stderr.readline())  # why nothing was written
                end = time.monotonic() + TIMEOUT
                while len(list(place.glob("outputs-*.karst"))) < expected and time.monotonic() < end:
                    time.sleep(0.02)
                karst.terminate()
                karst.communicate(timeout=TIMEOUT)
                self.assertEqual(os.listdir(self.own), ["target"])
                self.assertEqual(len(list(place.glob("outputs-*"))), expected)

    def test_hard_links_and_files_of_others(self):
        for place in self.places():
            for name, command in self.outputs().items():
                with self.subTest(place=place.name, command=name):
                    path = place / "out"
                    os.link(self.target, path)  # as where fs.protected_hardlinks is 0
                    self.write_to(command, path, status=0)
                    self.assertEqual(self.target.read_text(), KEPT)
                    path.unlink()
                    if (place / "out.old").exists():
                        (place / "out.old").unlink()
                    self.nobody("sh", "-c", f"umask 0; : > {path}")
                    with open(path, encoding="utf-8") as held:
                        self.write_to(command, path, status=0)
                        self.assertEqual(held.read(), "", "what nobody holds open is not written to")
                    made = os.stat(path)
                    self.assertEqual((made.st_uid, made.st_mode & 0o022), (0, 0))
                    path.unlink()

    def test_pipes_of_others(self):
        for place in self.places():
            pipe = place / "pipe"
            self.nobody("mkfifo", "-m", "666", pipe)
            for name, command in self.outputs().items():
                with self.subTest(place=place.name, command=name):
                    self.check_refused(self.write_to(command, pipe), name)

    def test_older_traces(self):
        """What becomes FILE.old is renamed, and what is there already is no way to another file."""
        for place in self.places():
            path = place / "out.karst"
            self.karst("run", "-o", path, *self.SCHED, program(), status=0)
            self.nobody("ln", "-s", self.target, f"{path}.old")
            self.karst("run", "-o", path, *self.SCHED, program(), status=0)
            self.assertEqual(self.target.read_text(), KEPT)
            self.assertEqual(Trace(path).counts, Trace(f"{path}.old").counts)
            self.assertEqual(sorted(os.listdir(place)), ["out.karst", "out.karst.old"])

    def test_what_sudo_gives_to_the_caller_is_what_was_written(self):
        """The caller puts another directory into the way while the program runs: with a file of root's of that name."""
        secret = self.own / "out.karst"
        secret.write_text(KEPT)
        secret.chmod(0o600)
        place = self.shared / "theirs"
        place.mkdir()
        way = place / "way"
        way.mkdir()
        for path in (place, way):
            os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid)
        swap = f"mv {way} {place}/moved && ln -s {self.own} {way} && exec {program()}"
        sudo = {"SUDO_UID": str(NOBODY.pw_uid), "SUDO_GID": str(NOBODY.pw_gid)}
        self.karst("run", "-o", way / "out.karst", f"--live={way}/live", *self.SCHED, "--", "/bin/sh", "-c", swap,
                   environment=sudo, status=0)
        self.assertEqual((secret.read_text(), os.stat(secret).st_uid), (KEPT, 0))
        self.assertEqual(sorted(os.listdir(self.own)), ["out.karst", "target"])
        for name in ("out.karst", "live"):
            self.assertEqual(os.stat(place / "moved" / name).st_uid, NOBODY.pw_uid)
        way.unlink()
        link = place / "link"
        self.nobody("ln", "-s", self.target, link)
        self.check_refused(self.karst("run", "-o", link, *self.SCHED, program(), environment=sudo), "the caller's link")

    def test_links_that_change_while_karst_looks(self):
        """nobody renames a link over the name again and again: whatever karst finds, root's file stays."""
        for place in self.places():
            path = place / "out"
            swapping = subprocess.Popen(
                ["sh", "-c", f"while :; do ln -s {self.target} {path}.l; mv -fT {path}.l {path}; : > {path}.f; "
                 f"mv -fT {path}.f {path}; done"],
                user=NOBODY.pw_uid, group=NOBODY.pw_gid, extra_groups=[], stderr=subprocess.DEVNULL)
            try:
                end = time.monotonic() + 1
                while time.monotonic() < end:
                    for name in ("export", "flame"):
                        self.write_to(self.outputs()[name], path)
                        self.assertEqual(self.target.read_text(), KEPT)
            finally:
                swapping.kill()
                swapping.wait()


class Usual(OutputsTest):
    """What users expect of an output."""

    def test_own_links(self):
        (self.directory / "deep").mkdir()
        os.symlink("deep", self.directory / "way")
        for name, command in self.outputs().items():
            for link in (self.directory / "link", self.directory / "way" / "link"):
                with self.subTest(command=name, link=link):
                    target = link.parent.resolve() / "written"
                    os.symlink("written", link)
                    self.write_to(command, link, status=0)
                    self.assertTrue(link.is_symlink())
                    self.assertGreater(target.stat().st_size, 0)
                    link.unlink()
                    target.unlink()

    @unittest.skipIf(os.geteuid() != 0, "needs root: to be another user")
    def test_own_links_in_a_directory_like_tmp(self):
        shared = Path("/tmp") / f"karst-outputs-own-{os.getpid()}"
        shared.mkdir()
        self.addCleanup(shutil.rmtree, shared, ignore_errors=True)
        shared.chmod(0o1777)
        trace = shared / "made.karst"
        shutil.copy(self.trace(), trace)
        trace.chmod(0o644)
        for user, group in ((0, 0), (NOBODY.pw_uid, NOBODY.pw_gid)):
            who = {"user": user, "group": group, "extra_groups": []} if user != 0 else {}
            where = Path("/tmp") / f"karst-outputs-of-{user}-{os.getpid()}"
            where.mkdir()
            self.addCleanup(shutil.rmtree, where, ignore_errors=True)
            os.chown(where, user, group)
            link = shared / f"link-{user}"
            subprocess.run(["ln", "-s", where / "out", link], check=True, cwd="/", **who)
            self.karst("export", trace, "--to", "chrome", "-o", link, cwd="/", status=0, **who)
            self.assertGreater((where / "out").stat().st_size, 0)

    def texts(self):
        return {name: command for name, command in self.outputs().items() if name in ("export", "flame", "order", "count")}

    def test_devices_pipes_and_descriptors(self):
        for name, command in self.texts().items():
            with self.subTest(command=name):
                self.write_to(command, "/dev/null", status=0)
                self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
                path = self.directory / "out"
                self.write_to(command, path, status=0)
                whole = path.read_text()
                if name == "count":
                    whole = whole[:20]
                ends = self.write_to(command, "/dev/stdout", status=0).stdout
                self.assertTrue(ends.endswith(whole) or whole in ends, name)
                with open(self.directory / "to", "w", encoding="utf-8") as to:
                    to.write("before\n")
                    to.flush()
                    self.write_to(command, "/dev/stdout", status=0, stdout=to, stderr=subprocess.PIPE)
                    self.write_to(command, "/proc/self/fd/1", status=0, stdout=to, stderr=subprocess.PIPE)
                text = (self.directory / "to").read_text()
                self.assertTrue(text.startswith("before\n"))
                self.assertEqual(text.count(whole[:20]), 2)

    def test_process_substitution(self):
        trace = self.trace()
        done = subprocess.run(["bash", "-c", f"{KARST} export {trace} --to chrome -o >(wc -c > {self.directory}/n)"],
                              capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        end = time.monotonic() + TIMEOUT
        while not (self.directory / "n").exists() or not (self.directory / "n").read_text():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        self.assertGreater(int((self.directory / "n").read_text()), 100)
        live = subprocess.run(["bash", "-c", f"{KARST} run -o {self.directory}/l.karst {' '.join(self.SCHED)} "
                               f"--live=/dev/fd/3 {program()} 3>&1 >/dev/null"],
                              capture_output=True, text=True, timeout=TIMEOUT)
        self.assertIn("work\n", live.stdout, live.stderr)

    def test_a_pipe_of_ones_own(self):
        pipe = self.directory / "pipe"
        os.mkfifo(pipe)
        reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True)
        self.write_to(self.outputs()["export"], pipe, status=0)
        self.assertIn("traceEvents", reader.communicate(timeout=TIMEOUT)[0])
        self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))

    def test_a_trace_to_a_descriptor_is_written_where_its_file_is(self):
        with open(self.directory / "t.karst", "w", encoding="utf-8") as to:
            self.karst("resolve", self.trace(), "-o", "/dev/stdout", status=0, stdout=to, stderr=subprocess.PIPE)
        self.assertEqual(Trace(self.directory / "t.karst").counts["work"], 100)
        done = self.karst("resolve", self.trace(), "-o", "/dev/stdout")
        self.assertIn("not a regular file", done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_nothing_is_left_by_who_is_killed(self):
        """Neither of an export that waits for its reader's directory; see writing.py for traces."""
        before = set(os.listdir(self.directory)) | {"made.karst"}
        for name in ("export", "page"):
            command = self.outputs()[name]
            karst = subprocess.Popen([KARST, *map(str, command), self.directory / "out"], stderr=subprocess.DEVNULL)
            time.sleep(0.05)
            karst.send_signal(signal.SIGKILL)
            karst.wait()
        self.assertLessEqual(set(os.listdir(self.directory)) - before, {"out"})


if __name__ == "__main__":
    main()
