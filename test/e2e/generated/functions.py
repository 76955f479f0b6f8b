"""Functions of a random program: what all have in common, plain ones, and those that end in tail calls.

A kind of function is a class: how often it is taken (`weight`), its signature, its body. special_functions.py has more.
"""
from statements import TYPES, Depth, Scope

GREATEST_COST = 160  # calls that one call of a function may lead to
ANY, REGISTERS = list(TYPES), ["u64", "u32", "double", "float", "Pair"]
# Tail calls need functions that have the same parameters.
SIGNATURES = [("u64", ["u64", "u64"]), ("u64", ["u64", "u64"]), ("u64", ["u64"]), ("void", ["u64"]), ("void", ["u64"]),
              ("u32", ["u32", "u32"]), ("u64", ["u64", "double"])]


class Function:
    """One function of the program; subclasses choose result, parameters and body."""

    weight = 1
    general = True  # may be called by anybody
    by_pointer = True

    def __init__(self, program):
        self.program = program
        self.random = program.random
        self.number = program.next_number()
        self.name = f"f{self.number}"
        self.callers = []
        self.throws = False
        self.part = None
        self.in_header = False
        self.cost = 1
        self.is_static = False
        self.result, self.parameters = "u64", {"x0": "u64"}
        r = self.random
        self.attributes = r.choices(["NOINLINE", "NOIPA", "", "NOINLINE MINSIZE", "MINSIZE", "OPTNONE",
                                     "NOINLINE __attribute__((cold))", "NOINLINE __attribute__((aligned(32)))"],
                                    [8, 3, 5, 3, 1, 0.5, 0.5, 0.5])[0]

    @property
    def exact(self):
        return "NO" in self.attributes

    def scope(self):
        scope = Scope(self.program, self, self.parameters, GREATEST_COST)
        scope.used = 1
        return scope

    def choose_types(self, types, most):
        r = self.random
        weights = [TYPES[t] for t in types]
        self.result = r.choices([*types, "void"], [*weights, 4])[0]
        self.parameters = {f"x{i}": r.choices(types, weights)[0] for i in range(r.randint(0, most))}

    def call_types(self):
        return list(self.parameters.values())

    def call_text(self, arguments):
        return f"{self.name}({', '.join(arguments)})"

    def start(self, scope):
        """h, made of the parameters."""
        lines = [f"  called({self.number});", f"  u64 h = {scope.number()}ul;"]
        for name in self.parameters:
            if self.random.random() < 0.9:
                lines.append(f"  h = mix(h, fold({name}));")
        return lines

    def end(self, scope):
        if self.result == "void":
            return ["  world = mix(world, h);"]
        if self.random.random() < 0.4:
            tail = self.program.callable(scope.left(), lambda f: f.result == self.result and not f.throws)
            if tail is not None:
                scope.used += tail.cost
                return [f"  return {scope.call(tail)};"]
        return [f"  return make_{self.result}(h);"]

    def make(self):
        scope = self.scope()
        self.lines = self.body(scope)
        self.finish(scope)

    def finish(self, scope):
        self.cost = scope.used
        self.throws = scope.throws
        self.noexcept = not self.throws and self.random.random() < 0.3

    def body(self, scope):
        return [*self.start(scope), *scope.block(2, most=4), *self.end(scope)]

    def signature(self):
        parameters = ", ".join(f"{kind} {name}" for name, kind in self.parameters.items())
        return f"{self.result} {self.name}({parameters}){' noexcept' if self.noexcept else ''}"

    def choose_linkage(self):
        known = [caller for caller in self.callers if caller is not None]
        inside = all(caller.part == self.part and not caller.in_header for caller in known)
        if len(known) != len(self.callers):  # run() calls it, in the first part
            inside = not known and self.part == 0
        self.is_static = not self.in_header and inside and self.random.random() < 0.6

    def declaration(self):
        storage = "static " if self.is_static else "inline " if self.in_header else ""
        return f"{self.attributes} {storage}{self.signature()};"

    def definition(self):
        storage = "static " if self.is_static else "inline " if self.in_header else ""
        return "\n".join([f"{storage}{self.signature()} {{", *self.lines, "}"])

    def logged(self):
        return [(self.number, self.name, self.exact)]


class Plain(Function):
    weight = 10

    def __init__(self, program):
        super().__init__(program)
        self.choose_types(ANY, self.random.choice([2, 3, 4, 10]))
        self.in_header = self.random.random() < 0.15


class Convention(Function):
    """Another calling convention: other registers are live at its sleds, and others are kept."""
    weight = 2
    by_pointer = False

    def __init__(self, program):
        super().__init__(program)
        self.choose_types(REGISTERS, 6)
        self.convention = self.random.choice(["MS_ABI", "MS_ABI", "PRESERVE_MOST", "REGCALL"])
        if self.convention == "PRESERVE_MOST":  # clang 14 keeps the register of the result, too
            self.result = "void"
        self.attributes += " " + self.convention

    def body(self, scope):
        scope.may_throw = False
        return super().body(scope)


class Tail(Function):
    """Ends in calls that become jumps, with conditions in front of them that become part of the jump."""
    weight = 14

    def __init__(self, program):
        super().__init__(program)
        self.kept = "x0"
        self.has_locals = self.has_musttail = False  # clang 14 cannot have both
        result, kinds = self.random.choice(SIGNATURES)
        self.result, self.parameters = result, {f"x{i}": kind for i, kind in enumerate(kinds)}

    def tail(self, scope, before):
        same = self.program.callable(scope.left(), lambda f: f.result == self.result and not f.throws
                                     and f.call_types() == self.call_types() and self not in f.callers)
        if same is None or self.random.random() < 0.2:
            return self.leave()
        scope.used += same.cost
        arguments = list(self.parameters) if self.random.random() < 0.8 else [
            f"{kind}({name} + {self.random.randint(0, 5)})" for name, kind in self.parameters.items()]
        if same.by_pointer and self.random.random() < 0.2:
            same.callers.append(self)
            at = scope.name("through")
            before.append(f"  static decltype(&{same.name}) volatile {at} = &{same.name};")
            text = f"{at}({', '.join(arguments)})"
        else:
            text = scope.call(same, arguments)
            if same.by_pointer and not self.has_locals and self.random.random() < 0.2:
                self.has_musttail = True
                return [f"  MUSTTAIL return {text};"]
        return [f"  {text};", "  return;"] if self.result == "void" else [f"  return {text};"]

    def finish(self, scope):
        super().finish(scope)
        self.noexcept = self.noexcept and not self.has_musttail  # clang cannot have both, either

    def leave(self):
        if self.result == "void":
            return [f"  world += {self.kept};", "  return;"]
        return [f"  return {self.result}({self.kept} * 5 + {self.random.randint(0, 99)});"]

    def condition(self, scope, before):
        r = self.random
        c = scope.name("c")
        flags = [f'  bool {c};', f'  asm("cmpq %1, %2" : "=@cc{r.choice(["b", "a", "l", "ge", "z", "ne"])}"({c}) : '
                 f'"r"((u64)x0), "r"({r.randint(0, 1 << 20)}ul));']
        if r.random() < 0.2 and not self.has_musttail:
            self.has_locals = True
            before += flags
            return c
        names = [n for n, t in self.parameters.items() if t != "double"]
        return r.choice([f"{names[0]} < {names[-1]}", f"x0 < {r.randint(1, 200)}", f"(x0 & {r.choice([1, 6, 256])})",
                         f"int(x0) {r.choice('<>')}= {r.randint(-9, 9)}", f"x0 == {r.randint(0, 3)}", "x0"])

    def body(self, scope):
        lines = [f"  called({self.number});"]
        if self.random.random() < 0.3:  # below the stack pointer, as a function that only jumps to others is a leaf
            lines += [f"  volatile u64 kept[{self.random.randint(1, 8)}];", "  kept[0] = x0;"]
            self.kept, self.has_locals = "(u64)kept[0]", True
        for _ in range(self.random.randint(0, 3)):
            before = []
            tail = self.tail(scope, before)
            condition = self.condition(scope, before)
            lines += [*before, f"  if ({condition}) {{", *tail, "  }"]
            lines += self.random.choice([[], [f"  world = mix(world, {self.number} + x0);"], ["  own ^= world;"]])
        before = []
        tail = self.tail(scope, before)
        return [*lines, *before, *tail]


class BranchInAssembly(Tail):
    """The branch itself is inline assembly: asm goto."""
    weight = 2

    def body(self, scope):
        before = []
        lines = [f"  called({self.number});"]
        above, below = self.tail(scope, before), self.tail(scope, before)
        jump = self.random.choice(["jb", "jge", "jz", "ja", "js"])
        branch = (f'  asm goto("cmpq %1, %0; {jump} %l2" : : "r"((u64)x0), "r"({self.random.randint(0, 1 << 33)}ul) '
                  ': "cc" : there);')
        return [*lines, *before, branch, *above, "there:", *below]


class Recursive(Function):
    weight = 2

    def __init__(self, program):
        super().__init__(program)
        self.limit = self.random.randint(2, 7)
        kind = self.random.choice(ANY)
        self.attributes = "NOINLINE"
        self.parameters = {"x0": "u64", "n": Depth(self.limit), "x1": kind}

    def body(self, scope):
        own = [f"  u64 r = {self.name}(mix(h, n), n - 1, make_{self.parameters['x1']}(h));",
               '  asm volatile("" : "+r"(r) : : "memory");', "  h = mix(h, r);"]
        before, after = scope.block(0, most=1), scope.block(0, most=1)
        return [*self.start(scope), "  if (n == 0) return h;", *before, *own, *after, "  return mix(h, n);"]

    def finish(self, scope):
        super().finish(scope)
        self.cost *= self.limit + 1


class TakingTurns(Function):
    """Two functions that jump to each other, or one that jumps to itself where the compiler cannot see it."""
    weight = 1

    def __init__(self, program):
        super().__init__(program)
        self.limit = self.random.randint(3, 12)
        self.attributes = self.random.choice(["NOINLINE", "NOINLINE MINSIZE", "NOIPA"])
        self.parameters = {"x0": "u64", "n": Depth(self.limit)}
        self.other = program.next_number()

    def body(self, scope):
        return [f"  called({self.number});", "  if (n == 0) return x0;",
                f"  return f{self.other}(mix(x0, {self.number}), n - 1);"]

    def choose_linkage(self):
        self.is_static = False

    def declaration(self):
        return f"{super().declaration()}\n{self.attributes} u64 f{self.other}(u64 x0, u32 n);"

    def definition(self):
        return super().definition() + "\n" + "\n".join([
            f"u64 f{self.other}(u64 x0, u32 n) {{", f"  called({self.other});",
            f"  static decltype(&{self.name}) volatile through = &{self.name};",
            "  if (n == 0) return x0 + 3;", f"  if (x0 & 1) return {self.name}(x0, n - 1);",
            "  return through(x0 * 3, n - 1);", "}"])

    def finish(self, scope):
        super().finish(scope)
        self.noexcept = False
        self.cost = self.limit + 1

    def logged(self):
        return [*super().logged(), (self.other, f"f{self.other}", True)]
