// SPDX-License-Identifier: MIT
#include "base/suggestion.h"

#include <algorithm>
#include <numeric>

#include "base/plain_name.h"
#include "base/text.h"

namespace karst {
namespace {

/// Insertions, deletions, replacements and swapped neighbours that make one word of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  std::iota(rows[0].begin(), rows[0].end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    rows[i][0] = i;
    for (std::size_t k = 1; k <= b.size(); ++k) {
      rows[i][k] =
          std::min({rows[i - 1][k] + 1, rows[i][k - 1] + 1, rows[i - 1][k - 1] + (a[i - 1] == b[k - 1] ? 0 : 1)});
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
        rows[i][k] = std::min(rows[i][k], rows[i - 2][k - 2] + 1);
    }
  }
  return rows[a.size()][b.size()];
}

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return small;
}

}  // namespace

std::string closest(std::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t kLongest = 64;
  if (word.size() > kLongest) return "";
  const std::string typed = in_small_letters(word);
  std::string best;
  // Options are short and many: one of three letters is near to most.
  const std::size_t dashes = std::min(word.find_first_not_of('-'), word.size());
  const std::size_t letters = word.size() - dashes;
  std::size_t least = std::min<std::size_t>(dashes != 0 ? std::max<std::size_t>(letters / 3, 1) : letters / 3 + 1, 4);
  for (const std::string& name : known) {
    if (name.size() > kLongest) continue;
    const std::string other = in_small_letters(name);
    const bool begins = word.size() > 2 && other.starts_with(typed);
    // No fewer letters differ than one name is longer by.
    if (!begins && std::max(name.size(), word.size()) - std::min(name.size(), word.size()) > least) continue;
    const std::size_t far = begins ? 1 : distance(typed, other);
    if (far > least || (far == least && !best.empty())) continue;
    best = name;
    least = far;
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::string meant = closest(word, known);
  return meant.empty() ? meant : "; did you mean '" + meant + "'?";
}

std::vector<std::string> function_words(const std::set<std::string>& names) {
  std::set<std::string> words;
  for (const std::string& name : names) {
    if (name.empty()) continue;
    const std::string plain = printable(plain_name(name));
    words.insert(plain);
    for (std::size_t at = 0, end = 0; end != std::string::npos; at = end + 2) {
      end = plain.find("::", at);
      words.insert(plain.substr(at, end - at));
    }
  }
  return {words.begin(), words.end()};
}

}  // namespace karst
