"""karst run --system files,net,time is a guest: no program computes anything else with it. Each program runs twice."""
import csv
import io
import os
import shutil
import subprocess
from collections import Counter

from support import BIN, KARST, TIMEOUT, TracedTest, build, main

ALL = ("--system", "files,net,time")


def build_plain(name, source, *flags, compiler="gcc", **more):
    return build(name, f"files/{source}", *flags, compiler=compiler, **more)


class FilesGuest(TracedTest):
    def fresh(self):
        shutil.rmtree(self.directory / "work", ignore_errors=True)
        (self.directory / "work").mkdir()
        return self.directory / "work"

    def assert_same(self, *command, options=ALL, **more):
        """Output and status are what they are untraced. Returns the run and the lines."""
        self.fresh()
        alone = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=TIMEOUT,
                               cwd=self.directory, stdin=subprocess.DEVNULL)
        self.assertEqual(alone.returncode, 0, alone.stderr)
        self.fresh()
        run = self.run_traced(*command, options=options, **more)
        self.assertEqual(run.out, alone.stdout)
        return run, alone.stdout.splitlines()

    def calls(self, run):
        done = subprocess.run([KARST, "files", "--format", "csv", str(run.trace.path)], capture_output=True, text=True,
                              timeout=TIMEOUT)
        return list(csv.DictReader(io.StringIO(done.stdout)))

    def test_results_and_errno_of_all_functions(self):
        variants = {"results": ("-O1",), "results_now": ("-O2", "-Wl,-z,now", "-fno-plt"),
                    "results_fortified": ("-O2", "-D_FORTIFY_SOURCE=2")}
        for name, flags in variants.items():
            with self.subTest(name=name):
                run, lines = self.assert_same(build_plain("files_" + name, "results.c", "-w", *flags), "work")
                self.assertGreater(len(lines), 300)
                self.assert_sound(run.trace)
                # What the program was told is what the trace has.
                calls = self.calls(run)
                told = [call for call in calls if call["call"] == "open"]
                self.assertEqual([call["error"] for call in told][:7],
                                 ["", "ENOENT", "ENOENT", "EFAULT", "EFAULT", "ENOTDIR", ""])
                # Not what its child by vfork() did with its own descriptors.
                self.assertNotIn(("2", "1"), [(call["fd"], call["result"]) for call in calls if call["call"] == "dup2"])

    def test_results_where_only_one_was_asked_for(self):
        program = build_plain("files_results", "results.c", "-w", "-O1")
        for system in ("files", "net", "time", "locks,time"):
            with self.subTest(system=system):
                self.assert_same(program, "work", options=("--system", system))

    def test_ways_out_of_calls(self):
        for compiler in ("g++", "karst-g++"):
            with self.subTest(compiler=compiler):
                program = build_plain("files_ways_out_" + compiler, "ways_out.cc", "-std=c++20", "-O1", "-pthread",
                                      compiler=compiler)
                run, lines = self.assert_same(program)
                self.assertEqual(lines[-1], "1")
                self.assert_sound(run.trace)
                calls = self.calls(run)
                self.assertGreater(len(calls), 40)
                self.assertEqual({call["open"] for call in calls}, {"0"}, "a call is open though its thread left it")

    def test_filters_that_forbid_to_look(self):
        program = build_plain("files_forbidden", "forbidden.cc", "-O1", compiler="g++")
        run, lines = self.assert_same(program, "itself")
        self.assertEqual(lines, ["100", "1"])
        self.assertIn("100", [call["read"] for call in self.calls(run)])
        # karst cannot know what a filter of before forbids: nothing is looked at.
        run, lines = self.assert_same(program, program, "read")
        self.assertEqual(lines, ["100", "1"])
        read = [call for call in self.calls(run) if call["read"] == "100"]
        self.assertEqual(len(read), 1)
        self.assertRegex(read[0]["file"], r"^descriptor \d+ of process \d+, not known$")

    def test_inherited_descriptors_have_names(self):
        given = self.directory / "given"
        given.write_text("some text")
        with open(given) as opened:
            run = self.run_traced("/bin/cat", options=ALL, stdin=opened)
        self.assertEqual(run.out, "some text")
        self.assertEqual({call["file"] for call in self.calls(run) if call["fd"] == "0" and int(call["read"])} or
                         {call["file"] for call in self.calls(run) if call["fd"] == "0"}, {str(given)})

    def test_libraries_are_searched_along_their_callers_paths(self):
        for name, which in (("a", 1), ("b", 2), ("c", 3)):
            (self.directory / name).mkdir()
            made = build(f"files_which_{name}.so", "files/libraries.c", "-shared", "-fPIC", f"-DWHICH={which}", compiler="gcc")
            shutil.copy(made, self.directory / name / "libwhich.so")
        path = subprocess.run(["readelf", "-d", BIN.parent / "lib/libkarst-files.so"], check=True, capture_output=True,
                              text=True).stdout
        self.assertNotRegex(path, "RPATH|RUNPATH", "a search would go along that")
        own_path = {"none": (), "runpath": ("-Wl,--enable-new-dtags,-rpath,$ORIGIN/a",),
                    "rpath": ("-Wl,--disable-new-dtags,-rpath,$ORIGIN/a",), "nodeflib": ("-Wl,-z,nodeflib",)}
        names = ["libwhich.so", "libm.so.6", "libnone.so", "./b/libwhich.so", str(self.directory / "c/libwhich.so"),
                 "$ORIGIN/b/libwhich.so", "b/none.so", ""]
        told = {}
        for of_program, flags in own_path.items():
            program = self.directory / f"program_{of_program}"
            shutil.copy(build_plain(f"files_libraries_{of_program}", "libraries.c", "-O1", *flags), program)
            for of_plugin, flags in own_path.items():
                flags = [flag.replace("/a", "/b") for flag in flags]
                plugin = self.directory / f"plugin_{of_plugin}.so"
                shutil.copy(build_plain(f"files_plugin_{of_plugin}.so", "libraries.c", "-shared", "-fPIC", "-DPLUGIN",
                                        *flags), plugin)
                for path in (None, str(self.directory / "c")):
                    with self.subTest(program=of_program, plugin=of_plugin, path=path):
                        command = (program, f"{self.directory}/", plugin, *names)
                        run, lines = self.assert_same(*(["env", f"LD_LIBRARY_PATH={path}"] if path else []), *command)
                        self.assertEqual(len(lines), 2 * len(names) + 3)
                        self.assert_sound(run.trace)
                        calls = [call for call in self.calls(run) if call["call"] == "dlopen"]
                        told[of_program, of_plugin, path] = Counter(call["file"] for call in calls)
        # Where nobody has a path of their own all is told, by the file that came.
        alone = told["none", "none", str(self.directory / "c")]
        self.assertEqual(alone[f"{self.directory}/c/libwhich.so"], 4)
        self.assertEqual(alone[f"{self.directory}/b/libwhich.so"], 2)
        self.assertEqual((alone["libnone.so"], alone["(the program itself)"]), (3, 3))
        self.assertEqual([file for file in alone if file.endswith("/libm.so.6")], [file for file in alone if "libm" in file])
        # Elsewhere those with a path are.
        for calls in told.values():
            self.assertEqual(calls[f"{self.directory}/b/none.so"], 2)
        self.assertEqual(told["none", "rpath", None]["libnone.so"], 0)
        self.assertEqual(told["none", "runpath", None]["libnone.so"], 2)

    def test_preloaded_by_the_user_too(self):
        path = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
        if not os.path.exists(path):
            self.skipTest("there is no " + path)
        program = build_plain("files_results", "results.c", "-w", "-O1")
        self.assert_same(program, "work", env={"LD_PRELOAD": path})


if __name__ == "__main__":
    main()
