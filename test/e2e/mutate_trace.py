"""Traces as a stranger may write them: sound ones with bytes, numbers and events changed, and checksums that are right
again. Written beside docs/trace-format.md, as test/docs/decode_trace.py is, and sharing its checksum."""

import os
import random
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "docs"))
from decode_trace import crc32c  # noqa: E402

INTERESTING = [0, 1, 7, 8, 127, 128, 255, 256, 4095, 4096, 65535, 65536, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40,
               (1 << 63) - 1, 1 << 63, (1 << 64) - 1]


def chunks_of(data):
    """[kind, payload] of each chunk of a sound file, decompressed."""
    found = []
    at = struct.unpack_from("<I", data, 12)[0]
    while at < len(data):
        kind, encoding, stored = struct.unpack_from("<4sIQ", data, at)
        payload = data[at + 32:at + 32 + stored]
        if encoding == 1:
            payload = subprocess.run(["zstd", "-d", "-c"], input=payload, stdout=subprocess.PIPE, check=True).stdout
        found.append([kind, payload])
        at += 32 + (stored + 7) // 8 * 8
    return found


def file_of(data, chunks):
    """A file with the header of `data` and these chunks, stored as they are."""
    header = bytearray(data[:28])
    struct.pack_into("<I", header, 12, 32)
    parts = [bytes(header), struct.pack("<I", crc32c(header))]
    for kind, payload in chunks:
        head = struct.pack("<4sIQQI", kind, 0, len(payload), len(payload), crc32c(payload))
        parts += [head, struct.pack("<I", crc32c(head)), payload, bytes(-len(payload) % 8)]
    return b"".join(parts)


class Mutator:
    """Makes the same files of the same seeds and number."""

    def __init__(self, seeds):
        self.seeds = [(data, chunks_of(data)) for data in seeds]

    def make(self, number):
        rng = random.Random(number)
        data, chunks = rng.choice(self.seeds)
        chunks = [list(chunk) for chunk in chunks]
        # Events are most of what there is to believe: every other file has its changes there alone.
        events_alone = rng.random() < 0.5
        for _ in range(rng.choice((1, 1, 2, 4, 16))):
            choice = [c for c in chunks if c[0] == b"BLKS"] if events_alone else chunks
            if not choice:
                break
            chunk = rng.choice(choice)
            if not chunk[1]:
                continue
            if rng.random() < 0.03:
                other = rng.choice(self.seeds)[1]
                chunks.insert(rng.randrange(len(chunks) + 1), list(rng.choice(other)))
            elif rng.random() < 0.03:
                chunks.remove(chunk)
            else:
                chunk[1] = self.changed(chunk[1], rng)
        whole = file_of(data, chunks)
        if rng.random() < 0.05:
            whole = whole[:rng.randrange(len(whole))]
        return whole

    @staticmethod
    def changed(payload, rng):
        at = rng.randrange(len(payload))
        way = rng.randrange(7)
        bytes_ = bytearray(payload)
        if way == 0:
            bytes_[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            bytes_[at] = rng.randrange(256)
        elif way in (2, 3):  # a number, where numbers are
            size = rng.choice((4, 8))
            at = at // size * size
            number = rng.choice(INTERESTING) if rng.random() < 0.6 else rng.getrandbits(64)
            bytes_[at:at + size] = (number & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
            bytes_ = bytes_[:len(payload)]
        elif way == 4:  # whole events elsewhere
            at = at // 8 * 8
            length = 8 * rng.randrange(1, 64)
            to = rng.randrange(len(payload)) // 8 * 8
            piece = bytes_[at:at + length]
            bytes_[to:to + len(piece)] = piece
            bytes_ = bytes_[:len(payload)]
        elif way == 5:  # and times of events: the upper bits of each word
            at = at // 8 * 8
            if at + 8 <= len(bytes_):
                word = int.from_bytes(bytes_[at:at + 8], "little")
                word = (word & 0xFFFFFF) | (rng.getrandbits(40) >> rng.randrange(40)) << 24
                bytes_[at:at + 8] = word.to_bytes(8, "little")
        else:
            del bytes_[at:at + rng.randrange(1, 32)]
        return bytes(bytes_)
