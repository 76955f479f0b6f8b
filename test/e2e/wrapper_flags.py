"""Sleds at which the processor's flags are live: clang's conditional tail calls (-Os, -Oz, minsize; clang 14 to 18)."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from live_control import DONE, Control  # noqa: E402
from live_toggle import LiveTest  # noqa: E402
from support import BIN, HERE, TIMEOUT, TracedTest, build, main  # noqa: E402
from ways_out_limits import function_at  # noqa: E402

CLANGS = [version for version in ("14", "15", "16", "17", "18", "19") if shutil.which("clang-" + version)]
SMALL = {"Os": ["-Os"], "Oz": ["-Oz"], "minsize": ["-O2", "-DSMALL=__attribute__((minsize))"],
         "boundaries": ["-Os", "-mbranches-within-32B-boundaries"], "assembler": ["-Os", "-fno-integrated-as"]}
# In front of a conditional jump. With NOPs in between as `boundaries` puts them.
TAIL_SLED = re.compile(rb"\xeb\x09\x66\x0f\x1f\x84\x00\x00\x02\x00\x00(?:\x66?\x2e?\x0f\x1f[\x00-\x84]\x00+|\x66?\x90)*"
                       rb"(?:[\x70-\x7f]|\x0f[\x80-\x8f])", re.DOTALL)

# Of 64 values of six flags, so many make the condition true. Both of a pair: what is left.
TRUE = {"o": 32, "b": 32, "e": 32, "be": 48, "s": 32, "p": 32, "l": 32, "le": 48}
OPPOSITE = {"o": "no", "b": "ae", "e": "ne", "be": "a", "s": "ns", "p": "np", "l": "ge", "le": "g"}
TAKEN = {**TRUE, **{OPPOSITE[name]: 64 - taken for name, taken in TRUE.items()}}


def conditional_tails(*flags, name="conditional_tails"):
    """Each condition in each form of the jump, whichever clang is installed."""
    return build(name, "wrapper/conditional_tails.S", str(HERE / "wrapper/conditional_tails.c"), "-O2", "-pthread", *flags,
                 compiler="karst-gcc")


class EachCondition(TracedTest):
    def check(self, *options, command=None, recorded=True):
        run = self.run_traced(*(command or [conditional_tails()]), options=options)
        self.assertEqual(run.out, "right\n")
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.info["open_calls"], 0)
        if recorded:
            seen = {f["function"]: (f["calls"], f["tail_calls"]) for f in run.trace.report() if f["function"].startswith("tail_")}
            self.assertEqual(seen, {f"tail_{condition}_{form}": (64, taken) for condition, taken in TAKEN.items()
                                    for form in ("long", "short", "padded")})
        return run

    def test_is_recorded_when_the_call_is_made_and_keeps_the_flags(self):
        self.check()

    def test_by_the_other_hooks(self):
        self.check("--clock", "thread")
        self.check("--min-duration", "5s", recorded=False)
        self.check("--clock", "thread", "--min-duration", "5s", recorded=False)
        # A watched function's exit finds its call, whose stack pointer it knows: else the half that makes tail calls would
        # be missing. A call may show 0 ns.
        self.assertGreater(len(self.check("--over", "^tail_l_short:1ns:1000").trace.info["kept"]), 48)
        self.check("--over", "^tail_l_short:1ns:1000", "--clock", "thread")

    def test_in_a_static_program(self):
        self.check(command=[conditional_tails("-static", name="conditional_tails.static")])

    def test_in_a_library_that_comes_later(self):
        library = conditional_tails("-shared", "-fPIC", name="conditional_tails.so")
        self.check("--no-patch", command=[sys.executable, "-c", f"import ctypes; ctypes.CDLL({library!r}).main(1, None)"])

    def test_unwinding_works_at_every_instruction_of_the_hook(self):
        program = build("ways_out.unwinding.conditional", "ways_out/limits/unwinding.cc", "-O1", "-fomit-frame-pointer",
                        "-mno-red-zone", str(HERE / "wrapper/conditional_tails.S"))
        for options, hook in (((), "karst_hook_keep_flags"), (("--slowest", "^tail:5"), "karst_hook_keep_flags_watched")):
            out = self.run_traced(program, "conditional", 20, options=options).out.splitlines()
            lost = {function_at(int(place, 16)) for place, _, lost in map(str.split, out[1:]) if lost != "0"}
            self.assertEqual((out[0].split()[1], out[0].split()[3], lost), ("0", "0", set()))
            self.assertIn(hook, {function_at(int(line.split()[0], 16)) for line in out[1:]})


class Toggled(LiveTest):
    def test_while_threads_make_conditional_tail_calls(self):
        child = self.start(conditional_tails(), 4)
        self.assertEqual(child.stdout.readline(), "ready\n")
        control = Control(child.pid)
        before = control.patched_sites
        self.assertGreater(self.toggle(control), 10)
        self.assertEqual((control.patched_sites, control.unpatchable_sites), (before, 0))
        self.assertEqual(control.switch(False), DONE)
        self.assertEqual(control.patched_sites, 0)
        self.assertEqual(self.finish(child), "right\n")


class Unknown(TracedTest):
    def test_an_instruction_that_is_not_known_behind_a_sled_is_not_guessed_at(self):
        """The first `jo landed` becomes a setcc: whether flags are live there is not known."""
        library = Path(conditional_tails("-shared", "-fPIC", name="conditional_tails.so"))
        image = library.read_bytes()
        found = TAIL_SLED.search(image)
        spoiled = self.directory / "spoiled.so"
        spoiled.write_bytes(image[:found.end() - 2] + b"\x0f\x90" + image[found.end():])
        run = self.run_traced(conditional_tails(), env={"LD_PRELOAD": str(spoiled)})
        self.assertEqual(run.out, "right\n")
        self.assertIn("leaves a function by an instruction that Karst does not know behind the sled: tail_o_long; it is not traced",
                      run.err)
        # The other functions of the library are traced as the program's own are.
        self.assertEqual((run.trace.counts["tail_o_long"], run.trace.counts["tail_no_long"]), (64, 64))


class ByClang(TracedTest):
    def test_small_code_computes_what_it_computes_untraced(self):
        if not CLANGS:
            self.skipTest("no clang is installed")
        plain = build("small_tails", "wrapper/small_tails.c", "-O0", compiler="clang-" + CLANGS[0])
        expected = subprocess.run([plain], check=True, capture_output=True, text=True, timeout=TIMEOUT).stdout
        for version in CLANGS:
            for kind in SMALL if version == CLANGS[0] else ("Os",):
                with self.subTest(version=version, kind=kind):
                    program = str(self.directory / "small")
                    subprocess.run([BIN / "karst-clang", *SMALL[kind], HERE / "wrapper/small_tails.c", "-o", program],
                                   check=True, env={**os.environ, "KARST_CC": "clang-" + version})
                    if int(version) < 19:
                        self.assertGreater(len(TAIL_SLED.findall(Path(program).read_bytes())), 3, "nothing was tried")
                    run = self.run_traced(program)
                    self.assertEqual(run.out, expected)
                    self.assert_whole(run.trace)
                    counts = run.trace.counts
                    self.assertEqual(counts["sink"], int(expected.split()[0]))
                    self.assertEqual({calls for name, calls in counts.items() if name.startswith("if_")}, {144})


if __name__ == "__main__":
    main()
