"""Files: info, export, and what is no trace."""

import json
import os
import signal
import struct
import subprocess
import unittest

from cli_case import Case, KARST, PLAIN, main


class Info(Case):
    def test_text(self):
        text = self.good("info", self.path("sample.karst"))
        for part in ("with names, complete", "process 10 app: app --flag", "exited with status 0", "worker", "01ab",
                     "/bin/sample", "2023-11-14 22:13:20", "1,000,000,000 ticks a second", "8, 2 of them open"):
            self.assertIn(part, text)

    def test_json(self):
        data = json.loads(self.good("info", "--format", "json", self.path("sample.karst")))
        self.assertEqual(data["size"], os.path.getsize(self.path("sample.karst")))
        self.assertEqual((data["calls"], data["open_calls"], data["complete"]), (8, 2, True))
        process = data["processes"][0]
        self.assertEqual((process["pid"], process["exit_status"], process.get("signal")), (10, 0, None))
        self.assertEqual([(t["tid"], t["name"], t["calls"]) for t in process["threads"]],
                         [(10, "app", 4), (11, "worker", 4)])
        self.assertEqual(process["modules"][0],
                         {"path": "/bin/sample", "build_id": "01ab", "load_address": "0x10000", "functions": 3,
                          "unnamed": 0, "without_line": 0, "patched": False, "left_alone": 0})

    def test_a_cut_file_shows_what_is_left_and_says_so(self):
        data = self.sample()
        cut = self.write("cut.karst", data[: len(data) - 40])
        run = self.karst("info", cut)
        self.assertEqual(run.returncode, 0)
        self.assertIn(b"cut short", run.stdout)
        self.assertIn(b"\nproblems\n", run.stdout)
        run = self.karst("tree", "--plain", cut)
        self.assertEqual((run.returncode, run.stdout.decode()), (0, PLAIN))
        self.assertIn(b"damaged or incomplete", run.stderr)


class Export(Case):
    def test_both_formats_arrive_under_their_name(self):
        for to in ("chrome", "perfetto"):
            out = self.path("out." + to)
            self.assertEqual(self.good("export", self.path("sample.karst"), "--to", to, "-o", out), "")
            self.assertGreater(os.path.getsize(out), 100)
            run = self.karst("export", self.path("sample.karst"), "--to", to, "-o", "-")
            with open(out, "rb") as file:
                self.assertEqual(run.stdout, file.read())
        with open(self.path("out.chrome"), encoding="utf-8") as file:
            events = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]
        self.assertEqual(len(events), 8)
        self.assertEqual(sorted(n for n in os.listdir(self.directory) if n.startswith("out.")),
                         ["out.chrome", "out.perfetto"])

    def test_places_that_cannot_be_written(self):
        sample = self.path("sample.karst")
        for out, reason in ((self.path("no/out"), "No such file"), (self.directory, "is a directory"),
                            ("/dev/full", "No space left")):
            for to in ("chrome", "perfetto"):
                message = self.bad(1, "export", sample, "--to", to, "-o", out)
                self.assertIn(reason, message)
                self.assertIn(out, message)

    @unittest.skipIf(os.geteuid() == 0, "root may write anywhere")
    def test_a_directory_that_is_not_ours(self):
        self.assertIn("Permission denied",
                      self.bad(1, "export", self.path("sample.karst"), "--to", "chrome", "-o", "/usr/karst.json"))

    def test_a_full_disk_leaves_nothing_behind(self):
        # A limit on the file's size fails in the middle of writing, as a full disk does, and needs no root.
        before = sorted(os.listdir(self.directory))
        run = subprocess.run(
            ["sh", "-c", 'trap "" XFSZ; ulimit -f 64; exec "$@"', "sh", KARST, "export", self.path("big.karst"), "--to",
             "chrome", "-o", self.path("full.json")],
            capture_output=True, timeout=60)
        self.assertEqual(run.returncode, 1)
        self.assertIn(b"full.json: File too large", run.stderr)
        self.assertEqual(sorted(os.listdir(self.directory)), before)

    def test_stdout_that_is_full(self):
        with open("/dev/full", "wb") as full:
            for command in (["tree"], ["report"], ["info"], ["export", "--to", "chrome", "-o", "-"]):
                run = subprocess.run([KARST, *command, self.path("sample.karst")], stdout=full, stderr=subprocess.PIPE,
                                     timeout=60)
                self.assertEqual(run.returncode, 1, command)
                self.assertIn(b"No space left", run.stderr)


class BadFiles(Case):
    COMMANDS = (["info"], ["tree"], ["report"], ["export", "--to", "chrome", "-o", "-"])

    def every_command_refuses(self, path, *parts):
        for command in self.COMMANDS:
            message = self.bad(1, *command, path)
            self.assertIn(path, message)
            for part in parts:
                self.assertIn(part, message)

    def test_missing(self):
        self.every_command_refuses(self.path("nowhere.karst"), "no such file")

    def test_directory(self):
        self.every_command_refuses(self.directory, "directory")

    def test_empty(self):
        self.every_command_refuses(self.write("empty.karst", b""), "empty")

    def test_foreign(self):
        self.every_command_refuses(self.write("elf.karst", b"\x7fELF" + bytes(1000)), "not a Karst trace")
        self.every_command_refuses(self.write("text.karst", b"name,calls\nmain,1\n" * 10), "not a Karst trace")

    def test_header_alone_is_cut_but_readable_or_refused_never_a_crash(self):
        data = self.sample()
        for size in (1, 7, 8, 31):
            self.every_command_refuses(self.write("short.karst", data[:size]))
        for size in range(32, len(data), 97):
            path = self.write("short.karst", data[:size])
            for command in self.COMMANDS:
                run = self.karst(*command, path)
                self.assertIn(run.returncode, (0, 1), (size, command, run.stderr))
                self.assertNotEqual(run.stderr if command != ["info"] else run.stdout, b"")

    def test_future_version(self):
        data = bytearray(self.sample())
        struct.pack_into("<H", data, 8, 2)
        struct.pack_into("<I", data, 28, crc32c(data[:28]))
        self.every_command_refuses(self.write("future.karst", data), "version 2")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


if __name__ == "__main__":
    main()
