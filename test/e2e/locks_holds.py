"""karst run --system locks=all: who had which lock when, against programs that log each hold."""
import csv
import io
import json
import pathlib
import shutil
import subprocess
from collections import Counter, defaultdict

from support import KARST, TIMEOUT, TracedTest, build, main

ALL = ("--system", "locks=all")
SEEDS = 20


def plain(name):
    return name.split("(")[0]


class LocksHolds(TracedTest):
    def karst(self, *words, status=0):
        done = subprocess.run([KARST, *map(str, words)], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def rows(self, run, by, *options):
        text = self.karst("locks", "--by", by, "--format", "csv", run.trace.path, *options)
        return list(csv.DictReader(io.StringIO(text)))

    def found(self, run, *options):
        return json.loads(self.karst("locks", "--json", run.trace.path, *options))

    def told(self, run, *options):
        return Counter((row["tid"], row["lock"], row["kind"].replace(" ", "_"), plain(row["taken_in"]),
                        plain(row["released_in"]) or "-", row["ended"].replace(" ", "_"))
                       for row in self.rows(run, "hold", *options))

    def program(self):
        return build("locks_holds", "locks/holds.cc", "-std=c++20", "-O1", "-pthread")

    def assert_as_logged(self, run):
        logged = Counter(tuple(line.split()) for line in run.out.splitlines() if not line.startswith("inversion"))
        functions = "^(take_|try_it|wait_a|keep|forward|backward|under_|main)"
        told = self.told(run, "-f", functions)
        self.assertEqual(told - logged, Counter())
        self.assertEqual(logged - told, Counter())

    def test_random_programs_whose_orders_are_safe(self):
        for seed in range(SEEDS):
            with self.subTest(seed=seed):
                run = self.run_traced(self.program(), str(seed), "apart", options=ALL)
                self.assert_as_logged(run)
                self.assertEqual(self.found(run)["lock_rings"], [])
                self.assertIn("No two locks were seen", self.karst("locks", run.trace.path))

    def test_random_programs_with_one_inversion(self):
        for seed in range(SEEDS):
            with self.subTest(seed=seed):
                run = self.run_traced(self.program(), str(seed), "inverted", options=ALL)
                self.assert_as_logged(run)
                planted = next(line for line in run.out.splitlines() if line.startswith("inversion")).split()[1:]
                [ring] = self.found(run)["lock_rings"]
                self.assertEqual(sorted(order["lock"] for order in ring["orders"]), sorted(planted))
                self.assertEqual({plain(order["next_taken_in"]) for order in ring["orders"]}, {"forward", "backward"})
                self.assertIn("Possible deadlock: mutex g_pairs[", self.karst("locks", run.trace.path))

    def test_who_took_a_lock_is_not_the_innermost_call(self):
        program = build("locks_deeper", "locks/deeper.cc", "-std=c++20", "-O1", "-pthread")
        run = self.run_traced(program, options=ALL)
        self.assertRegex(self.karst("locks", run.trace.path),
                         r"(?m)^ +1 wait, [\d.]+ ms: want, while take had it \(then in inside\)$")
        lock = next(lock for lock in self.found(run)["locks"] if lock["waits"] != 0)
        self.assertEqual([(plain(pair["taken_in"]), plain(pair["held_in"])) for pair in lock["pairs"]],
                         [("take", "inside")])

    def test_slow_follows_the_lock_where_wakers_are_not_known(self):
        """States by perf have no wakers; without states there are none either."""
        program = build("locks_deeper", "locks/deeper.cc", "-std=c++20", "-O1", "-pthread")
        for sched in ("perf", "off"):
            self.SCHED = ("--sched", sched)
            run = self.run_traced(program, options=("--system", "locks"))
            slow = json.loads(self.karst("slow", "--json", "--follow", run.trace.path))["slow"]
            chain = next(call["chain"] for call in slow if plain(call["function"]) == "want")
            self.assertEqual([plain(step["function"]) for step in chain[0]["path"]][-2:], ["take", "inside"], sched)
            text = self.karst("slow", "--follow", run.trace.path)
            self.assertRegex(text, r"(?m)^ +meanwhile \d+ .* in .*take > inside$")
            has_states = run.trace.info["states"]["backend"] != "none"
            self.assertEqual("--system locks tells who had a lock" in text, has_states, text)

    def ring_run(self, seed, what):
        run = self.run_traced(build("locks_rings", "locks/rings.cc", "-std=c++20", "-O1", "-pthread"), str(seed), what,
                              options=ALL)
        planted = [line.split()[1:] for line in run.out.splitlines() if line.startswith("ring:")]
        return run, self.found(run), planted

    def test_random_programs_with_one_ring_of_locks(self):
        for seed in range(SEEDS):
            with self.subTest(seed=seed):
                run, found, [planted] = self.ring_run(seed, "ring")
                self.assertFalse(found["rings_cut"])
                [ring] = found["lock_rings"]
                self.assertGreater(ring["locks"], 2)
                locks = [order["lock"] for order in ring["orders"]]
                start = locks.index(planted[0])
                self.assertEqual(locks[start:] + locks[:start], planted)
                self.assertEqual({plain(order["next_taken_in"]) for order in ring["orders"]}, {"take_part"})
                self.assertEqual(len({order["tid"] for order in ring["orders"]}), len(planted))
                text = " ".join(self.karst("locks", run.trace.path).split())
                self.assertRegex(text, r"Possible deadlock: mutex g_locks\[.* and mutex g_locks\[\S+ \(0x\w+\) were "
                                       r"taken in a ring:")
                self.assertEqual(text.count("in take_part; then took mutex"), len(planted))

    def test_no_ring_where_there_is_none(self):
        for seed in range(SEEDS):
            for what in ("order", "guarded", "alone"):
                with self.subTest(seed=seed, what=what):
                    run, found, _ = self.ring_run(seed, what)
                    self.assertEqual((found["lock_rings"], found["rings_cut"]), ([], False))
                    self.assertIn("No two locks were seen to be taken in both orders, and no more of them in a ring.",
                                  self.karst("locks", run.trace.path))

    def test_what_the_text_says_of_holds(self):
        run = self.run_traced(self.program(), "1", "apart", options=ALL)
        text = self.karst("locks", run.trace.path, "--limit", "0")
        self.assertRegex(text, r"(?m)^ +held \d+ times? for [\d.]+ [mun]?s, longest [\d.]+ [mun]?s, taken in \w+$")
        flat = " ".join(text.split())
        self.assertRegex(flat, r"Never released: mutex main::kept \(0x\w+\), taken by thread \d+ locks_holds in keep at "
                               r"[\d.]+ ms, held for [\d.]+ \w+ until the thread ended")
        self.assertRegex(flat, r"Never released: mutex main::last .* in main at .* until the trace ended")
        for lock in self.found(run)["locks"]:
            self.assertEqual(lock["holds_without_end"], 0)

    def test_without_all_it_says_what_is_not_known(self):
        run = self.run_traced(self.program(), "1", "inverted", options=("--system", "locks"))
        if not self.karst("info", run.trace.path):
            self.fail()
        rows = subprocess.run([KARST, "locks", str(run.trace.path)], capture_output=True, text=True, timeout=TIMEOUT)
        if rows.returncode == 0:
            self.assertIn("'karst run --system locks=all' records it", " ".join(rows.stdout.split()))
            self.assertFalse(self.found(run)["holds_known"])
            self.assertNotIn("lock_rings", self.found(run))
        bad = subprocess.run([KARST, "run", "--system", "locks=some", "--", "true"], capture_output=True, text=True,
                             timeout=TIMEOUT)
        self.assertEqual((bad.returncode, bad.stdout), (2, ""))
        self.assertIn("behind = comes all", bad.stderr)

    def test_what_is_stripped_is_not_known(self):
        run = self.run_traced(self.program(), "1", "inverted", options=ALL)
        bare = self.directory / "bare.karst"
        self.karst("resolve", "--strip", "values", "-o", bare, run.trace.path)
        done = subprocess.run([KARST, "locks", "--json", str(bare)], capture_output=True, text=True, timeout=TIMEOUT)
        if done.returncode == 0:
            self.assertFalse(json.loads(done.stdout)["holds_known"])
        else:
            self.assertIn("no wait for a lock", done.stderr)

    def held(self, what, *, status=0):
        program = build("locks_held", "locks/held.cc", "-std=c++20", "-O1", "-pthread")
        alone = subprocess.run([program, what], capture_output=True, text=True, timeout=TIMEOUT)
        run = self.run_traced(program, what, options=ALL, status=status)
        self.assertEqual((run.out, run.status), (alone.stdout, alone.returncode))
        return run

    def lock(self, run, name):
        return next(lock for lock in self.found(run)["locks"] if lock["name"] == name)

    def test_a_convoy_is_three_in_a_row(self):
        run = self.held("convoy")
        lock = self.lock(run, "g_lock")
        self.assertEqual([convoy["holds"] for convoy in lock["convoys"]], [5])
        self.assertGreater(lock["convoys"][0]["duration_ns"], 8_000_000)
        self.assertEqual((lock["holds"], plain(lock["longest_hold_in"])), (6, "let_wait"))
        self.assertRegex(self.karst("locks", run.trace.path), r"convoy: 5 times in a row it went from one that waited")
        run = self.held("pairs")
        self.assertEqual(self.lock(run, "g_lock")["convoys"], [])
        self.assertNotIn("convoy:", self.karst("locks", run.trace.path))

    def test_a_deadlock_that_came_true(self):
        run = self.held("deadlock")
        [ring] = self.found(run)["lock_rings"]
        self.assertEqual({order["name"] for order in ring["orders"]}, {"g_lock", "g_other"})
        for order in ring["orders"]:
            self.assertTrue(order["waits"])
            self.assertEqual(plain(order["next_taken_in"]), "take_both")
        text = " ".join(self.karst("locks", run.trace.path).split())
        self.assertEqual(text.count("then waited to the end for"), 2)
        self.assertEqual(text.count("Never released:"), 2)

    def test_a_ring_of_threads_that_came_true(self):
        run = self.held("philosophers")
        [ring] = self.found(run)["lock_rings"]
        self.assertEqual((ring["locks"], len({order["tid"] for order in ring["orders"]})), (5, 5))
        for order in ring["orders"]:
            self.assertTrue(order["waits"])
            self.assertEqual(plain(order["next_taken_in"]), "take_both")
        text = " ".join(self.karst("locks", run.trace.path).split())
        self.assertIn("were taken in a ring:", text)
        self.assertEqual(text.count("then waited to the end for"), 5)

    def test_who_reads_and_who_spins(self):
        rows = {plain(row["function"]): row for row in self.rows(self.held("readers"), "wait")}
        self.assertEqual((rows["write_table"]["owners"], plain(rows["write_table"]["held_in"])), ("3", "read_table"))
        self.assertEqual((rows["spin_too"]["owners"], plain(rows["spin_too"]["held_in"])), ("1", "spin_long"))

    def test_ways_out_of_holds(self):
        told = self.told(self.held("fork"))
        self.assertEqual(Counter(hold[3:] for hold in told.elements()),
                         {("fork_in_hold", "fork_in_hold", "released"): 1, ("in_child", "in_child", "released"): 1})
        told = self.told(self.held("throws"))
        self.assertEqual({hold[5] for hold in told}, {"released"})
        self.assertEqual(sum(told.values()), 10)
        told = self.told(self.held("cancelled"))
        self.assertEqual(Counter(hold[3:] for hold in told.elements()),
                         {("wait_for_ever", "wait_for_ever", "released"): 1,
                          ("take_afterwards", "take_afterwards", "released"): 1})

    def test_a_program_that_nobody_rebuilt(self):
        pigz = shutil.which("pigz")
        if pigz is None:
            self.skipTest("there is no pigz")
        data = self.directory / "data"
        data.write_bytes(bytes(range(256)) * 8_000 + pathlib.Path(pigz).read_bytes() * 20)
        command = (pigz, "-p", "4", "-b", "32", "-c", "-n", str(data))
        expected = subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT).stdout
        run = self.run_traced(*command, options=ALL, text=False)
        self.assertEqual(run.out, expected)
        self.assertEqual(self.found(run)["lock_rings"], [])
        rows = self.rows(run, "hold")
        self.assertGreater(len(rows), 100)
        # Nobody but one has a mutex at once.
        by_lock = defaultdict(list)
        for row in rows:
            self.assertEqual(row["kind"], "mutex")
            by_lock[row["lock"]].append((int(row["begin_ns"]), int(row["begin_ns"]) + int(row["duration_ns"])))
        for holds in by_lock.values():
            holds.sort()
            for (_, end), (begin, _) in zip(holds, holds[1:]):
                self.assertLessEqual(end, begin + 1)  # rounded to ns


if __name__ == "__main__":
    main()
