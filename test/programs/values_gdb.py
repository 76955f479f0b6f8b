"""Runs inside gdb: the arguments and returned values of the first calls of some functions, as gdb sees them.

  gdb -batch -nx -x values_gdb.py PROGRAM      with KARST_VALUES=JSON in the environment:
    functions  names to addresses      at_entry  break at the first instruction, else behind the prologue
    calls      of each function        arguments, output: the program's arguments, and the file that the answer goes to
"""
import json
import os

import gdb

TEXT = 64  # bytes of a text that karst notes
DEPTH = 4


def text_at(address, size=None):
    """A text as karst has it: latin-1, and whether it is cut."""
    memory = gdb.selected_inferior()
    if size is not None:
        return [bytes(memory.read_memory(address, min(size, TEXT))).decode("latin-1") if size else "", size > TEXT]
    found = b""
    while len(found) <= TEXT:
        byte = bytes(memory.read_memory(address + len(found), 1))
        if byte == b"\0":
            return [found.decode("latin-1"), False]
        found += byte
    return [found[:TEXT].decode("latin-1"), True]


def seen(value, depth=0):
    """[kind, what it is]; members by name."""
    if value.is_optimized_out:
        return ["gone", None]
    kind = value.type.strip_typedefs()
    code = kind.code
    if code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        return seen(value.referenced_value(), depth)
    if code == gdb.TYPE_CODE_BOOL:
        return ["bool", bool(value)]
    if code in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_ENUM):
        number = int(value)
        return ["enum", [str(value), number]] if code == gdb.TYPE_CODE_ENUM else ["int", [number, kind.sizeof]]
    if code == gdb.TYPE_CODE_FLT:
        return ["float", float(value)] if kind.sizeof <= 8 else ["other", None]
    if code == gdb.TYPE_CODE_PTR:
        address = int(value)
        target = kind.target().strip_typedefs()
        if address != 0 and target.sizeof == 1 and target.code == gdb.TYPE_CODE_INT and \
                target.unqualified().name in ("char", "unsigned char", "signed char"):
            if target.unqualified() == target:
                return ["buffer", address]  # what is in it before it is filled is of the stack
            try:
                return ["text", [address, *text_at(address)]]
            except gdb.MemoryError:
                return ["text", [address, None, None]]
        return ["address", address]
    if code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        name = kind.unqualified().name or ""
        if name.startswith("std::__cxx11::basic_string<char,"):
            return ["text", [0, *text_at(int(value["_M_dataplus"]["_M_p"]), int(value["_M_string_length"]))]]
        if name.startswith("std::basic_string_view<char,"):
            return ["text", [0, *text_at(int(value["_M_str"]), int(value["_M_len"]))]]
        if depth < DEPTH:
            return ["members", {f.name: seen(value[f], depth + 1) for f in kind.fields()
                                if f.name and hasattr(f, "bitpos") and not f.is_base_class}]
    return ["other", None]


def safely(value):
    try:
        return seen(value)
    except gdb.error as error:
        return ["error", str(error)]


class Returned(gdb.FinishBreakpoint):
    def __init__(self, frame, call):
        super().__init__(frame, internal=True)
        self.silent = True
        self.call = call

    def stop(self):
        if self.return_value is not None:
            self.call["returned"] = safely(self.return_value)
        return False


def arguments(frame):
    try:
        block = frame.block()
    except RuntimeError:  # without debug information
        return {}
    while block is not None and block.function is None:
        block = block.superblock
    return {s.print_name: safely(s.value(frame)) for s in block if s.is_argument} if block is not None else {}


def behind_prologue(begin):
    """gdb looks for one at the first instruction, which is a sled: take the function's second line instead."""
    block = gdb.block_for_pc(begin)
    lines = sorted({entry.pc for entry in gdb.find_pc_line(begin + 8).symtab.linetable() if block.start <= entry.pc < block.end})
    return lines[1] if len(lines) > 1 else begin


def main():
    wish = json.loads(os.environ["KARST_VALUES"])
    for command in ("set pagination off", "set confirm off", "set breakpoint pending off", "set print entry-values no",
                    "set python print-stack full", "set style enabled off"):
        gdb.execute(command)
    for name in ("KARST_VALUES", "LINES", "COLUMNS"):
        gdb.execute("unset environment " + name)
    gdb.execute("starti " + wish["arguments"], to_string=True)  # the program is where it will be
    calls = {}
    places = {}
    for name, begin in wish["functions"].items():
        try:
            where = begin if wish["at_entry"] else behind_prologue(begin)
            breakpoint = gdb.Breakpoint("*" + hex(where))
        except gdb.error:
            continue
        breakpoint.silent = True
        places[breakpoint.number] = name
        calls[name] = []
    stopped = []
    gdb.events.stop.connect(lambda event: stopped.append([b.number for b in getattr(event, "breakpoints", [])]))
    gdb.execute("continue", to_string=True)
    while gdb.selected_inferior().pid != 0:
        numbers = [n for n in (stopped.pop() if stopped else []) if n in places]
        stopped.clear()
        if not numbers:
            break
        frame = gdb.newest_frame()
        for number in numbers:
            name = places[number]
            call = {"arguments": arguments(frame)}
            calls[name].append(call)
            if len(calls[name]) == wish["calls"]:
                next(b for b in gdb.breakpoints() if b.number == number).enabled = False
        try:
            Returned(frame, call)
        except (gdb.error, ValueError):
            pass
        gdb.execute("continue", to_string=True)
    with open(wish["output"], "w", encoding="utf-8") as file:
        json.dump(calls, file)


main()
