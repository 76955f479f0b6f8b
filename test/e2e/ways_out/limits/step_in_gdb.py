"""Run by gdb: steps through the second call of calls() and prints, after every instruction, where it is and the names of
all frames, innermost first."""
import gdb


def frames():
    frame = gdb.newest_frame()
    while frame is not None:
        yield frame.name() or "?"
        frame = frame.older()


for command in ("set debuginfod enabled off", "set disable-randomization off", "set startup-with-shell off",
                "break calls", "run", "continue"):
    gdb.execute(command, to_string=True)
for _ in range(500):
    gdb.execute("stepi", to_string=True)
    names = list(frames())
    if "calls" not in names and names[0] == "main":
        break
    pc = gdb.newest_frame().pc()
    library = gdb.solib_name(pc)
    where = "hook" if library and "libkarst" in library else "library" if library else "program"
    if where == "program" and names[0] == "?":
        where = "trampoline"
    print("step", where, *names)
gdb.execute("kill", to_string=True)
