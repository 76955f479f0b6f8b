// SPDX-License-Identifier: MIT
#include "patch/sdt.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "format/patch_table.h"

namespace karst::patch {
namespace {

using format::SavedProbe;
using format::ValueHow;
using format::ValueOp;

constexpr std::uint32_t kProbeNote = 3;
constexpr std::size_t kMostProbes = 100'000;  // of a file
constexpr std::size_t kMostText = 1000;       // bytes of a name, or of all values

template <typename T>
T number_at(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// A text up to its NUL; none: it has none, or is too long. The rest is what follows.
std::optional<std::string> take_text(std::span<const std::byte>& rest) {
  const auto* text = reinterpret_cast<const char*>(rest.data());
  const std::size_t size = strnlen(text, rest.size());
  if (size == rest.size() || size > kMostText) return std::nullopt;
  rest = rest.subspan(size + 1);
  return std::string(text, size);
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' ||
           c == '.';
  });
}

// ---- operands

struct Register {
  std::uint8_t place = 0;
  std::uint8_t first = 0;  // byte of the word
  std::uint8_t bytes = 8;
};

std::uint8_t place_of(std::size_t offset) { return static_cast<std::uint8_t>(offset / sizeof(std::uint64_t)); }

/// `name`: without the percent sign.
std::optional<Register> register_of(std::string_view name) {
  struct Named {
    std::string_view word, half, quarter, low, high;
    std::size_t offset;
  };
  static constexpr std::array<Named, 8> kOld = {{{"rax", "eax", "ax", "al", "ah", offsetof(SavedProbe, rax)},
                                                 {"rbx", "ebx", "bx", "bl", "bh", offsetof(SavedProbe, rbx)},
                                                 {"rcx", "ecx", "cx", "cl", "ch", offsetof(SavedProbe, rcx)},
                                                 {"rdx", "edx", "dx", "dl", "dh", offsetof(SavedProbe, rdx)},
                                                 {"rsi", "esi", "si", "sil", "", offsetof(SavedProbe, rsi)},
                                                 {"rdi", "edi", "di", "dil", "", offsetof(SavedProbe, rdi)},
                                                 {"rbp", "ebp", "bp", "bpl", "", offsetof(SavedProbe, rbp)},
                                                 {"rsp", "esp", "sp", "spl", "", offsetof(SavedProbe, rsp)}}};
  if (name.empty()) return std::nullopt;
  for (const Named& r : kOld) {
    const std::uint8_t place = place_of(r.offset);
    if (name == r.word) return Register{place, 0, 8};
    if (name == r.half) return Register{place, 0, 4};
    if (name == r.quarter) return Register{place, 0, 2};
    if (name == r.low) return Register{place, 0, 1};
    if (name == r.high) return Register{place, 1, 1};
  }
  static constexpr std::array<std::size_t, 8> kNew = {
      offsetof(SavedProbe, r8),  offsetof(SavedProbe, r9),  offsetof(SavedProbe, r10), offsetof(SavedProbe, r11),
      offsetof(SavedProbe, r12), offsetof(SavedProbe, r13), offsetof(SavedProbe, r14), offsetof(SavedProbe, r15)};
  const bool is_vector = name.starts_with("xmm");
  const std::string_view digits = name.substr(is_vector ? 3 : 1);
  unsigned number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const std::string_view suffix(end, static_cast<std::size_t>(digits.data() + digits.size() - end));
  if (error != std::errc()) return std::nullopt;
  if (is_vector && suffix.empty() && number < format::kVectorPlaces)
    return Register{static_cast<std::uint8_t>(format::kFirstVectorPlace + number), 0, 8};
  if (name[0] != 'r' || number < 8 || number > 15) return std::nullopt;
  const std::uint8_t place = place_of(kNew[number - 8]);
  if (suffix.empty()) return Register{place, 0, 8};
  if (suffix == "d") return Register{place, 0, 4};
  if (suffix == "w") return Register{place, 0, 2};
  if (suffix == "b") return Register{place, 0, 1};
  return std::nullopt;
}

/// Decimal or hexadecimal, as far as 32 bits go.
std::optional<std::int32_t> small_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const bool hexadecimal = text.starts_with("0x");
  if (hexadecimal) text.remove_prefix(2);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size() || value > INT32_MAX) return std::nullopt;
  return static_cast<std::int32_t>(negative ? -value : value);
}

/// A value as it is written: size, operand.
struct Operand {
  std::uint8_t bytes = 8;
  bool is_signed = false;
  bool is_floating = false;
  ValueOp op{};
  bool is_known = false;  // its place was understood
};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// DISTANCE(BASE), DISTANCE(BASE,INDEX,SCALE); a part may be missing.
bool read_address(std::string_view text, std::uint8_t bytes, ValueOp& op) {
  const auto open = text.find('(');
  if (open == std::string_view::npos || text.back() != ')') return false;
  const std::string_view before = text.substr(0, open);
  const auto distance = before.empty() ? std::optional<std::int32_t>(0) : small_number(before);
  const auto parts = split(text.substr(open + 1, text.size() - open - 2), ',');
  if (!distance || parts.size() > 3 || !parts[0].starts_with('%')) return false;
  const auto base = register_of(parts[0].substr(1));
  if (!base || base->bytes != 8 || base->place >= format::kFirstVectorPlace) return false;
  op.place = base->place;
  op.offset = *distance;
  op.how = static_cast<std::uint8_t>(ValueHow::kMemory);
  op.size = bytes;
  if (parts.size() == 1) return true;
  const auto index = parts[1].starts_with('%') ? register_of(parts[1].substr(1)) : std::nullopt;
  const auto scale = parts.size() == 3 ? small_number(parts[2]) : std::optional<std::int32_t>(1);
  if (!index || index->bytes != 8 || index->place >= format::kFirstVectorPlace || !scale) return false;
  std::uint8_t shift = 0;
  while (shift < 4 && (1 << shift) != *scale) ++shift;
  if (shift == 4) return false;
  op.how = static_cast<std::uint8_t>(ValueHow::kIndexed);
  op.size = format::make_indexed_size({bytes, shift, index->place});
  return true;
}

Operand read_operand(std::string_view text) {
  Operand operand;
  if (const auto at = text.find('@'); at != std::string_view::npos) {
    std::string_view size = text.substr(0, at);
    text.remove_prefix(at + 1);
    if (size.ends_with('f')) operand.is_floating = true, size.remove_suffix(1);
    const auto number = small_number(size).value_or(0);
    operand.is_signed = number < 0;
    const int bytes = operand.is_signed ? -number : number;
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) return operand;
    operand.bytes = static_cast<std::uint8_t>(bytes);
  }
  ValueOp& op = operand.op;
  if (text.starts_with('$')) {
    const auto number = small_number(text.substr(1));
    op.how = static_cast<std::uint8_t>(ValueHow::kConstant);
    op.offset = number.value_or(0);
    op.size = operand.bytes;
    operand.is_known = number.has_value();
  } else if (text.starts_with('%')) {
    const auto found = register_of(text.substr(1));
    if (!found) return operand;
    op.how = static_cast<std::uint8_t>(ValueHow::kRegister);
    op.place = found->place;
    op.offset = found->first;
    op.size = std::min(found->bytes, operand.bytes);
    operand.is_known = true;
  } else if (!text.empty()) {
    operand.is_known = read_address(text, operand.bytes, op);
  }
  return operand;
}

/// Where the text is that the operand is the address of.
bool make_text(ValueOp& op) {
  if (op.how == static_cast<std::uint8_t>(ValueHow::kRegister) && op.size == 8)
    op.how = static_cast<std::uint8_t>(ValueHow::kText);
  else if (op.how == static_cast<std::uint8_t>(ValueHow::kMemory) && op.size == 8)
    op.how = static_cast<std::uint8_t>(ValueHow::kTextAt);
  else
    return false;
  return true;
}

/// The name of a type, of which the operand is the std::type_info's address: its second word leads there.
bool make_type_name(ValueOp& op) {
  if (op.how != static_cast<std::uint8_t>(ValueHow::kRegister) || op.size != 8) return false;
  op.how = static_cast<std::uint8_t>(ValueHow::kTextAt);
  op.offset = sizeof(std::uint64_t);
  return true;
}

/// The type as format/values.h has it. The operand becomes what it asks for.
std::string type_text(Operand& operand, ProbeChoice::Type type) {
  using Type = ProbeChoice::Type;
  if (!operand.is_known) return "?";
  if (type == Type::kText && make_text(operand.op)) return "s";
  if (type == Type::kTypeInfo && make_type_name(operand.op)) return "s";
  const std::string bytes = std::to_string(operand.bytes);
  if (operand.is_floating && operand.bytes >= 4) return "f" + bytes;
  const bool is_usual = type != Type::kSigned && type != Type::kUnsigned && type != Type::kHexadecimal;
  if (type == Type::kHexadecimal || (is_usual && !operand.is_signed && operand.bytes == 8)) return "x";
  return (type == Type::kSigned || (is_usual && operand.is_signed) ? "i" : "u") + bytes;
}

/// What the documentation of well-known probes says of their values.
constexpr const char* kKnown[] = {
    "python:function__entry(file:str,function:str,line)",
    "python:function__return(file:str,function:str,line)",
    "python:line(file:str,function:str,line)",
    "python:gc__start(generation)",
    "python:gc__done(collected)",
    "python:import__find__load__start(module:str)",
    "python:import__find__load__done(module:str,found)",
    "python:audit(event:str,arguments)",
    "libstdcxx:throw(object,type:type)",
    "libstdcxx:rethrow(object,type:type)",
    "libstdcxx:catch(object,type:type)",
};

const std::vector<ProbeChoice::Value>& known_values(const ProbeNote& probe) {
  static const std::vector<ProbeChoice> known = [] {
    std::vector<ProbeChoice> all;
    for (const char* text : kKnown)
      if (auto choice = ProbeChoice::parse(text)) all.push_back(std::move(*choice));
    return all;
  }();
  static const std::vector<ProbeChoice::Value> none;
  for (const ProbeChoice& choice : known)
    if (choice.full_name == probe.full_name()) return choice.values;
  return none;
}

std::optional<ProbeChoice::Type> type_of(std::string_view word) {
  using Type = ProbeChoice::Type;
  if (word == "str") return Type::kText;
  if (word == "int") return Type::kSigned;
  if (word == "uint") return Type::kUnsigned;
  if (word == "hex") return Type::kHexadecimal;
  if (word == "type") return Type::kTypeInfo;
  return std::nullopt;
}

}  // namespace

std::vector<ProbeNote> probes_in(const ElfImage& image) {
  std::vector<ProbeNote> found;
  std::span<const std::byte> notes = image.contents(".note.stapsdt");
  // A prelinked file's code has moved since: by as much as this section has.
  const std::uint64_t base = image.section_address(".stapsdt.base");
  constexpr std::size_t kNumbers = 3 * sizeof(std::uint64_t);
  while (notes.size() >= sizeof(Elf64_Nhdr) && found.size() < kMostProbes) {
    const auto note = number_at<Elf64_Nhdr>(notes, 0);
    const std::uint64_t name = (std::uint64_t{note.n_namesz} + 3) / 4 * 4;
    const std::uint64_t whole = sizeof note + name + (std::uint64_t{note.n_descsz} + 3) / 4 * 4;
    if (whole > notes.size()) break;
    auto content = notes.subspan(sizeof note + name, note.n_descsz);
    const bool is_probe = note.n_type == kProbeNote && note.n_namesz == sizeof "stapsdt" &&
                          std::memcmp(notes.data() + sizeof note, "stapsdt", sizeof "stapsdt") == 0;
    notes = notes.subspan(whole);
    if (!is_probe || content.size() < kNumbers) continue;
    const std::uint64_t moved = base != 0 ? base - number_at<std::uint64_t>(content, 8) : 0;
    ProbeNote probe;
    probe.address = number_at<std::uint64_t>(content, 0) + moved;
    probe.semaphore = number_at<std::uint64_t>(content, 16);
    if (probe.semaphore != 0) probe.semaphore += moved;
    content = content.subspan(kNumbers);
    const auto provider = take_text(content);
    const auto own_name = provider ? take_text(content) : std::nullopt;
    const auto values = own_name ? take_text(content) : std::nullopt;
    if (!values || !is_name(*provider) || !is_name(*own_name)) continue;
    probe.provider = *provider;
    probe.name = *own_name;
    probe.values = *values;
    found.push_back(std::move(probe));
  }
  return found;
}

Result<ProbeChoice> ProbeChoice::parse(std::string_view text) {
  const auto wrong = [&](std::string_view why) { return Error{"'" + std::string(text) + "': " + std::string(why)}; };
  constexpr std::string_view kForm = "probes are written as 'PROVIDER:NAME', with patterns in both: 'python:gc__*'";
  ProbeChoice choice;
  choice.text = std::string(text);
  std::string_view rest = text;
  const auto open = rest.find('(');
  choice.full_name = std::string(rest.substr(0, open));
  const auto colon = choice.full_name.find(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == choice.full_name.size() ||
      choice.full_name.find(':', colon + 1) != std::string::npos)
    return wrong(kForm);
  if (open == std::string_view::npos) return choice;
  if (!rest.ends_with(')')) return wrong("a ')' is missing at its end");
  rest = rest.substr(open + 1, rest.size() - open - 2);
  for (const std::string_view part : split(rest, ',')) {
    const auto type = part.find(':');
    Value value{std::string(part.substr(0, type)), Type::kUsual};
    if (!is_name(value.name)) return wrong("values are written as 'NAME' or 'NAME:TYPE', with a comma between two");
    if (type != std::string_view::npos) {
      const auto known = type_of(part.substr(type + 1));
      if (!known) return wrong("the types of values are str, int, uint, hex and type (a std::type_info's address)");
      value.type = *known;
    }
    choice.values.push_back(std::move(value));
  }
  if (choice.values.size() > format::kMostProbeValues) return wrong("a probe has 12 values at most");
  return choice;
}

bool ProbeChoice::matches(const ProbeNote& probe) const {
  return fnmatch(full_name.c_str(), probe.full_name().c_str(), 0) == 0;
}

ProbeValues values_of(const ProbeNote& probe, const ProbeChoice& choice) {
  const auto& named = choice.values.empty() ? known_values(probe) : choice.values;
  ProbeValues values;
  std::size_t number = 0;
  for (const std::string_view part : split(probe.values, ' ')) {
    if (part.empty()) continue;
    if (values.ops.size() == format::kMostProbeValues) break;
    Operand operand = read_operand(part);
    const bool is_named = number < named.size();
    ++number;
    const std::string type = type_text(operand, is_named ? named[number - 1].type : ProbeChoice::Type::kUsual);
    values.description += values.description.empty() ? "" : ",";
    values.description += is_named ? named[number - 1].name : "arg" + std::to_string(number);
    values.description += ":" + type;
    if (type != "?") values.ops.push_back(operand.op);
  }
  values.description += "|";
  return values;
}

}  // namespace karst::patch
