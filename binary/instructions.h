// SPDX-License-Identifier: MIT
// How large a function is, and whether it loops, by its machine code.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "sandbox/credentials.h"

namespace karst::binary {

struct CodeShape {
  /// NOPs (sleds, padding), clang's sleds and endbr64 are not counted: a plain build has about as many.
  std::uint32_t instructions = 0;
  bool loops = false;  ///< a direct jump goes back within the code; recursion is none
};

/// Disassembles `code`. None when something in it is no instruction.
std::optional<CodeShape> shape_of(std::span<const std::byte> code);

/// The code of an executable or library, read from its file. Movable; one thread at a time.
class CodeFile {
 public:
  /// Errors: not there, no ELF file.
  static Result<CodeFile> open(const std::string& path);
  CodeFile(CodeFile&&) noexcept;
  CodeFile& operator=(CodeFile&&) noexcept;
  ~CodeFile();

  /// The bytes at ELF addresses [begin, end); empty when the file does not have all of them as code.
  std::span<const std::byte> code(std::uint64_t begin, std::uint64_t end) const;

 private:
  struct Impl;
  explicit CodeFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// ELF addresses [begin, end).
struct CodeRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// The shapes of pieces of a module's code, by a sandbox (sandbox.h). None for one that is no code. Error: it cannot be
/// read.
Result<std::vector<std::optional<CodeShape>>> shapes_of(const std::string& path, std::span<const CodeRange> ranges,
                                                        const std::optional<sandbox::Credentials>& as);

}  // namespace karst::binary
