"""Moments that are kept: triggers at places in programs, and the examples of docs/guide/moments.md."""
import json
import os
import re
import signal
import subprocess
import time
import unittest
from pathlib import Path

import support
from sched_states import forbid
from support import KARST, Trace, build

MANY_BREAKPOINTS = "there is no hardware breakpoint left"
NO_BREAKPOINTS = ("the system has no hardware breakpoints", "does not allow breakpoints")


class Moments(support.TracedTest):
    def program(self, *flags, output="moments_program", **more):
        return build("moments_program", "moments/program.cc", "-O2", "-pthread", *flags, output=output, **more)

    def run_triggered(self, *triggers, options=(), arguments=(), **more):
        options = [*options, *(word for t in triggers for word in ("--trigger", t))]
        run = self.run_traced(more.pop("program", None) or self.program(), *arguments, options=options, **more)
        for line in self.lines_of_karst(run):
            if any(refusal in line for refusal in NO_BREAKPOINTS):
                self.skipTest(line)
        return run

    def kept(self, run):
        return run.trace.info["kept"]

    def assert_page_has_the_moment_alone(self, trace, moment):
        page = self.directory / "page.html"
        for more in ([], ["--aggregated"]):
            subprocess.run([KARST, "export", trace, "--kept", str(moment["number"]), "--to", "html", "-o", page, *more],
                           check=True)
            data = json.loads(re.search(r'id="karst-embedded">(.*?)</script>', page.read_text()).group(1))
            begin, end = ((data["range"][edge] for edge in ("begin", "end")) if more else
                          (int(data["part"].get(edge, 2**64)) for edge in ("begin", "end")))  # 2**64: the trace's end
            self.assertLess(begin, end)
            if more:
                self.assertLessEqual(end - begin, moment["kept_to_ns"] - moment["kept_from_ns"] + 1)

    def test_function_with_its_arguments(self):
        run = self.run_triggered("rare")
        (moment,) = self.kept(run)
        self.assertEqual((moment["kind"], moment["function"], moment["what"]),
                         ("trigger", "rare(int, long)", "rare (rare(int, long))"))
        self.assertEqual(int(moment["arguments"][0], 16) & 0xffffffff, 7)
        self.assertEqual(int(moment["arguments"][1], 16), 1234567)
        self.assertEqual(moment["tid"], run.trace.processes[0]["pid"])
        self.assertFalse(moment["gave_up"])
        tree = Trace(run.trace.path).tree("--kept", "1")
        self.assertTrue(any("before_it" in line for line in tree), tree)
        self.assertIn("rare(int, long)", subprocess.run([KARST, "info", str(run.trace.path)], capture_output=True,
                                                       text=True).stdout)
        wrong = subprocess.run([KARST, "tree", str(run.trace.path), "--kept", "2"], capture_output=True, text=True)
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("has no kept moment 2; it has 1", wrong.stderr)
        self.assert_page_has_the_moment_alone(run.trace.path, moment)

    def test_what_came_before_outlives_the_ring(self):
        run = self.run_triggered("rare", options=["--memory", "64M"], program=build(
            "moments_wrapping", "moments/wrapping.cc", "-O2"))
        (moment,) = self.kept(run)
        self.assertGreater(run.trace.info["overwritten_events"], 100_000)
        if moment["gave_up"]:
            self.skipTest("this machine is too busy: memory wrapped before the hit was noticed")
        tree = run.trace.tree("--kept", "1")
        self.assertTrue(any("before_it" in line for line in tree))

    def test_overloads_are_listed_or_all_taken(self):
        run = self.run_triggered("over")
        self.assertEqual(self.kept(run), [])
        (line,) = [line for line in run.err.split("karst: ") if "is the name of 2 functions" in line]
        self.assertIn("over(int)", line)
        self.assertIn("over(double)", line)
        run = self.run_triggered("over", options=["--multi"])
        self.assertEqual(len(self.kept(run)), 1)  # the first time only
        run = self.run_triggered("over:2", options=["--multi"])
        self.assertEqual([m["function"] for m in self.kept(run)], ["over(int)", "over(double)"])
        run = self.run_triggered("over(double)")
        self.assertEqual([m["function"] for m in self.kept(run)], ["over(double)"])

    def test_inlined_functions_get_a_clear_answer(self):
        run = self.run_triggered("tiny")
        self.assertEqual(self.kept(run), [])
        self.assertIn("'tiny' has no code of its own: the compiler inlined it everywhere", run.err)
        self.assertIn("contains_tiny(int)", run.err)

    def test_tail_called_untraced_and_in_threads(self):
        run = self.run_triggered("tail_target", "untraced", "in_thread:4")
        kept = self.kept(run)
        self.assertEqual(sorted(m["what"].split()[0] for m in kept),
                         ["in_thread:4"] * 4 + ["tail_target", "untraced"])
        self.assertEqual(len({m["tid"] for m in kept if m["what"].startswith("in_thread")}), 4)
        (untraced,) = [m for m in kept if m["what"].startswith("untraced")]
        self.assertNotIn("function", untraced)
        self.assertEqual(int(untraced["arguments"][0], 16) & 0xffffffff, 6)

    def test_lines_and_addresses(self):
        source = (support.HERE / "moments/program.cc").read_text().splitlines()
        line = 1 + next(i for i, text in enumerate(source) if "g_sink = static_cast<int>(number * factor)" in text)
        address = next(words[0] for words in map(str.split, subprocess.run(
            ["nm", "-C", self.program()], capture_output=True, text=True).stdout.splitlines())
                       if words[2:3] == ["untraced(int)"])
        run = self.run_triggered(f"program.cc:{line}", "0x" + address)
        self.assertEqual(sorted(m["what"].split()[0] for m in self.kept(run)), sorted([f"program.cc:{line}", "0x" + address]))
        call = 1 + next(i for i, text in enumerate(source) if "void leaf(int i)" in text)
        run = self.run_triggered(f"program.cc:{call}:3")
        self.assertEqual([m["what"].split()[0] for m in self.kept(run)], [f"program.cc:{call}:3"] * 3)

    def test_libraries_that_come_later(self):
        for compiler in ("gcc", "karst-gcc"):
            with self.subTest(compiler):
                plugin = build("moments_plugin", "moments/plugin.c", "-O2", "-shared", "-fPIC",
                               output=f"plugin_{compiler}.so", compiler=compiler)
                run = self.run_triggered("plugin_work", arguments=[plugin])
                (moment,) = self.kept(run)
                self.assertEqual(moment["what"], "plugin_work")

    def test_more_than_four(self):
        run = self.run_triggered("before_it", "rare", "tail_target", "untraced", "contains_tiny")
        self.assertIn(MANY_BREAKPOINTS, run.err)
        self.assertIn("done", run.out)

    def test_what_is_nowhere(self):
        run = self.run_triggered("no_such_function", "rare")
        self.assertEqual(len(self.kept(run)), 1)
        self.assertEqual(run.err.count("the trigger 'no_such_function' was found in none of the"), 1, run.err)
        run = self.run_triggered("untracd", "program.cc:99999")
        self.assertIn("modules of the program; did you mean 'untraced'?", run.err)
        self.assertIn("'program.cc:99999' was found in none of the", run.err)
        for wrong in ("", "f:0", "file.cc:0"):
            done = subprocess.run([KARST, "run", "--trigger", wrong, "true"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)

    # ---- processes that come of others --------------------------------------------------------------

    def processes(self):
        return build("moments_processes", "moments/processes.cc", "-O2", "-pthread")

    def test_children_by_fork(self):
        """They have their parent's triggers from the first; each place counts for all processes together."""
        run = self.run_triggered("in_child:2", "untraced_in_child:5", program=self.processes(), arguments=["fork"])
        program, *children = run.trace.processes
        self.assertEqual(len(children), 3)
        kept = self.kept(run)
        by_place = {place: [m for m in kept if m["what"].startswith(place)] for place in ("in_child", "untraced_in_child")}
        self.assertEqual([len(found) for found in by_place.values()], [2, 3])
        for found in by_place.values():
            self.assertEqual(len({m["pid"] for m in found}), len(found))
            self.assertNotIn(program["pid"], {m["pid"] for m in found})
        self.assertEqual(sorted(int(m["arguments"][0], 16) for m in by_place["untraced_in_child"]), [1, 2, 3])
        for moment in by_place["in_child"]:
            tree = run.trace.tree("--kept", str(moment["number"]), "--process", str(moment["pid"]))
            self.assertTrue(any("before_it" in line for line in tree), tree)

    def test_programs_that_others_become(self):
        run = self.run_triggered("after_exec", program=self.processes(), arguments=["exec"])
        (moment,) = self.kept(run)
        self.assertEqual((moment["function"], int(moment["arguments"][0], 16)), ("after_exec(int)", 7))
        tree = run.trace.tree("--kept", "1")
        self.assertTrue(any("before_it" in line for line in tree), tree)

    def test_libraries_that_come_to_a_child(self):
        for compiler in ("gcc", "karst-gcc"):
            with self.subTest(compiler):
                plugin = build("moments_plugin", "moments/plugin.c", "-O2", "-shared", "-fPIC",
                               output=f"plugin_{compiler}.so", compiler=compiler)
                run = self.run_triggered("plugin_work", program=self.processes(), arguments=["fork", plugin])
                (moment,) = self.kept(run)
                self.assertEqual(moment["what"], "plugin_work")
                self.assertNotEqual(moment["pid"], run.trace.processes[0]["pid"])

    def test_refused_by_the_system(self):
        """As perf_event_paranoid and containers refuse it: said with what would allow it, and the program runs on."""
        perf_event_open = 298
        run = self.run_traced(self.program(), options=["--trigger", "rare"], preexec_fn=lambda: forbid(perf_event_open))
        self.assertIn("done", run.out)
        self.assertRegex(run.err, r"no trigger can be set at 'rare': the system does not allow breakpoints in the process "
                                  r"\(kernel.perf_event_paranoid is -?\d+\)")
        self.assertEqual(self.kept(run), [])
        self.assertEqual(run.trace.counts["before_it(int)"], 100)

    def attached(self, program, *arguments):
        return subprocess.Popen([program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                env={**os.environ, "LD_PRELOAD": str(support.BIN.parent / "lib" / "libkarst.so.0")})

    def attach_to(self, child, path, *options):
        attach = subprocess.Popen([KARST, "attach", str(child.pid), *options, "-o", str(path)], stderr=subprocess.PIPE, text=True)
        said = []
        while not said or "waiting for process" not in said[-1]:
            said.append(attach.stderr.readline())
            if not said[-1] or any(refusal in said[-1] for refusal in NO_BREAKPOINTS):
                attach.communicate()
                self.skipTest("".join(said)) if said[-1] else self.fail("".join(said))
        return attach

    def test_attach_several_places(self):
        child = self.attached(self.processes(), "attach")
        try:
            child.stdout.readline()
            path = self.directory / "attached.karst"
            attach = self.attach_to(child, path, "--multi", "--trigger", "in_child", "--trigger", "after_exec:2")
            child.stdin.write("f")  # a child by fork
            child.stdin.flush()
            self.assertIn("in_child (in_child(int)) was reached", attach.stderr.readline())
            child.stdin.write("x")  # another program, which is traced as well
            child.stdin.flush()
            self.assertEqual(attach.wait(support.TIMEOUT), 0, attach.stderr.read())
            attach.stderr.close()
            trace = Trace(path)
            # Processes are listed in no certain order, and their moments with them.
            (first,) = [m for m in trace.info["kept"] if m["pid"] != child.pid]
            others = [m for m in trace.info["kept"] if m["pid"] == child.pid]
            self.assertEqual((first["function"], int(first["arguments"][0], 16)), ("in_child(int)", 5))
            self.assertEqual([(m["function"], m["pid"]) for m in others], [("after_exec(int)", child.pid)] * 2)
        finally:
            child.kill()
            child.communicate()

    # ---- processes that run -------------------------------------------------------------------------

    def test_attach(self):
        child = subprocess.Popen([self.program_that_waits()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                 env={**os.environ, "LD_PRELOAD": str(support.BIN.parent / "lib" / "libkarst.so.0")})
        try:
            child.stdout.readline()
            path = self.directory / "attached.karst"
            attach = subprocess.Popen([KARST, "attach", str(child.pid), "--trigger", "in_loop", "-o", str(path)],
                                      stderr=subprocess.PIPE, text=True)
            said = attach.stderr.readline()
            if any(refusal in said for refusal in NO_BREAKPOINTS):
                attach.wait()
                self.skipTest(said)
            self.assertIn("waiting for process", said)
            child.stdin.write("5\n")
            child.stdin.flush()
            self.assertEqual(attach.wait(support.TIMEOUT), 0, attach.stderr.read())
            attach.stderr.close()
            (moment,) = Trace(path).info["kept"]
            self.assertEqual(moment["function"], "in_loop(int)")
            self.assertEqual(int(moment["arguments"][0], 16), 5)
            child.stdin.close()
            self.assertEqual(child.wait(support.TIMEOUT), 0)
        finally:
            child.kill()
            child.wait()
            child.stdout.close()

    def program_that_waits(self):
        return build("moments_waiting", "moments/waiting.cc", "-O2")

    # ---- the examples of docs/guide/moments.md, which are in examples/moments -----------------------

    def example(self, name, *flags):
        source = support.ROOT / "examples" / "moments" / (name + ".cc")
        return build("example_" + name, source, "-Og", "-pthread", *flags)

    def test_guide_shows_the_examples(self):
        section = (support.ROOT / "docs" / "guide" / "moments.md").read_text(encoding="utf-8")
        sources = {p.name: p.read_text(encoding="utf-8") for p in (support.ROOT / "examples" / "moments").glob("*.cc")}
        self.assertEqual(sorted(sources), ["batch.cc", "game.cc", "hung.cc", "server.cc"])
        shown = re.findall(r"^```cpp\n// (\w+\.cc)\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
        self.assertEqual(len(re.findall("^```", section, re.MULTILINE)), 2 * len(shown) + 2)  # and the commands
        self.assertEqual({name for name, _ in shown}, {n for n, text in sources.items() if "<karst/karst.h>" in text})
        for name, code in shown:
            self.assertIn(code, sources[name])
        (commands,) = re.findall(r"^```sh\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
        told = {}
        for line in commands.splitlines():
            if line.startswith("# "):
                name = line[2:]
            else:
                told.setdefault(name, []).append(line)
        # In a source a remark may follow a command.
        for name, text in sources.items():
            own = [re.sub(r"  +(writes|gives) .*", "", line) for line in re.findall(r"^//   (\S.*)$", text, re.MULTILINE)]
            self.assertEqual(told.get(name), own)

    def test_example_server(self):
        run = self.run_traced(self.example("server"))
        self.assertEqual(run.out, "served\n")
        page = Trace(self.directory / "slowest-page.karst")
        self.assertTrue(any("serve_page" in line for line in page.tree()))
        report = Trace(self.directory / "slowest-report.karst")
        slowest = max((f for f in report.report() if f["function"] == "serve_report(int)"), key=lambda f: f["max_ns"])
        self.assertGreater(slowest["max_ns"], 30_000_000)
        self.assertIn("worker that serves pages and reports", {t["name"] for t in report.threads})

    def test_example_game(self):
        run = self.run_traced(self.example("game"))
        paths = dict(re.findall(r"frame (\d+) was slow: (\S+)", run.out))
        if "20" not in paths:  # the first five are kept, and a busy machine makes more than that one
            self.assertEqual(len(paths), 5, run.out)
        path = next(iter(paths.values()))
        frames = [f for f in Trace(self.directory / path).report() if f["function"] == "frame(int)"]
        self.assertGreater(frames[0]["max_ns"], 16_000_000)

    def test_example_batch(self):
        run = self.run_traced(self.example("batch"), options=["--trigger", "report_bad_record"])
        for line in self.lines_of_karst(run):
            if any(refusal in line for refusal in NO_BREAKPOINTS):
                self.skipTest(line)
        (moment,) = self.kept(run)
        self.assertEqual(int(moment["arguments"][0], 16), 69)
        tree = run.trace.tree("--kept", "1")
        self.assertTrue(any("parse(int)" in line for line in tree), tree)

    def test_example_hung(self):
        program = self.example("hung")
        child = subprocess.Popen([KARST, "run", "--signal", "USR2", "-o", str(self.directory / "t.karst"), program],
                                 stdout=subprocess.PIPE, text=True, cwd=self.directory)
        try:
            self.assertEqual(child.stdout.readline(), "working\n")
            open_calls = []
            for number in range(1, 100):  # until they hang, some 50 ms later
                os.kill(child.pid, signal.SIGUSR2)  # karst run passes it on
                for _ in range(support.TIMEOUT * 20):
                    written = list(self.directory.glob(f"example_hung-*-{number}.karst"))
                    if written:
                        break
                    time.sleep(0.05)
                (path,) = written
                open_calls = [line for line in Trace(path).timed_tree() if re.match(r"\s*[\d.]+ \w+\s+> ", line)]
                hanging = {line.split()[-1] for line in open_calls} & {"main", "write_journal()", "check_journal()"}
                if len(hanging) == 3:
                    break
            self.assertEqual(len(hanging), 3, open_calls)
            os.kill(child.pid, signal.SIGTERM)
            child.wait(support.TIMEOUT)
        finally:
            child.kill()
            child.wait()
            child.stdout.close()


if __name__ == "__main__":
    support.main()
