"""Programs and libraries for the tests of modules, built by any of the wrappers."""
import shutil
import unittest

from support import BIN, build

KARST_GXX = str(BIN / "karst-g++")
KARST_GCC = str(BIN / "karst-gcc")
KARST_CLANGXX = str(BIN / "karst-clang++")
RUNTIME = str(BIN.parent / "lib" / "libkarst.so")


def library(name, *flags, compiler=KARST_GXX, at_once=False):
    """modules/plugin.cc; `name` is that of its namespace and file."""
    return build(name, "modules/plugin.cc", "-O2", "-shared", "-fPIC", f"-DNAME={name}", *flags, compiler=compiler,
                 output=f"{name}.so", at_once=at_once)


def host(traced=True):
    compiler = KARST_GCC if traced else "gcc"
    return build("host" if traced else "host-plain", "modules/host.c", "-O2", "-pthread", compiler=compiler)


def need(program):
    if shutil.which(program) is None:
        raise unittest.SkipTest(f"{program} is not installed")


def calls_of_plugin(name, runs, n, opened=1):
    """Calls by function after plugin_run(n) was called `runs` times and the library opened `opened` times."""
    return {f"{name}::leaf(int)": 2 * runs * n + 2 * opened, f"{name}::jumps(int)": runs * n,
            f"{name}::Regular<3>::area(int) const": runs * ((n + 1) // 2),
            f"{name}::Regular<4>::area(int) const": runs * (n // 2), "plugin_run": runs,
            f"{name}::Constructed::Constructed()": opened, f"{name}::Constructed::~Constructed()": opened}
