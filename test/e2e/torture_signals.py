"""Signals at 10 kHz into hooks: a handler that is traced itself may interrupt a hook anywhere, and nothing is lost."""
from support import TracedTest, build, main


def program():
    return build("signals", "torture/signals.cc", "-O1", "-fno-inline", "-fno-optimize-sibling-calls", "-pthread")


class Signals(TracedTest):
    def shoot(self, *arguments, memory):
        run = self.run_traced(program(), *arguments, options=("--memory", memory))
        own = {}
        for line in run.out.splitlines():
            name, count = line.rsplit(" ", 1)
            own[name] = int(count)
        self.assertEqual(len(own), 5, run.out)
        return run.trace, own

    def check_exact(self, *arguments):
        trace, own = self.shoot(*arguments, memory="2G")
        self.assert_whole(trace)
        self.assertEqual({name: trace.counts[name] for name in own}, own)
        self.assertEqual(trace.info["open_calls"], 0)  # enters == exits
        # As many enters as exits, each of them in some call. A hook whose handler went on to another block may leave its
        # slot empty: once a handler at the most.
        empty = trace.info["events"] - 2 * trace.info["calls"]
        self.assertGreaterEqual(empty, 0)
        self.assertLessEqual(empty, own["handler(int)"])

    def check_wrapping(self, *arguments, memory):
        trace, own = self.shoot(*arguments, memory=memory)
        self.assert_sound(trace)
        self.assertGreater(trace.info["overwritten_events"], 0)
        self.assertEqual(trace.info["lost_events"], 0)
        # Nothing vanishes uncounted: what was recorded is kept or counted as overwritten.
        other = trace.counts
        outside = sum(count for name, count in other.items() if name not in own and name != "main")
        recorded = trace.info["events"] + trace.info["overwritten_events"]
        self.assertGreaterEqual(recorded, 2 * sum(own.values()))
        # An interrupted hook may leave a slot that it took before its handler's: once a handler at the most, as above.
        self.assertLessEqual(recorded, 2 * sum(own.values()) + 2 * outside + own["handler(int)"] + 200)
        return trace

    def test_interval_timer_with_all_kept(self):
        self.check_exact("itimer", 1000)

    def test_posix_timer_aimed_at_the_thread_with_all_kept(self):
        self.check_exact("timer", 1000)

    def test_signals_from_another_thread_with_all_kept(self):
        self.check_exact("tgkill", 3000)

    def test_handler_on_an_alternate_stack_with_all_kept(self):
        self.check_exact("timer", 1000, "alternate")

    def test_handler_with_many_calls_and_all_kept(self):
        self.check_exact("timer", 500, "normal", 600)

    def test_posix_timer_while_the_ring_wraps_in_the_least_memory(self):
        self.check_wrapping("timer", 5000, memory="64K")

    def test_signals_from_another_thread_while_the_ring_wraps(self):
        self.check_wrapping("tgkill", 5000, memory="1M")

    def test_alternate_stack_while_the_ring_wraps(self):
        self.check_wrapping("timer", 3000, "alternate", memory="64K")

    def test_handler_that_wraps_the_whole_ring_leaves_no_stray_event(self):
        # The interrupted hook's slot must not be recycled under it, however much the handler records.
        self.check_wrapping("tgkill", 600, "normal", 5000, memory="64K")


if __name__ == "__main__":
    main()
