"""What the pages write in code against what karst takes: an option belongs to the command before it, and one that needs
a value has one. An option that stands alone must be one of some command. The changelog and pages that are made of the
program (reference.md) are not looked at.

  quoted_options.py KARST ROOT
"""
import json
import re
import subprocess
import sys
from pathlib import Path

karst, root = sys.argv[1], Path(sys.argv[2])
commands = json.loads(subprocess.run([karst, "describe"], check=True, capture_output=True).stdout)["commands"]
options = {c["name"]: {name: o for o in c["options"] for name in o["names"]} for c in commands}
any_command = {name: o for of in options.values() for name, o in of.items()}
# Of linkers, compilers and containers, and of the benchmarks and scripts here.
OTHERS = {"--gc-sections", "--icf=all", "--no-undefined", "--emit-relocs", "--symbol-ordering-file", "--coverage",
          "--section-ordering-file", "--call-graph-ordering-file", "--peers", "--lua", "--karst"}
OTHERS_BEGIN = ("--karst-", "--wrap", "--build-id", "--cap-add")


def is_of_karst(span):
    return span.startswith(("karst ", "--")) and not span.startswith(OTHERS_BEGIN) and span.split()[0] not in OTHERS


def needs_value(option):
    return option["takes_value"] and not option["value_optional"]


def complaint(text):
    """Of a command or of options alone, as one writes them; None: it may be so."""
    words = re.split(r"\s+", text.strip())
    of = any_command
    if words[0] == "karst" and len(words) > 1:
        of = options.get(words[1])
        if of is None:
            return None
        words = words[2:]
    for i, word in enumerate(words):
        if word in ("--", "|", ";", "&&", ">", "#") or word.startswith(("'", '"', "./", "/")):
            return None  # what follows is the program's own, or quoted
        name = re.match(r"--[a-z][a-z-]*$|--[a-z][a-z-]*(?==)", word)
        if name is None:
            continue
        option = of.get(name[0])
        if option is None:
            return f"there is no {name[0]}"
        if needs_value(option) and word == name[0] and i + 1 < len(words) and words[i + 1].startswith("--"):
            return f"{name[0]} needs a value"
    return None


problems, seen = [], 0
for page in sorted([root / "README.md", *(root / "docs").rglob("*.md")]):
    if page.name == "reference.md":
        continue
    for number, line in enumerate(page.read_text().splitlines(), 1):
        spans = re.findall(r"`([^`]+)`", line) + ([line] if line.startswith("karst ") else [])
        for span in spans:
            if "--" not in span or not is_of_karst(span):
                continue
            seen += 1
            if (what := complaint(span)) is not None:
                problems.append(f"{page.relative_to(root)}:{number}: `{span}`: {what}")
if seen < 200 or problems:
    sys.exit("\n".join(problems) or f"only {seen} commands were found")
print(f"{seen} commands and options are as karst has them")
