// SPDX-License-Identifier: MIT
// The calling convention: in which registers, and where on the stack, arguments and results are passed (System V ABI,
// AMD64 supplement, 3.2.3; for C++ classes the Itanium C++ ABI, 3.1.2).
#pragma once
#include <elfutils/libdw.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "format/values.h"

namespace karst::symbols {

/// DWARF's number of a register to its place (format/values.h), if a hook has saved it.
std::optional<std::uint8_t> place_of_register(std::uint64_t number);
/// A place in which arguments come.
bool is_argument_register(std::uint8_t place);
/// A word of the stack at `offset` bytes from the canonical frame address: the word behind the return address is at 0.
std::optional<std::uint8_t> place_of_stack(std::int64_t offset);

/// Where an object is: in words (registers, or the caller's stack), or at the address in one.
struct Source {
  bool by_address = false;
  std::vector<std::uint8_t> words;
  std::uint32_t missing = 0;  ///< a bit for each of its first bytes that the compiler left nothing of
};

/// What a unit's debug information can be relied on for. Older versions of DWARF, and strict ones, leave out what tells
/// types apart that are passed in different ways.
struct Compiler {
  bool by_clang = false;
  bool by_gcc = false;
  bool tells_vectors = false;    ///< else a member that is an array may be a vector
  bool tells_defaults = false;   ///< else a class's copy or destructor that is declared may be `= default`
  bool tells_alignment = false;  ///< else a class may be aligned as its source asked for

  static Compiler of(Dwarf_Die* function);
};

/// A result that its caller makes room for: its address comes as a hidden first argument, and goes back in rax.
enum class HiddenResult : std::uint8_t { kNone, kHidden, kUnknown };
HiddenResult hidden_result(const std::optional<Dwarf_Die>& type, const Compiler& compiler);
/// Where what a function returns is, as it returns; no words: in no register that a hook has, or not known.
Source place_of_result(Dwarf_Die type, const Compiler& compiler);

/// Hands out registers and words of the stack to arguments in their order. Where compilers differ, or debug information
/// does not tell, that argument and all behind it have no place.
class Convention {
 public:
  Convention(HiddenResult result, const Compiler& compiler)
      : compiler_(compiler),
        integers_(result == HiddenResult::kHidden ? 1 : 0),
        lost_(result == HiddenResult::kUnknown) {}

  /// None: it takes no place, or one that is not known.
  std::optional<Source> next(Dwarf_Die type);
  /// There is an argument of which nothing is known.
  std::nullopt_t lose() {
    lost_ = true;
    return std::nullopt;
  }

 private:
  std::optional<std::uint8_t> integer();
  std::optional<Source> on_stack(Dwarf_Die type, std::uint64_t size);
  std::optional<Source> words_of_stack(std::uint64_t size);

  Compiler compiler_;
  std::size_t integers_;
  std::size_t vectors_ = 0;
  std::uint64_t stack_ = 0;
  bool lost_ = false;  ///< where arguments are from here on is not known
};

}  // namespace karst::symbols
