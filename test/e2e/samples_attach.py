"""Samples of a process that runs, karst attach --sample, and of programs that karst run can only sample.

The oracle is the program: each of its threads measures its own CPU time in two functions, by the kernel's clock.
"""
import collections
import json
import math
import os
import re
import shutil
import signal
import subprocess

from support import KARST, ROOT, TIMEOUT, TracedTest, build, main

RATE = 1000
PERIOD = 1e9 / RATE
LIBRARY = os.path.join(os.path.dirname(__file__), "samples", "library.c")
NOBODY = 65534


def running(*flags, compiler="gcc"):
    name = f"samples-running-{compiler}" + "".join(f.replace("-", "_") for f in flags)
    return build(name, "samples/running.c", "-O1", "-pthread", "-fno-optimize-sibling-calls", LIBRARY, *flags,
                 compiler=compiler)


class SamplesAttach(TracedTest):
    def start(self, *program, **more):
        child = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), "ready\n")
        return child

    def attach(self, child, *options, target=None, **more):
        """karst, when it samples the process."""
        self.path = self.directory / "attached.karst"
        karst = subprocess.Popen([KARST, "attach", target or str(child.pid), *self.SCHED, "--sample", str(RATE), "-o",
                                  self.path, *options], stderr=subprocess.PIPE, text=True, **more)
        self.addCleanup(karst.communicate)
        self.addCleanup(karst.kill)
        self.said = ""
        for line in karst.stderr:
            self.said += line
            if "is sampled" in line:
                return karst
        if "can be sampled" in self.said:
            self.skipTest(self.said)
        self.fail(self.said)

    def work(self, child):
        """What it says of its threads: CPU time by (function, thread)."""
        child.stdin.write("\n")
        child.stdin.flush()
        spent = {}
        for line in child.stdout:
            if line == "done\n":
                break
            what, _, tid, ns = line.split()
            spent["burn_" + what, int(tid)] = int(ns)
        self.assertEqual(len(spent), 12)
        return spent

    def end(self, karst, child, by_end=True):
        if by_end:
            child.stdin.write("\n")
            child.stdin.flush()
            self.assertEqual(child.wait(TIMEOUT), 0)
        else:
            karst.send_signal(signal.SIGINT)
        said = karst.communicate(timeout=TIMEOUT)[1]
        self.assertEqual(karst.returncode, 0, said)
        self.said += said

    def ask(self, *command, path=None):
        done = subprocess.run([KARST, *command, str(path or self.path)], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def functions(self, *options, path=None):
        """Samples by function, of all of its places in the code."""
        all_functions = {}
        for f in json.loads(self.ask("samples", "--json", *options, path=path))["sampled_functions"]:
            all_functions[f["function"]] = all_functions.get(f["function"], 0) + f["samples"]
        return all_functions

    def about(self, samples, ns, threads=1, lost=0):
        """Within five standard deviations, and one sample at each end of each thread's work."""
        expected = ns / PERIOD
        self.assertLess(abs(samples - expected), 5 * math.sqrt(expected) + 2 * threads + lost, (samples, expected))

    def check(self, spent, by_thread):
        lost = json.loads(self.ask("info", "--json"))["samples"]["lost"]
        functions = self.functions()
        for name in ("burn_first", "burn_second"):
            self.about(functions[name], sum(ns for (f, _), ns in spent.items() if f == name), 6, lost)
        for (name, tid), ns in spent.items() if by_thread else ():
            self.about(self.functions("--thread", str(tid)).get(name, 0), ns, 1, lost)

    def test_threads_that_there_are_and_that_come(self):
        child = self.start(running())
        karst = self.attach(child)
        spent = self.work(child)
        self.end(karst, child)
        self.check(spent, by_thread=True)
        self.assertIn("samples", self.said)
        # Calls are beside them: the functions were patched.
        names = {f["function"]: f["calls"] for f in json.loads(self.ask("report", "--raw", "--json"))["functions"]}
        self.assertEqual(names.get("burn_first"), 6, names)

    def test_a_program_with_sleds(self):
        child = self.start(running(compiler="karst-gcc"))
        karst = self.attach(child)
        spent = self.work(child)
        self.end(karst, child, by_end=False)
        self.check(spent, by_thread=True)
        self.assertIsNone(child.poll(), "it goes on")

    def test_nothing_comes_into_the_process(self):
        # By a name that no other test's process has.
        program = shutil.copy(running(), self.directory / f"found-by-name-{os.getpid()}")
        child = self.start(program)
        karst = self.attach(child, "--no-patch", target=os.path.basename(program))
        with open(f"/proc/{child.pid}/maps") as maps:
            self.assertNotIn("libkarst", maps.read())
        spent = self.work(child)
        self.end(karst, child, by_end=False)
        self.check(spent, by_thread=True)
        stacks = self.ask("flame")
        self.assertRegex(stacks, r"early \[sampled\];work \[sampled\];library_first \[sampled\];between \[sampled\];burn_first")

    def test_a_static_program(self):
        child = self.start(running("-static"))
        karst = self.attach(child)
        self.assertIn("only samples are taken", self.said)
        spent = self.work(child)
        self.end(karst, child)
        self.check(spent, by_thread=True)
        self.assertRegex(self.ask("flame"), r"work \[sampled\];library_first \[sampled\];between \[sampled\];burn_first")
        process = json.loads(self.ask("info", "--json"))["processes"][0]
        self.assertEqual(process["pid"], child.pid)
        self.assertEqual(process["name"], os.path.basename(running("-static")))

    def test_a_process_under_a_filter(self):
        filtered = build("samples-filtered", "inject/filtered.c", compiler="gcc")
        child = self.start(filtered, running())
        karst = self.attach(child)
        self.assertIn("seccomp filter", self.said)
        spent = self.work(child)
        self.end(karst, child)
        self.check(spent, by_thread=True)

    def test_as_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        program = running("-static")
        nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self.directory.chmod(0o777)
        child = self.start(program, **nobody)
        # Root reads as that user: what it may not read has no names.
        os.chmod(program, 0o700)
        try:
            karst = self.attach(child)
            self.work(child)
            self.end(karst, child)
            self.assertNotIn("burn_first", self.functions())
        finally:
            os.chmod(program, 0o755)
        child = self.start(program, **nobody)
        karst = self.attach(child, env={**os.environ, "XDG_CACHE_HOME": str(self.directory)}, **nobody)
        spent = self.work(child)
        self.end(karst, child)
        self.check(spent, by_thread=False)

    def test_nobody_samples_what_is_not_theirs(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        child = self.start(running())
        done = subprocess.run([KARST, "attach", str(child.pid), "--sample", "1000", "--no-patch"], capture_output=True,
                              text=True, timeout=TIMEOUT, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
        self.assertEqual(done.returncode, 1)
        self.assertIn("belongs to user", done.stderr)

    def test_run_samples_what_it_cannot_trace(self):
        for flags, why in ((("-static",), "statically linked"),
                           (("-fno-asynchronous-unwind-tables", "-fno-unwind-tables"), "no function that can be traced")):
            program = running(*flags)
            with self.subTest(why=why):
                plain = subprocess.run([program], input="\n\n", capture_output=True, text=True, timeout=TIMEOUT)
                run = self.run_traced(program, input="\n\n")
                if "could only be sampled" in run.err:
                    self.skipTest(run.err)
                self.assertIn(why, run.err)
                self.assertEqual([line.split()[0] for line in sorted(run.out.splitlines())],
                                 [line.split()[0] for line in sorted(plain.stdout.splitlines())])
                self.path = run.trace.path
                spent = {(f"burn_{what}", int(tid)): int(ns) for what, _, tid, ns in
                         (line.split() for line in run.out.splitlines() if " " in line)}
                self.check(spent, by_thread=True)
                self.ask("report")
                first, all_samples = self.functions("--range", "0ms..50ms"), self.functions()
                self.assertLess(0, sum(first.values()))
                self.assertLess(sum(first.values()), sum(all_samples.values()))

    def test_run_that_is_told_not_to(self):
        for options, said in ((("--sample", "0"), "statically linked"), (("--function", "work"), "statically linked")):
            run = self.run_traced(running("-static"), options=options, status=1, input="\n\n")
            self.assertEqual(run.out, "", "it is not started")
            self.assertIn(said, run.err)
        run = self.run_traced(running("-static"), options=("--memory", "1M", "--budget", "5%"), input="\n\n")
        self.assertIn("--memory, --budget: without effect", run.err)
        run = self.run_traced(running(), input="\n\n")
        self.assertNotIn("samples", run.trace.info, "what can be traced is not sampled unasked")

    def exported(self, path):
        """Samples by innermost function, as the files of other tools have them."""
        chrome, perfetto = self.directory / "t.json", self.directory / "t.pftrace"
        for form, file in (("chrome", chrome), ("perfetto", perfetto)):
            subprocess.run([KARST, "export", "--to", form, "-o", file, path], check=True, timeout=TIMEOUT, capture_output=True)
        found = json.loads(chrome.read_text())
        yield collections.Counter(found["stackFrames"][str(s["sf"])]["name"] for s in found["samples"] if "sf" in s)
        if shutil.which("protoc") is None:
            return
        schema = ROOT / "test" / "export"
        with open(perfetto, "rb") as file:
            text = subprocess.run(["protoc", f"-I{schema}", "--decode=perfetto.Trace", "perfetto.proto"], stdin=file, check=True,
                                  capture_output=True, text=True, timeout=TIMEOUT).stdout
        names, innermost, used = {}, {}, collections.Counter()
        for kind, body in re.findall(r"^    (function_names|callstacks) \{\n(.*?)^    \}", text, re.M | re.S):
            iid = re.search(r"iid: (\d+)", body)[1]
            if kind == "function_names":
                names[iid] = re.search(r'str: "(.*)"', body)[1]
            else:
                innermost[iid] = re.findall(r"frame_ids: (\d+)", body)[-1]
        for iid in re.findall(r"callstack_iid: (\d+)", text):
            used[names[innermost[iid]]] += 1
        yield used

    def test_exports_have_them(self):
        for program in (running("-static"), running()):
            run = self.run_traced(program, options=("--sample", str(RATE)), input="\n\n")
            own = {name: count for name, count in self.functions(path=run.trace.path).items() if count}
            self.assertGreater(own["burn_first"], 100)
            for found in self.exported(run.trace.path):
                self.assertEqual(found, own)

    def test_words(self):
        done = subprocess.run([KARST, "attach", "1", "-o", "x"], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertIn("needs a place to wait for: --trigger, --sample or --all", done.stderr)
        done = subprocess.run([KARST, "attach", "1", "--sample", "10001"], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertIn("is no number from 0 to 10000", done.stderr)


if __name__ == "__main__":
    main()
