"""Manners of a guest: a program does the same with Karst and without. manners/README.md says which test has which."""
import os
import re
import resource
import shutil
import subprocess
import unittest
from pathlib import Path

from modules_support import library
from support import BIN, HERE, KARST, TIMEOUT, TracedTest, Trace, build, main

LIBRARY = BIN.parent / "lib" / "libkarst.so.0"
SECONDS = os.environ.get("KARST_LEAK_SECONDS")  # script/soak leaks


def program():
    return build("manners", "manners/state.cc", "-O1", "-rdynamic", "-pthread")


def confine():
    return build("confine", "manners/confine.c", "-O1", compiler="gcc")


class Outcome:
    """What the outside sees of a program's end; the lines that Karst adds to its standard error are apart."""

    def __init__(self, done):
        self.status = done.returncode if done.returncode >= 0 else 128 - done.returncode
        self.out = done.stdout
        lines = done.stderr.splitlines()
        self.err = [line for line in lines if not line.startswith("karst:")]
        self.karst = [line for line in lines if line.startswith("karst:")]

    def seen(self):
        return self.status, self.out, self.err


class MannersTest(TracedTest):
    def run_with(self, before, command, env=None, input="", launcher=(), **more):
        return Outcome(subprocess.run(
            [*launcher, *before, *map(str, command)], cwd=self.directory, input=input, capture_output=True, text=True,
            env={**os.environ, "MANNERS_ROOT": str(self.directory), **(env or {})}, timeout=TIMEOUT, **more))

    def same(self, *command, options=(), env=None, traced=True, **more):
        """The same without Karst, under `karst run` and with the library preloaded. Returns these three outcomes."""
        path = self.directory / "trace.karst"
        alone = self.run_with((), command, env=env, **more)
        run = self.run_with((KARST, "run", "-o", path, *self.SCHED, *options, "--"), command, env=env, **more)
        preloaded = self.run_with((), command, env={"LD_PRELOAD": str(LIBRARY), **(env or {})}, **more)
        self.assertEqual(alone.seen(), run.seen(), run.karst)
        self.assertEqual(alone.seen(), preloaded.seen(), preloaded.karst)
        if traced:
            self.trace = self.trace_at(path, run)
        return alone, run, preloaded

    def trace_at(self, path, run):
        self.assertTrue(path.exists(), run.karst)
        trace = Trace(path)
        self.assertGreater(sum(trace.counts.values()), 0)
        return trace

    def need(self, command):
        if shutil.which(command) is None:
            self.skipTest(f"{command} is not installed")


class State(MannersTest):
    """What a process can see of itself."""

    def test_signals_masks_and_handlers(self):
        alone, *_ = self.same(program(), "signals")
        self.assertIn("exec", alone.out)

    def test_errno(self):
        self.same(program(), "errors")

    def test_descriptors(self):
        alone, *_ = self.same(program(), "descriptors")
        self.assertIn("lost 0", alone.out)

    def test_closed_streams(self):
        def close_streams():
            os.closerange(0, 3)
        seen = []
        for name, before, env in (("alone", (), {}), ("run", (KARST, "run", "-o", "t.karst", "--"), {}),
                                  ("preloaded", (), {"LD_PRELOAD": str(LIBRARY)})):
            file = self.directory / name
            done = subprocess.run([*before, program(), "closed-streams"], cwd=self.directory, preexec_fn=close_streams,
                                  env={**os.environ, **env, "MANNERS_FILE": str(file)}, timeout=TIMEOUT)
            seen.append((done.returncode, file.read_text()))
        self.assertEqual(seen, [seen[0]] * 3)

    def test_few_descriptors(self):
        alone, *_ = self.same(program(), "few-descriptors",
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        self.assertEqual(alone.out, "in order 1, enough 1\n")

    def test_standard_streams(self):
        self.same(program(), "stdio", input="".join(f"{i} line\n" for i in range(20)))

    def test_environment(self):
        self.same(program(), "environment")

    def test_exit_at_once(self):
        alone, *_ = self.same(program(), "exit-at-once")
        self.assertEqual(alone.status, 42)

    def test_own_handler_of_traps(self):
        alone, *_ = self.same(program(), "own-traps")
        self.assertEqual(alone.out, "traps 1000\n")

    def test_backtrace(self):
        alone, *_ = self.same(program(), "backtrace")
        self.assertIn("(_Z6middle", alone.out)

    def test_forks_in_threads(self):
        alone, *_ = self.same(program(), "forks-in-threads")
        self.assertEqual(alone.out, "40 children\n")

    def test_smallest_stacks_of_threads(self):
        self.same(program(), "small-stacks")

    def test_smallest_alternate_stack(self):
        self.same(program(), "alternate-stack", 640)  # bytes: docs/limits.md has what hooks need

    def test_restartable_sequences(self):
        made = build("sequences", "manners/sequences.c", "-O2", "-pthread", compiler="karst-gcc")
        for options in ((), ("--memory", "1M"), ("--clock", "thread", "--memory", "1M")):
            with self.subTest(options=options):
                alone, *_ = self.same(made, options=options)
                if "no restartable" in alone.out:
                    self.skipTest(alone.out.strip())
                self.assertEqual(alone.out, "4000000 of 4000000, begun again\n")


class Rights(MannersTest):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root can give up rights, or change its root")

    def test_rights_given_up(self):
        alone, *_ = self.same(program(), "drop-user")
        self.assertIn("with rights 0, back -1", alone.out)

    def test_changed_root(self):
        alone, *_ = self.same(program(), "changed-root")
        self.assertIn("changed 0, proc -1", alone.out)


class Filters(MannersTest):
    """Filters of system calls (seccomp)."""

    def test_container(self):
        self.same(confine(), "container", program(), "plain")

    def test_service_whose_other_calls_are_deadly(self):
        self.same(confine(), "service", program(), "plain")

    def test_own_sandbox(self):
        alone, *_ = self.same(program(), "sandbox")
        self.assertIn("sandbox 0", alone.out)

    def test_own_sandbox_by_a_bare_system_call(self):
        alone, *_ = self.same(program(), "sandbox-bare")
        self.assertIn("sandbox 0", alone.out)


class Limits(MannersTest):
    """Little memory, by each way in which it can be limited."""

    def limited(self, *limits):
        def limit():
            for what, most in limits:
                resource.setrlimit(what, (most, most))
        return limit

    def test_address_space(self):
        # Enough for the arena, and too little for the program's wishes: these end earlier, and as they would anyway.
        self.same(program(), "eat", preexec_fn=self.limited((resource.RLIMIT_AS, 500 << 20)))

    def test_little_address_space(self):
        alone, run, preloaded = self.same(program(), "plain", traced=False,
                                          preexec_fn=self.limited((resource.RLIMIT_AS, 150 << 20)))
        for each in (run, preloaded):
            self.assertTrue(any("memory" in line for line in each.karst), each.karst)

    def test_each_limit_of_address_space(self):
        """Whatever of the runtime's own memory cannot be had, the program is as it was."""
        made = build("nap", "manners/nap.c", "-O0", compiler="karst-gcc")
        for mebibytes in range(150, 290, 4):
            done = subprocess.run([made], env={**os.environ, "LD_PRELOAD": str(LIBRARY), "KARST_OPTIONS": "memory=1M",
                                   "MALLOC_ARENA_MAX": "1"},  # libc makes more when threads meet in malloc
                                  preexec_fn=self.limited((resource.RLIMIT_AS, mebibytes << 20)), timeout=TIMEOUT)
            self.assertEqual(done.returncode, 0, f"{mebibytes} MiB")

    def test_data(self):
        self.same(program(), "eat", preexec_fn=self.limited((resource.RLIMIT_DATA, 200 << 20)))

    def test_locked_memory(self):
        self.same(program(), "plain", preexec_fn=self.limited((resource.RLIMIT_MEMLOCK, 0)))

    def test_all_memory_locked(self):
        alone, *_ = self.same(program(), "lock-all", options=("--memory", "4M"), env={"KARST_OPTIONS": "memory=4M"})
        self.assertIn("locked", alone.out)

    def in_memory_group(self, mebibytes):
        """A launcher into a new group of that much memory."""
        parents = [p for p in (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")) if (p / "cgroup.procs").exists()]
        if not parents:
            self.skipTest("no memory groups here")
        group = parents[0] / f"karst-{os.getpid()}-{self._testMethodName}"
        try:
            group.mkdir()
            self.addCleanup(group.rmdir)
            limit = next((group / name for name in ("memory.limit_in_bytes", "memory.max") if (group / name).exists()))
            limit.write_text(str(mebibytes << 20))
        except (OSError, StopIteration):
            self.skipTest("no memory group can be made here")
        return lambda: (group / "cgroup.procs").write_text(str(os.getpid()))

    def test_memory_group_that_is_nearly_full(self):
        # The program uses what it has without Karst. Its group has 24 MiB more, which is less than the arena would take.
        self.same(program(), "hold", 100, preexec_fn=self.in_memory_group(124))


class Mounts(MannersTest):
    """File systems that are missing, full or read-only, in a namespace of their own."""

    def namespace(self, script):
        """A launcher into a mount namespace in which the script has been run."""
        if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
            self.skipTest("no mount namespace can be made here")
        # What the shell itself must not be traced by is preloaded behind it.
        end = ' && { [ -z "$KARST_LIBRARY" ] || export LD_PRELOAD="$KARST_LIBRARY"; } && exec "$@"'
        return ("unshare", "-m", "sh", "-c", script + end, "sh")

    def mounted(self, script, *command, **more):
        return self.same(*command, launcher=self.namespace(script), **more)

    def test_no_shared_memory_directory(self):
        self.mounted("mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3", program(), "plain")

    def test_no_proc(self):
        # karst itself needs it: the program is traced by its own means.
        script = "mount -t tmpfs none /proc"
        alone, preloaded = (self.run_with((), (*self.namespace(script), program(), "plain"), env=env)
                            for env in ({}, {"KARST_LIBRARY": str(LIBRARY)}))
        self.assertEqual(alone.seen(), preloaded.seen(), preloaded.karst)
        run = self.run_with((*self.namespace(script), KARST, "run"), (program(), "plain"))
        self.assertIn("is /proc mounted?", " ".join(run.karst))

    def test_read_only_file_systems(self):
        if str(self.directory).startswith("/tmp/"):
            self.skipTest("the build lies below /tmp, which this test hides")
        self.mounted("mount -o remount,ro / ; mount -t tmpfs none /tmp && mount -o remount,ro /tmp && "
                     "mount -t tmpfs none /dev/shm && mount -o remount,ro /dev/shm", program(), "plain", traced=False)

    def test_full_shared_memory_file_system(self):
        self.mounted("mount -t tmpfs -o size=64k none /dev/shm && ! dd if=/dev/zero of=/dev/shm/full 2>/dev/null",
                     program(), "plain")


class Tools(MannersTest):
    """Other tools around the same program, and with the program under Karst."""

    def around(self, *tool, seen=Outcome.seen, env=None):
        self.need(tool[0])
        launcher = ("env", *(f"{k}={v}" for k, v in (env or {}).items()))
        alone = self.run_with(tool, (program(), "plain"), launcher=launcher)
        preloaded = self.run_with(tool, ("env", f"LD_PRELOAD={LIBRARY}", program(), "plain"), launcher=launcher)
        run = self.run_with((KARST, "run", "-o", "trace.karst", *self.SCHED, "--", *tool), (program(), "plain"),
                            launcher=launcher)
        return alone, run, preloaded

    def test_strace(self):
        alone, run, preloaded = self.around("strace", "-f", "-o", "/dev/null")
        if "strace" in " ".join(alone.err):
            self.skipTest("strace cannot trace here")
        self.assertEqual((alone.status, alone.out), (run.status, run.out), run.err)
        self.assertEqual((alone.status, alone.out), (preloaded.status, preloaded.out), preloaded.err)

    def test_gdb(self):
        self.need("gdb")
        tool = ("gdb", "-nx", "-q", "-batch", "-ex", "break work", "-ex", "run", "-ex", "bt", "-ex", "delete", "-ex",
                "continue", "--args")
        for env in ({}, {"LD_PRELOAD": str(LIBRARY)}):
            done = self.run_with(tool, (program(), "plain"), env=env)
            self.assertIn("#1  ", done.out)
            self.assertIn("leaves 800000", done.out)
            self.assertIn("exited with code 011", done.out)

    def test_valgrind(self):
        alone, run, preloaded = self.around("valgrind", "-q", "--error-exitcode=55")
        self.assertEqual(alone.seen(), preloaded.seen())
        self.assertEqual((alone.status, alone.out), (run.status, run.out), run.err)

    def test_perf(self):
        self.need("perf")
        alone, run, preloaded = self.around("perf", "record", "-q", "-g", "-o", "/dev/null")
        if alone.status != 9:
            self.skipTest("perf cannot record here")
        self.assertEqual((alone.status, alone.out), (run.status, run.out), run.err)
        self.assertEqual((alone.status, alone.out), (preloaded.status, preloaded.out), preloaded.err)

    def test_rr(self):
        self.need("rr")
        alone, run, preloaded = self.around("rr", "record", "-n", "-o", "recorded")
        if alone.status != 9:
            self.skipTest("rr cannot record here: " + " ".join(alone.err)[:200])
        self.assertEqual((alone.status, alone.out), (run.status, run.out), run.err)

    def allocator(self, name):
        for directory in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"):
            path = Path(directory) / name
            if path.exists():
                break
        else:
            self.skipTest(f"{name} is not installed")
        alone = self.run_with((), (program(), "plain"), env={"LD_PRELOAD": str(path)})
        for order in (f"{path}:{LIBRARY}", f"{LIBRARY}:{path}"):
            self.assertEqual(alone.seen(), self.run_with((), (program(), "plain"), env={"LD_PRELOAD": order}).seen())
        run = self.run_with((KARST, "run", "-o", "trace.karst", *self.SCHED, "--"), (program(), "plain"),
                            env={"LD_PRELOAD": str(path)})
        self.assertEqual(alone.seen(), run.seen())

    def test_jemalloc(self):
        self.allocator("libjemalloc.so.2")

    def test_tcmalloc(self):
        self.allocator("libtcmalloc_minimal.so.4")


class Sanitizers(MannersTest):
    def sanitized(self, kind):
        built = build(f"manners-{kind}", "manners/state.cc", "-O1", "-rdynamic", "-pthread", f"-fsanitize={kind}")
        # Not forks in threads: gcc 12's allocators of the sanitizers hang after these, also without Karst.
        for part in ("plain", "signals"):
            alone = self.run_with((), (built, part))
            run = self.run_with((KARST, "run", "-o", "trace.karst", *self.SCHED, "--"), (built, part))
            self.assertEqual(alone.seen(), run.seen(), part)

    def test_address_sanitizer(self):
        self.sanitized("address")

    def test_an_address_sanitizer_that_shall_be_the_first_library(self):
        built = build("manners-address", "manners/state.cc", "-O1", "-rdynamic", "-pthread", "-fsanitize=address")
        run = self.run_with((KARST, "run", "-o", "trace.karst", *self.SCHED, "--"), (built, "plain"),
                            env={"ASAN_OPTIONS": "verify_asan_link_order=1"})
        self.assertIn("ASan runtime does not come first", "".join(run.seen()[-1]))

    def test_thread_sanitizer(self):
        self.sanitized("thread")

    def test_undefined_behaviour_sanitizer(self):
        self.sanitized("undefined")


class Leaks(MannersTest):
    def test_no_leak(self):
        """Threads, a library and children come and go: nothing grows but the table of threads, up to its size."""
        made = build("leak", "manners/leak.cc", "-O1", "-pthread", "-std=c++20")
        rounds = f"{SECONDS}s" if SECONDS else "16"
        done = subprocess.run([made, library("first"), rounds], capture_output=True, text=True, check=True,
                              env={**os.environ, "LD_PRELOAD": str(LIBRARY), "KARST_OPTIONS": "memory=1M",
                                   "MALLOC_ARENA_MAX": "1"},  # libc makes more when threads meet in malloc
                              timeout=TIMEOUT + int(SECONDS or 0))
        seen = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
        settled, last = seen[min(8, len(seen) // 2)], seen[-1]
        # 80 threads a round, 128 bytes each in the arena and 64 beside it; beyond 65,536 entries are used again.
        threads = 65536 if SECONDS else 80 * (len(seen) - 9)
        # Every dozen rounds or so 35 to 75 pages of one mapping of ours become real at once; why, was not found.
        self.assertLess(last[0] - settled[0], threads * 64 / 1024 + 384, f"KiB of the process's own: {seen}")
        self.assertLess(last[1] - settled[1], threads * 128 / 1024 + 16, f"KiB of the arena: {seen}")
        self.assertEqual(last[2:], settled[2:], f"descriptors, mappings: {seen}")


class Table(unittest.TestCase):
    def test_the_table_has_every_manner(self):
        """Each test that manners/README.md names is there, and it names all of this file's."""
        named = set(re.findall(r"`(\w+\.test_\w+)`", (HERE / "manners" / "README.md").read_text()))
        there = {f"{script.stem}.{test}" for script in HERE.glob("*.py")
                 for test in re.findall(r"^    def (test_\w+)", script.read_text(), re.MULTILINE)}
        self.assertEqual(named - there, set())
        own = {test for test in there if test.startswith("manners.")}
        self.assertEqual(own - named, {"manners.test_the_table_has_every_manner"})


if __name__ == "__main__":
    main()
