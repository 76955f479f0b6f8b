"""Programs with live registers at their sleds compute the same traced as built without Karst."""
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from support import BIN, TIMEOUT, TracedTest, build, main  # noqa: E402


def cpu_has(flag):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return any(line.startswith("flags") and flag in line.split() for line in file)


class Registers(TracedTest):
    def same(self, name, source, *flags, plainly="gcc", wrapper="karst-gcc"):
        plain = build(name + ".plain", source, *flags, compiler=plainly)
        traced = build(name + ".traced", source, *flags, compiler=wrapper)
        expected = subprocess.run([plain], check=True, capture_output=True, text=True, timeout=TIMEOUT).stdout
        self.assertEqual(subprocess.run([traced], check=True, capture_output=True, text=True).stdout, expected)
        run = self.run_traced(traced)
        self.assertEqual(run.out, expected)
        self.assert_whole(run.trace)
        return run

    def test_registers_at_O0(self):
        run = self.same("registers-O0", "wrapper/registers.c", "-O0")
        counts = run.trace.counts
        self.assertEqual(counts["sum_doubles"], 4)
        self.assertEqual(counts["first_event"], 1)
        self.assertEqual(sum(calls for name, calls in counts.items() if name.startswith("inner")), 7)
        self.assertEqual(len(run.trace.threads), 4)

    def test_registers_at_O2(self):
        run = self.same("registers-O2", "wrapper/registers.c", "-O2")
        # The tail call through memory, made by a tail call through a register.
        self.assertEqual(run.trace.counts["tail_by_memory"], 2)
        self.assertEqual(run.trace.counts["last"], 4)

    def test_registers_at_O3_no_pie(self):
        self.same("registers-O3", "wrapper/registers.c", "-O3", "-no-pie", "-fno-pie")

    def test_registers_at_Os_with_cet(self):
        self.same("registers-Os", "wrapper/registers.c", "-Os", "-fcf-protection=full")

    def test_registers_at_clangs_sleds(self):
        if shutil.which("clang-14") is None:
            self.skipTest("clang-14 is not installed")
        for level in ("-O0", "-O2"):
            flags = (level, "-fno-inline")
            plain = build("registers-clang.plain" + level, "wrapper/registers.c", *flags, compiler="clang-14")
            traced = build("registers-clang" + level, "wrapper/registers.c", *flags, compiler=str(BIN / "karst-clang"))
            expected = subprocess.run([plain], check=True, capture_output=True, text=True, timeout=TIMEOUT).stdout
            run = self.run_traced(traced)
            self.assertEqual(run.out, expected)
            self.assert_whole(run.trace)
            self.assertEqual(run.trace.counts["sum_doubles"], 4)
            self.assertEqual(run.trace.counts["first_event"], 1)

    def test_calling_conventions_of_gcc(self):
        for i, flags in enumerate((["-O0"], ["-O2", "-fcf-protection=full"], ["-Os", "-mindirect-branch=thunk"],
                                   ["-O3", "-mindirect-branch=thunk-inline", "-mfunction-return=thunk-inline"])):
            with self.subTest(flags=flags):
                run = self.same(f"conventions-{i}", "wrapper/conventions.c", *flags)
                self.assertIn("keeps_most 0xff 0xffff\n", run.out)
                self.assertEqual([run.trace.counts[name] for name in ("keeps_most", "by_ms_abi", "leaf")], [1, 2, 3])

    def test_calling_conventions_of_clang(self):
        if shutil.which("clang-14") is None:
            self.skipTest("clang-14 is not installed")
        for level in ("-O0", "-O2", "-Os"):
            with self.subTest(level=level):
                run = self.same("conventions-clang" + level, "wrapper/conventions.c", level, plainly="clang-14",
                                wrapper=str(BIN / "karst-clang"))
                self.assertIn("keeps_most 0xff 0\nkeeps_all 0xff 0xffff\n", run.out)
                self.assertEqual([run.trace.counts[name] for name in ("keeps_most", "keeps_all", "leaf")], [1, 1, 7])

    def test_avx2_arguments(self):
        if not cpu_has("avx2"):
            self.skipTest("this CPU has no AVX2")
        for level in ("-O0", "-O2"):
            self.same("avx2" + level, "wrapper/vectors.c", level, "-mavx2")

    def test_avx512_arguments(self):
        if not cpu_has("avx512f"):
            self.skipTest("this CPU has no AVX-512")
        for level in ("-O0", "-O2"):
            self.same("avx512" + level, "wrapper/vectors.c", level, "-mavx512f")


if __name__ == "__main__":
    main()
