"""--budget and --keep: hot functions are left out, and said to be; all else is in the trace as though nothing was."""
import re

from support import ROOT, TracedTest, build, main

CALLS = 12_000_000  # of 4 ns: some 0.1 s, of which a traced run makes a second; long enough on a loaded machine


def program(name="budget-loads", *flags):
    return build(name, "budget/loads.cc", "-O2", "-pthread", f"-I{ROOT}/include", *flags)


class Budget(TracedTest):
    def run_load(self, mode, calls=CALLS, options=("--budget", "5%"), env=None, of=None, said=()):
        """The run, and what the program said: calls by name, summed over processes."""
        run = self.run_traced(of or program(), mode, str(calls), options=("--memory", "512M", "--no-source", *options),
                              env=env)
        self.assertEqual([line for line in self.lines_of_karst(run)[:-1] if not any(s in line for s in said)], [])
        self.assert_whole(run.trace)
        made = {}
        for name, count in re.findall(r"^(\w+) (\d+)$", run.out, re.M):
            made[name] = made.get(name, 0) + int(count)
        return run, made

    def recorded(self, run):
        """By plain name: without scope and parameters."""
        counts = {}
        for name, calls in run.trace.counts.items():
            plain = re.sub(r"\(anonymous namespace\)::|\(.*", "", name)
            counts[plain] = counts.get(plain, 0) + calls
        return counts

    def check_rare_are_whole(self, mode, hot, calls=CALLS, **more):
        run, made = self.run_load(mode, calls, **more)
        counts = self.recorded(run)
        for name, count in made.items():
            self.assertLessEqual(counts.get(name, 0), count, name)
            if name[0].isupper() or name == "budget_library":
                self.assertEqual(counts.get(name, 0), count, name)
        self.assertEqual(counts.get("main"), 1)  # also where a child inherits it
        if hot:
            self.assertIn("by the budget", {s["reason"] for p in run.trace.processes for s in p["switches"]})
        for name in hot:
            self.assertLess(counts.get(name, 0), made.get(name, calls), f"{name} was never left out")
        return run, counts

    def test_a_hot_loop_goes_and_its_callers_are_whole(self):
        self.check_rare_are_whole("hot", ["hot"])

    def test_without_a_budget_all_is_there(self):
        run, made = self.run_load("hot", 1_000_000, options=())
        counts = self.recorded(run)
        self.assertEqual({name: counts[name] for name in made}, made)

    def test_what_fits_stays(self):
        run, made = self.run_load("hot", 20_000)
        self.assertEqual({name: self.recorded(run)[name] for name in made}, made)

    def test_functions_to_keep_are_whole(self):
        # What is kept costs more than the budget: of short calls that are not, some may go. Long ones stay.
        run, made = self.run_load("hot", 3_000_000, options=("--budget", "1%", "--keep", "hot"))
        counts = self.recorded(run)
        self.assertEqual({name: counts[name] for name in ("hot", "Serve")}, {name: made[name] for name in ("hot", "Serve")})

    def test_always_is_whole(self):
        _, counts = self.check_rare_are_whole("always", ["other"], 6_000_000)
        self.assertEqual(counts["Always"], 6_000_000)

    def test_a_program_of_tiny_functions(self):
        _, counts = self.check_rare_are_whole("tiny", [])
        self.assertLess(sum(n for name, n in counts.items() if name.startswith("void tiny") or name.startswith("tiny")), CALLS)

    def test_hundreds_of_short_threads(self):
        self.check_rare_are_whole("threads", ["hot"])

    def test_hundreds_of_threads_at_once(self):
        # Among so many that can run, the thread that keeps to the budget may come too late to leave anything out.
        self.check_rare_are_whole("crowd", [])

    def test_one_hot_thread_among_others(self):
        self.check_rare_are_whole("one_hot", ["hot"])

    def test_bursts(self):
        self.check_rare_are_whole("bursts", ["hot"])

    def test_finstrument_functions(self):
        self.check_rare_are_whole("hot", ["hot"], of=program("budget-loads-instrument", "--karst-method=finstrument"))

    def test_the_thread_clock(self):
        # Where there is one CPU alone the TSC stamps events, which is said.
        self.check_rare_are_whole("hot", ["hot"], 2 * CALLS, options=("--budget", "5%", "--clock", "thread"),
                                  said=("clock=thread ignored",))

    def test_keep_and_always_together(self):
        run, made = self.run_load("always", 2_000_000, options=("--budget", "0.1%", "--keep", "other"))
        counts = self.recorded(run)
        self.assertEqual({name: counts[name] for name in made}, made)

    def test_phases(self):
        self.check_rare_are_whole("phases", ["hot", "other"], 2 * CALLS)

    def test_a_forked_child_has_its_parents_budget(self):
        run, _ = self.check_rare_are_whole("forks", ["hot"])
        self.assertEqual(len(run.trace.processes), 2)

    def test_exceptions_through_functions_that_come_and_go(self):
        self.check_rare_are_whole("exceptions", ["passes", "throws"], CALLS // 4)

    def test_recursion(self):
        _, counts = self.check_rare_are_whole("recursion", [])
        self.assertLess(counts["fib"], 20 * 242_785)

    def test_a_library_that_comes_late(self):
        library = build("budget-library", "budget/library.cc", "-O2", "-shared", "-fPIC", output="libbudget.so")
        _, counts = self.check_rare_are_whole("library", ["inner"], env={"BUDGET_LIBRARY": library})

    def test_from_the_environment(self):
        run, _ = self.run_load("hot", options=(), env={"KARST_OPTIONS": "budget=5%,keep=Serve"})
        self.assertLess(self.recorded(run)["hot"], CALLS)

    def test_a_share_that_is_none_is_refused(self):
        for bad in ("5", "0%", "101%", "much"):
            run = self.run_traced(program(), "hot", options=("--budget", bad), status=None)
            self.assertIn("a share of time from 0.1% to 100% is needed", run.err)
            self.assertFalse(run.written)
        run = self.run_traced(program(), "hot", env={"KARST_OPTIONS": "budget=lots"})
        self.assertIn("budget=lots ignored", run.err)


if __name__ == "__main__":
    main()
