# SPDX-License-Identifier: MIT
"""Traces of Karst in Python.

    import karst
    trace = karst.open("app.karst")
    for thread in trace.threads:
        calls = thread.calls            # columns: begin_ns, duration_ns, self_ns, function, parent, depth, ...
        slowest = max(range(len(calls)), key=calls.duration_ns.__getitem__, default=None)
    for call in trace:                  # each call in order of its begin, thread by thread
        if call.duration_ns > 1_000_000: print(call.thread.name, call.name, call.duration_ns)
    rows = trace.query("SELECT function, count(*) AS n FROM calls GROUP BY function")
    frame = rows.to_pandas()

Columns are buffers of the library's memory, without a copy: memoryviews, or arrays of numpy where it is there
(`calls.numpy()`). They live as long as their thread object does. Nothing but the standard library is needed.
"""
import ctypes
import json
import os
import shutil
import subprocess
from pathlib import Path

from ._library import Calls as _Calls
from ._library import Function as _Function
from ._library import Thread as _Thread
from ._library import library as _library

__all__ = ["Call", "Calls", "Error", "Function", "Rows", "Thread", "Trace", "open"]

NO_CALL = 0xFFFFFFFF
OPEN_BEGIN, OPEN_END, UNWOUND, JUMPED, TAIL_CALL, RESUMED, SWITCHED, INHERITED = (1 << bit for bit in range(8))
"""Bits of a call's marks; none: begin and end are known, and it returned."""


class Error(Exception):
    """A trace that cannot be read, or a query that has no answer; the text says why."""


def open(path):  # noqa: A001: karst.open(), as the module's users write it
    """The trace in a file. Error: there is none, or it is no trace."""
    return Trace(path)


def _text(value):
    return value.decode("utf-8", "replace")


class Function:
    """A function of a process: name, file (empty: not known), line (0: not known), module, is_note."""

    __slots__ = ("name", "file", "line", "module", "is_note")

    def __init__(self, found):
        self.name, self.file, self.module = _text(found.name), _text(found.file), _text(found.module)
        self.line, self.is_note = found.line, bool(found.is_note)

    def __repr__(self):
        return f"<karst.Function {self.name}>"


class Calls:
    """A thread's calls as columns of equal length, in order of begin, parents before their children. Times are ns since
    the trace's first event. The calls below row i are the rows from i + 1 up to, and without, below_end[i]."""

    COLUMNS = ("begin_ns", "end_ns", "duration_ns", "self_ns", "function", "parent", "below_end", "depth", "marks")

    def __init__(self, thread, found):
        self.thread = thread  # whose trace has the memory
        self._count = found.count
        for name in self.COLUMNS:
            setattr(self, name, self._view(getattr(found, name)))

    def _view(self, pointer):
        kind = pointer._type_
        if self._count == 0:
            return memoryview(b"").cast("B").cast(kind._type_)
        array = (kind * self._count).from_address(ctypes.addressof(pointer.contents))
        array._karst_owner = self.thread  # the buffer keeps the array, which keeps the trace
        return memoryview(array).cast("B").cast(kind._type_).toreadonly()

    def __len__(self):
        return self._count

    def __getitem__(self, row):
        if not -self._count <= row < self._count:
            raise IndexError(row)
        return Call(self, row % self._count)

    def __iter__(self):
        return (Call(self, row) for row in range(self._count))

    def numpy(self):
        """The columns as a dict of numpy arrays, which share their memory."""
        import numpy
        return {name: numpy.asarray(getattr(self, name)) for name in self.COLUMNS}


class Call:
    """One call: begin_ns, end_ns, duration_ns, self_ns, depth, marks; thread, function, name, parent, children."""

    __slots__ = ("_calls", "row")

    def __init__(self, calls, row):
        self._calls, self.row = calls, row

    thread = property(lambda self: self._calls.thread)
    begin_ns = property(lambda self: self._calls.begin_ns[self.row])
    end_ns = property(lambda self: self._calls.end_ns[self.row])
    duration_ns = property(lambda self: self._calls.duration_ns[self.row])
    self_ns = property(lambda self: self._calls.self_ns[self.row])
    depth = property(lambda self: self._calls.depth[self.row])
    marks = property(lambda self: self._calls.marks[self.row])
    is_open = property(lambda self: bool(self.marks & (OPEN_BEGIN | OPEN_END)))
    function = property(lambda self: self.thread.function(self._calls.function[self.row]))
    name = property(lambda self: self.function.name)

    @property
    def parent(self):
        """The call that it was made in; None: no traced one."""
        above = self._calls.parent[self.row]
        return None if above == NO_CALL else Call(self._calls, above)

    @property
    def children(self):
        """The traced calls that it made itself, in order."""
        at, end = self.row + 1, self._calls.below_end[self.row]
        while at < end:
            yield Call(self._calls, at)
            at = self._calls.below_end[at]

    def __repr__(self):
        return f"<karst.Call {self.name}, {self.duration_ns} ns at {self.begin_ns} ns>"


class Thread:
    """A thread, or a fiber: pid, tid, name, process, is_fiber, overwritten_events, lost_events; calls, function()."""

    def __init__(self, trace, index):
        found = _Thread(size=ctypes.sizeof(_Thread))
        if _library.karst_trace_get_thread(trace._handle, index, ctypes.byref(found)) != 0:
            raise IndexError(index)
        self.trace, self.index = trace, index
        self.pid, self.tid, self.is_fiber = found.pid, found.tid, bool(found.is_fiber)
        self.name, self.process = _text(found.name), _text(found.process)
        self.overwritten_events, self.lost_events = found.overwritten_events, found.lost_events
        self._process_number = found.process_number
        self._calls = None

    @property
    def calls(self):
        """Its calls, which are made when they are asked for first: 47 bytes of memory each."""
        if self._calls is None:
            found = _Calls(size=ctypes.sizeof(_Calls))
            if _library.karst_trace_get_calls(self.trace._handle, self.index, ctypes.byref(found)) != 0:
                raise MemoryError("the calls of a thread do not fit into memory")
            self._calls = Calls(self, found)
        return self._calls

    def function(self, id):
        """By its id, as Calls.function has it."""
        known = self.trace._functions.setdefault(self._process_number, {})
        if id not in known:
            found = _Function(size=ctypes.sizeof(_Function))
            if _library.karst_trace_get_function(self.trace._handle, self.index, id, ctypes.byref(found)) != 0:
                name = f"function#{id}".encode()  # as other commands call one that no record names
                found = _Function(name=name, file=b"", module=b"")
            known[id] = Function(found)
        return known[id]

    def __repr__(self):
        return f"<karst.Thread {self.tid} {self.name}>"


class Rows(list):
    """What a query answers: a dict for each row. `columns` has their names, also where there is no row."""

    def __init__(self, columns, rows):
        super().__init__(rows)
        self.columns = columns

    def _column(self, name):
        return [row[name] for row in self]

    def to_pandas(self):
        import pandas
        return pandas.DataFrame({name: self._column(name) for name in self.columns}, columns=self.columns)

    def to_polars(self):
        import polars
        return polars.DataFrame({name: self._column(name) for name in self.columns})

    def to_arrow(self):
        import pyarrow
        return pyarrow.table({name: self._column(name) for name in self.columns})


class Trace:
    """A trace. Iterating goes through all calls, thread by thread in order of begin."""

    def __init__(self, path):
        self._handle = None
        self.path = os.fspath(path)
        why = ctypes.create_string_buffer(1024)
        self._handle = _library.karst_trace_open(os.fsencode(self.path), why, len(why))
        if not self._handle:
            raise Error(_text(why.value))
        self._functions = {}
        self.threads = [Thread(self, index) for index in range(_library.karst_trace_threads(self._handle))]

    def __del__(self):
        # Threads and columns refer to it: nobody looks any more.
        if self._handle and _library is not None:
            _library.karst_trace_close(self._handle)

    @property
    def problems(self):
        """What of the file could not be used, in words."""
        found, at = [], 0
        while (text := _library.karst_trace_problem(self._handle, at)) is not None:
            found.append(_text(text))
            at += 1
        return found

    def __iter__(self):
        for thread in self.threads:
            yield from thread.calls

    def query(self, sql):
        """Asks in SQL, as `karst query` does; returns Rows. Needs the command `karst` (KARST names another one)."""
        command = os.environ.get("KARST") or self._command()
        done = subprocess.run([command, "query", "--format", "json", "--", self.path, sql], capture_output=True)
        if done.returncode != 0:
            raise Error(_text(done.stderr).strip())
        rows = json.loads(done.stdout)
        return Rows(list(rows[0]) if rows else [], rows)

    @staticmethod
    def _command():
        here = Path(__file__).resolve().parent
        for near in (here.parents[3] / "bin/karst", here.parents[1] / "build/bin/karst"):
            if near.exists():
                return str(near)
        found = shutil.which("karst")
        if found is None:
            raise Error("there is no command karst, which asks in SQL; KARST may name it")
        return found

    def __repr__(self):
        return f"<karst.Trace {self.path}>"
