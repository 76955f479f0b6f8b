"""Files that are replaced, written to or removed while a program runs: calls never get the names of another file."""
import os
import shutil
import signal
import subprocess
import time

from support import KARST, TIMEOUT, TracedTest, main

OLD = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) int alpha(int i) { volatile int s = i; for (int k = 0; k < 50; k++) s += k; return s; }
__attribute__((noinline)) int beta(int i) { volatile int s = i; for (int k = 0; k < 80; k++) s += k * 2; return s; }
"""
NEW = OLD.replace("__attribute__", "__attribute__((noinline)) int gamma_(int i) { volatile int s = i; for (int k = 0; k "
                  "< 9; k++) s += k; return s; }\n__attribute__", 1)
MAIN = """
int main(int c, char** v) {
  long s = 0;
  puts("ready"), fflush(stdout);
  for (int i = 0; i < atoi(v[1]); i++) { s += alpha(i) + beta(i); usleep(2000); }
  return s == 1;
}
"""
PLUGIN_MAIN = """
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int c, char** v) {
  for (int round = 0; round < 2; round++) {
    void* library = dlopen(v[1], RTLD_NOW);
    int (*alpha)(int) = dlsym(library, "alpha");
    int (*beta)(int) = dlsym(library, "beta");
    for (int i = 0; i < 100; i++) alpha(i), beta(i);
    dlclose(library);
    puts("ready"), fflush(stdout);
    getchar();
  }
  return 0;
}
"""
NONE = "-Wl,--build-id=none"


class Replaced(TracedTest):
    def setUp(self):
        super().setUp()
        self.env = dict(os.environ, XDG_CACHE_HOME=str(self.directory / "cache"), DEBUGINFOD_URLS="")
        self.svc, self.trace = self.directory / "svc", self.directory / "t.karst"

    def build(self, name, text, *options):
        source = self.directory / f"{name}.c"
        source.write_text(text)
        subprocess.run(["gcc", "-O2", "-g", *options, str(source), "-o", str(self.directory / name)], check=True)
        return self.directory / name

    def karst(self, *words):
        done = subprocess.run([KARST, *map(str, words)], capture_output=True, text=True, timeout=TIMEOUT, env=self.env)
        return done.stdout + done.stderr

    def names(self):
        return self.karst("report", self.trace, "--format", "csv")

    def run_and(self, change, *options, rounds=200):
        run = subprocess.Popen([KARST, "run", "--budget", "off", "--min-instructions", "0", *options, "-o",
                                str(self.trace), str(self.svc), str(rounds)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=self.env)
        self.addCleanup(run.kill)
        self.assertEqual(run.stdout.readline(), "ready\n")
        change()
        return run.communicate(timeout=TIMEOUT)[1]

    def assert_nameless(self, said):
        names = self.names()
        self.assertNotIn("gamma_", names)
        self.assertNotIn('"alpha', names)
        self.assertIn('"svc+0x', names)
        self.assertIn("the file has changed since the trace was made", said)

    def test_a_program_without_build_id(self):
        self.build("svc", OLD + MAIN, NONE)
        self.assertIn('"alpha', self.run_and(lambda: None) + self.names())
        new = self.build("new", NEW + MAIN, NONE)
        self.assert_nameless(self.run_and(lambda: os.rename(new, self.svc)))

    def test_a_program_that_a_link_replaces_or_that_is_written_to(self):
        self.build("svc", OLD + MAIN, NONE)
        new = self.build("new", NEW + MAIN, NONE)

        def link():
            self.svc.unlink()
            self.svc.symlink_to(new)
        self.assert_nameless(self.run_and(link))
        self.svc.unlink()
        self.build("svc", OLD + MAIN, NONE)
        # Of the same size and at the same inode: the time alone tells.
        self.assert_nameless(self.run_and(lambda: os.utime(self.svc)))

    def test_a_plugin_that_is_rebuilt_between_two_loads(self):
        self.build("svc", PLUGIN_MAIN)
        plugin = self.build("plugin.so", OLD, NONE, "-shared", "-fPIC")
        new = self.build("new.so", NEW, NONE, "-shared", "-fPIC")
        run = subprocess.Popen([KARST, "run", "--budget", "off", "--min-instructions", "0", "--library", "plugin.so",
                                "-o", str(self.trace), str(self.svc), str(plugin)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env)
        self.assertEqual(run.stdout.readline(), "ready\n")
        os.rename(new, plugin)
        said = run.communicate("\n\n", timeout=TIMEOUT)[1]
        names = self.names()
        # The second load's calls have its names, the first one's have none.
        self.assertNotIn("gamma_", names)
        self.assertRegex(names, r'(?m)^([^,]*,){4}100,.*"alpha')
        self.assertIn('"plugin.so+0x', names)
        self.assertIn("the file has changed since the trace was made", said)

    def test_attach_to_a_program_that_was_replaced_names_by_what_runs(self):
        for options in ((), (NONE,)):
            self.build("svc", OLD + MAIN, *options)
            new = self.build("new", NEW + MAIN, *options)
            with subprocess.Popen([str(self.svc), "100000"], stdout=subprocess.PIPE, text=True) as process:
                try:
                    self.assertEqual(process.stdout.readline(), "ready\n")
                    os.rename(new, self.svc)
                    self.karst("attach", process.pid, "--budget", "off", "--min-instructions", "0")
                    time.sleep(0.3)
                    self.trace.unlink(missing_ok=True)
                    said = self.karst("snapshot", process.pid, "-o", self.trace)
                    names = self.names()
                    self.assertIn('"alpha', names, said)
                    self.assertNotIn("gamma_", names)
                    self.assertNotIn("deleted", names)
                finally:
                    process.send_signal(signal.SIGKILL)

    def test_a_raw_trace_that_is_resolved_later(self):
        self.build("svc", OLD + MAIN, NONE)
        new = self.build("new", NEW + MAIN, NONE)
        before = set(self.directory.iterdir())

        def write_history():
            pid = int(subprocess.run(["pgrep", "-x", "-n", "svc"], check=True, capture_output=True, text=True).stdout)
            time.sleep(0.2)
            os.kill(pid, signal.SIGUSR2)
        self.run_and(write_history, "--signal", "USR2", "--snapshots", str(self.directory))
        raw = [path for path in set(self.directory.iterdir()) - before if path.name.startswith("svc-")]
        self.assertEqual(len(raw), 1, raw)
        os.rename(new, self.svc)
        self.trace = raw[0]
        self.assert_nameless(self.karst("resolve", self.trace))

    def test_source_text_that_was_changed_since_is_left_out(self):
        self.build("svc", OLD + MAIN)
        said = self.run_and(lambda: None)
        self.assertNotIn("is left out", said)
        later = time.time() + 2
        os.utime(self.directory / "svc.c", (later, later))
        said = self.run_and(lambda: None)
        self.assertIn("svc.c is left out: it was written to after the program was built", said)
        self.assertIn('"alpha', self.names())


if __name__ == "__main__":
    main()
