#include "choice/function_lists.h"

#include <gtest/gtest.h>

namespace karst::choice {
namespace {

reader::Function function(std::string name, std::string file = {}) {
  reader::Function f;
  f.id = 1;
  f.name = std::move(name);
  f.file = std::move(file);
  return f;
}

bool matches(const std::string& glob, const reader::Function& f) {
  const auto set = GlobSet::compile({glob});
  EXPECT_TRUE(set.ok()) << glob;
  return set && set->matches(f);
}

TEST(GlobSet, MatchesWholeNamesWithAndWithoutParameters) {
  const auto f = function("app::Server<int (*)(char)>::serve(Request const&, int) const");
  EXPECT_TRUE(matches("app::*", f));
  EXPECT_TRUE(matches("app::Server<int (\\*)(char)>::serve", f));
  EXPECT_TRUE(matches("app::Server<int (\\*)(char)>::serve(Request const&, int) const", f));
  EXPECT_TRUE(matches("*serve(Request*", f));
  EXPECT_FALSE(matches("serve", f));
  EXPECT_FALSE(matches("app::Server", f));
  EXPECT_TRUE(matches("main", function("main")));
  EXPECT_FALSE(matches("mai", function("main")));
  EXPECT_TRUE(matches("X::operator()", function("X::operator()(int)")));
  EXPECT_FALSE(matches("X::operator", function("X::operator()(int)")));
  EXPECT_TRUE(matches("main::{lambda()#1}::operator()", function("main::{lambda()#1}::operator()() const")));
  EXPECT_TRUE(matches("(anonymous namespace)::f", function("(anonymous namespace)::f(int)")));
}

TEST(GlobSet, MatchesLinkersNames) {
  auto f = function("app::serve(int)");
  f.link_name = "_ZN3app5serveEi";
  EXPECT_TRUE(matches("_ZN3app5serveEi", f));
  EXPECT_TRUE(matches("_ZN3app*", f));
  EXPECT_FALSE(matches("_ZN3app5serve", f));
  EXPECT_TRUE(matches("app::serve", f));
}

TEST(GlobSet, KnowsWildcardsSetsAndEscapes) {
  EXPECT_TRUE(matches("f?o", function("foo")));
  EXPECT_FALSE(matches("f?o", function("fo")));
  EXPECT_TRUE(matches("f[a-o]o", function("foo")));
  EXPECT_FALSE(matches("f[!a-o]o", function("foo")));
  EXPECT_TRUE(matches("f[^x]o", function("foo")));
  EXPECT_TRUE(matches("f[]o]o", function("f]o")));
  EXPECT_TRUE(matches("a[x-]b", function("a-b")));
  EXPECT_TRUE(matches("operator\\[\\]", function("operator[](int)")));
  EXPECT_TRUE(matches("operator\\/", function("operator/(A, B)")));
  EXPECT_TRUE(matches("a.c", function("a.c")));
  EXPECT_FALSE(matches("a.c", function("abc")));
  EXPECT_TRUE(matches("\xc3\xa4*", function("\xc3\xa4\xc3\xb6(int)")));
  EXPECT_TRUE(matches("\\*", function("*")));
}

TEST(GlobSet, MatchesPathsFromAnyDirectoryOn) {
  const auto f = function("f()", "/home/u/app/src/net/a.cc");
  for (const char* yes :
       {"src/net/a.cc", "net/*", "*/a.cc", "/home/*", "app/src/", "/home/u/app/src/net/a.cc", "n?t/*.cc"})
    EXPECT_TRUE(matches(yes, f)) << yes;
  for (const char* no : {"rc/net/a.cc", "src/net", "/src/*", "net/b*", "a.cc"}) EXPECT_FALSE(matches(no, f)) << no;
  EXPECT_FALSE(matches("*/*", function("a/b")));  // the file is not known
}

TEST(GlobSet, HandlesThousandsTogether) {
  std::vector<std::string> globs;
  for (int i = 0; i < 20000; ++i) globs.push_back("name" + std::to_string(i) + "*");
  const auto set = GlobSet::compile(globs);
  ASSERT_TRUE(set.ok());
  EXPECT_TRUE(set->matches(function("name19999_x")));
  EXPECT_FALSE(set->matches(function("x_name1")));
}

TEST(GlobSet, RefusesWhatIsNoGlob) {
  const auto set = GlobSet::compile({"ok", "a[b"});
  ASSERT_FALSE(set.ok());
  EXPECT_NE(set.error().message.find("a[b"), std::string::npos);
}

TEST(GlobSet, NoGlobMatchesNothing) {
  EXPECT_TRUE(GlobSet().empty());
  EXPECT_FALSE(GlobSet().matches(function("x", "/x/y")));
}

}  // namespace
}  // namespace karst::choice
