// SPDX-License-Identifier: MIT
// Stacks of samples, by the tables of frames (.eh_frame) of the files whose code ran.
//
// A sample has registers and a copy of the top of the stack. The rules of the table find the caller's registers, as an
// unwinder of exceptions does; nothing is guessed where there is no rule. Sources: System V ABI for x86-64, 3.7; DWARF
// 5, 6.4.
#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kernel/address_space.h"
#include "sandbox/credentials.h"
#include "sandbox/sandbox.h"

namespace karst::kernel {

/// DWARF's numbers of registers; 16 is the instruction pointer here.
inline constexpr unsigned kRegisters = 17;
inline constexpr unsigned kStackPointer = 7;
inline constexpr unsigned kInstructionPointer = 16;
using Registers = std::array<std::uint64_t, kRegisters>;

struct RawSample {
  std::uint64_t ticks = 0;
  std::uint32_t tid = 0;
  std::uint32_t pid = 0;
  std::uint16_t cpu = 0;
  bool in_kernel = false;
  bool is_wait = false;  ///< as it left its CPU
  Registers registers{};
  std::vector<std::byte> stack;  ///< from the stack pointer on
  std::shared_ptr<const AddressSpace> space;
};

/// A function, or a piece of one with a frame of its own.
struct UnwoundFunction {
  static constexpr std::uint32_t kNoFile = 0xffffffffU;

  std::uint32_t file = kNoFile;  ///< place in the files; kNoFile: code of no file, with address 0
  std::uint64_t address = 0;     ///< in the file
  std::uint32_t size = 0;
  auto operator<=>(const UnwoundFunction&) const = default;
};

struct Unwound {
  std::vector<UnwoundFunction> functions;  ///< that occur
  struct Stack {
    std::vector<std::uint32_t> functions;  ///< places above; innermost first
    std::vector<std::uint64_t> addresses;  ///< where each frame stands, or goes on, in the process; innermost first
    bool cut = false;                      ///< what called the last one is not known
  };
  std::vector<Stack> stacks;  ///< one for each sample
};

/// Frames of a stack that are followed; what is above is cut off.
inline constexpr std::size_t kMostFrames = 256;

/// Works in a sandbox (sandbox/sandbox.h), with the rights of `as`. Error: what became of it.
Result<Unwound> unwind(std::span<const RawSample> samples, const std::vector<CodeFile>& files,
                       const std::optional<sandbox::Credentials>& as);

/// Stacks of one process, one after another: what is read of its files is kept.
class LiveUnwinder {
 public:
  /// `space` has the process's mappings, whose files are in `files`.
  static Result<LiveUnwinder> start(const std::shared_ptr<const AddressSpace>& space,
                                    const std::vector<CodeFile>& files, const std::optional<sandbox::Credentials>& as);
  /// Addresses as Unwound::Stack has them; empty if the last one's caller is not known. Error: there was no answer in
  /// time. A later one may have it, as files were read meanwhile.
  Result<std::vector<std::uint64_t>> frames(const Registers& registers, std::span<const std::byte> stack,
                                            std::chrono::milliseconds patience);

 private:
  explicit LiveUnwinder(sandbox::AskedSandbox sandbox) : sandbox_(std::move(sandbox)) {}
  sandbox::AskedSandbox sandbox_;
};

/// The same here, for tests, and for the sandbox.
Unwound unwind_here(std::span<const RawSample> samples, const std::vector<CodeFile>& files);

}  // namespace karst::kernel
