"""--over lock:TIME, --slowest lock:N: waits for locks as they are kept, and what karst explain says of them.

The program waits 30 ms for one lock of each kind, and for a condition, which is no lock. Its function block() takes as
long: 'lock' is a word there and no regular expression.
"""
import csv
import json
import re
import subprocess

from support import KARST, ROOT, TIMEOUT, TracedTest, build, main

LOCKS = {"wait for mutex", "wait for rwlock", "wait for rwlock (shared)", "wait for spinlock"}


class LocksWatch(TracedTest):
    def watched(self, *options, system=("--system", "locks")):
        program = build("locks-watched", "locks/watched.cc", "-O1", "-pthread")
        run = self.run_traced(program, options=(*system, *options))
        self.assertEqual(run.out, "done\n")
        return run

    def kept(self, run):
        return sorted(m["function"] for m in run.trace.info["kept"])

    def test_over_keeps_each_wait_for_a_lock(self):
        run = self.watched("--over", "lock:10ms")
        self.assertEqual({name.strip() for name in self.kept(run)}, {name.strip() for name in LOCKS})
        self.assertEqual(len(self.kept(run)), 4)

    def test_slowest_keeps_the_slowest_of_each_kind(self):
        run = self.watched("--slowest", "lock:1")
        self.assertEqual({name.strip() for name in self.kept(run)}, {name.strip() for name in LOCKS})

    def test_a_regular_expression_means_what_it_meant(self):
        self.assertIn("block()", self.kept(self.watched("--over", "(lock):10ms")))
        kept = self.kept(self.watched("--over", "^wait for:10ms"))
        self.assertIn("wait for condition", kept)
        self.assertEqual(len(kept), 5)

    def test_a_program_without_sleds(self):
        program = build("locks-watched-plain", "locks/watched.cc", "-O1", "-pthread", f"-I{ROOT}/include",
                        compiler="g++")
        run = self.run_traced(program, options=("--system", "locks", "--over", "lock:10ms"))
        self.assertEqual(len(self.kept(run)), 4)

    def test_without_system_locks(self):
        run = self.watched("--over", "lock:10ms", system=())
        self.assertIn("'lock' means waits for locks, which --system locks records", run.err)

    def test_no_wait_is_no_mistake(self):
        run = self.watched("--over", "lock:5s")
        self.assertEqual(self.kept(run), [])
        self.assertNotIn("no traced function", run.err)

    def durations(self, run, function):
        done = subprocess.run([KARST, "calls", "--format", "csv", "--raw", "-f", function, str(run.trace.path)],
                              capture_output=True, text=True, check=True, timeout=TIMEOUT)
        return [int(row["duration_ns"]) for row in csv.DictReader(done.stdout.splitlines())]

    def test_the_first_wait_is_not_held_up_by_karst(self):
        # A new name needs no symbols: reading them took 1.2 ms and more, in which the program's thread stood.
        def held_up():
            run = self.watched("--keep", "nothing")
            (call,), (wait,) = self.durations(run, "^take_mutex"), self.durations(run, "^wait for mutex$")
            return call - wait
        self.assertLess(min(held_up() for _ in range(4)), 600_000)

    def explained(self, run, *options):
        done = subprocess.run([KARST, "explain", "--json", *options, str(run.trace.path)], capture_output=True, text=True,
                              check=True, timeout=TIMEOUT)
        return json.loads(done.stdout)

    def test_explain_names_the_lock_and_who_had_it(self):
        run = self.watched()
        main_thread = run.trace.processes[0]["pid"]
        for function in ("^wait for mutex", "^take_mutex"):
            lock, = self.explained(run, "--slowest", function)["lock_waits"]
            self.assertEqual((lock["kind"], lock["name"], lock["holder_tid"]), ("mutex", "cache", main_thread))
            self.assertRegex(lock["held_in"], "^hold")
        self.assertEqual(self.explained(run, "--slowest", r"^await_condition")["lock_waits"], [])
        self.assertEqual(self.explained(run, "--slowest", r"^block\(")["lock_waits"], [])
        text = subprocess.run([KARST, "explain", "--slowest", "^take_mutex", str(run.trace.path)], capture_output=True,
                              text=True, check=True, timeout=TIMEOUT).stdout
        self.assertRegex(re.sub(r"\s+", " ", text), r"ms of it were a wait for mutex cache \(0x[0-9a-f]+\), which \d+ \S+ "
                                                   r"had while it was in hold")


if __name__ == "__main__":
    main()
