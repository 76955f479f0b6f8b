"""Notes: what programs say of themselves with karst.h, against what they log of it."""
import json
import re
import subprocess
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import support
from support import KARST, ROOT, TracedTest, Trace, build, main

PEDANTIC = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")
LEVELS = {"1": "debug", "2": "info", "3": "warning", "4": "error"}
INCLUDE = ("-I", str(ROOT / "include"))
HANDLED = "in a handler"


def notes_of(path, *options):
    done = subprocess.run([KARST, "notes", "--json", str(path), *options], check=True, capture_output=True, text=True,
                          timeout=support.TIMEOUT)
    return json.loads(done.stdout)["notes"]


class Notes(TracedTest):
    def program(self, compiler="karst-gcc", **more):
        return build("notes_program", "notes/program.c", "-O1", *INCLUDE, compiler=compiler, **more)

    def check_program(self, notes):
        said = [(n["kind"], n["name"], n["value"], n["in"]) for n in notes]
        zone, second = "first half", "second half"
        longest, coloured = said[-2:]
        self.assertEqual(said[:-2], [
            ("request begins", "", "4711", "main"), ("works on", "", "4711", "main"),
            ("message", "", "begin", zone), ("text", "", "below", "inner"), ("integer", "depth", "1", "inner"),
            ("text", "", "below", "inner"), ("integer", "depth", "2", "inner"), ("number", "load", "0.75", second),
            ("message", "static text", "", zone), ("frame", "main", "", zone),
            ("works on", "", "0", "main"), ("request ends", "", str(2**64 - 1), "main"),
            ("integer", "least", str(-2**63), "main"), ("integer", "zero", "0", "main"), ("message", "", "", "main")])
        self.assertEqual(longest, ("message", "", "x" * 2000, "main"))
        self.assertEqual(coloured, ("message", "", "café \x1b[31m", "main"))

    def test_every_kind_in_every_command(self):
        run = self.run_traced(self.program())
        self.assertEqual(run.out, "3\n")
        self.assert_whole(run.trace)
        self.check_program(notes_of(run.trace.path))
        self.assertEqual(run.trace.tree()[1:], ["main", "  outer", "    first half", "      inner", "      second half",
                                            "        inner"])
        self.assertEqual(run.trace.counts, {"main": 1, "outer": 1, "first half": 1, "second half": 1, "inner": 2})
        # The tree has them in their places, with nothing that a terminal would obey.
        tree = [re.sub(r"^ *[\d.]+ [nmu]?s", "", line).strip() for line in run.trace.timed_tree()][1:]
        self.assertEqual(tree[:9], ["main", "request 4711 begins", "works on request 4711", "outer", "first half",
                                    '"begin"', "inner", '"below"', "depth = 1"])
        self.assertIn(r'"café \x1b[31m"', "\n".join(tree).replace("\\u001b", r"\x1b").replace("^[", r"\x1b"))
        self.assertEqual(len(Trace(run.trace.path).timed_tree("--no-notes")), 1 + 6)
        kinds = Counter(n["kind"] for n in notes_of(run.trace.path, "--kind", "integer"))
        self.assertEqual(kinds, {"integer": 4})
        self.assertEqual({n["in"] for n in notes_of(run.trace.path, "-f", "^inner$")}, {"inner"})
        self.assertEqual(len(notes_of(run.trace.path, "--below", "^second half$")), 3)
        first, *_, last = notes_of(run.trace.path)
        middle = f"{first['time_ns'] + 5}ns..{last['time_ns']}ns"
        self.assertEqual(len(notes_of(run.trace.path, "--range", middle)), 15)

    def test_other_compilers_and_none_of_ours(self):
        """Zones and notes need no wrapper: karst run finds the functions itself."""
        for compiler in (str(support.BIN / "karst-clang"), "gcc", "clang-14"):
            with self.subTest(compiler=compiler):
                program = self.program(compiler, output=f"notes_{Path(compiler).name}")
                run = self.run_traced(program, options=("--min-instructions", "0"))
                self.assertEqual(run.out, "3\n")
                self.check_program(notes_of(run.trace.path))
                alone = subprocess.run([program], capture_output=True, text=True, timeout=support.TIMEOUT)
                self.assertEqual((alone.returncode, alone.stdout), (0, "3\n"))

    def test_a_program_without_a_function_to_patch(self):
        """Its notes are the trace, where there would be samples alone."""
        program = build("notes_alone", "notes/alone.c", "-O1", *INCLUDE, compiler="gcc")
        run = self.run_traced(program, options=("--min-instructions", "1000"))
        self.assertEqual(run.out, "done\n")
        self.assertIn("0 of", run.err)
        self.assertIn(", 3 notes", run.err)
        self.assertEqual([(n["kind"], n["name"] or n["value"], n["in"]) for n in notes_of(run.trace.path)],
                         [("message", "alone", ""), ("text", "of a zone", "a zone"), ("integer", "seven", "")])
        self.assertEqual(run.trace.counts, {"a zone": 1})

    def test_filters_leave_them_unless_they_name_them(self):
        run = self.run_traced(self.program(), options=("--functions", "^outer$"))
        self.assertEqual(run.trace.counts, {"outer": 1, "first half": 1, "second half": 1})
        self.assertEqual(len(notes_of(run.trace.path)), 17)
        run = self.run_traced(self.program(), options=("--not-functions", "^depth$|^first half$"))
        self.assertNotIn("first half", run.trace.counts)
        self.assertNotIn("depth", {n["name"] for n in notes_of(run.trace.path)})

    def test_counted_or_off_there_are_none(self):
        done = subprocess.run([KARST, "count", "-o", self.directory / "c.karst", "--", self.program()],
                              capture_output=True, text=True, timeout=support.TIMEOUT, cwd=self.directory)
        self.assertEqual((done.returncode, done.stdout.splitlines()[0]), (0, "3"), done.stderr)
        run = self.run_traced(self.program(), options=("--off",))
        self.assertEqual(run.out, "3\n")

    def test_what_is_said_while_tracing_is_off_is_not_kept(self):
        for number, (compiler, *flags) in enumerate((("karst-gcc", "-O2"), ("gcc", "-O0"),
                                                     ("karst-gcc", "-O1", "-static", "--karst-link"))):
            for options in ((), ("--off",)):
                with self.subTest(compiler=compiler, flags=flags, options=options):
                    program = build("notes_off", "notes/off.c", *flags, *INCLUDE, compiler=compiler,
                                    output=f"notes_off_{number}")
                    run = self.run_traced(program, options=(*options, "--min-instructions", "0"))
                    self.assertEqual(run.out, "0 0\n")
                    said = {}
                    for n in notes_of(run.trace.path):
                        said.setdefault(n["pid"], []).append((n["kind"], n["value"]))

                    def of(number):
                        return [("message", "on"), ("log", f"log {number}"), ("integer", str(number)), ("text", "on")]
                    self.assertEqual(sorted(said.values()), sorted([of(2) + of(7), of(5)]))
                    self.assertEqual(run.trace.counts.get("zone"), 3)

    def test_exported(self):
        run = self.run_traced(self.program(), options=("--usage", "off"))
        for to in ("chrome", "perfetto"):
            subprocess.run([KARST, "export", str(run.trace.path), "--to", to, "-o", self.directory / to], check=True,
                           capture_output=True, timeout=support.TIMEOUT)
        events = json.loads((self.directory / "chrome").read_text())["traceEvents"]
        counters = [(e["name"], e["args"]["value"]) for e in events if e["ph"] == "C"]
        self.assertEqual(counters, [("depth", 1), ("depth", 2), ("load", 0.75), ("least", -2**63), ("zero", 0)])
        self.assertEqual([e["id"] for e in events if e.get("cat") == "request"], ["4711", str(2**64 - 1)])
        self.assertIn("static text", {e["name"] for e in events if e["ph"] == "i"})
        self.assertIn(b"static text", (self.directory / "perfetto").read_bytes())

    def test_stripped_of_values(self):
        run = self.run_traced(self.program())
        bare = self.directory / "bare.karst"
        subprocess.run([KARST, "resolve", "--strip=values", str(run.trace.path), "-o", str(bare)], check=True,
                       capture_output=True, timeout=support.TIMEOUT)
        self.assertEqual({n["value"] for n in notes_of(bare) if n["kind"] != "number"}, {"", "0"})
        self.assertNotIn(b"below", bare.read_bytes())
        self.assertEqual(Trace(bare).tree(), run.trace.tree())

    def test_looks(self):
        """Colours, groups, plots, frames with gaps, pictures, memory of the program's own: in every command."""
        program = build("notes_looks", "notes/looks.c", "-O1", "-pthread", *INCLUDE, compiler="karst-gcc")
        alone = subprocess.run([program], capture_output=True, text=True, timeout=support.TIMEOUT)
        self.assertEqual(alone.stdout.splitlines()[-1], str(3 * 2 * -38 + 3 * 10))  # -ENOSYS without karst
        run = self.run_traced(program)
        *frames, done = run.out.splitlines()
        self.assertEqual(done, "30")
        path = str(run.trace.path)

        def karst(*words):
            return subprocess.run([KARST, *words], check=True, capture_output=True, text=True,
                                  timeout=support.TIMEOUT).stdout

        for trace in (path, str(self.directory / "resolved.karst")):
            if trace != path:
                karst("resolve", path, "-o", trace)
            process, = json.loads(karst("info", "--json", trace))["processes"]
            self.assertEqual(process["app_info"], ["version 1.2", "settings: fast"])
            self.assertEqual(sorted(t["group"] for t in process["threads"]), ["", "workers", "workers", "writers"])
            text = karst("info", trace)
            self.assertIn("says of itself: version 1.2\n", text)
            self.assertRegex(text, r"thread .* group +name")
            self.assertRegex(text, r"writers +\w+")

            notes = notes_of(trace)
            # A picture of three times two pixels is one of four times four.
            self.assertEqual([(n["name"], n["value"]) for n in notes if n["kind"] == "picture"],
                             [("main", "160 x 92")] * 6 + [("main", "4 x 4")])
            self.assertEqual([(n["value"], n["in"]) for n in notes if n["kind"] == "color"],
                             [("#ff8000", "parse zone")] * 6)
            self.assertEqual([n["value"] for n in notes if n["kind"] == "message"], ["it burns", "cold", "as all"])
            tree = karst("tree", trace)
            self.assertEqual(tree.count("picture of main, 160 x 92"), 6)
            self.assertNotIn("more of a picture", tree)
            self.assertNotIn("color #", tree)

            self.assertEqual([(n["value"], n["in"]) for n in notes if n["kind"] == "text"],
                             [("in it", f"item {i // 2}") for i in range(6)] + [("in none", "main")])

            # What lies between a frame's end and the next one's begin is in none.
            of, = json.loads(karst("notes", "--frames", "--json", trace))["frames"]
            self.assertEqual((of["name"], of["count"]), ("main", 5))
            by_number = {f["number"]: f for f in of["slowest"]}
            self.assertEqual(sorted(by_number), [1, 2, 3, 4, 5])
            ordered = [by_number[n] for n in sorted(by_number)]
            for before, after in zip(ordered, ordered[1:]):
                self.assertGreater(after["begin_ns"] - before["begin_ns"] - before["duration_ns"], 2_900_000)
            for frame, ns in zip(ordered, frames):
                self.assertGreaterEqual(frame["duration_ns"] + 2, int(ns))

            taken = json.loads(karst("memory", "--json", trace))
            self.assertEqual([(r["function"], r["allocations"], r["bytes"], r["living"]) for r in taken["memory_of_functions"]],
                             [("main", 10, sum(range(100, 110)), 5)])
            self.assertEqual(taken["unknown_frees"], 0)
            self.assertRegex(tree, r"arena\(size=101\) = 0x")

    def check_against_logs(self, run, whole):
        notes = {}
        for note in notes_of(run.trace.path):
            notes.setdefault(str(note["tid"]), []).append(note)
        logs = [p for p in (self.directory / "logs").iterdir()]
        self.assertEqual(len(logs), 5)
        lost = 0
        for log in logs:
            lines = [line.split("\t") for line in log.read_text().splitlines()]
            self.assertEqual(lines[-1][0], "handled")
            wanted = [tuple(line) for line in lines[:-1]]
            kept = [n for n in notes.get(log.name, []) if not n["name"].startswith(HANDLED)]
            seen = [(n["kind"], f"{float(n['value']):.17g}" if n["kind"] == "number" else n["value"], n["in"])
                    for n in kept]
            if whole:
                self.assertEqual(len(seen), len(wanted))
            # What is kept is the end of what there was; the calls around the first ones may be gone.
            lost += len(wanted) - len(seen)
            begin = len(wanted) - len(seen)
            self.assertGreaterEqual(begin, 0)
            for at, (note, line) in enumerate(zip(seen, wanted[begin:])):
                self.assertEqual(note[:2], line[:2], f"{log.name}: {at}")
                if whole or note[2] != "":
                    self.assertEqual(note[2], line[2], f"{log.name}: {at}")
        return lost

    def test_random_programs_against_their_own_logs(self):
        program = build("notes_random", "notes/random.cc", "-O1", "-pthread", *INCLUDE, output="notes_random")
        for seed in range(1, 6):
            with self.subTest(seed=seed):
                (self.directory / "logs").mkdir()
                run = self.run_traced(program, seed, 60, self.directory / "logs")
                self.assertEqual(self.check_against_logs(run, True), 0)
                subprocess.run(["rm", "-r", self.directory / "logs"], check=True)

    def test_the_newest_are_kept_while_memory_wraps(self):
        program = build("notes_random", "notes/random.cc", "-O1", "-pthread", *INCLUDE, output="notes_random")
        (self.directory / "logs").mkdir()
        run = self.run_traced(program, 3, 3000, self.directory / "logs", options=("--memory", "1M"))
        self.assertGreater(self.check_against_logs(run, False), 0)

    def test_requests_that_nobody_says_to_work_on(self):
        program = build("notes_begins", "notes/begins.c", "-O1", *INCLUDE, output="notes_begins", compiler="karst-gcc")
        path = str(self.run_traced(program).trace.path)

        def karst(*words):
            return subprocess.run([KARST, *words], check=True, capture_output=True, text=True,
                                  timeout=support.TIMEOUT).stdout

        text = " ".join(karst("requests", path).split())
        self.assertIn("3 requests without work: which thread worked on it is not told.", text)
        self.assertEqual([r["threads"] for r in json.loads(karst("requests", path, "--json"))["requests"]], [0, 0, 0])

    def test_requests_go_from_thread_to_thread(self):
        program = build("notes_requests", "notes/requests.cc", "-O1", "-g", "-pthread", *INCLUDE,
                        output="notes_requests", compiler="karst-g++")
        log = self.directory / "log"
        path = str(self.run_traced(program, log).trace.path)

        def karst(*words, status=0):
            done = subprocess.run([KARST, *words], capture_output=True, text=True, timeout=support.TIMEOUT)
            self.assertEqual(done.returncode, status, done.stderr)
            return done.stdout if status == 0 else done.stderr

        truth = {int(r): (int(threads), int(steps)) for r, threads, steps in
                 (line.split() for line in log.read_text().splitlines())}
        self.assertEqual(len(truth), 100)
        steps = json.loads(karst("requests", path, "--json", "-f", r"^step\("))["requests"]
        self.assertEqual({r["request"]: (r["threads"], r["calls"]) for r in steps},
                         {r: of for r, of in truth.items() if of[1] != 0})
        requests = json.loads(karst("requests", path, "--json"))["requests"]
        self.assertEqual({r["request"]: r["threads"] for r in requests}, {r: of[0] for r, of in truth.items()})
        for r in requests:
            self.assertTrue(r["begun"] and r["ended"])
            self.assertEqual(r["pid"], requests[0]["pid"])
            self.assertLessEqual(r["idle_ns"], r["duration_ns"])
        by_number = {r["request"]: r for r in requests}
        self.assertGreater(by_number[13]["idle_ns"], 29_000_000)
        slow = by_number[17]
        self.assertEqual(slow["most_in"], "slow_step()")
        self.assertGreater(slow["most_ns"], 19_000_000)
        self.assertGreater(slow["work_ns"], slow["most_ns"])
        first = json.loads(karst("requests", path, "--json", "--sort", "work", "--limit", "1"))["requests"]
        self.assertEqual(first, [slow])

        # All commands take the same part.
        for number in (17, 18, 19):
            calls = json.loads(karst("calls", path, "--request", str(number), "--json", "-f", r"^step\("))["calls"]
            self.assertEqual(len(calls), truth[number][1])
            functions = json.loads(karst("report", path, "--request", str(number), "--json"))["functions"]
            count = {f["function"]: f["calls"] for f in functions}
            self.assertEqual(count.get("step(unsigned int)", 0), truth[number][1])
            self.assertEqual(count["work((anonymous namespace)::Queue&, (anonymous namespace)::Queue*)"],
                             truth[number][0])
            tree = karst("tree", path, "--request", str(number))
            self.assertEqual(len(re.findall(r" step\(", tree)), truth[number][1])
            self.assertEqual(tree.count("# process"), truth[number][0])
        self.assertRegex(karst("explain", path, "--request", "17"), r"answer took .* of the excess in slow_step")
        self.assertRegex(karst("slow", path, "--request", "17"), r" 1\. answer took")
        self.assertNotIn("slow_step", karst("slow", path, "--request", "18"))
        self.assertIn("slow_step", karst("diff", path, "--request-a", "18", "--request-b", "17", "--all"))
        picture = ElementTree.fromstring(karst("diff", path, "--request-a", "18", "--request-b", "17", "--format", "svg"))
        frames = {}
        for frame in picture.iter("{http://www.w3.org/2000/svg}g"):
            title, shape = frame[0].text, frame[1]
            frames.setdefault(title.split(":")[0], []).append((title, float(shape.get("width")), shape.get("fill")))
        (title, width, fill), = frames["slow_step()"]  # in the upper half alone
        self.assertRegex(title, r": A 0 ns, 0 calls; B 2\d\.\d+ ms, 1 call$")
        self.assertGreater(width, 1100)
        self.assertEqual(fill, "rgb(235,100,100)")
        self.assertEqual(len(frames["all"]), 2)
        self.assertIn("request 17", "".join(picture.itertext()))
        self.assertIn("works on request 17", karst("notes", path, "--request", "17"))
        self.assertNotIn("request 18", karst("notes", path, "--request", "17"))

        # What cannot be.
        self.assertIn("no thread said that it works on request 1700", karst("tree", path, "--request", "1700", status=1))
        self.assertIn("is no number from 1 on", karst("tree", path, "--request", "-1", status=2))
        self.assertIn("is no number from 1 on", karst("tree", path, "--request", str(2**64), status=2))
        self.assertIn("--request-a and --request-b", karst("diff", path, "--request-a", "17", status=2))
        self.assertIn("neither --request-a", karst("diff", path, "--request", "1", "--request-a", "17",
                                                   "--request-b", "2", status=2))
        self.assertIn("passes all filters", karst("requests", path, "--min-duration", "10s", status=1))

    def check_logs(self, path, printed):
        """Each log says what the program has printed of the same arguments."""
        logs = notes_of(path, "--kind", "log")
        said = [(n["level"], n["value"]) for n in logs]
        wanted = [line.split(" ", 1) for line in printed.splitlines()]
        self.assertGreater(len(wanted), 15)
        self.assertEqual(said[:-2], [(LEVELS.get(level, f"level {level}"), text) for level, text in wanted])
        self.assertTrue(all(n["in"].startswith("all") for n in logs[:-2]))
        # Two texts of 2999 bytes: of the first is kept what leaves room for what is behind it.
        first, second, number = re.fullmatch("(y+)\\.\\.\\. and (y*)\\.\\.\\., (.*)", said[-2][1]).groups()
        self.assertGreater(len(first) + len(second), 1950)
        self.assertLessEqual(len(first) + len(second), 2000)
        self.assertEqual(number, "77")
        self.assertEqual(said[-1], ("info", "(null)"))

    def test_logs_say_what_printf_says(self):
        source = "notes/logs.c"
        programs = [("karst-gcc", ("-O2",)), ("karst-gcc", ("-O0", "-std=c99", "-D_GNU_SOURCE", *PEDANTIC)),
                    ("gcc", ("-O1", "-std=c11", "-D_GNU_SOURCE", *PEDANTIC)), ("clang-14", ("-O1", *PEDANTIC[:2])),
                    ("karst-gcc", ("-O1", "-static", "--karst-link"))]
        programs += [(compiler, ("-x", "c++", "-O1", f"-std={standard}", "-D_GNU_SOURCE", *PEDANTIC))
                     for standard in ("c++11", "c++14", "c++17", "c++20") for compiler in ("g++", "clang++-14")]
        for number, (compiler, flags) in enumerate(programs):
            with self.subTest(compiler=compiler, flags=flags):
                # Behind the source a language would be that of what is linked as well.
                before = flags[:2] if flags[0] == "-x" else ()
                output = support.WORK / "programs" / f"notes_logs_{number}"
                output.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run([str(support.BIN / compiler) if "karst" in compiler else compiler, *before,
                                support.HERE / source, *(("-x", "none") if before else ()), *flags[len(before):],
                                *INCLUDE, "-g", "-o", output], check=True, timeout=support.TIMEOUT)
                run = self.run_traced(output, options=("--min-instructions", "0"))
                self.check_logs(run.trace.path, run.out)
                alone = subprocess.run([output], capture_output=True, text=True, timeout=support.TIMEOUT)
                address = "(0x[0-9a-f]{6,}|[(]nil[)]) .*"
                self.assertEqual(re.sub(address, "", alone.stdout), re.sub(address, "", run.out))

    def test_logs_by_level_in_every_command_and_file(self):
        program = build("notes_logs", "notes/logs.c", "-O1", *INCLUDE, compiler="karst-gcc")
        snapshot = self.directory / "snapshot.karst"
        run = self.run_traced(program, snapshot)
        self.check_logs(run.trace.path, run.out)
        self.check_logs(snapshot, run.out)  # the process's own file
        kept = {level: [n["level"] for n in notes_of(run.trace.path, "--level", level)]
                for level in ("debug", "info", "warning", "error")}
        self.assertEqual([len(k) for k in kept.values()], sorted((len(k) for k in kept.values()), reverse=True))
        self.assertEqual(set(kept["warning"]), {"warning", "error", "level 5", "level 200"})
        self.assertEqual(set(kept["debug"]) - set(kept["info"]), {"debug"})
        tree = subprocess.run([KARST, "tree", str(run.trace.path)], check=True, capture_output=True, text=True).stdout
        self.assertRegex(tree, r"\n +info: -5    6 0xff 1\.25 \{\} a text: café\n")
        text = subprocess.run([KARST, "notes", str(run.trace.path), "--level", "error"], check=True,
                              capture_output=True, text=True).stdout
        self.assertIn("error: again 1  in all", text)
        csv = subprocess.run([KARST, "notes", str(run.trace.path), "--format", "csv", "--level", "error"], check=True,
                             capture_output=True, text=True).stdout.splitlines()
        self.assertEqual(csv[0], "time_ns,kind,name,value,pid,tid,thread,in,level,duration_ns")
        self.assertRegex(csv[-1], r',"log","again %d","again 1",.*,"error",$')
        for to in ("chrome", "perfetto"):
            subprocess.run([KARST, "export", str(run.trace.path), "--to", to, "-o", self.directory / to], check=True,
                           capture_output=True, timeout=support.TIMEOUT)
            self.assertIn(b"error: again 1", (self.directory / to).read_bytes())
        # Without what the program said there is the format.
        bare = self.directory / "bare.karst"
        subprocess.run([KARST, "resolve", "--strip=values", str(run.trace.path), "-o", str(bare)], check=True,
                       capture_output=True, timeout=support.TIMEOUT)
        self.assertEqual({(n["value"], n["level"]) for n in notes_of(bare)}, {("", "")})
        self.assertEqual({n["name"] for n in notes_of(bare)}, {n["name"] for n in notes_of(run.trace.path)})
        # A format is a name, which filters know.
        run = self.run_traced(program, options=("--not-function", "^again %d$"))
        self.assertNotIn("again %d", {n["name"] for n in notes_of(run.trace.path)})

    def test_wrong_logs_do_not_compile(self):
        source = self.directory / "wrong.cc"

        def compiled(line, compiler, standard, *more):
            language = "c++" if "++" in compiler else "c"
            source.write_text(f"#include <karst/karst.h>\nstruct s {{ int i; }};\n"
                              f"void f(int n, const char* t, double x, struct s s);\n"
                              f"void f(int n, const char* t, double x, struct s s) {{\n"
                              f"  (void)n, (void)t, (void)x, (void)s;\n  {line};\n}}\n")
            return subprocess.run([compiler, "-x", language, f"-std={standard}", *PEDANTIC, *INCLUDE, *more,
                                   "-fsyntax-only", source], capture_output=True, text=True, timeout=support.TIMEOUT)

        everywhere = [('karst_log("%d", t)', "format"), ('karst_log("%s")', "format"), ('karst_log("%d", n, n)', "format"),
                      ('karst_log("%d", s)', ""), ('karst_log(t)', ""),
                      ('karst_log("%d%d%d%d%d%d%d%d%d", n, n, n, n, n, n, n, n, n)', "more_than_8_arguments")]
        braces = [('"{", n', "brace"), ('"}", n', "brace"), ('"{}"', "has no argument"), ('"{} {}", n', "has no argument"),
                  ('"{1}", n', "has no argument"), ('"{} {0}", n', "has no argument"), ('"{}", n, n', "has no field"),
                  ('"{:x}", t', "does not fit"), ('"{:d}", x', "does not fit"), ('"{:s}", n', "does not fit"),
                  ('"{:f}", n', "does not fit"), ('"{:{}}", n, t', "does not fit"), ('"{:.3}", n', "cannot be so"),
                  ('"{:+}", t', "cannot be so"), ('"{:q}", n', "cannot be so"), ('"{:2001}", n', "cannot be so")]
        right = ['karst_log("%d %s %f %%", n, t, x)', 'karst_log_format("{} {} {} {{}}", n, t, x)',
                 'karst_log_format("{2:.3f} {0:#x} {1:>9}", n, t, x)', 'karst_log_format("{:{}}", t, n)',
                 'karst_log("%d%d%d%d%d%d%d%d", n, n, n, n, n, n, n, n)']
        for compiler, standard in (("gcc", "c99"), ("clang-14", "c11"), ("g++", "c++14"), ("g++", "c++20"),
                                   ("clang++-14", "c++14"), ("clang++-14", "c++20")):
            with self.subTest(compiler=compiler, standard=standard):
                for line in right:
                    done = compiled(line, compiler, standard)
                    self.assertEqual(done.returncode, 0, done.stderr)
                wrong = list(everywhere)
                if "++" in compiler:
                    wrong += [(f"karst_log_format({given})", why) for given, why in braces]
                for line, why in wrong:
                    done = compiled(line, compiler, standard)
                    self.assertNotEqual(done.returncode, 0, line)
                    self.assertIn(why, done.stderr, line)

    def test_names_that_are_chosen_at_run_time_are_so_many(self):
        run = self.run_traced(build("notes_names", "notes/names.c", "-O1", *INCLUDE, compiler="karst-gcc"))
        self.assertEqual(run.out, "done\n")
        self.assertEqual([(n["name"], n["value"]) for n in notes_of(run.trace.path)],
                         [(f"name {i}", str(i)) for i in range(1024)])
        self.assertEqual(run.err.count("there are too many names of notes"), 1)

    def test_frames_are_those_of_the_programs_own_clock(self):
        program = build("viewer_frames", "viewer_frames.cc", "-O1", *INCLUDE, compiler="karst-g++")
        run = self.run_traced(program)
        took = {int(number): int(ns) for number, ns in re.findall(r"^Frame (\d+) (\d+)$", run.out, re.M)}
        self.assertEqual(len(took), 79)

        def frames(*options):
            done = subprocess.run([KARST, "notes", "--frames", *options, str(run.trace.path)], check=True,
                                  capture_output=True, text=True, timeout=support.TIMEOUT)
            return done.stdout

        rows = [line.split(",") for line in frames("--format", "csv").splitlines()[1:]]
        found = {int(number): int(ns) for name, _, number, _, ns in rows if name == '"Frame"'}
        self.assertEqual(set(found), set(took))
        for number, ns in took.items():
            # Between its mark and the program's look at the clock a thread may lose its CPU.
            self.assertLess(abs(found[number] - ns), 20e6, number)
        sums = json.loads(frames("--json", "--target", "60ms"))
        main = next(one for one in sums["frames"] if one["name"] == "Frame")
        self.assertEqual([one["name"] for one in sums["frames"]], ["Frame", "audio"])
        self.assertEqual(main["count"], 79)
        self.assertEqual(main["max_ns"], max(found.values()))
        self.assertEqual(main["over"], sum(ns > 60e6 for ns in found.values()))
        self.assertEqual(main["p50_ns"], sorted(found.values())[(79 * 50 + 99) // 100 - 1])
        self.assertEqual(main["mean_ns"], sum(found.values()) // 79)
        slowest = max(took, key=took.get)
        self.assertEqual(main["slowest"][0]["number"], slowest)
        begin = main["slowest"][0]["begin_ns"]
        inside = f"{begin - 1000}ns..{begin + main['max_ns'] + 1000}ns"
        only = json.loads(frames("--json", "--range", inside))["frames"]
        self.assertEqual([one["count"] for one in only if one["name"] == "Frame"], [1])
        self.assertRegex(frames("--target", "60ms"), rf"(?m)^ +79 .* {main['over']} +[\d.]+%  Frame$")
        for bad in (["--thread", "1"], ["--kind", "frame"], ["--request", "3"], ["--function", "draw"]):
            done = subprocess.run([KARST, "notes", "--frames", *bad, str(run.trace.path)], capture_output=True,
                                  text=True, timeout=support.TIMEOUT)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"{bad[0]} cannot choose among --frames", done.stderr)


if __name__ == "__main__":
    main()
