"""script/site: each link inside of the site leads to a file, and to an anchor in it."""
import html
import re
import subprocess
import sys
import tempfile
import urllib.parse
from pathlib import Path

root = Path(__file__).resolve().parent.parent.parent
with tempfile.TemporaryDirectory() as directory:
    made = subprocess.run([root / "script/site", directory], capture_output=True, text=True)
    if made.returncode != 0:
        sys.exit(made.stderr)
    pages = {path.resolve(): path.read_text() for path in Path(directory).rglob("*.html")}
    anchors = {path: set(re.findall(r'\bid="([^"]*)"', text)) for path, text in pages.items()}
    wrong, count = [], 0
    for path, text in pages.items():
        for link in map(html.unescape, re.findall(r'\b(?:href|src|srcset)="([^"]*)"', text)):
            if re.match(r"[a-z]+:", link):
                continue
            count += 1
            file, _, anchor = link.partition("#")
            to = (path.parent / file).resolve() if file else path
            if not to.is_file() or (anchor and urllib.parse.unquote(anchor) not in anchors.get(to, ())):
                wrong.append(f"{path.relative_to(Path(directory).resolve())}: {link}")
    missing = [p for p in (root / "docs").rglob("*.md")
               if (Path(directory) / p.relative_to(root)).with_suffix(".html").resolve() not in pages]
    if wrong or missing or count < 500:
        sys.exit("\n".join(["links that lead nowhere:", *wrong, f"{count} links", f"pages left out: {missing}"]))
