"""The guide's contents are complete, and pages stay short: contents.py KARST

Each page of docs/guide and each command of karst stands in docs/guide/README.md, beside a page that tells of it.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs/guide"
MOST_LINES = 300


def lacks():
    contents = (GUIDE / "README.md").read_text()
    for page in sorted(GUIDE.glob("*.md")):
        if page.name != "README.md" and f"]({page.name}" not in contents:
            yield f"docs/guide/README.md does not list {page.name}"
    row = dict(re.findall(r"\| `karst (\w+)` \| \[\w+\]\(([^)#]+)", contents))
    described = json.loads(subprocess.run([sys.argv[1], "describe"], check=True, capture_output=True).stdout)
    for name in (command["name"] for command in described["commands"] if command["name"] != "help"):
        if name not in row:
            yield f"docs/guide/README.md has no row for karst {name}"
        elif f"karst {name}" not in (GUIDE / row[name]).read_text():
            yield f"docs/guide/README.md: {row[name]} does not tell of karst {name}"
    for page in [*GUIDE.glob("*.md")]:
        lines = len(page.read_text().splitlines())
        if lines > MOST_LINES:
            yield f"{page.relative_to(ROOT)} has {lines} lines, more than {MOST_LINES}"


sys.exit("\n".join(lacks()) or 0)
