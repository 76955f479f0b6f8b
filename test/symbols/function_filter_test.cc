#include "symbols/function_filter.h"

#include <gtest/gtest.h>

#include <string>

namespace karst::symbols {
namespace {

FunctionFilter filter(const std::vector<std::string>& only, const std::vector<std::string>& not_) {
  auto result = FunctionFilter::compile(only, not_);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return result.ok() ? std::move(*result) : FunctionFilter();
}

TEST(FunctionFilter, WithoutPatternsKeepsEverything) {
  EXPECT_TRUE(FunctionFilter().keeps("f(int)"));
  EXPECT_TRUE(FunctionFilter().keeps_all());
  EXPECT_TRUE(filter({}, {}).keeps(""));
  EXPECT_FALSE(filter({"f"}, {}).keeps_all());
  EXPECT_FALSE(filter({}, {"f"}).keeps_all());
}

TEST(FunctionFilter, SearchesAnywhereUnlessAnchored) {
  auto any = filter({"DBImpl::Write"}, {});
  EXPECT_TRUE(any.keeps("leveldb::DBImpl::Write(leveldb::WriteOptions const&, leveldb::WriteBatch*)"));
  EXPECT_FALSE(any.keeps("leveldb::DBImpl::Get()"));
  auto anchored = filter({"^main$"}, {});
  EXPECT_TRUE(anchored.keeps("main"));
  EXPECT_FALSE(anchored.keeps("main::{lambda()#1}::operator()() const"));
}

TEST(FunctionFilter, KeepsWhatOneOfOnlyMatchesAndNoneOfNot) {
  auto both = filter({"^a::", "^b::"}, {"::skip", "^b::inner::"});
  EXPECT_TRUE(both.keeps("a::f()"));
  EXPECT_TRUE(both.keeps("b::f()"));
  EXPECT_FALSE(both.keeps("c::f()"));
  EXPECT_FALSE(both.keeps("a::skip()"));
  EXPECT_FALSE(both.keeps("b::inner::f()"));
}

TEST(FunctionFilter, MatchesNamesThatAreNotTerminated) {
  std::string text = "abcdef";
  EXPECT_FALSE(filter({"d"}, {}).keeps(std::string_view(text).substr(0, 3)));
  EXPECT_TRUE(filter({"c$"}, {}).keeps(std::string_view(text).substr(0, 3)));
}

TEST(FunctionFilter, RefusesABadPatternAndSaysWhichAndWhy) {
  for (const char* bad : {"(", "[", "*", "a**b(", "a{2,1}", "\\", "(?<x", "a)", "[z-a]", "(?P<n>a)\\k<n>(?=b)"}) {
    for (bool only : {true, false}) {
      auto result = only ? FunctionFilter::compile({"fine", bad}, {}) : FunctionFilter::compile({}, {"fine", bad});
      ASSERT_FALSE(result.ok()) << bad;
      EXPECT_NE(result.error().message.find(bad), std::string::npos) << result.error().message;
      EXPECT_NE(result.error().message.find("bad regular expression"), std::string::npos);
    }
  }
  auto result = FunctionFilter::compile({"leveldb::[z-a]x"}, {});
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("at character 11"), std::string::npos) << result.error().message;
}

TEST(FunctionFilter, TakesTimeLinearInTheNameForPatternsThatBlowUpElsewhere) {
  auto nested = filter({"^(a+)+$", "(x|x|x)*y{20}$"}, {});
  EXPECT_FALSE(nested.keeps(std::string(1'000'000, 'a') + "b"));
  EXPECT_FALSE(nested.keeps(std::string(1'000'000, 'x')));
}

}  // namespace
}  // namespace karst::symbols
