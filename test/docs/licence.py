"""Each source file of the product says in its first line under which licence it is. What is generated is not asked."""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORDS = "SPDX-License-Identifier: MIT"
KINDS = (".cc", ".h", ".c", ".S", ".inc", ".ts", ".tsx")
NOT_THE_PRODUCT = ("test/", "examples/", "bench/", "fuzz/", "page/test/")
GENERATED = ("page/src/backend/answers.ts", "page/src/backend/protocol.ts")

try:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
except (OSError, subprocess.CalledProcessError):
    print("skipped: this is no git work tree")
    sys.exit(77)
sources = [name for name in listed.split("\0")
           if name.endswith(KINDS) and not name.startswith(NOT_THE_PRODUCT) and name not in GENERATED]
assert len(sources) > 1000, f"only {len(sources)} sources were found"
lacking = [name for name in sources
           if (ROOT / name).exists() and WORDS not in (ROOT / name).read_text(errors="replace").partition("\n")[0]]
for name in lacking:
    print(f"{name}: its first line is not '// {WORDS}'")
sys.exit(1 if lacking else 0)
