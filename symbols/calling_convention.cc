// SPDX-License-Identifier: MIT
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
constexpr int kDeepestNesting = 8;
constexpr std::array<std::uint8_t, 6> kIntegerArguments = {5, 6, kRdx, 7, 4, 3};  // rdi rsi rdx rcx r8 r9

enum class Class : std::uint8_t { kNone, kInteger, kVector, kVectorUp, kX87, kX87Up, kMemory, kUnknown };

/// The class of each of two eightbytes (System V ABI): what a value of the type is passed in.
using Classes = std::array<Class, 2>;

void join(Class& into, Class other) {
  if (into == other || other == Class::kNone) return;
  const auto either = [&](Class c) { return into == c || other == c; };
  if (into == Class::kNone)
    into = other;
  else if (either(Class::kUnknown))
    into = Class::kUnknown;
  else if (either(Class::kMemory))
    into = Class::kMemory;
  else if (either(Class::kInteger))
    into = Class::kInteger;
  else
    into = either(Class::kX87) || either(Class::kX87Up) ? Class::kMemory : Class::kVector;
}

/// Of a type without members, in bytes; 1: any.
std::uint64_t own_alignment(Dwarf_Die type) {
  const std::uint64_t size = size_of(type);
  if (dwarf_tag(&type) != DW_TAG_base_type)
    return is_vector_type(type)                          ? size
           : dwarf_tag(&type) == DW_TAG_enumeration_type ? std::max<std::uint64_t>(size, 1)
                                                         : 8;
  const std::uint64_t encoding = number_of(&type, DW_AT_encoding).value_or(0);
  const bool is_complex = encoding == DW_ATE_complex_float || name_of(&type).starts_with("complex ");
  if (name_of(&type).starts_with("_BitInt") || name_of(&type).starts_with("unsigned _BitInt"))
    return std::min<std::uint64_t>(size, 8);
  return std::max<std::uint64_t>(is_complex ? size / 2 : size, 1);
}

/// The greatest alignment of what lies in the type, and of what the source asks for as far as DWARF has that.
std::uint64_t natural_alignment(Dwarf_Die type, int depth = 0) {
  if (depth > kDeepestNesting) return 1;
  std::uint64_t most = number_of(&type, DW_AT_alignment).value_or(1);
  if (dwarf_tag(&type) == DW_TAG_array_type && !is_vector_type(type)) {
    const auto element = type_of(&type);
    return element ? std::max(most, natural_alignment(*element, depth + 1)) : most;
  }
  if (!is_class(type)) return std::max(most, own_alignment(type));
  for_each_member(type, [&](Dwarf_Die& member, const Dwarf_Die& of) {
    most = std::max({most, natural_alignment(of, depth + 1), number_of(&member, DW_AT_alignment).value_or(1)});
  });
  return most;
}

class Classifier {
 public:
  explicit Classifier(const Compiler& compiler) : compiler_(compiler) {}

  /// What an object of the type is passed in, after all that is in it has been looked at.
  Classes of(Dwarf_Die type) {
    const std::uint64_t size = size_of(type);
    if (is_class(type) && size > 16) {
      if (has_wide_vector(type, 0)) return {Class::kUnknown, Class::kUnknown};
      return {Class::kMemory, Class::kMemory};
    }
    classify(type, 0, 0);
    for (const Class c : {Class::kUnknown, Class::kMemory})
      if (classes_[0] == c || classes_[1] == c) return {c, c};
    if (classes_[1] == Class::kX87Up && classes_[0] != Class::kX87) return {Class::kMemory, Class::kMemory};
    if (classes_[1] == Class::kVectorUp && classes_[0] != Class::kVector) classes_[1] = Class::kVector;
    // Nothing that DWARF has, but room: bit fields without names.
    if (classes_[0] == Class::kNone && (size > 1 || classes_[1] != Class::kNone))
      return {Class::kUnknown, Class::kUnknown};
    return classes_;
  }

 private:
  void join_at(std::uint64_t offset, Class c) { join(classes_[std::min<std::uint64_t>(offset / 8, 1)], c); }

  /// All eightbytes that [offset, offset + size) lies in.
  void join_all(std::uint64_t offset, std::uint64_t size, Class c) {
    for (std::uint64_t at = offset / 8; at * 8 < offset + size && at < 2; ++at) join(classes_[at], c);
  }

  void number(Dwarf_Die type, std::uint64_t offset, std::uint64_t size) {
    switch (number_of(&type, DW_AT_encoding).value_or(0)) {
      case DW_ATE_float:
        if (size == 16 && name_of(&type) == "long double") {
          join(classes_[0], Class::kX87);
          return join(classes_[1], Class::kX87Up);
        }
        [[fallthrough]];
      case DW_ATE_decimal_float:
        join_at(offset, Class::kVector);
        if (size > 8) join(classes_[1], Class::kVectorUp);
        return;
      case DW_ATE_complex_float:
        return join_all(offset, size, size > 16 ? Class::kMemory : Class::kVector);
      default:
        return join_all(offset, size, Class::kInteger);
    }
  }

  void members(Dwarf_Die type, std::uint64_t offset, int depth) {
    for_each_member(type, [&](Dwarf_Die& member, const Dwarf_Die& of) {
      if (dwarf_hasattr(&member, DW_AT_bit_size) != 0) {
        const auto bits = bits_of(member);
        if (!bits) return join(classes_[0], Class::kUnknown);
        const std::uint64_t begin = offset * 8 + bits->begin;
        const std::uint64_t end = begin + bits->count;
        for (std::uint64_t at = begin / 64; at * 64 < end && at < 2; ++at) join(classes_[at], Class::kInteger);
        if (end > 128) join(classes_[0], Class::kMemory);
        return;
      }
      const auto at = offset_of(member);
      if (!at) return join(classes_[0], Class::kUnknown);
      classify(of, offset + *at, depth + 1);
    });
  }

  void classify(Dwarf_Die type, std::uint64_t offset, int depth) {
    const std::uint64_t size = size_of(type);
    if (depth > kDeepestNesting) return join(classes_[0], Class::kUnknown);
    const int tag = dwarf_tag(&type);
    const bool has_parts = is_class(type) || (tag == DW_TAG_array_type && !is_vector_type(type));
    if (size > 16 && (depth == 0 || has_parts) && tag != DW_TAG_base_type)
      return join(classes_[0], is_vector_type(type) ? Class::kUnknown : Class::kMemory);
    if (size != 0 && offset + size > 16 && depth != 0) return join(classes_[0], Class::kMemory);
    // What is packed lies where compilers do not agree, as soon as it has members of its own.
    if (const std::uint64_t alignment = has_parts ? natural_alignment(type) : own_alignment(type);
        offset % std::max<std::uint64_t>(alignment, 1) != 0)
      return join(classes_[0], has_parts ? Class::kUnknown : Class::kMemory);
    switch (tag) {
      case DW_TAG_base_type:
        return number(type, offset, size);
      case DW_TAG_structure_type:
      case DW_TAG_class_type:
      case DW_TAG_union_type:
        if (dwarf_hasattr(&type, DW_AT_declaration) != 0) return join(classes_[0], Class::kUnknown);
        return members(type, offset, depth);
      case DW_TAG_array_type: {
        const auto element = type_of(&type);
        const std::uint64_t each = element ? size_of(*element) : 0;
        // An argument is no array. A member may be a vector where nothing says so.
        if (is_vector_type(type) || depth == 0) return vector(offset, size, each);
        if (!compiler_.tells_vectors && size >= 4 && (size & (size - 1)) == 0)
          return join(classes_[0], Class::kUnknown);
        for (std::uint64_t at = 0; each != 0 && at < size; at += each) classify(*element, offset + at, depth + 1);
        return;
      }
      default:
        return join_all(offset, size != 0 ? size : 8, Class::kInteger);
    }
  }

  void vector(std::uint64_t offset, std::uint64_t size, std::uint64_t each) {
    // Those of one element, and short ones, are not passed alike by all compilers.
    if ((size != 8 && size != 16) || each == 0 || each == size) return join(classes_[0], Class::kUnknown);
    join_at(offset, Class::kVector);
    if (size == 16) join(classes_[1], Class::kVectorUp);
  }

  /// One that is passed in a longer register where the processor has it.
  bool has_wide_vector(Dwarf_Die type, int depth) const {
    if (depth > kDeepestNesting) return true;
    const std::uint64_t size = size_of(type);
    if (dwarf_tag(&type) == DW_TAG_array_type) {
      if (is_vector_type(type)) return size > 16;
      if (!compiler_.tells_vectors && (size == 32 || size == 64)) return true;
      const auto element = type_of(&type);
      return element && has_wide_vector(*element, depth + 1);
    }
    bool found = false;
    if (is_class(type))
      for_each_member(type, [&](Dwarf_Die&, const Dwarf_Die& of) { found = found || has_wide_vector(of, depth + 1); });
    return found;
  }

  const Compiler& compiler_;
  Classes classes_{Class::kNone, Class::kNone};
};

bool has_flag(Dwarf_Die& die, unsigned attribute) {
  Dwarf_Attribute at;
  bool flag = false;
  if (dwarf_attr(&die, attribute, &at) != nullptr) dwarf_formflag(&at, &flag);
  return flag;
}

enum class Special : std::uint8_t { kNone, kTrivial, kDeleted, kOwn };

/// A destructor, or a constructor from another object of the class: whether the source gives or takes it away.
Special special_of(Dwarf_Die function, const Dwarf_Die& of, std::string_view class_name) {
  const std::string_view name = name_of(&function);
  bool is_special = name.starts_with('~');
  if (!is_special && !name.empty() && name == class_name.substr(0, class_name.find('<'))) {
    std::size_t parameters = 0;
    Dwarf_Die child;
    if (dwarf_child(&function, &child) == 0) do {
        if (dwarf_tag(&child) != DW_TAG_formal_parameter || ++parameters != 2) continue;
        auto type = type_of(&child);
        const int tag = type ? dwarf_tag(&*type) : 0;
        const auto target =
            tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type ? type_of(&*type) : std::nullopt;
        is_special = target && target->addr == of.addr;
      } while (dwarf_siblingof(&child, &child) == 0);
    is_special = is_special && parameters == 2;
  }
  if (!is_special) return Special::kNone;
  if (has_flag(function, DW_AT_deleted)) return Special::kDeleted;
  const bool defaulted = number_of(&function, DW_AT_defaulted).value_or(0) == DW_DEFAULTED_in_class;
  return has_flag(function, DW_AT_artificial) || defaulted ? Special::kTrivial : Special::kOwn;
}

enum class Passing : std::uint8_t { kByValue, kByReference, kUnknown };

/// Of the standard library, with copies and ends of their own in all of its versions.
bool is_known_to_go_by_reference(std::string_view name) {
  name = name.substr(0, name.find('<'));
  constexpr std::array<std::string_view, 8> kNames = {"basic_string", "vector", "deque",         "list",
                                                      "map",          "set",    "unordered_map", "unordered_set"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

/// Copying it, or its end, calls a function: it is passed by a hidden reference.
Passing passing_of(Dwarf_Die type, const Compiler& compiler, int depth = 0) {
  if (dwarf_tag(&type) == DW_TAG_array_type) {
    const auto element = type_of(&type);
    return element && depth < kDeepestType ? passing_of(*element, compiler, depth + 1) : Passing::kByValue;
  }
  if (!is_class(type)) return Passing::kByValue;
  if (depth == kDeepestType || dwarf_hasattr(&type, DW_AT_declaration) != 0) return Passing::kUnknown;
  if (const auto said = number_of(&type, DW_AT_calling_convention))
    return *said == DW_CC_pass_by_reference ? Passing::kByReference : Passing::kByValue;
  const std::string_view class_name = name_of(&type);
  bool own = false;
  bool deleted = false;
  bool trivial = false;
  bool by_part = false;
  bool unknown_part = false;
  Dwarf_Die child;
  if (dwarf_child(&type, &child) != 0) return Passing::kByValue;
  do {
    if (dwarf_tag(&child) != DW_TAG_subprogram) continue;
    const Special special = special_of(child, type, class_name);
    own = own || special == Special::kOwn;
    deleted = deleted || special == Special::kDeleted;
    trivial = trivial || special == Special::kTrivial;
  } while (dwarf_siblingof(&child, &child) == 0);
  for_each_member(type, [&](Dwarf_Die& member, const Dwarf_Die& of) {
    by_part = by_part || dwarf_hasattr(&member, DW_AT_virtuality) != 0 || name_of(&member).starts_with("_vptr");
    const Passing part = passing_of(of, compiler, depth + 1);
    by_part = by_part || part == Passing::kByReference;
    unknown_part = unknown_part || part == Passing::kUnknown;
  });
  if (by_part) return Passing::kByReference;
  if (own || deleted) {
    // Without the attributes of DWARF 5 a function that is `= default` looks like one of the source's own.
    if (!compiler.tells_defaults && !is_known_to_go_by_reference(class_name)) return Passing::kUnknown;
    if (own || !trivial) return Passing::kByReference;
  }
  return unknown_part ? Passing::kUnknown : Passing::kByValue;
}

}  // namespace

std::optional<std::uint8_t> place_of_register(std::uint64_t number) {
  constexpr std::array<std::uint8_t, 17> kPlaces = {kRax, kRdx, 7, 255, 6,   5,   255, 255, 4,
                                                    3,    2,    1, 255, 255, 255, 255, 255};
  if (number < kPlaces.size() && kPlaces[number] != 255) return kPlaces[number];
  if (number >= 17 && number < 17U + kVectorPlaces) return static_cast<std::uint8_t>(kFirstVectorPlace + number - 17);
  return std::nullopt;
}

bool is_argument_register(std::uint8_t place) {
  return place >= kFirstVectorPlace ||
         std::find(kIntegerArguments.begin(), kIntegerArguments.end(), place) != kIntegerArguments.end();
}

std::optional<std::uint8_t> place_of_stack(std::int64_t offset) {
  constexpr std::int64_t kFirst = KARST_SAVED_WORDS_BEFORE_STACK + 1;
  if (offset < 0 || offset % 8 != 0 || kFirst + offset / 8 >= kMostPlace) return std::nullopt;
  return static_cast<std::uint8_t>(kFirst + offset / 8);
}

Compiler Compiler::of(Dwarf_Die* function) {
  Compiler found;
  Dwarf_Die unit;
  Dwarf_Half version = 0;
  Dwarf_Attribute at;
  if (dwarf_diecu(function, &unit, nullptr, nullptr) == nullptr) return found;
  if (dwarf_cu_die(unit.cu, &unit, &version, nullptr, nullptr, nullptr, nullptr, nullptr) == nullptr) version = 0;
  const char* text = dwarf_formstring(dwarf_attr(&unit, DW_AT_producer, &at));
  const std::string_view producer = text != nullptr ? text : "";
  found.by_clang = producer.find("clang") != std::string_view::npos;
  found.by_gcc = producer.starts_with("GNU ");
  const bool is_strict = producer.find("-gstrict-dwarf") != std::string_view::npos;
  // clang does not say with which options it was called.
  found.tells_vectors = found.by_clang || found.by_gcc;
  found.tells_defaults = version >= 5 || (found.by_gcc && !is_strict);
  found.tells_alignment = found.tells_defaults;
  return found;
}

HiddenResult hidden_result(const std::optional<Dwarf_Die>& type, const Compiler& compiler) {
  if (!type) return HiddenResult::kNone;
  const Passing passing = passing_of(*type, compiler);
  if (passing != Passing::kByValue)
    return passing == Passing::kByReference ? HiddenResult::kHidden : HiddenResult::kUnknown;
  if (!is_class(*type)) {
    const bool is_number = dwarf_tag(const_cast<Dwarf_Die*>(&*type)) == DW_TAG_base_type;
    const bool is_complex =
        is_number && number_of(const_cast<Dwarf_Die*>(&*type), DW_AT_encoding).value_or(0) == DW_ATE_complex_float;
    return size_of(*type) > 16 && !is_complex ? HiddenResult::kUnknown : HiddenResult::kNone;
  }
  switch (Classifier(compiler).of(*type)[0]) {
    case Class::kUnknown:
      return HiddenResult::kUnknown;
    case Class::kMemory:
      return HiddenResult::kHidden;
    default:
      return HiddenResult::kNone;
  }
}

Source place_of_result(Dwarf_Die type, const Compiler& compiler) {
  switch (hidden_result(type, compiler)) {
    case HiddenResult::kHidden:
      return {true, {kRax}};
    case HiddenResult::kUnknown:
      return {};
    case HiddenResult::kNone:
      break;
  }
  Source source;
  std::size_t integers = 0;
  std::uint8_t vectors = 0;
  for (const Class c : Classifier(compiler).of(type)) {
    if (c == Class::kInteger) source.words.push_back(integers++ == 0 ? kRax : kRdx);
    if (c == Class::kVector) source.words.push_back(static_cast<std::uint8_t>(kFirstVectorPlace + vectors++));
    if (c == Class::kMemory || c == Class::kUnknown || c == Class::kX87) return {};
  }
  return source;
}

std::optional<Source> Convention::next(Dwarf_Die type) {
  if (lost_) return std::nullopt;
  const std::uint64_t size = size_of(type);
  const Passing passing = passing_of(type, compiler_);
  if (passing == Passing::kUnknown) return lose();
  if (passing == Passing::kByReference) {
    const auto word = integer();
    return word ? std::optional<Source>({true, {*word}}) : std::nullopt;
  }
  const Classes classes = Classifier(compiler_).of(type);
  if (classes[0] == Class::kUnknown) return lose();
  if (classes[0] == Class::kNone) return std::nullopt;  // empty
  const auto wanted = [&](Class c) { return static_cast<std::size_t>(std::count(classes.begin(), classes.end(), c)); };
  if (classes[0] == Class::kMemory || classes[0] == Class::kX87 || size > 16 ||
      integers_ + wanted(Class::kInteger) > kIntegerArguments.size() ||
      vectors_ + wanted(Class::kVector) > kVectorPlaces)
    return on_stack(type, std::max<std::uint64_t>(size, 8));
  Source source;
  for (const Class c : classes) {
    if (c == Class::kInteger) source.words.push_back(kIntegerArguments[integers_++]);
    if (c == Class::kVector) source.words.push_back(static_cast<std::uint8_t>(kFirstVectorPlace + vectors_++));
  }
  return source;
}

std::optional<std::uint8_t> Convention::integer() {
  if (integers_ < kIntegerArguments.size()) return kIntegerArguments[integers_++];
  const auto there = words_of_stack(8);
  return there ? std::optional(there->words[0]) : std::nullopt;
}

std::optional<Source> Convention::on_stack(Dwarf_Die type, std::uint64_t size) {
  // clang before 18 splits an integer of 16 bytes between the last register and the stack, and aligns it otherwise.
  if (!is_class(type) && size == 16 && compiler_.by_clang && Classifier(compiler_).of(type)[0] == Class::kInteger)
    return lose();
  const std::uint64_t alignment = natural_alignment(type);
  if (alignment > 16) return lose();
  if (stack_ % 16 != 0 && size % 16 == 0) {
    // A class with such a member may be packed; one without may have been aligned by its source.
    const bool is_known = !is_class(type) || (alignment <= 8 && compiler_.tells_alignment) ||
                          number_of(&type, DW_AT_alignment).value_or(0) == 16;
    if (!is_known) return lose();
    if (alignment == 16) stack_ += 8;
  }
  return words_of_stack(size);
}

std::optional<Source> Convention::words_of_stack(std::uint64_t size) {
  Source source;
  for (std::uint64_t at = 0; at < size; at += 8)
    if (const auto place = place_of_stack(static_cast<std::int64_t>(stack_ + at))) source.words.push_back(*place);
  stack_ += (size + 7) / 8 * 8;
  return source.words.empty() ? std::nullopt : std::optional(source);
}

}  // namespace karst::symbols
