"""libkarst.so as it was built: the hot path's budget in instructions, and the promises of a guest in other people's
processes: libc alone, no vector registers, no text relocations, little thread-local storage.

usage: library_test.py LIBKARST.SO HOOKS.S ASSERTIONS    (1: it was built with them, 0: without)
"""
import fnmatch
import os
import re
import subprocess
import sys
import unittest

LIBRARY, HOOKS, ASSERTIONS = sys.argv[1:4]
# What modules call, weakly or by name (toolchain/module.S, karst/karst.h, -finstrument-functions, ITT and NVTX), what
# karst looks for, and what stands before libc's and the unwinder's: each of those is a risk.
EXPORTED = """
    sigaction sigaltstack signal bsd_signal sysv_signal __sysv_signal clone prctl pthread_setname_np syscall
    unshare setns setuid seteuid setreuid setresuid setgid setegid setregid setresgid setgroups initgroups capset
    waitpid wait4 waitid
    karst_register_module karst_unregister_module
    karst_api_* karst_time karst_ticks_per_second karst_snapshot_* karst_enable karst_disable karst_thread_*
    __cyg_profile_func_enter __cyg_profile_func_exit
    setjmp _setjmp __sigsetjmp longjmp _longjmp siglongjmp __longjmp_chk
    execve execveat execv execvp execvpe execl execle execlp fexecve posix_spawn posix_spawnp system popen
    getcontext setcontext swapcontext vfork
    _Unwind_SetIP pthread_create karst_frames_gone
    karst_attach_fetch karst_attach_enter karst_attach_detours karst_attach_adopt karst_attach_problem karst_attach_room
    karst_patched_modules karst_noted_values karst_handled
    __itt_api_init InitializeInjectionNvtx2
""".split()
VECTOR_REGISTER = re.compile(r"%(?:[xyz]mm\d+|mm\d|st\b|k[0-7]\b)")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def disassemble(symbol=None):
    """(address, instruction) of one function or of the whole library."""
    which = ["-d"] if symbol is None else [f"--disassemble={symbol}"]
    text = output("objdump", *which, "--no-show-raw-insn", LIBRARY)
    return [(int(m[1], 16), m[2].strip())
            for m in re.finditer(r"^\s*([0-9a-f]+):\t(.*)$", text, re.MULTILINE)]


class Hooks(unittest.TestCase):
    def test_fast_path_keeps_its_budget(self):
        with open(HOOKS, encoding="utf-8") as file:
            budget = re.search(r"karst_hook_trace: .*Budget: (\d+) instructions", file.read())
        self.assertIsNotNone(budget, "hooks.S does not state its budget")
        code = disassemble("karst_hook_trace")
        self.assertGreater(len(code), 10)
        path = []
        for _, instruction in code:
            path.append(instruction)
            if instruction.split()[0] in ("ret", "retq"):
                break
        self.assertEqual(len(path), int(budget[1]), "\n".join(path))
        # The fast path is straight: only jumps that leave it, only one store to the block, no lock.
        for instruction in path:
            self.assertNotRegex(instruction, r"^(call|lock|jmp)\b")
        leaving = [i for i in path if i.startswith("j")]
        self.assertEqual([i.split()[0] for i in leaving], ["je", "ja", "jne", "jb"])

    def test_the_other_hooks_fast_paths_keep_theirs(self):
        with open(HOOKS, encoding="utf-8") as file:
            text = file.read()
        # Up to the first `ret`: the whole of each common way.
        for hook, leaving in (("karst_hook_trace_clock", ["je", "jne", "jne", "jb"]),
                              ("karst_hook_trim", ["je", "ja", "jne", "jb", "jae", "jne"]),
                              ("karst_hook_trim_clock", ["je", "jne", "jne", "jb", "jae", "jne"]),
                              ("karst_hook_count", ["je", "je"])):
            budget = re.search(r"// " + hook + r": (?:(?!karst_hook_).)*?Budget: (\d+) instructions", text, re.DOTALL)
            self.assertIsNotNone(budget, f"hooks.S does not state the budget of {hook}")
            path = []
            for _, instruction in disassemble(hook):
                path.append(instruction)
                if instruction.split()[0] in ("ret", "retq"):
                    break
            self.assertEqual(len(path), int(budget[1]), hook + "\n" + "\n".join(path))
            for instruction in path:
                self.assertNotRegex(instruction, r"^(call|lock|jmp)\b")
            self.assertEqual([i.split()[0] for i in path if i.startswith("j")], leaving)
            self.assertEqual(any(i.startswith("rdtsc") for i in path), hook == "karst_hook_trim")

    def test_watched_functions_hooks_keep_theirs(self):
        with open(os.path.join(os.path.dirname(HOOKS), "watch_hooks.S"), encoding="utf-8") as file:
            stated = re.findall(r"Budget: (\d+) instructions[^.]*?, (\d+) by the clock thread \(checked"
                                r"(?:(?!\.macro).)*?\.macro\s+(WATCH_\w+)", file.read(), re.DOTALL)
        stated = {macro: {"": int(tsc), "_clock": int(clock)} for tsc, clock, macro in stated}
        self.assertEqual(sorted(stated), ["WATCH_ENTER", "WATCH_EXIT"])
        leaving = {"enter": ["je", "ja", "jne", "jb", "je"], "exit": ["je", "ja", "jne", "jb", "je", "jne", "jne", "jae"]}
        for which in ("enter", "exit"):
            for clock in ("", "_clock"):
                hook = f"karst_hook_watch_{which}{clock}"
                path = []
                for _, instruction in disassemble(hook):
                    path.append(instruction)
                    if instruction.split()[0] in ("ret", "retq"):
                        break
                self.assertEqual(len(path), stated[f"WATCH_{which.upper()}"][clock], hook + "\n" + "\n".join(path))
                for instruction in path:
                    self.assertNotRegex(instruction, r"^(call|lock|jmp)\b")
                expected = leaving[which] if clock == "" else ["je", "jne", *leaving[which][2:]]
                self.assertEqual([i.split()[0] for i in path if i.startswith("j")], expected)
                self.assertEqual(any(i.startswith("rdtsc") for i in path), clock == "")

    def test_the_hook_of_tail_calls_keeps_its_budget(self):
        with open(os.path.join(os.path.dirname(HOOKS), "tail_hooks.S"), encoding="utf-8") as file:
            budget = re.search(r"Budget: (\d+) instructions .*? \(checked", file.read())
        self.assertIsNotNone(budget, "tail_hooks.S does not state its budget")
        path = []
        for _, instruction in disassemble("karst_hook_tail"):
            path.append(instruction)
            if instruction.split()[0] in ("ret", "retq"):
                break
        self.assertEqual(len(path), int(budget[1]), "\n".join(path))

    def test_hooks_that_find_stacks_keep_theirs(self):
        with open(os.path.join(os.path.dirname(HOOKS), "stack_hooks.S"), encoding="utf-8") as file:
            budget = re.search(r"Budget: (\d+) instructions .*?, (\d+) at an exit \(checked", file.read())
        self.assertIsNotNone(budget, "stack_hooks.S does not state its budget")
        for which in ("enter", "exit"):
            for watched in ("", "watched_"):
                hook = f"karst_hook_stack_{watched}{which}"
                path = []
                for _, instruction in disassemble(hook):
                    path.append(instruction)
                    if instruction.startswith("jmp"):
                        break
                self.assertEqual(len(path), int(budget[2 if which == "exit" else 1]), hook + "\n" + "\n".join(path))
                self.assertEqual([i.split()[0] for i in path if i.startswith("j")], ["ja", "jb", "jne", "jmp"])
                for instruction in path:
                    self.assertNotRegex(instruction, r"^(call|lock)\b")

    def test_discarding_hook_is_two_instructions(self):
        code = [i for _, i in disassemble("karst_hook_discard")]
        self.assertEqual([i.split()[0] for i in code[:2]], ["lea", "ret"])

    def test_no_vector_or_x87_register_is_touched(self):
        code = disassemble()
        self.assertGreater(len(code), 1000)
        # Arguments and returned values in such registers are read where they are noted (runtime/values/values.cc).
        reads = re.compile(r"movq +%xmm[0-7],(-?0x[0-9a-f]+)?\(%rsp\)")
        searching = {a for a, _ in disassemble("karst_has_empty_slot")}
        found = [f"{a:x}: {i}" for a, i in code
                 if VECTOR_REGISTER.search(i) and not reads.fullmatch(i) and a not in searching]
        self.assertEqual(found, [])
        x87 = [i.split()[0] for _, i in code if i.startswith("f") and not i.startswith("fs")]
        self.assertEqual(sorted(set(x87)), ["fxrstor64", "fxsave64"])
        self.assertEqual(x87.count("fxsave64"), x87.count("fxrstor64"))

    def test_the_search_for_empty_slots_gives_vector_registers_back(self):
        code = [i for _, i in disassemble("karst_has_empty_slot")]
        using = [i for i in code if VECTOR_REGISTER.search(i)]
        used = sorted(set(re.findall(r"%xmm\d+", " ".join(using))))
        self.assertGreater(len(used), 1)
        place = {f"%xmm{n}": f"{hex(16 * n)}(%rsp)" if n else "(%rsp)" for n in range(len(used))}
        self.assertEqual(sorted(place), used)
        self.assertEqual([re.split(r"\s+", i) for i in using[:len(used)]],
                         [["movdqu", f"{register},{place[register]}"] for register in used])
        self.assertEqual([re.split(r"\s+", i) for i in using[-len(used):]],
                         [["movdqu", f"{place[register]},{register}"] for register in used])
        # Nothing that would clear the upper halves, or needs more than any processor of this kind has.
        self.assertLessEqual({i.split()[0] for i in using}, {"movdqu", "movdqa", "pxor", "pcmpeqd", "por", "pmovmskb"})
        self.assertEqual([i.split()[0] for i in code if i.startswith(("call", "jmp"))], [])

    def test_each_hook_has_unwind_information(self):
        frames = output("readelf", "--debug-dump=frames", LIBRARY)
        ranges = [(int(b, 16), int(e, 16)) for b, e in re.findall(r"pc=([0-9a-f]+)\.\.([0-9a-f]+)", frames)]
        for hook in ("karst_hook_trace", "karst_hook_trace_clock", "karst_hook_trim", "karst_hook_trim_clock",
                     "karst_hook_trace_by_tid", "karst_hook_count", "karst_hook_count_by_tid", "karst_hook_discard",
                     "karst_hook_watch_enter", "karst_hook_watch_exit", "karst_hook_watch_enter_clock",
                     "karst_hook_watch_exit_clock", "karst_hook_divide_enter", "karst_hook_divide_exit",
                     "karst_hook_stack_enter", "karst_hook_stack_exit", "karst_hook_stack_watched_enter",
                     "karst_hook_stack_watched_exit", "karst_hook_stack_watched_enter_deeper",
                     "karst_hook_stack_watched_exit_deeper"):
            begin = disassemble(hook)[0][0]
            self.assertTrue(any(b <= begin < e for b, e in ranges), hook)


class Library(unittest.TestCase):
    def test_needs_libc_alone(self):
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", LIBRARY))
        self.assertEqual(needed, ["libc.so.6"])

    def test_exports_what_is_meant_and_nothing_else(self):
        exported = output("nm", "-D", "--defined-only", "--format=posix", LIBRARY).split("\n")
        exported = sorted(line.split()[0] for line in exported if line)
        versions = {"GLIBC_2.2.5", "GLIBC_2.15"}
        bare = sorted({name.split("@")[0] for name in exported if name not in versions})
        self.assertEqual([n for n in bare if not any(fnmatch.fnmatchcase(n, m) for m in EXPORTED)], [])
        self.assertEqual([m for m in EXPORTED if not fnmatch.filter(bare, m)], [])
        self.assertLess(len([n for n in bare if not n.startswith("karst_")]), 66)

    def test_uses_neither_heap_nor_cxx_library(self):
        imported = re.findall(r"[Uw] ([^@\s]+)", output("nm", "-D", "--undefined-only", LIBRARY))
        self.assertIn("dl_iterate_phdr", imported)
        for name in imported:
            self.assertNotRegex(name, r"^(_Z|__cxa_(?!finalize|atexit)|malloc|calloc|realloc|free|mmap|printf|__tls_get_addr)")

    def test_has_assertions_where_they_were_asked_for_alone(self):
        with open(LIBRARY, "rb") as file:
            lines = set(re.findall(rb"karst: assertion failed: [./]*(runtime/[^:]+):", file.read()))
        if ASSERTIONS == "1":
            self.assertGreater(len(lines), 5)
        else:
            self.assertEqual(lines, set())

    def test_has_no_text_relocations(self):
        self.assertNotIn("TEXTREL", output("readelf", "-dW", LIBRARY))

    def test_binds_at_load_and_starts_first(self):
        flags = output("readelf", "-dW", LIBRARY)
        self.assertRegex(flags, r"\(FLAGS_1\).*NOW.*INITFIRST")

    def test_stack_and_memory_are_never_writable_and_executable(self):
        segments = re.findall(r"^\s+(\w+)\s+0x\S+ 0x\S+ 0x\S+ 0x\S+ 0x\S+ ([RWE ]{3})", output("readelf", "-lW", LIBRARY),
                              re.MULTILINE)
        flags = [f for kind, f in segments if kind in ("LOAD", "GNU_STACK")]
        self.assertGreaterEqual(len(flags), 3)
        self.assertIn("GNU_STACK", [kind for kind, _ in segments])
        for each in flags:
            self.assertFalse("W" in each and "E" in each, each)

    def test_thread_local_storage_is_small_and_initial_exec(self):
        tls = re.search(r"^\s+TLS\s+0x\S+ 0x\S+ 0x\S+ 0x\S+ (0x\S+)", output("readelf", "-lW", LIBRARY), re.MULTILINE)
        self.assertIsNotNone(tls)
        self.assertLessEqual(int(tls[1], 16), 96)
        relocations = set(re.findall(r"R_X86_64_\w*(?:TPOFF|DTPMOD|TLSDESC)\w*", output("readelf", "-rW", LIBRARY)))
        self.assertEqual(relocations, {"R_X86_64_TPOFF64"})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
