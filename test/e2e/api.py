"""karst/karst.h as programs use it: from C and C++, in signal handlers, forks, static programs, without libkarst; raw
traces, and signal=USR2."""
import os
import re
import signal
import subprocess
import time
import unittest
from pathlib import Path

import torture_support as support
from torture_support import KARST, Trace, build

C = dict(compiler="karst-gcc")
ALL_WRONG = "-38"  # -ENOSYS


def facts(output):
    return dict(re.findall(r"^([a-z ]+) (-?\d+)$", output.replace("off 0 on ", "switched 0"), re.M))


class Api(support.TortureTest):
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

    def test_many_threads_at_once(self):
        """Snapshots by four threads of eight that run on; every call in one is whole, and each thread has its name.
        A thread that waits for a CPU while it copies can be overtaken by all others: then its snapshot says so."""
        program = build("api_threads", "api/threads.cc", "-O2", "-pthread")
        run = self.run_traced(program, self.directory, options=["--memory", "64M"])
        self.assertEqual(run.out, "0 wrong\n")
        for path in sorted(self.directory.glob("s??.karst")):
            trace = Trace(path)
            moment = self.moment(trace)
            if moment["lost_events"] == 0:
                self.assert_sound(trace)
            else:
                self.assertTrue(all("blocks missing" in text for text, _ in trace.problems), trace.problems)
                continue
            names = {t["name"] for t in trace.threads}
            for t in range(8):
                self.assertIn(f"worker number {t} of the pool with a long name", names)
            # Ten steps in each: those at the edges aside.
            tree = trace.tree("--depth", "2")
            self.assertTrue(any("marked_step" in line for line in tree), path)

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

    def test_file_size_limit_is_no_signal(self):
        program = build("api_everywhere", "api/everywhere.c", "-O1", output="api_plain2", **C)
        run = self.run_traced("/bin/sh", "-c", f"ulimit -f 8; exec {program} {self.directory}", status=None)
        self.assertNotEqual(run.status, 128 + signal.SIGXFSZ)


if __name__ == "__main__":
    support.main()
