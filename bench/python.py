"""What a call of a Python function costs: fib under karst run, and under what Python itself has for that. Python times
itself, so its start is not counted."""

from measure import BenchError, Row, interleaved, karst_tool, median, run_child

DEPTH = 27
CALLS = 832040 - 1 - 196418  # of fib(27): 2 * fib(28) - 1
TARGET = 2.2
FIB = ("import sys, time\n"
       "def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
       "def timed(run):\n"
       "    begin = time.perf_counter(); run(); return time.perf_counter() - begin\n"
       "how, depth = sys.argv[1], int(sys.argv[2])\n"
       "if how == 'setprofile': sys.setprofile(lambda frame, event, argument: None)\n"
       "if how == 'cprofile':\n"
       "    import cProfile\n"
       "    profile = cProfile.Profile(); profile.enable()\n"
       "print(min(timed(lambda: fib(depth)) for _ in range(10)))\n")


def bench_python(rounds, quick, scratch, notes):
    group = "python3: fib, ns a call"
    depth = "18" if quick else str(DEPTH)
    calls = 8361 if quick else CALLS
    python = ["python3", "-c", FIB]
    karst = [karst_tool("karst"), "run", "--sched", "off", "--no-patch", "--budget", "off", "-o",
             f"{scratch}/fib.karst"]
    ways = {"untraced": [*python, "plain", depth], "karst run": [*karst, *python, "plain", depth],
            "karst run, off": [*karst, "--off", *python, "plain", depth],
            "sys.setprofile, empty": [*python, "setprofile", depth], "cProfile": [*python, "cprofile", depth]}

    def run(command):
        child = run_child(command)
        try:
            return float(child.output)
        except ValueError as error:
            raise BenchError(f"{command[0]} did not say how long it took: {child.errors}") from error

    runs = {name: (lambda command=command: run(command)) for name, command in ways.items()}
    samples, failures = interleaved(runs, rounds, group)
    notes += [f"{group}: {name} failed: {why}" for name, why in failures.items()]
    rows = []
    for name, values in samples.items():
        ratio = median(values) / median(samples["untraced"]) if "untraced" in samples else None
        is_ours = name == "karst run"
        rows.append(Row(group, name, median(values) / calls * 1e9, "ns", ratio=ratio, ratio_to="untraced",
                        target=f"< {TARGET} times" if is_ours else "",
                        met=ratio < TARGET if is_ours and ratio is not None else None))
    return rows
