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
/// Data members, those of bases among them without names; nothing if there are too many, or bit fields.
std::optional<std::vector<Member>> members_of(Dwarf_Die type);

}  // namespace karst::symbols
