"""karst export --to fxt, read by a decoder that is written from the Fuchsia trace format's published text."""
import csv
import io
import struct
import subprocess

import support
from support import KARST, ROOT, TracedTest, build, main

INCLUDE = ("-I", str(ROOT / "include"))


def run(*words):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, check=True,
                          timeout=support.TIMEOUT).stdout


def bits(word, first, last):
    return word >> first & (1 << last - first + 1) - 1


class Reader:
    """Records of a file, with all references resolved. Bits that the format reserves must be 0."""

    def __init__(self, data):
        assert len(data) % 8 == 0
        self.words = struct.unpack(f"<{len(data) // 8}Q", data)
        self.strings, self.threads, self.names = {}, {}, {}
        self.events = []
        assert self.words[0] == 0x0016547846040010
        at = 1
        while at < len(self.words):
            head = self.words[at]
            size = bits(head, 4, 15)
            assert size > 0 and at + size <= len(self.words)
            self.body, self.at = self.words[at + 1:at + size], 0
            self.record(head)
            assert self.at == len(self.body), "a record has words that nobody reads"
            at += size

    def next(self):
        self.at += 1
        return self.body[self.at - 1]

    def stream(self, size):
        words = [self.next() for _ in range((size + 7) // 8)]
        data = struct.pack(f"<{len(words)}Q", *words)
        assert not data[size:].strip(b"\0"), "padding is zeros"
        return data[:size].decode("utf-8")

    def text(self, ref):
        if ref & 0x8000:
            return self.stream(ref & 0x7fff)
        return self.strings[ref] if ref else ""

    def argument(self):
        head = self.next()
        start = self.at
        kind, size = bits(head, 0, 3), bits(head, 4, 15)
        name = self.text(bits(head, 16, 31))
        if kind == 3:
            value = struct.unpack("<q", struct.pack("<Q", self.next()))[0]
        elif kind == 5:
            value = struct.unpack("<d", struct.pack("<Q", self.next()))[0]
        elif kind == 6:
            value = self.text(bits(head, 32, 47))
        else:
            assert kind == 8, kind
            value = self.next()
        assert self.at - start == size - 1
        return name, value

    def record(self, head):
        kind = bits(head, 0, 3)
        if kind == 0:
            of = bits(head, 16, 19)
            assert of in (1, 2)
            if of == 1:
                self.provider = self.stream(bits(head, 52, 59))
        elif kind == 1:
            self.ticks_per_second = self.next()
        elif kind == 2:
            assert bits(head, 31, 31) == 0 and bits(head, 47, 63) == 0 and bits(head, 16, 30) != 0
            self.strings[bits(head, 16, 30)] = self.stream(bits(head, 32, 46))
        elif kind == 3:
            assert bits(head, 16, 23) != 0
            self.threads[bits(head, 16, 23)] = (self.next(), self.next())
        elif kind == 4:
            self.event(head)
        else:
            assert kind == 7, kind
            of, koid = bits(head, 16, 23), self.next()
            name = self.text(bits(head, 24, 39))
            arguments = dict(self.argument() for _ in range(bits(head, 40, 43)))
            self.names[(of, koid, arguments.get("process"))] = name

    def event(self, head):
        made = {"type": bits(head, 16, 19), "begin": self.next()}
        made["pid"], made["tid"] = self.threads[bits(head, 24, 31)]
        made["category"] = self.text(bits(head, 32, 47))
        made["name"] = self.text(bits(head, 48, 63))
        made["args"] = dict(self.argument() for _ in range(bits(head, 20, 23)))
        if made["type"] in (1, 4, 5, 7):  # counter's or pair's number, or end
            made["last"] = self.next()
        self.events.append(made)


class Fxt(TracedTest):
    def test_every_call_and_note_is_there(self):
        trace = self.directory / "shop.karst"
        program = build("exports_shop", "query/shop.cc", "-O1", "-pthread", *INCLUDE)
        subprocess.run([KARST, "run", "-o", trace, "--args", "^serve", "--", program, self.directory / "journal"],
                       check=True, capture_output=True, timeout=support.TIMEOUT)
        out = self.directory / "out.fxt"
        run(KARST, "export", trace, "--to", "fxt", "-o", out)
        of = Reader(out.read_bytes())
        self.assertEqual((of.provider, of.ticks_per_second), ("karst", 10**9))
        rows = list(csv.DictReader(io.StringIO(run(KARST, "calls", trace, "--raw", "--format", "csv"))))
        calls = [e for e in of.events if e["type"] == 4]
        self.assertEqual([(e["pid"], e["tid"], e["name"], e["begin"]) for e in calls],
                         [(int(r["pid"]), int(r["tid"]), r["function"], int(r["begin_ns"])) for r in rows])
        for event, row in zip(calls, rows):
            self.assertAlmostEqual(event["last"] - event["begin"], int(row["duration_ns"]), delta=1)
            self.assertEqual(event["category"], "call")
            self.assertEqual(event["args"].get("open"), row["open"] or None)
        served = [e["args"] for e in calls if e["name"].startswith("serve")]
        self.assertEqual(sorted(int(args["id"]) for args in served), list(range(1, 61)))
        threads = {(int(r["pid"]), int(r["tid"])): r["thread"] for r in rows}
        self.assertEqual({(pid, koid): name for (kind, koid, pid), name in of.names.items() if kind == 2}, threads)
        notes = list(csv.DictReader(io.StringIO(run(KARST, "notes", trace, "--format", "csv"))))
        self.assertEqual(sorted((e["begin"], e["name"]) for e in of.events if e["category"] == "message"),
                         sorted((int(n["time_ns"]), n["value"]) for n in notes if n["kind"] == "message"))
        for kind, word in ((5, "request begins"), (7, "request ends")):
            self.assertEqual(sorted((e["begin"], e["last"]) for e in of.events if e["type"] == kind),
                             sorted((int(n["time_ns"]), int(n["value"])) for n in notes if n["kind"] == word))

    def test_values_are_counters(self):
        run_of = self.run_traced(build("exports_noted", "exports/noted.cc", "-O1", *INCLUDE), options=("--usage", "off"))
        out = self.directory / "out.fxt"
        run(KARST, "export", run_of.trace.path, "--to", "fxt", "-o", out)
        found = [e for e in Reader(out.read_bytes()).events if e["type"] == 1]
        self.assertEqual([(e["name"], e["args"]["value"]) for e in found],
                         [of for i in range(5) for of in (("queue length", i - 2), ("load", i * 0.5))])
        self.assertEqual(len({(e["name"], e["last"]) for e in found}), 2)


if __name__ == "__main__":
    main()
