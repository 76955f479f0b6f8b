"""Values of a program that runs: karst on --args, --returns, karst off --values, karst attach --args."""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import time

from support import KARST, TIMEOUT, TracedTest, Trace, build, main
from values import rows

ARENA = "/memfd:karst-arena"


class LiveTest(TracedTest):
    def start(self, compiler="karst-g++", *options, traced=True):
        program = shutil.copy(build(f"values-serving-{compiler}", "values/serving.cc", "-O2", "-g", "-pthread",
                                    compiler=compiler), self.directory)
        under = [KARST, "run", "--output", str(self.directory / "run.karst"), *options, "--"] if traced else []
        self.run_ = subprocess.Popen([*under, program], cwd=self.directory, stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.run_.communicate)
        self.addCleanup(self.run_.kill)
        word, *self.places = self.run_.stdout.readline().split()
        self.assertEqual(word, "ready")
        self.pid = self.run_.pid
        if traced:
            # karst-maint is the program's child, and has its executable.
            self.pid, = map(int, pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split())

    def karst(self, *arguments, status=0):
        done = subprocess.run([KARST, *map(str, arguments)], cwd=self.directory, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=TIMEOUT)
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stdout}{done.stderr}")
        return done.stderr

    def snapshot(self, last="100ms"):
        """What the last moments have, and no call that began before them."""
        time.sleep(0.25)
        path = self.directory / f"{time.monotonic_ns()}.karst"
        self.karst("snapshot", self.pid, "--last", last, "-o", path)
        return Trace(path)

    def calls(self, function):
        return rows(self.snapshot(), "--function", f"^{function}")

    def finish(self):
        out, err = self.run_.communicate(timeout=TIMEOUT)
        self.assertEqual((self.run_.returncode, out), (0, "0 wrong\n"), err)

    def assert_given(self, calls):
        self.assertGreater(len(calls), 100)
        for call in calls:
            n, text = re.fullmatch(r'n=(\d+), text="(.*)"', call["arguments"]).groups()
            self.assertEqual(text, f"{n} is a text of more bytes than a string holds itself")
            self.assertEqual(int(call["returned"]), 3 * int(n) + len(text))

    def assert_none(self, calls):
        self.assertGreater(len(calls), 100)
        self.assertEqual({(call["arguments"], call["returned"]) for call in calls}, {("", "")})


class Values(LiveTest):
    def test_they_come_and_go_while_threads_run(self):
        self.start()
        self.assert_none(self.calls("given"))
        for _ in range(3):
            said = self.karst("on", self.pid, "--args", "^given", "--returns", "^given")
            self.assertIn("values of 1 function noted", said)
            self.assert_given(self.calls("given"))
            self.assert_none(self.calls("asked"))
            self.assertIn("values of 1 function not noted any more", self.karst("off", self.pid, "--values"))
            self.assert_none(self.calls("given"))
        self.finish()

    def test_more_are_added_to_those_of_the_start(self):
        self.start("karst-g++", "--args", "^given", "--returns", "^given")
        self.karst("on", self.pid, "--args", "^(asked|given)", "--returns", "^given")
        self.assert_given(self.calls("given"))
        self.assertEqual({call["arguments"] for call in self.calls("asked")}, {'word="aaaaaaaaaaaaaaaa"'})
        self.karst("off", self.pid, "--values")
        self.assert_none(self.calls("given"))
        self.finish()

    def test_other_values_of_the_same_function_are_refused(self):
        self.start()
        self.karst("on", self.pid, "--args", "^given:1")
        said = self.karst("on", self.pid, "--args", "^given", status=1)
        self.assertRegex(said, "the values that were asked for first stay, of 1 of the functions of .*/values-serving")
        self.assertRegex(self.calls("given")[50]["arguments"], r"^n=\d+$")
        self.finish()

    def test_for_a_time(self):
        self.start()
        said = self.karst("on", self.pid, "--args", "^given", "--returns", "^given", "--for", "300ms")
        self.assertRegex(said, "noted for 300.0 ms(.|\n)*not noted any more")
        calls = rows(self.snapshot("10s"), "--function", "^given")
        noted = [call for call in calls if call["arguments"] and call["returned"]]
        self.assert_given(noted)
        # Each thread may have been in a call when it began and when it ended.
        self.assertLessEqual(sum(bool(call["arguments"] or call["returned"]) for call in calls) - len(noted), 6)
        self.assert_none(self.calls("given"))
        self.finish()

    def test_of_a_process_that_gets_libkarst_as_it_runs(self):
        for compiler in ("g++", "karst-g++"):
            with self.subTest(compiler=compiler):
                self.start(compiler, traced=False)
                said = self.karst("attach", self.pid, "--min-instructions", "1", "--args", "^given", "--returns", "^given")
                self.assertIn("values of 1 function noted", said)
                self.assert_given(self.calls("given"))
                self.finish()

    def test_bad_input_is_named(self):
        self.start()
        for options, status, said in (
                (("--args", "nothing"), 1, "no function of process .* is one that --args or --returns means"),
                (("--args", "given", "--budget", "5%"), 2, "--args and --returns go with --for alone"),
                (("--args", "given", "--over", "given:1ms"), 2, "--args and --returns go with --for alone")):
            self.assertRegex(self.karst("on", self.pid, *options, status=status), said)
        self.assertRegex(self.karst("off", self.pid, "--values", "--for", "1s", status=2), "--values goes with nothing")
        self.assertIn("values of 0 functions not noted any more", self.karst("off", self.pid, "--values"))
        self.finish()


class Forged(LiveTest):
    """A child with fewer rights may write to its parent's arena: here it has said where functions are."""

    def arena(self):
        links = pathlib.Path(f"/proc/{self.pid}/fd").iterdir()
        path, = [link for link in links if os.readlink(link).startswith(ARENA)]
        return open(path, "r+b", buffering=0)

    def pieces(self, arena):
        """Where there is something in it, and what."""
        at, end = 0, os.fstat(arena.fileno()).st_size
        while at < end:
            try:
                at = os.lseek(arena.fileno(), at, os.SEEK_DATA)
            except OSError:
                return
            hole = os.lseek(arena.fileno(), at, os.SEEK_HOLE)
            yield at, os.pread(arena.fileno(), hole - at, at)
            at = hole

    def replace(self, old_to_new):
        """8-byte words. Returns how many were found."""
        found = 0
        with self.arena() as arena:
            for at, data in self.pieces(arena):
                for old, new in old_to_new.items():
                    for place in re.finditer(re.escape(struct.pack("<Q", old)), data):
                        os.pwrite(arena.fileno(), struct.pack("<Q", new), at + place.start())
                        found += 1
        return found

    def noted(self, old_to_new, status):
        """Of two letters, texts of which functions are given, those that came into the arena."""
        self.assertGreaterEqual(self.replace(old_to_new), len(old_to_new))
        self.karst("on", self.pid, "--args", "^asked", status=status)
        time.sleep(0.25)
        with self.arena() as arena:
            everything = b"".join(data for _, data in self.pieces(arena))
        self.finish()
        return "".join(letter for letter in "aZ" if letter.encode() * 5 in everything)  # a piece of a note

    def test_nothing_of_it(self):
        self.start()
        self.assertEqual(self.noted({}, 0), "a")

    def test_places_of_functions_that_were_exchanged(self):
        self.start()
        _, asked, hidden = (int(place, 16) for place in self.places)
        self.assertEqual(self.noted({asked: hidden, hidden: asked}, 0), "a")

    def test_a_place_of_the_module_at_which_one_function_is_another(self):
        self.start()
        base, asked, hidden = (int(place, 16) for place in self.places)
        self.assertEqual(self.noted({base: base + hidden - asked}, 1), "")


if __name__ == "__main__":
    main()
