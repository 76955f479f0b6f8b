#include "runtime/system/environment.h"

#include <cstddef>

#include "runtime/system/memory.h"

namespace karst::runtime {
namespace {

constexpr char kOptions[] = "KARST_OPTIONS=";
constexpr char kPreload[] = "LD_PRELOAD=";
constexpr char kOurs[] = "/libkarst.so";
constexpr char kOurCompanion[] = "/libkarst-system.so";

template <std::size_t kSize>
bool is_at(const char* text, std::size_t size, const char (&name)[kSize]) {
  return kSize - 1 <= size && starts_with(text, name);
}

bool names_us(const char* path, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i)
    if (path[i] == '/' && (is_at(path + i, size - i, kOurs) || is_at(path + i, size - i, kOurCompanion))) return true;
  return false;
}

// Cuts our libraries out of a list whose parts are separated by colons or blanks; false when nothing is left of it.
bool cut_preload(char* list) {
  char* to = list;
  for (const char* from = list; *from != '\0';) {
    std::size_t size = 0;
    while (from[size] != '\0' && from[size] != ':' && from[size] != ' ') ++size;
    if (size != 0 && !names_us(from, size)) {
      if (to != list) *to++ = ':';
      copy(to, from, size);  // never behind `from`: what is written is never longer than what was read
      to += size;
    }
    from += size;
    if (*from != '\0') ++from;
  }
  *to = '\0';
  return to != list;
}

}  // namespace

void hide_from_children(char** environment) {
  if (environment == nullptr) return;
  char** to = environment;
  for (char** from = environment; *from != nullptr; ++from) {
    if (starts_with(*from, kOptions)) continue;
    if (starts_with(*from, kPreload) && !cut_preload(*from + sizeof kPreload - 1)) continue;
    *to++ = *from;
  }
  *to = nullptr;
}

}  // namespace karst::runtime
