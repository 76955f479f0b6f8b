#include "symbols/calling_convention.h"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "symbols/dwarf_types.h"

namespace karst::symbols {

using namespace format;

namespace {

// Places of registers, as SavedRegisters has them.
constexpr std::uint8_t kRax = 9;
constexpr std::uint8_t kRdx = 8;
constexpr std::array<std::uint8_t, 6> kIntegerArguments = {5, 6, kRdx, 7, 4, 3};  // rdi rsi rdx rcx r8 r9

enum class Class : std::uint8_t { kNone, kInteger, kVector, kMemory };

/// The class of each of two eightbytes (System V ABI): what a value of the type is passed in.
using Classes = std::array<Class, 2>;

void join(Class& into, Class other) {
  if (into == Class::kNone)
    into = other;
  else if (other == Class::kMemory || into == Class::kMemory)
    into = Class::kMemory;
  else if (other == Class::kInteger)
    into = Class::kInteger;
}

void classify(Dwarf_Die type, std::uint64_t offset, Classes& classes, int depth);

void classify_number(Dwarf_Die type, std::uint64_t offset, std::uint64_t size, Classes& classes) {
  Class& first = classes[offset / 8 % 2];
  switch (number_of(&type, DW_AT_encoding).value_or(0)) {
    case DW_ATE_float:
      if (size > 8 && name_of(&type) == "long double") return join(first, Class::kMemory);
      return join(first, Class::kVector);  // one register, also of 16 bytes
    case DW_ATE_decimal_float:
      return join(first, Class::kVector);
    case DW_ATE_complex_float:
      if (size > 16) return join(first, Class::kMemory);
      join(first, Class::kVector);
      if (size > 8) join(classes[1], Class::kVector);
      return;
    default:
      join(first, Class::kInteger);
      if (size > 8) join(classes[1], Class::kInteger);
  }
}

void classify_members(Dwarf_Die type, std::uint64_t offset, Classes& classes, int depth) {
  Dwarf_Die child;
  if (dwarf_child(&type, &child) != 0) return;
  do {
    const int tag = dwarf_tag(&child);
    if (tag != DW_TAG_member && tag != DW_TAG_inheritance) continue;
    if (dwarf_hasattr(&child, DW_AT_external) != 0 || dwarf_hasattr(&child, DW_AT_declaration) != 0)
      continue;  // static
    const auto member = type_of(&child);
    if (!member) continue;
    std::uint64_t at = number_of(&child, DW_AT_data_member_location).value_or(0);
    if (const auto bits = number_of(&child, DW_AT_data_bit_offset)) at += *bits / 8;
    if (tag == DW_TAG_inheritance && size_of(*member) <= 1) continue;  // empty
    classify(*member, offset + at, classes, depth + 1);
  } while (dwarf_siblingof(&child, &child) == 0);
}

void classify(Dwarf_Die type, std::uint64_t offset, Classes& classes, int depth) {
  const std::uint64_t size = size_of(type);
  // Bit fields may lie in a type that is longer than what is left.
  if (depth > 8 || size > 16 || offset >= 16) return join(classes[0], Class::kMemory);
  switch (dwarf_tag(&type)) {
    case DW_TAG_base_type:
      return classify_number(type, offset, size, classes);
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
      return classify_members(type, offset, classes, depth);
    case DW_TAG_array_type: {
      const auto element = type_of(&type);
      const std::uint64_t each = element ? size_of(*element) : 0;
      if (is_vector_type(type)) return join(classes[offset / 8 % 2], Class::kVector);
      for (std::uint64_t at = 0; each != 0 && at < size; at += each)
        classify(*element, offset + at, classes, depth + 1);
      return;
    }
    default:
      join(classes[offset / 8 % 2], Class::kInteger);
      if (size > 8) join(classes[1], Class::kInteger);
  }
}

/// A destructor, or a constructor from another object of the class, that the source gives or takes away.
bool is_own_copy_or_end(Dwarf_Die function, const Dwarf_Die& of, std::string_view class_name) {
  Dwarf_Attribute at;
  bool artificial = false;
  if (dwarf_attr(&function, DW_AT_artificial, &at) != nullptr) dwarf_formflag(&at, &artificial);
  const bool defaulted = number_of(&function, DW_AT_defaulted).value_or(0) == DW_DEFAULTED_in_class;
  if (artificial || (defaulted && dwarf_hasattr(&function, DW_AT_deleted) == 0)) return false;
  const std::string_view name = name_of(&function);
  if (name.starts_with('~')) return true;
  if (name.empty() || name != class_name.substr(0, class_name.find('<'))) return false;
  std::size_t parameters = 0;
  bool from_another = false;
  Dwarf_Die child;
  if (dwarf_child(&function, &child) == 0) do {
      if (dwarf_tag(&child) != DW_TAG_formal_parameter || ++parameters != 2) continue;
      auto type = type_of(&child);
      const int tag = type ? dwarf_tag(&*type) : 0;
      const auto target =
          tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type ? type_of(&*type) : std::nullopt;
      from_another = target && target->addr == of.addr;
    } while (dwarf_siblingof(&child, &child) == 0);
  return from_another && parameters == 2;
}

/// Copying it, or its end, calls a function: it is passed by a hidden reference.
bool goes_by_reference(Dwarf_Die type, int depth = 0) {
  if (dwarf_tag(&type) == DW_TAG_array_type) {
    const auto element = type_of(&type);
    return element && depth < kDeepestType && goes_by_reference(*element, depth + 1);
  }
  if (!is_class(type) || depth == kDeepestType) return false;
  if (const auto said = number_of(&type, DW_AT_calling_convention)) return *said == DW_CC_pass_by_reference;
  const std::string_view class_name = name_of(&type);
  Dwarf_Die child;
  if (dwarf_child(&type, &child) != 0) return false;
  do {
    switch (dwarf_tag(&child)) {
      case DW_TAG_subprogram:
        if (is_own_copy_or_end(child, type, class_name)) return true;
        break;
      case DW_TAG_inheritance:
        if (dwarf_hasattr(&child, DW_AT_virtuality) != 0) return true;
        [[fallthrough]];
      case DW_TAG_member: {
        if (dwarf_hasattr(&child, DW_AT_external) != 0 || dwarf_hasattr(&child, DW_AT_declaration) != 0) break;
        if (name_of(&child).starts_with("_vptr")) return true;
        const auto member = type_of(&child);
        if (member && goes_by_reference(*member, depth + 1)) return true;
        break;
      }
      default:
        break;
    }
  } while (dwarf_siblingof(&child, &child) == 0);
  return false;
}

}  // namespace

std::optional<std::uint8_t> place_of_register(std::uint64_t number) {
  constexpr std::array<std::uint8_t, 17> kPlaces = {kRax, kRdx, 7, 255, 6,   5,   255, 255, 4,
                                                    3,    2,    1, 255, 255, 255, 255, 255};
  if (number < kPlaces.size() && kPlaces[number] != 255) return kPlaces[number];
  if (number >= 17 && number < 17U + kVectorPlaces) return static_cast<std::uint8_t>(kFirstVectorPlace + number - 17);
  return std::nullopt;
}

std::optional<std::uint8_t> place_of_stack(std::int64_t offset) {
  constexpr std::int64_t kFirst = KARST_SAVED_WORDS_BEFORE_STACK + 1;
  if (offset < 0 || offset % 8 != 0 || kFirst + offset / 8 >= kMostPlace) return std::nullopt;
  return static_cast<std::uint8_t>(kFirst + offset / 8);
}

bool has_hidden_result(const std::optional<Dwarf_Die>& type) {
  if (!type || !is_class(*type)) return false;
  Classes classes{Class::kNone, Class::kNone};
  classify(*type, 0, classes, 0);
  return goes_by_reference(*type) || size_of(*type) > 16 || classes[0] == Class::kMemory ||
         classes[1] == Class::kMemory;
}

Source place_of_result(Dwarf_Die type) {
  if (has_hidden_result(type)) return {true, {kRax}};
  Source source;
  Classes classes{Class::kNone, Class::kNone};
  classify(type, 0, classes, 0);
  std::size_t integers = 0;
  std::uint8_t vectors = 0;
  for (const Class c : classes) {
    if (c == Class::kInteger) source.words.push_back(integers++ == 0 ? kRax : kRdx);
    if (c == Class::kVector) source.words.push_back(static_cast<std::uint8_t>(kFirstVectorPlace + vectors++));
    if (c == Class::kMemory) source.words.clear();
  }
  return source;
}

std::optional<Source> Convention::next(Dwarf_Die type) {
  const std::uint64_t size = size_of(type);
  // Longer vectors have a register or a place on the stack, as the processor has it that was compiled for.
  lost_ = lost_ || (is_vector_type(type) && size > 16);
  if (lost_) return std::nullopt;
  if (is_class(type) && goes_by_reference(type)) {
    const auto word = integer();
    return word ? std::optional<Source>({true, {*word}}) : std::nullopt;
  }
  Classes classes{Class::kNone, Class::kNone};
  classify(type, 0, classes, 0);
  if (is_class(type) && classes[0] == Class::kNone && classes[1] == Class::kNone) return std::nullopt;  // empty
  const auto memory = classes[0] == Class::kMemory || classes[1] == Class::kMemory || size > 16;
  const auto wanted = [&](Class c) { return static_cast<std::size_t>(std::count(classes.begin(), classes.end(), c)); };
  if (memory || integers_ + wanted(Class::kInteger) > kIntegerArguments.size() ||
      vectors_ + wanted(Class::kVector) > kVectorPlaces)
    return on_stack(std::max<std::uint64_t>(size, 8), memory && size == 16 && !is_class(type));
  Source source;
  for (const Class c : classes) {
    if (c == Class::kInteger) source.words.push_back(kIntegerArguments[integers_++]);
    if (c == Class::kVector) source.words.push_back(static_cast<std::uint8_t>(kFirstVectorPlace + vectors_++));
  }
  return source;
}

std::optional<std::uint8_t> Convention::integer() {
  if (integers_ < kIntegerArguments.size()) return kIntegerArguments[integers_++];
  const auto there = on_stack(8, false);
  return there ? std::optional(there->words[0]) : std::nullopt;
}

std::optional<Source> Convention::on_stack(std::uint64_t size, bool aligned) {
  if (aligned) stack_ = (stack_ + 15) / 16 * 16;
  Source source;
  for (std::uint64_t at = 0; at < size; at += 8)
    if (const auto place = place_of_stack(static_cast<std::int64_t>(stack_ + at))) source.words.push_back(*place);
  stack_ += (size + 7) / 8 * 8;
  return source.words.empty() ? std::nullopt : std::optional(source);
}

}  // namespace karst::symbols
