"""Makes programs in C and C++ whose functions have random parameters and results, and knows what each call is given.

Program(random.Random(seed), cpp).text is the source; .truth has for each function its calls, one after the other: what
each argument, or member of one, is as `karst tree` would show it. What is not in there must not be shown.
"""
import random

SCALARS = {
    "signed char": (-100, 100), "unsigned char": (0, 250), "short": (-30000, 30000), "unsigned short": (0, 60000),
    "int": (-2**31, 2**31 - 1), "unsigned": (0, 2**32 - 1), "long": (-2**62, 2**62), "unsigned long": (0, 2**63),
}
FLOATS = ("float", "double")
HIDDEN = {"long double": "{0}.5L", "__int128": "((__int128){0} << 64) + {0}", "_Complex float": "{0}.5f",
          "_Complex double": "{0}.25", "v4f": "(v4f){{{0}, 1, 2, 3}}", "v2f": "(v2f){{{0}, 1}}",
          "v2l": "(v2l){{{0}, 1}}", "v8f": "(v8f){{{0}, 1, 2, 3, 4, 5, 6, 7}}"}
HEAD = """#include <stdio.h>
#include <stdlib.h>
typedef float v4f __attribute__((vector_size(16)));
typedef float v2f __attribute__((vector_size(8)));
typedef long v2l __attribute__((vector_size(16)));
typedef float v8f __attribute__((vector_size(32)));
enum Color { RED, GREEN = 5, BLUE = 70000 };
#define NOINLINE __attribute__((noinline))
volatile long sink;
static inline void use(const void* p, unsigned long n) {
  for (unsigned long i = 0; i < n; ++i) sink += ((const unsigned char*)p)[i];
}
"""


class Type:
    """`members`: (name, Type, bits) of a class. `kind`: scalar, float, enum, bool, pointer, hidden, array, class, union."""
    def __init__(self, name, kind, members=(), by_reference=False, count=0, element=None):
        self.name, self.kind, self.members, self.count, self.element = name, kind, members, count, element
        self.by_reference = by_reference

    def declare(self, name):
        return f"{self.element.name} {name}[{self.count}]" if self.kind == "array" else f"{self.name} {name}"


class Program:
    def __init__(self, rng, cpp, functions=25, odd=True):
        self.rng, self.cpp, self.odd = rng, cpp, odd
        self.types, self.lines, self.truth = [], [], {}
        self.classes = [self.make_class(i) for i in range(14)]
        self.calls = []
        for i in range(functions):
            self.make_function(i)
        self.text = HEAD + "\n".join(self.lines) + "\nint main(void) {\n" + "\n".join(self.calls) + "\n  return 0;\n}\n"

    def scalar(self):
        r = self.rng.random()
        if r < 0.45:
            return Type(self.rng.choice(list(SCALARS)), "scalar")
        if r < 0.75:
            return Type(self.rng.choice(FLOATS), "float")
        if r < 0.82:
            return Type("enum Color", "enum")
        if r < 0.88:
            return Type("bool" if self.cpp else "_Bool", "bool")
        return Type("void*", "pointer")

    def make_class(self, number):
        name = f"S{number}"
        is_union = self.odd and self.rng.random() < 0.15
        count = self.rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4)) if self.odd else self.rng.choice((1, 2, 3))
        if (is_union or not self.cpp) and count == 0:
            count = 1
        members, text = [], []
        for i in range(count):
            r = self.rng.random()
            bits = 0
            if r < 0.62 or not self.odd:
                of = self.scalar()
            elif r < 0.70 and self.classes_so_far():
                of = self.rng.choice(self.classes_so_far())
            elif r < 0.80:
                element = self.rng.choice((Type("char", "scalar"), Type("int", "scalar"), Type("float", "float"),
                                           Type("double", "float")))
                of = Type("", "array", count=self.rng.choice((1, 2, 3, 4)), element=element)
            elif r < 0.90:
                of, bits = Type(self.rng.choice(("int", "unsigned", "long")), "scalar"), self.rng.randint(1, 31)
            else:
                of = Type(self.rng.choice([h for h in HIDDEN if h != "v8f" or self.rng.random() < 0.2]), "hidden")
            members.append((f"m{number}_{i}", of, bits))
            aligned = self.odd and self.rng.random() < 0.03
            text.append(("_Alignas(16) " if aligned and not self.cpp else "alignas(16) " if aligned else "") +
                        of.declare(f"m{number}_{i}") + (f" : {bits}" if bits else "") + ";" if not (bits and aligned) else
                        of.declare(f"m{number}_{i}") + f" : {bits};")
        attribute, base, extra, by_reference = "", "", "", False
        if self.odd and self.rng.random() < 0.12:
            attribute = self.rng.choice(("__attribute__((packed)) ", "__attribute__((aligned(16))) "))
        if self.cpp and not is_union:
            bases = [c for c in self.classes_so_far() if c.kind == "class" and not c.by_reference]
            if bases and self.rng.random() < 0.2:
                of = self.rng.choice(bases)
                base = f" : {of.name}"
                members.insert(0, ("", of, 0))
            extra = self.rng.choice(("",) * 6 + (f"~{name}() {{ sink += 1; }}", f"{name}() = default; {name}(const {name}&) = default;",
                                     f"~{name}() = default;",
                                     f"{name}() = default; {name}(const {name}& o) {{ *(char*)this = 0; copy(o); }} void copy(const {name}& o) {{ __builtin_memcpy((void*)this, (const void*)&o, sizeof o); }}"
                                     if count or base else ""))
            by_reference = "sink" in extra or "memcpy" in extra
        by_reference = by_reference or any(m[1].by_reference for m in members)
        if is_union and by_reference:
            members = [(f"m{number}_0", Type("int", "scalar"), 0)]
            text, by_reference = [f"int m{number}_0;"], False
        made = Type(name, "union" if is_union else "class", members, by_reference)
        keyword = "union" if is_union else "struct"
        if not self.cpp:
            self.lines.append(f"typedef {keyword} {attribute}{name} {{ {' '.join(text)} }} {name};")
        else:
            self.lines.append(f"{keyword} {attribute}{name}{base} {{ {' '.join(text)} {extra} }};")
        self.types.append(made)
        return made

    def classes_so_far(self):
        return self.types

    def any_type(self, result=False):
        r = self.rng.random()
        if r < 0.45:
            return self.scalar()
        if r < 0.55 and self.odd:
            return Type(self.rng.choice(list(HIDDEN)), "hidden")
        return self.rng.choice(self.classes)

    def value(self, of):
        """A value as C has it, and as it is shown."""
        if of.kind == "scalar":
            low, high = SCALARS.get(of.name, (0, 100))
            n = self.rng.choice((self.rng.randint(low, high), self.rng.randint(max(low, -9), 9)))
            suffix = "UL" if of.name == "unsigned long" else "L" if of.name == "long" else ""
            return f"({of.name})({n}{suffix})", str(n)
        if of.kind == "float":
            n = self.rng.randint(-4000, 4000)
            number = n / 4
            return f"({of.name}){number!r}", str(int(number)) if number == int(number) else repr(number)
        if of.kind == "enum":
            name = self.rng.choice(("RED", "GREEN", "BLUE"))
            return name, name
        if of.kind == "bool":
            value = self.rng.random() < 0.5
            return str(int(value)), "true" if value else "false"
        if of.kind == "pointer":
            n = self.rng.randint(1, 2**40)
            return f"(void*){n}UL", hex(n)
        return HIDDEN[of.name].format(self.rng.randint(1, 9)), None

    def fill(self, of, place, path, truth, code, shown=True):
        """Assigns values to an object's parts."""
        if of.kind == "array":
            for i in range(of.count):
                code.append(f"{place}[{i}] = {self.value(of.element)[0]};")
        elif of.kind in ("class", "union"):
            members = of.members[:1] if of.kind == "union" else of.members
            for name, member, bits in members:
                if bits:
                    code.append(f"{place}.{name} = {self.rng.randint(0, 2**(bits - 1) - 1)};")
                    continue
                inner = f"{place}.{name}" if name else f"static_cast<{member.name}&>({place})"
                below = f"{path}.{name}" if name and path else name or path
                self.fill(member, inner, below, truth, code, shown and of.kind == "class")
        else:
            text, seen = self.value(of)
            code.append(f"{place} = {text};")
            if shown and seen is not None:
                truth[path] = seen

    def make_function(self, number):
        name = f"f{number}"
        parameters = [self.any_type() for _ in range(self.rng.choice((0, 1, 2, 3, 4, 5, 6, 8, 10, 12)))]
        result = self.any_type(True) if self.rng.random() < 0.7 else None
        references = [self.cpp and p.kind in ("scalar", "float") and self.rng.random() < 0.1 for p in parameters]
        variadic = self.rng.random() < 0.06 and not any(p.by_reference for p in parameters) and parameters
        # What callers know that nobody reads they may not write to memory.
        used = [ref or p.kind in ("class", "union") or self.rng.random() < 0.8 for p, ref in zip(parameters, references)]
        static = self.rng.random() < 0.4
        member = self.cpp and self.rng.random() < 0.15
        declared = ", ".join(f"const {p.name}& p{i}" if ref else p.declare(f"p{i}")
                             for i, (p, ref) in enumerate(zip(parameters, references)))
        declared += ", ..." if variadic else ""
        body = [f"  use(&p{i}, sizeof p{i});" for i in range(len(parameters)) if used[i]]
        body.append("  for (int i = 0; i < 3; ++i) sink += i;")
        if result:
            self.lines.append(f"{result.declare(f'r{number}')};" if result.kind != "array" else "")
            body.append(f"  return r{number};")
        head = f"{result.name if result else 'void'} {name}({declared or ('' if self.cpp else 'void')})"
        text = "{\n" + "\n".join(body) + "\n}"
        if member:
            self.lines.append(f"struct M{number} {{ int x; NOINLINE {head} {text} }} o{number};")
        else:
            self.lines.append(f"{'static ' if static else ''}NOINLINE {head} {text}")
        self.truth[name] = []
        for call in range(self.rng.choice((1, 1, 2, 3))):
            truth, code = {}, []
            # Constants tempt compilers to make copies of the function.
            for i, p in enumerate(parameters):
                code.append(f"{p.declare(f'a{i}')};")
                self.fill(p, f"a{i}", f"p{i}", truth, code)
            shown_result = {}
            if result:
                self.fill(result, f"r{number}", "", shown_result, code)
            arguments = ", ".join(f"a{i}" for i in range(len(parameters))) + (", 7, 2.5" if variadic else "")
            called = f"o{number}.{name}" if member else name
            uses = f"{{ {result.name} got = {called}({arguments}); use(&got, sizeof got); }}" if result and call == 0 \
                else f"{called}({arguments});"
            self.calls.append("  { " + " ".join(code) + f" {uses} }}")
            self.truth[name].append((truth, shown_result))


if __name__ == "__main__":
    import sys
    print(Program(random.Random(int(sys.argv[1])), sys.argv[2] == "cpp").text)
