// karst-agreement FILE...   whether all that read events agree on those of a trace; prints how many threads it compared
#include <cstdio>

#include "test/walk/agreement.h"

int main(int argc, char** argv) {
  std::size_t threads = 0;
  std::size_t threads_of_budget = 0;
  std::size_t wrong = 0;
  for (int i = 1; i < argc; ++i) {
    const auto trace = karst::reader::Trace::open(argv[i]);
    if (!trace) return std::fprintf(stderr, "%s\n", trace.error().message.c_str()), 1;
    const karst::test::Agreement agreement = karst::test::agreement_on(*trace);
    threads += agreement.threads;
    threads_of_budget += agreement.threads_of_budget;
    wrong += agreement.wrong.size();
    for (const std::string& text : agreement.wrong) std::fprintf(stderr, "%s: %s\n", argv[i], text.c_str());
  }
  std::printf("%zu threads, %zu with the budget\n", threads, threads_of_budget);
  return wrong == 0 ? 0 : 1;
}
