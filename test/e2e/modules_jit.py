"""Just-in-time compilers as they are in the wild: their code has no hooks, and stands between traced calls."""
import ctypes.util
import shutil
import subprocess
import unittest
from pathlib import Path

from modules_support import KARST_GCC, KARST_GXX
from support import HERE, TIMEOUT, TracedTest, build, main

LUAJIT = Path("/usr/include/luajit-2.1")
NODE = Path("/usr/include/node")


class LuaJit(TracedTest):
    """LuaJIT in a traced program."""

    N = 500

    def test_its_machine_code_calls_traced_functions_and_is_left_by_errors(self):
        if not (LUAJIT / "lua.h").exists() or ctypes.util.find_library("luajit-5.1") is None:
            self.skipTest("libluajit-5.1-dev is not installed")
        program = build("luajit-host", "modules/luajit_host.c", "-O1", "-rdynamic", f"-I{LUAJIT}", "-lluajit-5.1",
                        compiler=KARST_GCC)
        n = self.N
        run = self.run_traced(program, HERE / "modules/luajit_calls.lua", n)
        total = sum(2 * i + 3 for i in range(1, n + 1)) + sum(i + 2 for i in range(1, n + 1))
        self.assertEqual(run.out.split()[:2], [str(total), str(n)])
        self.assert_whole(run.trace)
        self.assertEqual(run.trace.info["open_calls"], 0)
        self.assertEqual(run.trace.counts, {"main": 1, "twice": n, "through": n, "asks": n, "refuse": n,
                                            "leaf": 2 * n + n + 2 * n})
        expected = ["main"] + n * ["  twice", "    leaf", "    leaf"] + n * ["  asks", "    refuse", "      leaf"]
        expected += n * ["  through", "    leaf", "    leaf"]
        self.assertEqual([line for line in run.trace.tree() if not line.startswith("#")], expected)
        if run.out.split()[2] != "compiled":
            self.skipTest("LuaJIT found no memory for machine code near it: interpreted, all the same")


class NodeJs(TracedTest):
    """A traced extension in a stock interpreter whose compiler writes names for perf."""

    N = 3000

    def test_an_extension_is_called_by_machine_code_and_thrown_through(self):
        if not (NODE / "node_api.h").exists() or shutil.which("node") is None:
            self.skipTest("node, or its headers in /usr/include/node, are not installed")
        addon = build("node-addon", "modules/node_addon.cc", "-O1", "-shared", "-fPIC", f"-I{NODE}", compiler=KARST_GXX,
                      output="addon.node")
        n = self.N
        words = ["node", "--perf-basic-prof", str(HERE / "modules/node_calls.js"), addon, str(n)]
        # What this node does without Karst is what it is to do.
        alone = subprocess.run(["node", *words[2:]], capture_output=True, text=True, timeout=TIMEOUT)
        if alone.returncode != 0:
            self.skipTest(f"node cannot run this by itself: {alone.stderr[-300:]}")
        run = self.run_traced(*words, options=("--no-patch",))
        for process in run.trace.processes:
            Path(f"/tmp/perf-{process['pid']}.map").unlink(missing_ok=True)
        self.assertEqual(run.out, alone.stdout)
        self.assert_whole(run.trace)
        counts = run.trace.counts
        short = {name.split("(")[0]: count for name, count in counts.items()}
        calls = n + n // 2
        self.assertEqual({name: short[name] for name in ("call_twice", "twice", "leaf", "call_through")},
                         {"call_twice": calls, "twice": calls, "leaf": 2 * calls, "call_through": n})
        self.assertEqual([name for name in counts if "jit" in name or name.startswith("0x")], [])
        # Half of the calls of the function that is thrown through have nothing inside, the others all of the rest.
        lines = [line.split("(")[0] for line in run.trace.tree()]
        begin = lines.index("call_through")
        inside = ["call_through", "  call_twice", "    twice", "      leaf", "      leaf", "call_through"]
        self.assertEqual(lines[begin:begin + 6 * (n // 2)], inside * (n // 2))


if __name__ == "__main__":
    main()
