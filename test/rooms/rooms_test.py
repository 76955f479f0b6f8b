"""The arrows between the rooms, as CMake has them (rooms/arrows in the build), against sources, compiler and docs.

usage: rooms_test.py BUILD SOURCE METHOD
"""
import json
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
LINES = [line.split(":") for line in (BUILD / "rooms" / "arrows").read_text().splitlines()]
USES = {room: uses.split() for room, uses, _ in LINES}
MAY_INCLUDE = {room: set(all_of_it.split()) for room, _, all_of_it in LINES}
INCLUDE = re.compile(r'^\s*#\s*include "([a-z0-9_]+/[^"]+)"', re.MULTILINE)
RUNTIME_OBJECTS = BUILD / "runtime" / "CMakeFiles" / "karst_runtime.dir"


def room_of_path(path):
    """The room, or the floor of one, that a path from the source tree's root lies in; empty: none."""
    return next((str(parent) for parent in Path(path).parents if str(parent) in MAY_INCLUDE), "")


def sources(room):
    """Not those of its floors, which are rooms themselves."""
    return [file for file in sorted((SOURCE / room).rglob("*"))
            if file.suffix in (".cc", ".h", ".c", ".S") and room_of_path(file.relative_to(SOURCE)) == room]


def room_of(file):
    """arch/ has headers alone for others: its sources, and what its assembly includes, are part of the runtime."""
    room = room_of_path(file.relative_to(SOURCE)) if file.is_relative_to(SOURCE) else ""
    of_runtime = file.suffix != ".h" or file.name == "hook_macros.h"
    return "runtime" if room == "arch" and of_runtime else room


def includes(file):
    """(room, path) of each include line that names a room."""
    found = [(room_of_path(path), path) for path in INCLUDE.findall(file.read_text(encoding="utf-8"))]
    return [(room, path) for room, path in found if room]


def headers_that_stand_alone(room):
    """Headers of the room that are compiled quickly: they include no other room. Else the first one."""
    headers = [file for file in sources(room) if file.suffix == ".h"]
    alone = [file for file in headers if not any(other != room for other, _ in includes(file))]
    return [str(file.relative_to(SOURCE)) for file in alone or headers]


def commands():
    """One compile command of each room that has C++ sources, without the source, the output and what is forced in."""
    found = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        file = Path(entry["file"])
        # A file of the build's has several of a room's sources in it (KARST_UNITY).
        room = file.relative_to(BUILD).parts[0] if file.is_relative_to(BUILD) else room_of(file)
        if room not in MAY_INCLUDE or room in found or file.suffix not in (".cc", ".cxx"):
            continue
        words = shlex.split(entry["command"])
        kept = []
        while words:
            word = words.pop(0)
            if word in ("-o", "-c", "-include"):
                words.pop(0)
            elif word != "-Winvalid-pch" and word != entry["file"]:
                kept.append(word)
        found[room] = kept
    return found


def symbols_of_floors():
    """{object: (floor, defined, undefined)} of the runtime, but for its assembly, which is nobody's floor."""
    found = {}
    for file in sorted(RUNTIME_OBJECTS.rglob("*.cc.o")):
        source = Path("runtime") / file.relative_to(RUNTIME_OBJECTS).with_suffix("")
        if (SOURCE / source).exists():  # else it is of an earlier build
            found[str(file)] = (room_of_path(source), set(), set())
    lines = subprocess.run(["nm", "-A", "-C", *found], capture_output=True, text=True, check=True).stdout.splitlines()
    for line in lines:
        file, kind, name = re.match(r"(.*?\.o):[0-9a-f ]{16} (\w) (.*)", line).groups()
        if kind == "U":
            found[file][2].add(name)
        elif kind.isupper():  # others see it
            found[file][1].add(name)
    return found.values()


def seams_of(floor):
    """Names of functions that it may call though they are defined above it."""
    texts = [(SOURCE / room / "seams.h").read_text(encoding="utf-8") for room in MAY_INCLUDE[floor]
             if (SOURCE / room / "seams.h").exists()]
    return {name for text in texts for name in re.findall(r"^\w[\w:&* ]* [&*]?(\w+)\(", text, re.MULTILINE)}


class Rooms(unittest.TestCase):
    def test_every_call_goes_with_the_arrows_or_through_a_seam(self):
        objects = symbols_of_floors()
        self.assertGreater(len(objects), 80)
        home = {name: floor for floor, defined, _ in objects for name in defined}
        upwards = {(floor, name) for floor, _, undefined in objects for name in undefined
                   if home.get(name, floor) not in MAY_INCLUDE[floor]}
        short = {(floor, re.sub(r"\(.*", "", name).split("::")[-1]) for floor, name in upwards}
        self.assertEqual([f"{floor} calls {name}" for floor, name in sorted(short) if name not in seams_of(floor)], [])
        # What stands in a seam is called, and defined above.
        for floor in MAY_INCLUDE:
            if (SOURCE / floor / "seams.h").exists():
                used = {name for user, name in short if floor in MAY_INCLUDE[user]}
                own = seams_of(floor) - set().union(*(seams_of(room) for room in MAY_INCLUDE[floor] - {floor}))
                self.assertEqual(sorted(own - used), [], f"{floor}/seams.h")

    def test_every_include_goes_with_the_arrows(self):
        against = [f"{file.relative_to(SOURCE)} includes {path}" for room in MAY_INCLUDE
                   for file in sources(room)
                   for other, path in includes(file) if other not in MAY_INCLUDE[room_of(file)]]
        self.assertEqual(against, [])

    def test_folders_of_a_room_have_no_circle(self):
        # arch/ has the processor's folder inside: each of its headers leads there.
        for room in sorted({room.split("/")[0] for room in MAY_INCLUDE} - {"arch"}):
            uses = {}
            for file in (SOURCE / room).rglob("*"):
                if file.suffix in (".cc", ".h"):
                    named = [Path(path) for path in INCLUDE.findall(file.read_text(encoding="utf-8"))]
                    uses.setdefault(file.parent.relative_to(SOURCE), set()).update(
                        path.parent for path in named if path.parts[0] == room)
            with self.subTest(room=room):
                while ends := [folder for folder, others in uses.items() if not others & uses.keys() - {folder}]:
                    for folder in ends:
                        del uses[folder]
                self.assertEqual(sorted(map(str, uses)), [])

    def test_an_include_against_the_order_does_not_compile(self):
        header = {room: headers_that_stand_alone(room)[0] for room in MAY_INCLUDE if headers_that_stand_alone(room)}
        tried = commands()
        of_code = {room_of(file) for room in MAY_INCLUDE for file in sources(room) if file.suffix == ".cc"}
        self.assertEqual(set(tried), of_code)
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "tried.cc"
            for room, command in tried.items():
                def compiled(lines):
                    file.write_text(lines)
                    return subprocess.run([*command, "-fsyntax-only", str(file)], cwd=BUILD, capture_output=True, text=True)
                right = compiled("".join(f'#include "{header[other]}"\n' for other in sorted(MAY_INCLUDE[room])
                                         if other in header))
                self.assertEqual(right.returncode, 0, f"{room}: {right.stderr}")
                forbidden = sorted(set(header) - MAY_INCLUDE[room])
                found = compiled("".join(f'#if __has_include("{header[other]}")\n#error {other} is found\n#endif\n'
                                         for other in forbidden))
                self.assertEqual(found.returncode, 0, f"{room} may include too much: {found.stderr}")
                # One of them as people would write it: compilers stop at the first.
                for other in forbidden[:1]:
                    wrong = compiled(f'#include "{header[other]}"\n')
                    self.assertNotEqual(wrong.returncode, 0, f"{room} may include {header[other]}")
                    self.assertIn(f"{header[other]}: No such file or directory", wrong.stderr)

    def test_the_table_of_rooms_shows_the_arrows(self):
        page = (SOURCE / "docs" / "architecture.md").read_text(encoding="utf-8")
        rows = {room: re.findall(r"`([a-z_/]+)/`", uses)
                for room, uses in re.findall(r"^\| `([a-z_/]+)/` \|[^|]*\|([^|]*)\|$", page, re.MULTILINE)
                if room in USES}
        self.assertEqual(rows, USES)

    def test_files_that_the_map_names_are_there(self):
        page = (SOURCE / "docs" / "architecture.md").read_text(encoding="utf-8")
        named = re.findall(r"`((?:%s|test|docs|cmake)/[a-z0-9_/]+\.[a-zS]+)`" % "|".join(MAY_INCLUDE), page)
        self.assertGreater(len(named), 50)
        self.assertEqual([name for name in named if not (SOURCE / name).exists()], [])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], f"Rooms.{sys.argv[3]}"])
