// SPDX-License-Identifier: MIT
// The types of C and C++, as DWARF has them.
#pragma once
#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace karst::symbols {

inline constexpr int kDeepestType = 32;  ///< typedefs of typedefs; more is a damaged file

/// Empty: it has none. Valid while the module is.
std::string_view name_of(Dwarf_Die* die);
std::optional<std::uint64_t> number_of(Dwarf_Die* die, unsigned attribute);
/// The type without names and qualifiers; none: void.
std::optional<Dwarf_Die> type_of(Dwarf_Die* die);
/// Whether it is of a unit in C or C++.
bool is_c_or_cpp(Dwarf_Die* die);
/// A class, structure or union.
bool is_class(const Dwarf_Die& type);
/// Bytes; 0: not known.
std::uint64_t size_of(Dwarf_Die type);
/// __attribute__((vector_size)).
bool is_vector_type(Dwarf_Die type);

struct Member {
  Dwarf_Die type;
  std::uint64_t offset;  ///< bytes
  std::string_view name;
};
/// A base, or a data member that is not static.
bool is_member(Dwarf_Die& die);
/// Calls visit(its DIE, its type) for each data member and base; not for static ones, nor where the type is not known.
template <typename Visit>
void for_each_member(Dwarf_Die type, Visit visit) {
  Dwarf_Die child;
  if (dwarf_child(&type, &child) != 0) return;
  do {
    if (!is_member(child)) continue;
    if (const auto of = type_of(&child)) visit(child, *of);
  } while (dwarf_siblingof(&child, &child) == 0);
}
/// Of a member that is no bit field, in bytes. None: DWARF does not say it as a number.
std::optional<std::uint64_t> offset_of(Dwarf_Die& member);
struct Bits {
  std::uint64_t begin;  ///< from the structure's first bit on
  std::uint64_t count;
};
std::optional<Bits> bits_of(Dwarf_Die& member);
/// A class without any data.
bool is_empty(const Dwarf_Die& type, int depth = 0);
/// `name` in a template's instance whose first argument is the type `argument`, also where names lack their arguments
/// (-gsimple-template-names).
bool is_instance(Dwarf_Die type, std::string_view name, std::string_view argument);
/// Data members, those of bases among them without names; nothing if there are too many, bit fields, or one without a
/// known place.
std::optional<std::vector<Member>> members_of(Dwarf_Die type);

}  // namespace karst::symbols
