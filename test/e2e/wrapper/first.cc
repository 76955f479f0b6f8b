#include <cstdio>

#include "shared.h"
int main() { std::printf("%d\n", larger(in_both(1), second(3))); }
