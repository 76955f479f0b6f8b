"""Arguments and returned values of generated functions: no value that is shown may be another one than was passed."""
import os
import random
import re
import shutil
import subprocess
import unittest

from support import KARST, TIMEOUT, TracedTest, main
from values_generator import Program


def parts(text):
    """`a=1, b.c=2` as pairs."""
    return [part.split("=", 1) for part in text.split(", ") if "=" in part]


def differences(program, tree):
    """What is shown and wrong, and how many values are shown."""
    wrong, shown = [], 0
    calls = {name: list(truth) for name, truth in program.truth.items()}
    for line in tree.splitlines():
        found = re.search(r"\b(?:M\d+::)?(f\d+)(?:\.\w+)*(?:\.\d+)*\((.*?)\)(?: = (.*))?$", line)
        # A part of a function that was split counts as a call.
        if not found or not calls.get(found[1]):
            continue
        arguments, result = calls[found[1]].pop(0)
        returned = found[3] or ""
        members = parts(returned.strip("{}")) if returned.startswith("{") else [["", returned]] if returned else []
        for truth, values in ((arguments, parts(found[2])), (result, members)):
            for name, value in values:
                # An object that is not shown by its members has its address; `this` is one.
                if value.startswith("<") or value == "" or (name not in truth and value.startswith("0x")):
                    continue
                shown += 1
                if truth.get(name) != value:
                    wrong.append(f"{found[1]} {name}={value}, was {truth.get(name)}: {line.strip()}")
    return wrong, shown


def build_and_run(program, directory, compiler, options, run):
    """The tree of a traced run; none: the compiler refuses the source."""
    source = directory / ("generated.cc" if program.cpp else "generated.c")
    source.write_text(program.text)
    made = subprocess.run([compiler, "-w", "-Wno-psabi", *options, str(source), "-o", str(directory / "generated")],
                          capture_output=True, text=True, timeout=TIMEOUT)
    if made.returncode != 0:
        return None
    trace = directory / "generated.karst"
    run([KARST, "run", "--budget", "off", "--min-instructions", "0", "--args", r"\bf\d", "--returns", r"\bf\d",
         "-o", str(trace), str(directory / "generated")])
    return run([KARST, "tree", "--no-states", str(trace)])


class Generated(TracedTest):
    def check(self, compiler, options, cpp, seed):
        if shutil.which(compiler) is None:
            raise unittest.SkipTest(f"needs {compiler}")
        program = Program(random.Random(seed), cpp)

        def run(words):
            return subprocess.run(words, check=True, capture_output=True, text=True, timeout=TIMEOUT,
                                  env=dict(os.environ, XDG_CACHE_HOME=str(self.directory / "cache"))).stdout
        tree = build_and_run(program, self.directory, compiler, options, run)
        self.assertIsNotNone(tree, "it does not compile")
        wrong, shown = differences(program, tree)
        self.assertEqual(wrong, [], f"{compiler} {options} seed {seed}")
        self.assertGreater(shown, 20)

    def test_c_by_gcc(self):
        self.check("gcc", ["-O1", "-g"], False, 1)
        self.check("gcc", ["-O2", "-gdwarf-2", "-gstrict-dwarf"], False, 2)

    def test_cpp_by_gcc(self):
        self.check("g++", ["-O2", "-gdwarf-4"], True, 3)
        self.check("g++", ["-O0", "-gdwarf-3", "-gstrict-dwarf"], True, 4)

    def test_by_clang(self):
        self.check("clang-14", ["-O1", "-gdwarf-2"], False, 5)
        self.check("clang++-14", ["-O2", "-g"], True, 6)
        self.check("clang++-14", ["-O0", "-gdwarf-4", "-fdebug-types-section"], True, 7)

    CONVENTIONS = r"""
#include <stdio.h>
struct P { double a; long b; };
__attribute__((noinline, ms_abi)) int f1(int a, double b, struct P c, int d, int e) { return printf("%d %g %g %d %d\n", a, b, c.a, d, e); }
__attribute__((noinline)) int f2(int a, int b, int c, int d, int e, __int128 f, int g, int h) { return printf("%d %d\n", g, h) + a + b + c + d + e + (int)f; }
__attribute__((noinline)) int f3(x, y) float x; short y; { return printf("%g %d\n", x, y); }
int main(void) {
  f1(11, 2.5, (struct P){3.5, 4}, 15, 16);
  f2(1, 2, 3, 4, 5, 6, 7, 8);
  f3(1.5, 7);
  int base = 40;
  __attribute__((noinline)) int f4(int a, double b) { return printf("%d %g\n", a + base, b); }
  return f4(2, 0.5) < 0;
}
"""

    def test_other_conventions_are_not_shown_or_right(self):
        truth = {"f1": {"a": "11", "b": "2.5", "c.a": "3.5", "c.b": "4", "d": "15", "e": "16"},
                 "f2": dict(zip("abcdeghf", "12345786")), "f3": {"x": "1.5", "y": "7"}, "f4": {"a": "2", "b": "0.5"}}
        for compiler in ("gcc", "clang-14"):
            text = self.CONVENTIONS
            if compiler != "gcc":  # which has no nested functions
                text = text[:text.index("  int base")] + "}\n"
            program = type("Made", (), {"text": text, "cpp": False,
                                        "truth": {name: [(values, {})] for name, values in truth.items()}})
            for options in (["-O0", "-g"], ["-O2", "-g"], ["-O0", "-gdwarf-2", "-gstrict-dwarf"]):
                def run(words):
                    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=TIMEOUT).stdout
                tree = build_and_run(program, self.directory, compiler, options, run)
                self.assertIsNotNone(tree)
                tree = re.sub(r"\) = .*", ")", tree)
                self.assertEqual(differences(program, tree)[0], [], f"{compiler} {options}\n{tree}")


if __name__ == "__main__":
    main()
