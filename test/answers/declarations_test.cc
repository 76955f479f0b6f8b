// What holds of each relation that is declared.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "answers/all.h"

namespace karst::answers {
namespace {

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
}  // namespace karst::answers
