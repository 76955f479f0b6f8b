#!/usr/bin/env python3
"""Decodes a .karst file and prints all it says, one fact a line.

Written from docs/trace-format.md alone and sharing nothing with the C++ reader, so that the two check
each other and the page. For sound files: it stops at the first thing that is wrong.
Usage: decode_trace.py FILE
"""
import struct
import subprocess
import sys

MAGIC = bytes([0x89]) + b"KARST\r\n"


def crc32c_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


TABLE = crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def check(condition, message):
    if not condition:
        sys.exit("decode_trace.py: " + message)


def escaped(data):
    plain = (chr(b) if 0x20 <= b <= 0x7E and b not in b'"\\' else "\\x%02x" % b for b in data)
    return '"' + "".join(plain) + '"'


def unzstd(data):
    done = subprocess.run(["zstd", "-d", "-c"], input=data, stdout=subprocess.PIPE, check=True)
    return done.stdout


def chunks(data):
    """Yields (type, payload) of each chunk up to and with ENDT."""
    offset = struct.unpack_from("<I", data, 12)[0]
    while offset < len(data):
        header = data[offset : offset + 32]
        kind, encoding, stored, raw, payload_crc, header_crc = struct.unpack("<4sIQQII", header)
        check(crc32c(header[:28]) == header_crc, "chunk header at %d: wrong checksum" % offset)
        payload = data[offset + 32 : offset + 32 + stored]
        check(len(payload) == stored and crc32c(payload) == payload_crc, "chunk at %d: wrong checksum" % offset)
        if encoding == 1:
            payload = unzstd(payload)
        check(len(payload) == raw, "chunk at %d: wrong size" % offset)
        yield kind.decode("ascii"), payload
        if kind == b"ENDT":
            return
        offset += 32 + (stored + 7) // 8 * 8


def records(payload, layout):
    """Yields (process, values, text) for each record; `text` turns an (offset, size) into bytes."""
    process, record_size, count, heap_size = struct.unpack_from("<4I", payload)
    heap_at = 16 + record_size * count
    check(heap_at + heap_size == len(payload), "table of wrong size")
    heap = payload[heap_at:]
    for i in range(count):
        values = struct.unpack_from("<" + layout, payload, 16 + i * record_size)
        yield process, values, lambda offset, size: heap[offset : offset + size]


class Trace:
    def __init__(self, data):
        check(data[:8] == MAGIC, "not a Karst trace")
        major, self.minor, _, self.flags, _, crc = struct.unpack_from("<HHIQII", data, 8)
        check(crc32c(data[:28]) == crc and major == 1, "file header")
        self.pairs, self.rate, self.sources = [], None, []
        self.processes, self.modules, self.functions, self.symbols = {}, {}, {}, {}
        self.threads, self.blocks = {}, {}
        self.inlined = []
        self.state_source, self.tasks, self.states = None, [], []
        self.switches = []
        self.modes, self.costs = {}, {}
        self.moments = []
        self.untraced = []
        self.series, self.points = [], []
        self.events, self.complete = 0, False
        seen = 0
        for kind, payload in chunks(data):
            if kind == "ENDT":
                count, events = struct.unpack_from("<QQ", payload)
                check((count, events) == (seen, self.events), "ENDT counts")
                self.complete = True
            elif hasattr(self, kind.lower()):
                getattr(self, kind.lower())(payload)
            seen += 1

    def proc(self, payload):
        for _, v, text in records(payload, "4IiI4Q8I"):
            texts = [text(v[i], v[i + 1]) for i in range(10, 18, 2)]
            self.processes[v[0]] = v[:10], texts

    def clck(self, payload):
        for _, v, _ in records(payload, "4QII"):
            self.pairs.append((v[0], v[1], v[2], v[4]))
            self.rate = v[3], v[5]

    def modl(self, payload):
        for process, v, text in records(payload, "2I5Q4I"):
            self.modules[process, v[0]] = v[1:7], text(v[7], v[8]), text(v[9], v[10])

    def func(self, payload):
        for process, v, _ in records(payload, "2IQ2I"):
            self.functions[process, v[0]] = v[1], v[2], v[3] & 1

    def symb(self, payload):
        for process, v, text in records(payload, "10I"):
            self.symbols[process, v[0]] = v[1], text(v[2], v[3]), text(v[4], v[5]), text(v[6], v[7]), text(v[8], v[9])

    def inln(self, payload):
        for process, v, text in records(payload, "12I"):
            texts = [text(v[i], v[i + 1]) for i in range(6, 12, 2)]
            self.inlined.append((process, v[0], v[1:5], texts))

    def thrd(self, payload):
        for process, v, text in records(payload, "4I4Q2I"):
            self.threads[process, v[0]] = v[1], v[2] & 1, v[4:8], text(v[8], v[9])

    def swch(self, payload):
        for process, v, _ in records(payload, "2Q4I"):
            self.switches.append((process, "on" if v[4] else "off", v[2], v[3], v[0], v[1], v[5]))

    def momt(self, payload):
        for process, v, text in records(payload, "2I6Q4I7Q2I"):
            self.moments.append((v[0], process, v[:13], v[13:19], text(v[19], v[20])))

    def untr(self, payload):
        for _, v, text in records(payload, "4I"):
            self.untraced.append((text(v[0], v[1]), text(v[2], v[3])))

    def mode(self, payload):
        for process, v, _ in records(payload, "3Q"):
            self.modes[process] = v

    def cost(self, payload):
        for process, v, _ in records(payload, "3I"):
            self.costs[process] = v

    def srcf(self, payload):
        for _, v, text in records(payload, "4I"):
            self.sources.append((text(v[0], v[1]), text(v[2], v[3])))

    def stsr(self, payload):
        for _, v, text in records(payload, "4I6Q2I"):
            self.state_source = v[:10] + (escaped(text(v[10], v[11])),)

    def task(self, payload):
        for _, v, text in records(payload, "6I"):
            self.tasks.append((v[0], v[1], v[2] & 1, v[2] >> 1 & 1, escaped(text(v[4], v[5]))))

    def stev(self, payload):
        for _, v, _ in records(payload, "Q3IHBB"):
            self.states.append(v[:6])

    def seri(self, payload):
        for _, v, _ in records(payload, "6I"):
            self.series.append(v)

    def srpt(self, payload):
        for _, v, _ in records(payload, "QqII"):
            self.points.append(v[:3])

    def blks(self, payload):
        process, count = struct.unpack_from("<II", payload)
        at = 8
        for _ in range(count):
            thread, events, sequence, ticks = struct.unpack_from("<IIQQ", payload, at)
            at += 24
            words = struct.unpack_from("<%dQ" % events, payload, at)
            at += 8 * events
            self.events += events
            self.blocks.setdefault((process, thread), []).append((sequence, ticks, words))
        check(at == len(payload), "BLKS of wrong size")

    def pack(self, payload):
        process, thread, sequence, ticks, first, last, blocks, count, enters, notes = struct.unpack_from("<IIQQQQIIII", payload)
        sizes = struct.unpack_from("<14I", payload, 56)
        streams, at = [], 112
        for stored, raw, width in zip(sizes[:7], sizes[7:], (1, 1, 2, 5, 3, 5, 3)):
            data = payload[at : at + stored]
            data = data if stored == raw else unzstd(data)
            check(len(data) == raw and raw % width == 0, "PACK stream")
            streams.append([int.from_bytes(data[i : i + width], "little") for i in range(0, raw, width)])
            at += stored
        check(not any(payload[at:]) and len(payload) * 32 >= count - 31, "PACK padding")
        codes, steps = streams[:2]
        wide, long_steps, words, payloads = (iter(stream) for stream in streams[2:6])
        ids, stack, events, times = streams[6], [], [], []
        for code, step in zip(codes, steps):
            ticks += step if step < 254 else 254 + next(wide) if step == 254 else next(long_steps)
            clock, top = (ticks & 0xFFFFFFFFFF) << 24, len(stack) < 65535
            if code == 0:
                events.append(clock | 0x800000 | stack.pop())
            elif code < 255:
                events.append(clock | ids[code - 1])
                stack += [ids[code - 1]] * top
            else:
                word = next(words)
                mark = word & 0x7FFFFF if word >> 23 else 0
                if word == 0:
                    events.append(0)
                elif mark in (8388354, 8388356, 8388359, 8388360):
                    events.append(next(payloads) << 24 | word)
                else:
                    events.append(clock | word)
                    if word >> 23 == 0:
                        stack += [word] * top
                    elif mark <= 8388351:
                        stack = stack[:-1]
        check(len(codes) == len(steps) == count and not list(wide) + list(long_steps) + list(words) + list(payloads), "PACK")
        check(enters == sum(1 for e in events if not e >> 23 & 1), "PACK enters")
        start = struct.unpack_from("<Q", payload, 16)[0]
        marks = {e & 0xFFFFFF for e in events if (e & 0xFFFFFF) > 0x800000 + 8388351}
        timeless = {0x800000 + mark for mark in (8388354, 8388356, 8388357, 8388359, 8388360)}
        times = [start >> 40 << 40 | e >> 24 for e in events if e and (e & 0xFFFFFF) not in timeless]
        check((first, last) == ((times or [start])[0], (times or [start])[-1]), "PACK times")
        check((notes & 1) == bool(marks & {0x800000 + mark for mark in (8388353, 8388354, 8388355)}), "PACK notes")
        self.events += count
        self.blocks.setdefault((process, thread), []).append((sequence, start, tuple(events)))

    @staticmethod
    def notes(events):
        """Yields (event, kind, name, bytes) of each note of a block; the rest of a mark is no mark of its own."""
        first, at = 8388351, 0
        mark = [e & 0x7FFFFF if e >> 23 & 1 else 0 for e in events]
        while at < len(events):
            begin, at = at, at + 1
            if mark[begin] != first + 7 or at == len(events) or mark[at] != first + 8:
                continue
            head, at = events[at] >> 24, at + 1
            count, words = head >> 31, []
            while len(words) < count and at < len(events) and mark[at] == first + 9:
                words.append((events[at] >> 24).to_bytes(5, "little"))
                at += 1
            if len(words) == count:
                yield events[begin], head & 0xFF, head >> 8 & 0x7FFFFF, b"".join(words).rstrip(b"\0")

    @staticmethod
    def log(name, values, said):
        """A log's level and text, formatted by Python's own % and str.format."""
        arguments, left = [], said[1:]
        for letter in values[1:].decode():
            size = 2 if letter == "s" else struct.calcsize("<" + letter.replace("P", "Q"))
            part, left = left[:size].ljust(size, b"\0"), left[size:]
            value, = struct.unpack("<" + letter.replace("P", "Q").replace("s", "H"), part)
            if letter == "s" and value == 32767:
                value = "(null)"
            elif letter == "s":
                size = value & 32767
                value, left = left[:size].decode() + ("..." if value & 32768 else ""), left[size:]
            elif letter == "c":
                value = value.decode()
            elif letter == "?":
                value = "true" if value else "false"
            arguments.append(value)
        name = name.decode()
        return said[0], name % tuple(arguments) if values[:1] == b"%" else name.format(*arguments)

    def lines(self):
        kinds = "resolved" if self.flags & 1 else "raw", "complete" if self.complete else "cut"
        yield "trace 1.%d %s %s" % ((self.minor,) + kinds)
        yield "clock %d %d" % self.rate
        for pair in self.pairs:
            yield "pair %d %d %d %d" % pair
        for index in sorted(self.processes):
            yield from self.process_lines(index)
        for program, reason in self.untraced:
            yield "untraced %s %s" % (escaped(program), escaped(reason))
        for path, text in self.sources:
            yield "source %s %s" % (escaped(path), escaped(text))
        if self.state_source:
            yield ("states by %d flags %d error %d cpus %d from %d to %d lost %d overwritten %d faults %d "
                   "migrations %d note %s") % self.state_source
        for task in self.tasks:
            yield "task %d of %d run %d tracer %d name %s" % task
        for ticks, tid, other, value, cpu, kind in self.states:
            yield "state %d kind %d tid %d other %d value %d cpu %d" % (ticks, kind, tid, other, value, cpu)
        for number, *series in self.series:
            yield "series kind %d of %d pid %d tid %d flags %d" % tuple(series)
            yield from ("point %d value %d" % point[:2] for point in self.points if point[2] == number)

    def process_lines(self, index):
        v, (name, command_line, executable, options) = self.processes[index]
        yield "process %d pid %d parent %d flags %d status %d from %d to %d overwritten %d lost %d" % (v[:5] + v[6:])
        yield "name %s executable %s options %s" % (escaped(name), escaped(executable), escaped(options))
        for argument in command_line.split(b"\0")[:-1]:
            yield "argument " + escaped(argument)
        for (process, module), (numbers, path, build_id) in sorted(self.modules.items()):
            if process == index:
                yield "module %d flags %d bias %d text %d %d loaded %d unloaded %d path %s build-id %s" % (
                    (module,) + numbers + (escaped(path), escaped(b"" if numbers[0] & 2 else build_id)))
                if numbers[0] & 2:  # kModuleByFile
                    whole = build_id if len(build_id) == 28 else bytes(28)
                    yield "file %d size %d modified %d device %d" % struct.unpack("<3QI", whole)
        for (process, function), (module, address, filtered) in sorted(self.functions.items()):
            if process != index:
                continue
            numbers, path, _ = self.modules[process, module]
            fallback = b"%s+0x%x" % (path.split(b"/")[-1], address - numbers[1])
            line, symbol, link, file, values = self.symbols.get((process, function), (0, b"", b"", b"", b""))
            yield "function %d module %d address %d filtered %d name %s link %s at %s %d" % (
                function, module, address, filtered, escaped(symbol or fallback), escaped(link), escaped(file), line)
            if values:
                yield "values " + escaped(values)
        for process, function, (depth, copies, line, call_line), texts in sorted(self.inlined, key=lambda i: i[:2]):
            if process == index:
                name, file, call_file = map(escaped, texts)
                yield "inlined %d depth %d copies %d name %s at %s %d called %s %d" % (
                    function, depth, copies, name, file, line, call_file, call_line)
        if index in self.modes:
            yield "mode least %d clock %d longest %d" % self.modes[index]
        if index in self.costs:
            yield "cost of a call %d inside %d off by %d" % self.costs[index]
        for process, *switch in self.switches:
            if process == index:
                yield "switch %s from %d of %d begin %d end %d reason %d" % tuple(switch)
        for _, process, v, arguments, what in sorted(self.moments):
            if process == index:
                yield ("moment %d kind %d from %d to %d kept %d to %d whole %d lost %d function %d thread %d tid %d "
                       "flags %d at %d %s" % (v + (escaped(what),)))
                yield from ("argument %d" % argument for argument in arguments)
        for (process, thread), (tid, exited, numbers, name) in sorted(self.threads.items()):
            if process != index:
                continue
            yield "thread %d tid %d exited %d from %d to %d overwritten %d lost %d name %s" % (
                (thread, tid, exited) + numbers + (escaped(name),))
            for sequence, ticks, events in self.blocks.get((process, thread), []):
                yield "block %d ticks %d events %d" % (sequence, ticks, len(events))
                for event in events:
                    exit_or_enter = "exit" if event >> 23 & 1 else "enter"
                    time = ticks >> 40 << 40 | event >> 24
                    yield "%s %d %d" % (exit_or_enter, event & 0x7FFFFF, time) if event else "hole"
            for _, ticks, events in self.blocks.get((process, thread), []):
                for event, kind, name, said in self.notes(events):
                    yield "note %d kind %d name %d says %s" % (ticks >> 40 << 40 | event >> 24, kind, name, escaped(said))
                    if kind == 11 and said:
                        symbol = self.symbols[process, name]
                        level, text = self.log(symbol[1], symbol[4], said)
                        yield "log of level %d: %s" % (level, escaped(text.encode()))


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: decode_trace.py FILE")
    with open(sys.argv[1], "rb") as file:
        trace = Trace(file.read())
    for line in trace.lines():
        print(line)


if __name__ == "__main__":
    main()
