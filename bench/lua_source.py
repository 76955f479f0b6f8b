"""Lua's source from Debian."""

from debian_source import SourceError, debian_source
from measure import BUILD, BenchError


def lua_source():
    """The folder with Lua's C files; fetched on first use."""
    try:
        folder = debian_source("lua5.4", BUILD / "third_party", "lua-source") / "src"
    except SourceError as error:
        raise BenchError(str(error)) from error
    if not (folder / "lvm.c").is_file():
        raise BenchError(f"{folder} holds no lvm.c")
    return folder
