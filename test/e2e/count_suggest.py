"""karst run --count on a real program, the wrappers' own filter of assembler text: it counts what karst run traces, and the
list that it suggests, as a file for --no-trace or carried by the program, leaves out just what it names."""
import json
import os
import re
import subprocess

from support import BIN, HERE, KARST, ROOT, TIMEOUT, TracedTest, main


class Suggestion(TracedTest):
    def build(self, name, *flags):
        program = self.directory / name
        subprocess.run([str(BIN / "karst-g++"), "-std=c++20", "-O1", "-g", "-fno-inline", *flags, f"-I{ROOT}",
                        str(ROOT / "toolchain/asm_filter.cc"), str(ROOT / "toolchain/sibling_call.cc"), str(HERE / "counts/filter.cc"), "-o", str(program)],
                       check=True, timeout=TIMEOUT)
        return program

    def ask(self, program, *options):
        out = self.directory / "counts"
        with open(self.text) as text:
            done = subprocess.run([KARST, "count", "-o", str(out), *options, "--", str(program)], stdin=text,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        return out.read_text()

    def counts(self, program, *options):
        counts = {}
        for f in json.loads(self.ask(program, "--format", "json", *options))["functions"]:
            counts[f["function"]] = counts.get(f["function"], 0) + f["calls"]
        return counts

    def test_the_list_that_it_suggests_gets_there(self):
        self.text = self.directory / "input.s"
        subprocess.run([os.environ.get("KARST_CXX", "g++"), "-std=c++17", "-S", "-fPIC", "-O1", "-p", "-mfentry",
                        "-mrecord-mcount", "-minstrument-return=nop5", "-mrecord-return",
                        str(HERE / "torture/threads.cc"), "-o", str(self.text)], check=True, timeout=TIMEOUT)
        program = self.build("filter")
        everything = self.counts(program)
        with open(self.text) as text:
            run = self.run_traced(program, options=("--memory", "1G"), stdin=text)
        self.assert_whole(run.trace)
        self.assertEqual(everything, run.trace.counts)
        self.assertGreater(len(everything), 30)

        suggested = self.ask(program, "--suggest", "5%")
        said = re.search(r"# Estimated: ([\d,]+) calls in .* are ([\d.]+)%; without these, ([\d.]+)%\.", suggested)
        self.assertEqual(int(said.group(1).replace(",", "")), sum(everything.values()))
        self.assertLessEqual(float(said.group(3)), 5)  # one digit is said
        named = {re.sub(r"\\(.)", r"\1", line.split("  # ")[0]): int(re.search(r"# ([\d,]+) calls", line).group(1).replace(",", ""))
                 for line in suggested.splitlines() if not line.startswith("#")}
        self.assertEqual({name: everything.get(name) for name in named}, named)
        left = {name: calls for name, calls in everything.items() if name not in named}
        # The share of what is left is that of its calls.
        if float(said.group(2)) >= 5:
            self.assertTrue(named)
            self.assertAlmostEqual(float(said.group(3)),
                                   float(said.group(2)) * sum(left.values()) / sum(everything.values()), delta=0.2)
        lists = self.directory / "list"
        lists.write_text(suggested)
        self.assertEqual(self.counts(program, "--no-trace", str(lists)), left)
        self.assertEqual(self.counts(self.build("carrying", f"--karst-no-trace={lists}")), left)


if __name__ == "__main__":
    main()
