// SPDX-License-Identifier: MIT
// Probes that a program's authors put into it with <sys/sdt.h>: one NOP each, and a note in the file that says where it
// is, what it is called and where its values are at that moment.
//
// The format is SystemTap's (sourceware.org/systemtap/wiki/UserSpaceProbeImplementation), version 3. Values are written
// as an assembler's operands: `-4@%eax 8@-80(%rbx) 8@$5`; a size in bytes, negative if it is signed. Hostile input:
// runs in the sandbox (sandbox/sandbox.h).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "format/values.h"
#include "patch/elf_image.h"

namespace karst::patch {

struct ProbeNote {
  std::string provider;
  std::string name;
  std::uint64_t address = 0;    ///< of the NOP; ELF address
  std::uint64_t semaphore = 0;  ///< of 16 bits in data that the program looks at; 0: it has none
  std::string values;

  std::string full_name() const { return provider + ":" + name; }
};

/// In order of the file. What is damaged is left out.
std::vector<ProbeNote> probes_in(const ElfImage& image);

/// --probes PROVIDER:NAME[(VALUE,...)]: which probes, and what their values are.
struct ProbeChoice {
  /// How a value is shown. Of kUsual: a signed one as a number, an unsigned one of 8 bytes as an address.
  enum class Type : std::uint8_t { kUsual, kText, kSigned, kUnsigned, kHexadecimal, kTypeInfo };
  struct Value {
    std::string name;
    Type type = Type::kUsual;
  };
  std::string text;           ///< as it was given
  std::string full_name;      ///< a pattern, as of a shell: python:function__*
  std::vector<Value> values;  ///< as far as the user names them

  /// Error: what is wrong with it, and how it is written.
  static Result<ProbeChoice> parse(std::string_view text);
  bool matches(const ProbeNote& probe) const;
};

/// Where the probe's values are, and what they are (format/values.h).
struct ProbeValues {
  std::vector<format::ValueOp> ops;
  std::string description;
};
/// The names are the choice's, else those that are known for this probe, else arg1 and so on. A value whose place is
/// not understood is described as not there.
ProbeValues values_of(const ProbeNote& probe, const ProbeChoice& choice);

}  // namespace karst::patch
