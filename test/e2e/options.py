"""An option means the same on the command line and in KARST_OPTIONS, and no value of one is taken for another."""
import os
import subprocess

from support import BIN, KARST, TIMEOUT, TracedTest, build, main

LIBRARY = BIN.parent / "lib" / "libkarst.so.0"


def entries(text):
    """Entries of a KARST_OPTIONS in which no comma is quoted, without the session."""
    return {entry for entry in text.split(",") if not entry.startswith("session=")}


class Options(TracedTest):
    def run_shell(self, *options, **env):
        """A shell that was not built for tracing, and that prints what it was given."""
        done = subprocess.run([KARST, "run", "--sched", "off", "-o", self.directory / "t.karst", *options, "bash", "-c",
                               'printf %s "$KARST_OPTIONS"'], env={**os.environ, **env}, capture_output=True, text=True,
                              timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def given(self, *options, **env):
        return entries(self.run_shell(*options, **env).stdout)

    def run_alone(self, options):
        program = build("options_guest", "run/guest.cc", "-O1", "-pthread")
        done = subprocess.run([program, "exit", "0"], env={"LD_PRELOAD": str(LIBRARY), "KARST_OPTIONS": options},
                              capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def test_a_files_name_is_no_budget(self):
        file = self.directory / "budget=y.bin"
        self.assertLessEqual({"plain-budget=5%", f"file={file}"}, self.given("--file", file))
        self.assertTrue(file.exists())

    def test_a_files_name_is_no_size(self):
        found = self.given("--slowest", "^nothing$", "--file", self.directory / "kept-memory=y.bin")
        self.assertIn("kept-memory=256M", found)

    def test_options_of_karst_alone_are_told_as_such_without_it(self):
        for name in ("args", "returns", "slowest", "functions"):
            self.assertEqual(self.run_alone(f"memory=1M,{name}=^f"),
                             f"karst: KARST_OPTIONS: {name} ignored: it takes effect under `karst run` alone\n")

    def test_a_program_is_given_only_what_it_acts_by(self):
        found = self.given("--off", KARST_OPTIONS="memory=1M,functions=^x,core=on,count=1,preloads=7")
        self.assertEqual(found, {"memory=1M", "off=1", "plain-budget=5%", "patch=program"})

    def test_the_command_line_wins(self):
        found = self.given("--budget", "off", "--memory", "64M", KARST_OPTIONS="budget=7%,memory=1M,min-duration=5us")
        self.assertEqual(found, {"min-duration=5us", "patch=program"})

    def test_any_files_name_comes_through(self):
        file = self.directory / "a,b\\c=d,off=1"
        done = self.run_shell("--file", file)
        self.assertIn("file=" + str(file).replace("\\", "\\\\").replace(",", "\\,") + ",", done.stdout)
        self.assertTrue(file.exists())

    def test_karst_says_of_the_environment_what_the_runtime_says(self):
        for bad in ("memory=oops", "clock=sun", "file=", "core=1", "signal=KILL", "follow=2", "budget=5"):
            (said,) = self.run_alone(bad).splitlines()
            self.assertRegex(said, f"^karst: KARST_OPTIONS: {bad} ignored: .* is needed")
            self.assertEqual(self.run_shell(KARST_OPTIONS=bad).stderr.splitlines().count(said), 1)
        self.assertIn("karst: KARST_OPTIONS: unknown option memroy ignored; did you mean 'memory'?\n",
                      self.run_shell(KARST_OPTIONS="memroy=1M").stderr)

    def test_a_bad_value_of_the_command_line_is_refused(self):
        for flag, value, words in (("--memory", "63K", "--memory 63K: a size from 64K to 64G"),
                                   ("--file", "", "--file: a name of 1 to 191 bytes"),
                                   ("--file", "x" * 192, "--file: a name of 1 to 191 bytes"),
                                   ("--core", "yes", "--core yes: on or off"),
                                   ("--margin", "soon", "--margin soon: a time from 1ns to 10s"),
                                   ("--min-instructions", "1000001", "--min-instructions 1000001: a number up to 1000000")):
            done = subprocess.run([KARST, "run", flag, value, "true"], cwd=self.directory, capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"karst: {words} is needed", done.stderr)
        done = subprocess.run([KARST, "run", "--memory", "1M", "--memory", "2M", "true"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--memory is given too often", done.stderr)


if __name__ == "__main__":
    main()
