// SPDX-License-Identifier: MIT
#include "runtime/system/environment.h"

#include "runtime/system/memory.h"

namespace karst::runtime {
namespace {

constexpr char kOptions[] = "KARST_OPTIONS=";
constexpr char kSystem[] = "KARST_SYSTEM=";
constexpr char kPreload[] = "LD_PRELOAD=";
constexpr const char* kOurs[] = {"/libkarst.so",          "/libkarst-locks.so",    "/libkarst-memory.so",
                                 "/libkarst-files.so",    "/libkarst-net.so",      "/libkarst-time.so",
                                 "/libkarst-contexts.so", "/libkarst-old-glibc.so"};
// Programs load what these name, and tell it what they say of themselves (annotations/).
constexpr const char* kListeners[] = {"INTEL_LIBITTNOTIFY64=", "NVTX_INJECTION64_PATH="};

bool names_us(const char* path, std::size_t size) {
  for (const char* name : kOurs) {
    const std::size_t least = length(name);
    for (std::size_t i = 0; i + least <= size; ++i)
      if (starts_with(path + i, name)) return true;
  }
  return false;
}

}  // namespace

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

bool names_us_anywhere(const char* text) { return names_us(text, length(text)); }

PartOfList own_part_of_preload(const char* list, std::uint32_t count) {
  PartOfList own{list, 0};
  std::uint32_t taken = 0;
  while (*list != '\0') {
    const char* const begin = list;
    while (*list != '\0' && *list != ':' && *list != ' ') ++list;
    const bool is_ours = names_us(begin, static_cast<std::size_t>(list - begin));
    if (taken == 0 && is_ours) own.begin = begin;
    if (is_ours || (taken != 0 && taken < count)) {
      own.size = static_cast<std::size_t>(list - own.begin);
      ++taken;
    } else if (taken != 0) {
      break;
    }
    if (*list != '\0') ++list;
  }
  return own;
}

namespace {

bool is_our_listener(const char* variable) {
  for (const char* name : kListeners)
    if (starts_with(variable, name)) return names_us(variable, length(variable));
  return false;
}

}  // namespace

void hide_from_children(char** environment) {
  if (environment == nullptr) return;
  char** to = environment;
  for (char** from = environment; *from != nullptr; ++from) {
    if (starts_with(*from, kOptions) || starts_with(*from, kSystem) || is_our_listener(*from)) continue;
    if (starts_with(*from, kPreload) && !cut_preload(*from + sizeof kPreload - 1)) continue;
    *to++ = *from;
  }
  *to = nullptr;
}

}  // namespace karst::runtime
