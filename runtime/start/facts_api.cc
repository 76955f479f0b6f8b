// SPDX-License-Identifier: MIT
// What a program says once, of itself, a thread or a plot (include/karst/note.h): names whose descriptions say what
// they mean (kAppInfo and its like, format/note.h). They are kept as long as the trace, whatever its memory loses.
#include <errno.h>
#include <stddef.h>

#include "format/note.h"
#include "runtime/modules/note_names.h"
#include "runtime/recording/arena.h"
#include "runtime/recording/seams.h"
#include "runtime/recording/thread.h"

using namespace karst::runtime;
using namespace karst::format;

namespace {

constexpr std::uint32_t kLongestUnit = 20;
constexpr std::uint32_t kLongestLine = 1000;

}  // namespace

#define KARST_API(type, name) extern "C" __attribute__((visibility("default"))) type karst_api_##name

KARST_API(void, app_info)(const char* text, std::size_t size) {
  char line[kLongestLine + 1];
  std::uint32_t length = 0;
  for (; text != nullptr && length < kLongestLine && length < size && text[length] != '\0'; ++length)
    line[length] = text[length];
  line[length] = '\0';
  if (length != 0) enter_fact(line, nullptr, kAppInfo, sizeof kAppInfo - 1);
}

/// `how` 1: a line from value to value; else steps. Colour 0: none is wanted.
KARST_API(void, plot)(const char* name, const char* unit, int how, std::uint32_t color) {
  if (name == nullptr) return;
  char values[sizeof kPlotLook - 1 + 4 + 1 + sizeof(ColorText) + 1 + kLongestUnit];
  std::uint32_t size = 0;
  const auto add = [&](const char* text, std::uint32_t most) {
    for (std::uint32_t i = 0; i < most && text[i] != '\0'; ++i) values[size++] = text[i];
  };
  add(kPlotLook, sizeof kPlotLook);
  add(how == 1 ? "line" : "step", 4);
  add(" ", 1);
  add(color == 0 ? "-" : ColorText(color).text, color == 0 ? 1 : sizeof(ColorText));
  add(" ", 1);
  if (unit != nullptr) add(unit, kLongestUnit);
  enter_fact(name, nullptr, values, size);
}

KARST_API(int, thread_set_group)(const char* name) {
  if (!g_arena.exists() || !own_arena()) return -ENOSYS;
  if (name == nullptr) return -EINVAL;
  const ThreadState* state = own_state();
  if (state == nullptr) return -ENOMEM;
  char values[sizeof kThreadGroup + 10];
  std::uint32_t size = 0;
  for (const char* from = kThreadGroup; *from != '\0'; ++from) values[size++] = *from;
  values[size++] = ' ';
  char digits[10];
  std::uint32_t count = 0;
  for (std::uint32_t rest = state->thread; rest != 0 || count == 0; rest /= 10)
    digits[count++] = static_cast<char>('0' + rest % 10);
  while (count != 0) values[size++] = digits[--count];
  enter_fact(name, nullptr, values, size);
  return 0;
}

/// What the libraries of interpose/ know of the program.
KARST_API(void, fact)(const char* text, const char* file, const char* values, std::uint32_t size) {
  enter_fact(text, file, values, size);
}
