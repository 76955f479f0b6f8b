"""A program traced and untraced, by turns: where its results differ."""
import re
import signal
import statistics

from bench import KARST, MODES, USUAL, around, differences


def examine(bench, program, table, rounds):
    missing = bench.missing(program)
    if missing:
        table.row(program.name, "-", f"skipped, there is no {missing}")
        return
    bench.run(program)
    plain = bench.run(program)
    again = bench.run(program)
    unsteady = differences(plain, again)
    if plain.status < 0 and plain.status != -signal.SIGTERM:
        unsteady["status"] = (plain.status, plain.status)
    note = "" if not unsteady else f"not compared: {', '.join(unsteady)}"
    table.row(program.name, "untraced", f"status {plain.status}, {len(plain.out)} bytes, {len(plain.files)} files",
        more=[note] if note else [])
    seconds = {mode: [] for mode in MODES}
    untraced, firsts = [plain.seconds, again.seconds], {}
    wrong, said = {mode: {} for mode in MODES}, {mode: {} for mode in MODES}
    for turn in range(rounds + 1):
        for mode, options in MODES.items():
            trace = bench.home / "trace.karst"
            traced = bench.run(program, [KARST, "run", *options, "-o", str(trace), "--"])
            status = traced.status
            if plain.status < 0 and status == 128 - plain.status:
                traced = traced._replace(status=plain.status)
            for name, pair in differences(plain, traced).items():
                if name not in unsteady and not (name.startswith("file ") and not traced.files.get(name[5:]) and name in
                    unsteady):
                    wrong[mode].setdefault(name, around(*pair))
            if not trace.exists():
                wrong[mode].setdefault("no trace", " ".join(traced.said))
            else:
                trace.unlink()
            for line in traced.said:
                if not USUAL.search(line):
                    said[mode].setdefault(re.sub(r"[\d.]+", "N", line), line)
            if turn == 0:
                firsts[mode] = traced.seconds
            else:
                seconds[mode].append(traced.seconds)
        if turn:
            untraced.append(bench.run(program).seconds)
    if any(wrong.values()):  # two runs may be alike by chance
        by_itself = {}
        for _ in range(5):
            by_itself.update(differences(plain, bench.run(program)))
        for found in wrong.values():
            for name in by_itself:
                found.pop(name, None)
        if by_itself:
            print(f"    differs untraced, too, and is not compared: {', '.join(by_itself)}")
    for mode in MODES:
        table.failed = table.failed or bool(wrong[mode])
        what = "same" if not wrong[mode] else "DIFFERS: " + ", ".join(wrong[mode])
        table.row(program.name, mode, what, statistics.median(untraced), statistics.median(seconds[mode]), firsts[mode],
                  [f"{name}: {text}" for name, text in wrong[mode].items()] + list(said[mode].values()))
    table.tried += 1
