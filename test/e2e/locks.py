"""karst run --system locks: waits for locks, against programs that know who waits for whom."""
import csv
import io
import json
import pathlib
import shutil
import subprocess
from collections import Counter

import support
from support import KARST, ROOT, TIMEOUT, TracedTest, build, main

LOCKS = ("--system", "locks")
# What a wait is in: functions of ours, not of the standard library.
KINDS = {"take_mutex": "mutex", "take_timed": "mutex", "take_shared": "rwlock (shared)", "take_exclusive": "rwlock",
         "take_spin": "spinlock", "take_c": "mutex", "wait_condition": "condition", "wait_semaphore": "semaphore",
         "wait_barrier": "barrier", "wait_for_ever": "condition"}
HOLDERS = {"take_mutex": "hold_mutex", "take_timed": "hold_timed", "take_shared": "hold_shared",
           "take_exclusive": "hold_shared", "take_c": "hold_c"}


def plain(name):
    return name.split("(")[0]


class Locks(TracedTest):
    def waits(self, run, *options):
        done = subprocess.run([KARST, "locks", "--by", "wait", "--format", "csv", str(run.trace.path), *options], check=True,
                              capture_output=True, text=True, timeout=TIMEOUT)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def kinds(self):
        return build("locks_kinds", "locks/kinds.cc", "-std=c++20", "-O1", "-pthread", "-I", str(ROOT / "include"))

    def test_every_kind_once_and_what_its_calls_give(self):
        program = self.kinds()
        self.assertEqual(subprocess.run([program], capture_output=True, text=True, timeout=TIMEOUT).stdout, "0 1\n")
        run = self.run_traced(program, options=LOCKS)
        self.assertEqual(run.out, "0 1\n")
        self.assert_whole(run.trace)
        waits = {plain(wait["function"]): wait for wait in self.waits(run)}
        for function, kind in KINDS.items():
            self.assertEqual(waits[function]["kind"], kind, function)
            self.assertEqual(waits[function]["open"], "0", function)
            self.assertGreater(int(waits[function]["duration_ns"]), 1_000_000, function)
        for function, holder in HOLDERS.items():
            self.assertEqual(plain(waits[function]["held_in"]), holder, function)
        for function in ("take_spin", "wait_condition", "wait_semaphore", "wait_barrier"):
            self.assertEqual(waits[function]["holder_tid"], "", function)
        self.assertEqual(waits["take_mutex"]["name"], "the mutex")
        self.assertEqual(waits["take_timed"]["name"], "(anonymous namespace)::g_timed")
        # The thread that was cancelled left its wait, and what its cleanups call is not in it.
        tree = run.trace.tree()
        self.assertIn("wait for condition", "\n".join(tree))
        self.assertEqual(run.trace.problems, [])

    def test_told_in_every_command(self):
        run = self.run_traced(self.kinds(), options=LOCKS)
        path = str(run.trace.path)

        def karst(*words):
            return subprocess.run([KARST, *words], check=True, capture_output=True, text=True, timeout=TIMEOUT).stdout

        text = karst("locks", path)
        self.assertRegex(text, r"(?m)^ ?\d+\. mutex the mutex \(0x[0-9a-f]+\): \d+ waits, ")
        self.assertRegex(text, r"(?m)^ +1 wait, [\d.]+ ms: take_mutex, while who had it was in hold_mutex$")
        # Conditions come after what somebody has, however long their waits were.
        order = [line.split()[1] for line in text.splitlines() if line[:4].strip().rstrip(".").isdigit()]
        self.assertEqual(order, sorted(order, key=lambda kind: kind not in ("mutex", "rwlock", "spinlock")))
        lock = next(wait["lock"] for wait in self.waits(run) if plain(wait["function"]) == "take_mutex")
        self.assertRegex(karst("tree", path), rf"wait for mutex\(lock={lock}, holder=\d+\)")
        self.assertRegex(karst("tree", path, "--width", "80"), rf"wait for mutex\(lock={lock}, holder=\d+\)")
        self.assertIn(lock, karst("report", path, "--by", "arg:lock", "-f", "^wait for mutex$"))
        found = json.loads(karst("locks", "--json", path))["locks"]
        self.assertEqual(sum(one["waits"] for one in found), len(self.waits(run)))
        for one in found:
            self.assertEqual(one["waits"], sum(pair["waits"] for pair in one["pairs"]))
        self.assertEqual({plain(wait["function"]) for wait in self.waits(run, "-f", "^take_(mutex|c)\\(")},
                         {"take_mutex", "take_c"})
        bad = subprocess.run([KARST, "locks", path, "-f", "^hold_c\\("], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual((bad.returncode, bad.stdout), (1, ""))
        self.assertIn("none passes the filters", bad.stderr)

    def test_without_it_there_are_none(self):
        run = self.run_traced(self.kinds())
        self.assertEqual(run.out, "0 1\n")
        self.assertNotIn("wait for mutex", run.trace.counts)
        done = subprocess.run([KARST, "locks", str(run.trace.path)], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("'karst run --system locks' records them", done.stderr)
        done = subprocess.run([KARST, "run", "--system", "lock", "--", "true"], capture_output=True, text=True,
                              timeout=TIMEOUT)
        self.assertEqual(done.returncode, 2)
        self.assertIn("did you mean 'locks'?", done.stderr)

    def test_random_programs_against_their_own_logs(self):
        program = build("locks_random", "locks/random.cc", "-std=c++20", "-O1", "-pthread")
        for seed in range(3):
            run = self.run_traced(program, str(seed), "60", options=LOCKS)
            told = Counter()
            for wait in self.waits(run, "-f", "^take_"):
                told[wait["tid"], wait["lock"], wait["holder_tid"], plain(wait["function"]), plain(wait["held_in"])] += 1
            self.assertEqual(told, Counter(tuple(line.split()) for line in run.out.splitlines()), f"seed {seed}")

    def test_a_program_that_nobody_rebuilt(self):
        xz = shutil.which("xz")
        if xz is None:
            self.skipTest("there is no xz")
        data = self.directory / "data"
        data.write_bytes(bytes(range(256)) * 20_000 + pathlib.Path(xz).read_bytes())
        command = (xz, "-T2", "-1", "--block-size=256KiB", "-c", str(data))
        expected = subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT).stdout
        run = self.run_traced(*command, options=(*LOCKS, "--library", "liblzma*"), text=False)
        self.assertEqual(run.out, expected)
        self.assertTrue({wait["kind"] for wait in self.waits(run)} <= {"mutex", "condition"})

    def test_programs_that_it_starts_have_it_too(self):
        program = self.kinds()
        run = self.run_traced("/bin/sh", "-c", f"{program}; exit 3", options=LOCKS, status=3)
        self.assertEqual(run.out, "0 1\n")
        self.assertIn("take_mutex", {plain(wait["function"]) for wait in self.waits(run)})


if __name__ == "__main__":
    main()
