"""test/first_tries.py on what ctest prints."""
import unittest

from first_tries import failed_once, summary

PRINTED = """\
    Start 1: quick
    Start 2: reader.slow one
1/3 Test #1: quick ..........................   Passed    0.01 sec
2/3 Test #2: budget.hot .....................***Failed    7.36 sec
AssertionError: 7 != 8
    Start 3: page
    Test #2: budget.hot .....................   Passed    6.10 sec
3/3 Test #3: page ...........................***Timeout 600.00 sec
still at it
    Test #3: page ...........................***Failed    1.00 sec
broken

67% tests passed, 1 tests failed out of 3

Total Test time (real) = 12.00 sec
""".splitlines()


class FirstTries(unittest.TestCase):
    def test_what_passed_later_is_told_with_its_text(self):
        (test, text), = failed_once(PRINTED)
        self.assertEqual(test, "budget.hot")
        self.assertEqual(text.splitlines()[1:], ["AssertionError: 7 != 8"])

    def test_the_summary_is_what_ctest_said_last(self):
        self.assertEqual(summary(PRINTED)[0], "67% tests passed, 1 tests failed out of 3")
        self.assertEqual(summary(PRINTED)[-1], "Total Test time (real) = 12.00 sec")

    def test_nothing_where_all_passed_at_once(self):
        self.assertEqual(failed_once(PRINTED[:3]), [])


if __name__ == "__main__":
    unittest.main()
