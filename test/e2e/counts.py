"""Exact counts: how often each function was called, by karst, by gcov and by callgrind.

One binary serves all three: built by karst-g++ with --coverage. gcov's counters and the sleds count the same run;
callgrind counts another run of it, in which the sleds are NOPs. Functions are compared by file and line of their
definition, so that template instances, and copies of one function made by the compiler, are summed on all sides.
"""
import os
import shutil
import subprocess
from pathlib import Path

from call_counts import Comparison, Gcov, Symbols, callgrind_places, different
from support import BIN, HERE, ROOT, TIMEOUT, WORK, TracedTest, main

FLAGS = ["-O1", "-g", "-fno-inline", "-fno-optimize-sibling-calls", "--coverage"]


class Counts(TracedTest):
    def compare(self, binary, objects, arguments, at_least, **streams):
        for old in objects.rglob("*.gcda"):
            old.unlink()
        # gcov's own functions are in the program, and are built by another compiler.
        run = self.run_traced(binary, *arguments, options=("--memory", "2G", "--no-patch"), **streams)
        self.assert_whole(run.trace)
        gcov = Gcov(objects)
        symbols = Symbols(binary)
        compared = Comparison(run.trace.report(), gcov, symbols)
        self.assertEqual(compared.differences(), [])
        seen = compared.seen
        self.assertGreater(len(seen), at_least)
        print(f"gcov: {compared.summary()}")

        if shutil.which("valgrind") is None:
            self.skipTest("gcov's counts are equal; valgrind is not installed, so callgrind was not asked")
        out = self.directory / "callgrind.out"
        subprocess.run(["valgrind", "--tool=callgrind", "--demangle=no", f"--callgrind-out-file={out}", "-q",
                        str(binary), *map(str, arguments)], cwd=self.directory, check=True, capture_output=True,
                       timeout=280, **streams.get("callgrind", {"stdin": streams["input_file"].open()}
                                                  if "input_file" in streams else {}))
        callgrind = callgrind_places(out, gcov, symbols)
        self.assertEqual(different(compared, "callgrind", callgrind, seen), [])
        print(f"callgrind: {len(callgrind)} functions, {sum(callgrind.values())} calls equal")

    def test_leveldb_workload_counts_are_those_of_gcov_and_callgrind(self):
        sources = ROOT / "build/third_party/leveldb/node_modules/classic-level/deps"
        sources = Path(os.environ.get("KARST_LEVELDB_SOURCES", sources))
        if not sources.is_dir():
            self.skipTest("LevelDB's sources are not there; script/setup fetches them")
        out = WORK / "leveldb-counts"
        built = subprocess.run([str(ROOT / "examples/leveldb/build"), str(out), *FLAGS], capture_output=True, text=True,
                               env={**os.environ, "CXX": str(BIN / "karst-g++")})
        self.assertEqual(built.returncode, 0, built.stderr + built.stdout)
        self.compare(out / "leveldb-workload", out, ["--single", "--batches", 300], at_least=300)

    def test_compiler_wrappers_filter_counts_are_those_of_gcov_and_callgrind(self):
        objects = self.directory
        binary = objects / "filter"
        for source in (ROOT / "toolchain/asm_filter.cc", ROOT / "toolchain/sibling_call.cc", HERE / "counts/filter.cc"):
            subprocess.run([str(BIN / "karst-g++"), "-std=c++20", *FLAGS, f"-I{ROOT}", "-c", str(source), "-o",
                            str(objects / (source.stem + ".o"))], check=True)
        subprocess.run([str(BIN / "karst-g++"), "--coverage", str(objects / "asm_filter.o"), str(objects / "sibling_call.o"),
                        str(objects / "filter.o"), "-o", str(binary)], check=True)
        text = objects / "input.s"
        subprocess.run([os.environ.get("KARST_CXX", "g++"), "-std=c++17", "-S", "-fPIC", "-O1", "-p", "-mfentry",
                        "-mrecord-mcount", "-minstrument-return=nop5", "-mrecord-return",
                        str(HERE / "torture/threads.cc"), "-o", str(text)], check=True)
        self.compare(binary, objects, [], at_least=30, input_file=text)

    def run_traced(self, *command, input_file=None, **more):
        if input_file is None:
            return super().run_traced(*command, **more)
        with open(input_file) as stream:
            return super().run_traced(*command, stdin=stream, **more)


if __name__ == "__main__":

    main()
