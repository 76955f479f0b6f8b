// SPDX-License-Identifier: MIT
#include "runtime/system/child_environment.h"

#include "format/session.h"
#include "runtime/system/environment.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {
namespace {

/// How a variable that the given environment has, too, goes together with ours.
enum class Joins {
  kNo,       ///< theirs stays
  kAsList,   ///< ours, a colon, theirs, unless theirs names us already
  kDecides,  ///< KARST_OPTIONS: theirs means that all is theirs
};

struct Kept {
  const char* name;  // with its '='
  Joins joins;
  std::uint32_t offset;  // of NAME=VALUE in g_text; 0: there is none
};
enum : std::size_t { kPreload, kOptions, kSystem, kAsan };
Kept g_kept[] = {{"LD_PRELOAD=", Joins::kAsList, 0},       {"KARST_OPTIONS=", Joins::kDecides, 0},
                 {"KARST_SYSTEM=", Joins::kNo, 0},         {"ASAN_OPTIONS=", Joins::kAsList, 0},
                 {"INTEL_LIBITTNOTIFY64=", Joins::kNo, 0}, {"NVTX_INJECTION64_PATH=", Joins::kNo, 0}};
constexpr std::size_t kKept = sizeof g_kept / sizeof g_kept[0];

char g_text[16384];
std::uint32_t g_text_size = 1;  // 0 means none
char g_library[1024];
char g_old_glibc[sizeof g_library + sizeof format::kOldGlibcLibrary];  // beside it

/// What of ASAN_OPTIONS is ours; see collect/launch/launch.cc.
constexpr char kAsanOption[] = "verify_asan_link_order=0";

const char* text_of(const Kept& kept) { return g_text + kept.offset; }

/// False when there is no room.
bool keep(Kept& kept, const char* value, std::size_t size) {
  const std::size_t name_size = length(kept.name);
  if (name_size + size + 1 > sizeof g_text - g_text_size) return false;
  kept.offset = g_text_size;
  copy(g_text + g_text_size, kept.name, name_size);
  copy(g_text + g_text_size + name_size, value, size);
  g_text[g_text_size + name_size + size] = '\0';
  g_text_size += static_cast<std::uint32_t>(name_size + size + 1);
  return true;
}

/// Bytes at any address, read only where the kernel can read them, too: by a call that does nothing else, as there is
/// no such signal mask to set.
class Reader {
 public:
  bool read(const void* from, std::size_t size) {
    const auto begin = reinterpret_cast<std::uintptr_t>(from);
    if (begin + size < begin) return false;
    for (std::uintptr_t page = align_down(begin, kPage); page < begin + size; page += kPage)
      if (!is_there(page)) return false;
    return true;
  }
  /// The string goes on for less than `most` bytes; its length, or `most` if it is longer or not there.
  std::size_t length_of(const char* text, std::size_t most) {
    for (std::size_t n = 0; n < most; ++n) {
      if (!read(text + n, 1)) return most;
      if (text[n] == '\0') return n;
    }
    return most;
  }
  bool starts(const char* text, const char* prefix) {
    for (; *prefix != '\0'; ++text, ++prefix)
      if (!read(text, 1) || *text != *prefix) return false;
    return true;
  }

 private:
  static constexpr std::uintptr_t kPage = 4096;
  bool is_there(std::uintptr_t page) {
    if (page == pages_[0] || page == pages_[1]) return true;
    constexpr long kNoSuchHow = 99;
    constexpr long kFault = -14;  // EFAULT
    if (page == 0 || sys::call(SYS_rt_sigprocmask, kNoSuchHow, static_cast<long>(page), 0, 8) == kFault) return false;
    pages_[next_] = page;
    next_ = 1 - next_;
    return true;
  }
  std::uintptr_t pages_[2] = {1, 1};  // no page begins there
  unsigned next_ = 0;
};

constexpr std::size_t kMostValue = ChildEnvironment::kMostText;

/// Which of g_kept the variable is; kKept: none.
std::size_t kept_of(Reader& reader, const char* variable) {
  for (std::size_t i = 0; i < kKept; ++i)
    if (reader.starts(variable, g_kept[i].name)) return i;
  return kKept;
}

bool is_of_us(std::size_t i, const char* value) {
  if (i == kOptions || i == kSystem) return true;
  return i != kAsan && names_us_anywhere(value);
}

bool has_asan_option(const char* value) {
  for (; *value != '\0'; ++value)
    if (starts_with(value, "verify_asan_link_order=")) return true;
  return false;
}

/// Whether there is such a variable to be put back.
bool is_kept(std::size_t i, bool has_libasan) { return g_kept[i].offset != 0 && (i != kAsan || has_libasan); }

/// A list that we need not be put before.
bool is_joined(std::size_t i, const char* value) {
  return i == kPreload ? names_us_anywhere(value) : has_asan_option(value);
}

bool has_text(const char* text, const char* wanted) {
  for (; *text != '\0'; ++text)
    if (starts_with(text, wanted)) return true;
  return false;
}

/// What belongs behind a variable of this value, or behind ours alone if that is null; empty: nothing.
const char* behind(std::size_t i, const char* value, ProgramNeeds needs) {
  const bool has = i != kPreload || !needs.old_glibc || has_text(text_of(g_kept[i]), format::kOldGlibcLibrary) ||
                   (value != nullptr && has_text(value, format::kOldGlibcLibrary));
  return has ? "" : g_old_glibc;
}

void note_library(const char* path, std::size_t size) {
  copy(g_library, path, size);
  while (size != 0 && path[size - 1] != '/') --size;
  g_old_glibc[0] = ':';
  copy(g_old_glibc + 1, path, size);
  copy(g_old_glibc + 1 + size, format::kOldGlibcLibrary, sizeof format::kOldGlibcLibrary);
}

void append(char*& to, const char* text) {
  const std::size_t size = length(text);
  copy(to, text, size);
  to += size;
}

}  // namespace

void keep_for_children(char** environment, std::uint32_t preloads) {
  if (environment == nullptr || g_text_size != 1) return;
  bool all = true;
  for (char** variable = environment; *variable != nullptr; ++variable) {
    for (Kept& kept : g_kept) {
      if (!starts_with(*variable, kept.name)) continue;
      const char* const value = *variable + length(kept.name);
      if (&kept == &g_kept[kPreload]) {
        const PartOfList own = own_part_of_preload(value, preloads);
        std::size_t first = 0;
        while (first < own.size && own.begin[first] != ':' && own.begin[first] != ' ') ++first;
        all = all && own.size != 0 && first < sizeof g_library && keep(kept, own.begin, own.size);
        if (all) note_library(own.begin, first);
      } else if (is_of_us(static_cast<std::size_t>(&kept - g_kept), value)) {
        all = all && keep(kept, value, length(value));
      }
    }
  }
  all = all && keep(g_kept[kAsan], kAsanOption, sizeof kAsanOption - 1);
  if (all && g_kept[kPreload].offset != 0 && g_kept[kOptions].offset != 0) return;
  for (Kept& kept : g_kept) kept.offset = 0;
  g_library[0] = '\0';
  if (!all) Message().text("programs are not followed that get an environment of their own: KARST_OPTIONS is too long");
}

bool is_readable_text(const char* text) {
  constexpr std::size_t kMostPath = 4096;
  Reader reader;
  return reader.length_of(text, kMostPath) < kMostPath;
}

const char* kept_library() { return g_library; }

ChildEnvironment::ChildEnvironment(char* const* given, Wish wish, ProgramNeeds needs)
    : given_(given), wish_(wish), needs_(needs) {
  if (wish == Wish::kFollow && g_kept[kPreload].offset == 0) return;
  wish == Wish::kFollow ? wish_to_follow() : wish_to_leave();
  if (change_ == Change::kNew && (count_ > kMost || text_size_ > kMostText)) change_ = Change::kTooLarge;
}

void ChildEnvironment::wish_to_follow() {
  Reader reader;
  bool has[kKept] = {};
  bool joined = true;
  for (; given_ != nullptr; ++count_) {
    if (!reader.read(given_ + count_, sizeof *given_)) return;
    const char* const variable = given_[count_];
    if (variable == nullptr) break;
    const std::size_t i = kept_of(reader, variable);
    if (i == kKept || !is_kept(i, needs_.libasan)) continue;
    const char* const value = variable + length(g_kept[i].name);
    const std::size_t size = reader.length_of(value, kMostValue);
    if (size == kMostValue) return;
    if (g_kept[i].joins == Joins::kDecides && !equal(variable, text_of(g_kept[i]))) {
      if (size == 0) {  // so that one is left out
        count_ = 0;
        text_size_ = 0;
        wish_ = Wish::kLeave;
        wish_to_leave();
      }
      return;
    }
    has[i] = true;
    if (g_kept[i].joins != Joins::kAsList) continue;
    const std::size_t more = length(behind(i, value, needs_));
    if (is_joined(i, value) && more == 0) continue;
    joined = false;
    text_size_ += length(text_of(g_kept[i])) + 1 + size + more + 1;
  }
  entries_ = count_;
  for (std::size_t i = 0; i < kKept; ++i)
    if (is_kept(i, needs_.libasan) && !has[i]) {
      ++entries_;
      text_size_ += length(text_of(g_kept[i])) + length(behind(i, nullptr, needs_)) + 1;
    }
  // Variables beside these two may have been taken out of an environment that is ours else.
  if (has[kPreload] && has[kOptions] && joined && (has[kAsan] || !needs_.libasan)) return;
  change_ = Change::kNew;
}

void ChildEnvironment::wish_to_leave() {
  Reader reader;
  bool ours = false;
  for (; given_ != nullptr; ++count_) {
    if (!reader.read(given_ + count_, sizeof *given_)) return;
    const char* const variable = given_[count_];
    if (variable == nullptr) break;
    const std::size_t i = kept_of(reader, variable);
    if (i == kKept) continue;
    const char* const value = variable + length(g_kept[i].name);
    const std::size_t size = reader.length_of(value, kMostValue);
    if (size == kMostValue) return;
    if (!is_of_us(i, value)) continue;
    ours = true;
    if (i == kPreload) text_size_ += length(g_kept[i].name) + size + 1;
  }
  entries_ = count_;
  if (ours) change_ = Change::kNew;
}

char** ChildEnvironment::make(void* memory) const {
  auto** const list = static_cast<char**>(memory);
  char* text = reinterpret_cast<char*>(list + entries_ + 1);
  std::size_t used = 0;
  Reader reader;
  bool has[kKept] = {};
  for (std::size_t n = 0; n < count_ && given_[n] != nullptr; ++n) {
    char* const variable = given_[n];
    const std::size_t i = kept_of(reader, variable);
    const bool leaves = wish_ == Wish::kLeave;
    if (i == kKept || (!leaves && !is_kept(i, needs_.libasan))) {
      list[used++] = variable;
      continue;
    }
    has[i] = true;
    const std::size_t name_size = length(g_kept[i].name);
    const char* const value = variable + name_size;
    if (leaves) {
      if (!is_of_us(i, value)) {
        list[used++] = variable;
      } else if (i == kPreload) {
        copy(text, variable, name_size + length(value) + 1);
        if (cut_preload(text + name_size)) {
          list[used++] = text;
          text += name_size + length(text + name_size) + 1;
        }
      }
      continue;
    }
    const char* const more = behind(i, value, needs_);
    const bool is_whole = is_joined(i, value);
    if (g_kept[i].joins != Joins::kAsList || (is_whole && *more == '\0')) {
      list[used++] = variable;
      continue;
    }
    list[used++] = text;
    if (!is_whole) append(text, text_of(g_kept[i]));
    if (!is_whole && *value != '\0') append(text, ":");
    append(text, is_whole ? variable : value);
    append(text, more);
    *text++ = '\0';
  }
  if (wish_ == Wish::kFollow)
    for (std::size_t i = 0; i < kKept; ++i)
      if (is_kept(i, needs_.libasan) && !has[i]) {
        list[used++] = text;
        append(text, text_of(g_kept[i]));
        append(text, behind(i, nullptr, needs_));
        *text++ = '\0';
      }
  list[used] = nullptr;
  return list;
}

}  // namespace karst::runtime
