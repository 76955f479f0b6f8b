"""A handler after every single instruction of a hook: nothing is lost, nothing strays, no register is spoilt."""
import os
import pathlib
import subprocess
import sys
from unittest import mock

from support import TracedTest, build, main

DECODER = pathlib.Path(__file__).resolve().parent.parent / "docs" / "decode_trace.py"
PAD, *NOTE = range(8388357, 8388361)  # docs/trace-format.md: kPad; kNote, kNoteHead, kNoteWord


def program():
    return build("steps", "torture/steps.cc", "-O1", "-fno-inline", "-mno-red-zone")


def words(trace, *ids):
    """How many there are, by the second decoder."""
    lines = subprocess.run([sys.executable, "-B", DECODER, trace.path], stdout=subprocess.PIPE, check=True, text=True)
    return sum(line.startswith(tuple(f"exit {i} " for i in ids)) for line in lines.stdout.splitlines())


def pads(trace):
    """Slots that hold nothing: a hook took one, and a handler recorded events behind it."""
    return words(trace, PAD)


class Steps(TracedTest):
    def test_a_handler_after_every_instruction_loses_nothing(self):
        run = self.run_traced(program(), "every", 1)
        steps, in_handler, leaves = map(int, run.out.split())
        self.assertGreater(steps, 700 * 2 * 2 * 20)  # the hooks were stepped through
        self.assert_whole(run.trace)
        self.assertEqual(leaves, 1400)
        self.assertEqual(run.trace.counts["leaf()"], leaves)
        self.assertEqual(run.trace.counts["handler_leaf()"], in_handler)
        # Handlers that come between a hook's addition to the cursor and its look at it leave it a slot that it cannot use.
        empty = pads(run.trace)
        self.assertGreater(empty, 0)
        self.assertEqual(run.trace.info["events"] - empty - words(run.trace, *NOTE), 2 * (in_handler + leaves + 1))
        self.assertEqual(run.trace.info["open_calls"], 0)

    def test_a_handler_after_every_instruction_of_the_other_hooks(self):
        for option in (("--clock", "thread"), ("--min-duration", "5s"), ("--over", "leaf:5s")):
            with self.subTest(option=option):
                run = self.run_traced(program(), "every", 1, options=option)
                _, in_handler, leaves = map(int, run.out.split())
                self.assert_whole(run.trace)
                self.assertEqual(run.trace.info["open_calls"], 0)
                counts = run.trace.counts
                if "--min-duration" in option:
                    self.assertEqual((counts.get("leaf()", 0), counts.get("handler_leaf()", 0)), (0, 0))
                else:
                    self.assertEqual((counts["leaf()"], counts["handler_leaf()"]), (leaves, in_handler))

    def test_a_handler_after_every_instruction_while_the_ring_wraps(self):
        run = self.run_traced(program(), "every", 7, options=("--memory", "64K"))
        steps, in_handler, leaves = map(int, run.out.split())
        self.assert_sound(run.trace)
        info = run.trace.info
        self.assertEqual(info["lost_events"], 0)
        self.assertGreaterEqual(info["events"] + info["overwritten_events"], 2 * (in_handler + leaves) + 1)

    def check_slots(self):
        # After each instruction in turn the handler alone fills the whole ring more than twice.
        stepped = int(self.run_traced(program(), 0, 1).out.split()[0])
        self.assertGreater(stepped, 80)
        strays = {}
        for at in range(0, stepped // 2 + 2):
            trace = self.run_traced(program(), at, 9000, options=("--memory", "64K")).trace
            # An interrupted hook's block may be kept, however old it is: a gap. No event may be out of order.
            wrong = [m for m, _ in trace.problems if "missing within" not in m]
            if wrong:
                strays[at] = wrong
        self.assertEqual(strays, {})

    def test_a_slot_is_not_recycled_while_its_hook_is_interrupted(self):
        self.check_slots()

    def test_such_a_slot_without_restartable_sequences(self):
        # All blocks that are left are searched for it then (runtime/recording/interruptions.h).
        with mock.patch.dict(os.environ, {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}):
            self.check_slots()

    def test_a_handler_that_goes_round_all_memory_to_the_very_slot(self):
        """Where the slot's address alone would tell the interrupted hook that nothing has happened."""
        stepped = int(self.run_traced(program(), 0, 1).out.split()[0])
        blocks, slots = 16, 504
        came_round = 0
        for at in range(0, stepped // 2 + 2, 2):
            run = self.run_traced(program(), at, blocks * slots // 2, options=("--memory", "64K"))
            _, in_handler, leaves = map(int, run.out.split())
            self.assertEqual([m for m, _ in run.trace.problems if "missing within" not in m], [], at)
            info = run.trace.info
            # A word more: what the late event would have overwritten the order with.
            came_round += info["events"] + info["overwritten_events"] - 2 * (in_handler + leaves + 1)
        self.assertGreater(came_round, 3)


if __name__ == "__main__":
    main()
