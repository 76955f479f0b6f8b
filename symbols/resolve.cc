// SPDX-License-Identifier: MIT
#include "symbols/resolve.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <unordered_map>

#include "format/trace.h"
#include "symbols/perf_map.h"
#include "symbols/static_locks.h"

namespace karst::symbols {
namespace {

/// Of one process; 32 bytes each.
constexpr std::size_t kMaxInlined = std::size_t{1} << 23;
/// Names and files of one process.
constexpr std::size_t kMaxText = std::size_t{1} << 30;
/// Some systems give all files that they install a time near the beginning of 1970.
constexpr std::uint64_t kEpoch = std::uint64_t{86'400} * 1'000'000'000;

std::string place_name(const std::string& module, std::uint64_t address) {
  char digits[16];
  auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), address, 16);
  (void)error;  // 16 digits hold every value
  return module + "+0x" + std::string(digits, end);
}

class ModuleResolver {
 public:
  ModuleResolver(const reader::Module& module, binary::ModuleFile file, const ResolveOptions& options,
                 reader::InlinedTable& inlined, ResolveResult& result)
      : module_(module), file_(std::move(file)), options_(options), inlined_(inlined), result_(result) {}

  void run(const std::vector<reader::Function*>& functions) {
    std::string file_name = std::filesystem::path(module_.path).filename().string();
    if (file_name.empty()) file_name = "module#" + std::to_string(module_.index);
    const auto loaded = options_.table(file_);
    const SymbolTable* table = loaded ? loaded->get() : nullptr;
    if (!loaded)
      report(loaded.error().message + "; its functions are shown as " + file_name + "+0x...", functions.size());
    std::size_t nameless = 0;
    std::size_t fileless = 0;
    std::size_t too_long = 0;
    for (reader::Function* function : functions) {
      std::uint64_t address = function->address - module_.bias;
      auto symbol = table != nullptr ? table->lookup(address) : std::nullopt;
      if (symbol && !fits(*symbol)) {
        symbol.reset();
        ++too_long;
      }
      if (symbol) {
        function->name = symbol->name;
        function->link_name = symbol->link_name;
        function->file = mapped(symbol->file);
        function->line = symbol->line;
        if (!function->filtered) add_inlined(*table, *symbol, function->id);
        ++result_.named;
        if (function->file.empty()) ++fileless;
      } else {
        function->name = place_name(file_name, address);
        ++result_.unnamed;
        ++nameless;
      }
    }
    if (table == nullptr) return;
    if (too_long != 0)
      report("names of all functions take more than " + std::to_string(kMaxText) + " bytes; further ones of " +
                 module_.path + " are shown as " + file_name + "+0x...",
             too_long);
    nameless -= too_long;
    report_missing(*table, file_name, functions.size(), nameless, fileless);
  }

 private:
  /// One line a module: whatever is missing, the same files make up for it.
  void report_missing(const SymbolTable& table, const std::string& file_name, std::size_t functions,
                      std::size_t nameless, std::size_t fileless) {
    const std::string& apart = table.debug_missing();
    if (nameless != 0) {
      report("functions of " + module_.path + " without a symbol are shown as " + file_name + "+0x...; " +
                 (apart.empty() ? "keep the symbol table (do not strip it), or install its debug file" : apart),
             nameless);
    } else if (fileless != 0 && !table.has_debug_info()) {
      report("functions of " + module_.path + " have no file and line, because it has no debug information; " +
                 (apart.empty() ? "compile it with -g" : "compile it with -g, or, if that was done: " + apart),
             fileless);
    }
    if (!table.debug_incomplete().empty()) {
      report("debug information of " + module_.path + " is incomplete: " + table.debug_incomplete(), functions);
    }
    if (table.inlined_cut()) {
      report("more was inlined into functions of " + module_.path + " than is kept; tree --inlined does not show all",
             1);
    }
  }

  /// A hostile arena can have one long name a million times.
  bool fits(const Symbol& symbol) {
    const std::size_t size = symbol.name.size() + symbol.link_name.size() + symbol.file.size();
    if (size > kMaxText - result_.text) return false;
    result_.text += size;
    return true;
  }

  void report(std::string message, std::size_t count) { result_.problems.push_back({std::move(message), count}); }

  void add_inlined(const SymbolTable& table, const Symbol& symbol, std::uint32_t id) {
    std::uint32_t depth = 0;  // of the one before; in a damaged cache depths may leap
    for (std::size_t i = 0; i < symbol.inlined_count && inlined_.size() < kMaxInlined; ++i) {
      const InlinedSymbol from = table.inlined_at(symbol.inlined_first + i);
      depth = std::min(from.depth, depth + 1);
      inlined_.add({id, depth, from.copies, from.line, from.call_line, number(from.name), number(mapped(from.file)),
                    number(mapped(from.call_file))});
    }
  }

  /// Of texts that live as long as the table or `mapped_`.
  std::uint32_t number(std::string_view text) {
    auto [it, fresh] = numbers_.try_emplace(text.data());
    if (fresh) it->second = inlined_.text_number(text);
    return it->second;
  }

  /// Many functions share a file: map it once.
  const std::string& mapped(std::string_view file) {
    auto [it, fresh] = mapped_.try_emplace(file.data());
    if (fresh) it->second = map_path(file, options_.map_paths);
    return it->second;
  }

  const reader::Module& module_;
  const binary::ModuleFile file_;
  const ResolveOptions& options_;
  reader::InlinedTable& inlined_;
  ResolveResult& result_;
  std::unordered_map<const char*, std::uint32_t> numbers_;
  std::unordered_map<const char*, std::string> mapped_;  // by place in the table's heap, where a file is once
};

void resolve_module(reader::Process& process, reader::Module& module, binary::ModuleFile file,
                    const ResolveOptions& options, const std::vector<reader::Function*>& functions,
                    ResolveResult& result) {
  // Sources that have moved were copied or checked out, often after the module was built.
  if (const std::uint64_t written = options.map_paths.empty() ? file.written_ns() : 0; written > kEpoch)
    module.built_by_ns = module.built_by_ns == 0 ? written : std::min(module.built_by_ns, written);
  ModuleResolver(module, std::move(file), options, process.inlined, result).run(functions);
}

void name_generated(const reader::Process& process, const std::vector<reader::Function*>& functions,
                    const ResolveOptions& options, ResolveResult& result) {
  std::vector<std::uint64_t> addresses;
  addresses.reserve(functions.size());
  for (const reader::Function* function : functions) addresses.push_back(function->address);
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  GeneratedNames found = generated_names(process, addresses, options.as);
  const std::string& why = found.problem;
  std::size_t nameless = 0;
  for (reader::Function* function : functions) {
    const auto at = std::lower_bound(addresses.begin(), addresses.end(), function->address) - addresses.begin();
    const GeneratedNames::Name& name = found.names[static_cast<std::size_t>(at)];
    if (name.link_name.empty()) {
      function->name = place_name(format::kGeneratedCode, function->address);
      ++nameless;
    } else {
      function->name = name.name;
      function->link_name = name.link_name;
    }
  }
  result.named += functions.size() - nameless;
  result.unnamed += nameless;
  if (nameless == 0) return;
  std::string message = "code that process " + std::to_string(process.pid) + " made while it ran is shown as " +
                        format::kGeneratedCode + "+0x...; ";
  message += why.empty() ? perf_map_of(process.pid).string() + " does not have it"
                         : why + " (compilers at run time write it for perf, some when they are asked to)";
  result.problems.push_back({std::move(message), nameless});
}

}  // namespace

ResolveResult resolve(reader::Process& process, const ResolveOptions& options) {
  ResolveResult result;
  std::vector<std::vector<reader::Function*>> by_module(process.modules.size());
  for (reader::Function& function : process.functions) {
    // Id 0 is the unused first element; a module that is not in the table was reported by the reader.
    if (function.id == 0 || function.module >= by_module.size() || !function.link_name.empty()) continue;
    by_module[function.module].push_back(&function);
  }
  binary::LiveFiles files(process, options.as);
  for (std::size_t i = 0; i < by_module.size(); ++i) {
    if (by_module[i].empty()) continue;
    if (process.modules[i].path == format::kGeneratedCode)
      name_generated(process, by_module[i], options, result);
    else
      resolve_module(process, process.modules[i], files.of(process.modules[i]), options, by_module[i], result);
  }
  name_static_locks(process, options);
  process.inlined.settle();
  return result;
}

}  // namespace karst::symbols
