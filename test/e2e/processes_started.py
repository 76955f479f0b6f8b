"""Programs that a traced one starts with an environment of its own, with another C library, by a dynamic linker that is
told to load them; and what a program has of the process that started karst."""
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from support import KARST, TIMEOUT, TracedTest, build, main

LOADER = "/lib64/ld-linux-x86-64.so.2"
HOWS = ("execve", "execvpe", "execle", "fexecve", "fexecve-path", "execveat", "execveat-empty", "execv", "execvp",
        "execl", "execlp", "posix_spawn", "posix_spawnp", "vfork")
SHELLS = ("system", "popen")


def kept():
    return build("kept", "processes/kept.c", "-O1", compiler="karst-gcc")


def own():
    return build("own", "processes/own.c", "-O1", compiler="gcc")


class Started(TracedTest):
    def untraced(self, run):
        return [line for line in self.lines_of_karst(run) if "not in the trace" in line]

    def musl(self):
        if shutil.which("musl-gcc") is None:
            self.skipTest("there is no musl-gcc")
        return build("kept-musl", "processes/kept.c", "-O1", compiler="musl-gcc")


class OwnEnvironment(Started):
    def test_a_child_is_traced_however_it_is_started(self):
        for how in HOWS:
            with self.subTest(how=how):
                run = self.run_traced(own(), how, kept(), options=("--no-patch",), status=3)
                self.assertEqual(run.trace.counts.get("work"), 100, run.err)
                self.assertRegex(run.out, r"^2 one said yes ours 1 preload ")
                self.assertEqual(self.untraced(run), [])

    def test_a_shell_that_libc_starts_is_told_of(self):
        for how in SHELLS:
            with self.subTest(how=how):
                run = self.run_traced(own(), how, kept(), options=("--no-patch",), status=None)
                lines = self.untraced(run)
                self.assertEqual(len(lines), 1, lines)
                self.assertIn("was started by system() or popen()", lines[0])
                self.assertIn("2 one said yes ours 0", run.out)

    def test_a_library_of_its_own_stays_behind_ours(self):
        other = "/lib/x86_64-linux-gnu/libm.so.6"
        run = self.run_traced(own(), "execve", kept(), f"LD_PRELOAD={other}", options=("--no-patch",), status=3)
        self.assertEqual(run.trace.counts["work"], 100)
        self.assertRegex(run.out, rf"preload \S*libkarst\.so\.0:{other}\n")

    def test_what_was_recorded_of_the_system_is_recorded_there_too(self):
        run = self.run_traced(own(), "execve", "/bin/cat", options=("--no-patch", "--system", "files"), status=None)
        names = {p["name"] for p in run.trace.processes}
        self.assertIn("cat", names, run.err)

    def test_who_sets_options_is_left_alone(self):
        run = self.run_traced(own(), "execve", kept(), "KARST_OPTIONS=", options=("--no-patch",), status=None)
        self.assertEqual(run.out, "2 one said yes ours 0 preload -\n")
        self.assertFalse(run.written)
        preload = os.path.join(os.path.dirname(os.path.dirname(KARST)), "lib", "libkarst.so.0")
        run = self.run_traced(own(), "execve", kept(), "KARST_OPTIONS=", f"LD_PRELOAD=/lib/none.so:{preload}",
                              options=("--no-patch",), status=None)
        self.assertIn("2 one said yes ours 0 preload /lib/none.so\n", run.out)

    def test_where_children_are_not_followed_theirs_is_as_it_is(self):
        run = self.run_traced(own(), "execve", kept(), options=("--no-follow", "--no-patch"), status=None)
        self.assertEqual(run.out, "2 one said yes ours 0 preload -\n")

    def test_of_another_user_nothing_is_put_back(self):
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            self.skipTest("only root becomes another user")
        script = "import os,sys; os.setuid(65534); os.execve(sys.argv[1], ['kept'], {'SAID': 'yes'})"
        where = self.directory / "kept"
        shutil.copy(kept(), where)
        run = self.run_traced("/usr/bin/python3", "-c", script, where, options=("--no-patch",), status=None)
        self.assertEqual(run.out, "1 - said yes ours 0 preload -\n")
        self.assertIn("was started as another user", "".join(self.untraced(run)))

    def test_what_is_wrong_is_as_without(self):
        for name, flags in (("odd", ()), ("odd-old", ("-DOLD",))):
            program = build(name, "processes/odd_starts.c", "-O1", "-w", *flags, compiler="gcc")
            for options in (("--no-patch",), ("--no-follow",), ("--system", "files,time")):
                with self.subTest(name=name, options=options):
                    alone = subprocess.run([program], cwd=self.directory, capture_output=True, text=True, timeout=TIMEOUT)
                    run = self.run_traced(program, options=options, status=None)
                    self.assertEqual(run.out, alone.stdout)
                    self.assertEqual("posix_spawn 0 7\n" in run.out, name == "odd-old", run.out)

    def test_a_sanitizer_in_a_child(self):
        program = build("kept-asan", "processes/kept.c", "-O1", "-fsanitize=address", compiler="gcc")
        for more in ((), ("ASAN_OPTIONS=detect_leaks=0",)):
            run = self.run_traced(own(), "execve", program, *more, options=("--no-patch",), status=None)
            self.assertIn("2 one said yes", run.out, run.err)


class OtherLibrary(Started):
    def test_musl(self):
        program = self.musl()
        for options in ((), ("--no-patch",), ("--system", "files"), ("--sample", "100")):
            with self.subTest(options=options):
                run = self.run_traced(program, "one", options=options, status=None)
                self.assertEqual(run.out, "2 one said - ours 0 preload -\n")
                self.assertIn(f"not in the trace: {program} has another dynamic linker than glibc's", run.err)

    def test_its_status_stays(self):
        self.assertEqual(self.run_traced(self.musl(), status=None).status, 3)

    def test_musl_in_a_child_however_it_is_started(self):
        program = self.musl()
        for how in (*HOWS, *SHELLS):
            with self.subTest(how=how):
                run = self.run_traced(own(), how, program, options=("--no-patch",), status=3)
                self.assertEqual(run.out, "2 one said yes ours 0 preload -\n")
        # With ours inherited.
        run = self.run_traced("sh", "-c", f"'{program}' one; '{program}' two", status=3)
        self.assertEqual(run.out, "2 one said - ours 0 preload -\n2 two said - ours 0 preload -\n")
        self.assertEqual(len(self.untraced(run)), 1, run.err)

    def test_a_script_for_it_and_its_own_loader(self):
        program = self.musl()
        script = self.directory / "script"
        script.write_text(f"#!{program}\n")
        script.chmod(0o755)
        through = self.directory / "through"
        through.write_text(f"#!{script}\n")
        through.chmod(0o755)
        for file in (script, through):
            self.assertIn("ours 0", self.run_traced("sh", "-c", str(file), status=3).out)
            self.assertIn("ours 0", self.run_traced(file, status=3).out)
        interpreter = re.search(r"interpreter: ([^\]]*)\]", subprocess.run(
            ["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout)[1]
        for command in ((interpreter, program), ("sh", "-c", f"{interpreter} {program}")):
            self.assertIn("ours 0", self.run_traced(*command, status=3).out)

    def loaded_by(self, name, *renamed):
        """A plain program, and one built for tracing, with a dynamic linker that lacks these names."""
        loader = self.directory / "ld.so"
        names = Path(LOADER).read_bytes()
        for one in renamed:
            names = names.replace(b"\0" + one, b"\0x" + one[1:])
        loader.write_bytes(names)
        loader.chmod(0o755)
        return [build(f"{name}-{compiler}", "processes/kept.c", "-O1", f"-Wl,--dynamic-linker={loader}", compiler=compiler)
                for compiler in ("gcc", "karst-gcc")]

    def test_a_glibc_of_several_libraries(self):
        """Before 2.34, as far as its dynamic linker's names say. `script/soak old-glibc` has a real one."""
        plain, built = self.loaded_by("kept-old", b"GLIBC_2.34")
        old = r"preload \S*libkarst\.so\.0:\S*libkarst-old-glibc\.so\.0\n"
        for program in (plain, built):
            run = self.run_traced(program, status=3)
            self.assertRegex(run.out, old)
            self.assertEqual(run.trace.counts.get("main" if program == plain else "work"), 1 if program == plain else 100)
        other = "/lib/x86_64-linux-gnu/libm.so.6"
        for words, preload in ((("SAID=yes",), old), ((f"LD_PRELOAD={other}",), old.replace(r":\S", f":{other}:\\S"))):
            run = self.run_traced(own(), "execve", built, *words, options=("--no-patch",), status=3)
            self.assertRegex(run.out, preload)
            self.assertEqual(run.trace.counts.get("work"), 100, run.err)
        run = self.run_traced("sh", "-c", f"{built}; {kept()}", options=("--no-patch",), status=3)
        self.assertEqual(run.trace.counts.get("work"), 200, run.err)
        self.assertRegex(run.out.split("\n")[0] + "\n", old)
        self.assertNotIn("old-glibc", run.out.split("\n")[1])

    def test_a_glibc_that_is_too_old(self):
        plain, _ = self.loaded_by("kept-too-old", b"GLIBC_2.34", b"_dl_exception_create")
        for command in (("sh", "-c", plain), (plain,)):
            run = self.run_traced(*command, options=("--no-patch",) if command[0] == "sh" else (), status=None)
            self.assertIn("is loaded by a glibc that is older than 2.26", "".join(self.untraced(run)))

    def test_another_root(self):
        if os.geteuid() != 0:
            self.skipTest("only root changes it")
        root = self.directory / "root"
        for needed in (LOADER, "/lib/x86_64-linux-gnu/libc.so.6"):
            (root / os.path.dirname(needed)[1:]).mkdir(parents=True, exist_ok=True)
            shutil.copy(needed, root / needed[1:])
        shutil.copy(build("kept-plain", "processes/kept.c", "-O1", compiler="gcc"), root / "kept")
        run = self.run_traced("/usr/sbin/chroot", root, "/kept", "one", options=("--no-patch",), status=3)
        self.assertEqual(run.out, "2 one said - ours 0 preload -\n")
        self.assertNotIn("ERROR: ld.so", run.err)
        self.assertIn("was started where the tracing runtime cannot be read", "".join(self.untraced(run)))


class ByLoader(Started):
    def test_its_own_names(self):
        for flags in ((), ("-Wl,--build-id=none",)):
            program = build("kept" + "".join(flags), "processes/kept.c", "-O1", *flags, compiler="karst-gcc")
            for words in ((), ("--library-path", "/lib"), ("--inhibit-cache", "--argv0", "me")):
                run = self.run_traced(LOADER, *words, program, "one", status=3)
                self.assertEqual(run.trace.counts.get("work"), 100, run.err)
                self.assertEqual(run.trace.processes[0]["executable"], program)

    def test_a_program_as_it_is(self):
        program = build("kept-plain", "processes/kept.c", "-O1", compiler="gcc")
        run = self.run_traced(LOADER, program, "one", status=3)
        self.assertEqual(run.trace.counts.get("main"), 1, run.err)
        run = self.run_traced(LOADER, program, "one", options=("--system", "files"), status=3)
        self.assertRegex(run.out, "^2 one ")
        run = self.run_traced("sh", "-c", f"{LOADER} {kept()} one", status=3)
        self.assertEqual(run.trace.counts.get("work"), 100, run.err)

    def test_a_loader_that_loads_nothing(self):
        run = self.run_traced(LOADER, "--version", status=0)
        self.assertIn("ld.so", run.out)
        self.assertEqual(self.run_traced(LOADER, "/nonexistent", status=None).status, 127)


class Numbers(Started):
    SERVICE = ("import os,sys,ctypes; d=ctypes.c_int(); ctypes.CDLL(None).prctl(2, ctypes.byref(d)); "
               "own=str(os.getpid()); e=os.environ.get; "
               "print(e('LISTEN_PID')==own, e('WATCHDOG_PID')==own, e('LISTEN_PIDFDID'), d.value)")

    def service(self, *options, before="export LISTEN_PID=$$ WATCHDOG_PID=$$ LISTEN_PIDFDID=7"):
        command = f'{before}; exec {KARST} run --sched off {" ".join(options)} -o x.karst python3 -c "$SERVICE"'
        return subprocess.run(["sh", "-c", command], env={**os.environ, "SERVICE": self.SERVICE}, text=True,
                              cwd=self.directory, capture_output=True, timeout=TIMEOUT)

    def test_variables_that_name_the_program(self):
        self.assertEqual(self.service().stdout, "True True None 0\n")
        self.assertEqual(self.service(before="export LISTEN_PID=1 LISTEN_PIDFDID=7").stdout, "False False 7 0\n")

    def test_the_signal_at_the_parents_death(self):
        if shutil.which("setpriv") is None:
            self.skipTest("there is no setpriv")
        done = subprocess.run(["setpriv", "--pdeathsig", "TERM", KARST, "run", "--sched", "off", "-o", "x.karst",
                               "python3", "-c", self.SERVICE], text=True, cwd=self.directory, capture_output=True,
                              timeout=TIMEOUT)
        self.assertEqual(done.stdout, "False False None 15\n")

    def test_the_program_in_karsts_place(self):
        self.assertEqual(self.service("--exec").stdout, "True True 7 0\n")

    def in_place(self, *command, **more):
        return subprocess.Popen([KARST, "run", "--exec", "--sched", "off", "-o", "x.karst", *command], text=True,
                                cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def test_its_number_its_status_and_no_child_that_it_did_not_make(self):
        script = ("import os; print(os.getpid(), os.getpgrp(), os.getsid(0))\n"
                  "try: print(os.waitpid(-1, os.WNOHANG))\nexcept ChildProcessError: print('no child')\n"
                  "os._exit(9)")
        for takes_orphans in (False, True):
            def orphans():
                if takes_orphans:
                    import ctypes
                    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
            process = self.in_place("python3", "-c", script, preexec_fn=orphans)
            out, err = process.communicate(timeout=TIMEOUT)
            self.assertEqual(out, f"{process.pid} {os.getpgrp()} {os.getsid(0)}\nno child\n")
            self.assertEqual(process.returncode, 9)
            # Whoever reads its stderr to the end has waited for the trace.
            self.assertIn("karst: x.karst: 1 process", err)
            self.assertTrue((self.directory / "x.karst").exists())
            (self.directory / "x.karst").unlink()

    def test_its_calls(self):
        process = self.in_place(kept(), "one")
        out, _ = process.communicate(timeout=TIMEOUT)
        self.assertTrue(out.startswith("2 one"))
        report = subprocess.run([KARST, "report", "--format", "csv", "x.karst"], cwd=self.directory,
                                capture_output=True, text=True, check=True).stdout
        self.assertIn('"work"', report)

    def test_killed_in_karsts_place(self):
        process = self.in_place("sleep", "100")
        deadline = time.monotonic() + 60
        while os.readlink(f"/proc/{process.pid}/exe").endswith("/karst") and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
        _, err = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, -9)
        self.assertIn("karst: ", err)

    def test_what_cannot_be_started(self):
        file = self.directory / "none"
        file.write_text("#!/nonexistent\n")
        file.chmod(0o755)
        process = self.in_place(str(file))
        _, err = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 1)
        self.assertIn("cannot run", err)
        for option in ("--view", "--fail-overhead=5%"):
            done = subprocess.run([KARST, "run", "--exec", option, "true"], capture_output=True, timeout=TIMEOUT)
            self.assertEqual(done.returncode, 2)


class Status(Started):
    def test_a_program_of_which_nothing_can_be_patched_keeps_its_own(self):
        program = build("plain.sequences", "plain/sequences.c", "-O2", compiler="gcc")
        run = self.run_traced(program, options=("--sample", "0"), status=0)
        self.assertIn("is not patched", run.err)


class Budget(Started):
    def test_the_default_is_for_programs_that_were_not_built_for_tracing(self):
        program = build("budget-often", "processes/often.c", "-O1", compiler="karst-gcc")
        plain = build("budget-often-plain", "processes/often.c", "-O1", compiler="gcc")
        kept_all = 500_000  # in a second; many more than a budget has room for, and fewer than a slow machine makes
        for file, options, is_whole in ((plain, (), False), (program, (), True), (program, ("--budget", "5%"), False),
                                        (plain, ("--budget", "off"), True)):
            with self.subTest(file=file, options=options):
                run = self.run_traced("timeout", "60", file, options=("--min-instructions", "0", *options))
                self.assertEqual(run.trace.counts["little"] > kept_all, is_whole, run.err)


if __name__ == "__main__":
    main()
