#include "runtime/hooks/plain_jumps.h"

#include <sys/mman.h>

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

bool same_bytes(const unsigned char* a, const unsigned char* b, std::uint32_t size) {
  for (std::uint32_t i = 0; i < size; ++i)
    if (a[i] != b[i]) return false;
  return true;
}

/// The `j.size` bytes that are to stand at `at`.
void make_jump(const PatchJump& j, const PlainCode& p, std::uintptr_t at, unsigned char* bytes) {
  copy(bytes, j.after, j.size);
  if (j.field != kPatchNoField) put_distance(bytes + j.field, p.stubs + j.offset - (at + j.field + 4U));
}

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
    const auto* site = reinterpret_cast<const unsigned char*>(image.bias + p.jumps[i].address);
    if (!same_bytes(site, p.jumps[i].before, p.jumps[i].size)) return false;
  }
  for (std::uint32_t i = first; i < end; ++i) {
    const std::uintptr_t at = image.bias + p.jumps[i].address;
    make_jump(p.jumps[i], p, at, reinterpret_cast<unsigned char*>(at));
  }
  return true;
}

bool stands(const ModuleImage& image, const PlainCode& p, std::uint32_t jump) {
  const PatchJump& j = p.jumps[jump];
  const std::uintptr_t at = image.bias + j.address;
  unsigned char wanted[sizeof j.after];
  make_jump(j, p, at, wanted);
  return same_bytes(reinterpret_cast<const unsigned char*>(at), wanted, j.size);
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

bool detours_stand(const ModuleImage& image, const PlainCode& p) {
  for (std::uint32_t i = p.table->jumps; i-- != 0;) {  // theirs are the last
    if (p.jumps[i].function < p.table->functions + p.table->probes) break;
    if (!stands(image, p, i)) return false;
  }
  return true;
}

void check_jumps(const ModuleImage& image, const PlainCode& p, void* context,
                 void (*left_out)(void* context, std::uint32_t function)) {
  for (std::uint32_t i = 0; i < p.table->jumps; ++i) {
    const std::uint32_t number = p.jumps[i].function;
    if (number < p.table->functions && !stands(image, p, i)) left_out(context, number);
  }
}

}  // namespace karst::runtime
