"""A second namespace by dlmopen() has its own libc. Programs run as they do untraced; what they ask of the second libc is
not told, and what they ask of the first one is told once."""
import csv
import io
import subprocess
from collections import Counter

from support import KARST, TIMEOUT, TracedTest, build, main

SYSTEMS = "locks=all,memory,files,net,time"
TURNS = 3


def plain(name):
    return name.split("(")[0]


class Namespaces(TracedTest):
    def setUp(self):
        super().setUp()
        self.file = self.directory / "data"
        self.file.write_bytes(bytes(300))

    def command(self, host, library):
        return (build(f"namespaces_{host}", "namespaces/host.cc", "-std=c++20", "-O1", "-fno-builtin", "-pthread",
                      compiler=host),
                build(f"namespaces_{library}.so", "namespaces/library.c", "-O1", "-fno-builtin", "-shared", "-fPIC",
                      "-pthread", compiler=library), str(self.file), str(TURNS))

    def csv(self, command, path, *options):
        done = subprocess.run([KARST, command, "--format", "csv", str(path), *options], check=True, capture_output=True, text=True,
                              timeout=TIMEOUT)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def assert_only_outer(self, path, turns):
        """Nothing of the second libc's, and all of the first one's."""
        memory = {plain(row["function"]): row for row in self.csv("memory", path)}
        self.assertEqual((memory["outer_take"]["allocations"], memory["outer_take"]["bytes"]),
                         (str(10 * turns), str(3000 * turns)))
        files = self.csv("files", path)
        self.assertEqual(Counter(row["call"] for row in files if plain(row["function"]) == "outer_read"),
                         {"open": turns, "read": turns, "close": turns})
        holds = self.csv("locks", path, "--by", "hold")
        self.assertEqual([plain(row["taken_in"]) for row in holds if "outer" in row["taken_in"]],
                         ["outer_read"] * turns)
        for row in [*memory.values(), *files]:
            self.assertNotIn("inner", row["function"])
        for row in holds:
            self.assertNotIn("inner", row["taken_in"])

    def test_in_all_builds(self):
        for host in ("g++", "karst-g++"):
            for library in ("gcc", "karst-gcc"):
                command = self.command(host, library)
                alone = subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT).stdout
                self.assertEqual(len(alone.splitlines()), TURNS)
                for options in ((), ("--system", SYSTEMS), ("--system", "memory=4K"), ("--library", "*")):
                    with self.subTest(host=host, library=library, options=options):
                        run = self.run_traced(*command, options=options)
                        self.assertEqual(run.out, alone)
                        self.assert_sound(run.trace)
                        if library == "karst-gcc":
                            self.assertEqual({name: run.trace.counts[name] for name in
                                              ("inner_take", "inner_wait", "inner_read")},
                                             {"inner_take": 2 * TURNS, "inner_wait": 2 * TURNS, "inner_read": 2 * TURNS})
                        if options == ("--system", SYSTEMS) and host == "karst-g++":
                            self.assert_only_outer(run.trace.path, TURNS)

    def test_asked_for_when_it_runs(self):
        """The libraries that karst brings come into the first namespace, wherever in memory its modules lie."""
        child = subprocess.Popen([*self.command("karst-g++", "gcc"), "wait"], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True, cwd=self.directory)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), "loaded\n")
        subprocess.run([KARST, "attach", str(child.pid), "--system", SYSTEMS], check=True, capture_output=True,
                       timeout=TIMEOUT)
        mapped = Counter(line.split()[-1].split("/")[-1] for line in open(f"/proc/{child.pid}/maps")
                         if " r-xp " in line and "libkarst" in line)
        self.assertEqual((len(mapped), set(mapped.values())), (6, {1}))
        child.stdin.write("\n")
        child.stdin.flush()
        self.assertEqual(child.stdout.readline(), "101 100 101\n")
        path = self.directory / "moment.karst"
        subprocess.run([KARST, "snapshot", str(child.pid), "-o", str(path)], check=True, capture_output=True,
                       timeout=TIMEOUT)
        self.assert_only_outer(path, 1)
        out, _ = child.communicate("\n\n", timeout=TIMEOUT)
        self.assertEqual((child.returncode, out.count("101 100 101\n")), (0, TURNS - 1))


if __name__ == "__main__":
    main()
