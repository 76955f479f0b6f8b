// SPDX-License-Identifier: MIT
#include "symbols/symbol_table.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>

#include "binary/elf_module.h"
#include "symbols/demangle.h"
#include "symbols/dwarf_functions.h"
#include "symbols/symbol_image.h"

namespace karst::symbols {
namespace {

/// Merges the two sources of functions: which name for which addresses, defined where.
class Merge {
 public:
  Merge(const binary::ElfModule& module, ImageBuilder& builder)
      : builder_(builder), symbols_(module.functions()), dwarf_(module, builder) {}

  void run() {
    add_symbols();
    add_dwarf_only();
    flatten();
  }

  const DwarfFunctions& dwarf() const { return dwarf_; }

  /// ImageFlag bits.
  std::uint32_t flags() const {
    return (dwarf_.present() ? std::uint32_t{kImageHasDebugInfo} : 0U) |
           (dwarf_.inlined_cut() ? std::uint32_t{kImageInlinedCut} : 0U);
  }

 private:
  /// A name for an address, and what DWARF says about the function there.
  struct Choice {
    std::size_t symbol = 0;
    SourcePlace place;
    const DwarfFunction* function = nullptr;  ///< null: nothing
  };

  void add(binary::AddressRange range, std::string_view link_name, SourcePlace place, const DwarfFunction* function) {
    std::string terminated(link_name);
    std::string name = demangle(terminated.c_str(), function != nullptr ? function->language : Language::kOther);
    ImageRow row{};
    row.begin = range.begin;
    row.end = range.end;
    row.link_name = builder_.add_text(link_name);
    row.name = name == link_name ? row.link_name : builder_.add_text(name);
    row.file = place.file;
    row.line = place.line;
    if (function != nullptr) {
      row.inlined_first = function->inlined_first;
      row.inlined_count = function->inlined_count;
    }
    overlapping_.push_back(row);
  }

  void add_symbols() {
    for (std::size_t i = 0; i < symbols_.size();) {
      std::size_t group_end = i;
      binary::AddressRange range = symbols_[i].range;
      for (; group_end < symbols_.size() && symbols_[group_end].range.begin == range.begin; ++group_end) {
        range.end = std::max(range.end, symbols_[group_end].range.end);
      }
      const Choice choice = choose(i, group_end);
      add(range, symbols_[choice.symbol].name, choice.place, choice.function);
      i = group_end;
    }
  }

  /// Of several names for one address, the one that DWARF has too; else the first: sorted by rank, length, text.
  Choice choose(std::size_t begin, std::size_t end) {
    std::uint64_t address = symbols_[begin].range.begin;
    auto [first, last] = dwarf_.at(address);
    if (first == last) return {begin, dwarf_.present() ? dwarf_.line_at(address) : SourcePlace{}, nullptr};
    if (end - begin == 1 && last - first == 1) return chosen(begin, first);
    std::unordered_map<std::string_view, std::size_t> names;  // thousands of each, where the linker folds functions
    for (std::size_t symbol = begin; symbol < end; ++symbol) names.try_emplace(symbols_[symbol].name, symbol);
    std::size_t best = end;
    std::size_t best_function = first;
    for (std::size_t i = first; i < last; ++i) {
      auto it = names.find(DwarfFunctions::link_name(dwarf_.functions()[i]));
      if (it == names.end() || it->second >= best) continue;
      best = it->second;
      best_function = i;
    }
    return best != end ? chosen(best, best_function) : chosen(begin, first);
  }

  Choice chosen(std::size_t symbol, std::size_t function) {
    const DwarfFunction& of = dwarf_.functions()[function];
    return {symbol, place_of(of), &of};
  }

  SourcePlace place_of(const DwarfFunction& function) {
    return function.place.file != 0 ? function.place : dwarf_.line_at(function.range.begin);
  }

  /// Functions without a symbol: the symbol table was stripped, its debug information not.
  void add_dwarf_only() {
    std::size_t symbol = 0;
    std::size_t rows = overlapping_.size();
    std::uint64_t covered_to = 0;
    std::uint64_t last_begin = ~std::uint64_t{0};
    for (const DwarfFunction& function : dwarf_.functions()) {
      for (; symbol < rows && overlapping_[symbol].begin <= function.range.begin; ++symbol) {
        covered_to = std::max(covered_to, overlapping_[symbol].end);
      }
      if (function.range.begin < covered_to || function.range.begin == last_begin) continue;
      std::string_view name = DwarfFunctions::link_name(function);
      if (name.empty()) continue;
      last_begin = function.range.begin;
      add(function.range, name, place_of(function), &function);
    }
    std::stable_sort(overlapping_.begin(), overlapping_.end(),
                     [](const ImageRow& a, const ImageRow& b) { return a.begin < b.begin; });
  }

  /// Makes rows disjoint: of overlapping functions the one that begins last has the address, as it is the nearest.
  void flatten() {
    std::vector<ImageRow> open;  // rows that reach beyond `at`, the nearest last
    std::uint64_t at = 0;
    auto emit = [&](std::uint64_t to) {
      while (!open.empty() && at < to) {
        if (open.back().end <= at) {
          open.pop_back();
          continue;
        }
        ImageRow row = open.back();
        row.begin = at;
        row.end = std::min(row.end, to);
        at = row.end;
        builder_.add_row(row);
      }
      at = std::max(at, to);
    };
    for (const ImageRow& row : overlapping_) {
      emit(row.begin);
      at = row.begin;
      open.push_back(row);
    }
    emit(~std::uint64_t{0});
  }

  ImageBuilder& builder_;
  std::vector<binary::ElfFunction> symbols_;
  DwarfFunctions dwarf_;
  std::vector<ImageRow> overlapping_;
};

/// What is missing of debug information that is there; empty for nothing.
std::string incomplete(const std::filesystem::path& path, const DwarfFunctions& dwarf,
                       const binary::DebugFiles& files) {
  if (!files.missing_common().empty()) {
    return "the file that dwz took common parts to, " + files.missing_common() +
           ", was not found: install the same version of the package with the debug files, or say where it is with "
           "--debug-dir";
  }
  if (dwarf.split_missing() == 0) return {};
  std::string text = std::to_string(dwarf.split_missing()) + " of " + std::to_string(dwarf.split_units()) +
                     " units have theirs in .dwo files that are not there (the first: " + dwarf.first_split_missing() +
                     ")";
  std::error_code error;
  const std::filesystem::path package = path.string() + ".dwp";
  if (std::filesystem::exists(package, error)) {
    text += "; " + package.string() + " is there, but elfutils 0.188 does not read packages of them";
  }
  return text + "; keep the .dwo files where the compiler put them, or compile without -gsplit-dwarf";
}

ImageHeader header_of(const std::byte* image) {
  ImageHeader header;
  std::memcpy(&header, image, sizeof header);
  return header;
}

}  // namespace

Result<SymbolTable> SymbolTable::load(const std::filesystem::path& path, std::string_view build_id,
                                      const binary::DebugSearch& search) {
  return load(binary::ModuleFile(path, std::string(build_id)), search);
}

Result<SymbolTable> SymbolTable::load(const binary::ModuleFile& file, const binary::DebugSearch& search) {
  const std::filesystem::path& path = file.path;
  auto module = binary::ElfModule::open(file, search);
  if (!module) return module.error();
  ImageBuilder builder;
  Merge merge(*module, builder);
  merge.run();
  auto image = builder.finish(module->build_id(), merge.flags());
  if (!image) return Error{"cannot read symbols of " + path.string() + ": " + image.error().message};
  auto table = from_image(std::move(image->bytes), image->size);
  if (!table) return table;
  const binary::DebugFiles& files = module->debug_files();
  if (!merge.dwarf().present() && (files.separated() || search.servers != nullptr)) {
    table->debug_missing_ = files.how_to_get_it();
  }
  table->debug_incomplete_ = incomplete(path, merge.dwarf(), files);
  return table;
}

Result<SymbolTable> SymbolTable::from_image(std::unique_ptr<std::byte[]> image, std::size_t size) {
  auto header = check_image(image.get(), size);
  if (!header) return header.error();
  return SymbolTable(std::move(image), size, static_cast<std::size_t>(header->row_count), header->inlined_count);
}

Result<SymbolTable> SymbolTable::from_image(std::unique_ptr<std::byte[]> image, std::size_t size,
                                            std::string debug_missing, std::string debug_incomplete) {
  auto table = from_image(std::move(image), size);
  if (!table) return table;
  table->debug_missing_ = std::move(debug_missing);
  table->debug_incomplete_ = std::move(debug_incomplete);
  return table;
}

Symbol SymbolTable::at(std::size_t i) const {
  ImageRow row;
  std::memcpy(&row, image_.get() + sizeof(ImageHeader) + i * sizeof row, sizeof row);
  return {row.begin,         row.end,  heap() + row.name, heap() + row.link_name,
          heap() + row.file, row.line, row.inlined_first, row.inlined_count};
}

const char* SymbolTable::heap() const {
  return reinterpret_cast<const char*>(image_.get()) + sizeof(ImageHeader) + rows_ * sizeof(ImageRow) +
         inlined_ * sizeof(ImageInlined);
}

InlinedSymbol SymbolTable::inlined_at(std::size_t i) const {
  ImageInlined inlined;
  std::memcpy(&inlined, image_.get() + sizeof(ImageHeader) + rows_ * sizeof(ImageRow) + i * sizeof inlined,
              sizeof inlined);
  return {heap() + inlined.name, heap() + inlined.file, heap() + inlined.call_file, inlined.line, inlined.call_line,
          inlined.copies,        inlined.depth};
}

std::optional<Symbol> SymbolTable::lookup(std::uint64_t elf_address) const {
  auto begin_of = [&](std::size_t i) {
    std::uint64_t begin = 0;
    std::memcpy(&begin, image_.get() + sizeof(ImageHeader) + i * sizeof(ImageRow), sizeof begin);
    return begin;
  };
  std::size_t low = 0;  // rows before it begin at or before the address
  for (std::size_t high = rows_; low < high;) {
    std::size_t middle = low + (high - low) / 2;
    if (begin_of(middle) <= elf_address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return std::nullopt;
  Symbol symbol = at(low - 1);
  if (elf_address >= symbol.end) return std::nullopt;
  return symbol;
}

bool SymbolTable::has_debug_info() const { return (header_of(image_.get()).flags & kImageHasDebugInfo) != 0; }

bool SymbolTable::inlined_cut() const { return (header_of(image_.get()).flags & kImageInlinedCut) != 0; }

std::string_view SymbolTable::build_id() const {
  return {reinterpret_cast<const char*>(image_.get()) + offsetof(ImageHeader, build_id),
          header_of(image_.get()).build_id_size};
}

}  // namespace karst::symbols
