"""The guide's lists of options against what karst takes: each entry of KARST_OPTIONS stands in one of its tables, beside
the flag that means the same, and nothing stands there that karst does not know.

  options.py KARST PAGE
"""
import json
import re
import subprocess
import sys
from pathlib import Path

karst, page = sys.argv[1], Path(sys.argv[2])
commands = json.loads(subprocess.run([karst, "describe"], check=True, capture_output=True).stdout)["commands"]
known = {o["name"]: o["flag"] for c in commands if c["name"] == "run" for o in c["environment"]}

listed = {}
in_table = False
for line in page.read_text().splitlines():
    if not line.startswith("|"):
        in_table = False
        continue
    cells = [cell.strip() for cell in line.replace("\\|", "/").strip("|").split("|")]
    if len(cells) > 1 and cells[1].strip("`") == "KARST_OPTIONS":
        in_table = True
    elif in_table:
        for name in set(re.findall(r"`([a-z-]+)=", cells[1])):
            if name in listed:
                sys.exit(f"{page.name}: {name}= stands in two rows")
            listed[name] = re.findall(r"--[a-z-]+", cells[0])

problems = [f"{name}= is no option" for name in listed if name not in known]
problems += [f"{name}= is in no table" for name in known if name not in listed]
problems += [f"{name}= stands beside {' '.join(listed[name]) or 'no flag'}; its flag is {flag or 'none'}"
             for name, flag in known.items() if name in listed and flag and flag not in listed[name]]
if len(known) < 25 or problems:
    sys.exit(f"{page.name}: " + ("; ".join(problems) or "karst describes too few options"))
