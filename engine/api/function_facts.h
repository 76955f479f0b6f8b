// SPDX-License-Identifier: MIT
// Functions of api/trace: those that occur, by columns, and those that samples saw.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/program_facts.h"
#include "answers/relation.h"
#include "engine/index/index.h"

namespace karst::engine {

/// The texts of a list that are used, in the order of their first use.
struct UsedTexts {
  explicit UsedTexts(const std::vector<std::string>& texts) : all(texts), place(texts.size(), -1) {}
  std::int64_t of(std::int64_t number) {
    if (number < 0) return -1;
    std::int64_t& at = place[static_cast<std::size_t>(number)];
    if (at < 0) {
      at = static_cast<std::int64_t>(used.size());
      used.push_back(all[static_cast<std::size_t>(number)]);
    }
    return at;
  }
  const std::vector<std::string>& all;
  std::vector<std::int64_t> place;  // by number in `all`, -1: not used
  std::vector<std::string_view> used;
};

/// Functions that occur, with what they are of: a program may have a thousand times as many.
struct FunctionFacts {
  explicit FunctionFacts(const TraceIndex& index) : all(index.functions()), modules(all.modules()), files(all.files()) {
    for (std::uint32_t i = 0; i < all.functions().size(); ++i) {
      const FunctionInfo& of = all.functions()[i];
      if (!of.occurs) continue;
      shown.push_back(i);
      module.push_back(modules.of(of.module));
      file.push_back(files.of(of.file));
    }
    for (const reader::SourceFile& source : index.trace().sources()) sources.push_back(source.path);
    std::sort(sources.begin(), sources.end());
    find_colors(index);
  }
  /// The colour that the program gave a zone.
  void find_colors(const TraceIndex& index) {
    for (std::uint32_t process = 0; process < index.trace().processes().size(); ++process) {
      const std::vector<reader::Function>& known = index.trace().processes()[process].functions;
      const auto& numbers = all.of_process(process);
      for (std::size_t id = 0; id < known.size() && id < numbers.size(); ++id)
        if (const auto color = analysis::color_of(known[id]);
            color && all.has(process, static_cast<std::uint32_t>(id)) && all.functions()[numbers[id]].occurs)
          colors[numbers[id]] = *color;
    }
  }
  bool has_source(std::string_view path) const { return std::binary_search(sources.begin(), sources.end(), path); }

  const FunctionList& all;
  UsedTexts modules, files;
  std::vector<std::uint32_t> shown;               ///< numbers
  std::vector<std::int64_t> module, file;         ///< of these: places in what is used of the lists
  std::vector<std::string_view> sources;          ///< in order
  std::map<std::uint32_t, std::uint32_t> colors;  ///< by number
};

/// A row is a FunctionFacts.
const answers::Relation& function_facts();
/// A row is a reader::SampleLog.
const answers::Relation& sample_facts();

}  // namespace karst::engine
