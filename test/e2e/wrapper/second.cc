#include "shared.h"
__attribute__((noinline)) int second(int x) { return larger(in_both(x), 2); }
