"""karst attach and on --system memory: of programs with an allocator of their own, which log what they take."""
import os
import random
import shutil
import signal
import subprocess
import time

from inject import code_that_differs
from memory import JEMALLOC, rows
from system_on_hosts import ROUNDS, HostTest
from system_on_support import ALL, server_of
from support import KARST, TIMEOUT, build, main

OWN = {"own": (), "next": ("-DNEXT",), "loops": ("-DLOOPS",), "hooked": ("-DHOOKED",),
       "crossing": ("-DCROSSING",)}
NAMES = ("own", "next", "jemalloc")


def program(name, compiler="g++", *more):
    """Random allocations, when asked (memory/random.cc), by an allocator that is linked into the program."""
    if name == "jemalloc":
        flags = ("-Wl,--whole-archive", JEMALLOC, "-Wl,--no-whole-archive", "-lm", "-lstdc++")
    else:
        flags = (build(f"memory_own_{name}.o", "memory/own_allocator.cc", "-std=c++20", "-O2", "-fno-builtin", "-c",
                       *OWN[name], compiler="g++"),)
    return build(f"memory_random_{name}_{compiler}{''.join(more)}", "memory/random.cc", "-std=c++20", "-O1", "-pthread",
                 "-fno-builtin", *flags, *more, compiler=compiler)


class AllocatorTest(HostTest):
    whole = True  # no call that began before tracing has ended since

    def start_asked(self, path, before=(), threads=3):
        self.child = self.start(*before, path, "7", str(threads), "500", "asked")
        self.pid = server_of(self.child) if before else self.child.pid
        self.program = path

    def go(self, *letters):
        self.ask(self.child, *letters)

    def told(self):
        self.child.stdin.write("t\n")
        self.child.stdin.flush()
        told = {}
        for line in iter(self.child.stdout.readline, "done\n"):
            name, *numbers = line.split()
            told[name] = tuple(map(int, numbers))
        return told

    def recorded(self):
        """By function, as the program tells it."""
        found = rows(self.snapshot(self.pid, self.whole).path, "-f", "^.*work<")
        return {name: tuple(row[key] for key in ("allocations", "bytes", "living", "living_bytes"))
                for name, row in found.items()}

    def check_window(self, on, off):
        """What is recorded is what was taken between two moments."""
        self.go("g", "g", "r")
        on()
        self.go("g", "g")
        told = self.told()
        self.assertGreater(sum(of[0] for of in told.values()), 300)
        found = self.recorded()
        self.assertGreaterEqual(len(found), 6)
        self.assertEqual(found, {name: told[name] for name in found})
        off()
        self.go("g")
        self.assertEqual({name: of[:2] for name, of in self.recorded().items()},
                         {name: told[name][:2] for name in found})

    def on(self, *words):
        def do():
            said = self.karst(*words, self.pid, *(ALL if words[0] == "attach" else ()), "--system", "memory")
            self.assertIn("memory recorded from now on", said)
            self.assertNotIn("not seen", said)
        return do

    def off(self):
        self.assertIn("memory not recorded any more", self.karst("off", self.pid, "--system", "memory"))

    def run_by_karst(self, *options):
        return (KARST, "run", "--sched", "off", "--memory", "256M", *options, "-o", self.directory / "whole.karst", "--")

    def with_allocators(self):
        for name in NAMES:
            if name != "jemalloc" or os.path.exists(JEMALLOC):
                yield name


class Allocators(AllocatorTest):
    def test_attached(self):
        for name in self.with_allocators():
            for compiler in ("g++", "karst-g++"):
                with self.subTest(name=name, compiler=compiler):
                    self.start_asked(program(name, compiler))
                    self.check_window(self.on("attach"), self.off)
                    self.finish(self.child)

    def test_at_a_fixed_address(self):
        self.start_asked(program("own", "g++", "-no-pie", "-fno-pie"))
        self.check_window(self.on("attach"), self.off)
        self.finish(self.child)

    def test_attached_before(self):
        """Its allocator's functions are traced by then."""
        for name in self.with_allocators():
            with self.subTest(name=name):
                self.start_asked(program(name))
                self.karst("attach", self.pid, *ALL)
                self.go("g")
                self.check_window(self.on("on"), self.off)
                self.finish(self.child)

    def test_started_by_karst_run(self):
        for name in self.with_allocators():
            for compiler, options in (("g++", ("--budget", "off", "--min-instructions", "0")), ("karst-g++", ())):
                with self.subTest(name=name, compiler=compiler):
                    self.start_asked(program(name, compiler), before=self.run_by_karst(*options))
                    self.check_window(self.on("on"), self.off)
                    self.finish(self.child)

    def test_started_with_its_library_and_no_detours(self):
        self.start_asked(program("own", "karst-g++"), before=self.run_by_karst("--no-patch", "--system", "memory"))
        self.karst("off", self.pid, "--system", "memory")
        self.check_window(self.on("on"), self.off)
        self.finish(self.child)

    def test_detours_of_karst_run_come_back(self):
        for name in self.with_allocators():
            with self.subTest(name=name):
                self.start_asked(program(name), before=self.run_by_karst("--budget", "off", "--system", "memory"))
                self.off()
                self.karst("detach", self.pid)
                self.assertEqual(code_that_differs(self.pid, self.program), [])
                self.check_window(self.on("attach"), self.off)
                self.finish(self.child)

    def test_detached_and_attached_again(self):
        """The program's code is its file's in between, whatever its threads are at."""
        self.whole = False
        for name in self.with_allocators():
            with self.subTest(name=name):
                self.start_asked(program(name))
                self.go("b")
                for _ in range(3):
                    self.on("attach")()
                    self.assertNotEqual(code_that_differs(self.pid, self.program), [])
                    self.karst("detach", self.pid)
                    self.assertEqual(code_that_differs(self.pid, self.program), [])
                    self.karst("attach", self.pid)
                    self.karst("detach", self.pid)
                    self.assertEqual(code_that_differs(self.pid, self.program), [])
                self.go("e")
                self.check_window(self.on("attach"), self.off)
                self.finish(self.child)

    def test_its_functions_are_traced_again_after_detaching(self):
        self.start_asked(program("own"))
        self.karst("attach", self.pid, *ALL)

        def calls():
            return self.snapshot(self.pid).counts.get("malloc", 0)

        before = calls()
        self.go("g")
        first = calls() - before
        self.assertGreater(first, 100)
        self.karst("on", self.pid, "--system", "memory")
        before = calls()
        self.go("g")
        self.assertEqual(calls(), before)
        self.karst("detach", self.pid)
        self.karst("attach", self.pid)
        self.go("g")
        self.assertGreater(calls() - before, 100)
        self.finish(self.child)

    def test_karst_is_killed_at_any_instant(self):
        chance = random.Random(21)
        self.whole = False
        for number in range(ROUNDS):
            with self.subTest(number=number):
                self.start_asked(program("own"))
                self.go("b")
                self.karst("attach", self.pid, *ALL)
                asking = subprocess.Popen([KARST, "on", str(self.pid), "--system", "memory"], stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL)
                time.sleep(chance.random() * 0.3)
                asking.send_signal(signal.SIGKILL)
                asking.wait()
                self.go("e")
                self.karst("off", self.pid, "--system", "memory")
                self.check_window(self.on("on"), self.off)
                self.karst("detach", self.pid)
                self.assertEqual(code_that_differs(self.pid, self.program), [])
                self.finish(self.child)


class Refusals(AllocatorTest):
    def filtered(self):
        return build("inject-filtered", "inject/filtered.c", compiler="gcc")

    def test_a_seccomp_filter(self):
        """No thread is made to do what the filter may forbid; what is there is switched."""
        self.start_asked(program("own", "karst-g++"), before=(*self.run_by_karst(), self.filtered()))
        said = self.karst("on", self.pid, "--system", "memory", status=1)
        self.assertIn("memory of process", said)
        self.assertIn("seccomp filter", said)
        self.assertEqual(len(said.splitlines()), 1, said)
        self.finish(self.child)
        self.start_asked(program("own", "karst-g++"), before=(*self.run_by_karst("--system", "memory"), self.filtered()))
        self.off()
        self.check_window(self.on("on"), self.off)
        self.finish(self.child)

    def check_refused(self, words, *command, then=lambda: None):
        said = self.karst(*command, "--system", "memory")
        self.assertIn(words, " ".join(said.split()))
        self.go("g", "b", "e")
        path = self.snapshot(self.pid, whole=False).path
        done = subprocess.run([KARST, "notes", "--kind", "record", path], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertNotIn("alloc(", done.stdout)
        then()
        self.karst("detach", self.pid)
        self.assertEqual(code_that_differs(self.pid, self.program), [])
        self.finish(self.child)

    def test_a_function_that_cannot_be_patched(self):
        """All of its functions are seen, or none is."""
        self.start_asked(program("loops"))
        self.check_refused("the program has in itself are not seen; free: it jumps back to its first instruction", "attach",
                           self.pid, *ALL)

    def test_a_jump_that_would_lie_in_two_pages(self):
        """What was traced is traced as before."""
        self.start_asked(program("crossing"))
        self.karst("attach", self.pid, *ALL)
        self.go("g")
        before = self.snapshot(self.pid).counts["malloc"]
        self.check_refused("the program has in itself are not seen; valloc: threads stand there all the time, a jump would lie "
                           "in two pages", "on", self.pid, then=lambda: self.assertGreater(
                               self.snapshot(self.pid, whole=False).counts["malloc"], before + 100))

    def test_an_allocator_that_cannot_be_told_from_the_program(self):
        self.start_asked(program("hooked"))
        self.assertIn("an allocator in itself, which cannot be told from the program's other code",
                      self.karst("attach", self.pid, *ALL, "--system", "memory", status=1))
        self.go("g", "b", "e")
        self.finish(self.child)

    def test_a_sanitizers_allocator(self):
        compiler = shutil.which("clang++-14") or shutil.which("clang++")
        if compiler is None:
            self.skipTest("there is no clang++, which links a sanitizer into the program")
        self.start_asked(build("memory_random_sanitized", "memory/random.cc", "-std=c++20", "-O1", "-pthread",
                               "-fsanitize=address", compiler=compiler))
        self.assertIn("cannot be told from the program's other code",
                      self.karst("attach", self.pid, *ALL, "--system", "memory", status=1))
        self.go("b", "e")
        self.finish(self.child)

    def test_if_nothing_is_to_be_patched(self):
        self.start_asked(program("own", "karst-g++"))
        self.check_refused("the program has in itself are not seen", "attach", self.pid, "--no-patch")


if __name__ == "__main__":
    main()
