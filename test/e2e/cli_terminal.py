"""The same commands on a terminal: widths, folding, colour, the pager."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import unittest

from cli_case import Case, KARST, main


class Terminal(Case):
    """Commands whose output, and with `typed` also the input, is a terminal."""

    def on_terminal(self, *arguments, columns=80, typed=False, **variables):
        parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "PAGER", "KARST_PAGER", "NO_COLOR",
                                                                          "SUDO_UID")}
        process = subprocess.Popen([KARST, *arguments], stdin=child if typed else subprocess.DEVNULL, stdout=child,
                                   stderr=subprocess.PIPE, env={**environment, "TERM": "xterm", **variables})
        os.close(child)
        text = b""
        while True:
            try:
                part = os.read(parent, 65536)
            except OSError:  # the terminal's other end is closed
                break
            if not part:
                break
            text += part
        os.close(parent)
        self.status = process.wait(timeout=60)
        self.said = process.stderr.read().decode()
        process.stderr.close()
        return text.decode().replace("\r", "")

    def plain_lines(self, *arguments, **options):
        return re.sub(r"\x1b\[[0-9;]*m", "", self.on_terminal(*arguments, **options)).splitlines()

    def test_no_line_is_wider_than_the_terminal(self):
        for name in ("sample", "long", "names"):
            for command in (["report", "--sort", "p99"], ["info"], ["slow"], ["explain"], ["explain", "--slowest", "."], ["calls"], ["tree"], ["tree", "--no-fold"],
                            ["stacks"], ["stacks", "--share", "0"], ["graph"], ["hist"],
                            ["tree", "--function", ".", "--slowest", "3"]):
                for columns in (40, 80, 120, 200):
                    lines = self.plain_lines(*command, self.path(name + ".karst"), columns=columns)
                    self.assertEqual((self.status, self.said), (0, ""))
                    self.assertLessEqual(max(map(len, lines)), columns, (command, name, columns))

    def test_the_name_is_never_pushed_out(self):
        lines = self.plain_lines("report", self.path("long.karst"), "--sort", "calls")
        self.assertRegex(lines[1], r"^ *self% +self +total +calls .* max  function$")
        self.assertRegex(lines[2], r"^ +0\.\d% .* 300 .* app::leaf$")
        self.assertRegex(lines[3], r" app::Server::handle_request$")

    def test_messages_fit_a_terminal_too(self):
        parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        for arguments in (["reprot"], ["report", "--sort", "totl"], ["export", "--to", "svg", "-o", "x", self.path("sample.karst")]):
            subprocess.run([KARST, *arguments], stderr=child, timeout=60)
            lines = os.read(parent, 65536).decode().splitlines()
            self.assertTrue(lines[0].startswith("karst: "))
            self.assertLessEqual(max(map(len, lines)), 80, lines)
        os.close(child)
        os.close(parent)

    def test_repeats_fold_where_nothing_is_below_them(self):
        lines = self.plain_lines("tree", self.path("long.karst"))
        self.assertEqual([line for line in lines if "leaf" in line], ["  1.500 us        app::leaf  x300"])
        self.assertEqual(len([line for line in lines if "handle_request" in line]), 31)
        self.assertEqual(len([line for line in self.plain_lines("tree", self.path("long.karst"), "--no-fold")
                              if "leaf" in line]), 300)
        text = self.good("tree", self.path("long.karst"))
        self.assertEqual((text.count("app::leaf()\n"), " x300" in text), (300, False))
        self.assertIn("app::leaf()  x300\n", self.good("tree", "--fold", self.path("long.karst")))

    def test_columns_are_those_that_are_asked_for(self):
        lines = self.plain_lines("report", self.path("long.karst"), "--columns", "p99,calls", "--sort", "calls")
        self.assertRegex(lines[1], r"^ +p99 +calls  function$")
        self.assertRegex(lines[2], r"^ +5 ns +300  app::leaf$")
        self.assertIn("there is no column 'size'; there are: self_share, ",
                      self.bad(2, "report", self.path("sample.karst"), "--columns", "size"))

    def test_wide_is_what_a_pipe_gets(self):
        path = self.path("long.karst")
        for command in ("report", "info"):
            piped = self.good(command, path)
            self.assertEqual("\n".join(self.plain_lines(command, path, "--wide")) + "\n", piped)
            self.assertEqual("\n".join(self.plain_lines(command, path)), self.good(command, path, "--width", "80")[:-1])

    def test_colour_is_left_out_where_nobody_wants_it(self):
        path = self.path("sample.karst")
        self.assertIn("\x1b[1m", self.on_terminal("report", path))
        self.assertNotIn("\x1b", self.on_terminal("report", path, NO_COLOR="1"))
        self.assertNotIn("\x1b", self.good("report", path))

    def test_the_pager_gets_what_is_printed_and_keeps_the_status(self):
        path = self.path("sample.karst")
        paged = self.on_terminal("report", path, typed=True, KARST_PAGER="sed s/^/paged:/", NO_COLOR="1")
        self.assertEqual(self.status, 0)
        self.assertTrue(all(line.startswith("paged:") for line in paged.splitlines()), paged)
        self.assertIn("work", paged)
        for without in ({"KARST_PAGER": ""}, {"KARST_PAGER": "cat"}, {"KARST_PAGER": "no-such-pager"}, {"TERM": "dumb"},
                        {"KARST_PAGER": "sed s/^/paged:/", "PAGER": "false", "typed": False}):
            text = self.on_terminal("report", path, **{"typed": True, **without})
            self.assertIn("work", text)
            self.assertNotIn("paged:", text)
        self.assertNotIn("paged:", self.on_terminal("report", path, "--no-pager", typed=True, PAGER="sed s/^/paged:/"))
        # Errors are not paged, and a pager that is left at once is none.
        self.on_terminal("report", self.path("none.karst"), typed=True, PAGER="sed s/^/paged:/")
        self.assertEqual(self.status, 1)
        self.assertIn("no such file", self.said)
        self.on_terminal("tree", self.path("big.karst"), typed=True, PAGER="head -1")
        self.assertEqual((self.status, self.said), (0, ""))

    @unittest.skipIf(os.geteuid() != 0, "only root is protected")
    def test_the_environment_chooses_no_pager_for_root_under_sudo(self):
        text = self.on_terminal("report", self.path("sample.karst"), typed=True, PAGER="sed s/^/paged:/", SUDO_UID="1000")
        self.assertIn("work", text)
        self.assertNotIn("paged:", text)


if __name__ == "__main__":
    main()
