"""karst view and karst export --to html from the command line. What the page does with it: viewer_test.sh.

Usage: view_test.py KARST CLI_TRACES [unittest options]
"""

import base64
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

KARST, CLI_TRACES = sys.argv[1:3]


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="karst_view_")
        subprocess.run([CLI_TRACES, cls.directory], check=True)
        cls.environment = {**os.environ, "XDG_CACHE_HOME": os.path.join(cls.directory, "cache")}
        cls.environment.pop("SSH_CONNECTION", None)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.directory)

    def path(self, name):
        return os.path.join(self.directory, name)

    def start(self, *arguments, **environment):
        process = subprocess.Popen([KARST, "view", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**self.environment, **environment})

        def end():
            process.kill()
            process.communicate()

        self.addCleanup(end)
        url = process.stdout.readline().strip()
        self.assertRegex(url, r"^http://127\.0\.0\.1:[0-9]+/[0-9a-f]{32}/$")
        return process, url

    def get(self, url):
        while True:
            try:
                with urllib.request.urlopen(url) as answer:
                    return answer.read()
            except urllib.error.HTTPError as error:
                with error:
                    if error.code != 503:
                        raise
            time.sleep(0.05)

    def test_serves_the_numbers_of_report(self):
        process, url = self.start("--no-browser", self.path("sample.karst"))
        table = json.loads(self.get(url + "api/functions"))
        functions = json.loads(self.get(url + "api/trace"))["functions"]
        self.compare_with_report(table, functions)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 0)

    def compare_with_report(self, table, functions):
        """To the ns and the count."""
        names = dict(zip(functions["number"], functions["name"]))
        report = json.loads(subprocess.run([KARST, "report", "--format", "json", self.path("sample.karst")], check=True,
                                           capture_output=True, text=True).stdout)
        want = {row["function"]: row for row in report["functions"]}
        rows = table["rows"]
        self.assertEqual({names[f] for f in rows["function"]}, set(want))
        for i, function in enumerate(rows["function"]):
            row = want[names[function]]
            for here, there in (("calls", "calls"), ("open_calls", "open_calls"), ("total", "total_ns"), ("self", "self_ns")):
                self.assertEqual(rows[here][i], row[there], (names[function], here))
            if row["calls"] > row["open_calls"]:
                for which in ("min", "mean", "p50", "p99", "max"):
                    self.assertEqual(rows[which][i], row[which + "_ns"], (names[function], which))

    def test_explains_as_the_command_does(self):
        """For each function its longest call; the page's answer says more, but nothing else."""
        for name in ("sample", "before", "walk", "long", "big"):
            process, url = self.start("--no-browser", self.path(name + ".karst"))
            functions = json.loads(self.get(url + "api/trace"))["functions"]
            told = 0
            for number, function in zip(functions["number"], functions["name"]):
                found = json.loads(self.get(f"{url}api/occurrences?function={number}&order=duration"))["calls"]
                found = {key: values[0] for key, values in found.items()}
                if found["flags"] & 3:
                    continue
                here = json.loads(self.get(f"{url}api/explain?thread={found['thread']}&index={found['index']}"))
                there = json.loads(subprocess.run(
                    [KARST, "explain", "--json", "--call", here["call"], "--function", "^" + re.escape(function) + "$",
                     self.path(name + ".karst")], check=True, capture_output=True, text=True).stdout)
                told += 1
                same = ("headline", "comparison", "siblings", "typical", "first", "stands_out", "rest_share")
                times = ("begin", "duration", "usual", "excess", "rest")
                self.assertEqual([here[key] for key in same], [there.get(key) for key in same])
                self.assertEqual([here[key] for key in times], [there[key + "_ns"] for key in times])
                for key in ("kind", "place", "what", "share", "calls", "usual_calls", "wait_words"):
                    self.assertEqual([c.get(key) for c in here["causes"]], [c.get(key) for c in there["causes"]])
                self.assertEqual([c["excess"] for c in here["causes"]], [c["excess_ns"] for c in there["causes"]])
            self.assertGreater(told, 1, name)
            process.kill()

    def test_an_exported_page_counts_as_report_does(self):
        """Its engine, run without a browser."""
        page = self.path("sample.html")
        subprocess.run([KARST, "export", "--to", "html", "-o", page, self.path("sample.karst")], check=True)
        script = """
          const text = require("fs").readFileSync(process.argv[1], "utf8");
          const element = (id) => text.split(`id="${id}">`)[1].split("</script>")[0];
          const unpack = (packed) => require("zlib").gunzipSync(Buffer.from(packed, "base64"));
          const module = new WebAssembly.Module(unpack(element("karst-engine")));
          const imports = {};
          for (const { module: from, name } of WebAssembly.Module.imports(module)) (imports[from] ??= {})[name] = () => 0;
          const memory = () => engine.memory.buffer;
          imports.wasi_snapshot_preview1.environ_sizes_get = (count, size) => {
            for (const at of [count, size]) new DataView(memory()).setUint32(at, 0, true);
            return 0;
          };
          imports.karst.decompress = (to, room, from, size) => {
            const plain = require(process.argv[2]).decompress(new Uint8Array(memory(), from, size).slice());
            new Uint8Array(memory(), to, room).set(plain);
            return plain.length;
          };
          const { exports: engine } = new WebAssembly.Instance(module, imports);
          engine._initialize();
          const write = (bytes) => {
            const at = engine.karst_room(bytes.length);
            new Uint8Array(memory()).set(bytes, at);
          };
          const reply = () => JSON.parse(Buffer.from(memory(), engine.karst_reply(), engine.karst_reply_size()).toString());
          const ask = (path) => {
            write(Buffer.from(path + "\\0"));
            if (engine.karst_ask() !== 1) throw new Error("no answer");
            return reply();
          };
          write(Buffer.from("sample.karst"));
          engine.karst_name();
          write(unpack(element("karst-trace")));
          if (engine.karst_open() !== 1) throw new Error("the engine refuses the trace");
          while (engine.karst_read() !== 1);
          write(Buffer.from(""));
          engine.karst_ready();
          console.log(JSON.stringify({ table: ask("functions"), functions: ask("trace").functions }));
        """
        fzstd = os.path.join(os.path.dirname(__file__), "..", "..", "page", "node_modules", "fzstd")
        answer = json.loads(subprocess.run(["node", "-e", script, page, fzstd], check=True, capture_output=True, text=True).stdout)
        self.compare_with_report(answer["table"], answer["functions"])

    def test_a_saved_range_is_a_trace(self):
        _, url = self.start("--no-browser", self.path("sample.karst"))
        with open(self.path("cut.karst"), "wb") as file:
            file.write(self.get(url + "api/cut"))
        plain = [subprocess.run([KARST, "tree", "--plain", self.path(name)], check=True, capture_output=True, text=True).stdout
                 for name in ("sample.karst", "cut.karst")]
        self.assertEqual(*plain)

    def test_a_file_that_is_no_trace_is_refused(self):
        with open(self.path("text.karst"), "w", encoding="utf-8") as file:
            file.write("no trace at all, but long enough to be asked")
        done = subprocess.run([KARST, "view", "--no-browser", "--keep", self.path("text.karst")], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("text.karst", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_a_file_that_is_not_there(self):
        done = subprocess.run([KARST, "view", self.path("none.karst")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("none.karst: there is no such file", done.stderr)

    def test_over_ssh_says_how_to_forward(self):
        process, url = self.start(self.path("sample.karst"), SSH_CONNECTION="1 2 3 4", DISPLAY="", WAYLAND_DISPLAY="")
        port = url.split(":")[2].split("/")[0]
        self.get(url + "api/trace")
        process.send_signal(signal.SIGTERM)
        self.assertIn(f"ssh -N -L {port}:127.0.0.1:{port}", process.communicate(timeout=60)[1])

    def test_html_options_are_checked(self):
        trace = self.path("sample.karst")
        for arguments, what in (((trace, "--to", "html", "--range", "5"), "no range"),
                                ((trace, "--to", "chrome", "--range", "2ms..1ms"), "is empty"),
                                ((trace, "--to", "html", "--function", "work"), "--function"),
                                ((trace, "--to", "perfetto", "--aggregated"), "html"),
                                (("--to", "html"), "FILE is missing"),
                                ((trace, "--to", "viewer"), "takes no FILE"),
                                (("--to", "viewer", "--thread", "main"), "takes -o alone"),
                                (("--to", "viewer", "--range", "1ms-2ms"), "takes -o alone")):
            done = subprocess.run([KARST, "export", *arguments, "-o", self.path("out")], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(what, done.stderr)
            self.assertFalse(os.path.exists(self.path("out")))

    def test_the_page_alone(self):
        page = self.path("page.html")
        subprocess.run([KARST, "export", "--to", "viewer", "-o", page], check=True)
        with open(page, encoding="utf-8") as file:
            text = file.read()
        self.assertIn('id="karst-engine"', text)
        self.assertNotIn('<script type="application/json" id="karst-embedded">', text)
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text).group(1)
        self.assertIn("connect-src 'none'", policy)
        # What is run is the page's own script and nothing else: data blocks are none.
        scripts = re.findall(r'<script type="module">(.*?)</script>', text, re.S)
        self.assertEqual(len(scripts), 1)
        digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
        self.assertIn(f"script-src 'sha256-{digest}' 'wasm-unsafe-eval';", policy)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
