"""What sleds and their tables take of a program's file and memory, beside XRay's and -pg's."""

import re
import shutil

import budget
import measure
import programs
from measure import WORK, BenchError, Row, karst_tool, run_child

TINY_FUNCTIONS = 80_000
XRAY_FLAGS = programs.XRAY_FLAGS
TARGETS = {"karst-gcc": 1.04, "karst-clang": 1.08}  # of the stripped file of programs whose functions are not all tiny
MEMORY_TARGET = 1.02
TABLES = ("karst_sleds", "karst_clang_sleds", "xray_instr_map", "xray_fn_idx")


def tiny_program(name, compiler, *flags):
    source = WORK / "sizes" / "tiny.c"
    if not source.is_file():
        source.parent.mkdir(parents=True, exist_ok=True)
        calls = range(TINY_FUNCTIONS)
        source.write_text("".join(f"int f{i}(int x) {{ return x * {i + 3} + {i}; }}\n" for i in calls) +
                          "int main(void) { return 0; }\n")
    return measure.compile_program(WORK / "sizes" / f"tiny-{name}", [compiler, "-O2", *flags, source], [source])


def sections(path):
    """Sizes by name."""
    text = run_child(["size", "-A", path]).output
    return {name: int(size) for name, size in re.findall(r"^(\S+)\s+(\d+)\s+\d+$", text, re.M)}


def row_of(group, name, path, plain, scratch, judged):
    stripped = f"{scratch}/stripped"
    run_child(["strip", "-o", stripped, path])
    size = measure.pathlib.Path(stripped).stat().st_size
    found = sections(stripped)
    tables = sum(found.get(table, 0) for table in TABLES)
    row = Row(group, name, size / 1024, "KiB", size / plain if plain else None, "plain",
              note=f"code {found['.text'] / 1024:,.0f} KiB, tables {tables / 1024:,.0f} KiB")
    if judged and name in TARGETS and plain:
        row.target, row.met = f"<= {TARGETS[name]:.2f} x", row.ratio <= TARGETS[name]
    return row, size


def builders(cxx, notes):
    gcc, clang = ("g++", "clang++-14") if cxx else ("gcc", "clang-14")
    found = [("gcc", gcc, ()), ("karst-gcc", karst_tool("karst-g++" if cxx else "karst-gcc"), ()), ("gcc -pg", gcc, ("-pg",))]
    if shutil.which(clang) is None:
        notes.append(f"sizes: {clang} is not installed: script/setup bench")
        return found
    # XRay's runtime is C++.
    xray = (*XRAY_FLAGS, *(() if cxx else ("-lstdc++",)))
    return found + [("clang", clang, ()), ("karst-clang", karst_tool("karst-clang++" if cxx else "karst-clang"), ()),
                    ("clang, XRay", clang, xray)]


def bench_sizes(scratch, notes):
    rows = []
    everything = (("LevelDB's workload", programs.leveldb_program, True, True), ("Lua 5.4", programs.lua_program, False, True),
                  ("SQLite's shell", budget.sqlite, False, True),
                  (f"a program of {TINY_FUNCTIONS:,} tiny functions", tiny_program, False, False))
    for title, build, cxx, judged in everything:
        plain = None
        for name, compiler, flags in builders(cxx, notes):
            try:
                path = build("size-" + re.sub(r"\W+", "-", name), compiler, *flags)
                row, size = row_of(f"stripped file: {title}", name, path, plain if not name in ("gcc", "clang") else None,
                                   scratch, judged)
            except BenchError as error:
                notes.append(f"sizes, {title}: {name} failed: {measure.shortened(error)}")
                continue
            if name in ("gcc", "clang"):
                plain = size
            rows.append(row)
    return rows + bench_memory(scratch, notes)


def bench_memory(scratch, notes):
    """LevelDB's workload without libkarst."""
    arguments = ["--single", "--batches", 20_000]
    rows = []
    for cc, name, compiler in (("gcc", "gcc", "g++"), ("gcc", "karst-gcc", karst_tool("karst-g++"))):
        try:
            path = programs.leveldb_program("size-" + name, compiler)
            peaks = [run_child([path, *arguments], cwd=scratch).peak_bytes for _ in range(3)]
        except BenchError as error:
            notes.append(f"sizes, memory: {name} failed: {measure.shortened(error)}")
            return rows
        row = Row("peak resident memory of LevelDB's workload, off", name, sorted(peaks)[1] / 1024, "KiB")
        if rows:
            row.ratio, row.ratio_to = row.value / rows[0].value, cc
            row.target, row.met = f"<= {MEMORY_TARGET:.2f} x", row.ratio <= MEMORY_TARGET
        rows.append(row)
    return rows
