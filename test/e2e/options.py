"""An option means the same on the command line and in KARST_OPTIONS, and no value of one is taken for another."""
import os
import subprocess

from torture_support import BIN, KARST, TIMEOUT, TortureTest, build, main

LIBRARY = BIN.parent / "lib" / "libkarst.so.0"


def entries(text):
    """Entries of a KARST_OPTIONS in which no comma is quoted, without the session."""
    return {entry for entry in text.split(",") if not entry.startswith("session=")}


class Options(TortureTest):
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


if __name__ == "__main__":
    main()
