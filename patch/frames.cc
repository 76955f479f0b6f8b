// SPDX-License-Identifier: MIT
#include "patch/frames.h"

#include <dwarf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

namespace karst::patch {
namespace {

constexpr int kFramePointer = 6;  // DWARF's number of rbp
constexpr int kStackPointer = 7;  // and of rsp

/// Reads encoded values one after the other; after the first that is not there, or not understood, all are 0.
class Encoded {
 public:
  Encoded(const ElfImage& image, std::uint64_t address, std::span<const std::byte> bytes)
      : image_(image), address_(address), rest_(bytes) {}

  bool failed() const { return failed_; }
  std::uint64_t address() const { return address_; }
  std::span<const std::byte> rest() const { return rest_; }

  std::uint8_t byte() {
    if (rest_.empty()) return fail();
    const auto value = static_cast<std::uint8_t>(rest_[0]);
    skip(1);
    return value;
  }
  std::uint64_t uleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t b = byte();
      value |= std::uint64_t{b & 0x7fU} << shift;
      if ((b & 0x80) == 0) return failed_ ? 0 : value;
    }
    return fail();
  }
  /// A value of DW_EH_PE encoding. Null pointers stay null.
  std::uint64_t pointer(std::uint8_t encoding) {
    if (encoding == DW_EH_PE_omit) return 0;
    const std::uint64_t here = address_;
    std::uint64_t value = 0;
    switch (encoding & 0x0f) {
      case DW_EH_PE_absptr:
      case DW_EH_PE_udata8:
      case DW_EH_PE_sdata8:
        value = bits(8);
        break;
      case DW_EH_PE_uleb128:
        value = uleb();
        break;
      case DW_EH_PE_udata2:
        value = bits(2);
        break;
      case DW_EH_PE_udata4:
        value = bits(4);
        break;
      case DW_EH_PE_sdata4:
        value = static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(bits(4))});
        break;
      default:
        return fail();
    }
    if (value == 0 || failed_) return 0;
    if ((encoding & 0x70) == DW_EH_PE_pcrel)
      value += here;
    else if ((encoding & 0x70) != 0)
      return fail();
    if ((encoding & DW_EH_PE_indirect) != 0) {
      const auto at = image_.number(value, 8);
      return at ? static_cast<std::uint64_t>(*at) : fail();
    }
    return value;
  }

 private:
  std::uint8_t fail() {
    failed_ = true;
    return 0;
  }
  std::uint64_t bits(unsigned size) {
    if (rest_.size() < size) return fail();
    std::uint64_t value = 0;
    std::memcpy(&value, rest_.data(), size);
    skip(size);
    return value;
  }
  void skip(std::size_t size) {
    rest_ = rest_.subspan(size);
    address_ += size;
  }

  const ElfImage& image_;
  std::uint64_t address_;
  std::span<const std::byte> rest_;
  bool failed_ = false;
};

/// What a common information entry says of the entries that refer to it.
struct Encodings {
  bool known = false;
  bool has_sizes = false;  ///< 'z': their augmentation data has a size
  bool is_signal = false;
  std::uint8_t code = DW_EH_PE_absptr;
  std::uint8_t language = DW_EH_PE_omit;
  std::uint32_t number = 0;
  bool is_by_bytes = false;  ///< instructions of the frames that go on in code do so by as many bytes as they say
};

Encodings encodings_of(const Dwarf_CIE& cie, const ElfImage& image, const std::byte* base, std::uint64_t address) {
  Encodings e;
  e.is_by_bytes = cie.code_alignment_factor == 1;
  std::string_view letters = cie.augmentation;
  e.has_sizes = letters.starts_with('z');
  if (e.has_sizes) letters.remove_prefix(1);
  const auto* data = reinterpret_cast<const std::byte*>(cie.augmentation_data);
  if (!e.has_sizes || data == nullptr) {
    e.known = letters.empty();
    return e;
  }
  Encoded in(image, address + static_cast<std::uint64_t>(data - base), {data, cie.augmentation_data_size});
  for (const char letter : letters) {
    if (letter == 'R') e.code = in.byte();
    if (letter == 'L') e.language = in.byte();
    if (letter == 'P') in.pointer(in.byte() & ~DW_EH_PE_indirect);
    if (letter == 'S') e.is_signal = true;
    if (std::string_view("RLPSB").find(letter) == std::string_view::npos) return e;
  }
  e.known = !in.failed();
  return e;
}

/// A frame's own instructions say nothing, or the first goes on to a later place: at its beginning the rules common to
/// many hold.
bool begins_by_common_rules(std::span<const std::byte> instructions) {
  constexpr std::byte kPlace{0x3f};
  const auto first =
      std::find_if(instructions.begin(), instructions.end(), [](std::byte b) { return b != std::byte{DW_CFA_nop}; });
  return first == instructions.end() ||
         ((*first & ~kPlace) == std::byte{DW_CFA_advance_loc} && (*first & kPlace) != std::byte{0});
}

}  // namespace

Result<Frames> Frames::read(const ElfImage& image, bool also_by_section) {
  const Error none{"it has no table of its functions' frames (.eh_frame)"};
  Frames frames;
  frames.image_ = &image;
  auto address = image.frames();
  if (!address && also_by_section) address = image.frames_of_section();
  if (!address) return none;
  const auto bytes = image.from(*address);
  if (bytes.empty()) return none;
  const auto whole = image.whole();
  frames.elf_ = binary::ElfFile::in_memory(whole);
  if (!frames.elf_.is_elf()) return none;
  frames.cfi_.reset(dwarf_getcfi_elf(frames.elf_.get()));
  if (!frames.cfi_) return none;

  // For dwarf_next_cfi(), which goes by the section's bytes alone.
  Elf_Data data{};
  data.d_buf = const_cast<std::byte*>(bytes.data());
  data.d_size = bytes.size();
  data.d_type = ELF_T_BYTE;
  data.d_version = EV_CURRENT;
  std::map<Dwarf_Off, Encodings> encodings;
  const auto* ident = reinterpret_cast<const unsigned char*>(whole.data());
  Dwarf_CFI_Entry entry;
  Dwarf_Off next = 0;
  for (Dwarf_Off at = 0; dwarf_next_cfi(ident, &data, true, at, &next, &entry) == 0; at = next) {
    if (dwarf_cfi_cie_p(&entry)) {
      Encodings& e = encodings[at];
      e = encodings_of(entry.cie, image, bytes.data(), *address);
      e.number = static_cast<std::uint32_t>(encodings.size());
      continue;
    }
    const auto found = encodings.find(entry.fde.CIE_pointer);
    if (found == encodings.end() || !found->second.known || found->second.is_signal) continue;
    const Encodings& e = found->second;
    const auto* start = reinterpret_cast<const std::byte*>(entry.fde.start);
    const auto size = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(entry.fde.end) - start);
    Encoded in(image, *address + static_cast<std::uint64_t>(start - bytes.data()), {start, size});
    Frame frame;
    frame.code.begin = in.pointer(e.code);
    const std::uint64_t length = in.pointer(e.code & 0x0f);
    frame.code.end = frame.code.begin + length;
    if (e.has_sizes) {
      const std::uint64_t data_size = in.uleb();
      if (e.is_by_bytes && data_size <= in.rest().size() && begins_by_common_rules(in.rest().subspan(data_size)))
        frame.first_rules = e.number;
      if (e.language != DW_EH_PE_omit) frame.language_data = in.pointer(e.language);
    }
    frame.is_damaged = in.failed();
    if (length != 0 && frame.code.end > frame.code.begin && image.is_code(frame.code.begin) &&
        image.is_code(frame.code.end - 1))
      frames.all_.push_back(frame);
  }
  std::sort(frames.all_.begin(), frames.all_.end(),
            [](const Frame& a, const Frame& b) { return a.code.begin < b.code.begin; });
  for (std::size_t i = 1; i < frames.all_.size(); ++i)
    if (frames.all_[i].code.begin < frames.all_[i - 1].code.end)
      return Error{"the table of its functions' frames (.eh_frame) is damaged"};
  if (frames.all_.empty()) return none;
  frames.first_depths_.resize(encodings.size());
  std::vector<bool> is_known(encodings.size());
  for (const Frame& frame : frames.all_) {
    if (frame.first_rules == 0 || is_known[frame.first_rules - 1]) continue;
    is_known[frame.first_rules - 1] = true;
    frames.first_depths_[frame.first_rules - 1] = frames.depth(frame.code.begin);
  }
  frames.make_index();
  return frames;
}

constexpr std::uint64_t kPiece = 256;                          // bytes of code: a frame or two
constexpr std::uint64_t kMostPieces = std::uint64_t{1} << 23;  // of 2 GiB, the most that a module's code can be

void Frames::make_index() {
  const std::uint64_t low = all_.front().code.begin;
  const std::uint64_t pieces = (all_.back().code.end - low - 1) / kPiece + 1;
  if (pieces > kMostPieces) return;
  index_.reserve(pieces);
  std::size_t frame = 0;
  for (std::uint64_t piece = 0; piece < pieces; ++piece) {
    while (all_[frame].code.end <= low + piece * kPiece) ++frame;
    index_.push_back(static_cast<std::uint32_t>(frame));
  }
}

std::optional<std::size_t> Frames::find(std::uint64_t address) const {
  if (address < all_.front().code.begin || address >= all_.back().code.end) return std::nullopt;
  if (!index_.empty()) {
    std::size_t frame = index_[(address - all_.front().code.begin) / kPiece];
    while (all_[frame].code.end <= address) ++frame;
    return all_[frame].code.contains(address) ? std::optional(frame) : std::nullopt;
  }
  auto at = std::upper_bound(all_.begin(), all_.end(), address,
                             [](std::uint64_t a, const Frame& f) { return a < f.code.begin; });
  if (at == all_.begin() || !(--at)->code.contains(address)) return std::nullopt;
  return static_cast<std::size_t>(at - all_.begin());
}

Frames::Rules Frames::rules(std::uint64_t address) const {
  Dwarf_Frame* frame = nullptr;
  if (dwarf_cfi_addrframe(cfi_.get(), address, &frame) != 0) frame = nullptr;
  return {frame, &free};
}

std::optional<std::int64_t> Frames::depth(std::uint64_t address) const {
  const Rules frame = rules(address);
  if (frame == nullptr) return std::nullopt;
  Dwarf_Op* ops = nullptr;
  std::size_t count = 0;
  std::optional<std::int64_t> depth;
  if (dwarf_frame_cfa(frame.get(), &ops, &count) == 0 && count == 1) {
    if (ops[0].atom == DW_OP_breg0 + kStackPointer) depth = static_cast<std::int64_t>(ops[0].number);
    if (ops[0].atom == DW_OP_bregx && ops[0].number == kStackPointer) depth = static_cast<std::int64_t>(ops[0].number2);
  }
  return depth;
}

std::optional<std::int64_t> Frames::depth_at_begin(std::size_t f) const {
  const Frame& frame = all_[f];
  return frame.first_rules != 0 ? first_depths_[frame.first_rules - 1] : depth(frame.code.begin);
}

bool Frames::has_frame_pointer(std::uint64_t address) const {
  const Rules frame = rules(address);
  Dwarf_Op* ops = nullptr;
  std::size_t count = 0;
  // A stack that was aligned has its frame's end at a place that lies in memory at rbp.
  return frame != nullptr && dwarf_frame_cfa(frame.get(), &ops, &count) == 0 && count != 0 &&
         (ops[0].atom == DW_OP_breg0 + kFramePointer || (ops[0].atom == DW_OP_bregx && ops[0].number == kFramePointer));
}

std::optional<std::vector<std::uint64_t>> Frames::landing_pads(const Frame& frame) const {
  std::vector<std::uint64_t> pads;
  if (frame.is_damaged) return std::nullopt;
  if (frame.language_data == 0) return pads;
  Encoded in(*image_, frame.language_data, image_->from(frame.language_data));
  const std::uint8_t start_encoding = in.byte();
  std::uint64_t base = in.pointer(start_encoding);
  if (start_encoding == DW_EH_PE_omit) base = frame.code.begin;
  if (in.byte() != DW_EH_PE_omit) in.uleb();
  const std::uint8_t encoding = in.byte();
  const std::uint64_t size = in.uleb();
  const std::uint64_t end = in.address() + size;
  while (!in.failed() && in.address() < end) {
    in.pointer(encoding);
    in.pointer(encoding);
    const std::uint64_t pad = in.pointer(encoding);
    in.uleb();
    if (pad != 0) pads.push_back(base + pad);
  }
  if (in.failed()) return std::nullopt;
  return pads;
}

}  // namespace karst::patch
