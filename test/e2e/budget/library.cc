// A library that comes late, with a hot function.
namespace {
volatile unsigned g_sum;
__attribute__((noinline, noclone)) void inner(unsigned n) { g_sum = g_sum + n; }
}  // namespace

extern "C" void budget_library(unsigned calls) {
  for (unsigned i = 0; i < calls; ++i) inner(i);
}
