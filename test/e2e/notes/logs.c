/* Logs of every type of argument, in C and in C++; each is printed as well, by printf: the oracle. `logs [SNAPSHOT]`.
 */
#include <karst/karst.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define NOTRACE KARST_NOTRACE __attribute__((noinline))
/* One set of arguments for both; what has effects is evaluated by hand. */
#define LOG(level, ...)               \
  do {                                \
    karst_log_at(level, __VA_ARGS__); \
    say(level, __VA_ARGS__);          \
  } while (0)

enum colour { RED, GREEN = 7 };
struct fields {
  unsigned three : 3;
  int four : 4;
};

__attribute__((format(printf, 2, 3))) NOTRACE static void say(int level, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  printf("%d ", level);
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
}

static int g_times;
NOTRACE static int once(void) { return ++g_times; }

NOTRACE static char* end_of_a_page(const char* text) {
  char* pages = (char*)mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(pages + 4096, 4096, PROT_NONE);
  return (char*)memcpy(pages + 4096 - strlen(text), text, strlen(text));
}

__attribute__((noinline)) static void all(const char* text, enum colour colour) {
  struct fields fields = {5, -3};
  const volatile int changing = 12;
  char array[] = "an array";
  const unsigned char bytes[] = "bytes";
  char* unterminated = end_of_a_page("no end");
  LOG(KARST_LOG_DEBUG, "plain, 100%%");
  LOG(KARST_LOG_INFO, "%d %i %u %ld %lld %zu", INT_MIN, -1, UINT_MAX, LONG_MIN, LLONG_MAX, sizeof fields);
  LOG(KARST_LOG_INFO, "%hhd %hd %hhu %hu %c", (signed char)-100, (short)-30000, (unsigned char)200,
      (unsigned short)60000, 'x');
  LOG(KARST_LOG_INFO, "%#x %o %08lX %+d % d %-5d|%5d", 255, 8, 0xabcdeful, 1, 2, 3, 4);
  LOG(KARST_LOG_INFO, "%d %u %d %d %d", (int)colour, fields.three, fields.four, changing, colour == GREEN);
  LOG(KARST_LOG_INFO, "%f %.3e %g %a %Lf %5.1f", 1.5, 12345.678, 1e-5, 0.1, 2.5L, (double)0.25f);
  LOG(KARST_LOG_INFO, "%s|%10s|%-10s|%.2s", text, array, text, array);
  LOG(KARST_LOG_INFO, "%.*s|%*d|%.4s", 6, unterminated, 5, 7, unterminated);
  LOG(KARST_LOG_INFO, "%s %s", (const char*)bytes, "");
  LOG(KARST_LOG_INFO, "%p %p %p", (void*)&fields, (const void*)NULL, (void*)unterminated);
#ifndef __STRICT_ANSI__
  LOG(200, "%1$d %2$s %1$d %3$.*1$s", 3, "positions", unterminated);
#endif
  LOG(KARST_LOG_WARNING, "%d %d %d %d %d %d %d %s", 1, 2, 3, 4, 5, 6, 7, "eight");
  for (int i = 0; i < 3; ++i) LOG(KARST_LOG_ERROR + 1 - i, "again %d", i);
  karst_log("evaluated %d", once());
  say(KARST_LOG_INFO, "evaluated %d", g_times);
  karst_log_format("{} {:>4} {:#x} {:.2f} {{}} {}", -5, 6, 255u, 1.25, text);
  say(KARST_LOG_INFO, "%d %4d %#x %.2f {} %s", -5, 6, 255u, 1.25, text);
  karst_log_format_at(KARST_LOG_WARNING, "{1} {0} {1:{0}}|", 9, array);
  say(KARST_LOG_WARNING, "%s %d %-9s|", array, 9, array);
}

int main(int count, char** arguments) {
  static char longest[3000];
  all("a text: caf\xc3\xa9", GREEN);
  memset(longest, 'y', sizeof longest - 1);
  karst_log("%s and %s, %d", longest, longest, 77);
  karst_log("%s", (const char*)NULL);
  if (count > 1) karst_snapshot_save(arguments[1], 0);
  return 0;
}
