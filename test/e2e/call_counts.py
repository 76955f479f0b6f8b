"""How often each function was called, as gcov counted it, beside what karst counted in the same run; and callgrind.

One binary serves both: built by a wrapper with --coverage, so gcov's counters and the sleds see the same calls. Functions
are compared by file and line of their definition, so that template instances, and copies of one function made by
the compiler, are summed on both sides.
"""
import json
import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path

TIMEOUT = 600


class Gcov:
    """Calls by (file, line), and where each symbol is defined, from the .gcda files below a directory. `places`: static
    functions of one name may be defined in several files."""

    def __init__(self, objects, tool="gcov"):
        self.calls = defaultdict(int)
        self.places = defaultdict(set)
        self.names = {}
        self.names_at = defaultdict(set)  # a macro puts several functions in one place
        mangled = defaultdict(set)  # what gcov's demangler gives up on
        for data in sorted(objects.rglob("*.gcda")):
            out = subprocess.run([tool, "--json-format", "--stdout", data.name], cwd=data.parent, check=True,
                                 capture_output=True, text=True, timeout=TIMEOUT).stdout
            for line in out.splitlines():
                report = json.loads(line)
                for file in report["files"]:
                    path = os.path.realpath(os.path.join(report["current_working_directory"], file["file"]))
                    for f in file["functions"]:
                        place = (path, f["start_line"])
                        self.places[f["name"]].add(place)
                        self.names[place] = f["demangled_name"]
                        self.names_at[place].add(f["demangled_name"])
                        if f["demangled_name"].startswith("_Z"):
                            mangled[f["demangled_name"]].add(place)
                        if f["execution_count"]:
                            self.calls[place] += f["execution_count"]
        text = subprocess.run(["c++filt"], input="\n".join(mangled), check=True, capture_output=True, text=True).stdout
        for name, clear in zip(mangled, text.splitlines()):
            for place in mangled[name]:
                self.names_at[place].add(clear)


class Symbols:
    """The functions of binaries: all names of each address."""

    def __init__(self, *binaries):
        self.binaries = {os.path.realpath(b) for b in binaries}
        self.address = {}
        self.names = defaultdict(set)
        for binary in binaries:
            for line in subprocess.run(["nm", str(binary)], check=True, capture_output=True, text=True).stdout.splitlines():
                parts = line.split()
                if len(parts) == 3 and parts[1] in "tTwWuViI":
                    address = (str(binary), parts[0])
                    self.address[parts[2]] = address
                    self.names[address].add(parts[2])

    def aliases(self, name):
        return self.names.get(self.address.get(name), {name})

    def all_names(self):
        return {n for known in self.names.values() for n in known}


def callgrind_calls(path, binaries):
    """Calls by symbol of the binaries: the sum of the calls= lines that lead to it. (Libraries have their own copies of
    some of their functions.)"""
    names = {"fn": {}, "ob": {}}
    calls = defaultdict(int)
    target = current_object = target_object = None
    for line in Path(path).read_text().splitlines():
        match = re.match(r"(c?)(fn|ob)=\((\d+)\)(?: (.*))?$", line.rstrip("\n"))
        if match:
            known = names[match[2]]
            if match[4]:
                known[match[3]] = re.sub(r"'\d+$", "", match[4])
            if match[1] and match[2] == "fn":
                target = known[match[3]]
            elif match[1]:
                target_object = known[match[3]]
            elif match[2] == "ob":
                current_object = known[match[3]]
        elif line.startswith("calls="):
            if os.path.realpath(target_object or current_object) in binaries:
                calls[target] += int(line[6:].split()[0])
            target_object = None
    return calls


def callgrind_places(path, gcov, symbols):
    """Calls by place of what callgrind --demangle=no wrote, for functions that gcov knows."""
    calls = defaultdict(int)
    for name, count in callgrind_calls(path, symbols.binaries).items():
        for alias in symbols.aliases(name):
            if alias in gcov.places:
                calls[min(gcov.places[alias])] += count
                break
    return dict(calls)


def source_around(place):
    if not Path(place[0]).is_file():
        return ""
    lines = Path(place[0]).read_text(errors="replace").splitlines()
    return "\n".join(lines[max(0, place[1] - 6):place[1] + 1]).lower()


def is_compilers_own(name, place):
    """Static initialisation, thunks, and members that nobody wrote down, inherited constructors among them."""
    if Path(place[0]).is_file():
        lines = Path(place[0]).read_text(errors="replace").splitlines()
        if place[1] <= len(lines) and lines[place[1] - 1].strip().startswith("using "):
            return True
    bare = name.replace("(anonymous namespace)", "anonymous")
    while re.search(r"<[^<>]*>", bare):
        bare = re.sub(r"<[^<>]*>", "", bare)
    bare = re.sub(r"\([^()]*\)", "", bare).split("::")
    special = len(bare) > 1 and bare[-1].lstrip("~") == bare[-2] or bare[-1] == "operator="
    return special or name.startswith(("_GLOBAL__sub_", "__static_initialization", "non-virtual thunk", "virtual thunk"))


def is_lambdas_pointer(name):
    """What makes a function pointer of a lambda, and what that points to: at the place of the lambda's own code."""
    return re.search(r"\{lambda\(.*\)#\d+\}::(_FUN\(|operator .*\(\*\)\()", name) is not None


class Comparison:
    """karst's report (list of its functions) beside gcov's counters. `expected` and `seen` are calls by place; what one
    side alone can know is apart, each with its reason:

    inlined    gcov has a counter, but there is only a copy within each caller (always_inline): no call
    own        (how many) karst sees what gcov keeps no counter for: functions that the compiler wrote itself
    unknown    gcov counts calls of a function that is in no symbol table and was not declared inline: a mistake
    uncounted  karst has calls of a function that gcov ought to know: a mistake
    """

    def __init__(self, report, gcov, symbols):
        karst = defaultdict(int)
        self.names = {}
        beside = set()  # the compiler's own in the place of a function that gcov knows
        for f in report:
            place = (os.path.realpath(f["file"]) if f["file"] else f["module"], f["line"])
            name = re.sub(r" \[clone [^]]*\]", "", f["function"])
            if place in gcov.names_at and not any(n == name or n.endswith(" " + name) for n in gcov.names_at[place]) and (
                    is_lambdas_pointer(name) or is_compilers_own(name, place)):
                beside.add(f["function"])
                continue
            karst[place] += f["calls"]
            self.names[place] = f["function"]
        self.names.update(gcov.names)
        known = symbols.all_names()
        # A copy that the compiler made for itself (f.isra.0, f.constprop.0) is an f, too.
        known |= {n.split(".")[0] for n in known}
        emitted = {place for n in known for place in gcov.places.get(n, ())}
        missing = [p for p in gcov.calls if p not in emitted]
        self.inlined = [p for p in missing if "inline" in source_around(p) and p not in karst]
        self.unknown = [p for p in missing if p not in self.inlined]
        extra = [p for p in karst if p not in gcov.names]
        own = [p for p in extra if is_compilers_own(self.names[p], p) or is_lambdas_pointer(self.names[p])]
        self.own = len(own) + len(beside)
        self.uncounted = [p for p in extra if p not in own]
        self.expected = {p: n for p, n in gcov.calls.items() if p in emitted}
        self.seen = {p: n for p, n in karst.items() if p in gcov.names}

    def text(self, place):
        return f"{self.names[place]} ({Path(place[0]).name}:{place[1]})"

    def differences(self):
        return different(self, "gcov", self.expected, self.seen) + \
            [f"{self.text(p)}: in no symbol table, but gcov counted it" for p in self.unknown] + \
            [f"{self.text(p)}: gcov keeps no counter of it, karst saw calls" for p in self.uncounted]

    def summary(self):
        return (f"{len(self.seen)} functions, {sum(self.seen.values())} calls equal; {len(self.inlined)} always inlined, "
                f"{self.own} of the compiler's own")


def different(comparison, who, theirs, ours):
    return [f"{comparison.text(p)}: {who} {theirs.get(p, 0)}, karst {ours.get(p, 0)}"
            for p in sorted(set(theirs) | set(ours)) if theirs.get(p, 0) != ours.get(p, 0)]
