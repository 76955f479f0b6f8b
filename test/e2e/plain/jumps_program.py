"""Random C programs whose functions mix computed gotos, switches and tail calls by tables, pointers and registers.

With -DLOGGED they write the name of each function to stderr as it is called. In both forms stderr ends with a checksum.
"""
import random

HEAD = """#include <stdio.h>
#ifdef LOGGED
#define LOG(name) fprintf(stderr, "%s\\n", name)
#else
#define LOG(name) (void)0
#endif
#define ALONE __attribute__((noinline))
typedef long (*call)(long, long);
struct object { long pad; call act; call more[2]; };
static volatile long sink;
"""
STEPS = ("x = x * 3 + y;", "y += x >> 2;", "x ^= y << 1; if (x > 100000) x /= 7;", "y = y * 5 - x; if (y < 0) y = -y;",
         "for (int i = 0; i < 3; i++) x += i ^ y;")
SWITCH = ("switch (x & 7) { case 0: return leaf0(x, y); case 1: x += 5; break; case 2: return o->more[0](x, y); case 3: y = 3; break;"
          " case 4: return x; case 5: return leaf2(y, 1); case 6: x = 1; break; default: y++; } return leaf1(x, y);")
LABELS = ("static const void* const", "static void*", "const void* const", "static const int")
BEGINS = (0, 0, ord("a"), 1, 3)  # what a table's first index stands for


def leave(r):
    """A statement that leaves a function, mostly by a tail call."""
    t, leaf = r.randrange(3), r.randrange(3)
    return r.choice((
        f"return table{t}[(unsigned long)x % count{t}](x, y);", f"return table{t}[x & 1](y, x);", "return pointer(x, y);",
        "return o->act(x, y);", "return g(x, y);", f"return leaf{leaf}(x, y);", SWITCH,
        f'{{ long k = (x & 1) + 7; __asm__("" : "+r"(k)); return table{t}[k - 7](x, y); }}',
        f"{{ call const some[] = {{leaf{leaf}, leaf{r.randrange(3)}}}; return some[x & 1](x, y); }}"))


def function(r, f):
    labels = [f"l{f}_{i}" for i in range(r.randint(2, 5))]
    kind, begin, width = r.choice(LABELS), r.choice(BEGINS), r.choice(("", "(long)", "(unsigned char)"))
    go = f"op[{width}*code++ - {begin}]"
    words = [f"&&{label}" for label in labels]
    if kind == "static const int":
        words = [f"(char*)&&{label} - (char*)&&{labels[0]}" for label in labels]
        go = f"(char*)&&{labels[0]} + {go}"
    calls = r.random() < .35  # then it has a frame
    lines = [f"ALONE long f{f}(const unsigned char* code, long x, long y, struct object* o, call g) {{"]
    if r.random() < .25:
        lines.append("  if (!code) return 0;")
    lines.append(f"  {kind} op[] = {{{', '.join(words)}}};")
    if calls and r.random() < .5:
        lines.append(f"  x += leaf{r.randrange(3)}(y, x);")
    lines.append(f"  goto *(void*)({go});")
    for label in labels:
        steps = [r.choice(STEPS) for _ in range(r.randint(1, 3))]
        if calls and r.random() < .6:
            steps.append(f"x += leaf{r.randrange(3)}(x, y);")
        is_last = label == labels[-1]
        steps.append(leave(r) if is_last or r.random() < .3 else f"goto *(void*)({go});")
        lines.append(f"  {label}: {' '.join(steps)}")
    return "\n".join([*lines, "}"]), begin, len(labels)


def program(seed):
    r = random.Random(seed)
    out = [HEAD]
    out += [f'ALONE long leaf{i}(long a, long b) {{ LOG("leaf{i}"); sink = a; for (int i = 0; i < 2; i++) sink += b; return a * {i + 2} + b; }}'
            for i in range(3)]
    for t in range(3):
        count, kind = r.randint(2, 4), r.choice(("static call const", "static call", "call", "call const"))
        out.append(f"{kind} table{t}[{count}] = {{{', '.join(f'leaf{r.randrange(3)}' for _ in range(count))}}};")
        out.append(f"enum {{ count{t} = {count} }};")
    out.append("call pointer = leaf1;\nALONE void set(call to) { pointer = to; }")
    out.append("struct object objects[3] = {{1, leaf0, {leaf1, leaf2}}, {2, leaf1, {leaf2, leaf0}}, {3, leaf2, {leaf0, leaf1}}};")
    made = [function(r, f) for f in range(r.randint(2, 4))]
    out += [text for text, _, _ in made]
    out.append('ALONE long after(long x) { LOG("after"); sink = x; for (int i = 0; i < 2; i++) sink += i; return x * 2; }')
    out.append("int main(void) {\n  long s = 0;\n  unsigned long r = 12345;\n  unsigned char code[40];\n  for (int i = 0; i < 12; i++) {")
    for f, (_, begin, count) in enumerate(made):
        out.append(f"    for (int k = 0; k < 40; k++) {{ r = r * 6364136223846793005ul + 1442695040888963407ul; "
                   f"code[k] = {begin} + (k < 38 ? (r >> 33) % {count} : {count - 1}); }}")
        out.append(f'    LOG("f{f}"); s += f{f}(code, s & 1023, i, &objects[i % 3], i & 1 ? leaf0 : leaf2); s += after(s & 255);')
    out.append('  }\n  fprintf(stderr, "%ld\\n", s);\n  return 0;\n}')
    return "\n".join(out)
