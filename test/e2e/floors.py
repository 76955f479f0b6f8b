"""What one folder of the runtime asks of another: each as a program sees it."""
import os

from support import TracedTest, build, main

THREAD = ("--clock", "thread")


class Children(TracedTest):
    def test_the_clock_goes_on_in_a_forked_child(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("one CPU alone: the clock thread is not used")
        naps = 10
        run = self.run_traced(build("child_naps", "floors/child_naps.cc", "-O1", "-fno-inline"), naps, options=THREAD)
        self.assert_whole(run.trace)
        lives = {line["function"]: line for line in run.trace.report()}
        self.assertGreaterEqual(lives["child_life(int)"]["total_ns"], naps * 5_000_000)


if __name__ == "__main__":
    main()
