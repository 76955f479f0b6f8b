"""Random programs compute the same plain, with idle sleds, traced, and while tracing is switched.

Karst's counts are those of the programs' own log, and each call has its exit.

usage: generated.py COUNT SEED [CHOICE=VALUE...]   examines so many seeds (script/soak) and prints those that fail.

A seed is a program (generated/cxx_program.py, csmith_program.py) and a way to build and trace it (generated/ways.py).
CHOICE=VALUE fixes a part of the way: compiler=clang-14. What failed stays in build/generated/SEED with its commands.
"""
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent / "generated")]
import support  # noqa: E402
import ways  # noqa: E402
from examination import Examined, Unfit, Wrong, base_name, log_of, wrong_counts  # noqa: E402
from live_toggle import LiveTest  # noqa: E402
from support import ROOT  # noqa: E402

SWITCHES = {"ci": 20, "soak": 150}  # of tracing while a program runs, in each direction


def repeat(seed, asked):
    return " ".join(["script/soak generated 1", str(seed), *(f"'{name}={value}'" for name, value in asked.items())])


class Generated(LiveTest):
    def some(self, first, count, **asked):
        """So many seeds that are fit, of those from `first` on."""
        unfit = []
        while count:
            if len(unfit) > 20:
                self.fail(f"no fit programs: {unfit}")
            examined = Examined(first, asked, self.directory)
            if examined.way.missing():
                self.skipTest(f"{examined.way.missing()} is not installed")
            try:
                examined.examine(self, SWITCHES["ci"])
                count -= 1
            except Unfit as reason:
                unfit.append(str(reason))
            except Wrong as wrong:
                self.fail(f"{examined.way.text()}: {wrong}\nrepeat it: {repeat(first, asked)}")
            first += 1

    def test_cxx_by_gcc_12(self):
        self.some(100, 4, compiler="gcc-12", program="c++")

    def test_cxx_by_gcc_11(self):
        self.some(200, 3, compiler="gcc-11", program="c++")

    def test_cxx_by_clang_14(self):
        self.some(300, 4, compiler="clang-14", program="c++")

    def test_cxx_by_clang_14_for_size(self):
        """Seeds 9 and 11 went wrong when the hooks of conditional tail calls did not keep the flags."""
        self.some(9, 3, compiler="clang-14", program="c++", level="-Os", method="sled")

    def test_cxx_by_clang_19(self):
        self.some(500, 4, compiler="clang-19", program="c++")

    def test_csmith_by_gcc(self):
        self.some(600, 3, compiler="gcc-12", program="csmith")

    def test_csmith_by_clang(self):
        self.some(700, 3, compiler="clang-19", program="csmith")

    def test_what_differs_from_the_log_is_noticed(self):
        log = log_of("checksum 1\ncalls f1 exact 3\ncalls f2 most 4\ncalls f3<0u> exact 0\n")
        right = {"f1(int)": 2, "f1(int) [clone .constprop.0]": 1, "f2.lto_priv.0()": 2, "main": 1}
        self.assertEqual(wrong_counts(log, right, exact=False), [])
        for wrong, exact in (({}, False), (right | {"f1(int)": 3}, False), (right | {"f2()": 3}, False), (right, True),
                             (right | {"f3<0u>(float)": 1}, False)):
            self.assertEqual(len(wrong_counts(log, wrong, exact)), 1, wrong)
        self.assertEqual(base_name("Base4::f4(double) [clone .isra.0]"), "Base4::f4")


def soak(count, first, asked):
    test = Generated("some")
    test.setUp()
    own = test.directory  # examinations put theirs in its place
    home = ROOT / "build" / "generated"
    begin, good, met, unfit, failed = time.time(), Counter(), Counter(), Counter(), []
    try:
        for seed in range(first, first + count):
            directory = home / str(seed)
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            examined = Examined(seed, asked, directory)
            try:
                examined.examine(test, SWITCHES["soak"])
                way = examined.way
                met.update(examined.met)
                good.update(["all", way.program, way.compiler, way.level, way.method, way.kind, way.lto or "no LTO"])
            except Unfit as reason:
                unfit[str(reason).partition(":")[0]] += 1
            except Wrong as wrong:
                failed.append(seed)
                text = examined.way.text()
                (directory / "commands.txt").write_text("\n".join([*examined.commands, f"# {text}", f"# {wrong}", ""]))
                print(f"{text}\n  {wrong}\n  in {directory}; repeat it: {repeat(seed, asked)}", flush=True)
                continue
            shutil.rmtree(directory)
    finally:
        shutil.rmtree(own, ignore_errors=True)
    print(f"{good['all']} of {good['all'] + len(failed)} programs are right, in {time.time() - begin:.0f} s: "
          + ", ".join(f"{name} {n}" for name, n in sorted(good.items()) if name != "all"))
    print("in their traces: " + ", ".join(f"{n} {what.replace('_', ' ')}" for what, n in met.items()))
    if unfit:
        print("left out: " + ", ".join(f"{n} {reason}" for reason, n in unfit.items()))
    return 1 if failed or not good else 0


if __name__ == "__main__":
    if len(sys.argv) > 2:
        try:
            sys.exit(soak(int(sys.argv[1]), int(sys.argv[2]), ways.parse(sys.argv[3:])))
        except ValueError as error:
            sys.exit(f"script/soak generated: {error}")
    support.main()
