"""karst import: samples of perf record are counted as perf counts them, and files without times say what helps."""
import json
import re
import shutil
import subprocess
from collections import Counter

from imports import karst
from support import HERE, TracedTest, main

PERF = shutil.which("perf")
FIELDS = "comm,pid,tid,time,period,event,ip,sym,dso"


class PerfSamples(TracedTest):
    def recorded(self):
        if PERF is None:
            self.skipTest("there is no perf")
        program, data = self.directory / "burn", self.directory / "perf.data"
        subprocess.run(["g++", "-O0", "-g", "-pthread", HERE / "imports/burn.cc", "-o", program], check=True)
        done = subprocess.run([PERF, "record", "-F", "999", "-e", "cpu-clock:u", "-g", "-o", data, program],
                              capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest(f"perf cannot record here: {done.stderr[-300:]}")
        return data

    def script(self, data, *arguments):
        text = subprocess.run([PERF, "script", "-i", data, *arguments], check=True, capture_output=True).stdout
        file = self.directory / "samples.txt"
        file.write_bytes(text)
        return file

    def test_functions_have_the_samples_that_perf_reports(self):
        data = self.recorded()
        report = subprocess.run([PERF, "report", "--stdio", "--no-children", "-g", "none", "-n", "-F",
                                 "overhead,sample,sym", "-i", data], check=True, capture_output=True, text=True).stdout
        wanted = Counter()
        for count, name in re.findall(r"^ +[\d.]+% +(\d+)  \[.\] (\S.*?) *$", report, re.M):
            wanted[name] += int(count)
        self.assertGreater(wanted["inner"], 20, report)
        for arguments in (["--header", "-F", FIELDS], []):  # as the guide says it, and without a word
            file = self.script(data, *arguments)
            said = json.loads(karst("samples", file, "--format", "json", "--limit", "0"))
            found = Counter()
            for function in said["sampled_functions"]:
                found[function["function"]] += function["samples"]
            self.assertEqual(found["inner"], wanted["inner"])
            self.assertEqual(sum(found.values()), sum(wanted.values()))
            self.assertAlmostEqual(said["period_ns"], 1e9 / 999, delta=1)
        self.assertIn("burn", karst("info", file))

    def test_stacks_lead_to_the_callers(self):
        file = self.script(self.recorded(), "--header", "-F", FIELDS)
        totals = Counter(re.findall(r"^\t +[0-9a-f]+ (heavy|light)\b", file.read_text(), re.M))
        rows = json.loads(karst("samples", file, "--format", "json", "--limit", "0"))
        self.assertGreater(totals["heavy"], totals["light"])
        for name in ("heavy", "light"):
            row, = [r for r in rows["sampled_functions"] if r["function"].startswith(name)]
            self.assertEqual(row["total_samples"], totals[name])
        out = self.directory / "flame.svg"
        karst("flame", file, "-o", out)
        self.assertIn("heavy", out.read_text())

    def test_files_without_times_say_what_helps(self):
        data = self.recorded()
        self.assertIn("perf script --header -F", karst("samples", data, status=1))
        file = self.directory / "callgrind.out"
        file.write_text("# callgrind format\nversion: 1\nevents: Ir\nfn=main\n1 5\n")
        for words in (("import", file), ("report", file)):
            self.assertIn("karst export --to callgrind", karst(*words, status=1))


if __name__ == "__main__":
    main()
