"""Lua's source from Debian, without touching the machine's own apt configuration."""

import pathlib
import re
import shutil
import subprocess
import tarfile

from measure import BUILD, BenchError

PACKAGE = "lua5.4"


def source_entries():
    """The machine's own package sources, turned into entries for sources of packages."""
    entries = {}
    for path in sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*.sources")):
        entries[path.name] = re.sub(r"(?m)^Types:.*$", "Types: deb-src", path.read_text())
    lists = [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*.list"))]
    for path in lists:
        if path.is_file():
            lines = [re.sub(r"^deb\s", "deb-src ", line) for line in path.read_text().splitlines()
                     if re.match(r"deb\s", line)]
            entries[path.name] = "".join(line + "\n" for line in lines)
    return {name: text for name, text in entries.items() if text.strip()}


def apt(directory, *arguments):
    for part in ("lists/partial", "cache/archives/partial"):
        (directory / part).mkdir(parents=True, exist_ok=True)
    command = ["apt-get", "-qq", "-o", "Dir::Etc::sourcelist=/dev/null", "-o",
               f"Dir::Etc::sourceparts={directory}/sources.list.d", "-o", f"Dir::State::lists={directory}/lists", "-o",
               f"Dir::Cache={directory}/cache", *arguments]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(arguments)} failed: {done.stderr.strip()}")


def lua_source():
    """The folder with Lua's C files; fetched on first use."""
    directory = BUILD / "third_party" / "lua"
    found = sorted(directory.glob("lua-5.4*/src/lvm.c"))
    if found:
        return found[-1].parent
    if shutil.which("apt-get") is None:
        raise BenchError("no apt-get: Lua's source comes from Debian")
    (directory / "sources.list.d").mkdir(parents=True, exist_ok=True)
    for name, text in source_entries().items():
        (directory / "sources.list.d" / name).write_text(text)
    apt(directory, "update")
    apt(directory, "source", "--download-only", PACKAGE)
    archives = sorted(directory.glob(f"{PACKAGE}_*.orig.tar.*"))
    if not archives:
        raise BenchError(f"apt-get source {PACKAGE} brought no .orig.tar")
    with tarfile.open(archives[-1]) as archive:
        archive.extractall(directory, filter="data")
    found = sorted(directory.glob("lua-5.4*/src/lvm.c"))
    if not found:
        raise BenchError(f"{archives[-1].name} holds no lua-5.4*/src/lvm.c")
    return found[-1].parent
