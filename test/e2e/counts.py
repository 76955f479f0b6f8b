"""Exact counts: how often each function was called, by karst, by gcov and by callgrind.

One binary serves all three: built by karst-g++ with --coverage. gcov's counters and the sleds count the same run;
callgrind counts another run of it, in which the sleds are NOPs. Functions are compared by file and line of their
definition, so that template instances, and copies of one function made by the compiler, are summed on all sides.
"""
import json
import os
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

from torture_support import BIN, HERE, ROOT, TIMEOUT, WORK, TortureTest, main

FLAGS = ["-O1", "-g", "-fno-inline", "-fno-optimize-sibling-calls", "--coverage"]


class Gcov:
    """Calls by (file, line), and where each symbol is defined, from the .gcda files below a directory."""

    def __init__(self, objects):
        self.calls = defaultdict(int)
        self.place = {}
        self.names = {}
        for data in sorted(objects.rglob("*.gcda")):
            out = subprocess.run(["gcov", "--json-format", "--stdout", data.name], cwd=data.parent, check=True,
                                 capture_output=True, text=True, timeout=TIMEOUT).stdout
            for line in out.splitlines():
                report = json.loads(line)
                for file in report["files"]:
                    path = os.path.realpath(os.path.join(report["current_working_directory"], file["file"]))
                    for f in file["functions"]:
                        place = (path, f["start_line"])
                        self.place[f["name"]] = place
                        self.names[place] = f["demangled_name"]
                        if f["execution_count"]:
                            self.calls[place] += f["execution_count"]


class Symbols:
    """The functions of a binary: all names of each address."""

    def __init__(self, binary):
        self.address = {}
        self.names = defaultdict(set)
        for line in subprocess.run(["nm", str(binary)], check=True, capture_output=True, text=True).stdout.splitlines():
            parts = line.split()
            if len(parts) == 3 and parts[1] in "tTwWuV":
                self.address[parts[2]] = parts[0]
                self.names[parts[0]].add(parts[2])

    def aliases(self, name):
        return self.names.get(self.address.get(name), {name})


def callgrind_calls(path, binary):
    """Calls by symbol of the binary: the sum of the calls= lines that lead to it. (Libraries have their own copies of
    some of its functions.)"""
    names = {"fn": {}, "ob": {}}
    calls = defaultdict(int)
    target = current_object = target_object = None
    for line in Path(path).read_text().splitlines():
        match = re.match(r"(c?)(fn|ob)=\((\d+)\)(?: (.*))?$", line.rstrip("\n"))
        if match:
            known = names[match[2]]
            if match[4]:
                known[match[3]] = re.sub(r"'\d+$", "", match[4])
            if match[1] and match[2] == "fn":
                target = known[match[3]]
            elif match[1]:
                target_object = known[match[3]]
            elif match[2] == "ob":
                current_object = known[match[3]]
        elif line.startswith("calls="):
            if os.path.realpath(target_object or current_object) == os.path.realpath(binary):
                calls[target] += int(line[6:].split()[0])
            target_object = None
    return calls


class Counts(TortureTest):
    def compare(self, binary, objects, arguments, at_least, **streams):
        for old in objects.rglob("*.gcda"):
            old.unlink()
        run = self.run_traced(binary, *arguments, options=("--memory", "2G"), **streams)
        self.assert_whole(run.trace)
        karst = defaultdict(int)
        names = {}
        for f in run.trace.report():
            place = (os.path.realpath(f["file"]), f["line"])
            karst[place] += f["calls"]
            names[place] = f["name"]
        gcov = Gcov(objects)
        names.update(gcov.names)
        symbols = Symbols(binary)
        emitted = {gcov.place[n] for known in symbols.names.values() for n in known if n in gcov.place}
        # gcov has a counter also for a function that exists only as copies within its callers (always_inline). That is
        # no call. Nothing else may be missing.
        inlined = [p for p in gcov.calls if p not in emitted]
        for place in inlined:
            self.assertNotIn(place, karst)
            self.assertIn("inline", self.source_around(place), f"{names[place]} {place} is in no symbol table")
        # karst sees functions that gcov keeps no counter for: those that the compiler wrote itself.
        own = [p for p in karst if p not in gcov.names]
        self.assertEqual([f"{names[p]} {p}" for p in own if not self.is_compilers_own(names[p], p)], [])
        expected = {p: n for p, n in gcov.calls.items() if p in emitted}
        seen = {p: n for p, n in karst.items() if p in gcov.names}
        self.assert_same("gcov", expected, seen, names)
        self.assertGreater(len(seen), at_least)
        print(f"gcov: {len(seen)} functions, {sum(seen.values())} calls equal; "
              f"{len(inlined)} always inlined, {len(own)} of the compiler's own")

        if shutil.which("valgrind") is None:
            self.skipTest("gcov's counts are equal; valgrind is not installed, so callgrind was not asked")
        out = self.directory / "callgrind.out"
        subprocess.run(["valgrind", "--tool=callgrind", "--demangle=no", f"--callgrind-out-file={out}", "-q",
                        str(binary), *map(str, arguments)], cwd=self.directory, check=True, capture_output=True,
                       timeout=280, **streams.get("callgrind", {"stdin": streams["input_file"].open()}
                                                  if "input_file" in streams else {}))
        callgrind = defaultdict(int)
        for name, count in callgrind_calls(out, binary).items():
            for alias in symbols.aliases(name):
                if alias in gcov.place:
                    callgrind[gcov.place[alias]] += count
                    break
        self.assert_same("callgrind", dict(callgrind), seen, names)
        print(f"callgrind: {len(callgrind)} functions, {sum(callgrind.values())} calls equal")

    def assert_same(self, who, theirs, ours, names):
        different = [f"{names[p]} ({Path(p[0]).name}:{p[1]}): {who} {theirs.get(p, 0)}, karst {ours.get(p, 0)}"
                     for p in sorted(set(theirs) | set(ours)) if theirs.get(p, 0) != ours.get(p, 0)]
        self.assertEqual(different, [])

    @staticmethod
    def source_around(place):
        lines = Path(place[0]).read_text(errors="replace").splitlines()
        return "\n".join(lines[max(0, place[1] - 6):place[1] + 1]).lower()

    @staticmethod
    def is_compilers_own(name, place):
        """Static initialisation, thunks, and members that nobody wrote down, inherited constructors among them."""
        if Path(place[0]).is_file() and Path(place[0]).read_text().splitlines()[place[1] - 1].strip().startswith("using "):
            return True
        bare = name.replace("(anonymous namespace)", "anonymous")
        while re.search(r"<[^<>]*>", bare):
            bare = re.sub(r"<[^<>]*>", "", bare)
        bare = re.sub(r"\([^()]*\)", "", bare).split("::")
        special = len(bare) > 1 and bare[-1].lstrip("~") == bare[-2] or bare[-1] == "operator="
        return special or name.startswith(("_GLOBAL__sub_", "__static_initialization", "non-virtual thunk", "virtual thunk"))

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
        for source in (ROOT / "toolchain/asm_filter.cc", HERE / "counts/filter.cc"):
            subprocess.run([str(BIN / "karst-g++"), "-std=c++20", *FLAGS, f"-I{ROOT}", "-c", str(source), "-o",
                            str(objects / (source.stem + ".o"))], check=True)
        subprocess.run([str(BIN / "karst-g++"), "--coverage", str(objects / "asm_filter.o"), str(objects / "filter.o"),
                        "-o", str(binary)], check=True)
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
