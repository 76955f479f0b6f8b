"""Times without the tracer in them: what is taken out is what --raw has more, in every command; what tracing took."""
import csv
import io
import json
import re
import subprocess
from collections import Counter

import support
from support import KARST, TracedTest, build, main

SOURCE = """
#include <pthread.h>
__attribute__((noinline)) unsigned leaf(unsigned x) { for (int i = 0; i < 40; ++i) __asm__ volatile("" : "+r"(x)); return x; }
__attribute__((noinline)) unsigned middle(unsigned x) { return leaf(x) + leaf(x + 1); }
__attribute__((noinline)) unsigned outer(unsigned x) { for (int i = 0; i < 50; ++i) x += middle(x); return x; }
void* thread(void* x) { for (int i = 0; i < 40; ++i) *(unsigned*)x += outer(i); return x; }
int main(int argc, char** argv) {
  unsigned a = 0, b = 0;
  pthread_t other;
  pthread_create(&other, 0, thread, &a);
  thread(&b);
  pthread_join(other, 0);
  (void)argv;
  return argc == 1 ? 0 : 7;
}
"""

# Prints how long a call of each takes, in ns: the best of several rounds.
SHORT = """
#include <stdio.h>
#include <time.h>
#define SPIN(n) __attribute__((noinline)) void spin_##n(void) { \
  unsigned x = n; \
  for (unsigned i = 0; i < n; ++i) __asm__ volatile("imul $5, %0, %0" : "+r"(x)); \
}
SPIN(5) SPIN(20) SPIN(60)
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}
#define TIME(f) { \
  double best = 1e18; \
  for (int round = 0; round < 10; ++round) { \
    const double begin = now(); \
    for (int i = 0; i < 50000; ++i) f(); \
    const double took = (now() - begin) / 50000; \
    if (took < best) best = took; \
  } \
  printf(#f " %f\\n", best); \
}
int main(void) {
  TIME(spin_5) TIME(spin_20) TIME(spin_60)
  return 0;
}
"""

# A function that is split into small ones is not slower for their being traced.
PARTS = """
__attribute__((noinline)) unsigned part(unsigned x) { __asm__ volatile("" : "+r"(x)); return x + 1; }
__attribute__((noinline)) unsigned work(unsigned x, int parts) {
  for (int i = 0; i < parts; ++i) x = part(x);
  for (int i = 0; i < 40000; ++i) __asm__ volatile("" : "+r"(x));
  return x;
}
int main(int argc, char** argv) {
  unsigned x = 0;
  (void)argv;
  for (int i = 0; i < 300; ++i) x = work(x, argc == 1 ? 10 : 400);
  return x == 1;
}
"""

CHILDREN = 8
FORKS = f"""
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int child(int x) {{ return x & 3; }}
__attribute__((noinline)) int make(int x) {{
  int status = 0;
  if (fork() == 0) _exit(child(x));
  return wait(&status) > 0 ? status : -1;
}}
int main(void) {{
  int sum = 0;
  for (int i = 0; i < {CHILDREN}; ++i) sum += make(i) >> 8;
  return sum;
}}
"""


class Costs(TracedTest):
    def program(self, name="costs", text=SOURCE, compiler="karst-gcc"):
        source = support.WORK / f"{name}.c"
        if not source.exists() or source.read_text() != text:  # others run what is built of it
            source.write_text(text)
        return build(name, source, "-O1", "-pthread", "-fno-optimize-sibling-calls", compiler=compiler, output=name)

    def karst(self, *arguments, status=0):
        done = subprocess.run([KARST, *map(str, arguments)], capture_output=True, text=True, cwd=self.directory,
                              timeout=support.TIMEOUT)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def report(self, trace):
        return json.loads(self.karst("report", "--format", "json", trace).stdout)

    def table(self, trace, *options):
        rows = csv.DictReader(io.StringIO(self.karst("report", trace, "--format", "csv", *options).stdout))
        return {row["function"]: {key: int(row[key] or 0) for key in row if key.endswith("_ns") or key == "calls"} for row in rows}

    def at_once(self, trace):
        """What tracing took at once, by the function that it was in, in ns; texts have four digits."""
        took = Counter()
        took.stops = 0
        for note in json.loads(self.karst("notes", "--kind", "overhead", "--json", trace).stdout)["notes"]:
            number, unit = re.fullmatch(r"made memory for events for ([\d.]+) (us|ms)", note["value"]).groups()
            took[note["in"]] += float(number) * {"us": 1e3, "ms": 1e6}[unit]
            took.stops += 1
        return took

    def check_trace(self, trace):
        table, raw = self.table(trace), self.table(trace, "--raw")
        self.assertEqual(set(table), {"main", "thread", "outer", "middle", "leaf"})
        at_once = self.at_once(trace)
        total_at_once = sum(at_once.values())
        cost = (table["leaf"]["tracing_ns"] - at_once["leaf"]) / table["leaf"]["calls"]
        self.assertTrue(1 < cost < 100_000, cost)
        for name, row in table.items():
            self.assertAlmostEqual(row["tracing_ns"], row["calls"] * cost + at_once[name],
                                   delta=2 + row["calls"] * 0.001 + total_at_once * 0.001)
            self.assertEqual((raw[name]["total_cost_ns"], raw[name]["self_cost_ns"], raw[name]["tracing_ns"]), (0, 0, 0))
            for part in ("total", "self"):
                taken = raw[name][f"{part}_ns"] - row[f"{part}_cost_ns"]
                self.assertAlmostEqual(row[f"{part}_ns"], max(taken, 0), delta=3, msg=f"{name} {part}")
        # What middle takes has three calls' cost less two outside of leaf's less its own outside.
        self.assertGreater(table["outer"]["total_cost_ns"], 100 * table["outer"]["calls"] * cost)
        # One by one: all outer ones have as many calls below them, so about as much is taken out of each; none is below
        # 0. What is taken out of a leaf differs by what one event costs at most.
        within = sum(at_once[name] for name in ("outer", "middle", "leaf"))
        each = (table["outer"]["total_cost_ns"] - within) / table["outer"]["calls"]
        event = self.report(trace)["call_cost_off_by_ns"] / 2
        calls, recorded = ([c["duration_ns"] for c in json.loads(self.karst(
            "calls", trace, "--json", *options, "-f", "^outer$").stdout)["calls"]] for options in ((), ("--raw",)))
        self.assertEqual(len(calls), table["outer"]["calls"])
        stopped = 0  # calls with a stop in them
        for call, raw_call in zip(calls, recorded, strict=True):
            self.assertLessEqual(call, raw_call)
            off = 3 + 100 * event
            usual = max(raw_call - each, 0)
            self.assertTrue(max(raw_call - each - total_at_once, 0) - off <= call <= usual + off)
            stopped += call < usual - off
        self.assertLessEqual(stopped, at_once.stops)
        self.assertGreaterEqual(sum(calls) + 2 * len(calls), table["outer"]["total_ns"])
        self.assertAlmostEqual(sum(recorded), raw["outer"]["total_ns"], delta=2 * len(calls))
        return cost

    def test_times_of_short_calls_are_ranges_that_hold_them(self):
        plain = self.program("costs_short_plain", SHORT, "gcc")
        truth = dict(line.split() for line in subprocess.run([plain], check=True, capture_output=True, text=True,
                                                             timeout=support.TIMEOUT).stdout.splitlines())
        run = self.run_traced(self.program("costs_short", SHORT))
        text = self.karst("report", run.trace.path, "-f", "^spin", "--columns", "p50").stdout
        told = {name: (float(low), float(high or low)) for low, high, name in
                re.findall(r"(?m)^ *([\d.]+)(?:-([\d.]+))? ns +(spin_\d+)", text)}
        self.assertEqual(set(told), set(truth), text)
        for name, (low, high) in told.items():
            took = float(truth[name])
            self.assertLessEqual(low, took * 1.3, f"{name} took {took} ns\n{text}")  # the machine may change its pace
            self.assertGreaterEqual(high, took / 1.3, f"{name} took {took} ns\n{text}")
        self.assertLess(told["spin_5"][0], told["spin_5"][1], text)

    def test_what_is_taken_out_is_what_raw_has_more(self):
        for options in ((), ("--clock", "thread")):
            with self.subTest(options=options):
                run = self.run_traced(self.program(), options=options)
                self.check_trace(run.trace.path)

    def test_commands_say_it(self):
        trace = self.run_traced(self.program()).trace.path
        for command in (("report",), ("slow",), ("hist", "-f", "^leaf$"), ("graph",), ("stacks",)):
            with self.subTest(command=command):
                self.assertRegex(self.karst(*command, trace).stdout.splitlines()[-1],
                                 r"^\(without tracing's own \d+ ns a call, an estimate that may be off by \d+ ns; ")
                self.assertRegex(self.karst(*command, "--raw", trace).stdout.splitlines()[-1], r"^\(as recorded: ")
        self.assertNotIn("tracing's own", self.karst("tree", "--plain", trace).stdout)
        said = self.report(trace)
        self.assertLess(0, said["call_cost_ns"])
        self.assertLessEqual(said["call_cost_ns"], said["call_cost_off_by_ns"])
        # Times that were mostly tracing's are marked.
        table = self.table(trace)
        lines = self.karst("report", trace, "--width", "100", "--columns", "self,total").stdout.splitlines()[2:-1]
        self.assertEqual(len(lines), len(table))
        for line in lines:
            row = table[line.split()[-1]]
            marks = [cell.startswith("~") for cell in re.findall(r"~?[\d.]+ \w+", line)[:2]]
            self.assertEqual(marks, [row[f"{part}_cost_ns"] > row[f"{part}_ns"] for part in ("self", "total")], line)

    def test_a_diff_is_without_them(self):
        program = self.program("costs_parts", PARTS)
        traces = []
        for more in ((), ("more",)):
            made = self.run_traced(program, *more).trace.path
            traces.append(made.rename(self.directory / f"{len(traces)}.karst"))

        def work(*options):
            said = json.loads(self.karst("diff", "--json", *traces, *options).stdout)
            return next(f for f in said["compared_functions"] if f["function"] == "work"), said

        (without, said), (recorded, _) = work(), work("--raw")
        self.assertFalse(without["changed"], without)
        self.assertLess(without["change"], recorded["change"])
        for side in "ab":
            self.assertGreater(without[f"total_cost_{side}_ns"], 0)
            self.assertEqual(recorded[f"total_cost_{side}_ns"], 0)
            taken_out = recorded[f"total_{side}_ns"] - without[f"total_{side}_ns"]
            self.assertAlmostEqual(taken_out, without[f"total_cost_{side}_ns"], delta=0.01 * taken_out)
        self.assertGreater(without["total_cost_b_ns"], 2 * without["total_cost_a_ns"])
        # The same is taken for a call on both sides.
        costs = [self.report(trace)["call_cost_ns"] for trace in traces]
        self.assertAlmostEqual(said["call_cost_ns"], sum(costs) / 2, delta=0.01 + max(costs) / 100)
        self.assertRegex(self.karst("diff", *traces).stdout.splitlines()[-1], r"^\(without tracing's own \d+ ns a call, ")
        self.assertRegex(self.karst("diff", "--raw", *traces).stdout.splitlines()[-1], r"^\(as recorded: ")

    def test_overhead_by_thread_and_function(self):
        trace = self.run_traced(self.program()).trace.path
        lines = self.karst("report", "--overhead", trace).stdout.splitlines()
        self.assertRegex(lines[0], r"^of time +tracing +calls +thread$")
        self.assertEqual(len([line for line in lines[1:lines.index("")] if line.rstrip().endswith("costs")]), 2)
        rows = lines[lines.index("") + 3:-1]
        took = [float(row.split()[0]) * {"ns": 1, "us": 1e3, "ms": 1e6}[row.split()[1]] for row in rows]
        self.assertEqual(took, sorted(took, reverse=True))
        leaf = next(row for row in rows if "leaf  [costs]" in row)
        self.assertRegex(leaf, r"^ +\S+ \S+ +8,000 ")
        if not self.at_once(trace):
            self.assertEqual(leaf, rows[0])
        self.assertIn("do not go together", self.karst("report", "--overhead", "--raw", trace, status=2).stderr)
        bare = self.directory / "bare.karst"
        # A trace of before: all chunks but COST.
        data = trace.read_bytes()
        at = data.index(b"COST")
        bare.write_bytes(data[:at] + b"XOST" + data[at + 4:])
        self.assertIn("does not know what tracing cost", self.karst("report", "--overhead", bare, status=1).stderr)

    def test_children_that_begin(self):
        trace = self.run_traced(self.program("costs_forks", FORKS), status=12).trace.path
        notes = json.loads(self.karst("notes", "--kind", "overhead", "--json", trace).stdout)["notes"]
        began = [note for note in notes if note["value"].startswith("was set up in a forked child for ")]
        self.assertEqual([note["in"] for note in began], ["make"] * CHILDREN)
        self.assertEqual(len({note["pid"] for note in began}), CHILDREN)
        for note in began:
            with self.subTest(pid=note["pid"]):
                part = ("--process", str(note["pid"]))
                table, raw = (self.table(trace, *part, *options)["make"] for options in ((), ("--raw",)))
                # On a busy machine memory for events was made there as well, which is told beside it.
                taken = sum(n["duration_ns"] for n in notes if n["pid"] == note["pid"] and n["in"] == "make")
                self.assertAlmostEqual(raw["total_ns"] - table["total_ns"], taken, delta=1000)

    def test_a_limit_for_tests(self):
        program = self.program()
        self.assertIn("of --fail-overhead", self.karst("run", "--fail-overhead", "0.1%", "-o", "a", program, status=3).stderr)
        self.assertNotIn("fail-overhead", self.karst("run", "--fail-overhead", "100%", "-o", "a", program).stderr)
        self.assertIn("of --fail-overhead", self.karst("run", "--fail-overhead", "0.1%", "-o", "a", program, "x", status=7).stderr)
        for wrong in ("5", "-1%", "0%", "101%", "x"):
            self.assertIn("a share from 0.1% to 100%", self.karst("run", "--fail-overhead", wrong, program, status=2).stderr)
        self.assertIn("do not go together",
                      self.karst("run", "--fail-overhead", "5%", "--min-duration", "1us", program, status=2).stderr)

    def test_parts_and_raw_traces_know_it(self):
        trace = self.run_traced(self.program()).trace.path
        begins = sorted(c["begin_ns"] for c in json.loads(self.karst("calls", trace, "--json", "-f", "^outer$").stdout)["calls"])
        whole, part = self.table(trace), self.table(trace, "--range", f"{begins[len(begins) // 2]}ns..")
        self.assertLess(part["leaf"]["calls"], whole["leaf"]["calls"])
        self.assertGreater(part["leaf"]["tracing_ns"], 0)
        stripped = self.directory / "stripped.karst"
        self.karst("resolve", "--strip", trace, "-o", stripped)
        self.assertEqual(self.table(stripped), whole)


if __name__ == "__main__":
    main()
