# SPDX-License-Identifier: MIT
"""libkarst-reader (include/karst/reader.h), by ctypes: any Python 3.8 or newer loads it as it is."""
import ctypes
import os
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from pathlib import Path


class Thread(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("pid", c_uint32), ("tid", c_uint32), ("name", c_char_p), ("process", c_char_p),
                ("overwritten_events", c_uint64), ("lost_events", c_uint64), ("process_number", c_uint32),
                ("is_fiber", c_uint32)]


class Calls(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("count", c_uint64), ("begin_ns", POINTER(c_uint64)), ("end_ns", POINTER(c_uint64)),
                ("duration_ns", POINTER(c_uint64)), ("self_ns", POINTER(c_uint64)), ("function", POINTER(c_uint32)),
                ("parent", POINTER(c_uint32)), ("below_end", POINTER(c_uint32)), ("depth", POINTER(c_uint16)),
                ("marks", POINTER(c_uint8))]


class Function(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("file", c_char_p), ("line", c_uint32), ("is_note", c_uint32),
                ("module", c_char_p)]


def _places():
    """Where the library may lie: as KARST_LIBRARY says, in the installed tree, in a build tree, where the loader looks."""
    if "KARST_LIBRARY" in os.environ:
        return [os.environ["KARST_LIBRARY"]]
    here = Path(__file__).resolve().parent
    name = "libkarst-reader.so.0"
    # PREFIX/share/karst/python/karst, and the source tree's python/karst beside build/.
    near = [here.parents[3] / "lib" / name, here.parents[1] / "build" / "lib" / name]
    return [str(place) for place in near if place.exists()] + [name]


def _load():
    failures = []
    for place in _places():
        try:
            return ctypes.CDLL(place)
        except OSError as why:
            failures.append(str(why))
    raise ImportError("libkarst-reader.so.0 cannot be loaded; KARST_LIBRARY may name it: " + "; ".join(failures))


def _declare(library):
    trace = c_void_p
    for name, result, arguments in (
            ("open", trace, [c_char_p, c_char_p, c_size_t]),
            ("close", None, [trace]),
            ("problem", c_char_p, [trace, c_uint32]),
            ("threads", c_uint32, [trace]),
            ("get_thread", c_int, [trace, c_uint32, POINTER(Thread)]),
            ("get_calls", c_int, [trace, c_uint32, POINTER(Calls)]),
            ("forget", None, [trace, c_uint32]),
            ("get_function", c_int, [trace, c_uint32, c_uint32, POINTER(Function)])):
        function = getattr(library, "karst_trace_" + name)
        function.restype, function.argtypes = result, arguments
    return library


library = _declare(_load())
