"""What ps, top and the choice of a process do on a terminal, and where there is none."""
import fcntl
import os
import pty
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

from control import ControlTest
from support import KARST, TIMEOUT, main


def fake_fzf(test, choose):
    """An environment with what looks like fzf: it gets the lines, and prints what `choose` (Python) does with them."""
    directory = test.directory / "bin"
    directory.mkdir(exist_ok=True)
    fzf = directory / "fzf"
    fzf.write_text(f"#!{sys.executable}\nimport sys\nlines = sys.stdin.read().splitlines()\n{choose}\n")
    fzf.chmod(0o755)
    return {**os.environ, "PATH": f"{directory}:{os.environ['PATH']}"}


NO_FZF = "sys.exit(127)"  # as a shell says that there is none


class Terminal:
    """A command with a pseudo-terminal as its controlling one."""

    def __init__(self, test, *command, rows=24, columns=80, env=None):
        self.master, self.slave = pty.openpty()
        test.addCleanup(os.close, self.master)
        test.addCleanup(os.close, self.slave)
        self.test = test
        self.seen = ""
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.child = subprocess.Popen(
            [KARST, *map(str, command)], stdin=self.slave, stdout=self.slave, stderr=self.slave, cwd=test.directory,
            env=env or fake_fzf(test, NO_FZF), start_new_session=True, preexec_fn=self.as_from_a_shell)
        test.addCleanup(self.child.wait)
        test.addCleanup(self.child.kill)

    @staticmethod
    def as_from_a_shell():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        for each in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_DFL)  # what runs tests in the background ignores some, which is inherited
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def resize(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        """What came since the last time; waits so long for the first of it."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        text = os.read(self.master, 1 << 16).decode(errors="replace") if ready else ""
        self.seen += text
        return text

    def read_until(self, pattern):
        """Reads until the pattern is found in what comes from now on; returns the match."""
        text = ""
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            text += self.read(0.2)
            found = re.search(pattern, text)
            if found:
                return found
        self.test.fail(f"{pattern!r} did not come; {text!r} did")

    def type(self, text):
        os.write(self.master, text.encode())

    def end(self):
        """The exit status, once all output was read."""
        deadline = time.monotonic() + TIMEOUT
        while self.child.poll() is None and time.monotonic() < deadline:
            self.read(0.05)
        while self.read(0.05):
            pass
        return self.child.returncode

    def gives_keys_at_once(self):
        return termios.tcgetattr(self.slave)[3] & (termios.ICANON | termios.ECHO) == 0

    def is_as_before(self):
        return termios.tcgetattr(self.slave) == self.before


class Choice(ControlTest):
    def start_named(self):
        """Other tests run at the same time: a name whose letters, in this order, are in no other's."""
        self.letters = "".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=14))
        return self.start("paced", name=f"choice-{self.letters}")

    def test_letters_narrow_the_list_and_enter_takes_what_is_left(self):
        self.start_named()
        terminal = Terminal(self, "status")
        terminal.read_until("a number chooses")
        terminal.type(f"CHO{self.letters.upper()}\n")  # its letters in this order, whatever their case
        terminal.read_until(rf" 1\) +{self.pid} .*choice-[\s\S]*Enter takes it")
        terminal.type("\n")
        terminal.read_until(f"process {self.pid} choice-")
        self.assertEqual(terminal.end(), 0, terminal.seen)

    def test_a_number_chooses_from_the_list_or_is_a_pid(self):
        self.start_named()
        for answer in ("1", None):
            terminal = Terminal(self, "status")
            terminal.read_until("a number chooses")
            terminal.type(f"choice-{self.letters}\n")
            terminal.read_until("Enter takes it")
            terminal.type(f"{answer or self.pid}\n")
            terminal.read_until(f"process {self.pid} choice-")
            self.assertEqual(terminal.end(), 0, terminal.seen)

    def test_nothing_fits_and_nothing_is_chosen(self):
        self.start_named()
        terminal = Terminal(self, "off")
        terminal.read_until("a number chooses")
        terminal.type("~no~such~name~\n")
        terminal.read_until("nothing fits '~no~such~name~'")
        terminal.type("\n")
        terminal.read_until("a number chooses")
        terminal.type("\x04")  # the end of input
        self.assertEqual(terminal.end(), 1, terminal.seen)
        self.assertIn("no process was chosen", terminal.seen)
        self.assertTrue(self.status()["enabled"])

    def test_ctrl_c_ends_the_choice(self):
        self.start_named()
        terminal = Terminal(self, "off")
        terminal.read_until("a number chooses")
        terminal.type("\x03")
        self.assertEqual(terminal.end(), -signal.SIGINT)
        self.assertTrue(self.status()["enabled"])

    def test_without_a_terminal_the_candidates_are_listed(self):
        self.start_named()
        said = self.karst("status", status=1).stderr
        self.assertIn("which process? These are traced:", said)
        self.assertEqual(said.count("karst:"), 1)

    def test_several_of_one_name(self):
        name = f"twins-{os.getpid()}"
        self.start("paced", name=name)
        first = self.pid
        second = subprocess.Popen([KARST, "run", "-o", self.directory / "second.karst", "--", self.directory / name, "paced"],
                                  cwd=self.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(second.communicate)
        self.assertEqual(second.stdout.readline(), "ready\n")
        said = self.karst("off", name, status=1).stderr
        self.assertIn(f"several traced processes are called '{name}'; give the number of one:", said)
        self.assertEqual(len(re.findall(rf"^ +\d+ +on +{name}$", said, re.M)), 2, said)
        self.assertRegex(said, rf"(?m)^ +{first} +on +{name}")
        self.karst("off", first)
        self.assertFalse(self.status()["enabled"])


    def test_fzf_chooses_where_it_is(self):
        self.start_named()
        terminal = Terminal(self, "status", env=fake_fzf(self, f"print(next(l for l in lines if '{self.letters}' in l))"))
        terminal.read_until(f"process {self.pid} choice-")
        self.assertEqual(terminal.end(), 0, terminal.seen)
        for nothing in ("sys.exit(130)", "print('none of them')"):
            terminal = Terminal(self, "off", env=fake_fzf(self, nothing))
            terminal.read_until("no process was chosen")
            self.assertEqual(terminal.end(), 1, terminal.seen)
        self.assertTrue(self.status()["enabled"])

    def test_attaching_by_name(self):
        name = "plain-" + "".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=14))
        shutil.copy("/bin/sleep", self.directory / name)
        sleeps = [subprocess.Popen([self.directory / name, "100"]) for _ in range(2)]
        for one in sleeps:
            self.addCleanup(one.wait)
            self.addCleanup(one.kill)
        said = self.karst("attach", name, status=1).stderr
        self.assertIn(f"several processes are called '{name}'; give the number of one:", said)
        self.assertEqual(len(re.findall(rf"(?m)^ +\d+ .* {name}$", said)), 2, said)
        self.assertIn(f"did you mean '{name}'?", self.karst("attach", name[:-1], status=1).stderr)
        self.assertIn("which process? Its number or name is needed", self.karst("attach", status=1).stderr)
        sleeps[1].kill()
        sleeps[1].wait()
        # Its one thread sleeps in a system call that the kernel begins anew when it was interrupted.
        self.assertIn(f"process {sleeps[0].pid} ({name}) is traced from now on", self.karst("attach", name).stderr)


class Top(ControlTest):
    def start_top(self, rows=12, columns=40):
        self.start("busy")
        terminal = Terminal(self, "top", self.pid, "--interval", "50ms", rows=rows, columns=columns)
        terminal.read_until(r"\x1b\[H[\s\S]*\x1b\[J")
        self.assertTrue(terminal.gives_keys_at_once())
        return terminal

    def frame(self, terminal):
        """Lines of a whole frame that comes from now on; the one before it may be of another size."""
        text = terminal.read_until(r"\x1b\[J[\s\S]*?\x1b\[H([\s\S]*?)\x1b\[J").group(1)
        return [re.sub(r"\x1b\[K", "", line) for line in text.replace("\r", "").split("\n")]

    def check_frame(self, terminal, rows, columns):
        lines = self.frame(terminal)
        self.assertLess(len(lines), rows + 1, lines)
        self.assertLessEqual(max(map(len, lines)), columns, lines)
        self.assertRegex(lines[0], rf"^{self.pid} control-worker: ")
        self.assertIn("calls/s", lines[1])
        return lines

    def test_fits_the_terminal_also_when_its_size_changes_and_q_ends_it(self):
        terminal = self.start_top()
        self.check_frame(terminal, 12, 40)
        terminal.resize(5, 24)
        os.kill(terminal.child.pid, signal.SIGWINCH)
        self.frame(terminal)  # it may have been begun before
        self.check_frame(terminal, 5, 24)
        terminal.resize(30, 100)
        self.frame(terminal)
        lines = self.check_frame(terminal, 30, 100)
        self.assertIn("function", lines[2])
        terminal.type("x")  # means nothing: another look
        self.frame(terminal)
        terminal.type("q")
        self.assertEqual(terminal.end(), 0, terminal.seen)
        self.assertTrue(terminal.is_as_before())
        self.assertTrue(self.status()["enabled"])

    def test_signals_that_end_it_leave_the_terminal_as_it_was(self):
        terminal = self.start_top()
        terminal.type("\x03")
        self.assertEqual(terminal.end(), -signal.SIGINT)
        self.assertTrue(terminal.is_as_before())
        terminal = Terminal(self, "top", self.pid, "--interval", "3600s")
        terminal.read_until(r"\x1b\[J")
        self.assertTrue(terminal.gives_keys_at_once())
        terminal.child.send_signal(signal.SIGTERM)  # it need not wait for the hour to end
        self.assertEqual(terminal.end(), -signal.SIGTERM)
        self.assertTrue(terminal.is_as_before())

    def test_stopped_and_continued(self):
        terminal = self.start_top()
        os.kill(terminal.child.pid, signal.SIGTSTP)
        # The leader of a session whose parent is in another one has nobody to continue it: the kernel lets the signal of
        # a terminal pass by, and top goes on.
        self.frame(terminal)
        self.assertTrue(terminal.gives_keys_at_once())
        terminal.type("q")
        self.assertEqual(terminal.end(), 0)
        self.assertTrue(terminal.is_as_before())

    def test_the_programs_end_is_said_and_the_terminal_as_it_was(self):
        terminal = self.start_top()
        os.kill(self.pid, signal.SIGKILL)
        self.assertEqual(terminal.end(), 1)
        said = re.sub(r"\s+", " ", terminal.seen)  # in lines as wide as the terminal
        self.assertRegex(said, rf"process {self.pid} \(control-worker\) has ended")
        self.assertTrue(terminal.is_as_before())

    def test_plain_text_where_there_is_no_terminal(self):
        self.start("busy")
        said = self.karst("top", self.pid, "--once").stdout
        self.assertNotIn("\x1b", said)
        self.assertRegex(said, rf"^{self.pid} control-worker: on; ")
        child = subprocess.Popen([KARST, "top", str(self.pid), "--interval", "20ms"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, text=True)
        for _ in range(2):  # one look behind the other, without a key
            while not child.stdout.readline().startswith(f"{self.pid} "):
                pass
        child.terminate()
        child.communicate()
        self.assertEqual(child.returncode, -signal.SIGTERM)


if __name__ == "__main__":
    main()
