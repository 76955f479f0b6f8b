"""Statements of random functions. A Scope knows what may be named where a statement stands, and what calls may cost.

`h` is the number that a function computes; every statement changes it.
"""

TYPES = {  # those that `make_T` and `fold` know: how often each is taken
    "u64": 10, "u32": 6, "u16": 1, "u8": 1, "bool": 1, "u128": 2, "float": 2, "double": 5, "ld": 3, "quad": 1, "cd": 1,
    "cld": 1, "v4": 2, "v2d": 2, "v8": 2, "v4d": 2, "Pair": 2, "Mixed": 2, "Doubles": 2, "Floats": 1, "Small": 1,
    "Big": 2, "Wide": 1, "Packed": 1, "Vector": 1, "Empty": 1, "Aligned": 1, "Box": 2}
THROWN = ["u64({x})", "Error({x})", "Worse({x})", "Box({x})", "make_double({x})"]
CONDITIONS = ["(h & 7) < 3", "(h & 1) != 0", "u32(h) > 0x80000000u", "(h & 0xf0) != 0", "long(h) < 0", "h % 3 == 1"]
# Conditions that come out of inline assembly in flags: {c} is a name that is free.
FLAG_CONDITIONS = ['asm("addq %2, %1" : "=@ccc"({c}), "+r"({s}) : "r"(h ^ {n}ul));',
                   'asm("subq %2, %1" : "=@ccl"({c}), "+r"({s}) : "r"(h >> 3));',
                   'asm("btq $5, %1" : "=@ccc"({c}) : "r"({s}));',
                   'asm("testq %1, %1" : "=@ccs"({c}) : "r"({s}));',
                   'asm("cmpq %1, %2" : "=@ccbe"({c}) : "r"({s}), "r"(h));']
# What looks like a sled, or like the end of a function, to who reads assembly.
LOOKALIKES = ['asm volatile(".byte 0x0f, 0x1f, 0x44, 0x00, 0x00");',
              'asm volatile("nopl 0(%%rax,%%rax,1)" : : : "memory");',
              'asm volatile("jmp 1f\\n\\tret\\n1:");', 'asm volatile("jmp 1f\\n\\t.p2align 1\\n\\t.nops 9\\n1:");',
              'asm volatile("990: nop\\n\\t.pushsection .note.probe,\\"\\",@note\\n\\t.quad 990b\\n\\t.popsection");',
              'asm volatile("# call __fentry__\\n\\t/* ret */ nop; nop # jmp *%%rax");']


def value(kind, x):
    return f"{x} % {kind.limit + 1}" if hasattr(kind, "limit") else f"make_{kind}({x})"


class Depth(str):
    """A parameter that bounds recursion."""

    def __new__(cls, limit):
        made = super().__new__(cls, "u32")
        made.limit = limit
        return made


class Scope:
    """Where a statement stands. `parameters`: type by name. Tells by `throws` whether what was made may throw."""

    def __init__(self, program, function, parameters, budget):
        self.program = program
        self.random = program.random
        self.function = function
        self.parameters = parameters
        self.budget = budget
        self.used = 0
        self.throws = False
        self.may_throw = True
        self.objects = True  # with destructors
        self.names = 0

    def name(self, stem):
        self.names += 1
        return f"{stem}{self.names}"

    def number(self):
        return self.random.getrandbits(self.random.choice([4, 12, 31, 60]))

    def condition(self):
        """(lines before it, the condition)"""
        if self.random.random() < 0.3:
            c, s = self.name("c"), self.name("s")
            line = self.random.choice(FLAG_CONDITIONS).format(c=c, s=s, n=self.number())
            return [f"  bool {c};", f"  u64 {s} = h * 3;", "  " + line], c
        return [], self.random.choice(CONDITIONS)

    def argument(self, kind):
        same = [name for name, own in self.parameters.items() if own == kind and not hasattr(kind, "limit")]
        if same and self.random.random() < 0.5:
            return self.random.choice(same)
        return value(kind, f"(h + {self.number()}ul)")

    def call(self, function, arguments=None):
        """An expression of the function's result; the caller accounts for its cost."""
        function.callers.append(self.function)
        if arguments is None:
            arguments = [self.argument(kind) for kind in function.call_types()]
        return function.call_text(arguments)

    def call_statement(self, function, guarded=False, times=1):
        self.used += function.cost * times
        text = self.call(function)
        line = f"  {text}; h = mix(h, world);" if function.result == "void" else f"  h = mix(h, fold({text}));"
        if function.throws:
            if guarded or not self.may_throw or self.random.random() < 0.4:
                return self.catching([line])
            self.throws = True
        return [line]

    def catching(self, lines):
        r = self.random
        kinds = ["const Error& e) { h = mix(h, e.payload + fold(e.more)); }", "u64 e) { h = mix(h, e); }",
                 "Box e) { h = mix(h, e.v); }", "double e) { h = mix(h, fold(e)); }",
                 "const Worse& e) { h = mix(h, e.rest[2]); }"]
        handlers = r.sample(kinds, r.randint(0, 3))
        # A base before what derives from it takes all: a warning, not an error.
        rethrow = self.may_throw and self.function is not None and r.random() < 0.2
        self.throws |= rethrow
        handlers.append(f"...) {{ h = mix(h, {self.number()}ul);{' throw;' if rethrow else ''} }}")
        return ["  try {", *lines, *(f"  }} catch ({text[:-2]}" for text in handlers), "  }"]

    def throw(self):
        self.throws = True
        return f"  throw {self.random.choice(THROWN).format(x='h + 1')};"

    def left(self, times=1):
        return (self.budget - self.used) // times

    def statement(self, depth, times=1):
        r = self.random
        kind = r.choices(["call", "add", "if", "loop", "switch", "throw", "guard", "memory", "state", "pointer",
                          "assembly"],
                         [10, 2, 4 * (depth > 0), 2 * (depth > 0), 2 * (depth > 0), 1, 1, 1, 0.5, 2, 1])[0]
        return getattr(self, "make_" + kind)(depth, times)

    def block(self, depth, times=1, most=3):
        lines = []
        for _ in range(self.random.randint(1, most)):
            lines += self.statement(depth, times)
        return lines

    def make_call(self, depth, times):
        function = self.program.callable(self.left(times))
        if function is None:
            return self.make_add(depth, times)
        return self.call_statement(function, times=times)

    def make_pointer(self, depth, times):
        function = self.program.callable(self.left(times), lambda f: f.by_pointer and not f.throws)
        if function is None:
            return self.make_add(depth, times)
        self.used += function.cost * times
        function.callers.append(self.function)
        at = self.name("through")
        arguments = ", ".join(self.argument(kind) for kind in function.call_types())
        call = f"{at}({arguments})"
        return ["  {", f"  static decltype(&{function.name}) volatile {at} = &{function.name};",
                f"  {call};" if function.result == "void" else f"  h = mix(h, fold({call}));", "  }"]

    def make_add(self, depth, times):
        return [self.random.choice([f"  h = mix(h, {self.number()}ul);", "  own += h;", "  world = mix(world, h);",
                                    f"  h = mix(h, flags_of_sum(h, {self.number()}ul));"])]

    def make_if(self, depth, times):
        before, condition = self.condition()
        lines = [*before, f"  if ({condition}) {{", *self.block(depth - 1, times)]
        if self.random.random() < 0.5:
            lines += ["  } else {", *self.block(depth - 1, times)]
        return ["  {", *lines, "  }", "  }"]

    def make_loop(self, depth, times):
        turns, i = self.random.randint(2, 4), self.name("i")
        return [f"  for (u32 {i} = 0; {i} <= (h & {self.random.choice([1, 3])}) && {i} < {turns}; ++{i}) {{",
                *self.block(depth - 1, times * turns, 2), "  }"]

    def make_switch(self, depth, times):
        count = self.random.randint(3, 7)
        lines = [f"  switch (h % {count + 1}) {{"]
        for case in range(count):
            lines += [f"  case {case}: {{", *self.block(0, times, 1), "  }"]
            if self.random.random() < 0.8:
                lines.append("  break;")
        return [*lines, "  default: h = mix(h, 1);", "  }"]

    def make_throw(self, depth, times):
        if not self.may_throw or self.function is None:
            return self.make_add(depth, times)
        return ["  if ((h & 3) == 1) {", self.throw(), "  }"]

    def make_guard(self, depth, times):
        if not self.objects:
            return self.make_add(depth, times)
        return [f"  Guard {self.name('guard')}(h);"]

    def make_memory(self, depth, times):
        at = self.name("m")
        if self.random.random() < 0.5:  # a stack that is aligned anew, and one that moves
            return ["  {", f"  alignas(64) volatile u64 {at}[8];", f"  {at}[h & 7] = h; {at}[1] = 5;",
                    f"  h = mix(h, {at}[1] + (u64({at}) & 63));", "  }"]
        return ["  {", f"  volatile u8* {at} = (volatile u8*)__builtin_alloca(16 + (h & 255));",
                f"  {at}[h & 15] = u8(h);", f"  h = mix(h, {at}[h & 15]);", "  }"]

    def make_state(self, depth, times):
        return ["  h = mix(h, machine_state());"]

    def make_assembly(self, depth, times):
        return ["  " + self.random.choice(LOOKALIKES)]
