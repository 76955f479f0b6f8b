"""karst attach on a process whose memory is made to keep its reader busy."""
import os
import struct
import subprocess
import sys

from support import KARST, TIMEOUT, TracedTest, main

# Seconds. What is not bounded takes minutes here: a hundred modules, in each a chain of 200,000 names without an end.
DEADLINE = 30

PROGRAM = """
import mmap, os, sys, time
file = os.open(sys.argv[1], os.O_RDONLY)
held = [mmap.mmap(file, 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC) for _ in range(100)]
print("ready", flush=True)
time.sleep(600)
"""


def hash_of(name):
    value = 5381
    for letter in name.encode():
        value = (value * 33 + letter) & 0xFFFFFFFF
    return value


def endless_library():
    """An ELF file whose table of hashes has one bucket, and in it a chain without an end. All of it is `malloc`'s."""
    size, dynamic, hashes, symbols, names, count = 8 << 20, 0x400, 0x1000, 0x200000, 0x7F0000, 200_000
    file = bytearray(size)

    def put(at, layout, *values):
        struct.pack_into("<" + layout, file, at, *values)

    put(0, "16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01" + bytes(9), 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    put(64, "IIQQQQQQ", 1, 5, 0, 0, 0, size, size, 4096)
    put(64 + 56, "IIQQQQQQ", 2, 4, dynamic, dynamic, dynamic, 96, 96, 8)
    put(dynamic, "12Q", 6, symbols, 5, names, 10, 0x1000, 0x6FFFFEF5, hashes, 0, 0, 0, 0)
    put(hashes, "7I", 1, 1, 1, 0, 0, 0, 1)
    file[hashes + 28:hashes + 28 + 4 * count] = struct.pack("<I", hash_of("malloc") & ~1) * count
    file[symbols:symbols + 24 * count] = struct.pack("<IBBHQQ", 0, 0x12, 0, 1, 0x800, 16) * count
    file[names:names + 8] = b"another\0"
    return bytes(file)


class Hostile(TracedTest):
    def test_modules_whose_tables_have_no_end(self):
        library = self.directory / "libendless.so"
        library.write_bytes(endless_library())
        program = subprocess.Popen([sys.executable, "-c", PROGRAM, library], stdout=subprocess.PIPE)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        self.assertEqual(program.stdout.readline(), b"ready\n")
        # Of the processor: how busy the machine is does not count.
        before = os.times()
        done = subprocess.run([KARST, "attach", str(program.pid)], capture_output=True, text=True, timeout=2 * TIMEOUT)
        after = os.times()
        used = after.children_user - before.children_user + after.children_system - before.children_system
        self.assertLess(used, DEADLINE, done.stderr)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertNotEqual(done.stderr, "")
        self.assertIsNone(program.poll(), "the program goes on")


if __name__ == "__main__":
    main()
