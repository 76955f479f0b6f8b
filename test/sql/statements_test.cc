// Where statements end (sql/statements.cc).
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "sql/database.h"

namespace karst::sql {
namespace {

TEST(Statements, TheLastIsWithoutItsSemicolon) {
  EXPECT_EQ(last_statement("SELECT 1"), "SELECT 1");
  EXPECT_EQ(last_statement("SELECT 1;"), "SELECT 1");
  EXPECT_EQ(last_statement("SELECT 1;;  \n;"), "SELECT 1");
  EXPECT_EQ(last_statement("SELECT 1; SELECT 2"), "SELECT 2");
  EXPECT_EQ(last_statement("SELECT 1;\n\n  SELECT 2 ;"), "SELECT 2 ");
  EXPECT_EQ(last_statement(""), "");
  EXPECT_EQ(last_statement(";;"), "");
}

TEST(Statements, AreEndedByASemicolonThatIsNoText) {
  for (const char* ended : {";", "SELECT 1;", "SELECT 1 ; -- why\n", "SELECT 1; /* a */", "a;\nSELECT ';';"})
    EXPECT_TRUE(is_ended(ended)) << ended;
  for (const char* open : {"", " ", "SELECT 1", "SELECT 1 -- ;", "SELECT ';", "SELECT \";", "/* ;", "$$ ;", "a; b"})
    EXPECT_FALSE(is_ended(open)) << open;
}

TEST(Statements, SemicolonsInTextsNamesAndCommentsEndNone) {
  for (const char* sql :
       {"SELECT ';'", "SELECT 'it''s; so'", "SELECT \"a;b\" FROM t", "SELECT $$a;b$$", "SELECT $tag$ a; $$ b; $tag$",
        "SELECT 1 /* ; */ + 2", "SELECT /* a /* b; */ ; */ 1", "SELECT 1 -- ;\n+ 2", R"(SELECT e'it\'s; so')",
        "SELECT $1", "SELECT 'e\\'", "SELECT 1 / 2 - 3"}) {
    EXPECT_EQ(last_statement(sql), sql);
    EXPECT_EQ(last_statement(std::string("SELECT 0;") + sql), sql);
    EXPECT_EQ(last_statement(std::string(sql) + "; SELECT 0"), "SELECT 0");
  }
}

TEST(Statements, ACommentBehindIsNoStatement) {
  EXPECT_EQ(last_statement("SELECT 1; -- the end"), "SELECT 1");
  EXPECT_EQ(last_statement("SELECT 1; /* the end"), "SELECT 1");
  EXPECT_EQ(last_statement("SELECT 1 -- the end"), "SELECT 1 -- the end");
}

TEST(Statements, WhatHasNoEndIsOneStatement) {
  for (const char* sql : {"SELECT '; ", "SELECT \"; ", "SELECT $$; ", "SELECT $a$ ; $b$", "/* ; "})
    EXPECT_EQ(last_statement(sql), std::string_view(sql));
}

}  // namespace
}  // namespace karst::sql
