// SPDX-License-Identifier: MIT
#include "runtime/unbuilt/plain_jumps.h"

#include <sys/mman.h>

#include "arch/page.h"
#include "format/patch_site.h"
#include "runtime/system/mappings.h"
#include "runtime/system/memory.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

// In a static program we are ourselves in the code that is patched.
#ifdef KARST_STATIC
constexpr int kWhilePatching = PROT_READ | PROT_WRITE | PROT_EXEC;
#else
constexpr int kWhilePatching = PROT_READ | PROT_WRITE;
#endif

PatchSite site_of(const ModuleImage& image, const PlainCode& p, std::uint32_t jump) {
  return format::site_of(p.jumps[jump], image.bias, p.stubs);
}

bool stands(const PatchSite& site) { return site.is_after(reinterpret_cast<const unsigned char*>(site.address)); }

/// Until this goes, the module's code may be written to.
class Writable {
 public:
  explicit Writable(const ModuleImage& image) : image_(image) {
    for (; changed_ < image.segment_count; ++changed_) {
      const CodeSegment& s = image.segments[changed_];
      if (sys::mprotect(s.begin, s.end - s.begin, kWhilePatching) != 0) return;
    }
  }
  ~Writable() {
    for (std::uint32_t i = 0; i < changed_; ++i) {
      const CodeSegment& s = image_.segments[i];
      sys::mprotect(s.begin, s.end - s.begin, s.protection);
    }
  }
  Writable(const Writable&) = delete;
  Writable& operator=(const Writable&) = delete;

  bool all() const { return changed_ == image_.segment_count; }
  void leave_out_of_core_files() const {
    for (std::uint32_t i = 0; i < changed_; ++i) leave_out_of_cores(image_.segments[i]);
  }

 private:
  const ModuleImage& image_;
  std::uint32_t changed_ = 0;
};

/// Calls visit(number, first, end) for each function or probe: numbers of its jumps, which stand together.
template <typename Visit>
void for_each_patched(const PlainCode& p, Visit visit) {
  const PatchTable& t = *p.table;
  for (std::uint32_t i = 0; i < t.jumps;) {
    const std::uint32_t first = i;
    const std::uint32_t number = p.jumps[i].function;
    while (i < t.jumps && p.jumps[i].function == number) ++i;
    visit(number, first, i);
  }
}

/// A function or probe is changed as a whole or not at all; no two of them overlap.
bool write_if_as_seen(const ModuleImage& image, const PlainCode& p, std::uint32_t first, std::uint32_t end) {
  for (std::uint32_t i = first; i < end; ++i) {
    const PatchSite site = site_of(image, p, i);
    if (!site.is_before(reinterpret_cast<const unsigned char*>(site.address))) return false;
  }
  for (std::uint32_t i = first; i < end; ++i) {
    const PatchSite site = site_of(image, p, i);
    copy(reinterpret_cast<unsigned char*>(site.address), site.after, site.size);
  }
  return true;
}

/// Part of a module's code.
struct Stretch {
  std::uintptr_t begin, end;
};

/// What of the code is writable now, for a child by a raw system call. Under the lock of patching.
struct OpenCode {
  std::uint32_t count;
  int protection;  // before
  Stretch stretches[128];

  bool has(std::uintptr_t page) const {
    for (std::uint32_t i = count; i-- != 0;)  // the last one as a rule
      if (stretches[i].begin <= page && page < stretches[i].end) return true;
    return false;
  }
} g_open;

/// Makes code of the module writable where it is written to. Each change of protection interrupts the other processors,
/// for 12 us on a virtual machine; of all of the code, the kernel would look at each page (0.1 us). So some pages are
/// opened at a time, and closed by one call.
class WritableCode {
 public:
  explicit WritableCode(const ModuleImage& image) : image_(image) {}
  ~WritableCode() { close(); }
  WritableCode(const WritableCode&) = delete;
  WritableCode& operator=(const WritableCode&) = delete;

  /// False: the system does not allow it.
  bool open(std::uintptr_t at) {
    const std::uintptr_t page = at / arch::kPage * arch::kPage;
    if (g_open.has(page)) return true;
    for (std::uint32_t i = 0; i < image_.segment_count; ++i)
      if (const CodeSegment& s = image_.segments[i]; page >= s.begin && page < s.end) return open(s, page);
    return false;
  }

 private:
  static constexpr std::uintptr_t kAtATime = 256 * arch::kPage;

  bool open(const CodeSegment& segment, std::uintptr_t page) {
    if (segment_ != &segment || g_open.count == sizeof g_open.stretches / sizeof *g_open.stretches) {
      close();
      segment_ = &segment;
      is_whole_ = is_all_protected(segment.begin, segment.end);
    }
    if (!is_whole_ && is_writable(page)) return true;  // by the program itself
    const std::uintptr_t most = is_whole_ ? kAtATime : arch::kPage;
    const std::uintptr_t end = segment.end - page < most ? segment.end : page + most;
    g_open.protection = segment.protection;
    g_open.stretches[g_open.count] = {page, end};
    store(g_open.count, g_open.count + 1);
    if (sys::mprotect(page, end - page, PROT_READ | PROT_WRITE | PROT_EXEC) == 0) return true;
    store(g_open.count, g_open.count - 1);
    return false;
  }
  void close() {
    if (!is_whole_ || g_open.count < 2) return close_code();
    Stretch all = g_open.stretches[0];
    for (std::uint32_t i = 1; i < g_open.count; ++i) {
      const Stretch& s = g_open.stretches[i];
      all = {s.begin < all.begin ? s.begin : all.begin, s.end > all.end ? s.end : all.end};
    }
    if (sys::mprotect(all.begin, all.end - all.begin, g_open.protection) != 0) return close_code();
    store(g_open.count, std::uint32_t{0});
  }

  const ModuleImage& image_;
  const CodeSegment* segment_ = nullptr;
  bool is_whole_ = false;
};

/// Puts what stood there before the jump by one store, so that a thread comes to all of the jump or to none of it. What
/// goes beyond 8 aligned bytes, of which processors promise that, is left; so is what somebody else has written. False:
/// it may not be written to.
bool take_back(WritableCode& writable, const PatchSite& site) {
  std::uint32_t first = 0;
  std::uint32_t end = site.size;
  while (first < end && site.after[first] == site.before[first]) ++first;
  while (end > first && site.after[end - 1] == site.before[end - 1]) --end;
  constexpr std::uintptr_t kQuadword = 8;
  const std::uintptr_t word = (site.address + first) & ~(kQuadword - 1);
  if (first == end || site.address + end - word > kQuadword) return true;
  if (!writable.open(word)) return false;
  auto& code = *reinterpret_cast<std::uint64_t*>(word);
  const std::uint64_t was = load(code);
  if (!stands(site)) return true;
  std::uint64_t shall = was;
  copy(reinterpret_cast<unsigned char*>(&shall) + (site.address + first - word), site.before + first, end - first);
  exchange_if(code, was, shall);  // else a debugger has written to it meanwhile
  return true;
}

/// Calls visit(number) for each jump of the function until that is false, which is returned then.
template <typename Visit>
bool each_jump_of(const PlainCode& p, std::uint32_t function, Visit visit) {
  // Functions' jumps come in the order of their numbers.
  std::uint32_t first = 0;
  for (std::uint32_t end = p.table->jumps; first < end;) {
    const std::uint32_t middle = first + (end - first) / 2;
    if (p.jumps[middle].function < function)
      first = middle + 1;
    else
      end = middle;
  }
  for (; first < p.table->jumps && p.jumps[first].function == function; ++first)
    if (!visit(first)) return false;
  return true;
}

}  // namespace

bool write_jumps(const ModuleImage& image, const PlainCode& p, void* context,
                 bool (*is_wanted)(void* context, std::uint32_t function),
                 void (*left_out)(void* context, std::uint32_t function)) {
  const Writable code(image);
  if (!code.all()) return false;
  for_each_patched(p, [&](std::uint32_t number, std::uint32_t first, std::uint32_t end) {
    if (number >= p.table->functions) return;
    if (!is_wanted(context, number) || !write_if_as_seen(image, p, first, end)) left_out(context, number);
  });
  code.leave_out_of_core_files();
  return true;
}

bool write_probe_jumps(const ModuleImage& image, const PlainCode& p, void* context,
                       void (*written)(void* context, std::uint32_t probe),
                       void (*left_out)(void* context, std::uint32_t probe)) {
  const Writable code(image);
  if (!code.all()) return false;
  for_each_patched(p, [&](std::uint32_t number, std::uint32_t first, std::uint32_t end) {
    if (number < p.table->functions) return;
    const bool is_written = write_if_as_seen(image, p, first, end);
    if (const std::uint32_t probe = number - p.table->functions; probe < p.table->probes)
      (is_written ? written : left_out)(context, probe);
  });
  code.leave_out_of_core_files();
  return true;
}

bool is_code_open() { return load(g_open.count) != 0; }

void close_code() {
  for (std::uint32_t i = 0; i < g_open.count; ++i) {
    const Stretch& s = g_open.stretches[i];
    sys::mprotect(s.begin, s.end - s.begin, g_open.protection);
  }
  store(g_open.count, std::uint32_t{0});
}

bool remove_jumps(const ModuleImage& image, const PlainCode& p, void* context, std::uint32_t (*next)(void* context)) {
  WritableCode writable(image);
  bool done = true;
  const auto remove = [&](std::uint32_t i) {
    return p.jumps[i].alone == 0 || take_back(writable, site_of(image, p, i));
  };
  for (std::uint32_t function = next(context); function < p.table->functions; function = next(context))
    done = each_jump_of(p, function, remove) && done;
  return done;
}

bool jumps_stand(const ModuleImage& image, const PlainCode& p, std::uint32_t function) {
  return each_jump_of(p, function, [&](std::uint32_t i) { return stands(site_of(image, p, i)); });
}

bool detours_stand(const ModuleImage& image, const PlainCode& p) {
  for (std::uint32_t i = p.table->jumps; i-- != 0;) {  // theirs are the last
    if (p.jumps[i].function < p.table->functions + p.table->probes) break;
    if (!stands(site_of(image, p, i))) return false;
  }
  return true;
}

void check_jumps(const ModuleImage& image, const PlainCode& p, void* context,
                 void (*left_out)(void* context, std::uint32_t function)) {
  for (std::uint32_t i = 0; i < p.table->jumps; ++i) {
    const std::uint32_t number = p.jumps[i].function;
    if (number < p.table->functions && !stands(site_of(image, p, i))) left_out(context, number);
  }
}

}  // namespace karst::runtime
