// Passes probes with values of every size, in registers, memory and constants, and prints what each of them must be.
// Argument: how many rounds.
#include <sys/sdt.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

namespace {

std::mt19937_64 g_random(20261125);

struct Row {
  std::int32_t number;
  std::uint16_t half;
  std::int8_t byte;
  std::uint64_t word;
};
Row g_rows[16];

std::uint64_t g_sum;

// A leaf that keeps much below its stack pointer, and passes a probe among it.
__attribute__((noinline)) std::uint64_t leaf(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  volatile std::uint64_t kept[12];
  for (std::uint64_t i = 0; i < 12; ++i) kept[i] = a * i + b;
  STAP_PROBE3(karst_test, leaf, a, b, c);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < 12; ++i) sum = sum * 31 + kept[i];
  return sum + c;
}

__attribute__((noinline)) void pass_sizes(std::int8_t a, std::uint8_t b, std::int16_t c, std::uint16_t d,
                                          std::int32_t e, std::uint32_t f, std::int64_t g, std::uint64_t h) {
  STAP_PROBE8(karst_test, sizes, a, b, c, d, e, f, g, h);
  g_sum += static_cast<std::uint64_t>(a) + b + d + f + h;
}

__attribute__((noinline)) void pass_memory(const Row* row, std::size_t i) {
  STAP_PROBE4(karst_test, memory, row[i].number, row[i].half, row[i].byte, row[i].word);
  g_sum += row[i].word;
}

__attribute__((noinline)) int pass_constants(int a) {
  STAP_PROBE3(karst_test, constants, 5, -7, a);
  return a + 1;
}

__attribute__((noinline)) void pass_text(const char* text, std::size_t size) {
  STAP_PROBE2(karst_test, text, text, size);
  g_sum += size;
}

__attribute__((noinline)) void pass_nothing() { STAP_PROBE(karst_test, nothing); }

// Two places of one probe, in a loop, with a branch to each.
__attribute__((noinline)) std::uint64_t branches(std::uint64_t value) {
  for (int i = 0; i < 8; ++i) {
    if ((value & 1) != 0) {
      value = 3 * value + 1;
      STAP_PROBE2(karst_test, branch, value, i);
    } else {
      value /= 2;
      STAP_PROBE2(karst_test, branch, value, i);
    }
  }
  return value;
}

std::uint64_t collatz(std::uint64_t value) {
  for (int i = 0; i < 8; ++i) {
    value = (value & 1) != 0 ? 3 * value + 1 : value / 2;
    std::printf("branch(arg1=0x%" PRIx64 ", arg2=%d)\n", value, i);
  }
  return value;
}

}  // namespace

int main(int, char** arguments) {
  static const char* const kTexts[] = {"", "a", "what a call was about", "0123456789012345678901234567890123456789"};
  for (int round = std::atoi(arguments[1]); round > 0; --round) {
    const std::uint64_t a = g_random(), b = g_random(), c = g_random();
    std::printf("leaf(arg1=0x%" PRIx64 ", arg2=0x%" PRIx64 ", arg3=0x%" PRIx64 ")\n", a, b, c);
    g_sum += leaf(a, b, c);
    std::printf("sizes(arg1=%d, arg2=%u, arg3=%d, arg4=%u, arg5=%d, arg6=%u, arg7=%" PRId64 ", arg8=0x%" PRIx64 ")\n",
                static_cast<std::int8_t>(a), static_cast<std::uint8_t>(b), static_cast<std::int16_t>(c),
                static_cast<std::uint16_t>(a), static_cast<std::int32_t>(b), static_cast<std::uint32_t>(c),
                static_cast<std::int64_t>(a), b);
    pass_sizes(static_cast<std::int8_t>(a), static_cast<std::uint8_t>(b), static_cast<std::int16_t>(c),
               static_cast<std::uint16_t>(a), static_cast<std::int32_t>(b), static_cast<std::uint32_t>(c),
               static_cast<std::int64_t>(a), b);
    const std::size_t i = a % 16;
    g_rows[i] = {static_cast<std::int32_t>(b), static_cast<std::uint16_t>(c), static_cast<std::int8_t>(a), b ^ c};
    std::printf("memory(arg1=%d, arg2=%u, arg3=%d, arg4=0x%" PRIx64 ")\n", g_rows[i].number, g_rows[i].half,
                g_rows[i].byte, g_rows[i].word);
    pass_memory(g_rows, i);
    const auto number = static_cast<int>(c % 1000) - 500;
    std::printf("constants(arg1=5, arg2=-7, arg3=%d)\n", number);
    g_sum += static_cast<std::uint64_t>(pass_constants(number));
    const char* text = kTexts[b % 4];
    std::printf("text(what=\"%s\", size=%zu)\n", text, std::strlen(text));
    pass_text(text, std::strlen(text));
    std::puts("nothing()");
    pass_nothing();
    const std::uint64_t start = c % 100000;
    if (branches(start) != collatz(start)) return 1;
  }
  std::fprintf(stderr, "sum %" PRIx64 "\n", g_sum);
  return 0;
}
