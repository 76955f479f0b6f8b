"""Programs that a traced one starts and that cannot be traced: each is told of by one line, however it was started."""
import os
import shutil

from support import TracedTest, build, main

FEW = ("execve", "execv", "execvp", "execvpe", "fexecve", "posix_spawn", "posix_spawnp", "vfork", "system")
MANY = ("execl", "execle", "execlp")  # arguments on the stack


def starts():
    return build("starts", "processes/starts.c", "-O1", compiler="karst-gcc")


class Untraced(TracedTest):
    def says(self, *flags):
        return build("-".join(["says", *flags]), "processes/says.c", "-O1", *flags, compiler="gcc")

    def lines(self, how, file, *options):
        """The lines of `karst run` that say what is missing; the program got all that it was given."""
        run = self.run_traced(starts(), how, file, options=options)
        self.assertEqual(run.out, ("7 said kept\n" if how in MANY else "2 said kept\n") * 2)
        self.assertIn("main", run.trace.counts)
        lines = [line for line in self.lines_of_karst(run) if "not in the trace" in line]
        # The trace tells it later.
        self.assertEqual([f"karst: not in the trace: {u['program']} {u['reason']}" for u in run.trace.info["untraced"]],
                         lines)
        return lines

    def test_a_static_program_however_it_is_started(self):
        file = self.says("-static")
        for how in FEW + MANY:
            with self.subTest(how=how):
                lines = self.lines(how, file)
                self.assertEqual(len(lines), 1, lines)
                self.assertIn(f"{file} is statically linked", lines[0])

    def test_a_program_found_in_the_path(self):
        file = self.says("-static")
        directory = os.path.dirname(file)
        os.environ["PATH"], before = f"/nowhere:{self.directory}:{directory}:{os.environ['PATH']}", os.environ["PATH"]
        try:
            (self.directory / os.path.basename(file)).write_text("not executable")
            for how in ("execvp", "execlp", "posix_spawnp"):
                with self.subTest(how=how):
                    lines = self.lines(how, os.path.basename(file))
                    self.assertEqual(len(lines), 1, lines)
                    self.assertIn(f"{file} is statically linked", lines[0])
        finally:
            os.environ["PATH"] = before

    def test_a_setuid_program(self):
        file = self.directory / "setuid"
        shutil.copy(self.says(), file)
        try:
            os.chown(file, 65534 if os.getuid() != 65534 else 65533, -1)
        except PermissionError:
            self.skipTest("only root makes programs of another user's")
        file.chmod(0o4755)
        lines = self.lines("execv", file)
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("is setuid or setgid", lines[0])

    def test_the_static_interpreter_of_a_script(self):
        script = self.directory / "script"
        script.write_text(f"#!{self.says('-static')}\n")
        script.chmod(0o755)
        run = self.run_traced(starts(), "execv", script)
        self.assertEqual(run.out, f"3 {script} kept\n" * 2)
        lines = [line for line in self.lines_of_karst(run) if "not in the trace" in line]
        self.assertEqual(len(lines), 1, lines)

    def test_nothing_is_said_of_programs_that_could_be_traced(self):
        self.assertEqual(self.lines("execv", self.says()), [])
        self.assertEqual(self.lines("posix_spawn", build("says-karst", "processes/says.c", "-O1", compiler="karst-gcc")), [])
        static = build("says-karst-static", "processes/says.c", "-O1", "-static", compiler="karst-gcc")
        run = self.run_traced(starts(), "execv", static)
        self.assertEqual(run.trace.counts["main"], 3)

    def test_nothing_is_said_where_children_are_not_followed(self):
        self.assertEqual(self.lines("execv", self.says("-static"), "--no-follow"), [])


if __name__ == "__main__":
    main()
