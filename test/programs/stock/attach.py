"""A server that karst attaches to and detaches from while it answers, and one that karst starts."""
import re
import shutil
import subprocess
import time

from bench import ALL_KINDS, KARST, MODES, USUAL
from load import Running, family
from servers import BEHIND

ATTACHED = {"attach": [], "attach library": ["--library", "*"], "attach system": ["--system", ALL_KINDS]}


def karst(said, bench, *words):
    """One command; what it says is kept once for each text, without its numbers."""
    begin = time.monotonic()
    try:
        done = subprocess.run([KARST, *map(str, words)], capture_output=True, text=True, env=bench.environment,
            cwd=bench.home, timeout=60,
                              stdin=subprocess.DEVNULL)
        status, text = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        status, text = "none in 60 s", str(error.stdout)
    for line in text.splitlines() or [""]:
        key = (words[0], status, re.sub(r"[\d.,]+", "N", line))
        said.setdefault(key, [0, line])[0] += 1
    return status, time.monotonic() - begin


def attach_rounds(bench, running, options, rounds, said, wrong):
    """Longest time of a command, and of each round's gap. Who refuses twice is not asked again."""
    slowest, gaps, refused = {}, [], {}
    snapshot = ("--last", "100ms", "--no-source", "-o", bench.home / "snapshot.karst")
    for turn in range(rounds):
        for pid in family(running.process.pid):
            for name, *more in (("attach", *options), ("snapshot", *snapshot), ("off",), ("on",), ("detach",)):
                if refused.get(pid, 0) >= 2:
                    break
                status, seconds = karst(said, bench, name, pid, *more)
                slowest[name] = max(slowest.get(name, 0), seconds)
                if status != 0:
                    wrong.setdefault(f"{name}: status {status}", []).append(turn)
                if name == "attach" and status != 0:
                    refused[pid] = refused.get(pid, 0) + 1
                    break
        gaps.append(running.load.gap())
        if running.load.failures or running.process.poll() is not None:
            wrong.setdefault("the server or its answers", []).append(turn)
            break
    return slowest, gaps


def examine_server(bench, server, table, rounds):
    path = bench.environment["PATH"]
    for words in (server.words, BEHIND.words if server.needs_behind else server.words):
        if shutil.which(words[0], path=path) is None:
            table.row(server.name, "-", f"skipped, there is no {words[0]}")
            return
    behind = Running(bench, BEHIND) if server.needs_behind else None
    try:
        plain = Running(bench, server, behind=behind)
        time.sleep(3)
        gap, status = plain.load.gap(), plain.stop()
        if plain.load.failures:
            table.row(server.name, "untraced", "FAILS", more=plain.load.failures[:2] + [tail(bench, server)])
            table.failed = True
            return
        table.row(server.name, "untraced", f"{sum(plain.load.counts)} answers in 3 s", more=[
            f"longest gap {gap * 1e3:.1f} ms, first answers after {plain.seconds:.2f} s, status at the end {status}"])
        for mode, options in ATTACHED.items():
            running, said, wrong = Running(bench, server, behind=behind), {}, {}
            before = family(running.process.pid)
            time.sleep(1)
            quiet = running.load.gap()
            slowest, gaps = attach_rounds(bench, running, options, rounds, said, wrong)
            after = family(running.process.pid)
            gone = [pid for pid, start in before.items() if after.get(pid) != start]
            ended = running.stop()
            told(table, server, mode, running, wrong, gone, ended, status, [
                f"longest gap {quiet * 1e3:.1f} ms before, {max(gaps) * 1e3:.1f} ms in {len(gaps)} rounds of "
                f"{len(before)} processes; slowest "
                + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in slowest.items())]
                + [f"{count} x {key[0]} ({key[1]}): {line}" for key, (count,
                    line) in said.items() if key[0] == "attach" or key[1] != 0], bench)
        for mode, options in MODES.items():
            trace = bench.home / "trace.karst"
            running = Running(bench, server, [KARST, "run", *options, "-o", str(trace), "--"], behind)
            time.sleep(3)
            gap, ended = running.load.gap(), running.stop()
            for _ in range(300):
                if trace.exists():
                    break
                time.sleep(0.1)
            wrong = {} if trace.exists() else {"no trace": []}
            trace.unlink(missing_ok=True)
            if ended == 128 - status if isinstance(status, int) and status < 0 else False:
                ended = status
            said = [line for line in (bench.home / f"{server.name}.log").read_text(errors="replace").splitlines()
                    if line.startswith("karst: ") and not USUAL.search(line)]
            told(table, server, mode, running, wrong, [], ended, status, [
                f"longest gap {gap * 1e3:.1f} ms, first answers after {running.seconds:.2f} s, untraced "
                f"{plain.seconds:.2f} s", *dict.fromkeys(said)],
                bench)
    finally:
        if behind:
            behind.stop()
    table.tried += 1


def tail(bench, server):
    return (bench.home / f"{server.name}.log").read_text(errors="replace")[-1500:]


def told(table, server, mode, running, wrong, gone, ended, status, more, bench):
    problems = [f"{name}, {len(turns)} times" for name, turns in wrong.items()]
    problems += running.load.failures[:2] + ([f"processes gone: {gone}"] if gone else [])
    problems += [f"ended with {ended}, untraced {status}"] if ended != status else []
    table.failed = table.failed or bool(problems)
    table.row(server.name, mode, f"{sum(running.load.counts)} answers, " + ("DIFFERS" if problems else "all right"),
        more=[*problems, *more])
    if ended != status or running.load.failures:
        print(tail(bench, server))
