"""--system in hard places: a program computes what it computes untraced, with the same status, and what cannot be had is
said in clear words. The oracle is the same program without karst."""
import os
import resource
import shutil
import subprocess

from support import KARST, TIMEOUT, TracedTest, build, main

SYSTEMS = ("memory", "locks=all", "files", "locks=all,files,memory,net,time")


def hard(compiler="gcc", *flags):
    return build("-".join(["system-hard", compiler, *(f.strip("-") for f in flags)]), "system_hard/hard.c", "-O1", "-pthread",
                 *flags, compiler=compiler)


class SystemHard(TracedTest):
    def same(self, *words, compilers=("gcc", "karst-gcc"), env=None, launcher=(), flags=(), said="", **more):
        """Runs of all programs with all systems, compared with one untraced. Returns the last."""
        for compiler in compilers:
            command = [*launcher, hard(compiler, *flags), *map(str, words)]
            alone = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, cwd=self.directory,
                                   env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, **more)
            if alone.returncode == 77:
                self.skipTest(f"this system does not know {words}")
            for system in SYSTEMS:
                for option in ((), ("--prefault",)):
                    with self.subTest(compiler=compiler, system=system, option=option):
                        run = self.run_traced(*command, options=("--system", system, *option), env=env, status=None, **more)
                        self.assertEqual((run.status, run.out), (alone.returncode, alone.stdout), run.err)
                        for line in set(run.err.splitlines()) - set(alone.stderr.splitlines()):
                            self.assertRegex(line, f"^karst|^  {said}", run.err)
        return run

    def test_nothing_hard(self):
        run = self.same("none")
        self.assertTrue(run.written)

    def test_strict_seccomp(self):
        self.assertIn("the trace ends here", self.same("strict").err)

    def test_a_filter_that_kills_for_unknown_calls(self):
        self.same("kills")

    def test_a_filter_that_refuses_unknown_calls(self):
        self.same("errors")

    def test_no_descriptor_is_free(self):
        self.same("descriptors")

    def test_no_address_space_is_left(self):
        self.same("space")

    def test_another_namespace(self):
        library = build("libsystemhard.so", "system_hard/library.c", "-shared", "-fPIC", compiler="gcc")
        self.same("dlmopen", library)

    def test_children(self):
        self.same("forks")

    def test_a_stack_that_is_not_aligned(self):
        alone = subprocess.run([hard("gcc"), "stack"], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(alone.stdout.count("sum "), 2)
        for compiler, options in (("gcc", ("--system", "locks=all,memory,files,net,time")), ("gcc", ("--system", "memory=4K")),
                                  ("karst-gcc", ("--args", ".", "--returns", "."))):
            with self.subTest(options=options):
                run = self.run_traced(hard(compiler), "stack", options=options, status=5)
                self.assertEqual(run.out, alone.stdout)

    def test_binding_at_once(self):
        self.same("none", env={"LD_BIND_NOW": "1"})
        self.same("none", flags=("-fno-plt", "-Wl,-z,now"))

    def test_few_descriptors_from_the_start(self):
        # With 3 the loader itself cannot open a library, not even libc. 4 is left out: libkarst takes the one that is free, so the
        # program cannot open its file (docs/limits.md).
        for most in (3, 5, 8):
            with self.subTest(most=most):
                self.same("none", launcher=("sh", "-c", f'ulimit -n {most}; exec "$@"', "sh"),
                          said="|^ERROR: ld.so: object .* cannot be preloaded" if most == 3 else "")

    def test_little_address_space_from_the_start(self):
        self.same("none", launcher=("sh", "-c", 'ulimit -v 60000; exec "$@"', "sh"))

    def test_a_static_program(self):
        program = hard("gcc", "-static")
        for system in SYSTEMS:
            run = self.run_traced(program, "none", options=("--system", system), status=1)
            self.assertEqual(run.out, "", "it is not started")
            self.assertFalse(run.written)
            self.assertIn("is statically linked: the tracing runtime cannot be loaded into it", run.err)
        # Started by a traced program it runs as ever.
        alone = subprocess.run([program, "none"], capture_output=True, text=True, timeout=TIMEOUT)
        run = self.run_traced("sh", "-c", f"{program} none", options=("--system", SYSTEMS[-1]), status=5)
        self.assertEqual(run.out, alone.stdout)

    def test_a_program_with_more_rights_than_its_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root makes a program set-user-ID for another user")
        program = self.directory / "setuid"
        shutil.copy2(hard("karst-gcc"), program)
        program.chmod(0o4755)
        run = self.run_traced(program, "none", options=("--system", SYSTEMS[-1], "--user", "nobody"), status=1)
        self.assertEqual(run.out, "", "it is not started")
        self.assertIn("is setuid or setgid: the system does not let the tracing runtime be loaded into it", run.err)

    def test_notes_in_children_that_are_not_followed(self):
        program = build("system-hard-notes", "system_hard/notes.cc", "-O1", "-g")
        for option in ("--no-follow", "--prefault"):
            run = self.run_traced(program, options=(option,))
            self.assertEqual(run.out, "child 3\n")


class FewDescriptors(TracedTest):
    """karst run itself has few of them, and so has what it starts."""

    def test_a_program_that_forks(self):
        for most in (10, 14, 20, 28, 40):
            with self.subTest(most=most):
                path = self.directory / "few.karst"
                done = subprocess.run([KARST, "run", *self.SCHED, "-o", path, "--", hard("karst-gcc"), "forks"],
                                      capture_output=True, text=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL,
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)))
                self.assertEqual(done.returncode, 5, done.stderr)
                self.assertEqual(done.stdout.count("child "), 5, done.stdout)

    def test_too_few_are_told(self):
        done = subprocess.run([KARST, "run", "-o", self.directory / "few.karst", "--", "/bin/true"], capture_output=True,
                              text=True, timeout=TIMEOUT,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6)))
        self.assertEqual(done.returncode, 1)
        self.assertIn("Too many open files", done.stderr)


if __name__ == "__main__":
    main()
