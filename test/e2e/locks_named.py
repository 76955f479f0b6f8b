"""karst locks: locks in static data are called as their variables are, and none is called what it is not."""
import csv
import io
import pathlib
import shutil
import subprocess

from support import KARST, TIMEOUT, TracedTest, build, main

LOCKS = ("--system", "locks")


class LocksNamed(TracedTest):
    def named(self, name, *flags, compiler="g++"):
        return build(f"locks_named_{name}", "locks/named.cc", "-std=c++20", "-O1", "-pthread", *flags,
                     compiler=compiler)

    def library(self):
        return build("locks_named_library", "locks/named_library.cc", "-std=c++20", "-fPIC", "-shared", compiler="g++",
                     output="libnamed.so")

    def names(self, run, *options):
        done = subprocess.run([KARST, "locks", "--by", "wait", "--format", "csv", str(run.trace.path), *options], check=True,
                              capture_output=True, text=True, timeout=TIMEOUT)
        return {row["lock"]: row["name"] for row in csv.DictReader(io.StringIO(done.stdout)) if row["lock"] != "0x0"}

    def assert_as_logged(self, program, *words, **more):
        run = self.run_traced(program, *words, options=LOCKS, **more)
        logged = dict(line.partition(" ")[::2] for line in run.out.splitlines())
        self.assertEqual(self.names(run), logged)
        return run

    def test_variables_members_and_elements(self):
        for compiler in ("g++", "karst-g++", "clang++-14"):
            if shutil.which(compiler) is None and not compiler.startswith("karst"):
                continue
            with self.subTest(compiler=compiler):
                self.assert_as_logged(self.named("by_" + compiler, compiler=compiler), self.library())

    def test_debug_information_that_is_kept_apart(self):
        program = pathlib.Path(shutil.copy(self.named("apart"), self.directory / "apart"))
        for command in (["objcopy", "--only-keep-debug", "apart", "apart.debug"], ["strip", "apart"],
                        ["objcopy", "--add-gnu-debuglink=apart.debug", "apart"]):
            subprocess.run(command, check=True, cwd=self.directory, timeout=TIMEOUT)
        self.assert_as_logged(str(program))

    def test_symbols_alone(self):
        program = pathlib.Path(shutil.copy(self.named("symbols"), self.directory / "symbols"))
        subprocess.run(["strip", "--strip-debug", program], check=True, timeout=TIMEOUT)
        run = self.run_traced(program, options=LOCKS)
        logged = dict(line.partition(" ")[::2] for line in run.out.splitlines())
        names = self.names(run)
        for address, name in logged.items():
            plain = name.partition(".parts")[0].partition(".of_")[0].partition(".table")[0].partition("[")[0]
            self.assertEqual(names[address].partition("+0x")[0], plain)
        self.assertRegex(names[next(a for a, n in logged.items() if n == "g_many[2]")], r"^g_many\+0x[0-9a-f]+$")

    def test_without_symbols_it_is_a_place_in_the_file(self):
        program = pathlib.Path(shutil.copy(self.named("stripped"), self.directory / "stripped"))
        subprocess.run(["strip", program], check=True, timeout=TIMEOUT)
        run = self.run_traced(program, options=LOCKS)
        logged = dict(line.partition(" ")[::2] for line in run.out.splitlines())
        for address, name in self.names(run).items():
            self.assertRegex(name, r"^stripped\+0x[0-9a-f]+$" if logged[address] else "^$")

    def test_a_file_that_nobody_knows_to_be_the_one_that_ran(self):
        program = self.named("unknown", "-Wl,--build-id=none")
        run = self.run_traced(program, options=LOCKS)
        for name in self.names(run).values():
            self.assertRegex(name, r"^(locks_named_unknown\+0x[0-9a-f]+)?$")
        # The library is another one when names are taken.
        library = pathlib.Path(shutil.copy(self.library(), self.directory / "libother.so"))
        other = build("locks_named_other", "locks/named_library.cc", "-fPIC", "-shared", "-Dg_of_library=g_other",
                      compiler="g++", output="libnamed_other.so")
        run = self.run_traced("/bin/sh", "-c", f'"$0" "$1"; mv "$2" "$1"', self.named("by_g++"), library,
                              shutil.copy(other, self.directory / "new.so"), options=LOCKS)
        names = set(self.names(run).values())
        self.assertTrue(any(name.startswith("libother.so+0x") for name in names), names)
        self.assertFalse({"g_of_library", "g_other"} & names)


if __name__ == "__main__":
    main()
