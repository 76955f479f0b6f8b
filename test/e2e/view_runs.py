"""Real runs looked at: `karst run --view`, and thread states in report, tree, exports and the viewer."""
import base64
import gzip
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import time
import unittest
import urllib.request
from pathlib import Path

from support import KARST, TIMEOUT, WORK, build, main

# Fetches what it is given, as a browser would, and holds the page open for a moment.
BROWSER = """#!/usr/bin/env python3
import json, sys, time, urllib.request
url = sys.argv[1]
alive = urllib.request.urlopen(url + "api/alive")
json.loads(urllib.request.urlopen(url + "api/progress?wait=1").read())
facts = urllib.request.urlopen(url + "api/trace").read()
page = urllib.request.urlopen(url).read()
open({out!r}, "wb").write(facts)
alive.close()
"""


def waiting():
    return build("waiting", "view/waiting.cc", "-O1", "-pthread")


class ViewRuns(unittest.TestCase):
    def run_karst(self, *arguments, status=0, **more):
        done = subprocess.run([KARST, *arguments], capture_output=True, text=True, timeout=TIMEOUT, **more)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def states_trace(self):
        """A trace of waiting.cc with thread states, or a skip."""
        path = str(WORK / f"{self.id().rsplit('.', 1)[-1]}.karst")
        self.run_karst("run", "-o", path, waiting())
        with open(path, "rb") as file:
            if b"STEV" not in file.read():
                self.skipTest("the system gives no thread states here: " + self.run_karst("info", path))
        return path

    def test_run_view_opens_the_page_when_the_program_has_ended(self):
        bin_ = WORK / "fake_browser"
        bin_.mkdir(parents=True, exist_ok=True)
        out = WORK / "fake_browser.json"
        out.unlink(missing_ok=True)
        browser = bin_ / "xdg-open"
        browser.write_text(BROWSER.format(out=str(out)))
        browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
        environment = {**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}"}
        for name in ("SSH_CONNECTION", "DISPLAY", "WAYLAND_DISPLAY"):
            environment.pop(name, None)
        trace = str(WORK / "run_view.karst")
        # It serves until the page was closed, and its status is the program's.
        done = subprocess.run([KARST, "run", "--view", "-o", trace, waiting()], capture_output=True, text=True, timeout=TIMEOUT, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^http://127\.0\.0\.1:[0-9]+/[0-9a-f]{32}/$")
        facts = json.loads(out.read_text())
        self.assertEqual(facts["name"], "run_view.karst")
        self.assertIn("take()", facts["functions"]["name"])
        self.assertNotIn("no browser", done.stderr)

    def test_run_view_without_a_browser_says_so_and_still_serves(self):
        empty = WORK / "no_browser"
        empty.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "PATH": str(empty)}
        for name in ("SSH_CONNECTION", "DISPLAY", "WAYLAND_DISPLAY"):
            environment.pop(name, None)
        trace = str(WORK / "run_view_none.karst")
        process = subprocess.Popen([KARST, "run", "--view", "-o", trace, waiting()], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=environment)
        try:
            url = process.stdout.readline().strip()
            self.assertRegex(url, r"^http://127\.0\.0\.1:[0-9]+/[0-9a-f]{32}/$")
            with urllib.request.urlopen(url + "api/progress?wait=1") as answer:
                self.assertEqual(json.loads(answer.read())["phase"], "ready")
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=TIMEOUT)[1]
            self.assertEqual(process.returncode, 0, said)
            self.assertIn("no browser could be started", said)
        finally:
            process.kill()
            process.communicate()

    def test_run_all_view_shows_the_page_while_the_program_runs(self):
        empty = WORK / "no_browser"
        empty.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "PATH": str(empty)}
        for name in ("SSH_CONNECTION", "DISPLAY", "WAYLAND_DISPLAY"):
            environment.pop(name, None)
        counts = build("all_counts", "all/counts.c", "-O1", "-pthread", compiler="karst-gcc")
        trace = str(WORK / "run_all_view.karst")
        process = subprocess.Popen([KARST, "run", "--all", "--view", "--budget", "off", "-o", trace, counts, "3000000", "1", "0"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        try:
            url = next(line for line in process.stderr if "http:" in line).strip()
            self.assertRegex(url, r"^http://127\.0\.0\.1:[0-9]+/[0-9a-f]{32}/$")

            def ask(path):
                with urllib.request.urlopen(url + path, timeout=TIMEOUT) as answer:
                    return json.loads(answer.read())

            self.assertEqual(ask("api/progress?wait=1")["phase"], "ready")
            facts = ask("api/trace")
            self.assertTrue(facts["growing"])
            # The address comes with the first block, which may hold few calls; a page that is opened later has more.
            end = time.monotonic() + TIMEOUT
            while facts["calls"] <= 1000 and time.monotonic() < end:
                time.sleep(0.1)
                urllib.request.urlopen(url, timeout=TIMEOUT).close()
                ask("api/progress?wait=1")
                facts = ask("api/trace")
            self.assertGreater(facts["calls"], 1000)
            # The program's output is its own, and its end is waited for as ever.
            self.assertEqual(process.stdout.readline(), "3000000\n")
            for line in process.stderr:
                if "next: karst slow" in line:
                    break
            urllib.request.urlopen(url, timeout=TIMEOUT).close()
            ask("api/progress?wait=1")
            later = ask("api/trace")
            self.assertFalse(later["growing"])
            self.assertGreater(later["calls"], facts["calls"])
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=TIMEOUT)[1]
            self.assertEqual(process.returncode, 0, said)
        finally:
            # The page's process outlives a karst that is killed, and holds its standard error.
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            for child in children.read_text().split() if children.exists() else ():
                os.kill(int(child), signal.SIGKILL)
            process.kill()
            process.communicate(timeout=TIMEOUT)

    def test_view_of_a_process_records_it_while_somebody_looks(self):
        bin_ = WORK / "process_browser"
        bin_.mkdir(parents=True, exist_ok=True)
        out = WORK / "process_browser.json"
        out.unlink(missing_ok=True)
        browser = bin_ / "xdg-open"
        browser.write_text(BROWSER.format(out=str(out)).replace("alive.close()", "time.sleep(1.5)\nalive.close()"))
        browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
        environment = {**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}"}
        for name in ("SSH_CONNECTION", "DISPLAY", "WAYLAND_DISPLAY"):
            environment.pop(name, None)
        directory = WORK / "view_process"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        counts = build("all_counts_plain", "all/counts.c", "-O0", "-pthread", compiler="gcc")
        program = subprocess.Popen([counts, "100000000", "1", "0"], stdout=subprocess.DEVNULL)
        try:
            done = subprocess.run([KARST, "view", str(program.pid)], capture_output=True, text=True, timeout=TIMEOUT, env=environment,
                                  cwd=directory, check=False)
            if "ptrace" in done.stderr and done.returncode != 0:
                self.skipTest(done.stderr)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"process {program.pid} is not traced any more", done.stderr)
            facts = json.loads(out.read_text())
            self.assertTrue(facts["growing"])
            # The file stays, and has what the page had; the budget of 5% leaves these functions out soon.
            trace = next(directory.iterdir())
            self.assertIn(f"-{program.pid}-1.karst", trace.name)
            info = json.loads(self.run_karst("info", "--json", str(trace)))
            self.assertGreaterEqual(info["calls"], max(facts["calls"], 1000))
            state = json.loads(self.run_karst("ps", "--json"))
            self.assertEqual([p["state"] for p in state["processes"] if p["pid"] == program.pid], ["off"])
        finally:
            program.kill()
            program.wait()
        for words, why in (((str(program.pid),), "no process"), (("1", "--keep"), "leave --keep"), (("nobody-is-called-so",), "there is no such file")):
            done = subprocess.run([KARST, "view", *words], capture_output=True, text=True, timeout=TIMEOUT, check=False, cwd=directory)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(why, done.stderr)

    def test_report_tells_computing_from_waiting(self):
        path = self.states_trace()
        report = {row["function"]: row for row in json.loads(self.run_karst("report", "--format", "json", path))["functions"]}
        for row in report.values():
            for part, whole in (("", "total_ns"), ("self_", "self_ns")):
                total = sum(row[f"{part}{state}_ns"] for state in ("cpu", "runnable", "blocked", "unknown"))
                self.assertLessEqual(abs(total - row[whole]), 4, row)
        # What sleeps is blocked, whoever else uses the machine; what computes is not.
        doze, compute, take = report["doze()"], report["compute(int)"], report["take()"]
        self.assertGreater(doze["blocked_ns"], 10 * 18_000_000)
        self.assertGreater(take["blocked_ns"], 10 * 15_000_000)
        self.assertGreater(compute["cpu_ns"], compute["blocked_ns"])
        self.assertLess(doze["cpu_ns"], doze["blocked_ns"])
        text = self.run_karst("report", "--sort", "blocked", path)
        self.assertRegex(text.splitlines()[1], r"cpu +runnable +blocked +self-cpu")
        header = self.run_karst("report", "--format", "csv", path).splitlines()[0]
        self.assertIn(",self_cpu_ns,self_runnable_ns,self_blocked_ns,self_unknown_ns,", header)

    def test_tree_says_why_a_call_waited(self):
        path = self.states_trace()
        tree = self.run_karst("tree", "--states", "--min-wait", "5ms", path)
        waits = re.findall(r"(?m)^.*take\(\)\n(?: +[0-9.]+ ms +\[(.*)\]\n)", tree)
        self.assertGreater(len(waits), 5, tree)
        for words in waits:
            self.assertTrue(words.startswith("blocked"), words)
        if "ftrace" in self.run_karst("info", path):
            self.assertGreater(sum("waiting in put(int)" in words for words in waits), 5, tree)
        plain = self.run_karst("tree", "--plain", path)
        self.assertEqual(plain, self.run_karst("tree", "--plain", "--states", "--min-wait", "1000s", path))

    def test_exports_and_cuts_carry_states(self):
        path = self.states_trace()
        out = WORK / "states_export.json"
        self.run_karst("export", path, "--to", "chrome", "-o", str(out))
        text = json.loads(out.read_text())["systemTraceEvents"]
        self.assertGreater(text.count("sched_switch: "), 20)
        times = {}
        for cpu, at in re.findall(r"\[(\d+)\] \.\.\.\. ([0-9.]+): sched_switch", text):
            self.assertGreaterEqual(float(at), times.get(cpu, 0.0))
            times[cpu] = float(at)
        page = WORK / "states_export.html"
        done = subprocess.run([KARST, "export", path, "--to", "html", "-o", str(page)], capture_output=True, text=True, timeout=TIMEOUT)
        if "built without the viewer's page" not in done.stderr:
            self.assertEqual(done.returncode, 0, done.stderr)
            # All of it: the page holds the file itself, with its states.
            packed = re.search(r'id="karst-trace">(.*?)</script>', page.read_text(), re.S).group(1)
            self.assertEqual(gzip.decompress(base64.b64decode(packed)), Path(path).read_bytes())

    def cuts_of(self, path, pieces):
        """Ranges of a trace as the page saves them: all of it, then that many pieces of equal length."""
        server = subprocess.Popen([KARST, "view", "--no-browser", "--keep", path], stdout=subprocess.PIPE, text=True)
        try:
            url = server.stdout.readline().strip()
            urllib.request.urlopen(url + "api/progress?wait=1").close()
            with urllib.request.urlopen(url + "api/trace") as answer:
                span = json.loads(answer.read())["span"]
            edges = [span * i / pieces for i in range(pieces)] + [span + 1000]
            ranges = [""] + [f"?begin={begin:.3f}&end={end:.3f}" for begin, end in zip(edges, edges[1:])]
            for number, where in enumerate(ranges):
                cut = f"{path}.cut{number}"
                with urllib.request.urlopen(f"{url}api/cut{where}") as answer, open(cut, "wb") as file:
                    file.write(answer.read())
                yield cut
        finally:
            server.terminate()
            server.communicate()

    def test_saved_ranges_have_the_calls_of_every_way_out(self):
        sources = {"jumps.c": "karst-gcc", "tail_calls.cc": "karst-g++", "caught.cc": "karst-g++", "nested.cc": "karst-g++",
                   "coroutines.cc": "karst-g++", "contexts.c": "karst-gcc"}
        for source, compiler in sources.items():
            with self.subTest(source=source):
                # The flags that the corpus's own test uses, but for the standard.
                more = ["-std=c++20"] if source.endswith(".cc") else []
                program = build("view.ways_out." + source.replace(".", "_"), f"ways_out/{source}", "-O2", "-pthread", *more,
                                compiler=compiler)
                path = str(WORK / f"ways_out_{source}.karst")
                # A wait that the range cuts is another one.
                self.run_karst("run", "--sched", "off", "-o", path, program)
                lines = self.run_karst("tree", "--raw", "--marks", path).splitlines()
                found = set()
                for number, cut in enumerate(self.cuts_of(path, 7)):
                    tree = self.run_karst("tree", "--raw", "--marks", cut).splitlines()
                    self.assertNotIn("damaged", self.run_karst("info", cut))
                    if number == 0:
                        self.assertEqual(tree, lines)
                        continue
                    # A part of a call that switched to another stack has times of its own, and a place that is jumped to in
                    # the range is told by a call that stands for the one which set it before (docs/limits.md).
                    if source in ("contexts.c", "jumps.c"):
                        continue
                    # Nothing but calls of the trace, each as it is there, in their order.
                    at = 0
                    for line in tree:
                        self.assertIn(line, lines[at:], f"{cut}: {tree}")
                        at = lines.index(line, at) + 1
                        found.add(line)
                if source not in ("contexts.c", "jumps.c"):
                    self.assertEqual(found, set(lines))

    def test_without_states_it_is_said(self):
        path = str(WORK / "states_off.karst")
        self.run_karst("run", "--sched", "off", "-o", path, waiting())
        report = json.loads(self.run_karst("report", "--format", "json", path))
        self.assertNotIn("cpu_ns", report["functions"][0])
        for arguments in (("tree", "--states", path), ("report", "--sort", "blocked", path)):
            done = subprocess.run([KARST, *arguments], capture_output=True, text=True, timeout=TIMEOUT)
            self.assertEqual(done.returncode, 1)
            self.assertIn("has no thread states", done.stderr)


if __name__ == "__main__":
    main()
