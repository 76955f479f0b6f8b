"""Functions whose calls, bodies or ways out are unlike others': variable arguments, jumps, virtual functions."""
from functions import ANY, BranchInAssembly, Convention, Function, Plain, Recursive, TakingTurns, Tail
from statements import Scope


class Variadic(Function):
    """Reads what it was given from registers and memory; half of them give the list on to another function."""
    weight = 3
    by_pointer = False
    PASSED = ["u64", "u32", "double", "ld", "v4", "v2d", "Pair", "Mixed", "Doubles", "Big", "Wide"]

    def __init__(self, program):
        super().__init__(program)
        r = self.random
        self.passed = [r.choice(self.PASSED) for _ in range(r.randint(1, 12))]
        self.parameters = {f"x{i}": r.choice(["u64", "double", "u32"]) for i in range(r.randint(1, 3))}
        self.reader = program.next_number() if r.random() < 0.5 else None
        if self.reader is not None:
            self.attributes = "NOINLINE"

    def call_types(self):
        return [*self.parameters.values(), *self.passed]

    def signature(self):
        return super().signature().replace(")", ", ...)", 1)

    def body(self, scope):
        last = list(self.parameters)[-1]
        reads = [f"  h = mix(h, fold(va_arg(*list, {kind})));" for kind in self.passed]
        lines = [*self.start(scope), "  va_list rest;", f"  va_start(rest, {last});"]
        if self.reader is None:
            lines += ["  va_list* list = &rest;", *reads]
        else:
            self.reads = reads
            lines.append(f"  h = read{self.number}(&rest, h);")
            scope.used += 1
        return [*lines, "  va_end(rest);", *scope.block(0, most=1), "  return h;"]

    def declaration(self):
        reader = [] if self.reader is None else [f"NOINLINE u64 read{self.number}(va_list* list, u64 h);"]
        return "\n".join([*reader, super().declaration()])

    def definition(self):
        if self.reader is None:
            return super().definition()
        return "\n".join([f"u64 read{self.number}(va_list* list, u64 h) {{", f"  called({self.reader});", *self.reads,
                          "  return h;", "}", super().definition()])

    def logged(self):
        return [*super().logged(), *([] if self.reader is None else [(self.reader, f"read{self.number}", True)])]


class ComputedGoto(Function):
    weight = 2

    def body(self, scope):
        scope.may_throw = scope.objects = False
        count, turns = self.random.randint(3, 5), self.random.randint(3, 6)
        go = f"  goto *places[steps++ >= {turns} ? {count} : (h >> 5) % {count}];"
        labels = ", ".join(f"&&at{i}" for i in range(count + 1))
        lines = [*self.start(scope), f"  static const void* const places[] = {{{labels}}};", "  u32 steps = 0;", go]
        for i in range(count):
            lines += [f"at{i}:", "  {", *scope.block(1, turns, 1), "  }", go]
        tail = self.end(scope)
        return [*lines, f"at{count}:", *tail]


class Jumping(Function):
    """setjmp, and a longjmp out of functions below it, which have no objects."""
    weight = 2
    WAYS = [("jmp_buf", "setjmp(place)", "longjmp"), ("jmp_buf", "_setjmp(place)", "_longjmp"),
            ("sigjmp_buf", "sigsetjmp(place, 1)", "siglongjmp"), ("sigjmp_buf", "sigsetjmp(place, 0)", "siglongjmp")]

    def __init__(self, program):
        super().__init__(program)
        self.attributes = "NOINLINE"
        self.jumper, self.between = program.next_number(), program.next_number()
        self.buffer, self.set, self.jump = self.random.choice(self.WAYS)

    def body(self, scope):
        scope.may_throw = scope.objects = False
        inner = scope.block(0, most=1)
        below = Scope(self.program, self, {}, scope.left())
        below.may_throw = below.objects = False
        self.between_lines = below.block(0, most=1)
        scope.used += below.used
        return [f"  called({self.number});", f"  {self.buffer} place;", "  volatile u64 kept = x0;",
                "  volatile u32 turns = 0;", f"  switch ({self.set}) {{", "  case 0: kept = mix(kept, 3); break;",
                "  case 1: kept = mix(kept, 5); break;", "  default: kept = mix(kept, 7);", "  }",
                "  turns = turns + 1;", "  u64 h = kept;",
                f"  if (turns < 3) h = mix(h, between{self.number}(place, h));", *inner, "  return mix(h, turns);"]

    def finish(self, scope):
        super().finish(scope)
        self.cost = 3 * scope.used + 6

    def declaration(self):
        buffer = "__jmp_buf_tag*"
        return "\n".join([f"NOINLINE u64 jump{self.number}({buffer} place, u64 x);",
                          f"NOINLINE u64 between{self.number}({buffer} place, u64 h);", super().declaration()])

    def definition(self):
        low = self.random.choice([1, 3])
        return "\n".join([
            f"u64 jump{self.number}(__jmp_buf_tag* place, u64 x) {{", f"  called({self.jumper});",
            f"  if (x & {low}) {self.jump}(place, 1 + int(x >> 60));", "  return x * 3;", "}",
            f"u64 between{self.number}(__jmp_buf_tag* place, u64 h) {{", f"  called({self.between});",
            *self.between_lines, *self.random.choice([[f"  return jump{self.number}(place, h);"],
                                                      [f"  h = mix(h, jump{self.number}(place, h));", "  return h;"]]),
            "}", super().definition()])

    def logged(self):
        return [*super().logged(), (self.jumper, f"jump{self.number}", True),
                (self.between, f"between{self.number}", True)]


class Virtual(Function):
    """A virtual function and the one that overrides it, of a class with two bases."""
    weight = 2
    by_pointer = False

    def __init__(self, program):
        super().__init__(program)
        self.choose_types(ANY, 3)
        self.derived = program.next_number()
        self.in_header = True
        self.attributes = self.random.choice(["NOINLINE", "NOINLINE MINSIZE"])

    def call_text(self, arguments):
        at = f"at{self.number}" if self.random.random() < 0.7 else f"call{self.number}"
        if at.startswith("at"):
            return f"{at}(h)->{super().call_text(arguments)}"
        return f"(at{self.number}(h)->*member{self.number})({', '.join(arguments)})"

    def declaration(self):
        inner = f"{self.attributes} virtual {self.signature()}"
        override = f"{self.attributes} {self.signature()} override"
        n = self.number
        return "\n".join([
            f"struct Base{n} {{", "  u64 v = 3;", f"  {inner};", "};",
            f"struct Other{n} {{", "  u64 w = 4;", f"  virtual u64 other{n}() {{ return w; }}", "};",
            f"struct Derived{n} : Other{n}, Base{n} {{", f"  {override};", "};",
            f"inline Base{n} base{n};", f"inline Derived{n} derived{n};",
            f"inline {self.result} (Base{n}::* volatile member{n})({', '.join(self.parameters.values())}) =",
            f"    &Base{n}::{self.name};",
            f"HELPER Base{n}* at{n}(u64 h) {{ return h & 2 ? &base{n} : &derived{n}; }}"])

    def definition(self):
        n = self.number
        own = self.signature().replace(f"{self.name}(", f"Base{n}::{self.name}(", 1)
        over = self.signature().replace(f"{self.name}(", f"Derived{n}::{self.name}(", 1)
        return "\n".join([f"inline {own} {{", *self.lines, "}", f"inline {over} {{", f"  called({self.derived});",
                          f"  return Base{n}::{self.name}({', '.join(self.parameters)});", "}"])

    def finish(self, scope):
        super().finish(scope)
        self.cost += 1

    def logged(self):
        n = self.number
        return [(n, f"Base{n}::{self.name}", True), (self.derived, f"Derived{n}::{self.name}", True)]


class Template(Function):
    """Two instances of one template, in the header: both parts have them, the linker keeps one."""
    weight = 1
    by_pointer = False

    def __init__(self, program):
        super().__init__(program)
        self.choose_types(ANY, 3)
        self.second = program.next_number()
        self.in_header = True
        self.attributes = "NOINLINE"

    def call_text(self, arguments):
        return f"{self.name}<{self.random.randint(0, 1)}>({', '.join(arguments)})"

    def body(self, scope):
        return [line.replace(f"called({self.number})", f"called(N ? {self.second} : {self.number})")
                for line in super().body(scope)]

    def declaration(self):
        return f"template <u32 N> {self.attributes} {self.signature()};"

    def definition(self):
        return "\n".join([f"template <u32 N> {self.signature()} {{", *self.lines, "}"])

    def logged(self):
        return [(self.number, f"{self.name}<0u>", True), (self.second, f"{self.name}<1u>", True)]


class Naked(Function):
    """All of it is assembly, its return as well: there is no exit's sled, so it is kept out of the trace."""
    weight = 0.5

    def __init__(self, program):
        super().__init__(program)
        self.attributes = "NAKED"
        self.parameters = {"x0": "u64", "x1": "u64"}

    def body(self, scope):
        return [f'  asm("leaq {self.random.randint(1, 99)}(%rdi,%rsi,4), %rax\\n\\tret");']

    def logged(self):
        return []


class Cloned(Function):
    """One copy for each of several processors, chosen by an IFUNC's resolver before any constructor has run."""
    weight = 1
    by_pointer = False

    def __init__(self, program):
        super().__init__(program)
        self.choose_types(["u64", "u32", "double", "Pair"], 3)
        self.attributes = "NOINLINE"

    def body(self, scope):
        scope.may_throw = False  # gcc's callers of such functions do not expect it
        scope.budget = scope.used  # it calls nothing: the clone with AVX passes 32-byte vectors otherwise
        return super().body(scope)

    def choose_linkage(self):
        self.is_static = False

    def definition(self):
        return f"CLONES {super().definition()}"


KINDS = [Plain, Convention, Tail, BranchInAssembly, Recursive, TakingTurns, Variadic, ComputedGoto, Jumping, Virtual,
         Template, Naked, Cloned]
