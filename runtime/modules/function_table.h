// SPDX-License-Identifier: MIT
// One module's functions: which ids they have, and where they begin. Made once when the module is entered, read by any
// thread from then on; never freed, as ids are never reused.
#pragma once
#include <cstdint>

#include "runtime/modules/module_image.h"

namespace karst::runtime {

class FunctionTable {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  static constexpr std::uint32_t kAliases = 2;

  /// Finds the functions of a module that has no defect. False when memory is short.
  bool create(const ModuleImage& image);
  /// Functions; their ids are first_id to first_id + count() - 1, by address.
  std::uint32_t count() const { return count_; }
  /// Ids for tail calls, which follow: two for each function that makes some.
  std::uint32_t alias_count() const { return kAliases * with_aliases_; }
  std::uint64_t sleds() const { return sleds_; }
  /// Functions that have exits alone: clang gives none with patchable_function_entry a sled at its entry. Not traced.
  std::uint64_t without_entry() const { return without_entry_; }

  std::uintptr_t address(std::uint32_t index) const { return text_begin_ + (sorted_[index] >> 32); }
  bool always(std::uint32_t index) const { return (bits_[index] & kAlways) != 0; }
  /// Its entry is a sled at which flags are live, and arguments perhaps gone (format/patch_table.h).
  bool late(std::uint32_t index) const { return (bits_[index] & kLate) != 0; }
  /// Index of the first of its aliases among all ids of the module, from count() on; kNone when it has none. Exits with
  /// it are jumps: what was called goes on. Exits with the one behind it come when the callee has returned.
  std::uint32_t alias(std::uint32_t index) const {
    return aliases_[index] == 0 ? kNone : count_ + kAliases * (aliases_[index] - 1);
  }
  /// Whether it is the second of a function's, by its index among all ids.
  bool has_returned(std::uint32_t alias) const { return (alias - count_) % kAliases != 0; }
  /// Of the function that has alias number `n` (0 to alias_count() - 1).
  std::uint32_t function_of_alias(std::uint32_t n) const { return functions_with_aliases_[n / kAliases]; }

  /// The number of its entry in the order of the module's tables.
  std::uint32_t entry_of(std::uint32_t index) const { return static_cast<std::uint32_t>(sorted_[index]); }
  /// Index of the function whose entry is number `n` in the order of the module's tables.
  std::uint32_t index_of_entry(std::uint32_t n) const { return order_[n]; }

  /// The sleds of the function are calls now.
  void set_patched(std::uint32_t index, bool patched);
  bool patched(std::uint32_t index) const { return (load(bits_[index]) & kPatched) != 0; }

  /// The sleds of the function shall be calls.
  void set_wanted(std::uint32_t index, bool wanted);
  bool wanted(std::uint32_t index) const { return (load(bits_[index]) & kWanted) != 0; }

  /// The function that begins at this address, or whose part in another section does; kNone if there is none.
  std::uint32_t find(std::uintptr_t begin) const;

  /// It has a sled that cannot be changed while threads may execute it (arch::can_change_live).
  bool fixed(std::uint32_t index) const { return (bits_[index] & (kFixed | kGivenBack | kLeftOut)) != 0; }
  void set_fixed(std::uint32_t index);
  /// One of its sleds has a defect: it is not traced, and is fixed.
  bool left_out(std::uint32_t index) const { return (bits_[index] & kLeftOut) != 0; }
  std::uint32_t left_out_count() const { return left_out_count_; }
  /// Of the first such sled in the tables' order.
  SiteDefect first_defect() const { return first_defect_; }
  std::uintptr_t first_left_out() const { return first_left_out_; }
  std::uint32_t fixed_sleds() const { return fixed_sleds_; }

  /// It has its own code back (patching/code_back.h), and is fixed.
  bool given_back(std::uint32_t index) const { return (bits_[index] & kGivenBack) != 0; }
  void set_given_back(std::uint32_t index, bool given_back);
  std::uint32_t given_back() const { return given_back_; }

  /// Calls visit(SledPlace, index of its function) for the sleds that belong to one.
  template <typename Visit>
  void for_each_sled(const SledTables& tables, Visit visit) const;
  /// Calls visit(SledPlace) for the sleds of this function.
  template <typename Visit>
  void for_each_sled_of(const SledTables& tables, std::uint32_t index, Visit visit) const;

 private:
  enum Bit : std::uint8_t {
    kAlways = 1,
    kPatched = 2,
    kFixed = 4,
    kWanted = 8,
    kLate = 16,
    kGivenBack = 32,
    kLeftOut = 64
  };
  struct Cold {
    std::uint64_t offset;  // from the beginning of the module's code
    std::uint64_t index;
  };

  std::uintptr_t text_begin_ = 0;
  std::uint64_t* sorted_ = nullptr;  // offset in the code << 32 | place in the order of the module's tables
  Cold* cold_ = nullptr;             // by offset
  std::uint32_t* order_ = nullptr;   // place in the tables' order -> index
  std::uint32_t* entries_ =
      nullptr;  // the number of the entry's sled in the tables, which have fewer than code has bytes
  std::uint32_t* aliases_ = nullptr;  // place among those that have some + 1; 0: none
  std::uint32_t* functions_with_aliases_ = nullptr;
  std::uint8_t* bits_ = nullptr;
  std::uint32_t count_ = 0;
  std::uint32_t with_aliases_ = 0;
  std::uint32_t cold_count_ = 0;
  std::uint32_t fixed_sleds_ = 0;
  std::uint32_t given_back_ = 0;
  std::uint32_t left_out_count_ = 0;
  SiteDefect first_defect_ = SiteDefect::kNone;
  std::uintptr_t first_left_out_ = 0;
  std::uint64_t sleds_ = 0;
  std::uint64_t without_entry_ = 0;
};

/// Which function a sled belongs to, while one steps through a module's sleds in order: calls visit(place, number of
/// its entry in the order of the tables, number of the sled). Left out are exits of functions without an entry.
template <typename Visit>
void for_each_owned_sled(const SledTables& tables, Visit visit) {
  std::uint32_t entries = 0;
  std::uintptr_t function = 0;
  tables.for_each_sled_from(0, [&](const SledPlace& p, std::uint64_t number) {
    if (p.kind == format::SledKind::kEntry) {
      ++entries;
      function = p.function;
    } else if (p.function != function || entries == 0) {
      return true;
    }
    visit(p, entries - 1, number);
    return true;
  });
}

template <typename Visit>
void FunctionTable::for_each_sled(const SledTables& tables, Visit visit) const {
  for_each_owned_sled(
      tables, [&](const SledPlace& p, std::uint32_t entry, std::uint64_t /*number*/) { visit(p, order_[entry]); });
}

template <typename Visit>
void FunctionTable::for_each_sled_of(const SledTables& tables, std::uint32_t index, Visit visit) const {
  std::uintptr_t function = 0;
  tables.for_each_sled_from(entries_[index], [&](const SledPlace& p, std::uint64_t number) {
    const bool is_entry = p.kind == format::SledKind::kEntry;
    if (is_entry && number != entries_[index]) return false;  // the next function's
    if (is_entry) function = p.function;
    if (p.function == function) visit(p);
    return true;
  });
}

}  // namespace karst::runtime
