// SPDX-License-Identifier: MIT
// What .eh_frame says of a module's code: where each function begins and ends, where exceptions land in it, and how
// deep the stack is at a place. Every x86-64 module has it, stripped or not.
//
// libdw runs the call frame instructions; the pointers that it leaves encoded are read here, and the call-site tables
// of C++ (LSDA) too. Formats: Linux Standard Base, "Exception Frames"; Itanium C++ ABI, exception handling tables.
#pragma once
#include <elfutils/libdw.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "binary/elf_file.h"
#include "patch/elf_image.h"

namespace karst::patch {

/// A piece of code with one frame description entry: a function, or a part of one.
struct Frame {
  Range code;
  std::uint64_t language_data = 0;  ///< of exceptions: its address; 0: none
  bool is_damaged = false;          ///< language data in an encoding that is not known here
  /// Its rules at its beginning are those that it shares with others: 1 + their number; 0: it has its own.
  std::uint32_t first_rules = 0;
};

class Frames {
 public:
  /// Errors: no table of frames, or a damaged one. `image` must outlive this. `also_by_section`: a table that only the
  /// section's name tells of will do. Exceptions do not find such a one, so that code with it is not patched.
  static Result<Frames> read(const ElfImage& image, bool also_by_section = false);

  /// In order of address; none lies over another.
  const std::vector<Frame>& all() const { return all_; }
  /// Index of the frame that `address` lies in; none: no frame has it.
  std::optional<std::size_t> find(std::uint64_t address) const;
  /// Bytes from the stack pointer to the end of the frame when `address` is about to be executed: 8 where a return
  /// address is on top, as at a function's beginning. None: the table goes by another register, or does not say.
  std::optional<std::int64_t> depth(std::uint64_t address) const;
  /// The same where the frame begins, for less: most begin alike.
  std::optional<std::int64_t> depth_at_begin(std::size_t f) const;
  /// rbp has the function's own frame when `address` is about to be executed: the end of the frame is found by it.
  bool has_frame_pointer(std::uint64_t address) const;
  /// How the caller's registers are found when `address` is about to be executed, for who unwinds. Null: no frame has
  /// it, that of a signal's handler among them.
  using Rules = std::unique_ptr<Dwarf_Frame, decltype(&free)>;
  Rules rules(std::uint64_t address) const;
  /// Where exceptions land in the frame. None: its language data cannot be read.
  std::optional<std::vector<std::uint64_t>> landing_pads(const Frame& frame) const;

 private:
  void make_index();

  struct End {
    void operator()(Dwarf_CFI* cfi) const { dwarf_cfi_end(cfi); }
  };
  const ElfImage* image_ = nullptr;
  std::vector<Frame> all_;
  std::vector<std::optional<std::int64_t>> first_depths_;  // by the number of shared rules
  std::vector<std::uint32_t> index_;  // by piece of code: the first frame that ends behind its beginning
  // A module without sections has its table by its program headers: libdw's to free. With sections, too.
  binary::ElfFile elf_;
  std::unique_ptr<Dwarf_CFI, End> cfi_;
};

}  // namespace karst::patch
