"""Fibers: programs that switch stacks themselves, in several threads, against what they log of it (fibers/random.cc)."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))
import decode_trace  # noqa: E402
import support  # noqa: E402
from support import BIN, KARST, ROOT, TracedTest, build, main  # noqa: E402

INCLUDE = ("-I", str(ROOT / "include"))
FIRST_FIBER = 1_000_000_001
OWN = ("--functions", r"^\(anonymous namespace\)::")  # not the standard library's


def program(level="-O2", compiler="karst-g++"):
    flags = ("-std=c++20", "-pthread", level, *INCLUDE)
    if compiler != "karst-g++":
        return build(f"fibers_random_clang{level}", "fibers/random.cc", *flags, compiler=str(BIN / compiler))
    return build(f"fibers_random{level}", "fibers/random.cc", *flags)


def plain(line):
    return re.sub(r"\(.*\)$", "", line.replace("(anonymous namespace)::", ""))


def trees(lines, header):
    """{thread: lines}, without the calls of signal handlers, which come at any place."""
    found = {}
    for line in lines:
        match = re.match(header, line)
        if match:
            tree = found.setdefault(match[1], [])
        elif plain(line).strip() != "handled":
            tree.append(plain(line))
    return found


def logged(out):
    *lines, handled = out.splitlines()
    return trees(lines, r"# (.*)$"), int(handled.split()[1])


def told(trace, *options):
    return trees(trace.tree(*options), r"# process .* thread \d+ (.*)$")


def notes_of(path):
    done = subprocess.run([KARST, "notes", "--json", str(path)], check=True, capture_output=True, text=True,
                          timeout=support.TIMEOUT)
    return json.loads(done.stdout)["notes"]


def calls_of(path, *options):
    done = subprocess.run([KARST, "calls", "--raw", "--json", str(path), *options], check=True, capture_output=True,
                          text=True, timeout=support.TIMEOUT)
    return json.loads(done.stdout)["calls"]


class SecondDecoder(decode_trace.Trace):
    """Trees of a whole trace, from its words by docs/trace-format.md alone."""

    def name_of(self, function):
        return plain(self.symbols[0, function][1].decode())

    def stretches(self, thread):
        """(ticks, fiber, name, [(ticks, word)]) between notes of fibers."""
        events = [(ticks >> 40 << 40 | word >> 24, word) for _, ticks, words in self.blocks[0, thread] for word in words]
        found, at = [(0, 0, "", [])], 0
        while at < len(events):
            ticks, word = events[at]
            head = events[at + 1][1] if at + 1 < len(events) else 0
            if word & 0xFFFFFF == 0x800000 | 8388358 and head & 0xFFFFFF == 0x800000 | 8388359:
                words = [w >> 24 for _, w in events[at + 2:at + 2 + (head >> 55)]]
                at += 2 + len(words)
                if head >> 24 & 0xFF == 12:
                    words += [0] * 4
                    name = b"".join(w.to_bytes(5, "little") for w in words[4:]).rstrip(b"\0").decode()
                    assert words[0] | (words[1] & 0xFFFFFF) << 40 == found[-1][1], "what is left was entered"
                    found.append((ticks, words[2] | words[3] << 40, name, []))
            else:
                found[-1][3].append((ticks, word))
                at += 1
        return found

    def trees(self):
        lines, fibers, names = {}, {}, {}
        for (_, thread), (_, _, _, thread_name) in self.threads.items():
            if (0, thread) not in self.blocks:
                continue
            tree, depth = lines.setdefault(thread_name.decode(), []), 0
            for ticks, fiber, name, words in self.stretches(thread):
                if fiber:
                    names[fiber] = name
                    fibers.setdefault(fiber, []).append((ticks, words))
                    tree.append("  " * depth + f"[fiber {name}]")
                else:
                    depth = self.walk(words, tree, depth)
        for fiber, parts in fibers.items():
            tree, depth = lines.setdefault(names[fiber], []), 0
            for ticks, words in sorted(parts):
                if depth:
                    tree.append("  " * depth + "[suspended]")
                depth = self.walk(words, tree, depth)
        return {thread: [line for line in tree if line.strip() != "handled"] for thread, tree in lines.items()}

    def walk(self, words, tree, depth):
        for _, word in words:
            if word & 0x7FFFFF > 8388351 or word == 0:
                continue
            if word >> 23 & 1:
                depth -= 1
            else:
                tree.append("  " * depth + self.name_of(word & 0x7FFFFF))
                depth += 1
        return depth


class Fibers(TracedTest):
    def check(self, run):
        log, handled = logged(run.out)
        self.assert_whole(run.trace)
        tree = told(run.trace)
        for thread, lines in log.items():
            self.assertEqual(tree.get(thread, []), lines, thread)
        self.assertEqual({name for name in set(tree) - set(log) if name.startswith(("fiber no.", "worker"))}, set())
        self.assertEqual(run.trace.counts.get("(anonymous namespace)::handled()", 0), handled)
        return log, handled

    def test_random_programs_tell_the_same(self):
        for seed, (fibers, threads, steps) in enumerate(((1, 1, 50), (5, 1, 200), (7, 3, 400), (40, 4, 300))):
            for level in ("-O0", "-O2"):
                with self.subTest(seed=seed, level=level):
                    self.check(self.run_traced(program(level), seed, fibers, threads, steps, options=OWN))

    def test_under_signals_and_other_hooks(self):
        # A clock's thread stamps what two threads do within its period with one time: docs/limits.md.
        for threads, *options in ((3,), (1, "--clock", "thread"), (3, "--slowest", "outer:5")):
            with self.subTest(options=options):
                run = self.run_traced(program(), 7, 20, threads, 2000, "signals", options=(*OWN, *options))
                self.assertGreater(self.check(run)[1], 0)

    def test_a_second_decoder_says_the_same(self):
        run = self.run_traced(program(), 11, 12, 3, 300, options=OWN)
        log, _ = self.check(run)
        theirs = SecondDecoder(run.trace.path.read_bytes()).trees()
        for thread, lines in log.items():
            self.assertEqual(theirs.get(thread, []), lines, thread)

    def contexts(self, *flags):
        return build("fibers_contexts" + "".join(flags[:1]), "fibers/contexts.c", "-O1", *INCLUDE, *flags,
                     compiler="karst-gcc")

    def test_on_stacks_of_makecontext_and_by_tracys_macros(self):
        main = ["main"] + ["  runs", "    [fiber ping]", "  runs", "    [fiber pong]"] * 3
        fiber = ["body"] + ["  yields", "    inner", "    [suspended]", "    inner"] * 2 + ["  inner"]
        for flags in ((), ("-DTRACY_ENABLE", "-I" + str(ROOT / "include/karst/tracy"))):
            with self.subTest(flags=flags):
                run = self.run_traced(self.contexts(*flags))
                self.assert_whole(run.trace)
                self.assertEqual(list(told(run.trace).values()), [main, fiber, fiber])
                self.assertEqual([t["tid"] for t in run.trace.threads if t["fiber"]], [FIRST_FIBER, FIRST_FIBER + 1])

    def test_in_a_forked_child(self):
        run = self.run_traced(self.contexts(), "fork")
        self.assert_whole(run.trace)
        parent, child = run.trace.processes
        self.assertEqual([t["name"] for t in child["threads"]][1:], ["ping", "pong"])
        lines = run.trace.tree("--marks", "--process", str(child["pid"]), "--thread", "ping")
        self.assertEqual(lines[1:], [
            "body  [inherited]", "  child", "    inner", "  yields", "    inner", "    [suspended]", "    inner", "  inner"])

    def test_while_tracing_is_off(self):
        run = self.run_traced(self.contexts(), "off")
        tree = told(run.trace, "--marks")
        # What ping called behind it is ping's: the note that leaves ping tells so.
        self.assertEqual(tree["ping"][-2:], ["body  [begun before]", "  inner"])
        self.assertEqual(tree["pong"][-4:], ["body  [begun before]", "  yields  [begun before]", "    inner", "  inner"])

    def test_times_add_up(self):
        run = self.run_traced(program(), 13, 6, 2, 300, options=OWN)
        self.check(run)
        calls = calls_of(run.trace.path)
        lanes = {t["tid"] for t in run.trace.threads if t["fiber"]}
        given = sum(c["duration_ns"] for c in calls if c["function"].startswith("[fiber "))
        suspended = sum(c["duration_ns"] for c in calls if c["function"] == "[suspended]")
        bodies = sum(c["duration_ns"] for c in calls if "::body(" in c["function"])
        in_fibers = [c for c in calls if c["tid"] in lanes]
        own = sum(f["self_ns"] for t in lanes for f in run.trace.report("--thread", str(t)) if f["function"] != "[suspended]")
        # A nanosecond for each call is lost by rounding.
        self.assertAlmostEqual(own + suspended, bodies, delta=len(in_fibers))
        self.assertLessEqual(own, given)
        self.assertGreater(suspended, 0)

    def test_exports_have_a_track_for_each(self):
        run = self.run_traced(self.contexts())
        for to in ("chrome", "perfetto"):
            subprocess.run([KARST, "export", str(run.trace.path), "--to", to, "-o", self.directory / to], check=True,
                           capture_output=True, timeout=support.TIMEOUT)
        events = json.loads((self.directory / "chrome").read_text())["traceEvents"]
        names = {e["tid"]: e["args"]["name"] for e in events if e.get("name") == "thread_name"}
        self.assertEqual({names[e["tid"]] for e in events if e["ph"] == "X" and e["name"].startswith("yields")},
                         {"ping", "pong"})
        self.assertIn(b"pong", (self.directory / "perfetto").read_bytes())

    def test_stripped(self):
        run = self.run_traced(self.contexts())
        whole = told(run.trace)
        stripped = self.directory / "stripped.karst"
        for what in ("values", "all"):
            subprocess.run([KARST, "resolve", f"--strip={what}", str(run.trace.path), "-o", stripped], check=True,
                           capture_output=True, timeout=support.TIMEOUT)
            self.assertNotIn(b"pong", stripped.read_bytes())
            self.assertNotIn("pong", "".join(t["name"] for t in support.Trace(stripped).threads))
            lines = [len(lines) for lines in told(support.Trace(stripped)).values()]
            self.assertEqual(lines, [len(lines) for lines in whole.values()])

    def test_clang(self):
        if not (BIN / "karst-clang++").exists():
            self.skipTest("there is no karst-clang++")
        self.check(self.run_traced(program("-O1", "karst-clang++"), 3, 9, 2, 300, options=OWN))

    def test_a_wrapped_ring_puts_every_call_into_its_fiber(self):
        run = self.run_traced(program(), 5, 30, 4, 20000, options=(*OWN, "--memory", "2M"))
        log, _ = logged(run.out)
        self.assertEqual([p for p, _ in run.trace.problems if not p.startswith("blocks missing")], [])
        self.assertGreater(run.trace.info["overwritten_events"], 0)
        self.assertLessEqual(set(told(run.trace)), set(log) | {Path(program()).name[:15]})
        notes = notes_of(run.trace.path)
        self.assertGreater(len(notes), 1000)
        for note in notes:
            fiber, _, function = re.match(r"(.*) (\d+) (\w+)$", note["value"]).groups()
            self.assertEqual(note["thread"], fiber)
            self.assertIn(plain(note["in"]), (function, ""))


def stacks(level="-O2", compiler="karst-g++"):
    name = f"fibers_stacks_{compiler}{level}"
    return build(name, "fibers/stacks.cc", "-std=c++20", "-pthread", level, *INCLUDE, compiler=str(BIN / compiler))


IN_FIBERS = r"::(body|gives_up|outer|middle|guarded|throws|large|taken|deeper|waits|leaf|handled)\("
LOGGED = ("--functions", IN_FIBERS.replace("(body", "(work|resume|body"))


class ByTheStackPointer(TracedTest):
    """Nothing says what a fiber is: karst run --fibers=stack finds them (fibers/stacks.cc)."""

    def check(self, program, *arguments, options=()):
        run = self.run_traced(program, *arguments, options=(*LOGGED, "--fibers=stack", *options))
        *lines, handled = run.out.splitlines()
        log, name = [], None
        for line in lines:
            if line.startswith("# "):
                log.append((line[2:], []))
            else:
                log[-1][1].append(line)
        self.assert_whole(run.trace)
        tree = told(run.trace)
        for name, calls in log:
            if name.startswith("worker"):
                self.assert_same([re.sub(r"\[fiber fiber \d+\]", "[fiber]", line) for line in tree[name]], calls, name)
        # Nobody knows which is which.
        found = sorted(calls for name, calls in tree.items() if name.startswith("fiber "))
        expected = sorted(calls for name, calls in log if name == "fiber")
        self.assertEqual(len(found), len(expected))
        for calls in expected:  # the nearest one, where none is the same
            if calls in found:
                found.remove(calls)
            else:
                self.assert_same(max(found, key=lambda f: len(os.path.commonprefix([f, calls]))), calls, "a fiber")
        self.assertEqual(run.trace.counts.get("(anonymous namespace)::handled()", 0), int(handled.split()[1]))
        return run

    def assert_same(self, found, expected, what):
        """The first difference, as those of long lists take minutes to be made."""
        for i, (a, b) in enumerate(zip(found, expected)):
            self.assertEqual(a, b, f"{what}, line {i} behind {expected[max(0, i - 5):i]}")
        self.assertEqual(len(found), len(expected), what)

    def test_on_stacks_of_all_kinds(self):
        for kind in ("malloc:16384", "malloc:65536", "arena:16384", "arena:65536", "mmap:65536", "malloc:1000000"):
            for level in ("-O0", "-O2"):
                with self.subTest(kind=kind, level=level):
                    self.check(stacks(level), 1, 20, 1, 200, kind)
                    self.check(stacks(level), 2, 20, 1, 200, kind, "direct")
                    self.check(stacks(level), 3, 20, 2, 200, kind)

    def test_many(self):
        for kind in ("malloc:16384", "arena:32768"):
            with self.subTest(kind=kind):
                self.check(stacks(), 4, 200, 2, 60, kind)
                self.check(stacks(), 5, 200, 1, 60, kind, "direct")

    def test_large_frames_are_no_fibers(self):
        for level in ("-O0", "-O2"):
            for kind in ("malloc:1200000", "mmap:1200000"):
                with self.subTest(kind=kind, level=level):
                    self.check(stacks(level), 6, 10, 2, 100, kind, "large")
                    self.check(stacks(level), 7, 10, 1, 100, kind, "large", "direct")

    def test_deep_recursion(self):
        for kind in ("malloc:2000000", "mmap:2000000"):
            with self.subTest(kind=kind):
                self.check(stacks("-O0"), 8, 2, 1, 60, kind, "deep", "direct")

    def test_under_signals(self):
        for word in ("signals", "altstack"):
            for threads in (1, 3):
                with self.subTest(word=word, threads=threads):
                    self.check(stacks(), 10, 20, threads, 1000, "malloc:65536", word)

    def test_stacks_that_are_used_again(self):
        for kind in ("malloc:32768", "mmap:65536"):
            for level in ("-O0", "-O2"):
                with self.subTest(kind=kind, level=level):
                    self.check(stacks(level), 11, 10, 2, 50, kind, "reuse")
                    self.check(stacks(level), 12, 10, 1, 50, kind, "reuse", "direct")

    def silent(self, *arguments):
        program = build("fibers_contexts_silent", "fibers/contexts.c", "-O1", *INCLUDE, "-DSILENT", compiler="karst-gcc")
        return self.run_traced(program, *arguments, options=("--fibers=stack",)).trace

    def test_stacks_of_makecontext(self):
        trace = self.silent()
        self.assert_whole(trace)
        main = ["main"] + ["  runs", "    [fiber fiber 1]", "  runs", "    [fiber fiber 2]"] * 3
        fiber = ["body"] + ["  yields", "    inner", "    [suspended]", "    inner"] * 2 + ["  inner"]
        self.assertEqual(list(told(trace).values()), [main, fiber, fiber])

    def test_stacks_in_a_forked_child(self):
        trace = self.silent("fork")
        self.assert_whole(trace)
        child = trace.processes[1]
        self.assertEqual([t["name"] for t in child["threads"]][1:], ["fiber 1", "fiber 2"])
        lines = trace.tree("--marks", "--process", str(child["pid"]), "--thread", "fiber 1")
        self.assertEqual(lines[1:], [
            "body  [inherited]", "  child", "    inner", "  yields", "    inner", "    [suspended]", "    inner", "  inner"])

    def test_stacks_while_tracing_is_off(self):
        # What was open then is cut: which stack the thread went to was not seen.
        tree = told(self.silent("off"), "--marks")
        self.assertEqual(tree["fiber 1"][-3:], ["    inner", "    [suspended]  [cut]", "inner"])
        self.assertEqual(tree["fiber 2"][-4:], ["    inner", "[suspended]", "inner", "inner"])

    def test_without_it_nothing_is_found_and_the_program_is_the_same(self):
        arguments = (21, 10, 1, 100, "malloc:65536")
        found = self.run_traced(stacks(), *arguments, options=(*LOGGED, "--fibers=stack"))
        self.assertTrue(any(t["fiber"] for t in found.trace.threads))
        usual = self.run_traced(stacks(), *arguments, options=LOGGED)
        alone = subprocess.run([stacks(), *map(str, arguments)], check=True, capture_output=True, text=True,
                               timeout=support.TIMEOUT).stdout
        self.assertEqual(found.out == alone, True)
        self.assertEqual(usual.out == alone, True)
        self.assertFalse(any(t["fiber"] for t in usual.trace.threads))

    def test_wrong_words_are_refused(self):
        for words, said in ((("--fibers=all",), "boost, stack or none is needed"),
                            (("--fibers=stack", "--prefault"), "do not go together")):
            done = subprocess.run([KARST, "run", *words, "true"], capture_output=True, text=True, timeout=support.TIMEOUT)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)

    def test_threads_without_calls_of_their_own(self):
        # Nothing tells when a thread leaves a fiber but that another one goes on with it.
        run = self.run_traced(stacks(), 20, 20, 3, 200, "malloc:65536",
                              options=("--functions", IN_FIBERS, "--fibers=stack"))
        self.assert_whole(run.trace)
        found = [calls for name, calls in told(run.trace).items() if name.startswith("fiber ")]
        log = [part.splitlines() for part in run.out.split("# fiber\n")[1:]]
        without = [[[line for line in calls if "[" not in line] for calls in lanes] for lanes in (found, log)]
        last = next(i for i, line in enumerate(without[1][-1]) if line.startswith("# worker"))
        without[1][-1] = without[1][-1][:last]
        self.assertEqual(sorted(without[0]) == sorted(without[1]), True)

    def test_with_other_hooks(self):
        for options in (("--clock", "thread"), ("--slowest", "outer:5"), ("--min-duration", "1ns")):
            with self.subTest(options=options):
                self.check(stacks(), 13, 20, 1, 300, "malloc:65536", options=options)

    def test_of_programs_that_no_wrapper_built(self):
        for level in ("-O1", "-O2"):  # all that is logged has room for a jump
            with self.subTest(level=level):
                program = build("fibers_stacks_plain" + level, "fibers/stacks.cc", "-std=c++20", "-pthread", level,
                                "-DKARST_NOTRACE=", *INCLUDE, compiler="g++")
                self.check(program, 16, 20, 2, 200, "malloc:65536", options=("--min-instructions", "0", "--budget", "off"))

    def test_by_calls_of_the_compilers(self):
        program = build("fibers_stacks_calls", "fibers/stacks.cc", "-std=c++20", "-pthread", "-O1",
                        "--karst-method=finstrument", *INCLUDE, compiler=str(BIN / "karst-g++"))
        self.check(program, 17, 20, 2, 200, "malloc:65536")

    def test_in_static_programs(self):
        program = build("fibers_stacks_static", "fibers/stacks.cc", "-std=c++20", "-pthread", "-O1", "-static",
                        *INCLUDE, compiler=str(BIN / "karst-g++"))
        self.check(program, 18, 20, 2, 200, "malloc:65536")

    def test_what_the_program_says_wins(self):
        run = self.run_traced(program(), 19, 20, 3, 300, options=(*OWN, "--fibers=stack"))
        log, _ = logged(run.out)
        self.assert_whole(run.trace)
        tree = told(run.trace)
        for thread, lines in log.items():
            self.assertEqual(tree.get(thread, []) == lines, True, thread)

    def test_stacks_of_clang(self):
        if not (BIN / "karst-clang++").exists():
            self.skipTest("there is no karst-clang++")
        for level in ("-O0", "-O2"):
            with self.subTest(level=level):
                self.check(stacks(level, "karst-clang++"), 14, 20, 2, 200, "malloc:65536")
                self.check(stacks(level, "karst-clang++"), 15, 20, 1, 200, "malloc:32768", "direct")


BOOST = ("-lboost_fiber", "-lboost_context")
STATIC_BOOST = ("-Wl,-Bstatic", "-lboost_fiber", "-lboost_context", "-Wl,-Bdynamic")
STEPS = ("--functions", "::step<", "--fibers")


class OfBoost(TracedTest):
    """Nothing in these programs says what a fiber is: karst run --fibers stands before libboost_context's functions."""

    def setUp(self):
        super().setUp()
        if not Path("/usr/include/boost/fiber/all.hpp").exists():
            self.skipTest("there is no libboost-fiber-dev")

    def program(self, name="fibers_boost", compiler="karst-g++", *flags):
        return build(name, "fibers/boost.cc", "-O1", "-pthread", *INCLUDE, *flags, *BOOST, compiler=compiler)

    def check(self, trace, fibers=8, waits_upward=(4, 3, 2, 1)):
        self.assert_whole(trace)
        lanes = {thread: [re.sub("[^ ]*step<.*", "step", line) for line in lines]
                 for thread, lines in told(trace).items() if "step<" in "".join(lines)}
        downward = [line for depth in range(4) for line in ("  " * depth + "step", "  " * (depth + 1) + "[suspended]")]
        upward = ["  " * depth + "[suspended]" for depth in waits_upward]
        self.assertEqual(list(lanes.values()), [downward + upward] * fibers)
        # Each call said whose it is.
        whose = {}
        for note in notes_of(trace.path):
            whose.setdefault(note["value"].split()[0], set()).add(note["thread"])
        self.assertEqual({len(threads) for threads in whose.values()}, {1})
        self.assertEqual(len(set.union(*whose.values())), fibers)

    def test_contexts_go_through_threads(self):
        self.check(self.run_traced(self.program(), "context", options=STEPS).trace)

    def test_boosts_own_fibers(self):
        self.check(self.run_traced(self.program(), "fiber", options=STEPS).trace)

    def test_of_a_program_that_no_wrapper_built(self):
        run = self.run_traced(self.program("fibers_boost_plain", "g++"), "context",
                              options=(*STEPS, "--min-instructions", "0"))
        self.check(run.trace)

    def test_in_a_library_with_a_scope_of_its_own(self):
        library = self.program("fibers_boost_plugin.so", "karst-g++", "-shared", "-fPIC")
        host = build("fibers_host", "fibers/host.c", "-O1", compiler="karst-gcc")
        self.check(self.run_traced(host, library, "context", options=STEPS).trace)

    def test_by_the_stack_pointer(self):
        for name, libraries in (("", BOOST), ("_static", STATIC_BOOST)):
            program = build("fibers_boost_stack" + name, "fibers/boost.cc", "-O1", "-pthread", *INCLUDE, *libraries)
            for kind in ("context", "fiber"):
                with self.subTest(libraries=libraries, kind=kind):
                    # Between two waits of the innermost call it does nothing that could tell.
                    run = self.run_traced(program, kind, options=("--functions", "::(step<|use)", "--fibers=stack"))
                    self.check(run.trace, waits_upward=(3, 2, 1))

    def test_all_functions_and_none_of_it_without_being_asked(self):
        run = self.run_traced(self.program(), "fiber", options=("--fibers",))
        self.assert_whole(run.trace)
        run = self.run_traced(self.program(), "fiber", options=("--fibers=none",))
        self.assertEqual(run.out, "done\n")
        self.assertFalse(any(t["fiber"] for t in run.trace.threads))

    def test_the_library_tells_that_there_are_some(self):
        """Linked with libboost_context: stacks are found, which is said. Not so where it only comes later."""
        run = self.run_traced(self.program(), "fiber")
        self.assertEqual(run.out, "done\n")
        self.assertRegex(run.err, "linked with libboost_(context|fiber).so.* \\(--fibers=none")
        self.assert_whole(run.trace)
        self.assertGreater(len([t for t in run.trace.threads if t["fiber"]]), 1)
        host = build("fibers_contexts", "fibers/contexts.c", "-O1", *INCLUDE, compiler="karst-gcc")
        self.assertNotIn("of their own", self.run_traced(host).err)
        static = build("fibers_boost_stack_static", "fibers/boost.cc", "-O1", "-pthread", *INCLUDE, *STATIC_BOOST)
        run = self.run_traced(static, "fiber")
        self.assertIn("it has the function jump_fcontext (--fibers=none", run.err)
        self.assert_whole(run.trace)
        self.assertGreater(len([t for t in run.trace.threads if t["fiber"]]), 1)

    def test_a_program_without_boost_does_not_mind(self):
        host = build("fibers_contexts", "fibers/contexts.c", "-O1", *INCLUDE, compiler="karst-gcc")
        run = self.run_traced(host, options=("--fibers",))
        self.assertEqual(len([t for t in run.trace.threads if t["fiber"]]), 2)


if __name__ == "__main__":
    main()
