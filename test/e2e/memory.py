"""karst run --system memory, karst memory: who takes memory, against programs that log it, and heaptrack."""
import csv
import io
import json
import os
import re
import shutil
import subprocess

from support import KARST, TIMEOUT, TracedTest, build, main

MEMORY = ("--system", "memory", "--memory", "256M")
JEMALLOC = "/usr/lib/x86_64-linux-gnu/libjemalloc.a"
PRELOADED = ("libjemalloc.so.2", "libtcmalloc_minimal.so.4")


def rows(path, *options):
    """By function, without parameters and namespaces."""
    text = subprocess.run([KARST, "memory", "--format", "csv", *options, str(path)], check=True, capture_output=True,
                          text=True, timeout=TIMEOUT).stdout
    found = {}
    for row in csv.DictReader(io.StringIO(text)):
        name = re.sub(r"\(.*", "", row["function"].replace("(anonymous namespace)::", "")).removeprefix("void ")
        found[name] = {key: int(value) for key, value in row.items() if key != "function"}
    return found


def whole(path, *options):
    return json.loads(subprocess.run([KARST, "memory", "--json", *options, str(path)], check=True, capture_output=True,
                                     text=True, timeout=TIMEOUT).stdout)


class Memory(TracedTest):
    def random_program(self):
        return build("memory_random", "memory/random.cc", "-std=c++20", "-O1", "-pthread", "-fno-builtin")

    def told_by(self, run):
        told, most = {}, None
        for line in run.out.splitlines():
            name, *numbers = line.split()
            if name == "most":
                most = int(numbers[0])
            else:
                told[name] = tuple(map(int, numbers))
        return told, most

    def test_random_programs_against_their_own_logs(self):
        for seed in range(1, 21):
            threads = 1 if seed % 4 == 0 else seed % 4 + 1
            run = self.run_traced(self.random_program(), str(seed), str(threads), "2000", options=MEMORY)
            told, most = self.told_by(run)
            self.assertEqual(len(told), 8)
            pid = run.trace.info["processes"][0]["pid"]
            of = {name: tuple(row[key] for key in ("allocations", "bytes", "living", "living_bytes"))
                  for name, row in rows(run.trace.path, "--process", str(pid), "-f", "^.*work<").items()}
            self.assertEqual(of, told, f"seed {seed}")
            if threads == 1:
                peak = whole(run.trace.path, "--process", str(pid), "-f", "^.*work<")["all"]["peak_bytes"]
                self.assertEqual(peak, most, f"seed {seed}")

    def test_one_call_alone(self):
        program = build("memory_calls", "memory/calls.c", "-O1", "-fno-builtin", "-fno-optimize-sibling-calls")
        run = self.run_traced(program, options=MEMORY)
        told = [tuple(map(int, line.split())) for line in run.out.splitlines()]
        listed = subprocess.run([KARST, "calls", "-f", "^take", "--format", "csv", run.trace.path], check=True,
                                capture_output=True, text=True, timeout=TIMEOUT).stdout
        calls = [row["call"] for row in csv.DictReader(io.StringIO(listed))]
        self.assertEqual(len(calls), len(told))
        for call, (allocations, size, left, left_size) in zip(calls, told):
            found = whole(run.trace.path, "--call", call)["all"]
            self.assertEqual((found["allocations"], found["bytes"], found["living"], found["living_bytes"]),
                             (allocations, size, left, left_size), call)
        by = rows(run.trace.path, "--call", calls[0])
        self.assertEqual({name: of["bytes"] for name, of in by.items()}, {"take": 60, "part": 105})
        # All calls together are what --below tells, but for what is freed later.
        below = whole(run.trace.path, "--below", "^take")["all"]
        self.assertEqual(below["bytes"], sum(each[1] for each in told))
        self.assertEqual(rows(run.trace.path, "--call", calls[0], "-f", "part").keys(), {"part"})
        for word, status, said in (("5", 2, "'5' names no call"), ("1@5ns", 1, "no call of that thread")):
            done = subprocess.run([KARST, "memory", "--call", word, run.trace.path], capture_output=True, text=True,
                                  timeout=TIMEOUT)
            self.assertEqual(done.returncode, status)
            self.assertIn(said, done.stderr)
        text = subprocess.run([KARST, "memory", "--call", calls[0], run.trace.path], check=True, capture_output=True,
                              text=True, timeout=TIMEOUT).stdout
        self.assertRegex(" ".join(text.split()), r"call \d+@\d+ns: 4 allocations of 165 bytes; .* 100 bytes in "
                                                 r"1 allocation living at its end")

    def test_records_of_a_call_that_repeat_are_one_line(self):
        program = build("memory_calls", "memory/calls.c", "-O1", "-fno-builtin", "-fno-optimize-sibling-calls")
        run = self.run_traced(program, options=MEMORY)

        def tree(*options):
            text = subprocess.run([KARST, "tree", "-f", "^repeat", "--no-states", *options, run.trace.path], check=True,
                                  capture_output=True, text=True, timeout=TIMEOUT).stdout
            return [line.strip() for line in text.split("repeat", 1)[1].splitlines()[1:]]
        self.assertEqual(tree("--fold"), ["malloc  x100, 4.9 KiB", "free  x100"])
        for options in ((), ("--no-fold",)):
            lines = tree(*options)
            self.assertEqual(len(lines), 200)
            self.assertEqual(lines[::2], [line for line in lines if line.startswith("malloc(size=")])
        locked = self.run_traced(program, options=("--system", "memory,locks=all"))
        run, before = locked, run
        lines = [re.sub("0x[0-9a-f]+", "ADDRESS", line) for line in tree("--fold")]
        self.assertEqual(lines, ["mutex(locked=ADDRESS, tried=0)  x100", "malloc  x100, 4.9 KiB", "free  x100",
                                 "mutex(unlocked=ADDRESS)  x100"])
        run = before
        # What is of another call stays with it.
        text = subprocess.run([KARST, "tree", "-f", "^take", "--fold", "--no-states", run.trace.path], check=True,
                              capture_output=True, text=True, timeout=TIMEOUT).stdout
        self.assertEqual(text.count("malloc(size=5)"), 20)
        self.assertEqual(len(re.findall(r"malloc\(size=\d+00\)", text)), 20 + 2)

    def test_samples_are_unbiased(self):
        """The mean of many estimates is near the truth; so is each, by its own margin."""
        within, ratios = 0, []
        for seed in range(1, 21):
            run = self.run_traced(self.random_program(), str(seed), "2", "4000",
                                  options=("--system", "memory=100K", "--memory", "256M"))
            told, _ = self.told_by(run)
            bytes_told = sum(of[1] for of in told.values())
            living_told = sum(of[3] for of in told.values())
            pid = run.trace.info["processes"][0]["pid"]
            found = whole(run.trace.path, "--process", str(pid), "-f", "^.*work<")
            self.assertEqual(found["sampled_bytes"], 102_400)
            self.assertLess(found["records"], 4000)
            ratios.append(found["all"]["bytes"] / bytes_told)
            within += abs(found["all"]["bytes"] - bytes_told) <= found["all"]["bytes_margin"]
            within += abs(found["all"]["living_bytes"] - living_told) <= found["all"]["living_margin"]
        self.assertLess(abs(sum(ratios) / len(ratios) - 1), 0.05, ratios)
        self.assertGreaterEqual(within, 32)  # of 40, of which 95 % are expected

    def assert_same_results(self, program):
        alone = subprocess.run([program], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(alone.returncode, 0)
        self.assertGreater(len(alone.stdout.splitlines()), 150)
        for how in ("memory", "memory=4K"):
            run = self.run_traced(program, options=("--system", how))
            self.assertEqual(run.out, alone.stdout, how)

    def test_results_and_errno_are_the_same(self):
        for name, flags in {"memory_results": (), "memory_results_now": ("-Wl,-z,now", "-fno-plt")}.items():
            program = build(name, "memory/results.c", "-O0", "-fno-builtin", "-w", *flags, compiler="gcc")
            self.assert_same_results(program)

    def test_allocators_that_are_preloaded(self):
        program = self.random_program()
        for name in PRELOADED:
            library = next((f"{place}/{name}" for place in ("/usr/lib/x86_64-linux-gnu", "/usr/lib")
                            if os.path.exists(f"{place}/{name}")), None)
            if library is None:
                self.skipTest(f"there is no {name}")
            run = self.run_traced(program, "7", "3", "2000", options=MEMORY, env={"LD_PRELOAD": library})
            told, _ = self.told_by(run)
            pid = run.trace.info["processes"][0]["pid"]
            of = {name: tuple(row[key] for key in ("allocations", "bytes", "living", "living_bytes"))
                  for name, row in rows(run.trace.path, "--process", str(pid), "-f", "^.*work<").items()}
            self.assertEqual(of, told, name)

    def allocators(self):
        """Flags that link one into a program, by name."""
        made = {name: (build(f"memory_own_{name}.o", "memory/own_allocator.cc", "-std=c++20", "-O2", "-fno-builtin", "-c", *flags,
                             compiler="g++"),)
                for name, flags in (("own", ()), ("next", ("-DNEXT",)))}
        if os.path.exists(JEMALLOC):
            made["jemalloc"] = ("-Wl,--whole-archive", JEMALLOC, "-Wl,--no-whole-archive", "-lm", "-lstdc++")
        return made

    def test_allocators_in_the_program(self):
        for compiler in ("g++", "karst-g++"):
            for name, flags in self.allocators().items():
                with self.subTest(compiler=compiler, name=name):
                    program = build(f"memory_random_{name}_{compiler}", "memory/random.cc", "-std=c++20", "-O1", "-pthread",
                                    "-fno-builtin", *flags, compiler=compiler)
                    plain = ("--budget", "off", "--min-instructions", "0") if compiler == "g++" else ()
                    run = self.run_traced(program, "7", "3", "2000", options=(*MEMORY, *plain))
                    told, _ = self.told_by(run)
                    pid = run.trace.info["processes"][0]["pid"]
                    of = {name: tuple(row[key] for key in ("allocations", "bytes", "living", "living_bytes"))
                          for name, row in rows(run.trace.path, "--process", str(pid), "-f", "^.*work<").items()}
                    # A function that cannot be patched takes for its caller.
                    self.assertGreaterEqual(len(of), 8 if compiler == "karst-g++" else 6)
                    self.assertEqual(of, {name: told[name] for name in of})
        if not os.path.exists(JEMALLOC):
            self.skipTest("there is no " + JEMALLOC)

    def test_results_with_an_allocator_in_the_program(self):
        program = build("memory_results_own", "memory/results.c", "-O0", "-fno-builtin", "-w", *self.allocators()["own"],
                        "-lstdc++", compiler="gcc")
        self.assert_same_results(program)

    def test_an_allocator_that_may_not_be_called_early(self):
        program = build("memory.early_free", "memory/early_free.c", "-O1", "-fno-builtin", compiler="gcc")
        for kinds in ("net,memory", "memory,net", "files,memory,locks", "memory"):
            with self.subTest(kinds=kinds):
                self.assertEqual(self.run_traced(program, options=("--system", kinds)).out, "0 early\n")

    def test_an_allocator_that_cannot_be_seen(self):
        """All of its functions are seen, or none is."""
        own = build("memory_own_loops.o", "memory/own_allocator.cc", "-std=c++20", "-O2", "-fno-builtin", "-c", "-DLOOPS", compiler="g++")
        program = build("memory_random_loops", "memory/random.cc", "-std=c++20", "-O1", "-pthread", "-fno-builtin", own)
        run = self.run_traced(program, "7", "3", "2000", options=MEMORY)
        self.assertIn("memory_random_loops has an allocator of its own in it, which is not seen; free: it jumps back to its first "
                      "instruction", " ".join(run.err.split()))
        self.assertGreater(len(self.told_by(run)[0]), 0)

    def test_as_heaptrack_counts(self):
        """Of programs that nobody rebuilt. heaptrack does not see what constructors take before its own begins,
        and has the words of a dlsym() of its own that finds nothing."""
        if shutil.which("heaptrack") is None:
            self.skipTest("there is no heaptrack")
        environment = {"LC_ALL": "C", "PYTHONHASHSEED": "0"}
        for command in (("/usr/bin/sort", "-r", "/etc/passwd"),
                        ("/usr/bin/python3", "-S", "-c", "print(len([str(i) for i in range(2000)]))"),
                        ("/usr/bin/mawk", "BEGIN { for (i = 0; i < 500; ++i) a[i] = i \"x\"; print length(a) }"),
                        ("/usr/bin/tar", "cf", "/dev/null", "/etc/passwd", "/etc/group")):
            out = self.directory / "heaptrack"
            subprocess.run(["heaptrack", "-o", str(out), *command], check=True, capture_output=True, timeout=TIMEOUT,
                           env={**os.environ, **environment})
            file = next(self.directory.glob("heaptrack.*"))
            told = subprocess.run(["heaptrack_print", str(file)], check=True, capture_output=True, text=True,
                                  timeout=TIMEOUT).stdout
            file.unlink()
            calls = int(re.search(r"calls to allocation functions: (\d+)", told)[1])
            short = int(re.search(r"temporary memory allocations: (\d+)", told)[1])
            run = self.run_traced(*command, options=MEMORY, env=environment)
            found = whole(run.trace.path)["all"]
            self.assertGreater(calls, 5)
            self.assertIn(found["allocations"] - calls, range(-1, 4), command)
            self.assertLess(abs(found["short_lived"] - short), 3, command)

    def test_told_in_every_command(self):
        run = self.run_traced(self.random_program(), "4", "1", "300", options=MEMORY)
        path = str(run.trace.path)

        def karst(*words):
            return subprocess.run([KARST, *words], check=True, capture_output=True, text=True, timeout=TIMEOUT).stdout

        told, most = self.told_by(run)
        self.assertRegex(karst("tree", path), r"\n +malloc\(size=\d+\) = 0x[0-9a-f]+\n")
        self.assertRegex(karst("tree", path), r"\n +free\(address=0x[0-9a-f]+\)\n")
        folded = karst("flame", "--by", "allocated", "-f", "work<0>", path)
        of_path = {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()}
        self.assertEqual(sum(of_path.values()), told["work<0>"][1])
        self.assertTrue(all(name.startswith("main;") for name in of_path), of_path)
        stacks = json.loads(karst("stacks", "--by", "living", "--json", "-f", "work<0>", path))["paths"]
        self.assertEqual(sum(each["self_bytes"] for each in stacks), told["work<0>"][3])
        self.assertIn("main", karst("memory", "--by", "path", path))
        self.assertIn("malloc(size=", karst("export", "--to", "chrome", "-o", "-", path))

    def test_growth_between_two_moments(self):
        program = build("memory_phases", "memory/phases.c", "-O1", "-fno-builtin", compiler="karst-gcc")
        run = self.run_traced(program, options=MEMORY)
        calls = subprocess.run([KARST, "calls", "--format", "csv", "-f", "^second$", str(run.trace.path)], check=True,
                               capture_output=True, text=True, timeout=TIMEOUT).stdout
        call = next(csv.DictReader(io.StringIO(calls)))
        begin, end = int(call["begin_ns"]), int(call["begin_ns"]) + int(call["duration_ns"]) + 1
        within = rows(run.trace.path, "--range", f"{begin}ns..{end}ns")
        self.assertEqual({name: (row["allocations"], row["living_bytes"]) for name, row in within.items()},
                         {"second": (30, 10 * 300)})
        all_rows = rows(run.trace.path)
        self.assertEqual((all_rows["first"]["living_bytes"], all_rows["second"]["living_bytes"]), (0, 3000))
        # 10 of the second's 30 stay, 10 are freed at once, 10 when all of them are there.
        self.assertEqual(all_rows["second"]["short_lived"], 10)
        self.assertEqual(all_rows["mapper"]["mapped_bytes"], 10 * 4096)
        self.assertEqual(all_rows["mapper"]["living_mapped_bytes"], 7 * 4096)

    def test_the_break_as_strace_has_it(self):
        if shutil.which("strace") is None:
            self.skipTest("there is no strace")
        program = build("memory_breaks", "memory/breaks.c", "-O1", "-fno-builtin", "-fno-optimize-sibling-calls",
                        compiler="karst-gcc")
        alone = subprocess.run([program], check=True, capture_output=True, text=True, timeout=TIMEOUT).stdout
        log = self.directory / "strace"
        run = self.run_traced(program, options=MEMORY,
                              launcher=("strace", "-f", "-qq", "-e", "trace=brk,execve", "-o", str(log)))
        self.assertEqual(run.out, alone)
        pid = run.trace.info["processes"][0]["pid"]
        of_program = re.findall(rf"(?m)^{pid} +(.*)$", log.read_text())
        started = max(i for i, line in enumerate(of_program) if line.startswith("execve("))
        moved, now = [], None
        for line in of_program[started + 1:]:
            told = re.fullmatch(r"(?:brk\(.*|<... brk resumed>)\) += (0x[0-9a-f]+)", line)
            if told is not None:
                if now not in (None, told[1]):
                    moved.append((now, told[1]))
                now = told[1]
        tree = subprocess.run([KARST, "tree", "--no-fold", str(run.trace.path)], check=True, capture_output=True,
                              text=True, timeout=TIMEOUT).stdout
        seen = re.findall(r"brk\(from=(0x[0-9a-f]+), to=(0x[0-9a-f]+)\)", tree)
        self.assertEqual(len(seen), 5 + 1 + 2)
        at = moved.index(seen[0])
        self.assertEqual(seen, moved[at:at + len(seen)])
        self.assertGreater(len(moved), at + len(seen))  # libc's own, for malloc()
        found = rows(run.trace.path)
        self.assertEqual({name: row["mapped_bytes"] for name, row in found.items() if row["mapped_bytes"] != 0},
                         {"grow": 15_000, "set": 100 * 4096 - 14_300})
        self.assertEqual(sum(row["living_mapped_bytes"] for row in found.values()), 9 * 4096)
        self.assertEqual(found["heap"]["bytes"], 500_000)

    def test_what_is_overwritten_is_not_said_to_live(self):
        program = build("memory_phases", "memory/phases.c", "-O1", "-fno-builtin", compiler="karst-gcc")
        run = self.run_traced(program, "200000", options=("--system", "memory", "--memory", "1M"))
        found = whole(run.trace.path)
        self.assertGreater(run.trace.info["processes"][0]["overwritten_events"], 0)
        self.assertEqual(found["all"]["living_bytes"], 0)
        text = subprocess.run([KARST, "memory", str(run.trace.path)], check=True, capture_output=True, text=True,
                              timeout=TIMEOUT).stdout
        self.assertTrue(found["unknown_frees"] > 0 or "freed unseen" in text)

    def test_mistakes(self):
        def said(*words, status):
            done = subprocess.run([KARST, *words], capture_output=True, text=True, timeout=TIMEOUT)
            self.assertEqual(done.returncode, status, done.stderr)
            return done.stderr

        self.assertIn("from 1K to 64G", said("run", "--system", "memory=12", "true", status=2))
        self.assertIn("named twice", said("run", "--system", "memory,memory", "true", status=2))
        self.assertIn("did you mean 'memory'?", said("run", "--system", "memry", "true", status=2))
        run = self.run_traced(self.random_program(), "1", "1", "10")
        self.assertIn("'karst run --system memory' makes them", said("memory", str(run.trace.path), status=1))
        self.assertIn("'karst run --system memory' makes them",
                      said("flame", "--by", "peak", str(run.trace.path), status=1))


if __name__ == "__main__":
    main()
