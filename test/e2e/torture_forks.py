"""fork, vfork, exec and their kin: the parent's trace exact, the child sane, traced programs that are exec'd there."""
from support import TracedTest, build, main


def program():
    return build("forks", "torture/forks.cc", "-O1", "-fno-inline", "-pthread")


class Forks(TracedTest):
    def tree(self, run):
        """Names alone of the program itself, without the lines that name process and thread."""
        first = run.trace.processes[0]
        return [line for line in run.trace.tree("--process", str(first["pid"])) if not line.startswith("#")]

    def check_parent(self, mode, out, status=0):
        run = self.run_traced(program(), mode, status=status)
        self.assertEqual(sorted(run.out.splitlines()), sorted(out))
        self.assert_whole(run.trace)
        self.assertEqual([p["forked"] for p in run.trace.processes], [False, True])
        parent, child = (str(p["pid"]) for p in run.trace.processes)
        self.assertEqual(run.trace.counts_of("--process", parent)["leaf()"], 200)
        self.assertEqual(run.trace.counts_of("--process", child)["leaf()"], 3000000)
        return run

    def check_like_no_fork(self, mode):
        """The parent's tree is that of a run in which nothing was forked, but for the calls that forking and finding
        the mode take."""
        alike = {"main", "work(int)", "leaf()", "say(char const*)"}
        forked = self.tree(self.check_parent(mode, ["child 3000000", "parent 200"]))
        plain = self.tree(self.run_traced(program(), "none"))  # writes the same file
        self.assertEqual([line for line in forked if line.strip() in alike],
                         [line for line in plain if line.strip() in alike])

    def test_fork_with_a_busy_child_that_exits_leaves_the_parents_tree_as_it_was(self):
        self.check_like_no_fork("fork-exit")

    def test_fork_with_a_busy_child_that_calls__exit(self):
        self.check_like_no_fork("fork-_exit")

    def test_raw_fork_system_call_with_a_busy_child(self):
        self.check_like_no_fork("raw-fork")

    def test_fork_from_a_program_with_busy_threads(self):
        run = self.run_traced(program(), "threads")
        self.assertEqual(run.out, "")
        self.assert_whole(run.trace)
        first = run.trace.processes[0]
        self.assertEqual(run.trace.counts_of("--process", str(first["pid"]))["leaf()"], 600200)
        self.assertEqual(len(first["threads"]), 4)
        self.assertEqual([p["forked"] for p in run.trace.processes], [False] + 50 * [True])
        self.assertEqual(run.trace.counts["leaf()"], 600200 + 50 * 40000)

    def test_child_that_outlives_its_parent(self):
        # Its output comes when karst may have ended; subprocess waits for the pipe's end, so it is all here.
        self.check_parent("outlive", ["parent 200", "child 3000000"])

    def check_exec(self, mode):
        run = self.run_traced(program(), mode)
        self.assertEqual(sorted(run.out.splitlines()), ["exec'd 200", "parent 200"])
        self.assert_whole(run.trace)
        self.assertEqual(len(run.trace.processes), 2)
        for p in run.trace.processes:
            self.assertEqual(run.trace.counts_of("--process", str(p["pid"]))["leaf()"], 200)

    def test_vfork_and_exec_of_a_traced_program(self):
        self.check_exec("vfork-exec")

    def test_posix_spawn_of_a_traced_program(self):
        self.check_exec("posix_spawn")

    def test_system_with_a_traced_program(self):
        self.check_exec("system")

    def test_an_execd_traced_program_that_outlives_its_parent_is_waited_for(self):
        self.check_exec("outlive-exec")

    def test_a_program_that_execs_itself_is_two_process_images(self):
        run = self.run_traced(program(), "exec", status=5)
        self.assertEqual(run.out, "before 100\nexec'd 200\n")
        self.assert_sound(run.trace)
        self.assertEqual([len(run.trace.processes), len({p["pid"] for p in run.trace.processes})], [2, 1])
        self.assertEqual(run.trace.counts["leaf()"], 300)

    def test_pipeline_inside_a_shell_gives_both_processes(self):
        p = program()
        run = self.run_traced("sh", "-c", f"{p} leaf | {p} leaf; {p} none | cat", options=("--no-patch",))
        self.assertEqual(run.out.splitlines(), ["exec'd 200", "parent 200"])
        self.assert_whole(run.trace)
        self.assertEqual(len({p["pid"] for p in run.trace.processes}), 3)
        self.assertEqual(run.trace.counts["leaf()"], 600)


if __name__ == "__main__":
    main()
