"""A random C++ program of one seed: functions that pass values in every way the ABI has, and leave in every way.

The functions are made last to first, and call those made before them, so the number of calls is bounded and known
(`cost`). Each adds to its own counter, which is what Karst's counts are compared with. program.h holds what both parts
of the program see, and each part is compiled by itself: part0.cc has main.
"""
import random

from special_functions import KINDS
from statements import Scope

FUNCTIONS = (14, 24)
TURNS = 5  # of everything, each with other values


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.functions = []  # those made so far, the innermost first
        self.made = 0
        names, weights = zip(*((kind, kind.weight) for kind in KINDS))
        for _ in range(self.random.randint(*FUNCTIONS)):
            self.add(self.random.choices(names, weights)[0](self))
        self.run_body = self.make_run()

    def next_number(self):
        self.made += 1
        return self.made - 1

    def add(self, function):
        function.part = self.random.randrange(2) if function.part is None else function.part
        function.make()
        self.functions.append(function)
        return function

    def callable(self, cost, accept=lambda f: True):
        """A function that may be called for that cost, those preferred that nobody calls; None if there is none."""
        fitting = [f for f in self.functions if f.general and f.cost <= cost and accept(f)]
        fresh = [f for f in fitting if not f.callers]
        if fresh and self.random.random() < 0.7:
            fitting = fresh
        return self.random.choice(fitting) if fitting else None

    def make_run(self):
        """Calls what nobody else does."""
        run = Scope(self, None, {}, budget=3000)
        lines = [f"  for (u32 turn = 0; turn < {TURNS}; ++turn) {{"]
        for function in [f for f in reversed(self.functions) if f.general and not f.callers]:
            for _ in range(self.random.randint(1, 3)):
                lines += run.call_statement(function, guarded=True)
        return [*lines, "  h = mix(h, turn);", "  }"]

    def logged(self):
        return sorted((entry for f in self.functions for entry in f.logged()), key=lambda entry: entry[0])

    def files(self):
        """Text of each file by its name."""
        for f in self.functions:
            f.choose_linkage()
        shared = [f for f in self.functions if not f.is_static]
        in_order = list(self.functions)
        self.random.shuffle(in_order)
        header = ['#pragma once', '#include "prelude.h"', *(f.declaration() for f in shared),
                  *(f.definition() for f in self.functions if f.in_header)]
        files = {"program.h": "\n".join(header) + "\n"}
        for part in range(2):
            lines = ["#define WITH_MAIN"] if part == 0 else []
            lines.append('#include "program.h"')
            lines += [f.declaration() for f in self.functions if f.is_static and f.part == part]
            lines += [f.definition() for f in in_order if not f.in_header and f.part == part]
            if part == 0:
                lines += [f"u64 calls[{max(1, self.made)}];", "const Logged logged[] = {"]
                lines += [f'    {{{number}, "{name}", {str(exact).lower()}}},' for number, name, exact in self.logged()]
                lines += ["};", f"const int logged_count = {len(self.logged())};"]
                lines += ["NOINLINE u64 run(u64 h) {", *self.run_body, "  return h;", "}"]
            files[f"part{part}.cc"] = "\n".join(lines) + "\n"
        return files
