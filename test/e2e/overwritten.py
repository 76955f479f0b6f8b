"""Where the oldest calls were overwritten, each answer says first how much of the time it is about."""
import json
import re
import shutil
import subprocess

from support import KARST, TIMEOUT, TracedTest, build, main

ANSWERS = ("report", "slow", "hist", "graph", "locks", "memory", "files")
FIRST = (r"^\S+: only the last [\d.]+ [mu]?s of [\d.]+ m?s are here(, of some threads only [\d.]+ [mu]?s)?; older calls "
         r"were overwritten \(karst run --memory keeps more, --slowest and --over keep what is slow\)\n")


class Overwritten(TracedTest):
    def run_with(self, memory):
        program = build("overwritten", "overwritten/program.cc", "-std=c++20", "-O1", "-pthread")
        return self.run_traced(program, options=("--memory", memory, "--system", "locks=all,memory,files")).trace

    def karst(self, *words):
        return subprocess.run([KARST, *map(str, words)], check=True, capture_output=True, text=True, timeout=TIMEOUT)

    def test_each_answer_says_so_first(self):
        trace = self.run_with("2M")
        self.assertGreater(trace.processes[0]["overwritten_events"], 0)
        for answer in ANSWERS:
            done = self.karst(answer, trace.path)
            self.assertRegex(done.stdout, FIRST, answer)
            self.assertEqual(done.stderr, "", answer)
            # What other programs read has it beside.
            done = self.karst(answer, "--json", trace.path)
            json.loads(done.stdout)
            self.assertRegex(re.sub("^karst: ", "", done.stderr), FIRST, answer)
        self.assertRegex(self.karst("flame", trace.path).stderr, "^karst: .*only the last ")

    def test_not_of_a_time_since_when_nothing_is_missing(self):
        trace = self.run_with("2M")
        first = self.karst("report", trace.path).stdout.splitlines()[0]
        times = re.findall(r"([\d.]+) (ms|us|s)\b", first)
        unit = {"us": 1e-6, "ms": 1e-3, "s": 1}
        most, least = [float(number) * unit[of] for number, of in (times[0], times[-1] if len(times) > 2 else times[0])]
        complete = most - least * 0.5
        range_ = f"{int(complete * 1e9)}ns.."
        self.assertNotIn("only the last", self.karst("report", "--range", range_, trace.path).stdout)
        self.assertRegex(self.karst("report", "--range", "0..", trace.path).stdout, FIRST)

    def test_diff_says_it_of_the_trace_that_it_is_true_of(self):
        part = shutil.copy(self.run_with("2M").path, self.directory / "part.karst")
        whole = self.run_with("512M")
        self.assertEqual(whole.processes[0]["overwritten_events"], 0)
        lines = self.karst("diff", part, whole.path).stdout.splitlines()
        self.assertIn("only the last", lines[0])
        self.assertNotIn("only the last", "\n".join(lines[1:]))
        self.assertNotIn("only the last", self.karst("report", whole.path).stdout)


if __name__ == "__main__":
    main()
