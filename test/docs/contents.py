"""The guide's contents are complete, limits say what to do instead, and pages stay short: contents.py KARST

Each page of docs/guide and each command of karst stands in docs/guide/README.md, beside a page that tells of it.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs/guide"
LIMITS = [ROOT / "docs/limits.md", *(ROOT / "docs/limits").glob("*.md")]
MOST_LINES = {ROOT / "README.md": 90, **dict.fromkeys([*GUIDE.glob("*.md"), *LIMITS], 300)}


def without_advice(page):
    """Rows of the tables of limits whose second cell is empty."""
    for table in re.findall(r"^\| limit \| instead \|\n.*\n((?:\|.*\n)+)", page.read_text(), re.M):
        yield from (row for row in table.splitlines() if re.search(r"(?<!\\)\|\s*\|$", row))


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
    for page in LIMITS:
        if "| limit | instead |\n" not in page.read_text():
            yield f"{page.relative_to(ROOT)} has no table of limits"
        yield from (f"{page.relative_to(ROOT)} has no advice: {row}" for row in without_advice(page))
    for page, most in MOST_LINES.items():
        lines = len(page.read_text().splitlines())
        if lines > most:
            yield f"{page.relative_to(ROOT)} has {lines} lines, more than {most}"


sys.exit("\n".join(lacks()) or 0)
