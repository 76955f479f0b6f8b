// SPDX-License-Identifier: MIT
#include "patch/code.h"

#include <algorithm>
#include <cstring>

#include "sandbox/sandbox_helper.h"

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
  labels_ = none_;
  cold_ = none_;
  takes_flags_ = none_;
  returns_flags_ = none_;
  has_table_.resize(frames.all().size());
  global_offset_table_ = image.global_offset_table();
  for (const auto& [address, name] : image.functions())
    if (name == "__x86_return_thunk") return_thunks_.push_back(address);
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
  sandbox::side_by_side([&] { code.decode_part(code.parts_[0]); }, [&] { code.decode_part(code.parts_[1]); });
  // A number within the code of one part may be in that of the other.
  sandbox::side_by_side([&] { code.gather_from(code.parts_[0]); }, [&] { code.gather_from(code.parts_[1]); });
  for (Part& part : code.parts_) {
    code.targets_.add(part.targets);
    code.entered_.add(part.entered);
    code.labels_.add(part.labels);
    code.takes_flags_.add(part.takes_flags);
    code.returns_flags_.add(part.returns_flags);
    for (const std::size_t frame : part.called_inside) code.is_called_inside_[frame] = true;
    part.targets = part.entered = part.labels = part.takes_flags = part.returns_flags = AddressSet();
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
  part.targets = part.entered = part.labels = part.takes_flags = part.returns_flags = none_;
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
        const std::uint64_t at = frame.code.begin + i.offset;
        if (called && frames_->all()[*called].code.begin != i.target &&
            (at == frame.code.begin || !is_returning_call(at)))
          part.called_inside.push_back(*called);
      }
      if (i.kind == Kind::kRelative) {
        part.entered.add(i.target);  // its address is taken
        // Code that finds out where it lies names itself.
        const bool names_itself = i.target == frame.code.begin + i.offset;
        if (frame.code.contains(i.target) && i.target != frame.code.begin && !names_itself) part.labels.add(i.target);
        gather_table(part, f, i.target, sizeof(std::int32_t));
      }
      gather_wide_number(part, f, i);
      // A program at a fixed address may have any address as a number in an instruction.
      if (image_->is_fixed() && i.size >= 5) {
        std::uint32_t number = 0;
        std::memcpy(&number, code.data() + i.offset + i.size - sizeof number, sizeof number);
        gather_number(part, f, number);
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

/// A number that may be an address.
void Code::gather_number(Part& part, std::size_t frame, std::uint64_t number) {
  if (!image_->is_code(number) || is_within_instruction(number)) return;
  part.targets.add(number);
  part.entered.add(number);
  const Range own = frames_->all()[frame].code;
  if (own.contains(number) && number != own.begin) part.labels.add(number);
}

/// With -mcmodel=large code has addresses as numbers of 8 bytes, or as distances from the global offset table.
void Code::gather_wide_number(Part& part, std::size_t frame, const Instruction& i) {
  constexpr std::size_t kSize = 10;  // movabs: a prefix, an operation and a register, the number
  if (i.size != kSize) return;
  const auto code = bytes(frames_->all()[frame].code.begin + i.offset, kSize);
  if (code.empty() || (code[0] & std::byte{0xf8}) != std::byte{0x48} || (code[1] & std::byte{0xf8}) != std::byte{0xb8})
    return;
  std::uint64_t number = 0;
  std::memcpy(&number, &code[2], sizeof number);
  for (const std::uint64_t address : {number, global_offset_table_ + number}) {
    gather_number(part, frame, address);
    gather_table(part, frame, address, sizeof(std::int32_t));
    gather_table(part, frame, address, sizeof(std::int64_t));
  }
}

// Compilers' jumps by tables: entries of 4 bytes, with -mcmodel=large of 8, distances from the table's own address,
// which an instruction names. Tables of whole addresses are among the pointers in data. Data may lie in the segment of
// code (gold, -z noseparate-code), so what lies there is read as a table, too.
void Code::gather_table(Part& part, std::size_t frame, std::uint64_t table, unsigned size) {
  const Range own = frames_->all()[frame].code;
  std::uint32_t inside = 0;
  for (std::uint32_t n = 0; n < kMostEntries; ++n) {
    const auto distance = image_->number(table + std::uint64_t{size} * n, size);
    if (!distance) break;
    const std::uint64_t to = table + static_cast<std::uint64_t>(*distance);
    if (!image_->is_code(to)) break;
    part.targets.add(to);
    if (!own.contains(to)) continue;
    ++inside;
    if (to != own.begin && !is_within_instruction(to)) part.labels.add(to);
  }
  if (inside >= 2) has_table_[frame] = 1;
}

void Code::gather_from_data() {
  pointers_by_place_ = image_->code_pointers();
  for (const ElfImage::CodePointer& pointer : pointers_by_place_) {
    const std::uint64_t address = pointer.to;
    if (address == 0 || is_within_instruction(address)) continue;
    targets_.add(address);
    entered_.add(address);
    // Pointers into the middle of a frame: tables of labels.
    const auto f = frames_->find(address);
    if (!f || frames_->all()[*f].code.begin == address) continue;
    has_table_[*f] = 1;
    labels_.add(address);
    pointers_by_target_.push_back(pointer);
  }
  for (const std::uint64_t address : image_->cold_symbols()) cold_.add(address);
  for (const std::uint64_t address : image_->code_symbols()) {
    targets_.add(address);
    if (!is_cold(address)) entered_.add(address);
  }
  const auto by_place = [](const ElfImage::CodePointer& a, const ElfImage::CodePointer& b) {
    return a.at != b.at ? a.at < b.at : a.to < b.to;
  };
  if (!std::is_sorted(pointers_by_place_.begin(), pointers_by_place_.end(), by_place))
    std::sort(pointers_by_place_.begin(), pointers_by_place_.end(), by_place);
  std::sort(pointers_by_target_.begin(), pointers_by_target_.end(),
            [](const ElfImage::CodePointer& a, const ElfImage::CodePointer& b) { return a.to < b.to; });
}

std::optional<std::uint64_t> Code::pointer_at(std::uint64_t at) const {
  const auto found = std::lower_bound(pointers_by_place_.begin(), pointers_by_place_.end(), at,
                                      [](const ElfImage::CodePointer& p, std::uint64_t a) { return p.at < a; });
  if (found == pointers_by_place_.end() || found->at != at) return std::nullopt;
  return found->to;
}

std::span<const ElfImage::CodePointer> Code::pointers_into(Range range) const {
  const auto before = [](const ElfImage::CodePointer& p, std::uint64_t a) { return p.to < a; };
  const auto first = std::lower_bound(pointers_by_target_.begin(), pointers_by_target_.end(), range.begin, before);
  const auto end = std::lower_bound(first, pointers_by_target_.end(), range.end, before);
  return {first, end};
}

// A call over a loop that is never executed; behind the loop the return address is replaced or taken away.
Code::Thunk Code::thunk(std::uint64_t address) const {
  constexpr std::size_t kCall = 5;
  constexpr std::size_t kLong = 64;  // bytes of a thunk, with padding
  constexpr std::array<std::uint8_t, 7> kLoop = {0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9};
  constexpr std::array<std::uint8_t, 6> kReturn = {0x48, 0x8d, 0x64, 0x24, 0x08, 0xc3};
  constexpr std::array<std::uint8_t, 4> kMark = {0xf3, 0x0f, 0x1e, 0xfa};  // endbr64
  const auto all = image_->from(address);
  std::array<std::uint8_t, kLong> code{};
  std::memcpy(code.data(), all.data(), std::min(all.size(), code.size()));
  const auto begins = [&code](std::size_t at, const auto& bytes) {
    return at + bytes.size() <= code.size() &&
           std::equal(bytes.begin(), bytes.end(), code.begin() + static_cast<std::ptrdiff_t>(at));
  };
  // Where nothing is to be kept from guessing, a program's own thunk is a return.
  const std::size_t first = begins(0, kMark) ? kMark.size() : 0;
  constexpr std::uint8_t kRet = 0xc3;
  const bool is_named = std::find(return_thunks_.begin(), return_thunks_.end(), address) != return_thunks_.end();
  if (is_named && code[first] == kRet) return {Thunk::Kind::kReturn};
  std::uint32_t over = 0;
  std::memcpy(&over, &code[1], sizeof over);
  if (code[0] != 0xe8 || over > kLong - 2 * kCall - kReturn.size() || !begins(kCall, kLoop)) return {};
  const std::size_t at = kCall + over;
  if (begins(at, kReturn)) return {Thunk::Kind::kReturn};
  // mov %REG, (%rsp); ret
  const bool is_mov = (code[at] & 0xfb) == 0x48 && code[at + 1] == 0x89 && (code[at + 2] & 0xc7) == 0x04 &&
                      code[at + 3] == 0x24 && code[at + 4] == kRet;
  if (!is_mov) return {};
  return {Thunk::Kind::kJump, static_cast<std::uint8_t>((code[at + 2] >> 3 & 7) | (code[at] & 4) << 1)};
}

bool Code::is_returning_call(std::uint64_t address) const {
  const auto first = bytes(address, 1);
  return !first.empty() && first[0] == std::byte{0xe8} && thunk(address).kind == Thunk::Kind::kReturn;
}

bool Code::is_thunk_loop(std::uint64_t address) const {
  constexpr std::array<std::byte, 5> kLoop = {std::byte{0xf3}, std::byte{0x90}, std::byte{0x0f}, std::byte{0xae},
                                              std::byte{0xe8}};
  const auto code = bytes(address, kLoop.size());
  return std::equal(code.begin(), code.end(), kLoop.begin(), kLoop.end());
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
