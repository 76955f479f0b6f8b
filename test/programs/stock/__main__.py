#!/usr/bin/env python3
"""Programs and servers as Debian has them, traced and untraced: nothing may differ.

  KARST_BIN=build/bin python3 -B test/programs/stock [NAME...]     all, or those named; status 1 when anything differs

Each program does a small piece of work with a result that is the same each time: output, errors, status and the bytes of
the files it makes. Two untraced runs say what that is: where they differ from each other the part is not compared, and
the table says so. Then all modes of MODES, by turns with untraced runs. Before anything is called different, five more
untraced runs must not differ in it. Seconds are from the start to karst's end (of `exec`: the program's), medians of
three; `first` is a mode's first run, which may have to look at code that no run has seen.

Each server is started untraced and asked by clients that check every answer; meanwhile karst attaches, takes snapshots,
switches tracing off and on, and detaches, round after round. The longest gap is the longest time that one client waited
for an answer. At the end the same processes must be there. Then the server is started by karst run, and asked again.

What is not installed is skipped with its name. Nothing here is installed by script/setup. Needs root, as servers do.
"""
import argparse
import sys
import tempfile
from pathlib import Path

from attach import examine_server
from bench import Bench
from compare import examine
from programs import PROGRAMS, Program
from servers import SERVERS, Server
from table import Table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--rounds", type=int, default=3, help="timed runs of each mode")
    parser.add_argument("--attach", type=int, default=10, help="rounds of attaching to each server")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--programs", action="store_const", dest="kind", const=[Program], help="no servers")
    kind.add_argument("--servers", action="store_const", dest="kind", const=[Server], help="servers alone")
    options = parser.parse_args()
    things = [t for t in [*PROGRAMS, *SERVERS] if type(t) in (options.kind or [Program, Server])]
    known = {t.name for t in things}
    for name in options.names:
        if name not in known:
            parser.error(f"there is no program {name}; there are: {', '.join(sorted(known))}")
    table = Table()
    with tempfile.TemporaryDirectory(prefix="karst-stock-") as home:
        bench = Bench(Path(home))
        print(f"{'program':12} {'mode':15} {'result':30} {'untraced':>8} {'traced':>8} {'first':>8}")
        for thing in [t for t in things if not options.names or t.name in options.names]:
            if isinstance(thing, Program):
                examine(bench, thing, table, options.rounds)
            else:
                examine_server(bench, thing, table, options.attach)
    sys.exit(1 if table.failed or not table.tried else 0)


if __name__ == "__main__":
    main()
