#include "patch/code.h"

#include <algorithm>
#include <cstring>

#include "symbols/sandbox_helper.h"

namespace karst::patch {
namespace {

constexpr std::uint32_t kMostEntries = 1U << 16;  // of a table of jumps
constexpr std::uint64_t kMostCode = 1U << 30;     // bytes, each of which has a bit in each set of addresses

/// All of its segments of code; it has some if it has frames.
Range extent(const ElfImage& image) {
  Range all = image.code().front();
  for (const Range& r : image.code()) all = {std::min(all.begin, r.begin), std::max(all.end, r.end)};
  return all;
}

/// From `begin` on a flag is read that none of these instructions has written.
bool reads_flags_of_others(std::span<const Instruction> instructions, std::size_t begin) {
  constexpr std::size_t kLooked = 16;
  const std::size_t end = std::min(instructions.size(), begin + kLooked);
  for (std::size_t n = begin; n < end; ++n) {
    const Instruction& i = instructions[n];
    if (i.reads_flags) return true;
    if (i.writes_flags || i.ends_flow || is_call(i)) return false;
  }
  return false;
}

}  // namespace

Code::Code(const ElfImage& image, const Frames& frames) : image_(&image), frames_(&frames) {
  const Range all = extent(image);
  none_ = AddressSet(all.begin, all.end - all.begin);
  targets_ = none_;
  entered_ = none_;
  cold_ = none_;
  takes_flags_ = none_;
  returns_flags_ = none_;
  has_table_.resize(frames.all().size());
  has_labels_.resize(frames.all().size());
  is_called_inside_.resize(frames.all().size());
}

Result<Code> Code::decode(const ElfImage& image, const Frames& frames) {
  const Range all = extent(image);
  if (all.end - all.begin > kMostCode) return Error{"its code lies more than 1 GiB apart"};
  Code code(image, frames);
  std::uint64_t bytes = 0;
  for (const Frame& frame : frames.all()) bytes += frame.code.end - frame.code.begin;
  std::size_t middle = 0;
  for (std::uint64_t seen = 0; middle < frames.all().size() && seen < bytes / 2; ++middle)
    seen += frames.all()[middle].code.end - frames.all()[middle].code.begin;
  auto& [lower, upper] = code.parts_;
  lower.end = upper.begin = middle;
  upper.end = frames.all().size();
  symbols::side_by_side([&] { code.decode_part(code.parts_[0]); }, [&] { code.decode_part(code.parts_[1]); });
  // A number within the code of one part may be in that of the other.
  symbols::side_by_side([&] { code.gather_from(code.parts_[0]); }, [&] { code.gather_from(code.parts_[1]); });
  for (Part& part : code.parts_) {
    code.targets_.add(part.targets);
    code.entered_.add(part.entered);
    code.takes_flags_.add(part.takes_flags);
    code.returns_flags_.add(part.returns_flags);
    for (const std::size_t frame : part.called_inside) code.is_called_inside_[frame] = true;
    part.targets = part.entered = part.takes_flags = part.returns_flags = AddressSet();
  }
  code.follow_returned_flags();
  code.gather_from_data();
  return code;
}

void Code::decode_part(Part& part) const {
  part.first.reserve(part.end - part.begin + 1);
  if (part.begin != part.end) {
    const std::uint64_t low = frames_->all()[part.begin].code.begin;
    const std::uint64_t high = frames_->all()[part.end - 1].code.end;
    part.within = AddressSet(low, high - low);
  }
  // What is not used costs no memory.
  constexpr std::uint64_t kFewBytes = 3;  // of an instruction, at an average
  std::uint64_t bytes = 0;
  for (std::size_t i = part.begin; i < part.end; ++i) {
    const Range range = frames_->all()[i].code;
    bytes += range.end - range.begin;
  }
  part.instructions.reserve(bytes / kFewBytes);
  for (std::size_t i = part.begin; i < part.end; ++i) decode_frame(part, i);
  part.first.push_back(part.instructions.size());
}

void Code::decode_frame(Part& part, std::size_t frame) const {
  Decoder& decoder = Decoder::of_thread();
  part.first.push_back(part.instructions.size());
  const Range range = frames_->all()[frame].code;
  const auto bytes = image_->from(range.begin);
  const std::uint64_t size = range.end - range.begin;
  if (bytes.size() < size || size > 0xffffffffU) return;
  for (std::uint64_t at = 0; at < size;) {
    auto in = decoder.decode(bytes.subspan(at, size - at), range.begin + at);
    if (!in) {
      part.instructions.resize(part.first.back());
      std::erase_if(part.stack_pointers_saved, [frame](const Numbered& n) { return n.frame == frame; });
      return;
    }
    in->offset = static_cast<std::uint32_t>(at);
    if (in->saves_stack_pointer)
      part.stack_pointers_saved.push_back({frame, part.instructions.size() - part.first.back()});
    part.instructions.push_back(*in);
    at += in->size;
  }
  for (std::size_t n = part.first.back(); n < part.instructions.size(); ++n) {
    const Instruction& in = part.instructions[n];
    part.within.add(range.begin + in.offset + 1, range.begin + in.offset + in.size);
  }
}

std::vector<Code::Numbered> Code::stack_pointers_saved() const {
  std::vector<Numbered> all;
  for (const Part& part : parts_)
    all.insert(all.end(), part.stack_pointers_saved.begin(), part.stack_pointers_saved.end());
  return all;
}

std::span<const std::byte> Code::bytes(std::uint64_t begin, std::size_t size) const {
  const auto bytes = image_->from(begin);
  return bytes.size() < size ? std::span<const std::byte>() : bytes.first(size);
}

void Code::gather_from(Part& part) {
  part.targets = part.entered = part.takes_flags = part.returns_flags = none_;
  for (std::size_t f = part.begin; f < part.end; ++f) {
    const Frame& frame = frames_->all()[f];
    part.targets.add(frame.code.begin);
    if (const auto pads = frames_->landing_pads(frame))
      for (const std::uint64_t pad : *pads) part.targets.add(pad);
    const auto code = image_->from(frame.code.begin);
    const auto instructions = of(f);
    if (reads_flags_of_others(instructions, 0)) part.takes_flags.add(frame.code.begin);
    for (const Instruction& i : instructions) {
      if (i.target != 0) part.targets.add(i.target);
      if (is_call(i)) part.targets.add(frame.code.begin + i.offset + i.size);  // where it returns to
      if (i.kind == Kind::kCall) {
        part.entered.add(i.target);
        const auto behind = static_cast<std::size_t>(&i - instructions.data()) + 1;
        if (reads_flags_of_others(instructions, behind)) part.returns_flags.add(i.target);
        const auto called = frames_->find(i.target);
        if (called && frames_->all()[*called].code.begin != i.target) part.called_inside.push_back(*called);
      }
      if (i.kind == Kind::kRelative) {
        part.entered.add(i.target);  // its address is taken
        if (!image_->is_code(i.target)) gather_table(part, f, i.target);
      }
      // A program at a fixed address may have any address as a number in an instruction.
      if (image_->is_fixed() && i.size >= 5) {
        std::uint32_t number = 0;
        std::memcpy(&number, code.data() + i.offset + i.size - sizeof number, sizeof number);
        if (!image_->is_code(number) || is_within_instruction(number)) continue;
        part.targets.add(number);
        part.entered.add(number);
      }
    }
  }
}

/// What such a function jumps to returns to the same callers.
void Code::follow_returned_flags() {
  std::vector<std::size_t> due;
  for (std::size_t f = 0; f < frames_->all().size(); ++f)
    if (returns_flags(frames_->all()[f].code.begin)) due.push_back(f);
  while (!due.empty()) {
    const std::size_t f = due.back();
    due.pop_back();
    for (const Instruction& i : of(f)) {
      const auto to = is_jump(i) ? frames_->find(i.target) : std::nullopt;
      if (!to || frames_->all()[*to].code.begin != i.target || returns_flags(i.target)) continue;
      returns_flags_.add(i.target);
      due.push_back(*to);
    }
  }
}

// Compilers' jumps by tables: entries of 4 bytes, distances from the table's own address, which an instruction names.
// Tables of whole addresses are among the pointers in data.
void Code::gather_table(Part& part, std::size_t frame, std::uint64_t table) {
  const Range own = frames_->all()[frame].code;
  std::uint32_t inside = 0;
  for (std::uint32_t n = 0; n < kMostEntries; ++n) {
    const auto distance = image_->number(table + std::uint64_t{4} * n, 4);
    if (!distance) break;
    const std::uint64_t to = table + static_cast<std::uint64_t>(*distance);
    if (!image_->is_code(to)) break;
    part.targets.add(to);
    inside += own.contains(to) ? 1 : 0;
  }
  if (inside >= 2) has_table_[frame] = 1;
}

void Code::gather_from_data() {
  for (const std::uint64_t address : image_->code_pointers()) {
    if (is_within_instruction(address)) continue;
    targets_.add(address);
    entered_.add(address);
    // Pointers into the middle of a frame: tables of labels.
    const auto f = frames_->find(address);
    if (f && frames_->all()[*f].code.begin != address) has_table_[*f] = has_labels_[*f] = true;
  }
  for (const std::uint64_t address : image_->cold_symbols()) cold_.add(address);
  for (const std::uint64_t address : image_->code_symbols()) {
    targets_.add(address);
    if (!is_cold(address)) entered_.add(address);
  }
}

// Some entries may be none, and a table's address may be one before its beginning.
std::optional<bool> Code::leads_into(std::size_t frame, std::uint64_t table) const {
  constexpr std::uint64_t kLooked = 512;
  const Range own = frames_->all()[frame].code;
  std::optional<bool> into;
  for (std::uint64_t n = 0; n < kLooked; ++n) {
    const auto bytes = image_->from(table + n * sizeof(std::uint64_t));
    std::uint64_t to = 0;
    if (bytes.size() < sizeof to) break;
    std::memcpy(&to, bytes.data(), sizeof to);
    if (!image_->is_code(to)) continue;
    if (own.contains(to) && to != own.begin) return true;
    into = false;
  }
  return into;
}

std::size_t Code::padding(std::uint64_t address, std::size_t limit) const {
  Decoder& decoder = Decoder::of_thread();
  std::size_t size = 0;
  while (size < limit) {
    const std::uint64_t at = address + size;
    if (is_target(at)) break;
    const auto i = decoder.decode(image_->from(at), at);
    if (!i || i->kind != Kind::kPadding || has_target(at, at + i->size)) break;
    size += i->size;
  }
  return std::min(size, limit);
}

}  // namespace karst::patch
