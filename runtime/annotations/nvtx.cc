// SPDX-License-Identifier: MIT
// NVIDIA's NVTX 3. A program that carries its headers loads the library that NVTX_INJECTION64_PATH names and calls its
// InitializeInjectionNvtx2. That asks the program for tables of pointers, and fills in what it has, by number: numbers
// of the interface never change, and later versions have longer tables. What becomes of each is in
// docs/guide/annotated.md.
#include "runtime/annotations/kept_texts.h"
#include "runtime/annotations/nvtx_abi.h"
#include "runtime/annotations/open_zones.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime::nvtx {
namespace {

using format::NoteKind;

constexpr Said kScope = {"::", 2};

NoteName g_further_ranges{"(further NVTX ranges)", nullptr, 0, 0};
NoteName g_payload{"payload", nullptr, 0, 0};

/// A text in UTF-8 that lies here when it was made of wide characters. A result of text() is good as long as this is.
class Message {
 public:
  Said text(const char* text) { return said(text, kLongestKeptText); }
  Said text(const wchar_t* wide) {
    std::uint32_t size = 0;
    if (wide == nullptr) return {};
    for (; *wide != 0 && size + 4 <= sizeof own_; ++wide)
      size += encode(static_cast<std::uint32_t>(*wide), own_ + size);
    return {own_, size};
  }
  Said text(const Attributes* a) {
    if (a == nullptr || a->size < sizeof(Attributes)) return {};
    switch (static_cast<MessageType>(a->message_type)) {
      case MessageType::kText:
        return text(static_cast<const char*>(a->message));
      case MessageType::kWide:
        return text(static_cast<const wchar_t*>(a->message));
      case MessageType::kRegistered:
        if (const KeptText* const kept = kept_text_at(a->message)) return said(*kept);
        break;
      case MessageType::kNone:
        break;
    }
    return {};
  }

 private:
  static std::uint32_t encode(std::uint32_t c, char* to) {
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
    if (c < 0x80) {
      to[0] = static_cast<char>(c);
      return 1;
    }
    const std::uint32_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    to[0] = static_cast<char>((0xffU << (7 - more)) | c >> 6 * more);
    for (std::uint32_t i = 1; i <= more; ++i) to[i] = static_cast<char>(0x80 | (c >> 6 * (more - i) & 0x3f));
    return 1 + more;
  }

  char own_[kLongestKeptText];
};

Said name_of(const void* domain) {
  const KeptText* const kept = kept_text_at(domain);
  return kept != nullptr ? said(*kept) : Said();
}

void say_payload(NoteName* name, const Attributes* a) {
  if (a == nullptr || a->size < sizeof(Attributes)) return;
  const auto low = static_cast<std::uint32_t>(a->payload);
  switch (static_cast<PayloadType>(a->payload_type)) {
    case PayloadType::kU64:
    case PayloadType::kI64:
      return karst_api_integer(name, static_cast<std::int64_t>(a->payload));
    case PayloadType::kU32:
      return karst_api_integer(name, low);
    case PayloadType::kI32:
      return karst_api_integer(name, static_cast<std::int32_t>(low));
    case PayloadType::kDouble:
      return karst_api_number(name, a->payload);
    case PayloadType::kFloat:
      return karst_api_number(name, double_of_float(low));
    case PayloadType::kNone:
      break;
  }
}

// ---- categories: each has the name that the program gave its number in the domain ------------------

struct Category {
  std::uint64_t key;  ///< of domain and number; 0: free
  const KeptText* name;
};
constexpr std::uint32_t kMostCategories = 256;
Category g_categories[kMostCategories];

Category* category_at(const void* domain, std::uint32_t number, bool make) {
  const std::uint64_t key = (reinterpret_cast<std::uintptr_t>(kept_text_at(domain)) << 16 ^ number) + 1;
  for (std::uint32_t i = 0; key != 0 && i < kMostCategories; ++i) {
    Category& category = g_categories[((key * 0x9e3779b97f4a7c15ULL >> 56) + i) % kMostCategories];
    std::uint64_t there = load(category.key);
    if (there == 0 && !make) return nullptr;
    if (there == 0 && exchange_if(category.key, std::uint64_t{0}, key)) there = key;
    if (there == key || load(category.key) == key) return &category;
  }
  return nullptr;
}

void say_category(const void* domain, const Attributes* a) {
  if (a == nullptr || a->size < sizeof(Attributes) || a->category == 0) return;
  const Category* const category = category_at(domain, a->category, false);
  const KeptText* const name = category != nullptr ? load(category->name) : nullptr;
  if (name != nullptr) say(NoteKind::kText, {"category", 8}, {": ", 2}, said(*name));
}

void name_category(const void* domain, std::uint32_t number, Said name) {
  const KeptText* const kept = keep_text({}, name);
  Category* const category = kept != nullptr ? category_at(domain, number, true) : nullptr;
  if (category != nullptr) store(category->name, kept);
}

// ---- marks, and ranges that begin and end in one thread -------------------------------------------

void mark(const void* domain, const Attributes* a) {
  if (!is_heard()) return;
  Message message;
  const Said text = message.text(a);
  say(NoteKind::kMessage, name_of(domain), kScope, text);
  if (a == nullptr || a->size < sizeof(Attributes) || a->payload_type == 0) return;
  KeptText* const kept = keep_text(name_of(domain), text);
  if (kept != nullptr) say_payload(&kept->name, a);
}
void MarkEx(const Attributes* a) { mark(nullptr, a); }
void DomainMarkEx(const void* domain, const Attributes* a) { mark(domain, a); }
template <typename Character>
void Mark(const Character* text) {
  Message message;
  if (is_heard()) say(NoteKind::kMessage, {}, {}, message.text(text));
}

template <typename Text>
__attribute__((noinline)) NoteName* range_name(const void* domain, const Text* text) {
  if (!is_heard()) return nullptr;
  Message message;
  KeptText* const kept = keep_text(name_of(domain), message.text(text));
  return kept != nullptr ? &kept->name : &g_further_ranges;
}

/// What the attributes say beside the name, and the name itself where there were too many.
__attribute__((noinline)) void say_more(const NoteName* name, const void* domain, const Attributes* a) {
  if (name == &g_further_ranges) {
    Message message;
    say(NoteKind::kText, {}, {}, message.text(a));
  }
  say_payload(&g_payload, a);
  if (a != nullptr && a->size >= sizeof *a && a->color_type == kArgb) karst_api_color(a->color & 0xffffff);
  say_category(domain, a);
}

int push(const void* domain, const Attributes* a) {
  NoteName* const name = open_zone(range_name(domain, a), domain);
  if (name == nullptr) return kNoLevel;
  karst_api_zone_enter(name);
  say_more(name, domain, a);
  return kNoLevel;
}
int RangePushEx(const Attributes* a) { return push(nullptr, a); }
int DomainRangePushEx(const void* domain, const Attributes* a) { return push(domain, a); }
template <typename Character>
int RangePush(const Character* text) {
  karst_api_zone_enter(open_zone(range_name(nullptr, text), nullptr));
  return kNoLevel;
}
int DomainRangePop(const void* domain) {
  karst_api_zone_leave(close_zone(domain));
  return kNoLevel;
}
int RangePop() { return DomainRangePop(nullptr); }

// ---- ranges that may end in another thread ---------------------------------------------------------

std::uint64_t g_next_range = kFirstRangeNumber;

std::uint64_t begin_range(const void* domain, Said text) {
  const std::uint64_t number = __atomic_fetch_add(&g_next_range, 1, __ATOMIC_RELAXED);
  say(NoteKind::kMessage, name_of(domain), kScope, text);
  karst_api_request_begin(number);
  return number;
}
std::uint64_t DomainRangeStartEx(const void* domain, const Attributes* a) {
  Message message;
  return begin_range(domain, message.text(a));
}
std::uint64_t RangeStartEx(const Attributes* a) { return DomainRangeStartEx(nullptr, a); }
template <typename Character>
std::uint64_t RangeStart(const Character* text) {
  Message message;
  return begin_range(nullptr, message.text(text));
}
void RangeEnd(std::uint64_t number) {
  if (number >= kFirstRangeNumber && number < load(g_next_range)) karst_api_request_end(number);
}
void DomainRangeEnd(const void*, std::uint64_t number) { RangeEnd(number); }

// ---- names -----------------------------------------------------------------------------------------

template <typename Character>
void NameCategory(std::uint32_t number, const Character* name) {
  Message message;
  name_category(nullptr, number, message.text(name));
}
template <typename Character>
void DomainNameCategory(const void* domain, std::uint32_t number, const Character* name) {
  Message message;
  name_category(domain, number, message.text(name));
}

/// A thread's own name alone: others' are theirs to change.
template <typename Character>
void NameOsThread(std::uint32_t thread, const Character* name) {
  if (sys::gettid() != static_cast<long>(thread)) return;
  Message message;
  const KeptText* const kept = keep_text({}, message.text(name));
  if (kept != nullptr) karst_api_thread_set_name(kept->name.name);
}

template <typename Character>
const KeptText* DomainRegisterString(const void*, const Character* text) {
  Message message;
  return keep_text({}, message.text(text));
}
template <typename Character>
const KeptText* DomainCreate(const Character* name) {
  Message message;
  return keep_text({}, message.text(name));
}

struct Known {
  std::uint32_t number;
  void* function;
};

#define KARST_NVTX(number, ...) \
  { number, reinterpret_cast<void*>(__VA_ARGS__) }
void fill(const Callbacks& callbacks, std::uint32_t module, const Known* known, std::uint32_t known_count) {
  FunctionTable table = nullptr;
  unsigned count = 0;
  if (callbacks.get_functions(module, &table, &count) == 0 || table == nullptr) return;
  for (std::uint32_t i = 0; i < known_count; ++i)
    if (known[i].number < count && table[known[i].number] != nullptr) store(*table[known[i].number], known[i].function);
}

void fill_core(const Callbacks& callbacks) {
  using NameOs = void (*)(std::uint32_t, const char*);
  using WideNameOs = void (*)(std::uint32_t, const wchar_t*);
  using Text = void (*)(const char*);
  using WideText = void (*)(const wchar_t*);
  static const Known known[] = {
      KARST_NVTX(1, MarkEx),
      KARST_NVTX(2, static_cast<Text>(Mark)),
      KARST_NVTX(3, static_cast<WideText>(Mark)),
      KARST_NVTX(4, RangeStartEx),
      KARST_NVTX(5, static_cast<std::uint64_t (*)(const char*)>(RangeStart)),
      KARST_NVTX(6, static_cast<std::uint64_t (*)(const wchar_t*)>(RangeStart)),
      KARST_NVTX(7, RangeEnd),
      KARST_NVTX(8, RangePushEx),
      KARST_NVTX(9, static_cast<int (*)(const char*)>(RangePush)),
      KARST_NVTX(10, static_cast<int (*)(const wchar_t*)>(RangePush)),
      KARST_NVTX(11, RangePop),
      KARST_NVTX(12, static_cast<NameOs>(NameCategory)),
      KARST_NVTX(13, static_cast<WideNameOs>(NameCategory)),
      KARST_NVTX(14, static_cast<NameOs>(NameOsThread)),
      KARST_NVTX(15, static_cast<WideNameOs>(NameOsThread)),
  };
  fill(callbacks, kCore, known, sizeof known / sizeof known[0]);
}

void fill_domains(const Callbacks& callbacks) {
  using Name = void (*)(const void*, std::uint32_t, const char*);
  using WideName = void (*)(const void*, std::uint32_t, const wchar_t*);
  static const Known known[] = {
      KARST_NVTX(1, DomainMarkEx),
      KARST_NVTX(2, DomainRangeStartEx),
      KARST_NVTX(3, DomainRangeEnd),
      KARST_NVTX(4, DomainRangePushEx),
      KARST_NVTX(5, DomainRangePop),
      KARST_NVTX(8, static_cast<Name>(DomainNameCategory)),
      KARST_NVTX(9, static_cast<WideName>(DomainNameCategory)),
      KARST_NVTX(10, static_cast<const KeptText* (*)(const void*, const char*)>(DomainRegisterString)),
      KARST_NVTX(11, static_cast<const KeptText* (*)(const void*, const wchar_t*)>(DomainRegisterString)),
      KARST_NVTX(12, static_cast<const KeptText* (*)(const char*)>(DomainCreate)),
      KARST_NVTX(13, static_cast<const KeptText* (*)(const wchar_t*)>(DomainCreate)),
  };
  fill(callbacks, kCore2, known, sizeof known / sizeof known[0]);
}

}  // namespace
}  // namespace karst::runtime::nvtx

/// 0: what the program says goes nowhere.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    const void* (*get_export_table)(std::uint32_t)) {
  using namespace karst::runtime::nvtx;
  if (get_export_table == nullptr) return 0;
  const auto* const callbacks = static_cast<const Callbacks*>(get_export_table(kCallbacks));
  if (callbacks == nullptr || callbacks->size < sizeof(Callbacks) || callbacks->get_functions == nullptr) return 0;
  const auto* const version = static_cast<const VersionInfo*>(get_export_table(kVersionInfo));
  if (version != nullptr && version->size >= sizeof(VersionInfo) && version->set_version != nullptr)
    version->set_version(3);
  fill_core(*callbacks);
  fill_domains(*callbacks);
  return 1;
}
