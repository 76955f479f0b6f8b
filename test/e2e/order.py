"""karst export --to order: programs that are linked by it have their functions in the order of their first calls."""
import random
import subprocess

from support import KARST, TIMEOUT, TracedTest, build, main

FUNCTIONS = 200
CALLED = 120


class Order(TracedTest):
    SCHED = ()

    def sources(self):
        """A program that calls CALLED of its functions, in an order that is not that of their source."""
        names = [f"f{i:03}" for i in range(FUNCTIONS)]
        called = random.Random(4).sample(names, CALLED)
        functions = self.directory / "functions.cc"
        functions.write_text("volatile unsigned g_sum;\n" + "".join(
            f"__attribute__((noinline)) void {f}(int n) {{ for (int i = 0; i < n; ++i) g_sum = g_sum + i; }}\n" for f in names))
        program = self.directory / "program.cc"
        program.write_text("".join(f"void {f}(int);\n" for f in called) + "int main() {\n" +
                           "".join(f"  {f}(3);\n" for f in called) +
                           f"  for (int i = 0; i < 50; ++i) {called[100]}(2);\n" + "}\n")
        return functions, program, called

    def karst(self, *words, status=0):
        done = subprocess.run([KARST, *words], capture_output=True, text=True, timeout=TIMEOUT, cwd=self.directory)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def link(self, compiler, option, functions, program):
        done = subprocess.run([*compiler, "-O2", "-ffunction-sections", str(functions), str(program), option, "-o",
                               str(self.directory / "linked")], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        subprocess.run([self.directory / "linked"], check=True, timeout=TIMEOUT)
        nm = subprocess.run(["nm", "-n", self.directory / "linked"], check=True, capture_output=True, text=True).stdout
        return [line.split()[2] for line in nm.splitlines() if " T _Z4f" in line or line.endswith(" T main")]

    def test_linkers_lay_functions_out_so(self):
        functions, program, called = self.sources()
        combined = self.directory / "combined.cc"
        combined.write_text(functions.read_text() + program.read_text())
        path = str(self.run_traced(build("order", combined, "-O2")).trace.path)
        wanted = ["main"] + [f"_Z4{f}i" for f in called]
        self.assertEqual(self.karst("order", path).split(), wanted)
        self.assertEqual(self.karst("order", path, "--by", "calls").split()[0], f"_Z4{called[100]}i")
        self.assertEqual(len(self.karst("order", path, "-f", "^f00").split()), sum(f < "f010" for f in called))
        for form in ("symbols", "sections", "callgraph"):
            self.karst("order", path, "--format", form, "-o", form)
        lld, gold = ("clang++-14", "-fuse-ld=lld"), ("g++", "-fuse-ld=gold")
        # lld puts functions that are not listed behind, gold before.
        placed = self.link(lld, f"-Wl,--symbol-ordering-file={self.directory}/symbols", functions, program)
        self.assertEqual(placed[:len(wanted)], wanted)
        self.assertEqual(len(placed), 1 + FUNCTIONS)
        placed = self.link(gold, f"-Wl,--section-ordering-file={self.directory}/sections", functions, program)
        self.assertEqual(placed[-len(wanted):], wanted)
        placed = self.link(lld, f"-Wl,--call-graph-ordering-file={self.directory}/callgraph", functions, program)
        self.assertEqual(placed[:2], ["main", f"_Z4{called[100]}i"])  # the heaviest edge first
        self.assertEqual(set(placed[:len(wanted)]), set(wanted))

    def test_mistakes(self):
        path = str(self.run_traced(build("hello", "order/hello.c", "-O1", compiler="karst-gcc")).trace.path)
        self.assertEqual(self.karst("order", path), "main\nhello\n")
        self.assertIn("has functions of no module named libnone.so; it has /", self.karst("order", path, "--module",
                                                                                        "libnone.so", status=1))
        self.assertEqual(self.karst("order", path, "--module", "hello"), "main\nhello\n")
        self.assertIn("does not go with --format callgraph",
                      self.karst("order", path, "--format", "callgraph", "--by", "calls", status=2))
        self.assertIn("cannot", self.karst("order", path, "-o", "nowhere/out", status=1))



if __name__ == "__main__":
    main()
