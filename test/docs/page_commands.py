"""Runs a page's commands as they stand there: page_commands.py PAGE BIN_DIRECTORY SOURCE_ROOT

Each block that is marked `sh` is run in turn, in a directory of its own in which build/bin and examples are as in the
repository. A comment <!-- expect: REGEX --> behind a block says what it must print; each must match. A page without a
block, or a command that fails, is an error.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def blocks(text):
    """Pairs of a block's commands and what is expected of it."""
    found = []
    for match in re.finditer(r"^```sh\n(.*?)^```$|^<!-- expect: (.*?) -->$", text, re.M | re.S):
        if match[1] is not None:
            found.append((match[1], []))
        else:
            found[-1][1].append(match[2])
    return found


def main(page, bin_directory, root):
    found = blocks(Path(page).read_text())
    if not found:
        sys.exit(f"{page} has no commands")
    if not any(expected for _, expected in found):
        sys.exit(f"{page} expects nothing of its commands")
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        (here / "build").mkdir()
        (here / "build" / "bin").symlink_to(bin_directory)
        (here / "examples").symlink_to(Path(root) / "examples")
        environment = dict(os.environ, XDG_CACHE_HOME=str(here / "cache"))
        for name in ("KARST_OPTIONS", "LD_PRELOAD"):
            environment.pop(name, None)
        for commands, expected in found:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=here, env=environment, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
            if done.returncode != 0:
                sys.exit(f"{page}: these commands end with {done.returncode}:\n{commands}\n{done.stdout}")
            for regex in expected:
                if not re.search(regex, done.stdout, re.M):
                    sys.exit(f"{page}: '{regex}' is not what this prints:\n{commands}\n{done.stdout}")
    print(f"the commands of {page} work")


if __name__ == "__main__":
    main(*sys.argv[1:])
