"""Commands that became part of others: old names are in no list, and say and write what the new words do."""
import json
import os
import re
import subprocess

from support import BIN, KARST, TIMEOUT, TracedTest, build, main

OLD = ("stacks", "graph", "hist", "order", "status", "level", "detach", "recover", "count")
RUNTIME = str(BIN.parent / "lib" / "libkarst.so.0")


class Commands(TracedTest):
    def program(self):
        return build("commands_program", "recover/program.cc", "-O1", "-fno-inline", "-fno-optimize-sibling-calls",
                     "-pthread", compiler="karst-g++")

    def karst(self, *words, status=0):
        done = subprocess.run([KARST, *map(str, words)], capture_output=True, text=True, timeout=TIMEOUT,
                              cwd=self.directory, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, status, (words, done.stderr))
        return done.stdout, done.stderr

    def same(self, old, new, status=0):
        said = self.karst(*new, status=status)
        self.assertEqual(self.karst(*old, status=status), said, (old, new))
        return said

    def waiting(self):
        """A traced process that does nothing more."""
        process = subprocess.Popen([self.program(), "pause"], stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, "LD_PRELOAD": RUNTIME})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def test_old_names_are_in_no_list(self):
        listed = [command["name"] for command in json.loads(self.karst("describe")[0])["commands"]]
        shown = re.findall(r"(?m)^  (\w+) {2,}\S", self.karst("help")[0])
        self.assertEqual([name for name in shown if name in listed], listed)
        self.assertFalse(set(OLD) & {*listed, *shown})
        said = self.karst("none", status=2)[1]
        self.assertFalse(set(OLD) & set(re.findall(r"\w+", said)), said)
        for old, new in (("hist", "report"), ("level", "ps"), ("recover", "resolve"), ("count", "run")):
            self.assertEqual(self.karst("help", old), self.karst("help", new))
            self.assertEqual(self.karst(old, "--help"), self.karst("help", new))

    def test_answers_about_a_trace(self):
        trace = self.run_traced(self.program(), "tell").trace.path
        for more in ((), ("--share", "0", "--depth", "2"), ("--by", "wall", "-f", "middle")):
            self.assertIn("main", self.same(("stacks", trace, *more), ("flame", "--format", "text", trace, *more))[0])
        for as_json in ("--json", "-j", "--format=json"):
            found = json.loads(self.same(("stacks", as_json, trace), ("flame", as_json, trace))[0])
            self.assertEqual(found["paths"][0]["function"], "main")
        self.karst("flame", "--format", "json", "-o", "paths.json", trace)
        self.assertEqual((self.directory / "paths.json").read_text(), self.karst("flame", "--json", trace)[0])
        for more in ((), ("--json",), ("-n", "1"), ("-f", "middle")):
            self.assertIn("call", self.same(("hist", trace, *more), ("report", "--hist", trace, *more))[0])
            self.assertIn("call", self.same(("graph", trace, *more), ("report", "--callers", trace, *more))[0])
        for form, word in (("dot", "digraph"), ("mermaid", "flowchart")):
            self.assertIn(word, self.same(("graph", "--format", form, trace), ("report", "--callers", "--format", form, trace))[0])
        for more in ((), ("--by", "calls"), ("--format", "callgraph"), ("--module", "none")):
            self.same(("order", trace, *more), ("export", "--to", "order", trace, *more), 1 if "none" in more else 0)
        self.assertIn("main\n", self.karst("export", "--to", "order", trace)[0])
        self.karst("order", trace, "-o", "old.order")
        self.karst("export", "--to", "order", trace, "-o", "new.order")
        self.assertEqual(*((self.directory / name).read_text() for name in ("old.order", "new.order")))

    def test_what_does_not_go_together(self):
        for words in (("report", "--hist", "--by", "request"), ("report", "--hist", "--callers"),
                      ("report", "--hist", "--format", "dot"), ("report", "--format", "dot"),
                      ("flame", "--format", "text", "-o", "x"), ("export", "--to", "chrome", "t", "--module", "x", "-o", "x"),
                      ("export", "--to", "chrome", "t"), ("off", "--detach", "--function", "x"),
                      ("on", "--level", "1", "--for", "1s"), ("ps", "--function", "x"), ("ps", "1", "2"),
                      ("run", "--show", "x", "true"), ("run", "--count", "--memory", "1M", "true"),
                      ("run", "--count", "--exec", "true"), ("count", "--view", "true"), ("run", "--count")):
            said = self.karst(*words, status=2)
            self.assertRegex(said[1], rf"^karst: .*\nTry 'karst help {words[0].replace('count', 'run')}'\.\n$", words)
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_counts(self):
        counts = []
        for words in (("count",), ("run", "--count")):
            out, err = self.karst(*words, "--format", "csv", "--show", "middle|marker", "--", self.program(), "tell")
            self.assertIn("middle(char const*)", out)
            self.assertRegex(err, r"^karst: 1 process, [\d,]+ calls of \d+ functions\n$")
            counts.append((out, err))
        self.assertEqual(*counts)
        self.karst("run", "--count", "-o", "counts", "--", self.program(), "tell")
        self.assertIn("middle(char const*)", (self.directory / "counts").read_text())
        self.assertEqual(list(self.directory.glob("*.karst")), [])

    def test_a_process_in_detail_and_let_go(self):
        pid = self.waiting().pid
        old, new = (json.loads(self.karst(*words, pid, "--json")[0]) for words in (("status",), ("ps",)))
        self.assertEqual((old.keys(), old["pid"], new["pid"]), (new.keys(), pid, pid))
        facts = [re.findall(r"(?m)^([a-z ]+?)  ", self.karst(word, pid)[0]) for word in ("status", "ps")]
        self.assertEqual(*facts)
        self.assertIn("history", facts[0])
        self.assertIn(str(pid), self.karst("ps")[0])
        self.same(("level", pid), ("ps", "--levels", pid), 1)
        self.same(("level", pid, "1"), ("on", "--level", "1", pid), 1)
        self.assertIn("is not traced any more", self.karst("off", "--detach", pid)[1])
        self.assertIn("was detached already", self.same(("detach", pid), ("off", pid, "--detach"))[1])

    def test_what_a_program_left(self):
        subprocess.run([self.program(), "tell"], check=True, cwd=self.directory, stdout=subprocess.DEVNULL, timeout=TIMEOUT,
                       env={**os.environ, "LD_PRELOAD": RUNTIME, "KARST_OPTIONS": "file=left.arena"})
        trees = []
        for word in ("recover", "resolve"):
            self.assertIn(f"karst: next: karst where {word}.karst\n", self.karst(word, "left.arena", "-o", word + ".karst")[1])
            trees.append(self.karst("tree", "--plain", word + ".karst"))
        self.assertEqual(*trees)
        self.assertIn("middle(char const*)", trees[0][0])
        before = (self.directory / "left.arena").read_bytes()
        self.karst("resolve", "left.arena")
        self.assertEqual((self.directory / "left.arena").read_bytes(), before)
        self.assertEqual(len(list(self.directory.glob("commands_program-*-1.karst"))), 1)
        self.assertIn("--program", self.karst("resolve", "recover.karst", "--program", self.program(), status=2)[1])


if __name__ == "__main__":
    main()
