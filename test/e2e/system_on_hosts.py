"""karst on PID --system: of which programs what is seen, and that each computes what it would have."""
import glob
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import time
from collections import Counter

from system_on_support import ALL, FLAGS, SystemOnTest, server_of
from support import BIN, KARST, TIMEOUT, build, main

ROUNDS = int(os.environ.get("KARST_ATTACH_ROUNDS", "12"))
LIBRARIES = ("locks", "memory", "files", "net", "time")


def plugin():
    return build("system_on-plugin", "system_on/plugin.c", "-O1", "-shared", "-fPIC", compiler="gcc",
                 output="system_on_plugin.so")


def host(way="now"):
    return build(f"system_on-host-{way}", "system_on/host.c", "-O1", "-pthread", *FLAGS[way], compiler="gcc")


class HostTest(SystemOnTest):
    def start(self, *command, **more):
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True, cwd=self.directory, **more)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), "ready\n")
        return child

    def ask(self, child, *requests):
        for request in requests:
            child.stdin.write(request + "\n")
            child.stdin.flush()
            self.assertEqual(child.stdout.readline(), "done\n")

    def finish(self, child):
        out, err = child.communicate(timeout=TIMEOUT)
        self.assertEqual((child.returncode, out), (0, "right\n"), err)

    def writes(self, pid):
        """By bytes of a call."""
        return Counter(int(call["written"]) for call in self.csv("files", self.snapshot(pid)) if call["call"] == "write")


class Hosts(HostTest):
    def test_calls_of_each_kind(self):
        child = self.start(build("system_on-kinds", "system_on/kinds.c", "-O1", compiler="gcc"))

        def ask(*numbers):
            for number in numbers:
                child.stdin.write(f"{number}\n")
                child.stdin.flush()
                self.assertEqual(child.stdout.readline(), f"{number} 1 7 opened\n")

        ask(1)
        self.karst("attach", child.pid, *ALL, "--system", "files,net,memory")
        ask(2, 3, 4)
        self.karst("off", child.pid, "--system", "files,net,memory")
        ask(5)
        trace = self.snapshot(child.pid)
        calls = Counter((call["call"], call["file"].split(" ")[0].split("/")[-1]) for call in self.csv("files", trace))
        self.assertEqual({call: count for call, count in calls.items() if call[0] not in ("printf", "puts", "fscanf")},
                         {("eventfd", "eventfd"): 3, ("eventfd_read", "eventfd"): 3, ("eventfd_write", "eventfd"): 3,
                          ("epoll_create", "epoll"): 3, ("epoll_ctl", "epoll"): 3, ("epoll_wait", "epoll"): 3,
                          ("close", "epoll"): 3, ("close", "eventfd"): 3, ("dlopen", "libm.so.6"): 3})
        self.assertEqual(sorted(call[0] for call in calls.elements() if call[0] in ("printf", "puts")),
                         ["printf"] * 3 + ["puts"] * 3)
        tree = subprocess.run([KARST, "tree", trace.path], capture_output=True, text=True, timeout=TIMEOUT).stdout
        moved = re.findall(r"(?m)^ +(s?brk)\(from=(0x\w+), to=(0x\w+)\)$", tree)
        self.assertEqual([call for call, _, _ in moved], ["sbrk", "brk"] * 3)
        self.assertEqual({int(to, 16) - int(begin, 16) for _, begin, to in moved}, {4096, -4096})
        self.assertEqual(child.communicate(timeout=TIMEOUT)[0], "")
        self.assertEqual(child.returncode, 0)

    def test_modules_that_come_later(self):
        for way in FLAGS:
            with self.subTest(way=way):
                child = self.start(host(way), plugin())
                self.karst("attach", child.pid, *ALL, "--system", "files")
                self.ask(child, "w 3", "p 4")
                self.assertEqual({size: count for size, count in self.writes(child.pid).items() if size in (3, 5)},
                                 {3: 3})
                self.assertIn("files recorded as before", self.karst("on", child.pid, "--system", "files"))
                self.ask(child, "w 3", "p 4")
                self.assertEqual({size: count for size, count in self.writes(child.pid).items() if size in (3, 5)},
                                 {3: 6, 5: 4})
                self.finish(child)

    def test_pointers_in_data(self):
        for way in FLAGS:
            with self.subTest(way=way):
                child = self.start(host(way), plugin())
                self.karst("attach", child.pid, *ALL, "--system", "files")
                self.ask(child, "t", "t")
                self.assertEqual(self.writes(child.pid)[2], 4)
                self.finish(child)

    def test_conditions_of_both_versions(self):
        for way in FLAGS:
            with self.subTest(way=way):
                child = self.start(host(way), plugin())
                self.karst("attach", child.pid, *ALL, "--system", "locks")
                self.ask(child, "c", "c")
                waits = [wait["kind"] for wait in self.csv("locks", self.snapshot(child.pid), "--by", "wait")]
                self.assertEqual(waits, ["condition"] * 2)
                self.finish(child)

    def test_forks(self):
        child = self.start(host(), plugin())
        self.karst("attach", child.pid, *ALL, "--system", "files,memory,locks,time")
        self.ask(child, "f", "w 1", "f")
        self.assertEqual(self.writes(child.pid)[3], 1)
        self.finish(child)

    def test_karst_is_killed_at_any_instant(self):
        chance = random.Random(21)
        for number in range(ROUNDS):
            with self.subTest(number=number):
                child = self.start(host("lazy" if number % 2 else "now"), plugin())
                self.karst("attach", child.pid, *ALL)
                asking = subprocess.Popen([KARST, "on", str(child.pid), "--system", "files,memory,locks"],
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(chance.random() * 0.05)
                asking.send_signal(signal.SIGKILL)
                asking.wait()
                self.ask(child, "w 20", "t", "f", "p 3")
                self.karst("on", child.pid, "--system", "files,memory,locks")
                self.ask(child, "w 7")
                self.assertGreaterEqual(self.writes(child.pid)[3], 7)
                self.finish(child)

    def test_two_at_once(self):
        child = self.start(host(), plugin())
        self.karst("attach", child.pid, *ALL)
        both = [subprocess.Popen([KARST, "on", str(child.pid), "--system", "files,memory"], stderr=subprocess.PIPE,
                                 text=True) for _ in range(2)]
        said = [one.communicate(timeout=TIMEOUT)[1] for one in both]
        # The second waits for the first, or is told that it is at it.
        self.assertIn(0, [one.returncode for one in both], said)
        self.karst("on", child.pid, "--system", "files,memory")
        self.ask(child, "w 5")
        self.assertEqual(self.writes(child.pid)[3], 5)
        self.finish(child)

    def test_an_allocator_with_operators_of_its_own(self):
        found = [path for name in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4")
                 for path in glob.glob("/usr/lib/*/" + name)]
        if not found:
            self.skipTest("there is no jemalloc or tcmalloc")
        program = build("system_on-news", "system_on/news.cc", "-O1", compiler="g++")
        for allocator in found:
            with self.subTest(allocator=allocator):
                child = self.start(program, env={**os.environ, "LD_PRELOAD": allocator})
                self.karst("attach", child.pid, *ALL, "--system", "memory")
                self.ask(child, "w")
                rows = self.csv("memory", self.snapshot(child.pid))
                self.assertEqual([sum(int(row[what]) for row in rows) for what in ("allocations", "living")], [30, 10])
                self.finish(child)

    def test_python_while_it_works(self):
        """Debian's own: each file that it writes has the bytes that it says."""
        python = "/usr/bin/python3"
        if not pathlib.Path(python).exists():
            self.skipTest("there is no Debian python3")
        script = ("import os, re, select, sys\nprint('ready', flush=True)\n"
                  "while True:\n"
                  "    for i in range(2000): re.sub('a+', 'b', 'xaay%d' % i)\n"
                  "    if not select.select([0], [], [], 0)[0]: continue\n"
                  "    if not sys.stdin.readline(): break\n"
                  "    for i in range(50):\n"
                  "        f = os.open(f'data{i % 3}', os.O_WRONLY | os.O_CREAT)\n"
                  "        os.write(f, b'x' * i)\n"
                  "        os.close(f)\n"
                  "    print('done', flush=True)\n"
                  "print('right')\n")
        child = self.start(python, "-c", script)
        self.ask(child, "go")
        self.assertIn("files recorded from now on", self.karst("attach", child.pid, "--memory", "256M", "--budget", "off",
                                                               "--system", "files"))
        self.ask(child, "go")
        written = Counter()
        for call in self.csv("files", self.snapshot(child.pid, whole=False)):
            if call["call"] == "write" and call["file"].endswith(("data0", "data1", "data2")):
                written[pathlib.Path(call["file"]).name] += int(call["written"])
        self.assertEqual(written, {f"data{k}": sum(i for i in range(50) if i % 3 == k) for k in range(3)})
        self.karst("detach", child.pid)
        self.ask(child, "go")
        self.finish(child)

    def test_each_function_of_a_library_has_its_slots_redirected(self):
        if shutil.which("nm") is None:
            self.skipTest("there is no nm")
        for name in LIBRARIES:
            library = str(BIN.parent / "lib" / f"libkarst-{name}.so.0")

            def symbols(*options):
                lines = subprocess.run(["nm", *options, library], check=True, capture_output=True, text=True).stdout
                return [line.split()[-1].split("@")[0] for line in lines.splitlines()]

            stand_ins = {symbol.split("stand_in_")[1].removesuffix("E") for symbol in symbols()
                         if "stand_in_" in symbol and symbol.endswith("E")}
            if not stand_ins:
                self.skipTest("the libraries have no symbols")
            exported = {symbol for symbol in symbols("-D", "--defined-only")
                        if not symbol.startswith(("karst_", "__start_", "__stop_", "GLIBC_"))}
            self.assertGreater(len(exported), 5)
            self.assertEqual(exported - stand_ins, set(), name)


class Refusals(HostTest):
    def refused(self, pid, words, *options):
        said = self.karst("on", pid, "--system", "files", status=1)
        self.assertIn(words, said)
        self.assertEqual(len(said.splitlines()), 1, said)

    def test_without_a_descriptor(self):
        child = self.start(host(), plugin(), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)))
        self.karst("attach", child.pid, *ALL)
        self.ask(child, "d")
        self.refused(child.pid, "files of process")
        self.ask(child, "w 5", "t")
        self.finish(child)

    def test_what_is_not_traced(self):
        child = self.start(host(), plugin())
        self.refused(child.pid, "is not traced by Karst")
        self.finish(child)

    def test_words_that_are_wrong(self):
        child = self.start(host(), plugin())
        for words, said in ((("on", child.pid, "--system", "file"), "did you mean 'files'?"),
                            (("on", child.pid, "--system", "files=3"), "files takes nothing behind it"),
                            (("on", child.pid, "--system", "files", "--for", "1s"), "--system goes with nothing else"),
                            (("off", child.pid, "--system", "files,files"), "files is named twice"),
                            (("attach", child.pid, "--system", ""), "it is one of")):
            self.assertIn(said, self.karst(*words, status=2))
        self.finish(child)

    def test_a_debugger_has_it(self):
        if shutil.which("strace") is None:
            self.skipTest("there is no strace")
        child = self.start(host(), plugin())
        self.karst("attach", child.pid, *ALL)
        strace = subprocess.Popen(["strace", "-p", str(child.pid), "-o", "/dev/null"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(strace.communicate)
        self.addCleanup(strace.kill)
        if "attached" not in strace.stderr.readline():
            self.skipTest("strace may not attach here")
        self.refused(child.pid, "(a debugger, or strace) traces it already")
        strace.terminate()
        strace.wait()
        self.karst("on", child.pid, "--system", "files")
        self.finish(child)

    def test_a_seccomp_filter(self):
        """What is in it already is switched all the same: no thread of it is asked for that."""
        program = build("inject-filtered", "inject/filtered.c", compiler="gcc")
        child = self.start(KARST, "run", "--sched", "off", "--system", "locks", "-o", self.directory / "whole.karst", "--",
                           program, host(), plugin())
        pid = server_of(child)
        self.refused(pid, "seccomp filter")
        self.assertIn("locks not recorded any more", self.karst("off", pid, "--system", "locks"))
        self.assertIn("locks recorded from now on", self.karst("on", pid, "--system", "locks"))
        self.ask(child, "w 5")
        self.finish(child)

    def test_another_users_process(self):
        if os.geteuid() != 0:
            self.skipTest("it takes root to start one")
        self.directory.chmod(0o777)
        child = self.start(host(), plugin())
        self.karst("attach", child.pid, *ALL)
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", KARST, "on", str(child.pid),
                               "--system", "files"], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
        self.assertIn("only that user and root may look into it", done.stderr)
        self.finish(child)


if __name__ == "__main__":
    main()
