"""docs/reference.md is what karst says of itself. KARST_RENEW=1 writes it instead of comparing.

  reference.py KARST DESCRIBE PAGE
"""
import difflib
import json
import os
import subprocess
import sys
from pathlib import Path

karst, describe, page = sys.argv[1], sys.argv[2], Path(sys.argv[3])
made = subprocess.run([sys.executable, describe, karst, "--reference"], check=True, capture_output=True, text=True).stdout
if "KARST_RENEW" in os.environ:
    page.write_text(made)
there = page.read_text()
if there != made:
    sys.stdout.writelines(difflib.unified_diff(there.splitlines(True), made.splitlines(True), str(page), "karst"))
    sys.exit(f"{page.name} is not what karst says of itself; KARST_RENEW=1 ctest --test-dir build -R docs.reference "
             "writes it")
# What the page's maker may have forgotten.
for command in json.loads(subprocess.run([karst, "describe"], check=True, capture_output=True).stdout)["commands"]:
    part = made.partition(f"\n## karst {command['name']}\n")[2].partition("\n## ")[0]
    for option in command["options"]:
        for name in option["names"]:
            if f"`{name}`" not in part:
                sys.exit(f"{page.name}: karst {command['name']} lacks {name}")
long_lines = [line for line in made.splitlines() if len(line) > 120]
if long_lines:
    sys.exit("lines of over 120 columns:\n" + "\n".join(long_lines))
