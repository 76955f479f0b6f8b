"""A random C program by csmith, with a log of its own: each function counts its calls, and the rounds are repeatable.

csmith writes one file, whose main calls func_1 once. What it analysed holds for that one call, so each round begins by
putting csmith's variables back. They have a section of their own: in a static program libkarst's and libc's variables
lie beside them. The log is in memory of its own.
"""
import re
import subprocess

OPTIONS = ["--max-funcs", "8", "--max-block-depth", "3", "--max-block-size", "3", "--max-expr-complexity", "6",
           "--max-array-dim", "2", "--max-array-len-per-dim", "5", "--max-struct-fields", "6", "--no-argc", "--concise"]
MAIN = r"""
#include <poll.h>
#include <stdlib.h>
extern char __start_karst_own[], __stop_karst_own[];
__attribute__((used, section("karst_own"))) static int karst_never_empty = 1;
static const char* const karst_names[] = {@NAMES@};
enum { KARST_NAMES = sizeof karst_names / sizeof *karst_names };

static int karst_input_ended(void) {
  struct pollfd input = {0, POLLIN, 0};
  return poll(&input, 1, 0) > 0;
}

int main(int argc, char** argv) {
  const size_t size = __stop_karst_own - __start_karst_own;
  karst_calls = (unsigned long*)calloc(256, sizeof *karst_calls);
  char* volatile saved = (char*)malloc(size);
  memcpy(saved, __start_karst_own, size);
  const unsigned long first = karst_round();
  for (unsigned long round = 1; argc > 1 ? !karst_input_ended() : round < 2; ++round) {
    memcpy(__start_karst_own, saved, size);
    const unsigned long sum = karst_round();
    if (sum == first) continue;
    printf("round %lu: checksum %lx is not that of the first round, %lx\n", round, sum, first);
    return 101;
  }
  printf("checksum %lx\n", first);
  for (int i = 0; i < KARST_NAMES && argc < 2; ++i) printf("calls %s @EXACT@ %lu\n", karst_names[i], karst_calls[i]);
  return (int)(first % 100);
}
"""


FUNCTION = re.compile(r"^(static (?:[^\n;={]*?)\b(func_\d+)\([^\n;]*\))\n\{", re.MULTILINE)
FEWEST_FUNCTIONS = 4
VARIABLE = re.compile(r"^static ([^\n;=(]*?)\b(g_\d+)\b", re.MULTILINE)


def text_of(seed, directory):
    """The first program of some for this seed that has a few functions."""
    for attempt in range(50):
        text = subprocess.run(["csmith", "--seed", str(1 + seed % 80_000_000 * 50 + attempt), *OPTIONS], check=True,
                              capture_output=True, text=True, cwd=directory).stdout  # it writes platform.info
        if len(FUNCTION.findall(text)) >= FEWEST_FUNCTIONS:
            return text
    raise ValueError(f"csmith makes no program of {FEWEST_FUNCTIONS} functions of seed {seed}")


def in_own_section(match):
    """A variable's declaration, with the section if it can change: a const one is elsewhere anyway."""
    is_const = "const" in match[1].rsplit("*", 1)[-1]
    return match[0] if is_const else f'__attribute__((section("karst_own"))) {match[0]}'


def with_log(text, exact):
    """The program with counters, and with a main of ours. `exact`: it will be built without inlining."""
    names = []

    def count(match):
        names.append(match[2])
        return f"{match[1]}\n{{ ++karst_calls[{len(names) - 1}];"

    head, main = text.split("\nint main (void)", 1)
    head = VARIABLE.sub(in_own_section, FUNCTION.sub(count, head))
    main = re.sub(r"platform_main_end\(.*?\);", "return crc32_context ^ 0xFFFFFFFFUL;", main)
    main = re.sub(r"^\s*return 0;", "", main, flags=re.MULTILINE)
    head = head.replace('#include "csmith.h"', '#include "csmith.h"\nstatic unsigned long* karst_calls;')
    names_text = ", ".join(f'"{name}"' for name in names)
    return (head + "\nstatic unsigned long __attribute__((noinline)) karst_round(void)"
            + main.replace("{", "{ crc32_context = 0xFFFFFFFFUL;", 1)
            + MAIN.replace("@NAMES@", names_text).replace("@EXACT@", "exact" if exact else "most"))


def files(seed, exact, directory):
    return {"part0.c": with_log(text_of(seed, directory), exact)}
