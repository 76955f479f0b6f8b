"""Lines of the pages end at 120 columns: prose, not code, tables, pictures and what is one word."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTH = 120
# A code span cannot be wrapped without a change; made by packaging/describe.py from what karst says.
FREE = re.compile(r"\s*(\||<|!\[|`[^`]*`$|\S*$)")


def long_lines(path):
    code = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        code ^= line.lstrip().startswith("```")
        if not code and len(line) > WIDTH and not FREE.match(line):
            yield f"{path.relative_to(ROOT)}:{number}: {len(line)} columns"


pages = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
assert len(pages) > 15, pages
found = [line for page in pages for line in long_lines(page)]
sys.exit("\n".join(found) or 0)
