"""Jumps through tables and registers, in programs that were not built for Karst: each leaves its function or does not.

usage: plain_jumps.py COUNT SEED   examines so many random programs (plain/jumps_program.py) from that seed on.
"""
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent / "plain")]
import jumps_program  # noqa: E402
from plain import WHOLE, left_alone  # noqa: E402
from support import TIMEOUT, TracedTest, main  # noqa: E402
from ways_out import shown  # noqa: E402

COMPILERS = ("gcc-11", "gcc-12", "clang-14", "clang-19")
LEVELS = ("-O1", "-O2", "-O3", "-Os")
KINDS = (["-fPIE", "-pie"], ["-fno-pie", "-no-pie"])
THUNKS = ["-fcf-protection=none"]
EXTRAS = {"gcc": ([], ["-fcf-protection=full"], ["-mcmodel=large"], ["-fno-omit-frame-pointer"], ["-mfunction-return=thunk-inline", *THUNKS],
                  ["-mfunction-return=thunk", *THUNKS], ["-mindirect-branch=thunk", *THUNKS]),
          "clang": ([], ["-fcf-protection=full"], ["-mcmodel=large"], ["-fno-omit-frame-pointer"], ["-mretpoline"])}

BY_TABLE = """#include <unistd.h>
static int add(int x) { usleep(1); return x + 1; }
static int sub(int x) { usleep(1); return x - 1; }
int (*finish[2])(int) = {add, sub};
__attribute__((noinline)) int run(const char *code, int x) {
  static const void *const op[] = {&&inc, &&dbl, &&end};
  goto *op[*code - 'a'];
inc: x = x * 3 + 1; if (x > 1000000) x /= 7; goto *op[*++code - 'a'];
dbl: x = x * 2 - 5; if (x < -100000) x /= 3; goto *op[*++code - 'a'];
end: return finish[x & 1](x);
}
__attribute__((noinline)) int after(int x) { usleep(1); return x * 2; }
int main(void) { int s = 0; for (int i = 0; i < 3; i++) { s += run("ababac", i); s += after(s); } return s & 1; }
"""

RETURNS = """__attribute__((noinline)) int leaf(int x) { volatile int s = x; for (int i = 0; i < 3; i++) s += i; return s; }
__attribute__((noinline)) int middle(int x) { if (x & 1) return leaf(x) + 1; return leaf(x + 2) * 3; }
int main(void) { int s = 0; for (int i = 0; i < 9; i++) s += middle(i); return s & 1; }
"""
RETURN_THUNK = """.globl __x86_return_thunk
.type __x86_return_thunk, @function
__x86_return_thunk: ret
  int3
.size __x86_return_thunk, . - __x86_return_thunk
.section .note.GNU-stack, "", @progbits
"""


def base_name(line):
    """Without what tells a clone of a function from it."""
    return line.split()[0].partition(".")[0]


def depth(line):
    return (len(line) - len(line.lstrip())) // 2


class Jumps(TracedTest):
    def made(self, compiler, flags, source, *more, name="program"):
        (self.directory / f"{name}.c").write_text(source)
        program = str(self.directory / name)
        made = subprocess.run([compiler, *flags, "-w", self.directory / f"{name}.c", *more, "-o", program], capture_output=True,
                              text=True, timeout=TIMEOUT)
        self.assertEqual(made.returncode, 0, made.stderr)
        return program

    def examine(self, seed):
        """The program's way is its seed's. The calls are those of its log, each as deep as it is."""
        r = random.Random(f"way of {seed}")
        compiler = r.choice([c for c in COMPILERS if shutil.which(c)])
        flags = [r.choice(LEVELS), *r.choice(KINDS), *r.choice(EXTRAS[compiler.partition("-")[0]])]
        source = jumps_program.program(seed)
        with self.subTest(seed=seed, compiler=compiler, flags=flags):
            logged = self.made(compiler, [*flags, "-DLOGGED"], source, name="logged")
            log = subprocess.run([logged], capture_output=True, text=True, timeout=TIMEOUT).stderr.split()[:-1]
            program = self.made(compiler, flags, source)
            plain = subprocess.run([program], capture_output=True, text=True, timeout=TIMEOUT)
            alone = {name.partition(".")[0]: why for name, why in left_alone(program).items()}
            run = self.run_traced(program, options=WHOLE)
            self.assertIn(plain.stderr, run.err)
            self.assert_whole(run.trace)
            lines = [line for line in shown(run.trace.tree()) if not line.startswith("#")]
            calls = [(base_name(line), depth(line)) for line in lines if line.split()[0] != "main"]
            self.assertEqual([name for name, _ in calls], [name for name in log if name not in alone], alone)
            outer = 0 if "main" in alone else 1
            self.assertEqual({d for name, d in calls if re.fullmatch(r"f\d+|after", name)} - {outer}, set(), alone)
            self.assertLessEqual(max(d for _, d in calls), outer + 1)
            return sum(bool(re.fullmatch(r"f\d+", name)) for name, _ in calls)

    def test_random_programs(self):
        seen = sum(self.examine(seed) or 0 for seed in range(12))
        self.assertGreater(seen, 100, "too many of their functions are left alone")

    def test_tail_calls_by_a_table_beside_computed_gotos(self):
        for compiler in COMPILERS:
            if shutil.which(compiler) is None:
                continue
            for flags in [[level, *kind] for level in LEVELS[1:] for kind in KINDS]:
                with self.subTest(compiler=compiler, flags=flags):
                    program = self.made(compiler, flags, BY_TABLE)
                    run = self.run_traced(program, options=WHOLE, status=None)
                    self.assert_whole(run.trace)
                    lines = [line for line in shown(run.trace.tree()) if line.split()[0] in ("run", "after")]
                    # clang's code at a fixed address begins by an instruction that may fault, and a jump.
                    why = left_alone(program).get("run")
                    expected = [("after", 1)] if "clang" in compiler and "-no-pie" in flags and "first" in why else [("run", 1), ("after", 1)]
                    self.assertEqual([(line.split()[0], depth(line)) for line in lines], expected * 3, why)

    def test_returns_by_thunks(self):
        """-mfunction-return: they are no tail calls."""
        (self.directory / "thunk.s").write_text(RETURN_THUNK)
        for kind in ("thunk", "thunk-inline", "thunk-extern"):
            with self.subTest(kind=kind):
                more = [self.directory / "thunk.s"] if kind == "thunk-extern" else []
                flags = ["-O2", f"-mfunction-return={kind}", "-fcf-protection=none"]
                run = self.run_traced(self.made("gcc", flags, RETURNS, *more), options=WHOLE, status=None)
                self.assert_whole(run.trace)
                self.assertEqual(run.trace.counts, {"main": 1, "middle": 9, "leaf": 9})
                self.assertEqual((run.trace.info["tail_calls"], run.trace.info["open_calls"]), (0, 0))


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1].isdigit():
        test = Jumps("examine")
        test.setUp()
        for one in range(int(sys.argv[2]), int(sys.argv[2]) + int(sys.argv[1])):
            test.examine(one)
    else:
        main()
