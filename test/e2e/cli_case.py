"""The karst command as a user meets it: what the tests of its parts share. Run each as: FILE KARST CLI_TRACES."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

KARST, CLI_TRACES = sys.argv[1:3]

PLAIN = """\
# process 10 app thread 10 app
main
  work(int)
    leaf()
  work(int)
# process 10 app thread 11 worker
work(int)
  leaf()
work(int)
  leaf()
"""

TREE = """\
# process 10 app thread 10 app
  2.000 ms    main
  2.500 us      work(int)
     50 ns        leaf()
  1.500 ms      work(int)
# process 10 app thread 11 worker
  1.000 us <  work(int)
     10 ns      leaf()
    300 ns  > work(int)
    200 ns      leaf()
"""


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="karst_cli_")
        subprocess.run([CLI_TRACES, cls.directory], check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.directory)

    def path(self, name):
        return os.path.join(self.directory, name)

    def karst(self, *arguments, **options):
        return subprocess.run([KARST, *arguments], capture_output=True, timeout=60, **options)

    def good(self, *arguments):
        """Standard output of a command that must succeed without a word on stderr."""
        run = self.karst(*arguments)
        self.assertEqual((run.returncode, run.stderr), (0, b""))
        return run.stdout.decode()

    def bad(self, status, *arguments):
        """The message of a command that must fail with `status`, print nothing, and not crash."""
        run = self.karst(*arguments)
        message = run.stderr.decode()
        self.assertEqual(run.returncode, status, message)
        self.assertEqual(run.stdout, b"")
        self.assertTrue(message.startswith("karst: "), message)
        return message

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def sample(self):
        with open(self.path("sample.karst"), "rb") as file:
            return file.read()


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
