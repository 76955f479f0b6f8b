"""An installed Karst for the tests: `cmake --install` into one place, then moved to another."""
import csv
import io
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ["KARST_BUILD_TREE"])
ROOT = Path(os.environ["KARST_SOURCE_ROOT"])
WORK = Path(os.environ["KARST_E2E_WORK"])
TIMEOUT = 240

for name in ("KARST_OPTIONS", "LD_PRELOAD", "KARST_CC", "KARST_CXX", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "MAKEFLAGS"):
    os.environ.pop(name, None)
os.environ["XDG_CACHE_HOME"] = str(WORK / "cache")

# Calls of examples/builds, function by function: app and checksum are traced, vendor is not.
APP_CALLS = {"main": 1, "app::step(int)": 10, "checksum": 10, "rotate": 50}
ALL_CALLS = {**APP_CALLS, "vendor_scale(int)": 10, "twice(int)": 10}


def command(*words, **more):
    """Runs a command to its end; its output on both streams."""
    done = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=TIMEOUT, **{"stdin": subprocess.DEVNULL, **more})
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def machine_code(path):
    """ELF files and archives of them: their debug information names the sources' places."""
    with open(path, "rb") as file:
        return file.read(4) in (b"\x7fELF", b"!<ar")


class Installed(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        WORK.mkdir(parents=True, exist_ok=True)
        cls.base = Path(tempfile.mkdtemp(prefix="installed.", dir=WORK))
        cls.addClassCleanup(shutil.rmtree, cls.base, ignore_errors=True)
        cls.staged = cls.base / "staged"
        cls.log = command("cmake", "--install", BUILD, "--prefix", cls.staged)
        cls.prefix = cls.base / "moved" / "karst"
        cls.prefix.parent.mkdir()
        cls.staged.rename(cls.prefix)

    def setUp(self):
        self.directory = Path(tempfile.mkdtemp(prefix=self._testMethodName + ".", dir=self.base))

    @property
    def bin(self):
        return self.prefix / "bin"

    def environment(self, **more):
        """The installed tree's commands first in PATH."""
        return {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", **more}

    def example(self):
        """A copy of examples/builds to build in."""
        copy = self.directory / "builds"
        shutil.copytree(ROOT / "examples/builds", copy)
        return copy

    def counts(self, program, *arguments):
        """Calls by function of a run under the installed karst."""
        trace = self.directory / "trace.karst"
        command(self.bin / "karst", "run", "-o", trace, program, *arguments, cwd=self.directory)
        text = command(self.bin / "karst", "report", trace, "--format", "csv")
        counts = {}
        for row in csv.DictReader(io.StringIO(text)):
            counts[row["function"]] = int(row["calls"])
        return counts
