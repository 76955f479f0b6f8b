// A real program of some size to count calls in: the filter of our own compiler wrapper, from stdin to stdout.
#include <iostream>
#include <iterator>
#include <string>

#include "toolchain/asm_filter.h"

int main() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  std::cout << karst::toolchain::filter_assembly(text);
}
