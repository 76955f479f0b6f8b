// SPDX-License-Identifier: MIT
#include "import/xray_names.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "binary/elf_file.h"
#include "format/sled_note.h"
#include "import/text.h"
#include "sandbox/sandbox.h"
#include "symbols/symbol_table.h"

namespace karst::importing {
namespace {

/// ELF addresses of functions, by their numbers less 1. Error: the file has no such table.
Result<std::vector<std::uint64_t>> functions_with_sleds(const std::filesystem::path& program) {
  const int opened = sandbox::open_regular(program.c_str());
  if (opened < 0) return Error{std::strerror(-opened)};
  const binary::ElfFile file{Descriptor(opened)};
  if (!file.is_x86_64()) return Error{"it is no program of x86-64"};
  std::vector<std::uint64_t> functions;
  for (const binary::ElfSection& section : file.sections()) {
    if (section.name != "xray_instr_map") continue;
    const auto bytes = file.contents(section);
    for (std::size_t at = 0; at + sizeof(format::XRayRecord) <= bytes.size(); at += sizeof(format::XRayRecord)) {
      format::XRayRecord record{};
      std::memcpy(&record, bytes.data() + at, sizeof record);
      if (record.version < format::kXRayVersion) return Error{"its table of sleds is of an older clang"};
      const std::uint64_t function = section.header.sh_addr + at + offsetof(format::XRayRecord, function) +
                                     static_cast<std::uint64_t>(record.function);
      if (functions.empty() || functions.back() != function) functions.push_back(function);
    }
    break;  // a damaged file may have any number of sections of this name
  }
  if (functions.empty()) return Error{"it has no table of XRay's sleds"};
  return functions;
}

}  // namespace

std::filesystem::path program_beside(const std::filesystem::path& log) {
  constexpr std::string_view kBegin = "xray-log.";
  constexpr std::size_t kEnd = 7;  // ".abcdef"
  const std::string name = log.filename().string();
  if (!name.starts_with(kBegin) || name.size() <= kBegin.size() + kEnd || name[name.size() - kEnd] != '.') return {};
  return log.parent_path() / name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd);
}

bool has_sleds(const ForeignTrace& trace) {
  return std::any_of(trace.processes.begin(), trace.processes.end(), [](const Process& process) {
    return std::any_of(process.functions.begin(), process.functions.end(),
                       [](const Function& f) { return f.sled != 0; });
  });
}

Status name_by_program(ForeignTrace& trace, const std::filesystem::path& program) {
  const auto sleds = functions_with_sleds(program);
  if (!sleds) return sleds.error();
  const auto symbols = symbols::SymbolTable::load(program, {});
  if (!symbols) return symbols.error();
  std::uint64_t unnamed = 0;
  for (Process& process : trace.processes) {
    process.name = program.filename().string();
    for (Function& function : process.functions) {
      if (function.sled == 0) continue;
      const auto symbol = function.sled > sleds->size() ? std::nullopt : symbols->lookup((*sleds)[function.sled - 1]);
      if (!symbol || symbol->name.empty()) {
        ++unnamed;
        continue;
      }
      function.name = cut(symbol->name, kMostName);
      function.file = cut(symbol->file, kMostName);
      function.line = symbol->line;
    }
  }
  trace.remarks.push_back("its functions have the names of " + program.string() +
                          "; whether it wrote the log, a log does not say");
  if (unnamed != 0)
    trace.remarks.push_back(std::to_string(unnamed) + " of its functions have no name there: was it built anew?");
  return Unit{};
}

}  // namespace karst::importing
