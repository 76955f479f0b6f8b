"""karst run --system files,net,time and karst files, against programs that know what they did, and against strace."""
import csv
import io
import json
import re
import shutil
import subprocess
from collections import Counter

from support import KARST, TIMEOUT, TracedTest, build, main

ALL = ("--system", "files,net,time")
PLENTY = ("--budget", "off", "--memory", "512M")


def plain(name):
    return name.split("(")[0]


class Files(TracedTest):
    def calls(self, run, *options):
        done = subprocess.run([KARST, "files", "--format", "csv", str(run.trace.path), *options], check=True,
                              capture_output=True, text=True, timeout=TIMEOUT)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def karst(self, *words):
        return subprocess.run([KARST, *map(str, words)], check=True, capture_output=True, text=True,
                              timeout=TIMEOUT).stdout

    def test_slow_input_is_named_first(self):
        run = self.run_traced(build("files_slow", "files/slow.cc", "-std=c++20", "-O1", "-pthread"), options=ALL)
        self.assertEqual(run.out, "5\n")
        self.assert_whole(run.trace)
        path = run.trace.path
        text = self.karst("files", path, "--function", "^wait_for_input")
        first = re.search(r"(?m)^ 1\. (\S+): (\d+) calls, [\d.]+ ms, longest [\d.]+ ms in (\w+), 5 bytes read$", text)
        self.assertIsNotNone(first, text)
        self.assertEqual(first.groups(), (f"{self.directory}/slow.fifo", "8", "read"))
        self.assertRegex(text, r"(?m)^ +6 read, [\d.]+ ms, 5 bytes read: wait_for_input$")
        self.assertIn(f" 1. {self.directory}/slow.fifo: ", self.karst("files", path))
        by_function = json.loads(self.karst("files", "--by", "function", "--json", path))["file_users"]
        self.assertEqual(plain(by_function[0]["function"]), "wait_for_input")
        quick = next(one for one in by_function if plain(one["function"]) == "work_quickly")
        self.assertEqual((quick["calls"], quick["written"], quick["errors"]), (120, 240, 0))
        by_file = json.loads(self.karst("files", "--json", path))["files"]
        for name in range(10):
            one = next(one for one in by_file if one["file"] == f"{self.directory}/quick{name}")
            self.assertEqual((one["calls"], one["written"]), (12, 24))
        self.assertEqual(sum(one["calls"] for one in by_file), len(self.calls(run)))
        # Other commands have them as calls with values.
        self.assertRegex(self.karst("tree", path), r'open\(path="slow.fifo", flags=0x0\) = \d+')
        self.assertRegex(self.karst("tree", path), r"read\(fd=\d+, size=1\) = 1\n")
        self.assertRegex(self.karst("report", path, "--by", "arg:path", "-f", "^fopen$"), r'"quick7"')

    def test_over_takes_such_a_call(self):
        program = build("files_slow", "files/slow.cc", "-std=c++20", "-O1", "-pthread")
        run = self.run_traced(program, options=(*ALL, "--over", "read:10ms"))
        kept = self.karst("info", run.trace.path)
        self.assertRegex(kept, r"read\b.*(over|longer)", kept)

    def test_without_it_there_are_none(self):
        run = self.run_traced(build("files_slow", "files/slow.cc", "-std=c++20", "-O1", "-pthread"))
        self.assertEqual(run.out, "5\n")
        done = subprocess.run([KARST, "files", str(run.trace.path)], capture_output=True, text=True, timeout=TIMEOUT)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("'karst run --system files,net' records them", done.stderr)
        done = subprocess.run([KARST, "run", "--system", "locks,file", "--", "true"], capture_output=True, text=True,
                              timeout=TIMEOUT)
        self.assertEqual(done.returncode, 2)
        self.assertIn("did you mean 'files'?", done.stderr)

    def test_time_alone_does_not_tell_of_files(self):
        run = self.run_traced(build("files_slow", "files/slow.cc", "-std=c++20", "-O1", "-pthread"),
                              options=("--system", "time"))
        self.assertEqual(run.trace.counts.get("usleep"), 5)
        self.assertFalse({"read", "write", "open", "fopen", "close"} & run.trace.counts.keys())

    def test_random_programs_against_their_own_logs(self):
        program = build("files_random", "files/random.cc", "-std=c++20", "-O1", "-pthread", compiler="g++")
        for seed in range(20):
            log = self.directory / f"log{seed}"
            run = self.run_traced(program, str(seed), "150", str(log), options=(*ALL, *PLENTY))
            self.assert_whole(run.trace)
            told = Counter()
            for call in self.calls(run):
                kind = {"r": "read", "w": "write"}.get(call["call"].lstrip("p")[0])
                if call["call"].lstrip("p") in ("read", "write", "readv", "writev"):
                    told[call["file"], kind, int(call["read"]) + int(call["written"])] += 1
            logged = Counter((path, what, int(size)) for path, what, size in map(str.split, log.read_text().splitlines()))
            self.assertGreater(sum(logged.values()), 200)
            self.assertEqual(told, logged, f"seed {seed}")

    def test_server_whose_clients_lose_nothing(self):
        run = self.run_traced(build("files_echo", "files/echo.cc", "-std=c++20", "-O1", "-pthread"),
                              options=(*ALL, *PLENTY))
        sent, back, port = run.out.split()
        self.assertEqual(sent, back)
        self.assert_whole(run.trace)
        calls = self.calls(run)
        server = f"127.0.0.1:{port}"
        by_clients = [call for call in calls if call["file"] == server]
        self.assertEqual(sum(int(call["written"]) for call in by_clients), int(sent))
        self.assertEqual(sum(int(call["read"]) for call in by_clients), int(sent))
        by_server = [call for call in calls if plain(call["function"]) == "serve_one" and call["call"] != "close"]
        self.assertEqual(sum(int(call["read"]) for call in by_server), int(sent))
        peers = {call["file"] for call in by_server}
        self.assertEqual(len(peers), 6)
        for peer in peers:
            self.assertRegex(peer, r"^127\.0\.0\.1:\d+$")
        self.assertEqual([call["call"] for call in calls if call["file"] == "socket at 127.0.0.1:0"],
                         ["bind", "listen"] + ["accept"] * 6)
        self.assertRegex(self.karst("tree", run.trace.path), r'poll\(descriptors=1, timeout_ms=-1\) = 1, ready="\d+"')

    def test_where_no_function_can_be_traced(self):
        for options in ((), ("--no-patch",)):
            run = self.run_traced(build("files_tiny", "files/tiny.c", "-O1", compiler="gcc"), options=(*ALL, *options))
            self.assert_whole(run.trace)
            self.assertEqual([(call["call"], call["file"]) for call in self.calls(run)],
                             [("open", "/dev/null"), ("close", "/dev/null")])
        run = self.run_traced(build("files_tiny", "files/tiny.c", "-O1", compiler="gcc"),
                              options=(*ALL, "--min-instructions", "5"))
        self.assertEqual([call["call"] for call in self.calls(run)], ["open", "close"])
        self.assertNotIn("[notes]", run.err)
        (self.directory / "text").write_text("a line\n")
        run = self.run_traced(self.need("sh"), "-c", "/bin/cat text; exit 3", options=("--no-patch", *ALL), status=3)
        self.assertEqual(run.out, "a line\n")
        self.assertIn(f"{self.directory}/text", {call["file"] for call in self.calls(run)})
        run = self.run_traced(self.need("sh"), "-c", "echo all",
                              options=("--no-patch", "--system", "locks,memory,files,net,time"))
        self.assertEqual(run.out, "all\n")
        done = subprocess.run([KARST, "run", "--no-patch", "--", "/bin/true"], capture_output=True, text=True,
                              timeout=TIMEOUT, cwd=self.directory)
        self.assertEqual(done.returncode, 1)
        self.assertIn("was not built for tracing", done.stderr)

    def test_an_allocator_that_looks_at_files_when_it_begins(self):
        for compiler in ("g++", "karst-g++"):
            program = build("files_own_malloc_" + compiler, "files/own_malloc.cc", "-O1", compiler=compiler)
            for options in (ALL, ("--system", "locks,memory,files,net,time")):
                with self.subTest(compiler=compiler, options=options):
                    run = self.run_traced(program, options=("--min-instructions", "0", *options))
                    self.assertEqual(run.out, "100, begun 1\n")

    def test_descriptors_without_a_path_have_names(self):
        run = self.run_traced(build("files_kinds", "files/kinds.cc", "-std=c++20", "-O1", compiler="g++"), options=ALL)
        self.assert_whole(run.trace)
        pid = run.trace.info["processes"][0]["pid"]
        calls = self.calls(run)
        looked = {call["fd"]: call["file"] for call in calls if call["call"] == "read"}
        links = {"eventfd": "anon_inode:[eventfd]", "timerfd": "anon_inode:[timerfd]", "epoll": "anon_inode:[eventpoll]",
                 "signalfd": "anon_inode:[signalfd]", "inotify": "anon_inode:inotify", "pidfd": "anon_inode:[pidfd]"}
        named = {"memfd": "memfd:some memory", "shared": "/dev/shm/karst-kinds", "popen": "popen:echo told"}
        numbers, first = Counter(), {}
        for kind, fd, link in (line.split(" ", 2) for line in run.out.splitlines()):
            self.assertEqual(link, links.get(kind, link))  # the kernel's word for it
            numbers[kind] += 1
            name = named.get(kind, f"{kind} {numbers[kind]} of process {pid}")
            if kind == "eventfd" and numbers[kind] == 3:
                name = f"eventfd 2 of process {pid}"  # a duplicate
            first.setdefault(kind, fd)
            if kind == "popen":
                got = {call["call"] for call in calls if call["file"] == name}
                self.assertEqual(got, {"popen", "fgets", "pclose"})
            elif fd != first["eventfd"]:
                self.assertEqual(looked[fd], name)
        self.assertEqual(looked[first["eventfd"]], "/dev/null")
        events = [call["call"] for call in calls if call["file"] == f"eventfd 1 of process {pid}"]
        self.assertEqual(events, ["eventfd", "read", "eventfd_write", "eventfd_read", "close"])
        waits = [call["call"] for call in calls if call["file"] == f"epoll 1 of process {pid}"]
        self.assertEqual(waits, ["epoll_create", "read", "epoll_ctl", "epoll_wait", "epoll_ctl"])
        end = next(fd for kind, fd, _ in (line.split(" ", 2) for line in run.out.splitlines()) if kind == "pipe")
        text = self.karst("tree", run.trace.path)
        self.assertRegex(text, rf"epoll_ctl\(fd={first['epoll']}, op=ADD, of={end}, events=0x1, data=0x{int(end):x}\) = 0")
        self.assertRegex(text, rf"epoll_wait\(fd={first['epoll']}, events=1, timeout_ms=-1\) = 1, data=\"0x{int(end):x}\"")

    def test_bytes_of_what_formats(self):
        path = self.directory / "formatted"
        for name, flags in {"files_formats": ("-O1",), "files_formats_fortified": ("-O2", "-D_FORTIFY_SOURCE=2")}.items():
            program = build(name, "files/formats.c", "-w", "-fno-builtin", *flags, compiler="karst-gcc")
            alone = subprocess.run([program, str(path)], check=True, capture_output=True, text=True, timeout=TIMEOUT)
            content = path.read_bytes()
            run = self.run_traced(program, str(path), options=ALL)
            self.assertEqual((run.out, path.read_bytes()), (alone.stdout, content))
            self.assert_whole(run.trace)
            calls = [call for call in self.calls(run) if call["file"] == str(path)]
            self.assertEqual(sum(int(call["written"]) for call in calls), len(content))
            self.assertEqual(Counter(call["call"] for call in calls),
                             {"fopen": 2, "fprintf": 100, "fputs": 1, "fwrite": 1, "fclose": 3, "freopen": 1, "printf": 1,
                              "puts": 1, "fflush": 1, "dprintf": 1, "fscanf": 2})
            self.assertEqual([call["result"] for call in calls if call["call"] == "fscanf"], ["2", "1"])

    # What strace sees of the same run.
    def seen_by_strace(self, log):
        bytes_of, open_calls = Counter(), {}
        for line in log.read_text(errors="replace").splitlines():
            pid, _, rest = line.partition(" ")
            rest = rest.strip()
            if "<unfinished ...>" in rest:
                open_calls[pid] = rest
                continue
            if rest.startswith("<..."):
                rest = open_calls.pop(pid) + rest
            found = re.match(r"(p?)(read|write)\w*\(\d+<(/[^>]*)>.* = (\d+)$", rest)
            if found:
                bytes_of[found[3], found[2]] += int(found[4])
                bytes_of[found[3], found[2], "calls"] += 1
        return bytes_of

    def assert_same_as_strace(self, *command, of):
        if shutil.which("strace") is None:
            self.skipTest("there is no strace")
        log = self.directory / "strace"
        strace = ("strace", "-f", "-qq", "-y", "-e", "trace=read,write,pread64,pwrite64,readv,writev", "-o", str(log))
        run = self.run_traced(*command, options=(*ALL, *PLENTY), text=False, launcher=strace)
        expected = self.seen_by_strace(log)
        told = Counter()
        for call in self.calls(run):
            kind = re.fullmatch(r"p?(read|write)v?", call["call"])
            if kind and call["result"] != "-1":
                told[call["file"], kind[1]] += int(call["read"]) + int(call["written"])
                told[call["file"], kind[1], "calls"] += 1
        own = {key: count for key, count in expected.items() if of(key[0])}
        self.assertGreater(len(own), 1)
        self.assertEqual({key: count for key, count in told.items() if of(key[0])}, own)

    def in_directory(self, path):
        return path.startswith(str(self.directory) + "/data")

    def need(self, name):
        found = shutil.which(name, path="/usr/bin:/bin")
        if found is None:
            self.skipTest(f"there is no {name}")
        return found

    def data(self):
        (self.directory / "data").mkdir()
        for i in range(8):
            (self.directory / "data" / f"file{i}").write_bytes(bytes(range(256)) * (50 * i + 3))

    def test_bytes_of_tar_as_strace_has_them(self):
        self.data()
        self.assert_same_as_strace(self.need("tar"), "cf", "data.tar", "data", of=self.in_directory)

    def test_bytes_of_gzip_as_strace_has_them(self):
        self.data()
        self.assert_same_as_strace(self.need("gzip"), "-kf", *(f"data/file{i}" for i in range(8)), of=self.in_directory)

    def test_bytes_of_python_as_strace_has_them(self):
        self.data()
        program = ("import os, threading\n"
                   "def copy(i):\n"
                   "    text = open(f'data/file{i}', 'rb').read()\n"
                   "    with open(f'data/copy{i}', 'wb', buffering=1000) as to:\n"
                   "        for at in range(0, len(text), 700): to.write(text[at:at + 700])\n"
                   "threads = [threading.Thread(target=copy, args=(i,)) for i in range(8)]\n"
                   "[t.start() for t in threads]; [t.join() for t in threads]\n"
                   "if os.fork() == 0: open('data/child', 'w').write('x' * 9999); os._exit(0)\n"
                   "os.wait()\n")
        self.assert_same_as_strace(self.need("python3"), "-c", program, of=self.in_directory)

    def test_bytes_of_sqlite_as_strace_has_them(self):
        database = self.directory / "data.db"
        # Not as its argument: the shell would look into it by stdio first.
        command = (self.need("sqlite3"), ":memory:", f"attach '{database}' as d; drop table if exists d.t;"
                   "create table d.t(a); insert into d.t with recursive n(i) as"
                   " (select 1 union all select i + 1 from n where i < 20000) select i from n; select sum(a) from d.t;")
        subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT)
        self.assert_same_as_strace(*command, of=self.in_directory)

    def wrapping(self, rounds, *options):
        run = self.run_traced(build("files_wrapping", "files/wrapping.cc", "-std=c++20", "-O1"), rounds,
                              options=("--system", "files,net", "--budget", "off", *options))
        self.assertGreater(run.trace.info["overwritten_events"], 0, "it does not wrap")
        return run, self.calls(run)

    def test_names_outlive_the_history_of_what_opened_them(self):
        run, calls = self.wrapping(60000, "--memory", "1M")
        port, client, server, log = map(int, run.out.split())
        named = Counter()
        for call in calls:
            function = plain(call["call"])
            if function == "write" and call["fd"] == str(client):
                named[call["file"] == f"127.0.0.1:{port}"] += 1
            if function == "pwrite" and call["fd"] == str(log):
                named[call["file"] == f"{self.directory}/opened-at-its-start"] += 1
            if function == "read" and call["fd"] == str(server):
                named[call["file"].startswith("127.0.0.1:")] += 1
            self.assertIn(call["fd"], ("", str(client), str(server), str(log), str(log + 1)))
        self.assertGreater(named[True], 20 * named[False], named)

    def test_a_number_that_is_reused_is_never_named_wrongly(self):
        run, calls = self.wrapping(60000, "--memory", "1M")
        reused = int(run.out.split()[3]) + 1
        named = 0
        for call in calls:
            if plain(call["call"]) != "pwrite" or call["fd"] != str(reused) or "not known" in call["file"]:
                continue
            self.assertEqual(call["file"], f"{self.directory}/reused-{int(call['result']) - 1}")
            named += 1
        self.assertGreater(named, 100)


if __name__ == "__main__":
    main()
