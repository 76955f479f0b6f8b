"""karst import: logs of clang's XRay hold what llvm-xray says of them."""
import csv
import io
import json
import re
import shutil
import struct
import subprocess
from collections import Counter
from pathlib import Path

from imports import calls_table, karst
from support import HERE, TracedTest, main

CLANG = shutil.which("clang++-14") or shutil.which("clang++")
XRAY = shutil.which("llvm-xray-14") or shutil.which("llvm-xray")
SOURCE = HERE / "imports/sleds.cc"


def said_by_llvm(*arguments):
    return subprocess.run([XRAY, "convert", "--output-format=yaml", *map(str, arguments)], check=True,
                          capture_output=True, text=True).stdout


def calls_by_llvm(program, log):
    """Calls as thread, function and nanoseconds, and the arguments."""
    text = said_by_llvm("--symbolize", f"--instr_map={program}", log)
    frequency = int(re.search(r"cycle-frequency: (\d+)", text)[1]) or 10**9
    record = re.compile(r"function: (?:'([^']+)'|([^,]+)),.* thread: (\d+),.* kind: function-([a-z-]+), tsc: (\d+)")
    stacks, calls, arguments = {}, [], Counter()
    for line in text.splitlines():
        found = record.search(line)
        if not found:
            continue
        name, tid, kind, cycles = found[1] or found[2], int(found[3]), found[4], int(found[5])
        stack = stacks.setdefault(tid, [])
        arguments.update(re.findall(r"args: \[ (\d+) \]", line))
        if kind.startswith("enter"):
            stack.append((name, cycles))
        elif stack and stack[-1][0] == name:
            calls.append((tid, name, (cycles - stack.pop()[1]) * 10**9 // frequency))
    return sorted(calls), arguments


class XRayLogs(TracedTest):
    def build_with_sleds(self):
        if CLANG is None or XRAY is None:
            self.skipTest("there is no clang, or no llvm-xray")
        program = self.directory / "sleds"
        done = subprocess.run([CLANG, "-std=c++17", "-g", "-O2", "-fxray-instrument", "-fxray-instruction-threshold=1",
                               "-pthread", "-Wl,--wrap=_ZN6__xray24probeRequiredCPUFeaturesEv", SOURCE, "-o", program],
                              capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest(f"clang has no XRay: {done.stderr[-300:]}")
        return program

    def log_of(self, program, mode):
        options = {"basic": "patch_premain=true xray_mode=xray-basic", "fdr": "xray_mode=xray-fdr"}[mode]
        subprocess.run([program, *(["x"] if mode == "fdr" else [])], check=True, cwd=self.directory,
                       capture_output=True, env={"XRAY_OPTIONS": options,
                                                 "XRAY_BASIC_OPTIONS": "func_duration_threshold_us=0"})
        log, = self.directory.glob("xray-log.sleds.*")
        return log

    def test_both_modes_have_the_calls_that_llvm_has(self):
        program = self.build_with_sleds()
        for mode in ("basic", "fdr"):
            log = self.log_of(program, mode)
            wanted, arguments = calls_by_llvm(program, log)
            self.assertGreater(len(wanted), 700)
            found = sorted((tid, function, length) for _, tid, function, length, _ in calls_table(log))
            self.assertEqual([call[:2] for call in found], [call[:2] for call in wanted], mode)
            for one, other in zip(found, wanted):
                self.assertLessEqual(abs(one[2] - other[2]), 1, (mode, one, other))  # each end is rounded
            self.assertEqual(len(arguments), 50)
            noted = Counter(re.findall(r"arg1: (\d+)", karst("notes", log, "--format", "csv")))
            self.assertEqual(noted, arguments, mode)
            log.unlink()

    def test_functions_have_places_and_tail_calls_are_told(self):
        log = self.log_of(self.build_with_sleds(), "basic")
        report = json.loads(karst("report", log, "--raw", "--format", "json"))["functions"]
        places = {f["function"]: (Path(f["file"]).name, f["line"]) for f in report}
        line = next(i for i, text in enumerate(SOURCE.read_text().splitlines(), 1) if "int middle(int x) {" in text)
        self.assertEqual(places["middle(int)"], ("sleds.cc", line))
        self.assertRegex(karst("info", log), r"tail calls 10\d;")  # 50 of each thread, and what std::thread makes

    def test_names_come_from_the_program_that_is_said(self):
        program = self.build_with_sleds()
        log = self.log_of(program, "basic")
        out = self.directory / "out.karst"
        self.assertIn(f"have the names of {program}", karst("import", log, "-o", out))
        elsewhere = log.rename(self.directory / "elsewhere")
        self.assertIn("its functions are numbers, as nothing says", karst("import", elsewhere, "-o", out))
        self.assertIn("xray #1", karst("report", out))
        karst("import", elsewhere, "-o", out, "--program", program)
        self.assertIn("middle(int)", karst("report", out))
        no_sleds = self.directory / "true"
        shutil.copy("/bin/true", no_sleds)
        self.assertIn("no table of XRay's sleds", karst("import", elsewhere, "-o", out, "--program", no_sleds, status=1))
        with_names = self.directory / "e.json"
        with_names.write_text('[{"ph":"X","pid":1,"tid":2,"ts":1,"dur":5,"name":"work"}]')
        self.assertIn("no program is needed", karst("import", with_names, "--program", program, status=1))
        no_sleds.replace(program)
        self.assertIn("its functions are numbers, as ", karst("import", elsewhere.rename(log), "-o", out))

    def test_events_are_those_that_llvm_reads(self):
        if XRAY is None:
            self.skipTest("there is no llvm-xray")

        def metadata(kind, form, *values):
            return bytes([kind << 1 | 1]) + struct.pack(f"<{form}", *values).ljust(15, b"\0")

        records = (metadata(0, "i", 8) + metadata(4, "QI", 1, 2) + metadata(9, "i", 7) + metadata(2, "HQ", 1, 5000) +
                   struct.pack("<II", 3 << 4, 10) + metadata(5, "ii", 5, 4) + b"hello" +
                   metadata(8, "iiH", 3, 6, 77) + b"abc" + metadata(3, "Q", 9000) +
                   struct.pack("<II", 3 << 4 | 1 << 1, 100))
        log = self.directory / "events"
        log.write_bytes(struct.pack("<HHIQ16x", 5, 1, 3, 10**9) + metadata(7, "Q", len(records)) + records)
        self.assertEqual(re.findall(r"tsc: (\d+), data: '?(\w*)", said_by_llvm(log)),
                         [("5010", ""), ("5014", "hello"), ("5020", "abc"), ("9100", "")])
        notes = list(csv.DictReader(io.StringIO(karst("notes", log, "--format", "csv"))))
        self.assertEqual([(n["name"], n["value"], int(n["time_ns"])) for n in notes],
                         [("XRay event", "hello", 4), ("XRay event of type 77", "abc", 10)])
        self.assertEqual([row[3] for row in calls_table(log)], [9100 - 5010])


if __name__ == "__main__":
    main()
