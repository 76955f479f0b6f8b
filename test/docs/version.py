"""The version is typed in CMakeLists.txt alone, and the changelog has a part for it."""
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = {".txt", ".cmake", ".in", ".json", ".py", ".sh", ".cc", ".h", ".c", ".ts", ".tsx", ".mjs", ""}
# Versions of others; builds; and what is not ours to type.
LEFT_OUT = re.compile(r"build|node_modules|\.git$|package-lock\.json$")

version = re.search(r"^project\(karst VERSION (\S+) ", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
typed = re.compile(rf"(?<![\d.]){re.escape(version)}(?![\d.])")
places = []
for directory, below, files in os.walk(ROOT):
    below[:] = [name for name in below if not LEFT_OUT.match(name)]
    for path in (Path(directory) / name for name in files if not LEFT_OUT.match(name)):
        if path.suffix in CODE and path.is_file() and typed.search(path.read_text(errors="replace")):
            places.append(str(path.relative_to(ROOT)))
if places != ["CMakeLists.txt"]:
    sys.exit(f"{version} is typed in {places}; derive it from CMakeLists.txt")
if f"\n## {version}\n" not in (ROOT / "CHANGELOG.md").read_text():
    sys.exit(f"CHANGELOG.md has no part of {version}")
