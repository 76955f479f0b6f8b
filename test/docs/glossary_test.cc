// docs/glossary.md against the code: each word is where the page says, and headers introduce no word that it lacks.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "test/docs/read_file.h"

namespace karst::test {
namespace {

namespace fs = std::filesystem;
const fs::path kRoot = KARST_SOURCE_DIR;

struct Row {
  std::string word, file, name;
};

std::vector<Row> rows() {
  std::vector<Row> rows;
  std::istringstream page(read_file(kRoot / "docs/glossary.md"));
  const std::regex row("\\| ([a-z][a-z ()]*) \\| .* \\| `([^`]+)` `([^`]+)` \\|");
  std::smatch match;
  for (std::string line; std::getline(page, line);) {
    if (std::regex_match(line, match, row)) {
      rows.push_back({match[1], match[2], match[3]});
    } else if (line.starts_with("| ") && !line.starts_with("| word |") && !line.starts_with("| --- |")) {
      ADD_FAILURE() << "not understood: " << line;
    }
  }
  return rows;
}

TEST(Glossary, NamesWhereEachWordIsDefined) {
  EXPECT_GE(rows().size(), 40U);
  for (const Row& row : rows()) {
    EXPECT_NE(read_file(kRoot / row.file).find(row.name), std::string::npos)
        << row.word << ": " << row.file << " has no " << row.name;
  }
}

TEST(Glossary, IsInOrderAndHasEachWordOnce) {
  std::string last;
  for (const Row& row : rows()) {
    EXPECT_LT(last, row.word);
    last = row.word;
  }
}

TEST(Glossary, HasTheWordsThatHeadersIntroduce) {
  std::set<std::string> words;
  for (const Row& row : rows()) words.insert(row.word);
  std::set<std::string> introduced;
  const auto collect = [&introduced](const std::string& text) {
    const std::regex emphasis("[ (]\\*([a-z]+)\\*[ ,.;:)]");
    for (std::sregex_iterator at(text.begin(), text.end(), emphasis), end; at != end; ++at) introduced.insert((*at)[1]);
  };
  for (const char* room : {"format", "reader", "symbols", "analysis", "kernel", "collect"}) {
    for (const auto& entry : fs::directory_iterator(kRoot / room)) {
      if (entry.path().extension() == ".h") collect(read_file(entry.path()));
    }
  }
  collect(read_file(kRoot / "docs/trace-format.md"));
  EXPECT_TRUE(introduced.contains("epoch") && introduced.contains("resolved")) << "the search finds nothing";
  for (const std::string& word : introduced) {
    const bool plural = word.ends_with("s") && words.contains(word.substr(0, word.size() - 1));
    EXPECT_TRUE(words.contains(word) || plural) << word << " is introduced, and docs/glossary.md does not have it";
  }
}

}  // namespace
}  // namespace karst::test
