// SPDX-License-Identifier: MIT
// Gathers what is wrong with a file: repeated trouble of one kind becomes one line with a count, so
// that a badly damaged file neither floods the user nor the memory.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reader/model.h"

namespace karst::reader {

class ProblemList {
 public:
  /// Adds one problem of a kind. `make` gives the message; only the first of a kind is asked.
  template <typename Make>
  void add(std::string_view kind, Make make) {
    const auto [at, fresh] = kinds_.try_emplace(std::string(kind), problems_.size());
    if (fresh) {
      problems_.push_back({make(), 1});
    } else {
      ++problems_[at->second].count;
    }
  }
  /// Adds a problem with a place of its own; after the first hundred they are only counted.
  template <typename Make>
  void add_place(Make make) {
    if (++places_ <= 100) {
      problems_.push_back({make(), 1});
    } else {
      add("more", [] { return std::string("further damaged places"); });
    }
  }
  std::vector<Problem> take() { return std::move(problems_); }

 private:
  std::map<std::string, std::size_t> kinds_;
  std::size_t places_ = 0;
  std::vector<Problem> problems_;
};

}  // namespace karst::reader
