"""--library GLOB[:FUNCTIONS]: the calls of a library that was not built for Karst, beside a program that was, or in any.

Oracles: the program's own structure (library/calls.tree), what it prints, and how often gdb's breakpoints are hit.
"""
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from plain import without  # noqa: E402
from support import HERE, KARST, TIMEOUT, WORK, TracedTest, Trace, build, main  # noqa: E402

BUDGET = ("--budget", "0.1%")
LOOP = ("import ctypes, sys; w = ctypes.CDLL(%r); print('ready', flush=True); sys.stdin.readline(); "
        "print(w.work_loop(%d), flush=True); sys.stdin.readline()")


def places(path, *options):
    done = subprocess.run([KARST, "places", "--json", "--all", *options, path], capture_output=True, text=True, check=True,
                          timeout=TIMEOUT)
    return json.loads(done.stdout)["functions"]


def library(level="-O2"):
    """libwork.so: the name with its version is the file's, as Debian's are."""
    path = build(f"libwork{level}.so.1.2.3", "library/work.cc", level, "-shared", "-fPIC", "-Wl,-soname,libwork.so.1",
                 compiler="g++")
    where = WORK / "programs" / f"work{level}"
    where.mkdir(exist_ok=True)
    for name, to in (("libwork.so.1.2.3", path), ("libwork.so.1", "libwork.so.1.2.3"), ("libwork.so", "libwork.so.1")):
        temporary = where / f"{name}.{os.getpid()}"
        if name.endswith("3"):
            shutil.copy2(to, temporary)
        else:
            temporary.symlink_to(to)
        os.replace(temporary, where / name)
    return where / "libwork.so.1.2.3"


def program(*flags, compiler="karst-g++", level="-O2"):
    where = library(level).parent
    return build("-".join(["library", compiler, level, *(re.sub(r"\W", "", f) for f in flags)]), "library/calls.cc", "-O1",
                 "-fno-inline", f"-I{HERE}/library", f"-L{where}", "-Wl,--as-needed", f"-Wl,-rpath,{where}", "-lwork", "-pthread", *flags,
                 compiler=compiler)


def without_prefix(tree):
    """Of each thread what all() did."""
    threads, depth = [], None
    for line in tree:
        at = len(line) - len(line.lstrip())
        if line.strip() == "(anonymous namespace)::all()":
            threads.append([])
            depth = at
        elif depth is not None and at <= depth:
            depth = None
        if depth is not None:
            threads[-1].append(line[depth:])
    return threads


class Calls(TracedTest):
    """A program with sleds, and its library without."""

    def check(self, *flags, level="-O2"):
        binary = program(*flags, level=level)
        plain = subprocess.run([binary], capture_output=True, text=True, timeout=TIMEOUT)
        run = self.run_traced(binary, options=("--library", "libwork*:work_*", "--library", "libwork*:inner::*",
                                               "--not-function", "::say"))
        self.assertEqual(run.out, plain.stdout)
        # Of these alone: what others want is no room for them.
        alone = {f["function"] for f in places(str(library(level)), "--named", "work_*", "--named", "inner::*") if not f["patched"]}
        self.assertLessEqual(len(alone & {"work_tiny", "work_loop", "work_each", "work_sort", "work_fails"}), 1)
        expected = without((HERE / "library" / "calls.tree").read_text().splitlines(), alone)
        threads = without_prefix(run.trace.tree("--marks"))
        self.assertEqual(threads, [expected, expected], alone)
        self.assert_whole(run.trace)
        self.assertNotIn("budget", json.dumps(run.trace.info["processes"]))
        return run

    def test_late_binding(self):
        run = self.check("-Wl,-z,lazy")
        self.assertRegex(run.err, r"libwork\.so\.1\.2\.3: [5-9] of [7-9] functions named 'work_\*', 'inner::\*' patched")

    def test_binding_at_once_in_read_only_tables(self):
        self.check("-Wl,-z,now,-z,relro")

    def test_without_a_linkage_table(self):
        self.check("-fno-plt")

    def test_optimised_less(self):
        self.check("-Wl,-z,lazy", level="-O1")

    def test_functions_of_another_name_are_not_traced(self):
        run = self.run_traced(program(), options=("--library", "libwork.so.1:work_l*"))
        self.assertEqual({n: c for n, c in run.trace.counts.items() if n.startswith("work_")}, {"work_loop": 2})

    def test_named_functions_stay_whatever_the_budget_and_their_size(self):
        loops = 300_000
        words = LOOP % (str(library()), loops)
        plain = subprocess.run([sys.executable, "-c", words], input="\n", capture_output=True, text=True, timeout=TIMEOUT)
        run = self.run_traced("/usr/bin/python3", "-c", words, input="\n", env={"LD_PRELOAD": str(library())},
                              options=(*BUDGET, "--min-instructions", "100", "--library", "libwork*:work_*"))
        self.assertEqual(run.out, plain.stdout)
        self.assertEqual(run.trace.counts["work_tiny"], loops)

    def test_no_budget_unless_it_is_asked_for(self):
        run = self.run_traced(program(compiler="g++"), options=("--no-patch", "--library", "libwork*:work_*"))
        self.assertEqual(run.trace.counts["work_tiny"], 12)
        self.assertNotIn("main", run.trace.counts)
        self.assertNotIn("budget=", json.dumps(run.trace.info))

    def test_attach(self):
        child = subprocess.Popen(["/usr/bin/python3", "-c", LOOP % (str(library()), 1000)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), "ready\n")
        done = subprocess.run([KARST, "attach", str(child.pid), "--no-patch", "--library", "libwork*:work_*"],
                              capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"functions named 'work_\*' patched as it runs")
        child.stdin.write("\n")
        child.stdin.flush()
        self.assertEqual(child.stdout.readline(), f"{sum(range(1, 1001))}\n")
        trace = self.directory / "snapshot.karst"
        self.assertIsNone(child.poll(), "python has ended too early")
        subprocess.run([KARST, "snapshot", str(child.pid), "-o", trace], check=True, capture_output=True, timeout=TIMEOUT)
        self.assertEqual(Trace(trace).counts_of_code, {"work_loop": 1, "work_tiny": 1000})


class Debian(TracedTest):
    """Debian's programs: output as untraced, calls as many as gdb counts."""

    def gdb_counts(self, module, wanted, command, env):
        """Hits of breakpoints at the functions' first bytes; the library lies somewhere else in each run."""
        gdb = shutil.which("gdb")
        if gdb is None:
            self.skipTest("no gdb")
        script = self.directory / "count.py"
        script.write_text(f"""
import gdb, re
gdb.execute("set pagination off"); gdb.execute("set confirm off"); gdb.execute("set breakpoint pending on")
gdb.execute("set debuginfod enabled off")
gdb.execute("handle all nostop noprint pass")
gdb.execute("tbreak main" if gdb.lookup_global_symbol("main") else "catch load {Path(module).name.split('.so')[0]}")
gdb.execute("starti")
gdb.execute("catch load {Path(module).name.split('.so')[0]}")
gdb.execute("continue")
base = None
for line in gdb.execute("info proc mappings", to_string=True).splitlines():
    words = line.split()
    if line.rstrip().endswith({module!r}) and base is None:
        base = int(words[0], 16) - int(words[3], 16)
gdb.execute("delete")
all = []
for address in {list(wanted)!r}:
    one = gdb.Breakpoint("*" + hex(base + address))
    one.silent = True
    one.ignore_count = 1 << 30
    all.append((address, one))
gdb.execute("continue")
with open({str(self.directory / 'counts')!r}, "w") as out:
    for address, one in all:
        print(address, one.hit_count, file=out)
""")
        subprocess.run([gdb, "--batch", "-nx", "-x", script, "--args", *command], capture_output=True, text=True,
                       stdin=subprocess.DEVNULL, timeout=TIMEOUT, env=env)
        counts = (self.directory / "counts").read_text().split()
        return dict(zip(map(int, counts[::2]), map(int, counts[1::2])))

    def same(self, file, functions, command, least, env=None):
        if shutil.which(command[0]) is None:
            self.skipTest(f"no {command[0]}")
        found = [p for p in Path("/usr/lib/x86_64-linux-gnu").glob(file) if not p.is_symlink()]
        if not found:
            self.skipTest(f"no {file}")
        module = str(found[0])
        environment = {**os.environ, **(env or {})}
        plain = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=environment)
        self.assertEqual(plain.returncode, 0, plain.stderr)
        run = self.run_traced(*command, env=env, options=("--no-patch", "--library", f"{file}:{functions}"))
        self.assertEqual(run.out, plain.stdout)
        self.assert_whole(run.trace)
        wanted = {f["address"]: f["function"] for f in places(module, "--named", functions) if f["patched"]}
        theirs = {}
        for address, hits in self.gdb_counts(module, wanted, command, environment).items():
            if hits != 0:
                theirs[wanted[address]] = theirs.get(wanted[address], 0) + hits
        self.assertEqual(run.trace.counts_of_code, theirs)
        self.assertGreaterEqual(len(theirs), least)

    def test_openssl_digests(self):
        data = self.directory / "data"
        data.write_bytes(bytes(range(256)) * 1000)
        self.same("libcrypto.so.*", "EVP_*", ("openssl", "dgst", "-sha256", str(data)), 10)

    def test_zlib_of_python(self):
        words = "import zlib; d = zlib.compress(bytes(range(256)) * 999); print(len(d), zlib.crc32(zlib.decompress(d)))"
        self.same("libz.so.*", "*[cf]*", ("/usr/bin/python3", "-c", words), 3, {"PYTHONHASHSEED": "0"})

    def test_sqlite_of_python(self):
        words = ("import sqlite3; c = sqlite3.connect(':memory:'); c.execute('create table t(x)'); "
                 "c.executemany('insert into t values(?)', [(i,) for i in range(50)]); "
                 "print(c.execute('select sum(x) from t').fetchall())")
        found = [p for p in Path("/usr/lib/x86_64-linux-gnu").glob("libsqlite3.so.*") if not p.is_symlink()]
        if not found:
            self.skipTest("no libsqlite3")
        # Python opens it later, by dlopen: preloaded it is there as the program starts.
        self.same("libsqlite3.so.*", "sqlite3_*", ("/usr/bin/python3", "-c", words), 10,
                  {"LD_PRELOAD": str(found[0]), "PYTHONHASHSEED": "0"})


class Words(TracedTest):
    """What is said where nothing is meant."""

    def said(self, *libraries, status=0):
        options = [word for each in libraries for word in ("--library", each)]
        done = subprocess.run([KARST, "run", *self.SCHED, "-o", self.directory / "x.karst", *options, "--", program()],
                              capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def test_programs_that_are_a_few_lines_around_it(self):
        """Which library has the rest is said, unless it was asked for."""
        where = library().parent
        link = (f"-L{where}", f"-Wl,-rpath,{where}", "-lwork")
        few = build("library-around", "library/around.c", *link, compiler="gcc")
        many = build("library-around-many", "library/around.c", "-DMANY", *link, compiler="gcc")
        for plain, options, says in ((few, (), True), (few, ("--library", "libwork*"), False),
                                     (many, (), True), (many, ("--library", "libwork*"), False),
                                     (many, ("--function", "main"), False)):
            run = self.run_traced(plain, options=options, status=None)
            self.assertEqual("its libraries may have more: --library libwork.so.1\n" in run.err, says, run.err)

    def test_no_such_library(self):
        said = self.said("libwrk*")
        self.assertIn("means no library that was loaded; did you mean 'libwork'?", said)
        self.assertIn("libwork.so.1.2.3", said)

    def test_no_such_function(self):
        self.assertIn("libwork.so.1.2.3 has no function named 'Work_t*'; it has work_tiny", self.said("libwork*:Work_t*"))

    def test_one_of_several_libraries_has_the_function(self):
        self.assertNotIn("has no function", self.said("lib*:work_tiny"))

    def test_what_is_never_patched(self):
        for name in ("libc.so.6", "libc", "ld-linux-x86-64.so.2", "libkarst.so.0"):
            self.assertIn("--system files,net", self.said(name, status=2))
        self.assertIn("--system files,net", self.said("libc.s?.6:open"))

    def test_what_cannot_be_meant(self):
        for text in ("", ":", "libwork*:", ":work_*", "libwork*:a/b", "libwork*:["):
            self.assertIn("--library", self.said(text, status=2))
        self.assertIn("without its directories: 'libwork.so'", self.said("./libwork.so", status=2))
        self.assertIn("more than 4096 bytes", self.said("libwork*:" + "a" * 100_000, status=2))
        self.assertIn("has no function", self.said("libwork*:" + "[a-z]" * 200 + "*" * 200))

    def test_a_library_that_has_sleds(self):
        where = library().parent.parent / "sleds"
        where.mkdir(exist_ok=True)
        built = build("libsleds.so", "library/work.cc", "-shared", "-fPIC", "-Wl,-soname,libwork.so.1")
        shutil.copy2(built, where / "libwork.so.1")
        done = subprocess.run([KARST, "run", *self.SCHED, "-o", self.directory / "x.karst", "--library", "libwork*:work_*",
                               program()], capture_output=True, text=True, timeout=TIMEOUT,
                              env={**os.environ, "LD_PRELOAD": str(where / "libwork.so.1")})
        self.assertIn("means a library that was built for tracing; --function chooses", done.stderr)

    def test_the_program_itself_is_no_library(self):
        alone = build("library.alone", "plain/late.c", "-O1", "-pthread", compiler="gcc")
        # Names of notes are no library, either.
        done = subprocess.run([KARST, "run", *self.SCHED, "-o", self.directory / "x.karst", "--library", "*", "--system",
                               "files", alone], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertIn("--library '*': libc, the loader and libkarst are never patched", done.stderr)

    def test_places_that_are_named(self):
        named = {f["function"]: f["patched"] for f in places(str(library()), "--named", "work_*")}
        self.assertTrue(named["work_tiny"])
        self.assertLessEqual(set(named), {f"work_{n}" for n in ("tiny", "loop", "each", "sort", "fails", "nested")})
        done = subprocess.run([KARST, "places", "--named", "wurk", str(library())], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("has no function that is named so", done.stderr)


if __name__ == "__main__":
    main()
