#!/usr/bin/env python3
"""Arguments and returned values of programs that nobody here wrote, as karst notes them and as gdb sees them.

  script/soak values [NAME...]      all, or those named, by -O0 and by -O2; status 1 when a value differs

Built as script/soak programs does. The same binary runs traced, and under gdb with its sleds untouched; the first calls of
some functions that only the main thread calls are compared. What differs between two traced runs is left out, and texts
that are not ASCII or in buffers, which are yet to be filled. Addresses are compared within the program alone, as
heaps and stacks differ. A value that gdb does not find is karst's alone and not compared.
"""
import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from programs import ROOT, Bench, ProgramError, SourceError, karst_json  # noqa: E402
from recipes import RECIPES  # noqa: E402

NAMES = ("lua", "lua-c++", "sqlite", "zstd", "leveldb")
CALLS = 3         # of each function
FUNCTIONS = 250   # of each program
LEAST = 40        # equal values: a comparison of nothing is a failure, too
PROGRAM = 0x555555554000  # where it lies without randomization
MOST_CALLS = 20000  # of a function: its rows are all read


def addresses(binary):
    """Demangled name to address while it runs, of names that only one function has."""
    symbols = [parts for line in subprocess.run(["nm", str(binary)], check=True, capture_output=True, text=True).stdout.splitlines()
               if len(parts := line.split()) == 3 and parts[1] in "tTwW"]
    clear = subprocess.run(["c++filt"], input="\n".join(p[2] for p in symbols), check=True, capture_output=True,
                           text=True).stdout.splitlines()
    times = Counter(clear)
    return {c: PROGRAM + int(parts[0], 16) for c, parts in zip(clear, symbols) if times[c] == 1}


def split(text):
    """`a=1, b="x, y"` to pairs; commas in texts, characters and braces separate nothing."""
    pairs, begin, depth, quote, i = [], 0, 0, "", 0
    while i < len(text):
        c = text[i]
        if quote:
            if c == "\\":
                i += 1
            elif c == quote:
                quote = ""
        elif c in "\"'":
            quote = c
        elif c in "{[<":
            depth += 1
        elif c in "}]>":
            depth -= 1
        elif c == "," and depth == 0:
            pairs.append(text[begin:i].strip())
            begin = i + 1
        i += 1
    pairs.append(text[begin:].strip())
    return [tuple(p.split("=", 1)) for p in pairs if "=" in p]


def unquoted(text):
    """The bytes, as latin-1, and whether it is cut; None for what is no text."""
    match = re.fullmatch(r'"(.*)"(\.\.\.)?', text, re.DOTALL)
    if not match:
        return None
    escapes = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "0": "\0"}
    plain = re.sub(r"\\(x[0-9a-f]{2}|.)", lambda m: chr(int(m[1][1:], 16)) if m[1][0] == "x" else escapes.get(m[1], m[1]), match[1])
    return [plain.encode("utf-8").decode("latin-1") if not all(ord(c) < 256 for c in plain) else plain, match[2] is not None]


def agrees(ours, kind, theirs, module):
    """True, False, or None: nothing to compare."""
    if kind in ("gone", "error", "other", "members") or ours in ("<optimized out>", "<not shown>"):
        return None
    if kind == "bool":
        return ours == ("true" if theirs else "false")
    if kind == "int":
        number, size = theirs
        if ours.startswith("'"):
            body = ours[1:-1]
            code = int(body[2:], 16) if body.startswith("\\x") else ord({"\\n": "\n", "\\t": "\t", "\\r": "\r", "\\0": "\0", "\\'": "'",
                                                                       "\\\\": "\\"}.get(body, body))
            return code % 256 == number % 256
        return int(ours, 0) == number
    if kind == "enum":
        text, number = theirs
        return ours == text.split("::")[-1] or ours == str(number) or ours.split("::")[-1] == text.split("::")[-1] or \
            (re.fullmatch(r"-?\d+|0x[0-9a-f]+", ours) is not None and int(ours, 0) == number)
    if kind == "float":
        number = float(ours)
        return number == theirs or abs(number - theirs) <= 1e-5 * abs(theirs) or (theirs != theirs and number != number)
    if kind in ("address", "buffer") or (kind == "text" and unquoted(ours) is None):
        address = theirs[0] if kind == "text" else theirs
        if ours in ("null", "0x0", "<unreadable>"):
            return ours == "<unreadable>" or address == 0
        if not re.fullmatch(r"0x[0-9a-f]+", ours):
            return None  # a text in a buffer
        found = int(ours, 16)
        if module[0] <= address < module[1] or module[0] <= found < module[1]:
            return found == address
        return (address == 0) == (found == 0)
    _, text, cut = theirs
    mine = unquoted(ours)
    readable = text is not None and all(t.isascii() and t.replace("\n", "").isprintable() for t in (text, mine[0]))
    return mine == [text, cut] if readable else None


def member(kind, value, path):
    for name in path:
        if kind != "members" or name not in value:
            return "other", None
        kind, value = value[name]
    return kind, value


def compared(ours, again, theirs, module, tally, where, wrong):
    again = dict(again)
    for name, text in ours:
        if again.get(name) != text and not text.startswith("0x"):
            tally["not compared"] += 1
            continue
        path = name.split(".")
        if path[0] not in theirs:
            tally["not compared"] += 1
            continue
        kind, value = member(*theirs[path[0]], path[1:])
        verdict = agrees(text, kind, value, module)
        tally[{None: "not compared", True: "equal", False: "DIFFERENT"}[verdict]] += 1
        if verdict is False:
            wrong.append(f"{where}: {name} is {text} by karst, {value} by gdb ({kind})")


def first_calls(bench, names, trace):
    """Rows by function, of those that only the main thread calls: which calls of others are the first is chance."""
    found = defaultdict(list)
    elsewhere = set()
    for row in karst_json(bench, "calls", trace, "--function", "^(" + "|".join(map(re.escape, names)) + ")$")["calls"]:
        if row["pid"] != row["tid"]:
            elsewhere.add(row["function"])
        elif len(found[row["function"]]) < CALLS:
            found[row["function"]].append(row)
    return {name: rows for name, rows in found.items() if name not in elsewhere}


def returned(text, kind):
    return [("returned." + n, t) for n, t in split(text.strip("{}"))] if kind == "members" else [("returned", text)]


def examine(bench, level):
    recipe = bench.recipe
    # Lua's hashes are else made of the time and of addresses: sizeof(L) takes the place of luai_makeseed(L).
    recipe.build(bench, f"{level} -g" + (" -Dluai_makeseed=sizeof" if "lua" in recipe.name else ""))
    bench.options = ["--args", ".", "--returns", "."]
    # The same addresses as under gdb, which switches their randomization off.
    bench.before = ["setarch", "-R"]
    recipe.run(bench)
    recipe.run(bench)
    words, cwd, env, stdin = bench.runs[0]
    binary = Path(words[0])
    known = addresses(binary)
    report = [f for f in karst_json(bench, "report", bench.traces[0])["functions"] if 0 < f["calls"] <= MOST_CALLS]
    times = Counter(f["name"] for f in report)
    names = sorted(f["name"] for f in report if times[f["name"]] == 1 and f["name"] in known)
    names = names[::max(1, len(names) // FUNCTIONS)]
    rows, again = (first_calls(bench, names, bench.traces[i]) for i in (0, len(bench.traces) // 2))
    wish = {"functions": {n: known[n] for n in names if n in rows}, "at_entry": level != "-O0", "calls": CALLS,
            "arguments": " ".join(f"'{w}'" for w in words[1:]) + (f" < '{stdin}'" if stdin else ""),
            "output": str(bench.directory / "gdb.json")}
    environment = {**(env or bench.environment()), "KARST_VALUES": json.dumps(wish)}
    bench.command("gdb", "-batch", "-nx", "-x", HERE / "values_gdb.py", binary, cwd=cwd, env=environment)
    if not Path(wish["output"]).exists():
        raise ProgramError(f"gdb wrote nothing, see {bench.log}")
    by_gdb = json.loads(Path(wish["output"]).read_text())
    loads = re.findall(r"^ +LOAD +\S+ (0x\w+) \S+ \S+ (0x\w+)", subprocess.run(
        ["readelf", "-lW", str(binary)], check=True, capture_output=True, text=True).stdout, re.MULTILINE)
    module = (PROGRAM, PROGRAM + max(int(begin, 16) + int(size, 16) for begin, size in loads))
    tally, wrong, functions = Counter(), [], 0
    for name in names:
        theirs = by_gdb.get(name, [])
        functions += bool(theirs)
        # gdb loses some returns, and then takes another stop for one.
        returns = all("returned" in call for call in theirs)
        for i, (call, row, other) in enumerate(zip(theirs, rows.get(name, []), again.get(name, []))):
            where = f"{name}, call {i + 1}"
            if not row["arguments"] and any(kind not in ("gone", "error") for kind, _ in call["arguments"].values()):
                tally["nothing noted"] += 1
            compared(split(row["arguments"]), split(other["arguments"]), call["arguments"], module, tally, where, wrong)
            if returns and row["returned"]:
                ours, second = (returned(r["returned"], call["returned"][0]) for r in (row, other))
                compared(ours, second, {"returned": call["returned"]}, module, tally, where, wrong)
    return functions, tally, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--karst", type=Path, default=ROOT / "build/bin")
    parser.add_argument("--work", type=Path, default=ROOT / "build/programs-values")
    parser.add_argument("--third-party", type=Path, default=ROOT / "build/third_party")
    options = parser.parse_args()
    known = {r.name: r for r in RECIPES if r.name in NAMES}
    for name in options.names:
        if name not in known:
            parser.error(f"there is no program {name}; there are: {', '.join(known)}")
    if shutil.which("gdb") is None:
        sys.exit("values: gdb is not installed; script/setup test installs it")
    failed = False
    for name in options.names or NAMES:
        for level in ("-O0", "-O2"):
            begin = time.time()
            bench = Bench(known[name], options.karst.resolve(), options.work.resolve() / level.strip("-"),
                          options.third_party.resolve(), True)
            try:
                functions, tally, wrong = examine(bench, level)
            except (ProgramError, SourceError) as error:
                print(f"{name} {level}: {error}", flush=True)
                failed = True
                continue
            failed = failed or bool(wrong) or tally["equal"] < LEAST
            print(f"{name} {level}: {functions} functions, {tally['equal']} values equal, {tally['DIFFERENT']} DIFFERENT, "
                  f"{tally['not compared']} not compared; of {tally['nothing noted']} calls nothing is noted that gdb "
                  f"has something of; {time.time() - begin:.0f} s", flush=True)
            for line in wrong[:30]:
                print(f"    {line}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
