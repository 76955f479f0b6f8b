"""Upstream sources out of Debian's source packages, without touching the machine's own apt configuration."""

import pathlib
import re
import shutil
import subprocess


class SourceError(Exception):
    """Sources could not be had; the message says why."""


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


def apt(home, into, *arguments):
    """apt-get with a configuration and lists of its own below `home`, run in `into`."""
    for part in ("lists/partial", "cache/archives/partial"):
        (home / part).mkdir(parents=True, exist_ok=True)
    command = ["apt-get", "-qq", "-o", "Dir::Etc::sourcelist=/dev/null", "-o",
               f"Dir::Etc::sourceparts={home}/sources.list.d", "-o", f"Dir::State::lists={home}/lists", "-o",
               f"Dir::Cache={home}/cache", *arguments]
    done = subprocess.run(command, cwd=into, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SourceError(f"apt-get {' '.join(arguments)} failed: {done.stderr.strip()}")


def debian_source(package, home, name=None):
    """The unpacked upstream source (no patches of Debian's) of a source package, in home/NAME; fetched on first use."""
    directory = home / (name or package)

    def unpacked():
        found = [d for d in sorted(directory.glob("*")) if d.is_dir()] if directory.is_dir() else []
        return found[-1] if found else None

    if unpacked() is not None:
        return unpacked()
    if shutil.which("apt-get") is None:
        raise SourceError(f"no apt-get: the source of {package} comes from Debian")
    configuration = home / "apt"
    archives = configuration / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    if not any((configuration / "lists").glob("*_Sources*")):
        (configuration / "sources.list.d").mkdir(parents=True, exist_ok=True)
        for file, text in source_entries().items():
            (configuration / "sources.list.d" / file).write_text(text)
        apt(configuration, archives, "update")
    apt(configuration, archives, "source", "--download-only", "--tar-only", package)
    found = sorted(archives.glob(f"{package}_*.orig.tar.*"), key=lambda p: p.stat().st_mtime)
    found = [p for p in found if not p.name.endswith(".asc")]
    if not found:
        raise SourceError(f"apt-get source {package} brought no .orig.tar")
    # Under its name only when whole.
    partial = home / f"{directory.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    done = subprocess.run(["tar", "-xf", found[-1], "-C", partial], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SourceError(f"{found[-1].name} cannot be unpacked: {done.stderr.strip()}")
    partial.rename(directory)
    if unpacked() is None:
        raise SourceError(f"{found[-1].name} holds no directory")
    return unpacked()
