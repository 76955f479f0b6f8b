// SPDX-License-Identifier: MIT
// What somebody probably meant who typed a word that nothing is called by: in every message in the same words.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace karst {

/// The one of `known` that `word` was probably meant to be; empty: none is near.
std::string closest(std::string_view word, const std::vector<std::string>& known);
/// "; did you mean 'X'?", or empty.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

/// Functions' names as people type them: whole, the last part, and the scopes that they lie in.
std::vector<std::string> function_words(const std::set<std::string>& names);

}  // namespace karst
