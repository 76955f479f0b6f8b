#!/usr/bin/env python3
"""How fast the viewer's server is: synthetic traces of some million calls, one trace a size, over 64 threads and over one.

    bench/viewer.py --build build [--calls 20 100] [--threads 64 1] [--browser]     (script/bench --only viewer: judged)

Times from the start of `karst view` to the first picture (all that is in view is there, and stays as it is) and to that of a trace
that is read to its end, of tiles (each a depth of a thread, 1920 pixels wide), of tables and flame graphs, the same picture the
second time (the index is kept), and the memory of the server beside that of the trace's columns (27 bytes a call). Prints one line
of JSON a trace.
"""
import argparse
import json
import os
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from measure import BUILD, Row  # noqa: E402

COLUMN_BYTES = 27  # a call in the reader's columns


def make(build, path, calls, threads):
    subprocess.run([os.path.join(build, "bin/karst-trace-bench"), "make", path, str(calls * 2), str(threads), "fib"], check=True)


class Viewer:
    """`karst view` of a file, until the end of a with statement."""

    def __init__(self, build, path, cache):
        self.started = time.monotonic()
        self.process = subprocess.Popen([os.path.join(build, "bin/karst"), "view", "--no-browser", "--keep", path],
                                        stdout=subprocess.PIPE, text=True, env={**os.environ, "XDG_CACHE_HOME": cache})
        self.url = self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def get(self, path):
        with urllib.request.urlopen(self.url + path) as answer:
            return answer.read()

    def ready(self):
        """Seconds from the start until the trace is indexed."""
        while True:
            progress = json.loads(self.get("api/progress"))
            if progress["phase"] == "ready":
                return time.monotonic() - self.started
            if progress["phase"] == "failed":
                raise SystemExit(progress["error"])
            time.sleep(0.01)

    def timed(self, path):
        begin = time.monotonic()
        body = self.get(path)
        return time.monotonic() - begin, body

    def cpu(self):
        """Seconds of processor time so far."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self):
        """Bytes of the process's own memory; mapped files apart."""
        fields = {}
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            for line in status:
                name, _, value = line.partition(":")
                fields[name] = value.split()
        return int(fields["RssAnon"][0]) * 1024


def slices_of(tiles):
    return struct.unpack_from("<I", tiles, 12)[0]


def wait_for_index(cache):
    """Until the index is kept, which happens while people look; False: it is not."""
    for _ in range(1200):
        directory = os.path.join(cache, "karst", "view")
        if os.path.isdir(directory) and any(name.endswith(".index") for name in os.listdir(directory)):
            return True
        time.sleep(0.1)
    return False


def page(build, path, cache):
    """The first picture from the start of `karst view`, frames and memory of the page in headless Chromium, by page/test/frames.mjs."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../page/test/frames.mjs")
    command = [os.path.join(build, "bin/karst"), "view", "--no-browser", "--keep", path]
    done = subprocess.run(["node", script, shutil.which("chromium") or "chromium", *command], check=True, stdout=subprocess.PIPE,
                          text=True, env={**os.environ, "XDG_CACHE_HOME": cache})
    return {name: round(value, 2) for name, value in json.loads(done.stdout).items()}


def measure(build, path, cache, browser):
    with Viewer(build, path, cache) as viewer:
        ready = viewer.ready()
        ready_cpu = viewer.cpu()
        facts = json.loads(viewer.get("api/trace"))
        span, threads = facts["span"], len(facts["threads"])
        rows = ",".join(f"{t}:0-5" for t in range(min(threads, 10)))
        first, body = viewer.timed(f"api/tiles?begin=0&end={span}&width=1920&tracks={rows}")
        first_picture = time.monotonic() - viewer.started
        chance = random.Random(1)
        row_times, picture_times = [], []
        for _ in range(200):
            length = span * 10 ** chance.uniform(-6, 0)
            begin = chance.uniform(0, span - length)
            thread = chance.randrange(threads)
            depth = chance.randrange(facts["threads"][thread]["depths"])
            where = f"begin={begin:.3f}&end={begin + length:.3f}&width=1920"
            row_times.append(viewer.timed(f"api/tiles?{where}&tracks={thread}:{depth}-{depth}")[0])
            if len(picture_times) < 40:
                picture_times.append(viewer.timed(f"api/tiles?{where}&tracks={rows}")[0])
        result = {
            "calls": facts["calls"], "threads": threads, "file_bytes": facts["file_size"],
            "ready_s": round(ready, 3), "ready_cpu_s": round(ready_cpu, 2),
            "whole_picture_s": round(first_picture, 3),
            "first_tiles_ms": round(first * 1e3, 1), "first_tiles_slices": slices_of(body),
            "row_ms_median": round(statistics.median(row_times) * 1e3, 2), "row_ms_worst": round(max(row_times) * 1e3, 2),
            "picture_ms_median": round(statistics.median(picture_times) * 1e3, 2),
            "picture_ms_worst": round(max(picture_times) * 1e3, 2),
            "memory_per_column_byte": round(viewer.memory() / (facts["calls"] * COLUMN_BYTES), 2),
        }
        numbers = facts["functions"]["number"]
        first_function, third_function = numbers[0], numbers[min(2, len(numbers) - 1)]
        for name, path_ in (("minimap", "api/minimap?width=1024"), ("functions", "api/functions"), ("flame", "api/flame"),
                            ("histogram", f"api/histogram?function={first_function}"), ("occurrences", f"api/occurrences?function={first_function}&order=duration"),
                            ("highlight", f"api/tiles?width=1920&tracks={rows}&function={third_function}")):
            result[name + "_s"] = round(viewer.timed(path_)[0], 3)
        result["memory_after_per_column_byte"] = round(viewer.memory() / (facts["calls"] * COLUMN_BYTES), 2)
        kept = wait_for_index(cache)
    if kept:
        with Viewer(build, path, cache) as viewer:
            result["kept_ready_s"] = round(viewer.ready(), 3)
            viewer.get(f"api/tiles?begin=0&end={span}&width=1920&tracks={rows}")
            result["kept_whole_picture_s"] = round(time.monotonic() - viewer.started, 3)
            result["kept_memory_per_column_byte"] = round(viewer.memory() / (facts["calls"] * COLUMN_BYTES), 2)
    if browser:
        if kept:
            result["page"] = page(build, path, cache)
        # Without an index: this one is not waited for.
        with tempfile.TemporaryDirectory() as fresh:
            result["page_not_indexed"] = page(build, path, fresh)
    return result


def rows_of(title, result, judge):
    """Rows of script/bench's table from one measured trace; `judge` says which targets hold for it."""
    found = [Row(title, "first opening: server ready", result["ready_s"], "s", note=f"{result['ready_cpu_s']} s CPU"),
             Row(title, "a row of 1920 pixels", result["row_ms_median"], "ms"),
             Row(title, "server memory", result["memory_after_per_column_byte"], "x columns", target="< 3 x columns",
                 met=result["memory_after_per_column_byte"] < 3)]
    shown = result.get("page")
    if shown is None:
        return found
    first = result["page_not_indexed"]["first_picture_ms"] / 1000
    limit = max(1.0, result["calls"] / 20e6)
    # The picture that is judged has all that is in view, of tracks that are read to their ends, as it stays. Of the
    # rest the page says that it is being read; until the whole is there tables and search wait.
    calls, whole = (result["page_not_indexed"][name] / 1000 for name in ("first_calls_ms", "whole_picture_ms"))
    found.append(Row(title, "first picture, not indexed", first, "s", target=f"< {limit:.1f} s",
                     met=first < limit if judge else None, note=f"all in view; first calls {calls:.2f} s"))
    found.append(Row(title, "whole trace read, not indexed", whole, "s", note="tables and search can be asked for"))
    kept = shown["first_picture_ms"] / 1000
    gigabytes = result["file_bytes"] / 1e9
    found.append(Row(title, "first picture, indexed", kept, "s", target="< 1 s for 1 GB",
                     met=kept < 1 if judge and gigabytes <= 1.05 else None, note=f"{gigabytes:.2f} GB"))
    for name, key, target, most in (("frame, median", "frame_median_ms", "< 16 ms", 16),
                                    ("frame, 99th percentile", "frame_p99_ms", "< 50 ms", 50)):
        found.append(Row(title, name, shown[key], "ms", target=target, met=shown[key] < most if judge else None))
    found.append(Row(title, "page memory", shown["memory_mb"], "MB", target="< 300 MB", met=shown["memory_mb"] < 300))
    return found


def bench_viewer(quick, scratch, notes):
    """script/bench's section: a trace of 1 GB and one of 100 million calls, in Chromium if it is there."""
    browser = shutil.which("chromium") is not None
    if not browser:
        notes.append("chromium is not installed: the viewer's page was not measured")
    rows = []
    for millions in ([1] if quick else [62, 100]):
        path = os.path.join(scratch, "viewer.karst")
        cache = os.path.join(scratch, "viewer-cache")
        make(str(BUILD), path, millions * 1_000_000, 64)
        result = measure(str(BUILD), path, cache, browser)
        rows += rows_of(f"viewer: {millions} M calls, 64 threads", result, not quick)
        os.remove(path)
        shutil.rmtree(cache, ignore_errors=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build directory")
    parser.add_argument("--calls", type=int, nargs="*", default=[20, 100], help="millions")
    parser.add_argument("--browser", action="store_true", help="also the page, in Chromium")
    parser.add_argument("--threads", type=int, nargs="*", default=[64, 1])
    options = parser.parse_args()
    for calls in options.calls:
        for threads in options.threads:
            with tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, "synthetic.karst")
                make(options.build, path, calls * 1_000_000, threads)
                print(json.dumps(measure(options.build, path, directory, options.browser)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
