"""What it costs to read what processes and the machine use: CPU time of karst's thread for that, as the kernel counts
it, over the time that a program runs."""

import pathlib
import subprocess
import time

from measure import BenchError, Row, karst_tool, median

TARGET = 0.1  # % of a CPU
WARM_UP = 4  # s: the first 2 ms of CPU time are free
BUSY = "import sys, threading, time\n" \
       "for _ in range(int(sys.argv[1]) - 1): threading.Thread(target=time.sleep, args=[1e6], daemon=True).start()\n" \
       "end = time.monotonic() + float(sys.argv[2])\n" \
       "while time.monotonic() < end: pass\n"


def thread_ns(karst, deadline):
    """CPU time of the thread so far."""
    while time.monotonic() < deadline:
        for task in pathlib.Path(f"/proc/{karst}/task").iterdir():
            if (task / "comm").read_text().strip() == "karst-usage":
                return int((task / "schedstat").read_text().split()[0])
        time.sleep(0.01)
    raise BenchError("karst run has no thread that reads what is used")


def share(threads, seconds, scratch):
    command = [karst_tool("karst"), "run", "--sched", "off", "--no-patch", "--sample", "100", "-o",
               pathlib.Path(scratch) / "usage.karst", "--", "python3", "-c", BUSY, str(threads),
               str(WARM_UP + seconds + 1)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as karst:
        time.sleep(WARM_UP)
        before, begin = thread_ns(karst.pid, time.monotonic() + 1), time.monotonic()
        time.sleep(seconds)
        after, end = thread_ns(karst.pid, time.monotonic() + 1), time.monotonic()
    return (after - before) / 1e7 / (end - begin)


def bench_usage(rounds, quick, scratch):
    seconds = 3 if quick else 60
    rows = []
    for threads in (1, 100):
        value = median([share(threads, seconds, scratch) for _ in range(min(rounds, 2))])
        rows.append(Row("reading what is used", f"a program of {threads} threads", value, "% of a CPU",
                        target=f"< {TARGET}%", met=value < TARGET))
    return rows
