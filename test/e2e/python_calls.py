"""Functions of Python programs, in interpreters as they are: against what the interpreter's own profiler says, in
threads and processes, while it runs, and where an interpreter or a program is not as usual."""
import json
import os
import shutil
import subprocess
import time
import urllib.request

from support import HERE, KARST, ROOT, TIMEOUT, Trace, TracedTest, main

KNOWN = range(9, 14)  # versions 3.N
# Functions of Python alone, and all of them.
ALONE = ("--no-patch", "--budget", "off")


def interpreters():
    """Debian's, and others that are in PATH."""
    found = {"/usr/bin/python3"}
    for minor in KNOWN:
        path = shutil.which(f"python3.{minor}")
        if path is not None and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
            found.add(os.path.realpath(path) if path.startswith("/usr") else path)
    found = {os.path.realpath(path) if path.startswith("/usr") else path for path in found}
    return sorted(found)


def nested(lines, names):
    """Of `karst tree --plain`: (depth, name) of the calls that have these names, the others left out."""
    calls, open_at = [], []
    for line in lines:
        if line.startswith("#"):
            continue
        name = line.lstrip(" ")
        depth = (len(line) - len(name)) // 2
        while open_at and open_at[-1] >= depth:
            open_at.pop()
        if name in names:
            calls.append((len(open_at), name))
            open_at.append(depth)
    return calls


def logged(lines):
    calls, depth = [], 0
    for line in lines:
        if line.startswith("+"):
            calls.append((depth, line[2:]))
        depth += 1 if line.startswith("+") else -1
    return calls


class PythonTest(TracedTest):
    def script(self, text, name="script.py"):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        return path

    def run_python(self, text, *arguments, options=ALONE, python="/usr/bin/python3", **more):
        return self.run_traced(python, self.script(text), *arguments, options=options, **more)

    def by_name(self, trace, *options):
        return {f["name"]: f for f in trace.report(*options)}

    # The tree.

    def check_tree(self, python, seed, options):
        log = self.directory / "log"
        run = self.run_traced(python, HERE / "python_guest.py", str(seed), log, options=options)
        self.assertEqual([line for line in run.err.splitlines() if "Traceback" in line], [])
        self.assert_whole(run.trace)
        for part in log.read_text(encoding="utf-8").split("thread ")[1:]:
            tid, *lines = part.splitlines()
            names = {line[2:] for line in lines}
            self.assertEqual(nested(run.trace.tree("--thread", tid), names), logged(lines), f"{python}, seed {seed}")
            self.assertGreater(len(lines), 100)

    def test_the_tree_is_that_of_the_interpreters_profiler(self):
        for python in interpreters():
            for seed in (1, 2, 3):
                self.check_tree(python, seed, ALONE)

    def test_among_functions_of_c(self):
        self.check_tree("/usr/bin/python3", 4, ("--budget", "off", "--memory", "512M"))

    def test_the_interpreters_own_ways_to_call_stand_aside(self):
        run = self.run_python("import json\ndef f(): return json.dumps({'a': 1})\nfor _ in range(9): f()\n",
                              options=("--budget", "off"))
        functions = run.trace.report()
        names = {f["name"] for f in functions}
        self.assertGreater(sum(f["module"].endswith("python3.11") for f in functions), 100)
        self.assertEqual({name for name in names if "EvalFrame" in name or "Vectorcall" in name}, set())
        self.assertIn("f", names)
        places = subprocess.run([KARST, "places", "--all", os.path.realpath("/usr/bin/python3")], capture_output=True,
                                text=True, timeout=TIMEOUT).stdout
        self.assertRegex(places, r"it calls functions of Python.*\b_PyEval_EvalFrameDefault")

    def test_calls_that_exceptions_end_are_told(self):
        run = self.run_python("def leaves():\n    raise ValueError(1)\n"
                              "for _ in range(7):\n    try: leaves()\n    except ValueError: pass\n")
        leaves = self.by_name(run.trace)["leaves"]
        self.assertEqual((leaves["calls"], leaves["unwound_calls"]), (7, 7))

    # Names.

    def test_names_files_and_lines(self):
        self.script("class View:\n    def get(self):\n        return (lambda: 1)()\n", "app/views.py")
        run = self.run_python("from app.views import View\ndef serve():\n    View().get()\nserve()\n")
        functions = {f["name"]: f for f in run.trace.report() if not f["file"].startswith("<frozen")}
        views = str(self.directory / "app/views.py")
        self.assertEqual({name: (f["file"], f["line"], f["module"]) for name, f in functions.items()
                          if f["file"] == views},
                         {"app.views.<module>": (views, 1, "[python]"), "app.views.View": (views, 1, "[python]"),
                          "app.views.View.get": (views, 2, "[python]"),
                          "app.views.View.get.<locals>.<lambda>": (views, 3, "[python]")})
        self.assertEqual(functions["serve"]["line"], 2)
        self.assertEqual(functions["<module>"]["file"], str(self.directory / "script.py"))
        self.assertNotIn("source files that are not here", run.err)

    def test_odd_names(self):
        run = self.run_python(
            "def f(): pass\n"
            "def named(name, qualified=None, file=None):\n"
            "    code = f.__code__.replace(co_name=name, co_qualname=qualified or name, co_filename=file or 'odd.py')\n"
            "    exec(code, {'__name__': '__main__'})\n"
            "for name in ('größe', 'a\\nb', '\\x1b[31m', 'x' * 5000, 'nul\\0behind', '\\ud800', '', '\"quoted\",;'):\n"
            "    named(name)\n"
            "exec(f.__code__, {'__name__': 7})\n"
            "exec(f.__code__.replace(co_firstlineno=0))\n"
            "print('done')\n")
        self.assertEqual(run.out, "done\n")
        names = {f["name"] for f in run.trace.report() if f["file"] == "odd.py"}
        self.assertIn("größe", names)
        self.assertIn("nul", names)
        self.assertIn("\\ud800", names)
        self.assertIn('"quoted",;', names)
        self.assertIn("x" * 1000, names)
        report = subprocess.run([KARST, "report", str(run.trace.path)], capture_output=True, timeout=TIMEOUT).stdout
        self.assertNotIn(b"\x1b", report)

    def test_code_that_comes_and_goes_has_one_name(self):
        run = self.run_python("for i in range(3000):\n    exec('def same(): pass\\nsame()')\n"
                              "for i in range(50):\n    exec(f'def other{i}(): pass\\nother{i}()')\n")
        counts = run.trace.counts
        self.assertEqual(counts["same"], 3000)
        self.assertEqual([counts[f"other{i}"] for i in range(50)], [1] * 50)
        self.assertEqual(sum(f["function"] == "same" for f in run.trace.report()), 1)

    # Interpreters of one's own.

    def test_an_interpreter_that_tells_of_its_functions(self):
        calc = str(self.directory / "calc")
        subprocess.run(["gcc", "-O2", "-Wall", "-Werror", "-I", ROOT / "include", ROOT / "examples/interpreter/calc.c",
                        "-o", calc], check=True)
        program = ROOT / "examples/interpreter/fib.calc"
        plain = subprocess.run([calc, program], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(plain.stdout, "13530\n")
        run = self.run_traced(calc, program, options=("--budget", "off", "--function", "^(fib|twice|main)$"))
        self.assertEqual(run.out, plain.stdout)
        told = {f["name"]: (f["calls"], f["line"]) for f in run.trace.report() if f["module"] == "[named]"}
        self.assertEqual(told, {"fib": (21891, 2), "twice": (1, 3), "main": (1, 4)})
        tree = [line for line in run.trace.tree() if not line.startswith("#")]
        first = next(i for i, line in enumerate(tree) if line.strip() == "twice")
        depth = tree[first].index("twice")
        self.assertEqual(tree[first - 1].strip(), "fib")  # the argument is evaluated first
        self.assertEqual(max(line.index("fib") for line in tree if line.strip() == "fib") - depth, 2 * 19)

    # What is recorded.

    def test_functions_are_chosen_by_name(self):
        self.script("def get(): helper()\ndef helper(): pass\n", "app.py")
        script = "import app\nfor _ in range(9): app.get()\n"
        run = self.run_python(script, options=(*ALONE, "--function", r"app\.get"))
        self.assertEqual(run.trace.counts, {"app.get": 9})
        run = self.run_python(script, options=(*ALONE, "--not-function", r"^(app\.get|_|<)"))
        self.assertEqual(run.trace.counts.get("app.get"), None)
        self.assertEqual(run.trace.counts["app.helper"], 9)

    def test_calls_are_counted(self):
        done = subprocess.run([KARST, "run", "--count", "--no-patch", "--", "/usr/bin/python3", self.script(
            "def f(): pass\nfor _ in range(1234): f()\n")], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertRegex(done.stdout + done.stderr, r"1,?234\b.*\bf\b")

    def test_a_slow_call_is_kept(self):
        run = self.run_python("import time\ndef serve(i):\n    if i == 50: time.sleep(0.1)\n"
                              "for i in range(100): serve(i)\n", options=(*ALONE, "--over", "^serve$:50ms"))
        done = subprocess.run([KARST, "slow", "--function", "^serve$", "--format", "json", str(run.trace.path)],
                              capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(len(run.trace.info["kept"]), 1, run.err)
        self.assertGreater(json.loads(done.stdout)["slow"][0]["duration_ns"], 100e6)

    def test_a_budget_leaves_out_what_is_called_most(self):
        run = self.run_python("def tiny(): pass\ndef big():\n    for _ in range(1000): tiny()\n"
                              "import time\nend = time.time() + 1.5\nwhile time.time() < end: big()\n",
                              options=("--no-patch", "--budget", "2%"))
        functions = self.by_name(run.trace)
        self.assertGreater(functions["big"]["calls"], 100)
        self.assertLess(functions["tiny"]["calls"], 1000 * functions["big"]["calls"])

    # Threads, processes, other interpreters.

    def test_processes(self):
        for method in ("fork", "spawn"):
            run = self.run_python(
                "import multiprocessing, sys\ndef work(n):\n    return n * n\n"
                "if __name__ == '__main__':\n"
                f"    multiprocessing.set_start_method('{method}')\n"
                "    with multiprocessing.Pool(2) as pool:\n        print(sum(pool.map(work, range(20))))\n"
                "        pool.close()\n        pool.join()\n")
            self.assertEqual(run.out, "2470\n")
            calls = sum(f["calls"] for f in run.trace.report() if f["name"] in ("work", "__mp_main__.work"))
            self.assertEqual(calls, 20, method)
            self.assertGreaterEqual(len(run.trace.processes), 3)

    def test_a_script_that_a_shell_starts(self):
        script = self.script("#!/usr/bin/python3\ndef hello(): print('hello')\nhello()\n", "hello.py")
        script.chmod(0o755)
        run = self.run_traced("/bin/sh", "-c", f"{script}; {script}", options=ALONE)
        self.assertEqual(run.out, "hello\nhello\n")
        self.assertEqual(run.trace.counts["hello"], 2)

    def test_interpreters_within_one(self):
        run = self.run_python(
            "import _xxsubinterpreters as interpreters\ni = interpreters.create()\n"
            "interpreters.run_string(i, 'def inner(): return 1\\nfor _ in range(5): inner()')\n"
            "interpreters.destroy(i)\ndef outer(): pass\nouter()\n")
        self.assertEqual((run.trace.counts["inner"], run.trace.counts["outer"]), (5, 1))

    # The program is as untraced.

    def test_allocators_for_development(self):
        for python in interpreters():
            for arguments, env in ((["-X", "dev"], {}), ([], {"PYTHONMALLOC": "debug"}),
                                   ([], {"PYTHONMALLOC": "malloc"}), (["-I", "-S", "-E"], {})):
                run = self.run_traced(python, *arguments, "-c", "print('fine')", options=ALONE, env=env)
                self.assertEqual(run.out, "fine\n")

    def test_recursion_is_as_deep(self):
        script = ("import sys, threading\nsys.setrecursionlimit(10**6)\n"
                  "def down(n): return 0 if n == 0 else 1 + down(n - 1)\n"
                  "def limited():\n    try: return limited() + 1\n    except RecursionError: return 0\n"
                  "threading.stack_size(1 << 16)\n"
                  "if sys.version_info >= (3, 11):\n"
                  "    print(down(100000))\n"
                  "    thread = threading.Thread(target=lambda: print(down(5000)))\n"
                  "    thread.start()\n    thread.join()\n"
                  "sys.setrecursionlimit(500)\nprint(limited())\nprint(down(10))\n")
        for python in interpreters():
            plain = subprocess.run([python, "-c", script], capture_output=True, text=True, timeout=TIMEOUT)
            run = self.run_python(script, python=python)
            self.assertEqual(run.out, plain.stdout, python)
            self.assertEqual(run.trace.problems, [])

    def test_errors_and_statuses_are_as_untraced(self):
        for script in ("raise SystemExit(3)", "import os; os._exit(4)", "1/0", "import os; os.abort()",
                       "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "def", "\0",
                       "import threading, sys\nthreading.Thread(target=sys.exit, args=(5,)).start()",
                       "import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()"):
            path = self.script(script)
            plain = subprocess.run(["/usr/bin/python3", path], capture_output=True, text=True, timeout=TIMEOUT)
            status = plain.returncode if plain.returncode >= 0 else 128 - plain.returncode
            run = self.run_traced("/usr/bin/python3", path, options=ALONE, status=None)
            self.assertEqual((run.status, run.out), (status, plain.stdout), script)
            own = "".join(line + "\n" for line in run.err.splitlines() if not line.startswith("karst:"))
            self.assertEqual(own, plain.stderr, script)

    def test_another_version_is_named(self):
        for python in sorted(filter(None, (shutil.which(name) for name in ("python3.8", "python3.7", "python2.7")))):
            if subprocess.run([python, "-c", ""], capture_output=True).returncode != 0:
                continue
            run = self.run_traced(python, "-c", "print('fine')", options=("--no-patch",), status=None)  # there is no trace
            self.assertEqual(run.out, "fine\n")
            self.assertRegex(run.err, r"functions of Python [23]\.\d+\.\d+\S* are not recorded: versions 3\.9 to 3\.13")
            return
        self.skipTest("no other version of Python is in PATH")

    # While it runs.

    def serving(self, text):
        process = subprocess.Popen(["/usr/bin/python3", "-u", self.script(text)], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, process.stdout.readline().strip()

    def karst(self, *arguments, status=0):
        done = subprocess.run([KARST, *map(str, arguments)], capture_output=True, text=True, timeout=TIMEOUT,
                              cwd=self.directory)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def snapshot(self, process):
        path = self.directory / "snapshot.karst"
        self.karst("snapshot", "-o", path, process.pid)
        return Trace(path)

    SERVER = ("import http.server\n"
              "class Handler(http.server.BaseHTTPRequestHandler):\n"
              "    def do_GET(self):\n        self.answer(self.path)\n"
              "    def answer(self, path):\n        self.send_response(200)\n        self.end_headers()\n"
              "        self.wfile.write(path.encode())\n"
              "    def log_message(self, *_): pass\n"
              "server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)\n"
              "print(server.server_port)\nserver.serve_forever(poll_interval=0.05)\n")

    def test_a_server_is_attached_to_and_left(self):
        process, port = self.serving(self.SERVER)
        asked = 0

        def ask(count):
            nonlocal asked
            for _ in range(count):
                asked += 1
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/{asked}", timeout=TIMEOUT) as answer:
                    self.assertEqual(answer.read().decode(), f"/{asked}")

        ask(5)
        for _ in range(3):
            self.karst("attach", process.pid)
            time.sleep(0.3)  # its main thread looks up from waiting meanwhile
            ask(20)
            self.karst("detach", process.pid)
            before = asked
            ask(20)
            self.assertEqual(asked, before + 20)
        counts = self.snapshot(process).counts
        self.assertEqual(counts["Handler.do_GET"], 60)
        self.assertEqual(counts["Handler.answer"], 60)
        self.assertIsNone(process.poll())

    def test_switched_off_and_on(self):
        process, _ = self.serving("import time\nprint()\ndef tick(): time.sleep(0.001)\nwhile True: tick()\n")
        self.karst("attach", process.pid)
        time.sleep(0.3)
        self.karst("off", process.pid)
        counts = self.snapshot(process).counts
        self.assertGreater(counts["tick"], 20)
        time.sleep(0.2)
        self.assertEqual(self.snapshot(process).counts["tick"], counts["tick"])
        self.karst("on", process.pid)
        time.sleep(0.3)
        self.assertGreater(self.snapshot(process).counts["tick"], counts["tick"] + 20)


if __name__ == "__main__":
    main()
