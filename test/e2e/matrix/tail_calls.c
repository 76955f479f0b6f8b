// Tail calls, direct and through a pointer in a register: the caller has returned before the called function begins.
typedef int (*function)(int);
#define NOINLINE __attribute__((noinline, noclone, noipa))
NOINLINE int last(int x) { return x + 1; }
NOINLINE int by_pointer(function f, int x) { return f(x); }
NOINLINE int direct(int x) { return by_pointer(last, x); }
NOINLINE int plain(int x) { return direct(x) + last(x); }
int main(void) { return plain(1) - 4; }
