"""Programs annotated for Tracy, compiled with include/karst/tracy in the include path: what they say is in the trace."""
import json
import re
import subprocess

from support import BIN, KARST, ROOT, TIMEOUT, TracedTest, build, main

INCLUDE = ("-I", str(ROOT / "include/karst/tracy"), "-I", str(ROOT / "include"), "-Wall", "-Wextra", "-Wshadow", "-Werror")
SAID = [
    ("text", "", "0 of some", "block"), ("text", "", "item 0", "inner zone"), ("integer", "value", "0", "inner zone"),
    ("color", "", "#00ff00", "inner zone"), ("integer", "queue", "0", "inner zone"),
    ("number", "load", "0", "inner zone"),
    ("text", "", "made 1", "outer"), ("message", "", "a message", "outer"), ("message", "", "a literal", "outer"),
    ("frame", "Frame", "", "main"), ("frame", "other frames", "", "main"),
    ("text", "", "1 of some", "block"), ("text", "", "item 1", "inner zone"), ("integer", "value", "1", "inner zone"),
    ("color", "", "#00ff00", "inner zone"), ("integer", "queue", "1", "inner zone"),
    ("number", "load", "0.5", "inner zone"),
    ("text", "", "made 2", "outer"), ("message", "", "a message", "outer"), ("message", "", "a literal", "outer"),
    ("frame", "Frame", "", "main"), ("frame", "other frames", "", "main"),
    ("integer", "first plot", "7", "main"), ("integer", "second plot", "7", "main"),
    ("record", "memory", "(size=4) = 0x", "main"), ("record", "memory", "(address=0x)", "main"),
    ("record", "a pool", "(size=7) = 0x", "main"), ("frame begins", "in pieces", "", "main"),
    ("picture", "Frame", "8 x 4", "main"), ("frame", "in pieces", "", "main"),
    ("message", "", "so wide", "main"), ("message", "", "a whole one", "main"),
    ("record", "a vault", "(size=9) = 0x", "main"), ("record", "a vault", "(address=0x)", "main")]


class Tracy(TracedTest):
    SCHED = ()

    def notes_of(self, path):
        done = subprocess.run([KARST, "notes", "--json", str(path)], check=True, capture_output=True, text=True,
                              timeout=TIMEOUT)
        return json.loads(done.stdout)["notes"]

    def test_cpp_says_the_same_by_every_compiler(self):
        for compiler in ("karst-g++", "karst-clang++"):
            for standard in ("c++11", "c++20"):
                with self.subTest(compiler=compiler, standard=standard):
                    program = build("tracy_cpp", "tracy/program.cc", *INCLUDE, "-O1", "-pthread", f"-std={standard}",
                                    "-DTRACY_ENABLE", compiler=str(BIN / compiler), output=f"tracy_{compiler}_{standard}")
                    run = self.run_traced(program)
                    self.assertEqual(run.out, "3\n")
                    notes = self.notes_of(run.trace.path)
                    self.assertEqual([(n["kind"], n["name"], re.sub("0x[0-9a-f]+", "0x", n["value"]),
                                       n["in"].split("::")[-1].split("(")[0]) for n in notes], SAID)
                    process, = run.trace.processes
                    self.assertEqual(process["app_info"], ["some settings"])
                    self.assertEqual({n["thread"] for n in notes}, {"the first"})
                    counts = run.trace.counts
                    # The function itself and two zones that have its name: its own, and the transient one.
                    self.assertEqual((counts["outer"], counts["block"], counts["inner zone"]), (4, 2, 2))
                    self.assertNotIn("never", counts)
                    self.assertFalse([name for name in counts if "tracy" in name or "karst" in name])

    def test_c_says_the_same(self):
        for compiler in ("karst-gcc", "gcc", "clang-14"):
            with self.subTest(compiler=compiler):
                program = build("tracy_c", "tracy/program.c", *INCLUDE, "-O1", "-DTRACY_ENABLE", compiler=compiler,
                                output=f"tracy_c_{compiler}")
                run = self.run_traced(program, options=("--min-instructions", "0"))
                self.assertEqual(run.out, "2\n")
                self.assertEqual([(n["kind"], n["name"], re.sub("0x[0-9a-f]+", "0x", n["value"]), n["in"])
                                  for n in self.notes_of(run.trace.path)], [
                    ("text", "", "below", "inner"), ("text", "", "1 of some", "inner"),
                    ("text", "", "named", "inner"), ("integer", "value", "1", "inner"), ("number", "load", "0.25", "whole"),
                    ("integer", "queue", "3", "whole"), ("message", "", "a literal", "whole"),
                    ("message", "", "a red one", "whole"), ("color", "", "#00ff00", "whole"),
                    ("record", "pool", "(size=4) = 0x", "whole"), ("record", "pool", "(address=0x)", "whole"),
                    ("record", "memory", "(size=3) = 0x", "whole"),
                    ("frame", "Frame", "", "whole")])

    def test_without_tracy_enable_nothing_is_said(self):
        for source, compiler in (("program.cc", "karst-g++"), ("program.c", "karst-gcc")):
            program = build("tracy_off", f"tracy/{source}", *INCLUDE, "-O1", "-pthread", "-Wno-unused-parameter", "-Wno-unused-variable",
                            compiler=compiler, output=f"tracy_off_{compiler}")
            run = self.run_traced(program)
            self.assertEqual(self.notes_of(run.trace.path), [])
            alone = subprocess.run([program], capture_output=True, text=True, timeout=TIMEOUT)
            self.assertEqual(alone.stdout, run.out)

if __name__ == "__main__":
    main()
