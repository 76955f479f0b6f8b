"""Runs of one program: its result, and whether two results are the same."""
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from inputs import make_input

BIN = Path(os.environ.get("KARST_BIN", Path(__file__).resolve().parents[3] / "build/bin")).resolve()
KARST = str(BIN / "karst")
ALL_KINDS = "locks,files,net,memory"
MODES = {
    "sched off": ["--sched", "off"],
    "run": [],
    "library": ["--library", "*"],
    "system": ["--system", ALL_KINDS],
    "exec": ["--exec"],
}


class Result(NamedTuple):
    status: int
    out: bytes
    err: bytes
    files: dict
    seconds: float
    said: list  # karst's lines


class Bench:
    def __init__(self, home):
        self.home = home
        self.input = home / "input"
        self.directory = home / "run"
        self.input.mkdir(parents=True)
        home.chmod(0o755)
        (home / "tmp").mkdir()
        make_input(self.input)
        self.environment = {"PATH": "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/games", "HOME": str(home),
            "LANG": "C.UTF-8",
                            "TMPDIR": str(home / "tmp"), "XDG_CACHE_HOME": str(home / "cache"), "TERM": "dumb",
                            "SOURCE_DATE_EPOCH": "1",
                            "OMP_NUM_THREADS": "2", "USER": "root", "FORCE_SOURCE_DATE": "1"}
        for line in ("gcc -g count.c -o count", "javac Count.java", "ps2pdf page.ps page.pdf",
                     "convert -size 500x120 xc:white -pointsize 40 -fill black -annotate +20+70 'Every call, every "
                     "return' words.png"):
            subprocess.run(line, shell=True, cwd=self.input, env=self.environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False)

    def words(self, program):
        return [word.replace("{i}", str(self.input)) for word in program.words]

    def missing(self, program):
        path = self.environment["PATH"]
        if program.words[0] != "dash":
            return None if shutil.which(program.words[0], path=path) else program.words[0]
        tool = {"pipes": "dash", "poppler": "pdftotext"}.get(program.name, program.name)
        return None if shutil.which(tool, path=path) else tool

    def run(self, program, before=()):
        """One run in an empty directory. The time is until the program's end; what karst does after that is waited for."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir()
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out:
            given.write(program.stdin)
            given.seek(0)
            begin = time.monotonic()
            running = subprocess.Popen([*before, *self.words(program)], cwd=self.directory, env=self.environment,
                stdin=given,
                                       stdout=out, stderr=subprocess.PIPE, start_new_session=True)
            late = threading.Timer(program.seconds, lambda: os.killpg(running.pid, signal.SIGKILL))
            late.start()
            errors = []
            reader = threading.Thread(target=lambda: errors.append(running.stderr.read()), daemon=True)
            reader.start()
            status = running.wait()
            seconds = time.monotonic() - begin
            late.cancel()
            reader.join(30)
            out.seek(0)
            written = out.read()
        err, said = [], []
        for line in b"".join(errors).splitlines(keepends=True):
            if line.startswith(b"karst: "):
                said.append(line.decode(errors="replace").strip())
            else:
                err.append(line)
        files = {}
        for path in sorted(self.directory.rglob("*")):
            if path.is_file() and not path.is_symlink():
                files[str(path.relative_to(self.directory))] = hashlib.sha256(path.read_bytes()).hexdigest()

        def part(data):
            return re.sub(program.ignore, b"", data) if program.ignore else data
        return Result(status if not errors or seconds < program.seconds else "none in time", part(written),
            part(b"".join(err)), files,
                      seconds, said)


def differences(one, other):
    """Names of what differs."""
    found = {name: (getattr(one, name), getattr(other, name)) for name in ("status", "out", "err")
             if getattr(one, name) != getattr(other, name)}
    for name in sorted({*one.files, *other.files}):
        if one.files.get(name) != other.files.get(name):
            found["file " + name] = (one.files.get(name), other.files.get(name))
    return found


def around(one, other):
    """Where two texts differ first."""
    if not isinstance(one, bytes):
        return f"{one!r} -> {other!r}"
    at = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
    return f"at {at}: {one[max(0, at - 30):at + 90]!r} -> {other[max(0, at - 30):at + 90]!r}"


# What karst always says.
USUAL = re.compile(r"functions? patched as it was loaded|next: karst slow|are shown as|have no file and line|^karst: so w|"
                   r"source files that are not here")
