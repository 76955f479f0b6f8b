"""karst query on a terminal: its prompt, Ctrl+C, and what it tells of long queries; and SQL from standard input."""
import os
import pty
import re
import select
import shutil
import signal
import stat
import subprocess
import time
import unittest

import support
from support import BIN, KARST, TracedTest, build, main

# Reads all calls, and then has DuckDB work for longer than any test waits.
ENDLESS = "SELECT count(*) FROM range(3000000) a(x), range(3000000) b(y) WHERE xor(x, y) = -1"


class Terminal:
    """A program with a terminal of its own: what is typed, and what stands there."""

    def __init__(self, words, cwd, **variables):
        environment = {k: v for k, v in os.environ.items()
                       if k not in ("COLUMNS", "PAGER", "KARST_PAGER", "NO_COLOR", "SUDO_UID", "XDG_STATE_HOME")}
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(cwd)
                os.execve(words[0], words, {**environment, "TERM": "xterm", "LC_ALL": "C.UTF-8", "LESSHISTFILE": "-", **variables})
            finally:
                os._exit(127)
        self.text = ""
        self.status = None

    def type(self, text):
        os.write(self.end, text.encode())

    def read_some(self, seconds):
        if not select.select([self.end], [], [], seconds)[0]:
            return True
        try:
            part = os.read(self.end, 65536)
        except OSError:
            return False
        self.text += part.decode(errors="replace")
        return bool(part)

    def wait_for(self, pattern, after=0):
        """The place behind what comes first after that one. Fails when it does not come."""
        until = time.monotonic() + support.TIMEOUT
        while True:
            found = re.compile(pattern, re.S).search(self.text, after)
            if found:
                return found.end()
            if time.monotonic() > until or not self.read_some(1):
                raise AssertionError(f"no {pattern!r} in {self.text[after:]!r}")

    def ended(self):
        """Its exit status, once it has ended by itself."""
        until = time.monotonic() + support.TIMEOUT
        while self.read_some(1):
            if time.monotonic() > until:
                raise AssertionError(f"it does not end: {self.text[-500:]!r}")
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.end)
        return self.status

    def kill(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            os.close(self.end)


class QueryPrompt(TracedTest):
    SCHED = ()

    def setUp(self):
        super().setUp()
        if not (BIN.parent / "lib/karst-sql/libduckdb.so").exists():
            raise unittest.SkipTest("script/setup has not fetched DuckDB")
        self.path = self.run_traced(build("waiting", "view/waiting.cc", "-O1", "-pthread")).trace.path
        self.home = self.directory / "home"
        self.home.mkdir()
        self.history = self.home / ".local/state/karst/query.history"

    def open(self, *words, **variables):
        terminal = Terminal([KARST, "query", *map(str, words or (self.path,))], self.directory,
                            HOME=str(self.home), **variables)
        self.addCleanup(terminal.kill)
        return terminal

    def prompt(self, *words, **variables):
        terminal = self.open(*words, **variables)
        return terminal, terminal.wait_for("karst> ")

    def test_statements_of_several_lines_and_what_ends_it(self):
        terminal, at = self.prompt("--no-pager", self.path)
        terminal.type("SELECT 6 * 7\n")
        at = terminal.wait_for(r"\.\.\.> ", at)
        terminal.type("AS answer, ';' AS no_end\n")
        at = terminal.wait_for(r"\.\.\.> ", at)
        terminal.type("; -- the end\n")
        at = terminal.wait_for(r"answer.*42.*karst> ", at)
        terminal.type("SELECT nothing;\n")
        at = terminal.wait_for(r"karst: .*nothing.*karst> ", at)
        # What a statement makes stays.
        terminal.type("CREATE VIEW mine AS SELECT 77 AS seven; SELECT * FROM mine;\n")
        at = terminal.wait_for(r"77.*karst> ", at)
        terminal.type(".tables\n")
        at = terminal.wait_for(r"calls .*lock_waits .*karst> ", at)
        terminal.type(".schema requests\n")
        at = terminal.wait_for(r"requests: .*request .*BIGINT.*karst> ", at)
        terminal.type(".schema nothing\n")
        at = terminal.wait_for(r"no table nothing.*karst> ", at)
        terminal.type(".sch\n")
        at = terminal.wait_for(r"there is no \.sch;.*karst> ", at)
        terminal.type("\x04")
        self.assertEqual(terminal.ended(), 0)
        terminal, at = self.prompt()
        terminal.type(".quit\n")
        self.assertEqual(terminal.ended(), 0)

    def test_the_newest_trace_and_other_formats(self):
        terminal, at = self.prompt("--format", "csv")
        terminal.type("SELECT 1 AS a, 'b' AS c;\n")
        at = terminal.wait_for("\"a\",\"c\"\r\n1,\"b\"\r\n.*karst> ", at)
        terminal.type("\x04")
        self.assertEqual(terminal.ended(), 0)

    def test_ctrl_c_drops_a_line_or_ends_a_query(self):
        terminal, at = self.prompt()
        terminal.type("SELECT 1 +\n")
        at = terminal.wait_for(r"\.\.\.> ", at)
        terminal.type("garbage\x03")
        at = terminal.wait_for(r"\^C.*karst> ", at)
        terminal.type("SELECT 5 + 6 AS n;\n")
        at = terminal.wait_for("11.*karst> ", at)
        for _ in range(2):  # and again
            terminal.type(ENDLESS + ";\n")
            # It tells how far it is, with or without a number, and wipes that.
            at = terminal.wait_for(r"karst: query +(\d+%|\.\.\.)", at)
            terminal.type("\x03")
            at = terminal.wait_for(r"\x1b\[K.*karst: interrupted\r\n.*karst> ", at)
        terminal.type("SELECT count(*) > 0 AS some FROM calls;\n")
        at = terminal.wait_for("some.*true.*karst> ", at)
        terminal.type("\x04")
        self.assertEqual(terminal.ended(), 0)

    def test_completion(self):
        terminal, at = self.prompt("--no-pager", self.path)
        # One word: it is filled in. A keyword as it was begun, a table behind FROM, a column behind a dot, a macro.
        terminal.type("SELE\tmax(t.durat\t) > 0 AS filled FRO\t thread_st\t t;\n")
        at = terminal.wait_for(r"filled[^;]*karst> ", at)
        terminal.type("SELECT * FROM ancest\t1);\n")
        at = terminal.wait_for(r"call function .*karst> ", at)
        # Several: their common begin, then a list.
        terminal.type("SELECT * FROM lock_\t")
        at = terminal.wait_for(r"lock_holds +lock_waits\r\n.*karst> SELECT \* FROM lock_", at)
        terminal.type("\x03")
        at = terminal.wait_for("karst> ", at)
        terminal.type("CREATE VIEW zebras AS SELECT 1 AS stripes;\n")
        at = terminal.wait_for("karst> ", at)
        terminal.type("FROM zeb\t;\n")
        at = terminal.wait_for(r"stripes.*karst> ", at)
        terminal.type(".ta\t\n")
        at = terminal.wait_for(r"calls .*karst> ", at)
        terminal.type("\x04")
        self.assertEqual(terminal.ended(), 0)

    def test_history_is_kept_for_the_user_alone(self):
        terminal, at = self.prompt()
        terminal.type("SELECT 'first\\',\n")
        at = terminal.wait_for(r"\.\.\.> ", at)
        terminal.type("11 + 22 AS sum;\n")
        at = terminal.wait_for("33.*karst> ", at)
        terminal.kill()
        terminal.status = -9
        # It is there, whatever ended the program.
        self.assertEqual(self.history.read_text(), "SELECT 'first\\\\',\\n11 + 22 AS sum;\n")
        self.assertEqual(stat.S_IMODE(self.history.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(self.history.parent.stat().st_mode), 0o700)
        terminal, at = self.prompt()
        terminal.type("\x1b[A\n")
        at = terminal.wait_for("33.*karst> ", at)
        terminal.type("\x04")
        self.assertEqual(terminal.ended(), 0)
        # XDG_STATE_HOME names another place.
        state = self.directory / "state"
        terminal, at = self.prompt(XDG_STATE_HOME=str(state))
        terminal.type(".quit\n")
        self.assertEqual(terminal.ended(), 0)
        self.assertEqual((state / "karst/query.history").read_text(), ".quit\n")

    def test_history_of_others_is_left_alone(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, as sudo has it")
        for path in (self.home, self.home / ".local"):
            path.mkdir(exist_ok=True)
            os.chown(path, 65534, 65534)
        terminal, at = self.prompt()
        terminal.type("SELECT 1;\n")
        terminal.wait_for("karst> ", at)
        terminal.type("\x04")
        self.assertEqual(terminal.ended(), 0)
        self.assertEqual([p.name for p in self.home.rglob("*")], [".local"])
        # A link, or a file of another user, is neither read nor written.
        os.chown(self.home, 0, 0)
        shutil.rmtree(self.home / ".local")
        secret = self.directory / "secret"
        secret.write_text("SELECT 'xyzzy';\n")
        self.history.parent.mkdir(parents=True)
        self.history.symlink_to(secret)
        terminal, at = self.prompt()
        terminal.type("\x1b[A\n")
        at = terminal.wait_for("karst> ", at)
        terminal.type("SELECT 22 AS b;\n")
        terminal.wait_for("b;.*22.*karst> ", at)
        terminal.type("\x04")
        self.assertEqual(terminal.ended(), 0)
        self.assertNotIn("xyzzy", terminal.text)
        self.assertEqual(secret.read_text(), "SELECT 'xyzzy';\n")

    def test_no_control_character_reaches_the_terminal(self):
        evil = "\x1b]0;pwned\x07"
        self.history.parent.mkdir(parents=True, mode=0o700)
        self.history.write_bytes(f"SELECT 'old{evil}';\n".encode())
        terminal, at = self.prompt()
        terminal.type("SELECT chr(27) || ']0;pwned' || chr(7) AS \"a\", chr(155) AS b, [chr(27)] AS c;\n")
        at = terminal.wait_for(r"\\x1b\]0;pwned\\x07.*karst> ", at)
        terminal.type("SELECT (chr(27) || ']0;pwned')::INTEGER;\n")  # what an error repeats
        at = terminal.wait_for(r"Conversion Error.*karst> ", at)
        terminal.type("SELECT error(chr(27) || ']0;pwned');\n")
        at = terminal.wait_for(r"\\x1b\]0;pwned.*karst> ", at)
        terminal.type("\x1b[A\x1b[A\x1b[A\x1b[A\x03")
        at = terminal.wait_for(r"old.*karst> ", at)
        terminal.type("\x04")
        self.assertEqual(terminal.ended(), 0)
        self.assertNotIn("\x1b]0", terminal.text)
        self.assertNotIn("\x9b", terminal.text)

    def test_a_query_of_the_command_line_tells_how_far_it_is_and_ends_by_ctrl_c(self):
        terminal = self.open(self.path, ENDLESS)
        terminal.wait_for(r"karst: query +(\d+%|\.\.\.)")
        terminal.type("\x03")
        self.assertEqual(terminal.ended(), -signal.SIGINT)

    def test_sql_comes_from_standard_input(self):
        ask = lambda sql, *words: subprocess.run([KARST, "query", *words, "--format", "csv"], input=sql, text=True,
                                                 capture_output=True, timeout=support.TIMEOUT, cwd=self.directory)
        done = ask("CREATE VIEW v AS SELECT 3 AS three;\nSELECT * FROM v", self.path)
        self.assertEqual((done.stdout, done.stderr), ('"three"\n3\n', ""))
        self.assertEqual(ask("SELECT 4 AS four;").stdout, '"four"\n4\n')  # of the newest trace
        self.assertIn("no SQL is given", ask(" ;\n", self.path).stderr)
        self.assertIn("a byte 0", ask("SELECT\0 1", self.path).stderr)
        # What is in the command line is asked, and standard input is left alone.
        self.assertEqual(ask("SELECT 1 AS one", self.path, "SELECT 2 AS two").stdout, '"two"\n2\n')
        # A word that is a file is no SQL.
        shutil.copy(self.path, self.directory / "trace.old")
        self.assertEqual(ask("SELECT 5 AS five", "trace.old").stdout, '"five"\n5\n')


if __name__ == "__main__":
    main()
