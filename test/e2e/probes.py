"""Probes that authors put into programs (sys/sdt.h), as notes."""
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from support import KARST, TIMEOUT, TracedTest, Trace, build, main  # noqa: E402

ALONE = ("--no-patch", "--memory", "256M")
TEXT = "karst_test:text(what:str,size:uint)"
PYTHON = "/usr/bin/python3"


def probes_in(program):
    """As `karst places` lists them."""
    done = subprocess.run([KARST, "places", "--probes", "--json", program], capture_output=True, text=True, check=True,
                          timeout=TIMEOUT)
    return json.loads(done.stdout)["probes"]


class ProbesTest(TracedTest):
    def notes(self, trace):
        """Of each thread, in order: what each note of a probe says, without the provider."""
        done = subprocess.run([KARST, "notes", "--format", "json", str(trace.path)], capture_output=True, text=True, check=True,
                              timeout=TIMEOUT)
        return [f"{n['name'].split(':', 1)[1]}{n['value']}" for n in json.loads(done.stdout)["notes"] if ":" in n["name"]]


class Values(ProbesTest):
    """Programs that print what their probes' values must be."""

    ROUNDS = 200

    def log_is_kept(self, name, source, *flags, compiler="g++", options=()):
        program = build(name, source, *flags, compiler=compiler)
        left = {p["name"].split(":")[1]: p["reason"] for p in probes_in(program) if not p["patched"]}
        run = self.run_traced(program, str(self.ROUNDS), options=(*ALONE, "--probes", TEXT, "--probes", "karst_test:*", *options))
        plain = subprocess.run([program, str(self.ROUNDS)], capture_output=True, text=True, check=True, timeout=TIMEOUT)
        self.assertEqual((run.out, [l for l in run.err.splitlines() if l.startswith("sum ")]),
                         (plain.stdout, plain.stderr.splitlines()))
        expected = [l for l in plain.stdout.splitlines() if l.split("(")[0] not in left]
        kept = [re.sub(r"^nothing$", "nothing()", n) for n in self.notes(run.trace)]
        self.assertEqual(kept, expected)
        return left

    def values(self, level, compiler):
        left = self.log_is_kept(f"probes.values.{compiler}{level}", "probes/values.cc", level, compiler=compiler)
        self.assertLessEqual(len(left), 1, left)

    def test_gcc_O0(self):
        self.values("-O0", "g++")

    def test_gcc_O2(self):
        self.values("-O2", "g++")

    def test_gcc_O3_at_a_fixed_address(self):
        left = self.log_is_kept("probes.values.fixed", "probes/values.cc", "-O3", "-no-pie", "-fno-pie")
        self.assertLessEqual(len(left), 1, left)

    def test_clang(self):
        if shutil.which("clang++") is None:
            self.skipTest("no clang")
        for level in ("-O0", "-O2"):
            with self.subTest(level=level):
                self.values(level, "clang++")

    def test_in_a_program_with_sleds(self):
        left = self.log_is_kept("probes.values.sleds", "probes/values.cc", "-O2", compiler="karst-g++")
        self.assertLessEqual(len(left), 1, left)
        if shutil.which("clang++") is not None:
            left = self.log_is_kept("probes.values.xray", "probes/values.cc", "-O2", "-std=c++17",
                                    compiler=str(Path(KARST).parent / "karst-clang++"))
            self.assertLessEqual(len(left), 1, left)

    def test_beside_patched_functions(self):
        program = build("probes.values.g++-O2", "probes/values.cc", "-O2", compiler="g++")
        run = self.run_traced(program, "50", options=("--min-instructions", "0", "--budget", "off", "--probes", "karst_test:*"))
        plain = subprocess.run([program, "50"], capture_output=True, text=True, check=True, timeout=TIMEOUT)
        self.assertEqual(run.out, plain.stdout)
        self.assertGreater(len(self.notes(run.trace)), 300)
        self.assertEqual(run.trace.counts.get("main"), 1)

    def test_every_register_and_flag_stays(self):
        left = self.log_is_kept("probes.registers", "probes/registers.c", "-O2", compiler="gcc")
        self.assertEqual(left, {})


class Known(ProbesTest):
    """Probes of libraries and programs of Debian."""

    def test_throw_and_catch(self):
        program = build("probes.throws", "probes/throws.cc", "-O2", "-pthread", compiler="g++")
        library = next((p for p in re.findall(r"=> (/\S*libstdc\+\+\S*)", subprocess.run(
            ["ldd", program], capture_output=True, text=True, check=True).stdout)), None)
        if library is None or not probes_in(os.path.realpath(library)):
            self.skipTest("this libstdc++ has no probes")
        run = self.run_traced(program, options=(*ALONE, "--probes", "libstdcxx:*"))
        says = dict(zip(run.out.split()[::2], map(int, run.out.split()[1::2])))
        notes = self.notes(run.trace)
        self.assertEqual(Counter(n.split("(")[0] for n in notes), Counter(says))
        types = Counter(re.search(r'type="([^"]+)"', n).group(1) for n in notes if n.startswith("throw"))
        self.assertEqual(sorted(types.values()), [400, 400, 400])
        self.assertEqual(types["St13runtime_error"], 400)

    def python(self, script):
        if not os.path.exists(PYTHON) or not probes_in(os.path.realpath(PYTHON)):
            self.skipTest("this Python has no probes")
        return self.run_traced(PYTHON, "-S", "-E", "-c", script, options=(*ALONE, "--probes", "python:*"))

    def test_collections_of_garbage(self):
        run = self.python("import gc; gc.disable()\nfor i in range(7): gc.collect(i % 3)")
        # Python collects at its start and its end, too.
        starts = "".join(n[-2] for n in self.notes(run.trace) if n.startswith("gc__start"))
        self.assertIn("0120120", starts)

    def test_imports(self):
        run = self.python("import string, json")
        found = [n for n in self.notes(run.trace) if n.startswith("import__find__load__done")]
        self.assertIn('import__find__load__done(module="string", found=1)', found)
        self.assertIn('import__find__load__done(module="json", found=1)', found)

    def test_gdb_counts_as_many(self):
        if shutil.which("gdb") is None:
            self.skipTest("no gdb")
        program = build("probes.values.g++-O2", "probes/values.cc", "-O2", compiler="g++")
        script = self.directory / "commands.gdb"
        script.write_text("set pagination off\nset confirm off\nset breakpoint pending off\n"
                          "break -probe-stap karst_test:branch\nignore 1 1000000\nbreak -probe-stap karst_test:leaf\n"
                          "ignore 2 1000000\nrun 20 > /dev/null 2>&1\ninfo breakpoints\n")
        out = subprocess.run(["gdb", "--batch", "-nx", "-x", script, program], capture_output=True, text=True,
                             stdin=subprocess.DEVNULL, timeout=TIMEOUT).stdout
        theirs = [int(n) for n in re.findall(r"breakpoint already hit (\d+) time", out)]
        run = self.run_traced(program, "20", options=(*ALONE, "--probes", "karst_test:*"))
        ours = Counter(n.split("(")[0] for n in self.notes(run.trace))
        self.assertEqual(theirs, [ours["branch"], ours["leaf"]], out)


class Choice(ProbesTest):
    def test_semaphores_are_raised_for_what_is_wanted(self):
        program = build("probes.semaphores", "probes/semaphores.cc", "-O2", compiler="g++")
        run = self.run_traced(program, options=(*ALONE, "--probes", "karst_test:costly(i,made)"))
        self.assertIn("made 100, costly 1, other 0", run.err)
        self.assertEqual(run.out, "done\n")
        self.assertEqual(self.notes(run.trace), [f"costly(i={i}, made={i + 1})" for i in range(100)])

    def test_of_forked_children_and_programs_that_are_started(self):
        program = build("probes.semaphores", "probes/semaphores.cc", "-O2", compiler="g++")
        run = self.run_traced("sh", "-c", f"{program}; {program}", options=(*ALONE, "--probes", "karst_test:costly"))
        self.assertEqual(len(self.notes(run.trace)), 200)

    def test_attached_and_detached(self):
        if not os.path.exists(PYTHON) or not probes_in(os.path.realpath(PYTHON)):
            self.skipTest("this Python has no probes")
        script = "import gc, time\nprint('on', flush=True)\nwhile True:\n gc.collect(1)\n time.sleep(0.005)"
        program = subprocess.Popen([PYTHON, "-c", script], stdout=subprocess.PIPE, text=True)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        program.stdout.readline()
        before = self.code_and_data_of_probes(program.pid)
        for attempt in range(2):
            done = subprocess.run([KARST, "attach", str(program.pid), "--no-patch", "--probes", "python:gc__start"],
                                  capture_output=True, text=True, timeout=TIMEOUT)
            if "ptrace" in done.stderr or "permitted" in done.stderr:
                self.skipTest(done.stderr)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotEqual(self.code_and_data_of_probes(program.pid), before)
            path = self.directory / f"{attempt}.karst"
            for _ in range(100):
                subprocess.run([KARST, "snapshot", str(program.pid), "--last", "10s", "-o", path], capture_output=True,
                               check=True, timeout=TIMEOUT)
                kept = self.notes(Trace(path))
                if kept.count("gc__start(generation=1)") > 3 * (attempt + 1):
                    break
            self.assertGreater(kept.count("gc__start(generation=1)"), 3 * (attempt + 1))
            subprocess.run([KARST, "detach", str(program.pid)], capture_output=True, check=True, timeout=TIMEOUT)
            self.assertEqual(self.code_and_data_of_probes(program.pid), before)

    def code_and_data_of_probes(self, pid):
        """Bytes at each probe of the process's program, and its semaphores."""
        program = os.path.realpath(f"/proc/{pid}/exe")
        notes = subprocess.run(["readelf", "-nW", program], capture_output=True, text=True, check=True).stdout
        places = [int(a, 16) for pair in re.findall(r"Location: (0x\w+), Base: \w+, Semaphore: (0x\w+)", notes) for a in pair]
        maps = [line.split() for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
        header = subprocess.run(["readelf", "-hW", program], capture_output=True, text=True, check=True).stdout
        first = int(next(m[0] for m in maps if len(m) > 5 and m[5] == program).split("-")[0], 16)
        base = first if "DYN" in header else 0
        with open(f"/proc/{pid}/mem", "rb", 0) as memory:
            return [os.pread(memory.fileno(), 8, base + place) for place in places if place != 0]

    def test_switched_by_name(self):
        program = build("probes.values.g++-O2", "probes/values.cc", "-O2", compiler="g++")
        run = self.run_traced(program, "20", options=(*ALONE, "--probes", "karst_test:*", "--not-function", "karst_test:branch"))
        kinds = Counter(n.split("(")[0] for n in self.notes(run.trace))
        self.assertEqual((kinds["branch"], kinds["leaf"]), (0, 20))

    def said(self, *options, status):
        program = build("probes.semaphores", "probes/semaphores.cc", "-O2", compiler="g++")
        done = subprocess.run([KARST, "run", "--sched", "off", "--no-patch", "-o", self.directory / "x.karst", *options, program],
                              capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def test_mistakes(self):
        self.assertIn("'PROVIDER:NAME'", self.said("--probes", "costly", status=2))
        self.assertIn("the types of values are", self.said("--probes", "a:b(c:long)", status=2))
        self.assertIn("a ')' is missing", self.said("--probes", "a:b(c", status=2))
        self.assertIn("12 values at most", self.said("--probes", "a:b(" + ",".join("abcdefghijklm") + ")", status=2))
        said = self.said("--probes", "karst_test:cosly", status=0)
        self.assertIn("means no probe of the program or its libraries; there are", said)
        self.assertIn("karst_test:costly", said)

    def test_a_program_without_any(self):
        done = subprocess.run([KARST, "places", "--probes", "/bin/true"], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual((done.returncode, done.stdout), (0, "/bin/true: 0 probes\n"), done.stderr)


if __name__ == "__main__":
    main()
