"""The control page of a traced process (format/control.h), from outside: what `karst on` and `off` do, without them."""
import ctypes
import mmap
import os
import struct
import time

LIBC = ctypes.CDLL(None, use_errno=True)
SYS_FUTEX = 202
FUTEX_WAIT, FUTEX_WAKE = 0, 1

# Offsets in ArenaHeader and ArenaControl (format/arena.h, format/control.h).
HEADER = {"functions_offset": 32, "pid": 84, "module_count": 160, "function_count": 164, "blocks_reserved": 176,
          "hand": 184, "control_offset": 232}
CONTROL = {"request": (0, 4), "holder": (4, 4), "enabled": (8, 4), "new_functions": (12, 4), "off_at_ticks": (16, 8),
           "budget_ppm": (24, 4), "applied": (56, 4), "outcome": (60, 4), "thread": (64, 4),
           "patched_functions": (68, 4), "patched_sites": (72, 8), "switch_count": (80, 8), "switches_offset": (88, 8),
           "switch_capacity": (96, 4), "unpatchable_sites": (116, 4), "last_patch_ns": (120, 8)}
NONE, RUNNING, STOPPED = range(3)
DONE, REFUSED = range(2)
ON = 1


def arenas(pid):
    """Descriptors' links of the arenas that the process has, its parent's not among them."""
    found = []
    # By a thread that is there: the main one may have ended, and has no descriptors then.
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            for fd in os.listdir(f"/proc/{pid}/task/{task}/fd"):
                if os.readlink(f"/proc/{pid}/task/{task}/fd/{fd}").startswith("/memfd:karst-arena"):
                    found.append(f"/proc/{pid}/task/{task}/fd/{fd}")
        except FileNotFoundError:
            pass
        if found:
            break
    return found


def has_ended(pid):
    """A process that nobody has waited for yet has no descriptors any more, and will have none."""
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/stat", encoding="ascii", errors="replace") as stat:
                if stat.read().rpartition(")")[2].split()[0] not in "ZX":
                    return False
        return True
    except (FileNotFoundError, ProcessLookupError):
        return True


class Control:
    """Of the process with this pid, as soon as it has an arena of its own."""

    def __init__(self, pid, timeout=60):
        end = time.monotonic() + timeout
        while True:
            for path in arenas(pid):
                fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                if os.fstat(fd).st_size == 0:  # it is being made
                    os.close(fd)
                    continue
                self._map = mmap.mmap(fd, 0)
                os.close(fd)
                if self._word(HEADER["pid"]) == pid and self._word(12) == 2:
                    self._at = self._word(HEADER["control_offset"], 8)
                    return
                self._map.close()
            if time.monotonic() > end or has_ended(pid):
                raise AssertionError(f"process {pid} has no arena")
            time.sleep(0.002)

    def _word(self, at, size=4):
        return int.from_bytes(self._map[at:at + size], "little")

    def _put(self, at, value, size=4):
        self._map[at:at + size] = value.to_bytes(size, "little")

    def blocks(self):
        """How many are real, and how many of these were handed out."""
        return self._word(HEADER["blocks_reserved"]), self._word(HEADER["hand"], 8)

    def __getattr__(self, name):
        if name not in CONTROL:
            raise AttributeError(name)
        at, size = CONTROL[name]
        return self._word(self._at + at, size)

    def put(self, name, value):
        at, size = CONTROL[name]
        self._put(self._at + at, value, size)

    def _futex(self, name, operation, value, seconds=None):
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._map, self._at + CONTROL[name][0]))
        timeout = ctypes.c_buffer(struct.pack("qq", int(seconds), int(seconds % 1 * 1e9))) if seconds else None
        LIBC.syscall(SYS_FUTEX, ctypes.c_void_p(address), operation, value, timeout, None, 0)

    def request(self, wait=60):
        """Asks the process to apply what is wanted; its outcome, or None if there was none in time."""
        number = (self.request_number + 1) & 0xffffffff
        self.put("request", number)
        self._futex("request", FUTEX_WAKE, 1)
        end = time.monotonic() + wait
        while wait:
            applied = self.applied
            if (applied - number) & 0x80000000 == 0:
                return self.outcome
            left = end - time.monotonic()
            if left <= 0:
                return None
            self._futex("applied", FUTEX_WAIT, applied, min(left, 1))
        return None

    @property
    def request_number(self):
        return self._word(self._at)

    def switch(self, on, wait=60):
        self.put("enabled", int(on))
        return self.request(wait)

    @property
    def blocks_taken(self):
        """Grows by one with 504 events, or a few at a time."""
        return self._word(HEADER["hand"], 8)

    @property
    def function_count(self):
        return self._word(HEADER["function_count"])

    def flags(self, function):
        return self._word(self._word(HEADER["functions_offset"], 8) + function * 16 + 12)

    def set_function(self, function, on):
        at = self._word(HEADER["functions_offset"], 8) + function * 16 + 12
        flags = self._word(at)
        self._put(at, flags | ON if on else flags & ~ON)

    @property
    def switches(self):
        """The log: (begin, end, first, count, on, reason)."""
        count, capacity = self.switch_count, self.switch_capacity
        first = max(0, count - capacity)
        at = self.switches_offset
        return [struct.unpack("<QQIIII", self._map[at + i % capacity * 32:at + i % capacity * 32 + 32])
                for i in range(first, count)]
