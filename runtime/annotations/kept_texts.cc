// SPDX-License-Identifier: MIT
#include "runtime/annotations/kept_texts.h"

#include "runtime/system/memory.h"
#include "runtime/system/message.h"

namespace karst::runtime {
namespace {

constexpr std::uint32_t kTextBytes = 256 << 10;

KeptText g_kept[kMostKeptTexts];
char g_kept_bytes[kTextBytes];
std::uint32_t g_kept_bytes_used;
bool g_said_no_room;

constexpr Said kBetween = {"::", 2};

std::uint32_t hash_more(std::uint32_t hash, Said text) {
  for (std::uint32_t i = 0; i < text.size; ++i) hash = (hash ^ static_cast<unsigned char>(text.data[i])) * 16777619U;
  return hash;
}

bool begins_with(const char*& name, Said text) {
  for (std::uint32_t i = 0; i < text.size; ++i)
    if (*name++ != text.data[i]) return false;
  return true;
}

bool is_name(const char* name, Said domain, Said text) {
  if (domain.size != 0 && !(begins_with(name, domain) && begins_with(name, kBetween))) return false;
  return begins_with(name, text) && *name == '\0';
}

/// Null: there is no room.
char* put_text(Said domain, Said text) {
  const std::uint32_t size = (domain.size != 0 ? domain.size + kBetween.size : 0) + text.size + 1;
  if (load(g_kept_bytes_used) > kTextBytes - size) return nullptr;
  const std::uint32_t at = __atomic_fetch_add(&g_kept_bytes_used, size, __ATOMIC_ACQ_REL);
  if (at > kTextBytes - size) return nullptr;  // it is full: what was added is never taken back, and bounded by threads
  char* to = g_kept_bytes + at;
  const auto put = [&to](Said s) {
    copy(to, s.data, s.size);
    to += s.size;
  };
  if (domain.size != 0) {
    put(domain);
    put(kBetween);
  }
  put(text);
  *to = '\0';
  return g_kept_bytes + at;
}

void say_no_room() {
  if (!__atomic_exchange_n(&g_said_no_room, true, __ATOMIC_RELAXED))
    Message().text(
        "there are too many names of zones and values (dynamic ones, ITT, NVTX): further ones have a common name");
}

}  // namespace

KeptText* keep_text(Said domain, Said text) {
  if (domain.size > kLongestKeptText / 2) domain.size = kLongestKeptText / 2;
  if (text.size > kLongestKeptText / 2) text.size = kLongestKeptText / 2;
  std::uint32_t hash = hash_more(2166136261U, domain);
  if (domain.size != 0) hash = hash_more(hash, kBetween);
  hash = hash_more(hash, text) | 1;
  char* mine = nullptr;
  for (std::uint32_t i = 0; i < kMostKeptTexts; ++i) {
    KeptText& entry = g_kept[((hash >> 1) + i) % kMostKeptTexts];
    std::uint32_t claimed = load(entry.claimed);
    if (claimed == 0) {
      if (mine == nullptr) mine = put_text(domain, text);
      if (mine == nullptr) break;
      if (exchange_if(entry.claimed, 0U, hash)) {
        entry.name.name = mine;
        store(entry.whole, 1U);
        return &entry;
      }
      claimed = load(entry.claimed);
    }
    if (claimed != hash) continue;
    // Another thread may be about to make it. It may also be the one that this signal handler interrupted.
    for (int tries = 0; tries < 1000 && load(entry.whole) == 0;) ++tries;
    if (load(entry.whole) == 0) return nullptr;
    if (is_name(entry.name.name, domain, text)) return &entry;
  }
  say_no_room();
  return nullptr;
}

std::uint32_t number_of(const KeptText& kept) { return static_cast<std::uint32_t>(&kept - g_kept); }

KeptText* kept_text_at(const void* address) {
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(g_kept);
  return offset % sizeof(KeptText) == 0
             ? kept_text_of(static_cast<std::uint32_t>(
                   offset / sizeof(KeptText) < kMostKeptTexts ? offset / sizeof(KeptText) : kMostKeptTexts))
             : nullptr;
}

KeptText* kept_text_of(std::uint32_t number) {
  return number < kMostKeptTexts && load(g_kept[number].whole) != 0 ? &g_kept[number] : nullptr;
}

}  // namespace karst::runtime
