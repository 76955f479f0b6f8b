"""How a random program is built and traced: every choice of it by the program's seed, or by what was asked for."""
import random
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

COMPILERS = {"gcc-12": 3, "gcc-11": 2, "clang-14": 3, "clang-19": 3}
LEVELS = {"-O0": 2, "-O1": 2, "-O2": 4, "-O3": 3, "-Os": 4, "-Oz": 3, "-Og": 2, "-Ofast": 2}
METHODS = {"sled": 6, "finstrument": 2, "finstrument-after-inlining": 1}
PROTECTION = {"": 2, "-fcf-protection=full": 1, "-fcf-protection=branch": 1, "-fcf-protection=none": 1}
LTO = {"": 5, "-flto": 2, "-flto=thin": 1}
KINDS = {"pie": 4, "no-pie": 3, "static": 1, "shared": 2}  # shared: the second part is a library
EXTRAS = {"": 8, "-fno-omit-frame-pointer": 2, "-fstack-protector-all": 2, "-march=native": 3, "-fno-plt": 1,
          "-ffunction-sections -Wl,--gc-sections": 1, "-mno-red-zone": 1, "-fstack-clash-protection": 1,
          "-fno-inline": 2, "-fno-optimize-sibling-calls": 1, "-mcmodel=large": 1, "-fzero-call-used-regs=all": 1}
TRACING = {"": 5, "--clock thread": 1, "--slowest .*:3": 1, "--min-duration 1us": 1, "--prefault": 1}
PROGRAMS = {"c++": 5, "csmith": 2}
CHOICES = {"program": PROGRAMS, "compiler": COMPILERS, "level": LEVELS, "method": METHODS,
           "protection": PROTECTION, "lto": LTO, "kind": KINDS, "extra": EXTRAS, "tracing": TRACING}
# What a compiler does not have is taken for something near it.
INSTEAD = [("gcc", "method", "finstrument-after-inlining", "sled"), ("gcc", "lto", "-flto=thin", "-flto"),
           ("gcc-11", "level", "-Oz", "-Os"), ("clang-14", "extra", "-fzero-call-used-regs=all", "")]


@dataclass
class Way:
    program: str
    compiler: str
    level: str
    method: str
    protection: str
    lto: str
    kind: str
    extra: str
    tracing: str

    @property
    def is_clang(self):
        return self.compiler.startswith("clang")

    @property
    def command(self):
        """The compiler for this program's language."""
        if self.program == "csmith":
            return self.compiler
        return self.compiler.replace("gcc", "g++").replace("clang", "clang++")

    @property
    def wrapper(self):
        return "karst-" + re.sub(r"-\d+$", "", self.command)

    @property
    def exact(self):
        """Each call in the source is one that Karst sees: nothing is inlined, or inlined calls are recorded, too."""
        return self.has_calls_as_written or self.method == "finstrument"

    @property
    def has_calls_as_written(self):
        """The compiler inlines nothing."""
        return self.level == "-O0" or self.extra == "-fno-inline"

    @property
    def loses_exits(self):
        """docs/limits, Ways out that are not seen: clang's calls for what it inlined have no frame to unwind."""
        return self.is_clang and self.method == "finstrument" and self.level != "-O0"

    def missing(self):
        """What is not installed here; None if this can be built."""
        needed = [self.command, *(["csmith"] if self.program == "csmith" else []),
                  *(["lld-19" if self.compiler == "clang-19" else "lld"] if self.is_clang and self.lto else [])]
        found = {name: shutil.which("ld." + name if name == "lld" else "ld." + name if name.startswith("lld") else name)
                 for name in needed}
        return next((name for name, path in found.items() if path is None), None)

    @property
    def has_library(self):
        return self.kind == "shared" and self.program == "c++"

    def flags(self):
        language = ["-I/usr/include/csmith"] if self.program == "csmith" else ["-std=c++17"]
        linker = ["-fuse-ld=lld"] if self.is_clang and self.lto else []
        kind = {"pie": ["-fPIE", "-pie"], "no-pie": ["-fno-pie", "-no-pie"], "static": ["-static"],
                "shared": ["-fPIC"]}[self.kind]
        if self.is_clang and self.method == "sled":
            language = [*language, "-DMAY_MUSTTAIL"]  # nothing can stand between such a call and the return
        if self.method == "finstrument":
            language = [*language, "-DNO_CLONES"]  # docs/limits/never.md: they may have no name
        return [*language, "-w", "-Wno-psabi", self.level, *kind, *linker,
                *(self.protection + " " + self.lto + " " + self.extra).split()]

    def text(self):
        words = [f"{name}={getattr(self, name)}" for name in CHOICES if getattr(self, name)]
        return " ".join(f"'{word}'" if " " in word else word for word in words)


def choose(seed, asked):
    """`asked`: choices by name that are not left to the seed."""
    r = random.Random(f"way of {seed}")
    chosen = {name: r.choices(list(options), list(options.values()))[0] for name, options in CHOICES.items()} | asked
    for compiler, name, what, instead in INSTEAD:
        if chosen["compiler"].startswith(compiler) and chosen[name] == what:
            chosen[name] = instead
    # The link then copies functions into thunks, which have no sleds (docs/limits, Assembly and thunks).
    if chosen["lto"] and chosen["extra"] == "-mcmodel=large":
        chosen["extra"] = asked.get("extra", "")
    return Way(**chosen)


def parse(words):
    """Choices of a command line: compiler=clang-14 level=-Os"""
    asked = {}
    for word in words:
        name, _, value = word.partition("=")
        if value not in CHOICES.get(name, {}):
            known = f"{name} is one of: {', '.join(map(repr, CHOICES[name]))}" if name in CHOICES else \
                f"choices are: {', '.join(CHOICES)}"
            raise ValueError(f"{word}: {known}")
        asked[name] = value
    return asked
