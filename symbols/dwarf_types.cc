// SPDX-License-Identifier: MIT
#include "symbols/dwarf_types.h"

#include <dwarf.h>

namespace karst::symbols {

std::string_view name_of(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  const char* name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &attribute));
  return name != nullptr ? name : "";
}

std::optional<std::uint64_t> number_of(Dwarf_Die* die, unsigned attribute) {
  Dwarf_Attribute at;
  Dwarf_Word value = 0;
  if (dwarf_formudata(dwarf_attr_integrate(die, attribute, &at), &value) != 0) return std::nullopt;
  return value;
}

bool is_c_or_cpp(Dwarf_Die* die) {
  Dwarf_Die unit;
  if (dwarf_diecu(die, &unit, nullptr, nullptr) == nullptr) return false;
  switch (dwarf_srclang(&unit)) {
    case DW_LANG_C:
    case DW_LANG_C89:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case 0x2a:  // C++17, C++20 and C17, which elfutils 0.188 has no names for
    case 0x2b:
    case 0x2c:
      return true;
    default:
      return false;
  }
}

std::optional<Dwarf_Die> type_of(Dwarf_Die* die) {
  Dwarf_Die type;
  Dwarf_Attribute at;
  if (dwarf_formref_die(dwarf_attr_integrate(die, DW_AT_type, &at), &type) == nullptr) return std::nullopt;
  for (int depth = 0; depth < kDeepestType; ++depth) {
    switch (dwarf_tag(&type)) {
      case DW_TAG_typedef:
      case DW_TAG_const_type:
      case DW_TAG_volatile_type:
      case DW_TAG_restrict_type:
      case DW_TAG_atomic_type:
        if (dwarf_formref_die(dwarf_attr(&type, DW_AT_type, &at), &type) == nullptr) return std::nullopt;
        continue;
      default:
        // What is here of a type that has a unit of its own (-fdebug-types-section).
        if (dwarf_hasattr(&type, DW_AT_signature) != 0) {
          Dwarf_Die whole;
          if (dwarf_formref_die(dwarf_attr(&type, DW_AT_signature, &at), &whole) != nullptr) return whole;
        }
        return type;
    }
  }
  return std::nullopt;
}

bool is_class(const Dwarf_Die& type) {
  const int tag = dwarf_tag(const_cast<Dwarf_Die*>(&type));
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

std::uint64_t size_of(Dwarf_Die type) {
  Dwarf_Word size = 0;
  if (dwarf_tag(&type) == DW_TAG_ptr_to_member_type && dwarf_hasattr(&type, DW_AT_byte_size) == 0) {
    const auto target = type_of(&type);
    return target && dwarf_tag(&const_cast<Dwarf_Die&>(*target)) == DW_TAG_subroutine_type ? 16 : 8;
  }
  return dwarf_aggregate_size(&type, &size) == 0 ? size : 0;
}

bool is_member(Dwarf_Die& die) {
  const int tag = dwarf_tag(&die);
  return (tag == DW_TAG_member || tag == DW_TAG_inheritance) && dwarf_hasattr(&die, DW_AT_external) == 0 &&
         dwarf_hasattr(&die, DW_AT_declaration) == 0;
}

std::optional<std::uint64_t> offset_of(Dwarf_Die& member) {
  Dwarf_Attribute at;
  if (dwarf_attr(&member, DW_AT_data_member_location, &at) == nullptr) {
    // In a union there is none; DWARF 5 may have it in bits.
    const auto bits = number_of(&member, DW_AT_data_bit_offset);
    return !bits ? std::optional<std::uint64_t>(0) : *bits % 8 == 0 ? std::optional(*bits / 8) : std::nullopt;
  }
  Dwarf_Word number = 0;
  if (dwarf_formudata(&at, &number) == 0) return number;
  // DWARF 2: what is to be done with the structure's address.
  Dwarf_Op* ops = nullptr;
  std::size_t count = 0;
  if (dwarf_getlocation(&at, &ops, &count) != 0 || count != 1 || ops[0].atom != DW_OP_plus_uconst) return std::nullopt;
  return ops[0].number;
}

std::optional<Bits> bits_of(Dwarf_Die& member) {
  const auto count = number_of(&member, DW_AT_bit_size);
  if (!count) return std::nullopt;
  if (const auto begin = number_of(&member, DW_AT_data_bit_offset)) return Bits{*begin, *count};
  const auto unit = offset_of(member);
  const auto above = number_of(&member, DW_AT_bit_offset);  // counted from the upper end of what it lies in
  if (!unit) return std::nullopt;
  if (!above) return Bits{*unit * 8, *count};
  const auto type = type_of(&member);
  const std::uint64_t size = number_of(&member, DW_AT_byte_size).value_or(type ? size_of(*type) : 0);
  if (size * 8 < *above + *count) return std::nullopt;
  return Bits{*unit * 8 + size * 8 - *above - *count, *count};
}

bool is_empty(const Dwarf_Die& type, int depth) {
  if (!is_class(type) || dwarf_hasattr(const_cast<Dwarf_Die*>(&type), DW_AT_declaration) != 0) return false;
  bool empty = depth < kDeepestType;
  if (empty) for_each_member(type, [&](Dwarf_Die&, const Dwarf_Die& of) { empty = empty && is_empty(of, depth + 1); });
  return empty;
}

bool is_instance(Dwarf_Die type, std::string_view name, std::string_view argument) {
  const std::string_view called = name_of(&type);
  if (!called.starts_with(name)) return false;
  if (called.size() > name.size()) {
    if (called[name.size()] != '<') return false;
    if (argument.empty()) return true;
    const std::string_view rest = called.substr(name.size() + 1);
    return rest.starts_with(argument) && rest.size() > argument.size() &&
           (rest[argument.size()] == ',' || rest[argument.size()] == '>');
  }
  Dwarf_Die child;
  if (dwarf_child(&type, &child) == 0) do {
      if (dwarf_tag(&child) != DW_TAG_template_type_parameter) continue;
      auto of = type_of(&child);
      return of && (argument.empty() || name_of(&*of) == argument);
    } while (dwarf_siblingof(&child, &child) == 0);
  return false;
}

std::optional<std::vector<Member>> members_of(Dwarf_Die type) {
  std::vector<Member> members;
  Dwarf_Die child;
  if (dwarf_child(&type, &child) != 0) return members;
  do {
    if (!is_member(child)) continue;
    if (dwarf_hasattr(&child, DW_AT_bit_size) != 0 || dwarf_hasattr(&child, DW_AT_virtuality) != 0) return std::nullopt;
    const auto member = type_of(&child);
    const auto offset = offset_of(child);
    if (!member || !offset || members.size() == 64) return std::nullopt;
    if (is_empty(*member)) continue;
    members.push_back({*member, *offset, name_of(&child)});
  } while (dwarf_siblingof(&child, &child) == 0);
  return members;
}

bool is_vector_type(Dwarf_Die type) {
  return dwarf_tag(&type) == DW_TAG_array_type && dwarf_hasattr(&type, DW_AT_GNU_vector) != 0;
}

}  // namespace karst::symbols
