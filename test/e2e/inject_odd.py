"""karst attach PID and processes that are not as others are: it works, or says why not, and harms nobody."""
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from support import BIN, KARST, TIMEOUT, TracedTest, Trace, build, main


class OddTest(TracedTest):
    def start(self, *command, **how):
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 cwd=self.directory, **how)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), "ready\n")
        return child

    def karst(self, *words, status=0, **how):
        done = subprocess.run([KARST, *map(str, words)], capture_output=True, text=True, timeout=TIMEOUT,
                              cwd=self.directory, **how)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout + done.stderr

    def finish(self, child):
        out, err = child.communicate(timeout=TIMEOUT)
        self.assertEqual(child.returncode, 0, out + err)
        self.assertRegex(out, r"^right \d+\n$")

    def calls(self, child):
        path = self.directory / "moment.karst"
        path.unlink(missing_ok=True)
        self.karst("snapshot", child.pid, "-o", path)
        return {f["function"]: f["calls"] for f in Trace(path).report()}


class FirstThreadGone(OddTest):
    def check(self, compiler):
        child = self.start(build(f"inject-no-main-{compiler}", "inject_odd/no_main.c", "-O1", "-pthread", compiler=compiler))
        self.assertIn(" Z ", Path(f"/proc/{child.pid}/stat").read_text())
        self.assertIn("is traced from now on", self.karst("attach", child.pid, "--min-instructions", "0", "--budget", "off"))
        time.sleep(0.1)
        self.assertGreater(self.calls(child)["work"], 10)
        self.assertRegex(self.karst("ps"), rf"\b{child.pid}\b.*inject-no-main")
        self.assertIn("inject-no-main", self.karst("status", child.pid))
        # libkarst's own process looks every second whether the program is there, whose first thread has no memory any more.
        time.sleep(2.5)
        self.karst("off", child.pid)
        self.karst("on", child.pid)
        # It sleeps most of the time, and computes now and then.
        self.assertTrue(any("blocked in clock_nanosleep" in self.karst("where", child.pid) for _ in range(20)))
        self.karst("detach", child.pid)
        self.assertIn("is traced again", self.karst("attach", child.pid))
        self.finish(child)

    def test_of_a_plain_program(self):
        self.check("gcc")

    def test_of_a_program_with_sleds(self):
        self.check("karst-gcc")

    def test_is_sampled(self):
        child = self.start(build("inject-no-main-gcc", "inject_odd/no_main.c", "-O1", "-pthread", compiler="gcc"))
        karst = subprocess.Popen([KARST, "attach", str(child.pid), "--sample=1000", "--no-patch", "-o", "s.karst"], text=True,
                                 stderr=subprocess.PIPE, cwd=self.directory)
        said = karst.stderr.readline()
        if "nothing can be sampled" in said:
            karst.communicate()
            self.skipTest(said)
        self.assertIn("is sampled", said)
        time.sleep(0.2)
        karst.send_signal(signal.SIGINT)
        self.assertIn("s.karst", karst.communicate(timeout=TIMEOUT)[1])
        self.assertEqual(karst.returncode, 0)
        self.finish(child)

    def test_has_a_place_that_is_waited_for(self):
        child = self.start(build("inject-no-main-gcc", "inject_odd/no_main.c", "-O1", "-pthread", compiler="gcc"))
        done = subprocess.run([KARST, "attach", str(child.pid), "--trigger", "work", "-o", "t.karst"], text=True,
                              capture_output=True, timeout=TIMEOUT, cwd=self.directory)
        if "no trigger can be set" in done.stderr:
            self.finish(child)
            self.skipTest(done.stderr)
        self.assertIn("work was reached in thread", done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.finish(child)


class MovedCode(OddTest):
    def check(self, compiler, how):
        child = self.start(build(f"inject-moved-{compiler}", "inject_odd/moved.c", "-O2", compiler=compiler), how)
        said = self.karst("attach", child.pid, "--min-instructions", "0", "--budget", "off")
        time.sleep(0.1)
        first = self.calls(child)
        self.assertGreater(first["leaf"], 100, said)
        self.assertGreater(first["middle"], 10, said)
        self.karst("detach", child.pid)
        before = self.calls(child)
        time.sleep(0.1)
        self.assertEqual(self.calls(child), before)
        self.assertIn("is traced again", self.karst("attach", child.pid))
        time.sleep(0.1)
        self.assertGreater(self.calls(child)["leaf"], before["leaf"])
        self.finish(child)

    def test_all_of_a_plain_program(self):
        self.check("gcc", "all")

    def test_a_part_of_a_plain_program(self):
        self.check("gcc", "part")

    def test_all_of_a_program_with_sleds(self):
        self.check("karst-gcc", "all")

    def test_of_a_program_that_karst_run_has_patched(self):
        program = build("inject-moved-gcc", "inject_odd/moved.c", "-O2", compiler="gcc")
        run = subprocess.run([KARST, "run", "--min-instructions", "0", "--budget", "off", "-o", "run.karst", program, "all"],
                             input="", capture_output=True, text=True, timeout=TIMEOUT, cwd=self.directory)
        self.assertEqual(run.returncode, 0, run.stderr)
        counts = Trace(self.directory / "run.karst").counts
        self.assertEqual(counts["leaf"], 10 * counts["middle"])

    def test_the_count_is_of_what_is_patched(self):
        child = self.start(build("inject-moved-gcc", "inject_odd/moved.c", "-O2", compiler="gcc"), "all")
        said = self.karst("attach", child.pid, "--min-instructions", "0", "--budget", "off")
        told = int(re.search(r"is traced from now on, ([\d,]+) function", said)[1].replace(",", ""))
        program = os.readlink(f"/proc/{child.pid}/exe")
        symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
        maps = Path(f"/proc/{child.pid}/maps").read_text().splitlines()
        base = next(int(line.split("-")[0], 16) for line in maps if line.endswith(program))
        middle = base + next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" middle"))
        begin, end, words = next((begin, end, line.split()) for line in maps
                                 for begin, end in [[int(word, 16) for word in line.split()[0].split("-")]]
                                 if begin <= middle < end)
        self.assertEqual((words[1], words[4], len(words)), ("r-xp", "0", 5))  # no file
        patched = 0
        with open(f"/proc/{child.pid}/mem", "rb") as memory, open(program, "rb") as file:
            for line in symbols.splitlines():
                fields = line.split()
                if len(fields) != 3 or fields[1] not in "tT" or not begin <= base + int(fields[0], 16) < end:
                    continue
                memory.seek(base + int(fields[0], 16))
                file.seek(int(fields[0], 16))
                patched += memory.read(8) != file.read(8)
        self.assertGreater(patched, 0)
        self.assertEqual(told, patched, said)
        self.finish(child)


class Vforks(OddTest):
    def test_a_child_in_its_memory_that_stays(self):
        """Nothing is changed, which is said; the other threads hardly stand still."""
        child = self.start(build("inject-vforks", "inject_odd/vforks.c", "-O1", "-pthread", compiler="gcc"), "20", "60000")
        began = time.monotonic()
        said = self.karst("attach", child.pid, "--min-instructions", "0", status=1)
        self.assertIn("waits in vfork() for a child, which executes the same code in the same memory", said)
        self.assertLess(time.monotonic() - began, 60)
        subprocess.run(["pkill", "-KILL", "-P", str(child.pid)], check=True)
        self.assertIn("is traced", self.karst("attach", child.pid, "--min-instructions", "0"))
        self.finish(child)

    def test_a_child_in_its_memory_that_goes(self):
        child = self.start(build("inject-vforks", "inject_odd/vforks.c", "-O1", "-pthread", compiler="gcc"), "20", "1500")
        said = self.karst("attach", child.pid, "--min-instructions", "0")
        self.assertIn("is traced from now on", said)
        stopped = re.search(r"all threads were stopped (?:once, for|\d+ times, for) ([\d.]+) (\S+)", said)
        self.assertNotEqual(float(stopped[1]), 0, said)
        self.finish(child)


class Rights(OddTest):
    def test_a_setuid_program(self):
        """The reason is its rights, not a container."""
        if os.geteuid() != 0:
            self.skipTest("needs root")
        if os.statvfs(self.directory).f_flag & os.ST_NOSUID:
            self.skipTest("the file system is mounted with nosuid")
        nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        if subprocess.run([KARST, "--version"], capture_output=True, cwd="/", **nobody).returncode != 0:
            self.skipTest("nobody cannot run the karst that was built here")
        self.directory.chmod(0o755)
        copy = self.directory / "setuid"
        copy.write_bytes(Path(build("inject-moved-gcc", "inject_odd/moved.c", "-O2", compiler="gcc")).read_bytes())
        copy.chmod(0o4755)
        child = self.start(copy, "part", **nobody)
        said = subprocess.run([KARST, "attach", str(child.pid)], capture_output=True, text=True, timeout=TIMEOUT, cwd="/",
                              **nobody)
        self.assertEqual(said.returncode, 1, said.stderr)
        self.assertIn("it runs with the rights of another user (setuid, or it has changed its user)", said.stderr)
        self.assertNotIn("container", said.stderr)
        self.assertIn("more rights than who started it", self.karst("attach", child.pid, status=1))
        self.finish(child)


class Numbers(OddTest):
    def test_a_number_that_becomes_roots(self):
        """The target ends a thread and forks until the thread's number is that of a process of root's."""
        if os.geteuid() != 0:
            self.skipTest("needs root")
        namespaces = ["unshare", "--pid", "--fork", "--mount", "--mount-proc"]
        if subprocess.run([*namespaces, "true"], capture_output=True).returncode != 0:
            self.skipTest("the system makes no namespaces of process numbers")
        attacker = build("inject-attacker", "inject_odd/attacker.c", "-O1", "-pthread", compiler="gcc")
        done = subprocess.run([*namespaces, "python3", str(Path(__file__).parent / "inject_odd" / "numbers.py"), KARST,
                               attacker], capture_output=True, text=True, timeout=TIMEOUT, cwd=self.directory)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("unharmed", done.stdout)


if __name__ == "__main__":
    main()
