// SPDX-License-Identifier: MIT
#include "patch/allocator.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "format/memory.h"
#include "patch/code.h"
#include "patch/frames.h"
#include "sandbox/sandbox.h"

namespace karst::patch {
namespace {

constexpr std::uint64_t kMostAnswer = std::uint64_t{64} << 20;
constexpr std::string_view kNotKnown = "its code leads to places that are not known";

/// What libc's allocator offers besides; they return without a lock, as malloc() does.
constexpr std::array<std::string_view, 10> kOthers = {
    "cfree",    "malloc_usable_size", "malloc_trim", "malloc_stats", "malloc_info",
    "mallinfo", "mallinfo2",          "mallopt",     "reallocarray", "malloc_get_state"};

bool is_allocators(std::string_view name) {
  return std::find(std::begin(format::kAllocatorFunctions), std::end(format::kAllocatorFunctions), name) !=
             std::end(format::kAllocatorFunctions) ||
         std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end();
}

/// Who leads to whom, by numbers of frames.
class Ways {
 public:
  Ways(const ElfImage& image, const Frames& frames, const Code& code)
      : frames_(frames), code_(code), to_(frames.all().size()), from_(to_.size()), is_lost_(to_.size()) {
    for (const char* name : {".plt", ".plt.sec", ".plt.got"}) {
      const std::uint64_t begin = image.section_address(name);
      if (begin != 0) linkage_.push_back({begin, begin + image.contents(name).size()});
    }
    for (const ElfImage::NamedCode& function : image.exported_functions()) {
      if (is_allocators(function.name)) entries_.push_back(function.address);
      is_sanitizers_ = is_sanitizers_ || function.name == "__interceptor_malloc";
    }
    std::sort(entries_.begin(), entries_.end());
    for (std::size_t f = 0; f < to_.size(); ++f) gather(image, f);
  }

  bool has_entries() const { return !entries_.empty(); }

  /// Frames that are the allocator's. None: not known. Adds to the pointers.
  std::optional<std::vector<bool>> allocator(AllocatorCode& to) const {
    if (is_sanitizers_) return std::nullopt;  // all of its runtime may be at locks
    std::vector<bool> found(to_.size());
    std::vector<std::size_t> fresh;
    const auto add = [&](std::size_t frame) {
      if (!found[frame]) fresh.push_back(frame);
      found[frame] = true;
    };
    for (const std::uint64_t entry : entries_) {
      const auto frame = frames_.find(entry);
      if (!frame || frames_.all()[*frame].code.begin != entry || !ends_in(*frame, to)) return std::nullopt;
      add(*frame);
    }
    while (!fresh.empty()) {
      const std::size_t frame = fresh.back();
      fresh.pop_back();
      if (is_lost_[frame]) return std::nullopt;
      for (const std::size_t next : to_[frame]) add(next);
    }
    for (std::size_t f = 0; f < found.size(); ++f)
      if (found[f]) fresh.push_back(f);
    while (!fresh.empty()) {
      const std::size_t frame = fresh.back();
      fresh.pop_back();
      for (const std::size_t from : from_[frame]) add(from);
    }
    // Where something is no instruction, it may lead anywhere.
    for (std::size_t f = 0; f < found.size(); ++f) found[f] = found[f] || code_.of(f).empty();
    return found;
  }

 private:
  bool is_entry(std::uint64_t address) const { return std::binary_search(entries_.begin(), entries_.end(), address); }
  bool is_linkage(std::uint64_t address) const {
    return std::any_of(linkage_.begin(), linkage_.end(), [&](const Range& r) { return r.contains(address); });
  }

  void gather(const ElfImage& image, std::size_t frame) {
    const Range own = frames_.all()[frame].code;
    if (is_linkage(own.begin)) return;
    const auto lead = [&](std::uint64_t target) {
      if (own.contains(target) || is_linkage(target) || !image.is_code(target)) return;
      const auto to = frames_.find(target);
      if (!to) {
        is_lost_[frame] = true;
        return;
      }
      to_[frame].push_back(*to);
      if (!is_entry(target)) from_[*to].push_back(frame);
    };
    is_lost_[frame] = code_.of(frame).empty();
    for (const Instruction& i : code_.of(frame))
      if (i.kind == Kind::kCall || i.kind == Kind::kJump || i.kind == Kind::kJumpIf) lead(i.target);
    const auto pads = frames_.landing_pads(frames_.all()[frame]);
    if (!pads) is_lost_[frame] = true;
    if (pads)
      for (const std::uint64_t pad : *pads) lead(pad);
  }

  /// What the function's frame gives way to is known, or is where a pointer leads, which is added to `found`.
  bool ends_in(std::size_t entry, AllocatorCode& found) const {
    std::vector<std::size_t> seen = {entry};
    for (std::size_t at = 0; at < seen.size(); ++at)
      for (const Instruction& i : code_.of(seen[at])) {
        if (i.kind == Kind::kJumpAnywhere && i.target == 0) return false;
        if (i.kind == Kind::kJumpAnywhere) found.pointers.push_back(i.target);
        const auto to = i.kind == Kind::kJump || i.kind == Kind::kJumpIf ? frames_.find(i.target) : std::nullopt;
        if (to && is_linkage(i.target)) {
          const std::uint64_t slot = slot_of(*to, i.target);
          if (slot == 0) return false;
          found.slots.push_back(slot);
        } else if (to && std::find(seen.begin(), seen.end(), *to) == seen.end()) {
          seen.push_back(*to);
        }
      }
    return true;
  }

  /// Where the address lies to which the code at `address`, in a frame of the linkage, jumps; 0: not known.
  std::uint64_t slot_of(std::size_t frame, std::uint64_t address) const {
    const std::uint64_t begin = frames_.all()[frame].code.begin;
    for (const Instruction& i : code_.of(frame))
      if (begin + i.offset >= address && i.kind == Kind::kJumpAnywhere) return i.target;
    return 0;
  }

  const Frames& frames_;
  const Code& code_;
  std::vector<Range> linkage_;          // to other modules
  std::vector<std::uint64_t> entries_;  // in order
  bool is_sanitizers_ = false;
  std::vector<std::vector<std::size_t>> to_;
  std::vector<std::vector<std::size_t>> from_;  // but by an entry
  std::vector<bool> is_lost_;                   // it leads to what is not known
};

/// Empty: done, else why not.
std::string look_for(int descriptor, AllocatorCode& found) {
  const auto image = ElfImage::read(descriptor);
  if (!image) return image.error().message;
  const auto frames = Frames::read(*image);
  if (!frames) return frames.error().message;
  const auto decoded = Code::decode(*image, *frames);
  if (!decoded) return decoded.error().message;
  const Code& code = *decoded;
  const Ways ways(*image, *frames, code);
  if (!ways.has_entries()) return {};
  const auto allocator = ways.allocator(found);
  if (!allocator) return std::string(kNotKnown);
  for (std::size_t f = 0; f < allocator->size(); ++f) {
    const Range& own = frames->all()[f].code;
    if (!(*allocator)[f]) continue;
    if (!found.code.empty() && found.code.back().end == own.begin)
      found.code.back().end = own.end;
    else
      found.code.push_back(own);
  }
  return {};
}

}  // namespace

Result<AllocatorCode> allocator_code(int descriptor, const std::optional<sandbox::Credentials>& as) {
  sandbox::SandboxOptions sandbox{.as = as};
  sandbox.most = kMostAnswer;
  sandbox.keep = {descriptor};
  const auto answer = sandbox::in_sandbox(sandbox, [&](sandbox::AnswerWriter& out) {
    AllocatorCode found;
    out.text(look_for(descriptor, found));
    out.number(found.code.size());
    for (const Range& r : found.code) {
      out.number(r.begin);
      out.number(r.end);
    }
    for (const auto* pointers : {&found.pointers, &found.slots}) {
      out.number(pointers->size());
      for (const std::uint64_t pointer : *pointers) out.number(pointer);
    }
  });
  if (!answer) return answer.error();
  sandbox::AnswerReader in(*answer);
  if (const std::string_view error = in.text(); !error.empty()) return Error{std::string(error)};
  AllocatorCode found;
  found.code.resize(in.count(2 * sizeof(std::uint64_t)));
  for (Range& r : found.code) {
    r.begin = in.number();
    r.end = in.number();
  }
  for (auto* pointers : {&found.pointers, &found.slots}) {
    pointers->resize(in.count(sizeof(std::uint64_t)));
    for (std::uint64_t& pointer : *pointers) pointer = in.number();
  }
  return found;
}

}  // namespace karst::patch
