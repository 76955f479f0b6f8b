"""What libkarst's own assembly tells unwinders of its frames is true at every instruction, also of ways that no test takes.

Follows each function by what its instructions do to the stack pointer, along each branch, and compares with its rows of
.eh_frame: where the frame is, and where each saved register lies.
"""
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from support import BIN, ROOT, TracedTest, main  # noqa: E402

LIBRARY = BIN.parent / "lib/libkarst.so"
ASSEMBLY = ROOT / "arch/x86_64"
UNKNOWN = None  # a stack pointer that was aligned


class Wrong(Exception):
    pass


def rows_of_frames(text):
    """{begin of a function: (its end, [(address, register, offset, {saved register: offset})])} of `readelf`'s text."""
    frames = {}
    rows = columns = None
    for line in text.splitlines():
        found = re.search(r"FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
        words = re.sub(r"r\d+ \((\w+)\)", r"\1", line).split()
        if found:
            rows = []
            frames[int(found[1], 16)] = (int(found[2], 16), rows)
        elif words[:2] == ["LOC", "CFA"]:
            columns = words[2:]
        elif rows is not None and columns and len(words) == len(columns) + 2 and re.fullmatch("[0-9a-f]{16}", words[0]):
            register, _, offset = words[1].partition("+")
            saved = {name: place for name, place in zip(columns, words[2:]) if place != "u"}
            rows.append((int(words[0], 16), register, int(offset or 0), saved))  # 0: an expression, as a PLT has
        elif not words:
            rows = None
    return frames


def row_at(rows, address):
    """Before the first one a frame is as the call made it."""
    return max((row for row in rows if row[0] <= address), key=lambda row: row[0], default=(0, "rsp", 8, {"ra": "c-8"}))


class Frame:
    """What was done to the stack so far: bytes below the frame's address, the same at rbp if that has it, saved registers."""

    def __init__(self, depth, base=UNKNOWN, saved=()):
        self.depth, self.base, self.saved = depth, base, dict(saved)

    def copy(self):
        return Frame(self.depth, self.base, self.saved)

    def key(self):
        return self.depth, self.base, tuple(sorted(self.saved.items()))

    def compare(self, address, row):
        _, register, offset, saved = row
        depth = {"rsp": self.depth, "rbp": self.base}[register]
        if depth != offset:
            raise Wrong(f"{address:x}: the frame is {register}+{depth}, not {register}+{offset}")
        for name, place in saved.items():
            if name == "ra":
                # In a register while vfork's child may write over the stack; else where the call put it.
                if place not in ("c-8", "rdi"):
                    raise Wrong(f"{address:x}: return address at {place}")
            elif place != f"c-{self.saved.get(name)}":
                raise Wrong(f"{address:x}: {name} is at c-{self.saved.get(name)}, not {place}")

    def step(self, name, operands):
        if name == "pushf":
            self.depth += 8
        elif name == "popf":
            self.depth -= 8
        elif name == "push":
            self.depth += 8
            register = operands.lstrip("%")
            if operands.startswith("%"):
                self.saved.setdefault(register, self.depth)
        elif name == "pop":
            register = operands.lstrip("%")
            if self.saved.get(register) == self.depth:
                del self.saved[register]
            if register == "rbp":
                self.base = UNKNOWN
            self.depth -= 8
        elif operands.endswith(",%rsp"):
            amount = re.match(r"\$?(-?0x[0-9a-f]+)", operands)
            if name == "sub":
                self.depth += int(amount[1], 16)
            elif name == "add":
                self.depth -= int(amount[1], 16)
            elif name == "lea" and re.fullmatch(r"0x[0-9a-f]+\(%rsp\),%rsp", operands):
                self.depth -= int(amount[1], 16)
            elif name == "mov" and operands == "%rbp,%rsp":
                self.depth = self.base
            elif name == "and":
                self.depth = UNKNOWN
            else:
                raise Wrong(f"{name} {operands}")
        elif name == "mov" and operands == "%rsp,%rbp":
            self.base = self.depth


def follow(code, begin, end, rows):
    """Compares along each way through [begin, end). Which instructions were met."""
    met = {}
    ways = [(begin, Frame(row_at(rows, begin)[2], saved={}))]
    while ways:
        address, frame = ways.pop()
        while begin <= address < end:
            if frame.key() in met.setdefault(address, set()):
                break
            met[address].add(frame.key())
            frame.compare(address, row_at(rows, address))
            name, operands, following = code[address]
            if name == "ret":
                if frame.depth != 8:
                    raise Wrong(f"{address:x}: returns {frame.depth - 8} bytes below its return address")
                break
            target = re.match(r"([0-9a-f]+) <", operands)
            if name.startswith("j") and target:
                ways.append((int(target[1], 16), frame.copy()))
            if name == "call" and target and begin <= int(target[1], 16) < end:
                within = frame.copy()
                within.depth += 8  # the call's return address
                ways.append((int(target[1], 16), within))
            if name in ("jmp", "hlt"):
                break
            frame.step(name, operands)
            address = following
    return set(met)


def instructions(text):
    code = {}
    before = None
    for line in text.splitlines():
        found = re.match(r" *([0-9a-f]+):\t(?:(?:rep|notrack|lock|data16|cs|bnd) +)*(\S+) *(.*)", line)
        if not found:
            continue
        address = int(found[1], 16)
        if before is not None:
            code[before][2] = address
        name = re.sub(r"^(pushf|popf|push|pop|sub|add|lea|mov|and|ret|jmp)[qlw]?$", r"\1", found[2])
        code[address] = [name, found[3].split(" #")[0].strip(), address]
        before = address
    return code


class Frames(TracedTest):
    def command(self, *words):
        return subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True).stdout

    def test_every_instruction_of_our_assembly(self):
        own = ASSEMBLY / "contexts.S"  # of a library of its own
        self.check(LIBRARY, [file for file in ASSEMBLY.glob("*.S") if file != own])
        self.check(LIBRARY.with_name("libkarst-contexts.so"), [own])

    def check(self, library, files):
        frames = rows_of_frames(self.command("readelf", "--debug-dump=frames-interp", library))
        code = instructions(self.command("objdump", "-d", "--no-show-raw-insn", library))
        names = {}
        for line in self.command("nm", "--defined-only", library).splitlines():
            address, _, name = line.split()
            names.setdefault(int(address, 16), set()).add(name)
        functions = self.functions(files)
        ours = {begin: names[begin] for begin in frames if names.get(begin, set()) & functions}
        self.assertEqual(functions - {name for some in ours.values() for name in some}, set())
        for begin, name in ours.items():
            end, rows = frames[begin]
            with self.subTest(function=name):
                met = follow(code, begin, end, rows)
                # All of it is met, but for what fills up behind the last one.
                self.assertEqual([hex(at) for at in range(begin, end) if at in code and at not in met
                                  and not code[at][0].startswith("nop")], [])

    def functions(self, files):
        """The names of what is written in assembly: each has its `.type NAME, @function`."""
        found = set()
        for file in files:
            text = self.command("gcc", "-E", "-P", "-x", "assembler-with-cpp", "-I", ROOT, file)
            macros = dict(re.findall(r"\.macro\s+(\w+)\s+name\b.*?\n(.*?)\.endm", text, re.DOTALL))
            made = {macro for macro, body in macros.items() if re.search(r"\.type\s+\\name, @function|^\s*HOOK\s+\\name", body,
                                                                         re.MULTILINE)}
            found |= set(re.findall(r"\.type\s+([A-Za-z_]\w*), @function", text))
            for macro in made:
                of_macro = re.findall(rf"(?:^|;)\s*{macro}\s+([A-Za-z_]\w*)", text, re.MULTILINE)
                found |= set(of_macro)
                if r"slowly_\name" in macros[macro]:
                    found |= {"slowly_" + name for name in of_macro}
        # The latter three are stepped through in ways_out_limits.py: one calls itself, as sleds do hooks, and two have
        # to do with a frame that is not their own.
        return found - {"slowly_", "karst_make_events", "karst_hook_tail", "karst_tail_frame"}

    def test_a_wrong_row_is_noticed(self):
        code = instructions("  10:\tpush   %rbx\n  11:\tcall   99 <f>\n  16:\tje     20 <g+0x10>\n  18:\tpop    %rbx\n"
                            "  19:\tret\n  20:\tpop    %rbx\n  21:\tret\n  22:\tret\n")
        right = [(0x10, "rsp", 8, {"ra": "c-8"}), (0x11, "rsp", 16, {"rbx": "c-16", "ra": "c-8"}), (0x19, "rsp", 8, {"ra": "c-8"}),
                 (0x20, "rsp", 16, {"rbx": "c-16", "ra": "c-8"}), (0x21, "rsp", 8, {"ra": "c-8"})]
        self.assertEqual(follow(code, 0x10, 0x22, right), {0x10, 0x11, 0x16, 0x18, 0x19, 0x20, 0x21})
        for at, wrong in ((1, (0x11, "rsp", 8, {"ra": "c-8"})), (1, (0x11, "rsp", 16, {"rbx": "c-24", "ra": "c-8"})),
                          (3, (0x20, "rsp", 8, {"ra": "c-8"})), (0, (0x10, "rbp", 8, {"ra": "c-8"}))):
            with self.assertRaises(Wrong):
                follow(code, 0x10, 0x22, [*right[:at], wrong, *right[at + 1:]])


if __name__ == "__main__":
    main()
