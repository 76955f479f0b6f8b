// What holds of each relation that is declared.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "test/answers/all_relations.h"

namespace karst::test {
namespace {

using namespace answers;

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Declarations, AreAllLookedAt) {
  const std::string looked_at = read(KARST_SOURCE_DIR "/test/answers/all_relations.h");
  const std::regex declaration("const Relation& ([a-z_]+)\\(\\);");
  std::size_t found = 0;
  for (const auto& header : std::filesystem::directory_iterator(KARST_SOURCE_DIR "/answers")) {
    if (header.path().extension() != ".h") continue;
    const std::string text = read(header.path());
    for (std::sregex_iterator at(text.begin(), text.end(), declaration), end; at != end; ++at, ++found)
      EXPECT_TRUE(looked_at.find("&" + (*at)[1].str() + "()") != std::string::npos)
          << header.path() << ": " << (*at)[1];
  }
  EXPECT_GT(found, 40U);
}

TEST(Declarations, NamesAreOnesOwn) {
  std::set<std::string> relations, rows;
  for (const Relation* relation : all_relations()) {
    EXPECT_TRUE(relations.insert(relation->name).second) << relation->name;
    EXPECT_TRUE(rows.insert(relation->one).second) << relation->one;
    std::set<std::string> keys, names;
    for (const Field& field : relation->fields) {
      EXPECT_TRUE(keys.insert(field.key).second) << relation->name << ": " << field.key;
      EXPECT_TRUE(names.insert(field.name).second) << relation->name << ": " << field.name;
      EXPECT_TRUE(field.type != Type::kThread || names.insert(field.key).second) << relation->name << ": " << field.key;
      EXPECT_EQ(field.key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string::npos) << field.key;
    }
  }
}

TEST(Declarations, SayWhatTheyAre) {
  for (const Relation* relation : all_relations()) {
    EXPECT_TRUE(relation->sentence.starts_with("A row for each ")) << relation->name;
    ASSERT_FALSE(relation->fields.empty()) << relation->name;
    EXPECT_NE(relation->fields.back().type, Type::kRows)
        << relation->name << ": the last field is people's elastic column";
    for (const Field& field : relation->fields) {
      EXPECT_GT(field.sentence.size(), 5U) << relation->name << ": " << field.key;
      EXPECT_NE(field.sentence.back(), '.') << relation->name << ": " << field.key;
    }
  }
}

}  // namespace
}  // namespace karst::test
