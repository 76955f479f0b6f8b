"""karst/karst.h as programs use it: from C and C++, in signal handlers, forks, static programs, without libkarst; raw
traces, and signal=USR2."""
import base64
import gzip
import os
import re
import signal
import subprocess
import time
import unittest
from pathlib import Path

import support
from support import KARST, Trace, build

C = dict(compiler="karst-gcc")
ALL_WRONG = "-38"  # -ENOSYS


def facts(output):
    return dict(re.findall(r"^([a-z ]+) (-?\d+)$", output.replace("off 0 on ", "switched 0"), re.M))


class Api(support.TracedTest):
    def moment(self, trace):
        self.assertEqual(len(trace.info["kept"]), 1, trace.info["kept"])
        return trace.info["kept"][0]

    def check_traced(self, out, saved_in):
        self.assertEqual(
            facts(out),
            {"handler": "0", "early": "1", "rate": "1", "name": "0", "history": "0", "too much": "-12", "snapshot": "1",
             "nowhere": "-2", "errno": "77", "null": "-22", "child": "10", "switched": "00", "saved": "0",
             "ignore": "0"} | ({} if "switched" in facts(out) else {}))
        handler = Trace(saved_in / "handler.karst")
        self.assertEqual(handler.counts["leaf"], 1000)
        self.assertEqual(self.moment(handler)["kind"], "snapshot")
        child = Trace(saved_in / "child.karst")
        self.assertEqual(child.counts["child_work"], 1)
        self.assertEqual(child.counts["leaf"], 1000)
        parent = Trace(saved_in / "parent.karst")
        self.assertEqual(parent.counts["leaf"], 1000)
        self.assertNotIn("child_work", parent.counts)
        self.assertNotEqual(parent.processes[0]["pid"], child.processes[0]["pid"])
        before = Trace(saved_in / "before-ignoring.karst")
        self.assertEqual(before.counts["work"], 2)
        after = Trace(saved_in / "after-ignoring.karst")
        self.assertNotIn("ignored_work", after.counts)
        self.assertEqual([t["name"] for t in after.threads],
                         ["the main thread, which has a name that is longer than the kernel's"])

    def test_c_program(self):
        program = build("api_everywhere", "api/everywhere.c", "-O1", **C)
        run = self.run_traced(program, self.directory)
        self.check_traced(run.out, self.directory)
        names = [t["name"] for p in run.trace.processes for t in p["threads"]]
        self.assertIn("the main thread, which has a name that is longer than the kernel's", names)

    def test_texts_with_snapshots(self):
        files = [self.directory / "saved.karst", self.directory / "taken.karst"]
        run = self.run_traced(build("api_texts", "api/texts.c", "-O1", **C), *files)
        self.assertEqual(run.out, "0 0 0 -22 -22 -22\n")
        self.assertEqual([self.moment(Trace(file))["what"] for file in files], ["frame 17 was slow\n", "x" * 1000])
        text = subprocess.run([KARST, "info", files[0]], check=True, capture_output=True, text=True).stdout
        self.assertRegex(text, r"\n +1 snapshot .*  frame 17 was slow\\n, thread \d+\n")

    def test_static_program_and_other_code_models(self):
        for output, flags in (("api_nopie", ("-O1", "-no-pie", "-fno-pie")), ("api_o0", ("-O0", "-std=c99", "-pedantic")),
                              ("api_static", ("-O1", "-static", "--karst-link"))):
            with self.subTest(output):
                program = build("api_everywhere", "api/everywhere.c", *flags, output=output, **C)
                run = self.run_traced(program, self.directory)
                self.check_traced(run.out, self.directory)

    def test_without_libkarst(self):
        """All functions do nothing and say so, also where nothing of the program is traced."""
        programs = [
            build("api_everywhere", "api/everywhere.c", "-O1", output="api_plain", **C),
            build("api_everywhere", "api/everywhere.c", "-O1", "-I", str(support.ROOT / "include"), output="api_gcc",
                  compiler="gcc"),
            build("api_everywhere", "api/everywhere.c", "-O1", "-static", "-I", str(support.ROOT / "include"),
                  output="api_gcc_static", compiler="gcc"),
        ]
        for program in programs:
            with self.subTest(program):
                done = subprocess.run([program, str(self.directory)], capture_output=True, text=True,
                                      timeout=support.TIMEOUT)
                self.assertEqual(done.returncode, 0, done.stderr)
                said = facts(done.stdout.replace("off -38 on -38", "switched -38"))
                self.assertEqual(
                    said, {"handler": ALL_WRONG, "early": "0", "rate": "0", "name": ALL_WRONG, "history": ALL_WRONG,
                           "too much": ALL_WRONG, "snapshot": "0", "nowhere": ALL_WRONG, "errno": "77",
                           "null": ALL_WRONG, "child": "20", "switched": ALL_WRONG, "saved": ALL_WRONG,
                           "ignore": ALL_WRONG})
                self.assertEqual(list(self.directory.iterdir()), [])

    def steps_of(self, path):
        """Of each thread by its name: the numbers and begins in ns of its steps, which it spelled in calls."""
        text = subprocess.run([KARST, "export", str(path), "--to", "chrome", "-o", "-"], check=True, capture_output=True,
                              text=True, timeout=support.TIMEOUT).stdout
        names = dict(re.findall(r'"tid":(\d+),"name":"thread_name","args":{"name":"([^"]*)"}', text))
        steps = {name: [] for name in names.values()}
        open_steps = {}  # by thread: begin, and the bits until now
        calls = re.findall(r'"tid":(\d+),"ts":(\d+)\.(\d+),"dur":[\d.]+,"name":"[^"]*(step|one|zero)\([^"]*"(,"args")?', text)
        for tid, us, ns, what, marked in calls:
            if what == "step":
                open_steps[tid] = None if marked else (int(us) * 1000 + int(ns), [])
            elif open_steps.get(tid) is not None:
                begin, bits = open_steps[tid]
                bits.append(what == "one")
                if len(bits) == 24:
                    number = sum(bit << i for i, bit in enumerate(bits))
                    steps[names[tid]].append((number, begin))
        return steps

    def check_snapshot(self, path, before, after):
        """All that it says to be whole is there. Returns whether that is all that was asked for."""
        trace = Trace(path)
        moment = self.moment(trace)
        whole_from = moment["whole_from_ns"]
        self.assertEqual(moment["gave_up"], whole_from > moment["kept_from_ns"] or moment["lost_events"] != 0)
        if not moment["gave_up"]:
            self.assert_sound(trace)
        else:
            self.assertGreater(whole_from, moment["kept_from_ns"])
            self.assertTrue(all("blocks missing" in text for text, _ in trace.problems), trace.problems)
        steps = self.steps_of(path)
        for t in range(8):
            name = f"worker number {t} of the pool with a long name"
            self.assertIn(name, steps)
            whole = [number for number, begin in steps[name] if begin >= whole_from]
            if whole:
                self.assertEqual(whole, list(range(whole[0], whole[-1] + 1)))
                self.assertGreaterEqual(whole[-1], after[t])
            if not moment["gave_up"]:
                # The one after that number had begun, perhaps, when the range began.
                self.assertLessEqual(set(range(before[t] + 2, after[t] + 1)), {number for number, _ in steps[name]})
        return not moment["gave_up"]

    def test_many_threads_at_once(self):
        """Snapshots by four threads while eight run on: what is said to be whole is whole. With so little memory those
        who copy are overtaken, on a busy machine mostly; then the snapshots say so."""
        program = build("api_threads", "api/threads.cc", "-O2", "-pthread")
        for memory in ("2M", "512K"):
            with self.subTest(memory):
                run = self.run_traced(program, self.directory, options=["--memory", memory])
                self.assertEqual(run.out, "0 wrong\n")
                journal = (self.directory / "journal").read_text().splitlines()
                self.assertEqual(len(journal), 8)
                for line in journal:
                    name, *numbers = line.split()
                    self.check_snapshot(self.directory / name, list(map(int, numbers[:8])), list(map(int, numbers[8:])))

    def test_everything_by_threads_and_handlers_at_once(self):
        program = build("api_everything", "api/everything.cc", "-O2", "-pthread")
        run = self.run_traced(program, self.directory, options=["--memory", "4M"])
        self.assertEqual(run.out, "0 wrong, saved\n")
        for name in ["handler.karst", *(f"thread{t}.karst" for t in range(4))]:
            trace = Trace(self.directory / name)
            self.moment(trace)
            self.assertTrue(trace.info["complete"])
            self.assertTrue(any("work" in function for function in trace.counts))

    def test_library_that_uses_it(self):
        """One that no wrapper built, loaded by dlopen; with libkarst and without."""
        library = build("api_library", "api/library.cc", "-O2", "-shared", "-fPIC", "-I", str(support.ROOT / "include"),
                        output="api_library.so", compiler="g++")
        program = build("api_use_library", "api/use_library.cc", "-O2", "-ldl")
        run = self.run_traced(program, library, self.directory)
        self.assertEqual(run.out, "name 0\nsaved 0\nin order 1\n")
        trace = Trace(self.directory / "library.karst")
        self.assert_sound(trace)
        self.assertEqual([t["name"] for t in trace.threads], ["named by a library"])
        self.assertEqual(Trace(trace.path).counts_of("--kept", "1")["leaf(int)"], 50)
        (self.directory / "library.karst").unlink()
        alone = subprocess.run([program, library, str(self.directory)], capture_output=True, text=True, timeout=support.TIMEOUT)
        self.assertEqual(alone.stdout, f"name {ALL_WRONG}\nsaved {ALL_WRONG}\nin order 0\n")
        self.assertFalse((self.directory / "library.karst").exists())

    def test_resolve_makes_raw_traces_self_contained(self):
        program = build("api_everywhere", "api/everywhere.c", "-O1", output="api_moved", **C)
        self.run_traced(program, self.directory)
        raw = self.directory / "handler.karst"
        resolved = self.directory / "resolved.karst"
        subprocess.run([KARST, "resolve", str(raw), "-o", str(resolved)], check=True, timeout=support.TIMEOUT,
                       capture_output=True)
        self.assertFalse(Trace(raw).info["resolved"])
        self.assertTrue(Trace(resolved).info["resolved"])
        self.assertEqual(Trace(raw).tree(), Trace(resolved).tree())
        self.assertEqual(Trace(raw).info["kept"], Trace(resolved).info["kept"])
        self.assertGreater(Trace(resolved).info["source_files"], 0)
        # The program is another one now: its names would be wrong.
        os.rename(program, program + ".away")
        try:
            Path(program).write_bytes(Path(build("api_threads", "api/threads.cc", "-O2", "-pthread")).read_bytes())
            done = subprocess.run([KARST, "resolve", str(raw), "-o", str(self.directory / "wrong.karst")],
                                  capture_output=True, text=True, timeout=support.TIMEOUT,
                                  env={**os.environ, "XDG_CACHE_HOME": str(self.directory / "no-cache")})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("build-id", done.stderr)
        finally:
            os.rename(program + ".away", program)
        self.assertEqual(Trace(resolved).counts["leaf"], 1000)

    def test_signal_writes_numbered_files(self):
        """kill -USR2 with no handler of the program's, one that it has, and one that it takes back."""
        program = build("api_signal", "api/signal.c", "-O1", "-pthread", **C)
        child = subprocess.Popen(
            [KARST, "run", "--signal", "USR2", "--snapshots", str(self.directory), "-o", str(self.directory / "t.karst"),
             program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
        try:
            pid = int(child.stdout.readline())
            for number, handled in enumerate(("0", "1", "2", "2"), 1):
                os.kill(pid, signal.SIGUSR2)
                path = self.directory / f"api_signal-{pid}-{number}.karst"
                for _ in range(support.TIMEOUT * 20):
                    if path.exists():
                        break
                    time.sleep(0.05)
                self.assertTrue(path.exists(), f"{path} was not written")
                child.stdin.write("\n")
                child.stdin.flush()
                self.assertEqual(child.stdout.readline().strip(), f"handled {handled}")
                trace = Trace(path)
                self.assert_sound(trace)
                self.assertEqual(self.moment(trace)["kind"], "signal")
                self.assertIn("step", trace.counts)
            child.stdin.close()
            self.assertEqual(child.wait(support.TIMEOUT), 0)
        finally:
            child.kill()
            child.wait()
            child.stdout.close()

    def wait_for(self, path):
        for _ in range(support.TIMEOUT * 20):
            if path.exists():
                return Trace(path)
            time.sleep(0.05)
        self.fail(f"{path} was not written")

    def test_signal_that_the_program_waits_for(self):
        """Blocked and taken by signalfd or sigwait it is the program's alone; unblocked it makes a snapshot. A program
        that was started with the signal ignored sees it so."""
        program = build("api_signal_waits", "api/signal_waits.c", "-O1", **C)
        for action, launcher in (("default", []), ("ignored", ["/bin/sh", "-c", 'trap "" USR2; exec "$@"', "sh"])):
            with self.subTest(action):
                child = subprocess.Popen([*launcher, KARST, "run", "--signal", "USR2", "--snapshots", str(self.directory), "-o",
                                          str(self.directory / "t.karst"), program],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
                try:
                    pid, was = child.stdout.readline().split()
                    self.assertEqual(was, action)
                    first = self.directory / f"api_signal_waits-{pid}-1.karst"
                    self.assertEqual(child.stdout.readline(), "reads\n")
                    os.kill(int(pid), signal.SIGUSR2)
                    self.assertEqual(child.stdout.readline(), "signalfd 1\n")
                    os.kill(int(pid), signal.SIGUSR2)
                    self.assertEqual(child.stdout.readline(), "sigwait 1\n")
                    self.assertFalse(first.exists())
                    os.kill(int(pid), signal.SIGUSR2)
                    self.assertEqual(self.moment(self.wait_for(first))["kind"], "signal")
                    child.stdin.close()
                    self.assertEqual(child.wait(support.TIMEOUT), 0)
                    self.assertEqual(len(list(self.directory.glob("api_signal_waits-*"))), 1)
                    first.unlink()
                finally:
                    child.kill()
                    child.wait()
                    child.stdout.close()

    def test_signal_in_a_static_program(self):
        """Until it sets a handler of its own, which is libc's there."""
        program = build("api_signal", "api/signal.c", "-O1", "-static", "--karst-link", output="api_signal_static", **C)
        child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=self.directory,
                                 env={**os.environ, "KARST_OPTIONS": "signal=USR2"})
        try:
            pid = int(child.stdout.readline())
            os.kill(pid, signal.SIGUSR2)
            trace = self.wait_for(self.directory / f"api_signal_static-{pid}-1.karst")
            self.assertIn("step", trace.counts)
            child.stdin.close()
            self.assertEqual(child.wait(support.TIMEOUT), 0)
        finally:
            child.kill()
            child.wait()
            child.stdout.close()

    def test_kept_in_report_tree_exports_and_the_page(self):
        """What a raw trace kept, in each command that shows a part of a trace."""
        library = build("api_library", "api/library.cc", "-O2", "-shared", "-fPIC", "-I", str(support.ROOT / "include"),
                        output="api_library.so", compiler="g++")
        program = build("api_use_library", "api/use_library.cc", "-O2", "-ldl")
        self.run_traced(program, library, self.directory)
        path = str(self.directory / "library.karst")
        trace = Trace(path)
        self.assertGreater(trace.counts["leaf(int)"], 50)  # blocks have what came before, too
        self.assertEqual(trace.counts_of("--kept", "1"), {"leaf(int)": 50})
        self.assertEqual(sum("leaf(int)" in line for line in trace.tree("--kept", "1")), 50)
        for form in ("chrome", "perfetto", "html"):
            out = self.directory / ("out." + form)
            done = subprocess.run([KARST, "export", path, "--kept", "1", "--to", form, "-o", str(out)],
                                  capture_output=True, text=True, timeout=support.TIMEOUT)
            if "built without the viewer's page" in done.stderr:
                continue
            self.assertEqual(done.returncode, 0, done.stderr)
            data = out.read_bytes()
            if form == "chrome":
                self.assertEqual(data.count(b'"name":"leaf(int)'), 50)
            if form == "html":
                part = self.directory / "part.karst"
                part.write_bytes(gzip.decompress(base64.b64decode(re.search(rb'id="karst-trace">(.*?)</script>', data)[1])))
                self.assertEqual(Trace(str(part)).counts["leaf(int)"], 50)
            else:
                self.assertNotIn(b"too_early(int) (", data)
                self.assertIn(b"leaf(int)", data)
            wrong = subprocess.run([KARST, "export", path, "--kept", "2", "--to", form, "-o", str(out)],
                                   capture_output=True, text=True, timeout=support.TIMEOUT)
            self.assertEqual(wrong.returncode, 1)
            self.assertIn("has no kept moment 2; it has 1", wrong.stderr)
        wrong = subprocess.run([KARST, "view", "--no-browser", path, "--kept", "2"], capture_output=True, text=True,
                               timeout=support.TIMEOUT)
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("has no kept moment 2; it has 1", wrong.stderr)
        view = subprocess.Popen([KARST, "view", "--no-browser", "--keep", path, "--kept", "1"], stdout=subprocess.PIPE, text=True)
        try:
            # page/test/page/opening.test.ts has what the page makes of it.
            self.assertRegex(view.stdout.readline(), r"^http://\S+/#kept=1\n$")
            view.send_signal(signal.SIGINT)
            self.assertEqual(view.wait(support.TIMEOUT), 0)
        finally:
            view.kill()
            view.wait()
            view.stdout.close()

    def test_file_size_limit_is_no_signal(self):
        program = build("api_everywhere", "api/everywhere.c", "-O1", output="api_plain2", **C)
        run = self.run_traced("/bin/sh", "-c", f"ulimit -f 8; exec {program} {self.directory}", status=None)
        self.assertNotEqual(run.status, 128 + signal.SIGXFSZ)


if __name__ == "__main__":
    support.main()
