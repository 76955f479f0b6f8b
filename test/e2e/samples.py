"""Sampling beside the calls: karst run --sample, karst samples, and where samples are shown.

The oracle is the program: it measures the CPU time of its thread around each piece of work, by the kernel's clock. A
sample stands for a period of that time, so their number is known up to chance; stacks are known exactly.
"""
import collections
import json
import math
import os
import shutil
import subprocess

from support import BIN, HERE, KARST, TIMEOUT, TracedTest, WORK, build, main

RATE = 1000
PERIOD = 1e9 / RATE


def program(compiler="karst-g++", soname=False):
    """`soname`: LD_LIBRARY_PATH says where its library is."""
    library = build("libsamples-library.so", "samples/library.c", "-O2", "-shared", "-fPIC", "-fomit-frame-pointer",
                    "-fno-optimize-sibling-calls", "-Wl,-soname,libsamples-library.so", compiler="gcc")
    where = "-Wl,-rpath,/nowhere" if soname else f"-Wl,-rpath,{os.path.dirname(library)}"
    return build(f"samples-{compiler}{soname}", "samples/program.cc", "-O1", "-pthread", library, where,
                 compiler=compiler)


class Samples(TracedTest):
    def sampled(self, *order, options=(), compiler="karst-g++", **more):
        run = self.run_traced(program(compiler), *order, options=("--sample", str(RATE), *options), **more)
        if "nothing was sampled" in run.err:
            self.skipTest(run.err)
        return run

    def asked(self, run, *options):
        done = subprocess.run([KARST, "samples", "--json", str(run.trace.path), *options], capture_output=True, text=True,
                              timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def functions(self, run, *options):
        return {f["function"]: f for f in self.asked(run, *options)["sampled_functions"]}

    def said(self, run):
        """What, process, thread and CPU time of each line of the program's."""
        return [(w, int(p), int(t), int(ns)) for w, p, t, ns in (line.split() for line in run.out.splitlines())]

    def paths(self, run):
        """Each path of calls and sampled frames with its own time, as `karst flame --json` has it."""
        done = subprocess.run([KARST, "stacks", "--raw", "--json", str(run.trace.path)], capture_output=True, text=True,
                              check=True, timeout=TIMEOUT)
        nodes = json.loads(done.stdout)["paths"]
        paths = {}
        for node in nodes:
            path, at = [], node
            while True:
                path.append(("~" if at.get("sampled") else "") + at["function"].split("(")[0])
                if at["caller"] is None:
                    break
                at = nodes[at["caller"]]
            paths[tuple(reversed(path))] = node["self_ns"]
        return paths

    def about(self, samples, ns, lost=0):
        """So many samples as the CPU time asks for: within five standard deviations, and one at each end."""
        expected = ns / PERIOD
        self.assertLess(abs(samples - expected), 5 * math.sqrt(expected) + 2 + lost, (samples, expected))

    def test_shares_are_those_of_cpu_time(self):
        run = self.sampled("first", "second", "own")
        functions = self.functions(run)
        spent = {what: ns for what, _, _, ns in self.said(run)}
        lost = run.trace.info["samples"]["lost"]
        self.about(functions["burn_first"]["samples"], spent["first"], lost)
        self.about(functions["burn_second"]["samples"], spent["second"], lost)
        self.about(functions["own_work()"]["samples"], spent["own"], lost)
        self.assertEqual([b["function"] for b in functions["burn_first"]["in_calls"]], ["call_first()"])
        self.assertEqual(functions["own_work()"]["traced_samples"], functions["own_work()"]["samples"])
        self.assertEqual(run.trace.counts.get("burn_first"), None, "samples are no calls")
        self.assertEqual(run.trace.counts["call_first()"], 1)

    def test_stacks_below_a_call_are_whole(self):
        run = self.sampled("first", "deep")
        paths = self.paths(run)
        first = ("main", "call_first", "~library_first", "~between", "~burn_first")
        deep = ("main", "call_deep", "~library_deep", "~in_the_deep", "~burn_second")
        for path, name in ((first, "burn_first"), (deep, "burn_second")):
            every = sum(ns for p, ns in paths.items() if p[-1] == "~" + name)
            self.assertGreater(paths[path], 0.99 * every, [p for p in paths if p[-1] == "~" + name])

    def test_a_handler_is_below_what_it_interrupted(self):
        paths = self.paths(self.sampled("signal"))
        longest = max((p for p in paths if p[-1] == "~burn_second"), key=paths.get)
        names = [name.lstrip("~") for name in longest]
        self.assertEqual(names[:3], ["main", "call_signal", "library_signal"])
        self.assertEqual(names[-2:], ["handle", "burn_second"])

    def test_a_traced_callback_has_its_own(self):
        paths = self.paths(self.sampled("back"))
        longest = max((p for p in paths if p[-1] == "~burn_first"), key=paths.get)
        self.assertEqual(longest, ("main", "call_back", "called_back", "~library_first", "~between", "~burn_first"))

    def test_threads_and_children_have_their_own(self):
        run = self.sampled("threads", "fork")
        said = self.said(run)
        lost = run.trace.info["samples"]["lost"]
        for what, pid, tid, ns in said:
            burnt = "burn_" + what
            if pid != tid or pid != said[-1][1]:  # its own thread's alone, by its number
                functions = self.functions(run, "--thread", str(tid), "--process", str(pid))
                self.about(functions[burnt]["samples"], ns, lost)
                self.assertEqual({n for n in functions if n.startswith("burn_")}, {burnt})

    def test_filters_take_what_lies_in_them(self):
        run = self.sampled("first", "second")
        self.assertEqual({n for n in self.functions(run, "--function", "call_second") if n.startswith("burn_")},
                         {"burn_second"})
        self.assertEqual({n for n in self.functions(run, "--below", "call_first") if n.startswith("burn_")},
                         {"burn_first"})
        begin = next(c for c in self.calls(run, "call_second"))
        span = f"{begin['begin_ns']}ns..{begin['begin_ns'] + begin['duration_ns']}ns"
        self.assertEqual({n for n in self.functions(run, "--range", span) if n.startswith("burn_")}, {"burn_second"})

    def calls(self, run, function):
        done = subprocess.run([KARST, "calls", "--json", "--function", function, str(run.trace.path)], check=True,
                              capture_output=True, text=True, timeout=TIMEOUT)
        return json.loads(done.stdout)["calls"]

    def test_a_program_without_sleds(self):
        run = self.sampled("first", compiler="g++")
        functions = self.functions(run)
        self.about(functions["burn_first"]["samples"], self.said(run)[0][3], run.trace.info["samples"]["lost"])
        self.assertEqual([b["function"] for b in functions["burn_first"]["in_calls"]], ["call_first()"])

    def test_a_program_of_which_nothing_is_traced(self):
        run = self.sampled("first", "second", options=("--no-patch",), compiler="g++")
        functions = self.functions(run)
        for what, _, _, ns in self.said(run):
            self.about(functions["burn_" + what]["samples"], ns, run.trace.info["samples"]["lost"])
        paths = self.paths(run)
        self.assertTrue(any(p[-4:] == ("~call_first", "~library_first", "~between", "~burn_first") for p in paths), paths)

    def waiting(self, *order, **more):
        """A run whose waits were sampled, and what each function waited, in ns."""
        self.SCHED = ()
        run = self.sampled(*order, **more)
        if "where threads waited" in (run.trace.info["samples"]["note"] or "") or not run.trace.info.get("states"):
            self.skipTest(run.trace.info["samples"]["note"] or "no thread states here")
        return run

    def between_asked_and_taken(self, ns, asked_ms, said):
        """A thread is blocked for as long as it asked, and no longer than its clock says."""
        self.assertGreaterEqual(ns, asked_ms * 1e6 * 0.99)
        self.assertLessEqual(ns, said * 1.001)

    def test_waits_have_stacks(self):
        run = self.waiting("waits", "first")
        functions = self.functions(run, "--by", "blocked")
        took = collections.Counter()
        for what, _, _, ns in self.said(run):
            took[what] += ns
        self.between_asked_and_taken(functions["asleep"]["total_ns"], 5 * 20, took["sleep"])
        self.between_asked_and_taken(functions["library_polls"]["total_ns"], 5 * 30, took["poll"])
        self.assertEqual(functions["asleep"]["total_samples"], 5)
        self.assertNotIn("burn_first", functions)
        inner = max((f for f in functions.values() if f["samples"]), key=lambda f: f["self_ns"])
        self.assertEqual([b["function"] for b in inner["in_calls"]][:1], ["call_poll()"])
        # As paths, blocked and in all.
        for by in ("blocked", "wall"):
            paths = self.folded(run, "--by", by)
            for path, asked, key in (("main;call_waits();call_sleep();library_sleeps [sampled];asleep [sampled]", 5 * 20, "sleep"),
                                     ("main;call_waits();call_poll();library_polls [sampled]", 5 * 30, "poll")):
                ns = sum(n for p, n in paths.items() if p.startswith(path))
                if by == "blocked":
                    self.between_asked_and_taken(ns, asked, took[key])
                else:
                    self.assertGreaterEqual(ns, 0.99e6 * asked)
        # What is cut by a range counts by what is in it.
        begin = next(c for c in self.calls(run, "call_poll"))
        half = begin["begin_ns"] + begin["duration_ns"] // 2
        cut = self.functions(run, "--by", "blocked", "--range", f"{half}ns..{begin['begin_ns'] + begin['duration_ns']}ns")
        self.assertAlmostEqual(cut["library_polls"]["total_ns"], begin["duration_ns"] / 2, delta=begin["duration_ns"] * 0.1)
        self.assertIn("call_poll()", str(cut))

    def test_of_too_many_waits_some_have_stacks(self):
        run = self.waiting("storm", "first")
        told = run.trace.info["samples"]
        self.assertGreater(told["waits"], 50)
        self.assertGreater(told["waits_left_out"], 1000)
        functions = self.functions(run, "--by", "blocked")
        self.assertEqual({b["function"] for f in functions.values() if "read" in f["function"] and f["samples"]
                          for b in f["in_calls"]}, {"call_storm()", "answer(int const*)"})
        # They take no room from the others.
        self.about(self.functions(run)["burn_first"]["samples"], self.said(run)[0][3], told["lost"])

    def folded(self, run, *options):
        done = subprocess.run([KARST, "flame", str(run.trace.path), *options], capture_output=True, text=True,
                              check=True, timeout=TIMEOUT)
        lines = (line.rsplit(" ", 1) for line in done.stdout.splitlines())
        return {path.replace(" [clone .lto_priv.0]", ""): int(ns) for path, ns in lines}

    def test_waits_of_a_program_of_which_nothing_is_traced(self):
        run = self.waiting("waits", options=("--no-patch",), compiler="g++")
        took = sum(ns for what, _, _, ns in self.said(run) if what == "sleep")
        self.between_asked_and_taken(self.functions(run, "--by", "blocked")["asleep"]["total_ns"], 5 * 20, took)
        paths = self.folded(run, "--by", "blocked")
        ns = sum(n for p, n in paths.items() if "call_waits" in p and "call_sleep" in p and "asleep" in p)
        self.between_asked_and_taken(ns, 5 * 20, took)

    def test_children_of_what_is_sampled_alone_are_processes(self):
        run = self.sampled("fork", options=("--no-patch",), compiler="g++")
        said = self.said(run)
        processes = {p["pid"] for p in run.trace.info["processes"]}
        self.assertEqual(processes, {pid for _, pid, _, _ in said})
        for what, pid, _, ns in said:
            functions = self.functions(run, "--process", str(pid))
            self.about(functions["burn_" + what]["samples"], ns, run.trace.info["samples"]["lost"])
            self.assertEqual({n for n in functions if n.startswith("burn_")}, {"burn_" + what})

    def test_what_a_fiber_does_is_its_own(self):
        self.SCHED = ()
        run = self.sampled("fibers", "own", options=("--fibers=stack",))
        lost = run.trace.info["samples"]["lost"]
        waits = run.trace.info["samples"]["waits"] and run.trace.info.get("states")
        spent = {what: ns for what, _, _, ns in self.said(run)}
        lanes = sorted(t["tid"] for p in run.trace.info["processes"] for t in p["threads"] if t["tid"] > 1_000_000_000)
        self.assertEqual(len(lanes), 2, run.trace.info["processes"])
        for lane, burns, waited in zip(lanes, ("first", "second"), ("asleep", "library_polls")):
            functions = self.functions(run, "--thread", str(lane))
            self.assertEqual({f for f in functions if f.startswith("burn_")}, {"burn_" + burns})
            self.about(functions["burn_" + burns]["samples"], spent[burns], lost)
            self.assertEqual([b["function"] for b in functions["burn_" + burns]["in_calls"]], [f"call_{burns}()"])
            if waits:
                self.assertIn(waited, self.functions(run, "--thread", str(lane), "--by", "blocked"))
        own = self.functions(run, "--thread", str(self.said(run)[0][2]))
        self.assertEqual({f for f in own if f.startswith("burn_")}, set())
        self.about(own["own_work()"]["samples"], spent["own"], lost)

    def test_what_cannot_be_said_of_waits(self):
        run = self.sampled("waits")
        done = subprocess.run([KARST, "samples", "--by", "blocked", str(run.trace.path)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "record with 'karst run --sched auto'|does not say where threads waited")

    def test_nothing_is_revealed_once_it_is_stripped(self):
        run = self.sampled("first")
        stripped = self.directory / "stripped.karst"
        subprocess.run([KARST, "resolve", "--strip=paths,names,host", "-o", str(stripped), str(run.trace.path)], check=True,
                       capture_output=True, timeout=TIMEOUT)
        out = subprocess.run([KARST, "samples", "--json", str(stripped)], check=True, capture_output=True, text=True).stdout
        for word in ("burn_first", str(WORK / "programs"), "library.c"):
            self.assertNotIn(word, out)
        self.assertEqual(json.loads(out)["samples"], self.asked(run)["samples"])

    def test_what_another_user_runs_is_read_as_that_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        program()
        library = self.directory / "libsamples-library.so"
        shutil.copy(WORK / "programs" / library.name, library)
        library.chmod(0o700)
        env = {**os.environ, "LD_LIBRARY_PATH": str(self.directory)}
        for order, is_read in ((("first",), True), (("drop", "first"), False)):
            run = self.run_traced(program(soname=True), *order, options=("--sample", str(RATE)), env=env)
            functions = self.functions(run)
            self.assertEqual("burn_first" in functions, is_read, functions.keys())
            self.assertEqual(library.name in functions, not is_read, functions.keys())

    def test_without_privileges(self):
        if os.geteuid() != 0:
            self.skipTest("run as another user it has none")
        self.directory.chmod(0o777)
        os.chmod(WORK, 0o755)
        path = self.directory / "u.karst"
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", KARST, "run", *self.SCHED,
                               "--sample", str(RATE), "-o", path, "--", program(), "first"], capture_output=True, text=True,
                              timeout=TIMEOUT, env={**os.environ, "XDG_CACHE_HOME": str(self.directory)})
        if "nothing was sampled" in done.stderr or "Permission denied" in done.stderr:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        out = json.loads(subprocess.run([KARST, "info", "--json", path], check=True, capture_output=True, text=True).stdout)
        self.assertFalse(out["samples"]["kernel"])
        self.assertIn("kernel.perf_event_paranoid", out["samples"]["note"])

    def test_the_program_computes_the_same(self):
        plain = subprocess.run([program("g++"), "first", "deep", "signal", "fork"], capture_output=True, text=True)
        run = self.sampled("first", "deep", "signal", "fork")
        self.assertEqual([line.split()[0] for line in plain.stdout.splitlines()], [w for w, _, _, _ in self.said(run)])

    def test_words(self):
        run = self.sampled("first")
        text = subprocess.run([KARST, "samples", str(run.trace.path)], check=True, capture_output=True, text=True).stdout
        self.assertIn("of CPU time", text)
        self.assertRegex(text, r"(?m)burn_first$")
        report = subprocess.run([KARST, "report", str(run.trace.path)], check=True, capture_output=True, text=True).stdout
        self.assertRegex(report, r"\d+ samples of code below these calls: karst samples")
        done = subprocess.run([KARST, "samples", "--function", "nobody", str(run.trace.path)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        folded = subprocess.run([KARST, "flame", str(run.trace.path)], check=True, capture_output=True, text=True).stdout
        self.assertRegex(folded, r"(?m)^main;call_first\(\);library_first \[sampled\];between \[sampled\];burn_first "
                                 r"\[sampled\] \d+$")
        none = self.run_traced(program(), "first")
        done = subprocess.run([KARST, "samples", str(none.trace.path)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("has no samples; 'karst run --sample 1000' takes some", done.stderr)


if __name__ == "__main__":
    main()
