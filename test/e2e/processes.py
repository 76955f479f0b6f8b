"""Processes: what each says that it did, and was inside when it was forked, is what the trace has of it."""
import os
import resource
import signal
import subprocess

from support import KARST, TIMEOUT, TracedTest, Trace, build, main


def program():
    return build("processes", "processes/processes.cc", "-O1", "-fno-inline", "-fno-optimize-sibling-calls", "-pthread")


class Account:
    """A process's own line."""

    def __init__(self, line):
        words = line.split()
        self.pid, self.parent, self.leaves = map(int, words[:3])
        assert words[3] == "inside", line
        self.inside = words[4:]


def bare(name):
    return name.split("(")[0]


class ProcessesTest(TracedTest):
    def accounts(self, run):
        return [Account(line) for line in run.out.splitlines()]

    def by_pid(self, run):
        return {p["pid"]: p for p in run.trace.processes}

    def check(self, run, count):
        """Every process's leaves and the calls that it was inside, against its own account."""
        self.assert_whole(run.trace)
        accounts = self.accounts(run)
        self.assertEqual(len(accounts), count, run.out)
        processes = self.by_pid(run)
        for account in accounts:
            process = processes[account.pid]
            counts = run.trace.counts_of("--process", str(account.pid))
            self.assertEqual(counts.get("leaf()", 0), account.leaves, account.pid)
            inherited = sum(t["inherited_calls"] for t in process["threads"])
            self.assertEqual(inherited, len(account.inside), account.pid)
            self.assertEqual(process["forked"], account.parent != 0)
            self.check_inside(run, account)
        return accounts, processes

    def check_inside(self, run, account):
        """The frames are the outermost calls of the thread that began the process, nested as they were."""
        lines = run.trace.tree("--process", str(account.pid))
        heads = [i for i, line in enumerate(lines) if line.startswith("#") and f" thread {account.pid} " in line]
        if not account.inside:
            return
        first = lines[heads[0] + 1:heads[0] + 1 + len(account.inside)]
        # Functions of the C++ library between them are not in the program's own account.
        self.assertEqual([(len(line) - len(line.lstrip())) // 2 for line in first], list(range(len(first))))
        self.assertEqual([bare(line.strip()) for line in first], account.inside)

    def run_mode(self, *arguments, count, **more):
        run = self.run_traced(program(), *arguments, **more)
        accounts, processes = self.check(run, count)
        self.assertEqual(len(run.trace.processes), count)
        return run, accounts, processes

    def test_fork_inside_calls(self):
        run, accounts, processes = self.run_mode("fork", count=2)
        child = next(a for a in accounts if a.parent)
        self.assertEqual(child.inside, ["main", "outer", "inner"])
        self.assertEqual(processes[child.pid]["parent_pid"], child.parent)
        self.assertEqual(run.trace.processes[processes[child.pid]["parent"]]["pid"], child.parent)
        # What the child was inside is counted where it began.
        self.assertEqual(run.trace.counts["main"], 1)
        self.assertEqual(run.trace.counts["inner(int)"], 1)
        # All calls of the child have an end: it returned through all that it was inside.
        self.assertEqual(processes[child.pid]["threads"][0]["open_calls"], 0)

    def test_tree_of_processes_is_shown(self):
        run = self.run_traced(program(), "generations", 3)
        text = subprocess.run([KARST, "info", str(run.trace.path)], capture_output=True, text=True, check=True).stdout
        lines = text[text.index("\nprocesses\n"):text.index("\nprocess ")].splitlines()[2:]
        indents = [len(line[18:]) - len(line[18:].lstrip()) for line in lines]
        self.assertEqual(indents, [0, 2, 4, 6], text)
        self.assertEqual(["forked" in line for line in lines], [False, True, True, True])

    def test_fork_in_a_signal_handler(self):
        _, accounts, _ = self.run_mode("signal", count=2)
        self.assertEqual(next(a for a in accounts if a.parent).inside, ["main", "on_signal", "outer", "inner"])

    def test_fork_in_a_thread(self):
        run = self.run_traced(program(), "thread")
        self.assert_whole(run.trace)
        # The child goes on from the thread's own functions; those of the C++ library around them are traced as well.
        tree = [line for line in run.trace.tree() if not line.startswith("#")]
        self.assertEqual(run.trace.counts["in_thread()"], 1)
        child = next(p for p in run.trace.processes if p["forked"])
        names = [bare(line.strip()) for line in run.trace.tree("--process", str(child["pid"]))
                 if not line.startswith("#")]
        inside = names[:child["threads"][0]["inherited_calls"]]
        self.assertEqual(inside[-3:], ["in_thread", "outer", "inner"])
        self.assertNotIn("main", inside)
        self.assertEqual(run.trace.counts_of("--process", str(child["pid"]))["leaf()"], 22)
        self.assertTrue(tree)

    def test_clone_with_a_stack_of_its_own_is_inside_nothing(self):
        self.run_mode("clone", count=2)

    def test_raw_fork_is_traced_and_says_nothing_of_what_it_was_inside(self):
        run = self.run_traced(program(), "raw")
        self.assert_whole(run.trace)
        child = next(a for a in self.accounts(run) if a.parent)
        self.assertEqual(run.trace.counts_of("--process", str(child.pid))["leaf()"], child.leaves)

    def test_generations(self):
        self.run_mode("generations", 6, count=7)

    def test_handlers_of_fork_that_are_traced(self):
        run = self.run_traced(program(), "atfork")
        self.check(run, 2)
        self.assertEqual(run.trace.counts["before_fork()"], 1)
        self.assertEqual(run.trace.counts["after_fork()"], 1)
        self.assertEqual(run.trace.counts["in_forked()"], 1)

    def test_hundreds_of_children(self):
        # One report for all: a run of karst for each of 300 processes takes its time.
        run = self.run_traced(program(), "burst", 300)
        self.check_many(run, 301)

    def test_more_living_children_than_descriptors(self):
        def few_descriptors():
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        run = self.run_traced(program(), "burst", 150, preexec_fn=few_descriptors)
        self.check_many(run, 151)

    def check_many(self, run, count):
        self.assert_whole(run.trace)
        accounts = self.accounts(run)
        self.assertEqual(len(accounts), count)
        processes = self.by_pid(run)
        self.assertEqual(set(processes), {a.pid for a in accounts})
        self.assertEqual(run.trace.counts["leaf()"], sum(a.leaves for a in accounts))
        for account in accounts:
            if account.parent:  # work() and its leaves are all that a child calls
                self.assertEqual(sum(t["calls"] for t in processes[account.pid]["threads"]), account.leaves + 1)

    def test_forks_in_eight_threads_at_once(self):
        run = self.run_traced(program(), "many-threads", 12)
        self.assert_whole(run.trace)
        accounts = self.accounts(run)
        self.assertEqual(len(accounts), 97)
        self.assertEqual(len(run.trace.processes), 97)
        for account in accounts[::12]:
            counts = run.trace.counts_of("--process", str(account.pid))
            self.assertEqual(counts.get("leaf()", 0), account.leaves)
        self.assertEqual(run.trace.counts["leaf()"], sum(a.leaves for a in accounts))

    def test_children_killed_at_any_moment(self):
        run = self.run_traced(program(), "killed", 60)
        self.assert_sound(run.trace)
        parent = self.accounts(run)[-1]
        self.assertEqual(run.trace.counts_of("--process", str(parent.pid))["leaf()"], parent.leaves)
        self.assertLessEqual(len(run.trace.processes), 61)

    def test_daemon_is_waited_for(self):
        run = self.run_traced(program(), "daemon")
        self.assert_whole(run.trace)
        accounts = self.accounts(run)
        self.assertEqual(len(accounts), 2)
        daemon = next(a for a in accounts if a.leaves == 50)
        self.assertEqual(run.trace.counts_of("--process", str(daemon.pid))["leaf()"], 50)
        self.check_inside(run, daemon)

    def test_a_child_that_is_silent_until_its_parent_is_gone(self):
        self.run_mode("late", count=2)

    def test_no_wait_writes_what_living_processes_have(self):
        self.addCleanup(os.close, self.inout()[1])
        path = self.directory / "trace.karst"
        done = subprocess.run([KARST, "run", "--no-wait", "-o", str(path), program(), "alive"], stdin=self.ends[0],
                              capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = Trace(path)
        child = next(p for p in trace.processes if p["forked"])
        self.assertFalse(child["ended"])
        self.assertEqual(trace.counts_of("--process", str(child["pid"]))["leaf()"], 6)
        self.assert_sound(trace)

    def inout(self):
        self.ends = os.pipe()
        self.addCleanup(os.close, self.ends[0])
        return self.ends

    def test_no_follow_traces_the_program_alone(self):
        for mode in ("fork", "exec"):
            run = self.run_traced(program(), mode, options=("--no-follow",))
            self.assert_whole(run.trace)
            self.assertEqual([p["forked"] for p in run.trace.processes], [False])
            parent = next(a for a in self.accounts(run) if a.pid == run.trace.processes[0]["pid"])
            self.assertEqual(run.trace.counts["leaf()"], parent.leaves)

    def test_no_follow_leaves_the_environment_as_it_was(self):
        library = "/lib/x86_64-linux-gnu/libm.so.6"
        script = self.directory / "show"
        script.write_text("#!/bin/sh\nenv\n")
        script.chmod(0o755)
        run = self.run_traced(script, options=("--no-follow",), env={"LD_PRELOAD": library}, status=None)
        lines = run.out.splitlines()
        self.assertEqual([line for line in lines if "PRELOAD" in line or "KARST_OPTIONS" in line],
                         [f"LD_PRELOAD={library}"])

    def test_exec_in_a_child_is_another_process_image(self):
        run = self.run_traced(program(), "exec")
        self.assert_sound(run.trace)
        child = next(a for a in self.accounts(run) if a.parent)
        images = [p for p in run.trace.processes if p["pid"] == child.pid]
        self.assertEqual([p["forked"] for p in images], [True, False])
        self.assertEqual(images[1]["parent"], images[0]["index"])
        self.assertEqual(images[1]["command_line"][1], "again")

    def test_a_child_that_can_have_no_descriptor_runs_untraced_with_one_line(self):
        run = self.run_traced(program(), "no-descriptors")
        self.assert_whole(run.trace)
        self.assertEqual(len(run.trace.processes), 1)
        lines = [line for line in self.lines_of_karst(run) if "runs untraced" in line]
        self.assertEqual(len(lines), 1, run.err)
        self.assertEqual(sorted(a.leaves for a in self.accounts(run)), [4, 8])

    def test_names_of_children(self):
        run, accounts, processes = self.run_mode("named", count=2)
        child = next(a for a in accounts if a.parent)
        self.assertEqual([t["name"] for t in processes[child.pid]["threads"]], ["worker-7"])

    def test_children_under_prefault_run_untraced(self):
        run = self.run_traced(program(), "fork", options=("--prefault", "--memory", "1M"))
        self.assert_whole(run.trace)
        self.assertEqual(len(run.trace.processes), 1)

    def test_children_of_a_program_that_outlives_karst_run(self):
        # Killed while it waits: whoever forks then is not asked for, and nobody is harmed.
        reader, writer = os.pipe()
        karst = subprocess.Popen([KARST, "run", "-o", str(self.directory / "t.karst"), program(), "late"],
                                 stdout=writer, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        os.close(writer)
        with os.fdopen(reader) as out:
            first = out.readline()  # of the parent, which ends; its child sleeps
            karst.send_signal(signal.SIGKILL)
            karst.wait(TIMEOUT)
            accounts = [Account(line) for line in [first, *out.read().splitlines()]]
        self.assertIn(9, [a.leaves for a in accounts])


if __name__ == "__main__":
    main()
