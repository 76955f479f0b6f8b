"""Karst inside gdb: the calls that were recorded, of the process or the core that gdb looks at.

    (gdb) source .../share/karst/karst-gdb.py
    (gdb) karst where                 the calls that each thread is in, and since when
    (gdb) karst save [FILE]           the whole history as a trace

The command karst is found beside this file (../../bin), else in PATH.
"""
import os
import re
import shutil
import subprocess

import gdb

HERE = os.path.dirname(os.path.realpath(__file__))  # gdb knows it while it reads this file alone


def find_karst():
    beside = os.path.join(HERE, "..", "..", "bin", "karst")
    found = os.path.normpath(beside) if os.access(beside, os.X_OK) else shutil.which("karst")
    if found is None:
        raise gdb.GdbError("the command karst is neither beside karst-gdb.py nor in PATH")
    return found


def core_file():
    """The path of the core that gdb has open; None for a live process."""
    text = gdb.execute("info target", to_string=True)
    match = re.search(r"core dump file:\s+`(.*)', file type", text)
    return match[1] if match else None


def run(*words):
    # Its own process group: Ctrl-C in gdb ends it, and gdb stays.
    done = subprocess.run([find_karst(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    gdb.write(done.stdout)
    if done.returncode != 0:
        raise gdb.GdbError("karst ended with status %d" % done.returncode)


def subject():
    """What karst shall look at, and options that go with it."""
    core = core_file()
    program = gdb.current_progspace().filename
    if core is not None:
        return core, (["--program", program] if program else [])
    pid = gdb.selected_inferior().pid
    if pid == 0:
        raise gdb.GdbError("there is neither a process nor a core to look at")
    return str(pid), []


class Karst(gdb.Command):
    """The calls that Karst recorded: 'karst where', 'karst save [FILE]'."""

    def __init__(self):
        super().__init__("karst", gdb.COMMAND_DATA, prefix=True)


class Where(gdb.Command):
    """Show the calls that each thread is in, and since when."""

    def __init__(self):
        super().__init__("karst where", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        what, options = subject()
        run("where", what, *options)


class Save(gdb.Command):
    """Write the recorded history as a trace: karst save [FILE]."""

    def __init__(self):
        super().__init__("karst save", gdb.COMMAND_DATA, gdb.COMPLETE_FILENAME)

    def invoke(self, argument, from_tty):
        what, options = subject()
        file = gdb.string_to_argv(argument)
        if len(file) > 1:
            raise gdb.GdbError("one file name is needed: karst save [FILE]")
        command = "recover" if core_file() is not None else "snapshot"
        run(command, what, *options, *(["-o", file[0]] if file else []))


Karst()
Where()
Save()
