"""SQLite in two files, sqlite3.c and shell.c, as its own build makes them from Debian's source."""

import shutil
import subprocess

from debian_source import SourceError, debian_source
from measure import BUILD, WORK, BenchError


def sqlite_source():
    """The folder with sqlite3.c and shell.c; made on first use."""
    folder = WORK / "sqlite" / "source"
    if (folder / "sqlite3.c").is_file() and (folder / "shell.c").is_file():
        return folder
    if shutil.which("tclsh") is None:
        raise BenchError("SQLite's build needs tclsh: script/setup bench")
    try:
        original = debian_source("sqlite3", BUILD / "third_party")
    except SourceError as error:
        raise BenchError(str(error)) from error
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(original, folder, symlinks=True)
    for command in (["./configure", "--disable-tcl", "--disable-readline", "--disable-shared"],
                    ["make", "sqlite3.c", "shell.c"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BenchError(f"{' '.join(command)} in {folder} failed: {done.stderr[-2000:]}")
    return folder
