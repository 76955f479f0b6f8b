"""Programs that were not built for Karst: patched as they are loaded."""
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from torture_support import HERE, KARST, TIMEOUT, TortureTest, build, main  # noqa: E402
from ways_out import CORPUS, FLAGS, O2_ONLY, OPTIMISED_ONLY, STEADY, STEADY_GCC, shown, sources  # noqa: E402

WHOLE = ("--min-instructions", "0", "--budget", "100%")
# What the corpus keeps compilers from giving sleds.
# clang has no exceptions out of signal handlers, and other parts of coroutines.
NOT_BY_CLANG = {"faults.cc", "coroutines.cc"}
UNTRACED = ("--not-function", r"^(untraced_\w+|handle|eats_stack|catches_below)($|\()")


def left_alone(program):
    """Name: why it is not patched, of the functions that have a name."""
    done = subprocess.run([KARST, "places", "--json", "--min-instructions", "0", program], capture_output=True, text=True,
                          check=True, timeout=TIMEOUT)
    return {f["name"]: f["reason"] for f in json.loads(done.stdout)["functions"]}


def without(tree, names):
    """The tree as it is when these functions are not seen: what they call is their callers'."""
    kept, gone = [], []
    for line in tree:
        depth = len(line) - len(line.lstrip())
        gone = [d for d in gone if d < depth]
        name = re.sub(r"  \[.*", "", line.strip())
        if name in names:
            gone.append(depth)
        else:
            kept.append(" " * (depth - 2 * len(gone)) + line.lstrip())
    return kept


class Trees(TortureTest):
    """The same trees as with sleds."""

    def same_trees(self, level, clang=False, kind=("-fPIE", "-pie")):
        seen = 0
        for source in sources():
            if (source.name in OPTIMISED_ONLY and level == "-O0") or (source.name in O2_ONLY and level != "-O2"):
                continue
            if clang and source.name in NOT_BY_CLANG:
                continue
            with self.subTest(source=source.name):
                cxx = source.suffix == ".cc"
                compiler = ("clang" if clang else "g" if cxx else "gcc") + ("++" if cxx else "")
                flags = [level, *kind, *STEADY, *([] if clang else STEADY_GCC), *FLAGS.get(source.name, []), "-pthread"]
                if cxx:
                    flags.append("-std=c++20")
                name = f"plain.{source.stem}.{compiler}{level}{''.join(kind)}"
                program = build(name, f"ways_out/{source.name}", *flags, compiler=compiler)
                run = self.run_traced(program, options=(*WHOLE, *UNTRACED))
                alone = left_alone(program)
                expected = without(source.with_suffix(".tree").read_text().splitlines(), alone)
                tree = shown(run.trace.tree("--marks"))
                if source.name == "vforks.c":  # it executes /bin/true, which is patched as well
                    tree = (tree + ["# thread"])[:(tree + ["# thread"]).index("# thread", 1)]
                self.assertEqual(tree, expected, alone)
                self.assert_whole(run.trace)
                seen += 1
        self.assertGreater(seen, 5)

    def test_gcc_O1(self):
        self.same_trees("-O1")

    def test_gcc_O2(self):
        self.same_trees("-O2")

    def test_gcc_O2_at_a_fixed_address(self):
        self.same_trees("-O2", kind=("-fno-pie", "-no-pie"))

    def test_clang_O2(self):
        if shutil.which("clang++") is None:
            self.skipTest("no clang")
        self.same_trees("-O2", clang=True)


if __name__ == "__main__":
    main()
