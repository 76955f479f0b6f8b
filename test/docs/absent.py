"""What pages say is absent is tried: absent.py BIN_DIRECTORY

Each row has a page, what it says, a command, and what the command must then say. A page that no longer says so, or a
command that does otherwise, is an error: a denial outlives what it denies.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
#include <karst/karst.h>
#include <time.h>
#include <cstdio>
static inline __attribute__((always_inline)) int doubled(int n) { return n * 2; }
__attribute__((noinline)) int work(int n) { return doubled(n) + 1; }
extern "C" KARST_NOTRACE __attribute__((noinline)) int quiet(int n) { return n / 3 + 7; }
__attribute__((noinline)) void wait(timespec time) { KARST_ZONE("a zone"); nanosleep(&time, nullptr); }
int main() { int sum = 0; for (int i = 0; i < 20; ++i) sum += work(i) + quiet(i); std::printf("%d\\n", sum); wait({0, 2000000}); }
"""
BUILD = """
karst-g++ -O2 -g app.cc -o app && karst run ./app
karst-g++ -O2 -s app.cc -o stripped && karst run ./stripped
g++ -O2 -static app.cc -o static && karst run ./static
"""
FAILS, ENDS_WELL = True, False

CLAIMS = [
    ("docs/how-to/coming-from.md", "Hardware counters (cache misses, branches)",
     "karst run --counters cycles ./app", "there is no option '--counters'", FAILS),
    ("docs/how-to/coming-from.md", "A list of all system calls",
     "karst syscalls app.karst", "there is no command 'syscalls'", FAILS),
    ("docs/how-to/coming-from.md", "Profiles for compilers",
     "karst export --to order --format profile app.karst", "'profile' is none of symbols, sections, callgraph", FAILS),
    ("docs/guide/flame.md", "There is no sample profile",
     "karst export --to order --format autofdo app.karst", "'autofdo' is none of", FAILS),
    ("docs/guide/export.md", "`--function`, `--below` and `--min-duration` do not go with it",
     "karst export app.karst --to html --function work -o x.html", "do not go with --to html", FAILS),
    ("docs/guide/export.md", "`--function`, `--below` and `--min-duration` do not go with it",
     "karst export app.karst --to html --below work -o x.html", "do not go with --to html", FAILS),
    ("docs/limits/may-recording.md", "`karst export --to html` takes no `--request`",
     "karst export app.karst --to html --request 1 -o x.html", "do not go with --to html", FAILS),
    ("docs/guide/cost.md", "`--budget` and `--min-duration` exclude each other",
     "karst run --budget 5% --min-duration 5us ./app", "do not go together", FAILS),
    ("docs/guide/run.md", "`--exec` goes with neither `--view` nor `--fail-overhead`",
     "karst run --exec --fail-overhead 5% ./app", "--exec goes with neither", FAILS),
    ("docs/guide/looking.md", "All commands that look at a trace, but `diff` and `export`, take the newest",
     "karst export --to chrome -o x.json", "FILE is missing", FAILS),
    ("docs/guide/looking.md", "All commands that look at a trace, but `diff` and `export`, take the newest",
     "karst diff", "is missing", FAILS),
    ("docs/guide/control.md", "without it they are an error",
     "karst attach 1 --last 5ms", "--last needs a place to wait for: --trigger", FAILS),
    ("docs/guide/unbuilt.md", "libc, the dynamic linker and libkarst are never patched",
     "karst run --library 'libc.so*' ./app", "libc, the loader and libkarst are never patched", FAILS),
    ("docs/guide/building.md", "What cannot be mixed is refused with the reason: 32-bit code",
     "karst-g++ -m32 app.cc -o x", "only 64-bit x86-64 code can be traced", FAILS),
    ("docs/guide/building.md", "gcc's `-pg`",
     "karst-g++ -pg app.cc -o x", "-pg and sleds are made of the same calls", FAILS),
    ("docs/limits/may-recording.md", "Wrappers refuse `-fpatchable-function-entry`",
     "karst-clang++ -fpatchable-function-entry=4 app.cc -o x", "leave it out, or use", FAILS),
    ("docs/guide/fibers.md", "`--prefault` does not go with it",
     "karst run --fibers=stack --prefault ./app", "do not go together", FAILS),
    ("docs/limits/may-recording.md", "go on with the TSC. Not with `--prefault`",
     "karst run --clock thread --prefault -o x.karst ./app", "clock=thread ignored", ENDS_WELL),
    ("docs/limits/may-reading.md", "contexts of `--fibers` cannot be had of a process that runs",
     "karst attach --fibers=contexts 1", "stack or none is needed", FAILS),
    ("docs/limits/may-recording.md", "`karst report --by` takes one argument",
     "karst report app.karst --function work --by arg:n --by returned", "--by is given too often", FAILS),
    ("docs/limits/may-reading.md", "no look-around, no back-references",
     "karst report app.karst --function '(?=work)'", "is no regular expression", FAILS),
    ("docs/limits/may-recording.md", "**`--slowest` and `--over`** look at calls and zones",
     "karst run --over '^a zone$:1ms' -o x.karst ./app && karst info x.karst", r"over .* a zone", ENDS_WELL),
    ("docs/how-to/overhead.md", "Only `KARST_NOTRACE` in the source takes these away",
     "objdump -d app --disassemble=quiet | grep -c nopl", "^0$", FAILS),
    ("docs/how-to/overhead.md", "The functions keep their NOPs",
     "echo 'work*' >list.txt && karst-g++ -O2 --karst-no-trace=list.txt app.cc -o x && objdump -d x --disassemble=_Z4worki",
     "nopl", ENDS_WELL),
    ("docs/limits.md", "**Inlined functions** have no call, and so no event",
     "karst calls app.karst --function doubled", "no function of app.karst has a name that matches", FAILS),
    ("docs/limits.md", "**Static programs** cannot load the runtime",
     "karst run ./static", "no calls, as it is statically linked", ENDS_WELL),
    ("docs/limits.md", "**Static programs** cannot load the runtime",
     "karst run --function work ./static", "the tracing runtime cannot be loaded into it", FAILS),
    ("docs/limits.md", "**Stripped modules** have no names",
     "karst report stripped.karst", r"stripped\+0x", ENDS_WELL),
    ("docs/limits.md", "**Arguments** need debug information",
     "karst run --args . -o x.karst ./stripped", "compile (it|them) with -g", ENDS_WELL),
]


def plain(text):
    return re.sub(r"\s+", " ", text)


def wrong(here, environment):
    for page, claim, command, expected, fails in CLAIMS:
        if plain(claim) not in plain((ROOT / page).read_text()):
            yield f"{page} no longer says: {claim}"
        done = subprocess.run(["bash", "-c", command], cwd=here, env=environment, text=True, timeout=120,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if not re.search(expected, done.stdout) or (done.returncode != 0) != fails:
            yield f"{page}: {claim}\n{command} ends with {done.returncode}:\n{done.stdout}"


def denials_without_a_row():
    """The list of coming-from.md that says what Karst does not do: each line of it is tried."""
    page = "docs/how-to/coming-from.md"
    listed = (ROOT / page).read_text().partition("What Karst does not do")[2].partition("```")[0]
    said = [plain(item) for item in re.findall(r"^\* (.*(?:\n  .*)*)", listed, re.M)]
    if not said:
        yield f"{page} has no list of what Karst does not do"
    claims = [plain(claim) for where, claim, *_ in CLAIMS if where == page]
    yield from (f"{page}: nothing tries: {item}" for item in said if not any(map(item.startswith, claims)))


with tempfile.TemporaryDirectory() as scratch:
    environment = dict(os.environ, PATH=f"{Path(sys.argv[1]).resolve()}:{os.environ['PATH']}",
                       XDG_CACHE_HOME=f"{scratch}/cache", CPLUS_INCLUDE_PATH=str(ROOT / "include"))
    for name in ("KARST_OPTIONS", "LD_PRELOAD"):
        environment.pop(name, None)
    Path(scratch, "app.cc").write_text(PROGRAM)
    subprocess.run(["bash", "-euc", BUILD], cwd=scratch, env=environment, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    sys.exit("\n".join([*denials_without_a_row(), *wrong(scratch, environment)]) or 0)
