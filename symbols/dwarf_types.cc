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
  return dwarf_aggregate_size(&type, &size) == 0 ? size : 0;
}

std::optional<std::vector<Member>> members_of(Dwarf_Die type) {
  std::vector<Member> members;
  Dwarf_Die child;
  if (dwarf_child(&type, &child) != 0) return members;
  do {
    const int tag = dwarf_tag(&child);
    if (tag != DW_TAG_member && tag != DW_TAG_inheritance) continue;
    if (dwarf_hasattr(&child, DW_AT_external) != 0 || dwarf_hasattr(&child, DW_AT_declaration) != 0)
      continue;  // static
    if (dwarf_hasattr(&child, DW_AT_bit_size) != 0 || dwarf_hasattr(&child, DW_AT_virtuality) != 0) return std::nullopt;
    const auto member = type_of(&child);
    if (!member || members.size() == 64) return std::nullopt;
    if (tag == DW_TAG_inheritance && size_of(*member) <= 1) continue;  // empty
    members.push_back({*member, number_of(&child, DW_AT_data_member_location).value_or(0), name_of(&child)});
  } while (dwarf_siblingof(&child, &child) == 0);
  return members;
}

bool is_vector_type(Dwarf_Die type) {
  return dwarf_tag(&type) == DW_TAG_array_type && dwarf_hasattr(&type, DW_AT_GNU_vector) != 0;
}

}  // namespace karst::symbols
