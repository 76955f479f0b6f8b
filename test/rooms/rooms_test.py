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
INCLUDE = re.compile(r'^\s*#\s*include "([a-z0-9_]+)/([^"]+)"', re.MULTILINE)


def sources(room):
    return [file for file in sorted((SOURCE / room).rglob("*")) if file.suffix in (".cc", ".h", ".c", ".S")]


def room_of(file):
    """arch/ has headers alone for others: its sources, and what its assembly includes, are part of the runtime."""
    room = file.relative_to(SOURCE).parts[0] if file.is_relative_to(SOURCE) else ""
    of_runtime = file.suffix != ".h" or file.name == "hook_macros.h"
    return "runtime" if room == "arch" and of_runtime else room


def includes(file):
    """(room, path) of each include line that names a room."""
    return [found for found in INCLUDE.findall(file.read_text(encoding="utf-8")) if found[0] in MAY_INCLUDE]


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


class Rooms(unittest.TestCase):
    def test_every_include_goes_with_the_arrows(self):
        against = [f"{file.relative_to(SOURCE)} includes {other}/{path}" for room in MAY_INCLUDE
                   for file in sources(room)
                   for other, path in includes(file) if other not in MAY_INCLUDE[room_of(file)]]
        self.assertEqual(against, [])

    def test_an_include_against_the_order_does_not_compile(self):
        header = {room: headers_that_stand_alone(room)[0] for room in MAY_INCLUDE if headers_that_stand_alone(room)}
        tried = commands()
        of_headers = {room for room in MAY_INCLUDE if not (SOURCE / room / "CMakeLists.txt").exists()}
        self.assertEqual(set(MAY_INCLUDE) - set(tried), of_headers)
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
        rows = {room: re.findall(r"`([a-z]+)/`", uses)
                for room, uses in re.findall(r"^\| `([a-z]+)/` \|[^|]*\|([^|]*)\|$", page, re.MULTILINE)
                if room in USES}
        self.assertEqual(rows, USES)

    def test_files_that_the_map_names_are_there(self):
        page = (SOURCE / "docs" / "architecture.md").read_text(encoding="utf-8")
        named = re.findall(r"`((?:%s|test|docs|cmake)/[a-z0-9_/]+\.[a-zS]+)`" % "|".join(MAY_INCLUDE), page)
        self.assertGreater(len(named), 50)
        self.assertEqual([name for name in named if not (SOURCE / name).exists()], [])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], f"Rooms.{sys.argv[3]}"])
