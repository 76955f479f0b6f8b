"""Tests that passed at their second try: a finding, not luck. Reads what ctest printed, adds each to a ledger with its
text, and prints the new ones; then ctest's summary again, so that it stays the last thing that is read.

Usage: first_tries.py LOG LEDGER"""
import re
import sys
import time
from pathlib import Path

RESULT = re.compile(r"^ *(?:\d+/\d+ )?Test +#\d+: (\S+) \.*(?: +(Passed)|\*\*\*)")
NEXT = re.compile(r"^ *(?:Start +\d+:|(?:\d+/\d+ )?Test +#\d+:|\d+% tests passed)")


def failed_once(lines):
    """[(test, text of its first try)] of those that passed at a later one."""
    tries = {}
    for number, line in enumerate(lines):
        result = RESULT.match(line)
        if not result:
            continue
        test, passed = result.groups()
        if passed:
            tries.setdefault(test, []).append(None)
            continue
        text = [line]
        for further in lines[number + 1:]:
            if NEXT.match(further):
                break
            text.append(further)
        tries.setdefault(test, []).append("\n".join(text).rstrip())
    return [(test, texts[0]) for test, texts in tries.items() if texts[0] is not None and texts[-1] is None]


def summary(lines):
    """From the share of tests that passed on."""
    at = [number for number, line in enumerate(lines) if re.match(r"^\d+% tests passed", line)]
    return lines[at[-1]:] if at else []


def main():
    log, ledger = map(Path, sys.argv[1:])
    lines = log.read_text(errors="replace").splitlines()
    found = failed_once(lines)
    with ledger.open("a") as kept:
        for test, text in found:
            kept.write(f"{time.strftime('%Y-%m-%d %H:%M')} {test}\n{text}\n\n")
    if not found:
        return
    print(f"\nPassed at their second try; {ledger} has all of this and of earlier runs:")
    for test, text in found:
        print(f"\n{test}\n{text}")
    print("\n" + "\n".join(summary(lines)))


if __name__ == "__main__":
    main()
