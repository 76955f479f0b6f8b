"""Arguments and returned values (karst run --args, --returns), against what programs pass, and against gdb."""
import csv
import io
import json
import re
import shutil
import subprocess
import unittest
from pathlib import Path

import support
from support import KARST, TracedTest, build, main

# Of program.cc. Its addresses differ from run to run.
EXPECTED = {
    "ints": ["ints(a=-1, b=200, c=-300, d=4000000000, e=-5, f=1099511627776, g=7, h=8) = -294967387"],
    "floats": ["floats(a=1.5, b=-2.25, n=3) = 2.25"],
    "texts": ['texts(a="hello", b="it\'s \\"b\\"\\n", c="' + "c" * 64 + '"..., d="a view") = true'],
    "enums": ["enums(c=GREEN, f=kOne, b=true, ch='z') = BLUE"],
    "points": ["points(p.x=1, p.y=2, q.x=3, q.y=4, big.a=10, big.b=20, big.c=30, m.d=2.5, m.n=6) = {x=4, y=38}"],
    "joins": ['joins[abi:cxx11](v=[3], p=0x, w=[2]) = "xxxxx"'],
    "bigs": ["bigs(n=7) = {a=7, b=8, c=9}"],
    "Thing::method": ["Thing::method(this=0x, n=9) const = 12"],
    "name": ['name(n=0) = null', 'name(n=1) = "a name"'],
    "behind": ["behind(g.k=1, a=2, y.b=<not shown>, b=4, t=<not shown>, c=7, d=<not shown>, e=9, #9=<not shown>, f=10, "
               "v=<not shown>, h=12.5, w=<not shown>, last=14) = 99"],
    "bad": ["bad(p=<unreadable>, s=0x0) = 1"],
}


def called(trace):
    """Function to its calls as the tree has them, addresses left out."""
    found = {}
    for line in trace.timed_tree():
        text = re.sub(r"^ *[\d.]+ [nmu]?s *[=!~]? *", "", line)
        function = re.match(r"[\w:]+", text)
        if function:
            found.setdefault(function[0], []).append(re.sub(r"0x[0-9a-f]{3,}", "0x", text))
    return found


def rows(trace, *options):
    done = subprocess.run([KARST, "calls", "--format", "csv", str(trace.path), *options], check=True, capture_output=True,
                          text=True, timeout=support.TIMEOUT)
    return list(csv.DictReader(io.StringIO(done.stdout)))


def agrees(ours, expected, may_be_gone):
    """`may_be_gone`: the compiler passes nothing in what is not used, and says so."""
    ours, expected = ours.split(", "), expected.split(", ")
    return len(ours) == len(expected) and all(
        a == b or (may_be_gone and "<optimized out>" in a and a.split("=")[0] == b.split("=")[0])
        for a, b in zip(ours, expected))


class Values(TracedTest):
    def check(self, compiler, optimised, options=(), least=None, may_be_gone=False):
        program = build(f"values_{Path(compiler).name}{optimised}", "values/program.cc", optimised, "-std=c++17", compiler=compiler)
        plain = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        functions = "^(" + "|".join(EXPECTED) + r")(\[|\()"
        run = self.run_traced(program, options=("--args", functions, "--returns", functions, *options))
        self.assertEqual(run.out, plain)
        self.assert_whole(run.trace)
        found = called(run.trace)
        self.assertGreaterEqual(len(EXPECTED.keys() & found.keys()), least or len(EXPECTED))
        for function in EXPECTED.keys() & found.keys():
            for ours, expected in zip(sorted(found[function]), sorted(EXPECTED[function]), strict=True):
                self.assertTrue(agrees(ours, expected, may_be_gone), f"{ours}\nis not\n{expected}")
        return run

    def test_gcc_O0(self):
        self.check("karst-g++", "-O0")

    def test_gcc_O2(self):
        self.check("karst-g++", "-O2")

    def test_clang_O0(self):
        self.check(str(support.BIN / "karst-clang++"), "-O0")

    def test_clang_O2(self):
        self.check(str(support.BIN / "karst-clang++"), "-O2", may_be_gone=True)

    def test_a_program_that_was_not_built_for_karst(self):
        # Functions that are shorter than a jump cannot be patched.
        self.check("g++", "-O2", ("--min-instructions", "1"), least=8)

    def test_every_command_shows_them(self):
        run = self.check("karst-g++", "-O1")
        row, = rows(run.trace, "--function", "^floats")
        self.assertEqual((row["arguments"], row["returned"]), ("a=1.5, b=-2.25, n=3", "2.25"))
        notes = json.loads(subprocess.run([KARST, "notes", "--json", run.trace.path], check=True, capture_output=True,
                                          text=True).stdout)["notes"]
        self.assertIn(("returned", "bigs(int)", "a=7, b=8, c=9"), [(n["kind"], n["name"], n["value"]) for n in notes])
        chrome = json.loads(subprocess.run([KARST, "export", run.trace.path, "--to", "chrome", "-o", "/dev/stdout"],
                                           check=True, capture_output=True, text=True).stdout)
        event, = [e for e in chrome["traceEvents"] if str(e.get("name")).startswith("enums(")]
        self.assertEqual(event["args"], {"c": "GREEN", "f": "kOne", "b": "true", "ch": "'z'", "returned": "BLUE"})

    def test_what_noting_took_is_in_no_time(self):
        program = build("values_heap", "values/heap.cc", "-O2")
        run = self.run_traced(program, "1000", options=("--args", "^look", "--returns", "^look"))
        self.assertEqual(called(run.trace)["look"][0][:12], 'look(text="x')

        def report(*options):
            done = subprocess.run([KARST, "report", "--json", *options, run.trace.path], check=True, text=True,
                                  capture_output=True, timeout=support.TIMEOUT)
            return {f["function"].split("(")[0]: f for f in json.loads(done.stdout)["functions"]}

        recorded, without = report("--raw"), report()
        # serve() has no time of its own to speak of. What is asked of the kernel takes a tenth of a microsecond at least.
        noting = without["look"]["tracing_ns"] - without["serve"]["tracing_ns"]
        self.assertGreater(noting, 1000 * 100)
        for function in ("serve", "main"):
            self.assertGreaterEqual(recorded[function]["total_ns"] - without[function]["total_ns"], noting * 0.99)
        self.assertLess(without["serve"]["self_ns"], recorded["serve"]["self_ns"] / 2)
        self.assertEqual(recorded["look"]["tracing_ns"], 0)

    def test_only_some_arguments_are_noted(self):
        program = build("values_some", "values/program.cc", "-O1")
        run = self.run_traced(program, options=("--args", "^ints:2,8", "--args", "^floats:0", "--returns", "^name"))
        found = called(run.trace)
        self.assertEqual(found["ints"], ["ints(b=200, h=8)"])
        self.assertEqual(found["floats"], ["floats(float, double, int)"])
        self.assertEqual(sorted(found["name"]), ['name(int) = "a name"', "name(int) = null"])

    def test_calls_fit_together_in_threads_handlers_and_children(self):
        program = build("values_random", "values/random.cc", "-O2", "-pthread")
        run = self.run_traced(program, "3000", options=("--args", "twice|depth", "--returns", "twice|depth"))
        twice = rows(run.trace, "--function", "^twice")
        self.assertGreaterEqual(len(twice), 9100)
        for row in twice:
            n, d = re.fullmatch(r"n=(\d+), d=([\d.]+)", row["arguments"]).groups()
            self.assertEqual(int(row["returned"]), 2 * int(n) + int(float(d)))
        for row in rows(run.trace, "--function", "^depth"):
            self.assertEqual(row["arguments"], "n=" + row["returned"])

    def test_an_enumeration_of_many_long_names(self):
        source = self.directory / "names.cc"
        names = [f"k{'A' * 90}{i:02}" for i in range(64)]
        source.write_text(f"enum Names {{ {', '.join(names)} }};\n"
                          "__attribute__((noinline)) int named(Names n) { asm volatile(\"\" ::: \"memory\"); return n; }\n"
                          "int main() { return named(static_cast<Names>(63)) - 63; }\n")
        run = self.run_traced(build("values_names", source, "-O1"), options=("--args", "^named"))
        self.assertEqual(rows(run.trace, "--function", "^named")[0]["arguments"], "n=" + names[63])

    def check_copies(self, compiler):
        """What is shown is right, and what is gone is not shown; how often something is gone, and parts of functions."""
        program = build(f"values_copies_{Path(compiler).name}", "values/copies.c", "-O2", compiler=compiler)
        run = self.run_traced(program, options=("--args", ".", "--returns", "."))
        right = {"field": {"obj": ["7"], "event": ['"event"']},
                 "middle": {"first": ["1", "2", "3"], "unused": ["2", "3", "4"], "same": ["40"], "last": ["51", "52", "53"]},
                 "alone": {"n": ["11", "12", "13"]}, "parts": {"n": ["21", "22", "23"]}}
        gone = parts = compared = 0
        for row in rows(run.trace):
            name, _, suffix = row["function"].partition(".")
            parts += suffix != ""
            if name not in right:
                continue
            for pair in row["arguments"].split(", "):
                argument, _, value = pair.partition("=")
                gone += value.startswith("<")
                if argument in right[name] and not value.startswith("<"):
                    compared += 1
                    self.assertIn(value, right[name][argument], f"{row['function']}({row['arguments']})")
            if name == "alone" and row["returned"]:
                self.assertGreaterEqual(int(row["returned"]), 11 * 11, row)
            if name == "parts":
                self.assertEqual("n=" + row["returned"], row["arguments"])
            if name == "middle":
                self.assertIn(row["returned"], ("", "51", "104", "159"))
        self.assertGreaterEqual(compared, 12)
        symbols = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
        return gone, parts, symbols

    def test_copies_that_gcc_changed(self):
        gone, parts, symbols = self.check_copies("karst-gcc")
        self.assertIn(" parts.cold\n", symbols)
        self.assertGreaterEqual(gone, 3)
        self.assertGreaterEqual(parts, 3)

    def test_functions_that_clang_changed(self):
        self.check_copies(str(support.BIN / "karst-clang"))

    def texts(self, *options):
        """Place to the set of what was noted there: texts, and strings."""
        run = self.run_traced(build("values_places", "values/places.cc", "-O1", "-pthread"),
                              options=("--args", r"^(text|object)\b", *options))
        self.assertEqual(run.out, "done\n")
        found = {}
        for row in rows(run.trace, "--function", r"^(text|object)\b"):
            where, value = re.fullmatch(r'where="([^"]*)", s=(.*)', row["arguments"]).groups()
            found.setdefault(where, set()).add(value)
        return found

    BAD = ("one", "highest", "non-canonical", "gone", "fiber's guard", "fiber's other guard", "below the stack")
    STACKS = ("main", "thread", "small thread", "least thread", "own stack")

    def test_texts_wherever_they_lie(self):
        found = self.texts()
        stack = {'"on a stack"', '"short"', '"a text that is longer than a string itself"'}
        expected = {"literal": {'"a literal"'}, "constant": {'"a constant"'}, "end of the constants": {'""'},
                    "heap": {'"on the heap"'}, "null": {"null"}, "end of a page": {'"at an end"'},
                    **{where: {"<unreadable>"} for where in self.BAD}, **{where: stack for where in self.STACKS},
                    "fiber": stack, "handler": stack}
        self.assertRegex(found.pop("argv").pop(), r'^"/.*"(\.\.\.)?$')
        self.assertEqual(found, expected)

    def test_what_is_read_without_the_kernel(self):
        # With prefault no system call is made: what stays readable is read all the same.
        found = self.texts("--prefault")
        stack = {'"on a stack"', '"short"', "<unreadable>"}  # a long string's text is on the heap
        self.assertEqual(found["literal"] | found["constant"], {'"a literal"', '"a constant"'})
        for where in ("main", "thread", "small thread", "own stack"):
            self.assertEqual(found[where], stack, where)
        for where in (*self.BAD, "heap", "end of a page"):
            self.assertEqual(found[where], {"<unreadable>"}, where)

    def test_slow_calls_that_keep_themselves_have_them(self):
        program = build("values_random", "values/random.cc", "-O2", "-pthread")
        run = self.run_traced(program, "3000", options=("--slowest", "^twice:3", "--args", "^twice", "--returns", "^twice"))
        for row in rows(run.trace, "--function", "^twice"):
            self.assertNotEqual(row["arguments"], "")

    def test_bad_input_is_named(self):
        program = build("values_stripped", "values/program.cc", "-O1", "-g0")
        run = self.run_traced(program, options=("--args", "ints"))
        self.assertIn("they have no debug information of C or C++: compile them with -g", run.err)
        self.assertEqual(called(run.trace)["ints"], ["ints(signed char, unsigned char, short, unsigned int, long, "
                                                     "unsigned long long, int, int)"])
        run = self.run_traced(program, options=("--args", "nothing is called so"))
        self.assertIn("no traced function is one that --args or --returns means", run.err)
        for option in ("--args", "--returns"):
            run = self.run_traced(program, options=(option, "(nothing"))
            self.assertIn("no traced function is one that --args or --returns means", run.err)

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
    def test_gdb_sees_the_same_arguments(self):
        program = build("values_gdb", "values/program.cc", "-O0", compiler="g++")
        functions = ["ints", "floats", "recurse", "bigs"]
        script = []
        for function in functions:
            script += ["-ex", f"break {function}"]
        script += ["-ex", "run"] + ["-ex", "info args", "-ex", "continue"] * 7
        done = subprocess.run(["gdb", "-batch", "-nx", *script, program], capture_output=True, text=True, timeout=120)
        if "ptrace" in done.stderr:
            self.skipTest("gdb may not trace here")
        by_gdb = [dict(re.findall(r"^(\w+) = (\S+)", part, re.M))
                  for part in re.split(r"^Breakpoint \d+, ", done.stdout, flags=re.M)[1:]]
        by_gdb = [args for args in by_gdb if args]
        self.assertEqual(len(by_gdb), 7)
        run = self.run_traced(build("values_for_gdb", "values/program.cc", "-O0"),
                              options=("--args", "^(" + "|".join(functions) + r")\("))
        ours = [dict(pair.split("=") for pair in row["arguments"].split(", ")) for row in rows(run.trace)
                if row["arguments"]]
        self.assertEqual([{k: float(v) for k, v in args.items()} for args in ours],
                         [{k: float(v) for k, v in args.items()} for args in by_gdb])


if __name__ == "__main__":
    main()
