"""What karst-clang makes of clang's objects: a shorter table of sleds that says the same, and nothing else."""
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from support import BIN, main  # noqa: E402
from wrapper_clang import CXX, ClangTest  # noqa: E402

CLANG = str(BIN / "karst-clang")
CLANGXX = str(BIN / "karst-clang++")
XRAY = ["-Xclang", "-fxray-instrument", "-Xclang", "-fxray-instruction-threshold=1"]
ENTRY, RETURN, TAIL_CALL = range(3)
JUMP = bytes.fromhex("eb09660f1f840000020000")  # clang's sled at an entry and before a tail call
NOPS = bytes.fromhex("0f1f440000660f1f440000")  # ours at an entry

SHAPES = """int printf(const char*, ...);
__attribute__((noinline)) int leaf(int x) { return x * 3; }
__attribute__((noinline)) int several(int x) { if (x > 7) return 1; if (x > 5) return leaf(x) + 2; return x; }
__attribute__((noinline)) int tail(int x) { return leaf(x + 1); }
__attribute__((noinline)) int maybe(int x) { if (x == 3) return leaf(x); return x ? tail(x) : 9; }
__attribute__((noinline, xray_always_instrument)) int always(int x) { return x + 1; }
__attribute__((noinline, section("other_text"))) int elsewhere(int x) { return leaf(x) - 1; }
static __attribute__((noinline)) int odd(int x) { return x ^ 1; }
int main(void) { return several(6) + tail(2) + maybe(3) + maybe(0) + always(1) + elsewhere(2) + odd(3) == 0; }
"""


def sections(image):
    """Name -> (address, contents) of an ELF file."""
    at, = struct.unpack_from("<Q", image, 40)
    count, names = struct.unpack_from("<HH", image, 60)
    headers = [struct.unpack_from("<IIQQQQIIQQ", image, at + 64 * i) for i in range(count)]
    text = image[headers[names][4]:headers[names][4] + headers[names][5]]
    return {text[h[0]:text.index(b"\0", h[0])].decode(): (h[3], image[h[4]:h[4] + h[5]]) for h in headers if h[1] != 8}


def sleds_of_xray(address, table):
    """(place, kind, always) by LLVM's own records."""
    found = []
    for at in range(0, len(table), 32):
        distance, _, kind, always, version = struct.unpack_from("<qqBBB", table, at)
        assert version == 2
        if kind <= 3:
            found.append((address + at + distance, ENTRY if kind == 3 else kind, bool(always) and kind in (0, 3)))
    return found


def sleds_of_karst(address, table):
    """The same by the records of format/sled_note.h."""
    found = []
    at = entry = 0
    while at < len(table):
        first, = struct.unpack_from("<H", table, at)
        if first % 2 == 0:
            entry = address + at + struct.unpack_from("<i", table, at)[0]
            found.append((entry, ENTRY, False))
            at += 4
        elif first == 1:
            word, = struct.unpack_from("<H", table, at + 2)
            place = address + at + 4 + struct.unpack_from("<i", table, at + 4)[0]
            entry = place if word & 0xff == ENTRY else entry
            found.append((place, TAIL_CALL if word & 0xff == 4 else word & 0xff, bool(word & 0x100)))
            at += 8
        else:
            if first in (3, 5):  # of a tail call: how it passes what it passes, in the word behind
                at += 2
                first, = struct.unpack_from("<H", table, at)
            found.append((entry + (first & 0x7ffe), TAIL_CALL if first & 0x8000 else RETURN, False))
            at += 2
    return found


class Objects(ClangTest):
    def tables_of(self, program):
        """What the two tables say, with places by their distance from main, as these programs have other headers."""
        found = sections(Path(program).read_bytes())
        main_at = int(re.search(r"^([0-9a-f]+) T main$", self.run_command("nm", program).stdout, re.M)[1], 16)
        sleds = {"xray_instr_map": sleds_of_xray, "karst_clang_sleds": sleds_of_karst}
        tables = {name: read(*found[name]) for name, read in sleds.items() if name in found and found[name][1]}
        for name, table in tables.items():
            for place, kind, _ in table:
                begin, code = next((a, c) for a, c in found.values() if a != 0 and a <= place < a + len(c))
                sled = code[place - begin:place - begin + len(JUMP)]
                expected = NOPS if kind == ENTRY and name == "karst_clang_sleds" else JUMP
                self.assertEqual(sled[:1] if kind == RETURN else sled, b"\xc3" if kind == RETURN else expected)
        return {name: sorted((place - main_at, kind, always) for place, kind, always in table)
                for name, table in tables.items()}

    def test_the_short_table_says_the_same(self):
        self.assert_same_tables(["-O0"], ["-O2", "-ffunction-sections"], ["-Oz", "-fcf-protection=full"])

    def test_the_short_table_says_the_same_of_other_code(self):
        self.assert_same_tables(["-O1"], ["-O2"], ["-O3"], ["-Os"], ["-Oz"], ["-O2", "-fcf-protection=full"],
                                ["-O2", "-fPIC"], ["-O2", "-mcmodel=large"], ["-O2", "-g", "-gz"],
                                ["-O2", "-falign-functions=1"])

    def assert_same_tables(self, *each):
        (self.directory / "shapes.c").write_text(SHAPES)
        for env in self.each_version():
            for flags in each:
                with self.subTest(env=env, flags=flags):
                    plain = env["KARST_CC"]
                    self.run_command(plain, *XRAY, *flags, "-c", "shapes.c", "-o", "long.o")
                    self.compile(*flags, "-c", "shapes.c", "-o", "short.o", env=env)
                    for name in ("long", "short"):
                        self.compile(*flags, name + ".o", "-o", name, env=env)
                    one, other = (self.tables_of(self.directory / name) for name in ("long", "short"))
                    self.assertEqual(list(one), ["xray_instr_map"])
                    self.assertEqual(list(other), ["karst_clang_sleds"])
                    self.assertEqual(one["xray_instr_map"], other["karst_clang_sleds"])
                    self.assertGreaterEqual(len(one["xray_instr_map"]), 16)
                    self.assertEqual([a for _, _, a in other["karst_clang_sleds"]].count(True), 1)
                    self.assertEqual(self.run_traced(self.directory / "short").trace.counts,
                                     self.run_traced(self.directory / "long").trace.counts)

    def test_nothing_else_changes(self):
        (self.directory / "shapes.c").write_text(SHAPES)
        self.run_command("clang-14", *XRAY, "-O2", "-g", "-c", "shapes.c", "-o", "long.o")
        self.compile("-O2", "-g", "-c", "shapes.c", "-o", "short.o", env={"KARST_CC": "clang-14"})
        one, other = (sections((self.directory / name).read_bytes()) for name in ("long.o", "short.o"))
        entries = 0
        changed = {"", "xray_instr_map", ".relaxray_instr_map", "karst_clang_sleds", ".relakarst_clang_sleds", ".strtab"}
        for name in set(one) - changed:
            # The compiler's command line is in it.
            if not name.startswith(".debug_"):
                self.assertEqual(one[name][1].replace(JUMP, NOPS), other[name][1].replace(JUMP, NOPS), name)
                entries += one[name][1].count(JUMP) - other[name][1].count(JUMP)
        self.assertEqual(entries, len(re.findall(r" [Tt] ", self.run_command("nm", "short.o").stdout)))
        self.assertEqual(set(one) - changed, set(other) - changed)
        self.assertEqual(self.run_command("nm", "short.o").stdout, self.run_command("nm", "long.o").stdout)
        self.assertEqual(self.run_command("objdump", "-r", "-j", ".text", "short.o").stdout.replace("short.o", "long.o"),
                         self.run_command("objdump", "-r", "-j", ".text", "long.o").stdout)

    def test_names_of_objects(self):
        for arguments, names in ((["-c", "first.cc"], ["first.o"]), (["-c", "first.cc", "second.cc"], ["first.o", "second.o"]),
                                 (["-c", "first.cc", "-ox.obj"], ["x.obj"]), (["-c", "--output=y.o", "first.cc"], ["y.o"]),
                                 (["-c", "-x", "c++", "first.cc", "-o", "z"], ["z"])):
            self.compile("-O1", *arguments, compiler=CLANGXX)
            for name in names:
                with self.subTest(arguments=arguments, name=name):
                    self.assertIn("karst_clang_sleds", self.section_names(name))
                    self.assertNotIn("xray_instr_map", self.section_names(name))
                    (self.directory / name).unlink()
        self.assertEqual([p.name for p in self.directory.iterdir() if ".karst-" in p.name], [])

    def test_every_linker_and_sections_that_nobody_wants(self):
        for env in self.each_version():
            for source in ("first", "second"):
                self.compile("-O2", "-ffunction-sections", "-c", source + ".cc", compiler=CLANGXX, env=env)
            for linker in ("", "-fuse-ld=gold", "-fuse-ld=lld", "-fuse-ld=mold"):
                if linker and not shutil.which("ld." + linker.split("=")[1]):
                    continue
                with self.subTest(env=env, linker=linker):
                    self.compile(*linker.split(), "-Wl,--gc-sections", "first.o", "second.o", "-o", "out", compiler=CLANGXX, env=env)
                    self.assert_traced("out", CXX, "4\n", 0)
            self.compile("-r", "first.o", "second.o", "-o", "both.o", compiler=CLANGXX, env=env)
            self.compile("both.o", "-o", "out", compiler=CLANGXX, env=env)
            self.assert_traced("out", CXX, "4\n", 0)

    def test_objects_of_clang_itself_and_of_gcc_beside_it(self):
        self.run_command("clang++-14", *XRAY, "-O2", "-c", "second.cc")
        self.compile("-O2", "-c", "first.cc", compiler=CLANGXX)
        self.compile("first.o", "second.o", "-o", "out", compiler=CLANGXX)
        self.assertEqual(sorted(self.tables_of(self.directory / "out")), ["karst_clang_sleds", "xray_instr_map"])
        self.assert_traced("out", CXX, "4\n", 0)
        if shutil.which("g++"):
            self.compile("-O2", "-c", "second.cc", compiler=str(BIN / "karst-g++"))
            self.compile("first.o", "second.o", "-o", "out", compiler=CLANGXX)
            self.assert_traced("out", CXX, "4\n", 0)

    def test_more_sections_than_a_header_can_count(self):
        functions = range(23_000)
        (self.directory / "many.c").write_text("".join(f"__attribute__((noinline)) int f{i}(int x) {{ return x + {i}; }}\n" for i in functions) +
                                               "int main(void) { return f7(1) + f22999(1) != 23008; }\n")
        self.compile("-O1", "-ffunction-sections", "-c", "many.c")
        header = self.run_command("readelf", "-hW", "many.o").stdout
        self.assertIn("Number of section headers:         0 (", header)
        self.assertNotIn("xray_instr_map", self.section_names("many.o"))
        self.compile("many.o", "-o", "out")
        self.assertEqual(self.run_traced(self.directory / "out").trace.counts, {"main": 1, "f7": 1, "f22999": 1})

    def test_what_is_no_object_of_ours_stays(self):
        self.compile("-O1", "-flto", "-c", "program.c", "-o", "lto.o")
        self.assertEqual((self.directory / "lto.o").read_bytes()[:2], b"BC")
        self.compile("-c", "program.c", "-o", "/dev/null")
        piped = subprocess.run([CLANG, "-c", "program.c", "-o", "-"], cwd=self.directory, capture_output=True, timeout=60)
        self.assertEqual((piped.returncode, piped.stdout[:4], piped.stderr), (0, b"\x7fELF", b""))
        # Nor does what was there before and is another input's.
        self.run_command("clang-14", *XRAY, "-c", "second.cc")
        before = (self.directory / "second.o").read_bytes()
        done = self.run_command(CLANGXX, "-c", "first.cc", "second.o", env={"KARST_CXX": "clang++-14"})
        self.assertIn("linker", done.stderr)
        self.assertEqual((self.directory / "second.o").read_bytes(), before)

    def test_where_children_are_ignored(self):
        self.run_command(sys.executable, "-c", "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
                         "os.execv(sys.argv[1], sys.argv[1:])", CLANG, "-c", "program.c", "-o", "p.o")
        self.assertIn("karst_clang_sleds", self.section_names("p.o"))

    def test_rights_of_the_object(self):
        os.umask(old := os.umask(0o022))
        self.compile("-c", "program.c", "-o", "p.o")
        self.assertEqual((self.directory / "p.o").stat().st_mode & 0o777, 0o666 & ~old)

    def test_a_compiler_that_fails_or_is_killed(self):
        (self.directory / "wrong.c").write_text("int main(void) { return 0 }\n")
        self.run_command(CLANG, "-c", "wrong.c", "-o", "wrong.o", status=1)
        self.assertFalse((self.directory / "wrong.o").exists())
        self.run_command(CLANG, "-c", "program.c", env={"KARST_CC": "/nowhere/clang"}, status=127)
        (self.directory / "clang").write_text("#!/bin/sh\necho $$ >pid\nexec sleep 60\n")
        (self.directory / "clang").chmod(0o755)
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(number=number):
                (self.directory / "pid").unlink(missing_ok=True)
                wrapper = subprocess.Popen([CLANG, "-c", "program.c"], cwd=self.directory,
                                           env={**os.environ, "KARST_CC": str(self.directory / "clang")})
                pid = self.wait_for_pid()
                os.kill(pid, number)
                self.assertEqual(wrapper.wait(30), -number)
        (self.directory / "pid").unlink()
        wrapper = subprocess.Popen([CLANG, "-c", "program.c"], cwd=self.directory,
                                   env={**os.environ, "KARST_CC": str(self.directory / "clang")})
        pid = self.wait_for_pid()
        wrapper.kill()
        wrapper.wait(30)
        for _ in range(300):
            if not Path(f"/proc/{pid}").exists():
                return
            time.sleep(0.1)
        self.fail("the compiler went on")

    def wait_for_pid(self):
        for _ in range(300):
            text = (self.directory / "pid").read_text() if (self.directory / "pid").exists() else ""
            if text.endswith("\n"):
                return int(text)
            time.sleep(0.1)
        return self.fail("the compiler did not start")


if __name__ == "__main__":
    main()
