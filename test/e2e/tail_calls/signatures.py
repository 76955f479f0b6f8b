"""Random functions that make a tail call of one with the same parameters, which sums up all that it is given.

usage: signatures.py SEED COUNT   prints a program in C that is C++ as well
"""
import random
import sys

TYPES = {
    "char": "(char)({v} % 100)", "unsigned short": "(unsigned short){v}", "int": "{v}", "long": "{v}L << 33",
    "unsigned __int128": "(unsigned __int128){v} << 65", "float": "{v}.5f", "double": "{v}.25", "long double": "{v}.125L",
    "const char *": '&letters[{v} % 20]', "struct One": "one({v})", "struct Pair": "pair({v})", "struct Mixed": "mixed({v})",
    "struct Floats": "floats({v})", "struct Packed": "packed({v})", "struct Long": "extended({v})", "struct Big": "big({v})",
    "struct Rows": "rows({v})", "struct Wide": "wide({v})", "struct Widest": "widest({v})",
}
# What the callee's own code reads where nothing has its address: in loops that compilers may begin before the first element.
OWN = {
    "struct Big": "for (int i = 0; i < {n}; ++i) sum = sum * 31 + (U){p}.v[i];",
    "struct Rows": "for (int i = 0; i < 5; ++i) sum = sum * 31 + (U)({p}.v[i].a ^ {p}.v[i].b);",
    "struct Wide": "for (int i = 3; i-- > 0;) sum += (U)({p}.v[i].d[0] * 3 + {p}.v[i].d[3]);",
    "struct Widest": "for (int i = 0; i < {n}; i += 2) sum ^= (U){p}.v[1].l[i] + (U){p}.v[0].l[i + 5];",
    "struct Pair": "sum += (U){p}.a * 5 + (U){p}.b;", "struct Packed": "sum += (U){p}.b + (U){p}.a;",
    "char": "sum += (U){p} * 3;", "unsigned short": "sum += (U){p} * 5;", "int": "sum = sum * 7 + (U){p};",
    "long": "sum ^= (U){p};", "float": "sum += (U)({p} * 8);", "double": "sum += (U)({p} * 4);",
    "const char *": "sum += (U){p}[1];",
}
COMMON = list(TYPES)[:4] + ["double", "const char *"]
RESULTS = ["void", "int", "double", "long double", "struct Pair", "struct Mixed", "struct Big"]

PRELUDE = """
#include <stdio.h>
#include <string.h>
#define NOINLINE __attribute__((noinline))
typedef unsigned long U;
static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
struct One { char c; };
struct Pair { long a, b; };
struct Mixed { double a; int b; };
struct Floats { float a, b, c; };
struct Packed { char a; long b; } __attribute__((packed));
struct Long { long double a; };
struct Big { int v[7]; };
struct Rows { struct { long a, b; } v[5]; };
struct Wide { struct { double d[4]; } v[3]; };
struct Widest { struct { long l[12]; } v[2]; };
NOINLINE static struct One one(int v) { struct One s; s.c = (char)v; return s; }
NOINLINE static struct Pair pair(int v) { struct Pair s; s.a = v; s.b = v * 7; return s; }
NOINLINE static struct Mixed mixed(int v) { struct Mixed s; memset(&s, 0, sizeof s); s.a = v / 4.0; s.b = v; return s; }
NOINLINE static struct Floats floats(int v) { struct Floats s; s.a = v; s.b = v / 2.0f; s.c = 3; return s; }
NOINLINE static struct Packed packed(int v) { struct Packed s; s.a = (char)v; s.b = v; return s; }
NOINLINE static struct Long extended(int v) { struct Long s; memset(&s, 0, sizeof s); s.a = v / 8.0L; return s; }
NOINLINE static struct Big big(int v) { struct Big s; for (int i = 0; i < 7; ++i) s.v[i] = v * i; return s; }
NOINLINE static struct Rows rows(int v) { struct Rows s; for (int i = 0; i < 5; ++i) { s.v[i].a = v + i; s.v[i].b = v * i; } return s; }
NOINLINE static struct Wide wide(int v) { struct Wide s; for (int i = 0; i < 12; ++i) s.v[i / 4].d[i % 4] = v + i / 2.0; return s; }
NOINLINE static struct Widest widest(int v) { struct Widest s; for (int i = 0; i < 24; ++i) s.v[i / 12].l[i % 12] = v * i; return s; }
static U sum;
static volatile int sink;
NOINLINE static void add(const void *from, U size) { const unsigned char *p = (const unsigned char *)from; for (U i = 0; i < size; ++i) sum = sum * 31 + p[i]; }
"""
SIZES = {"long double": 10, "struct Mixed": 12, "struct Long": 10}


def function(n, chance):
    count = chance.choice((0, 1, 2, 3, 4, 5, 6, 6, 7, 8, 9, 12))
    kinds = [chance.choice(COMMON if chance.random() < 0.6 else list(TYPES)) for _ in range(count)]
    result = chance.choice(RESULTS)
    parameters = ", ".join(f"{kind} p{i}" for i, kind in enumerate(kinds)) or "void"
    names = ", ".join(f"p{i}" for i in range(count))
    sums = "".join(" " + OWN[kind].format(p=f"p{i}", n=chance.randrange(2, 7)) if kind in OWN and chance.random() < 0.5 else
                   f" add(p{i}, 1);" if "*" in kind else f" add(&p{i}, {SIZES.get(kind, f'sizeof p{i}')});"
                   for i, kind in enumerate(kinds))
    value = {"void": "", "int": "return (int)sum;", "double": "return (double)(sum % 1000);",
             "long double": "return (long double)(sum % 1000) / 3;", "struct Pair": "return pair((int)(sum % 1000));",
             "struct Mixed": "return mixed((int)(sum % 1000));", "struct Big": "return big((int)(sum % 1000));"}[result]
    give = "" if result == "void" else "return "
    arguments = ", ".join(TYPES[kind].format(v=chance.randrange(1, 120)) for kind in kinds)
    call = f"f{n}({arguments})"
    # It is static at times: compilers that know all callers may pass what they like.
    static = "static " if chance.random() < 0.4 else ""
    target = f"(*to{n})" if chance.random() < 0.5 else f"g{n}"
    text = f"NOINLINE {static}{result} g{n}({parameters}) {{ sum += {n};{sums} sink = 1; {value} }}\n"
    text += f"{static}{result} (*volatile to{n})({parameters}) = g{n};\n"
    text += f"NOINLINE {static}{result} f{n}({parameters}) {{ sink = {n}; {give}{target}({names}); }}\n"
    if result == "void":
        return text, f"{call};"
    return text, f"{{ {result} r = {call}; add(&r, {SIZES.get(result, 'sizeof r')}); }}"


def program(seed, count):
    chance = random.Random(seed)
    made = [function(n, chance) for n in range(count)]
    body = "\n".join(f'  {use}\n  printf("{n} %lx\\n", sum);' for n, (_, use) in enumerate(made))
    return PRELUDE + "".join(text for text, _ in made) + f"int main(void) {{\n{body}\n  return 0;\n}}\n"


if __name__ == "__main__":
    print(program(int(sys.argv[1]), int(sys.argv[2])))
