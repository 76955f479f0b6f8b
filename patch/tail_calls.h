// SPDX-License-Identifier: MIT
// Which tail calls of a module may be made in place (arch/x86_64/tail_hooks.S): those that pass nothing on the stack.
//
// A function that is passed nothing there passes nothing on there (symbols/register_parameters.h). Some functions of
// libc are known by their names, and a function of the module by its code (stack_arguments.h).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "patch/elf_image.h"
#include "patch/places.h"
#include "patch/stack_arguments.h"
#include "symbols/register_parameters.h"

namespace karst::patch {

/// Which function a jump leads to, by its name.
class Callees {
 public:
  /// The image must outlive it.
  explicit Callees(const ElfImage& image);
  /// Of a jump to this address, perhaps by the linker's table of jumps out of the module. Empty: not known.
  std::string_view name_of(std::uint64_t target) const;
  /// Of one by the address in a word of data, which the dynamic linker fills in.
  std::string_view imported_at(std::uint64_t word) const;
  /// It is one of libc's that are known to take nothing from the stack. By that table, or by such a word.
  bool is_known_by(std::uint64_t target) const;
  bool is_known_at(std::uint64_t word) const;

 private:
  /// The word by whose address the table's entry there jumps; none: it is no such entry.
  std::optional<std::uint64_t> word_of(std::uint64_t target) const;

  const ElfImage& image_;
  std::map<std::uint64_t, ElfImage::Import> imported_;
  std::map<std::uint64_t, std::string_view> names_;
};

/// Of some functions of the module, in order of address: what debug information and names say. Of large debug
/// information nothing is read.
std::vector<symbols::ParametersOf> parameters_of(const ElfImage& image, const std::vector<std::uint64_t>& functions);

/// Whether the jump, which has these bytes, may be made in place. `by_registers`: its function is passed nothing on the
/// stack. `arguments`: null, or what the module's code says of the function that it leads to.
bool may_be_in_place(const Callees& callees, StackArguments* arguments, const Instruction& jump,
                     std::span<const std::byte> bytes, bool by_registers);

/// Sets Stub::in_place of the exits of all functions.
void find_calls_in_place(const ElfImage& image, const Frames& frames, std::vector<Function>& functions);

}  // namespace karst::patch
