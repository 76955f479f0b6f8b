#include "choice/function_filter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/plain_name.h"

namespace karst::choice {
namespace {

using Patterns = std::vector<std::string>;

FunctionFilter filter(const Patterns& only, const Patterns& not_) { return FunctionFilter(only, not_); }

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

TEST(FunctionFilter, NamesAsTheyArePrintedFindTheirFunctions) {
  for (const char* name :
       {"Server::serve(int)", "main::{lambda(int)#1}::operator()(int) const", "std::vector<int>::push_back(int&&)",
        "foo(char*)", "Bits::operator[](unsigned long)", "Count::operator++()", "f(int) [clone .part.0]", "a::b(c**)",
        "(anonymous namespace)::Server<int>::serve(std::function<void (int)>)", "f(char const (&) [3])"}) {
    EXPECT_TRUE(filter({name}, {}).keeps(name)) << name;
    EXPECT_FALSE(filter({}, {name}).keeps(name)) << name;
    const std::string plain = plain_name(name);
    for (std::string shown = plain;;) {  // as in tables, down to its last part
      EXPECT_TRUE(filter({shown}, {}).keeps(name)) << name << " as " << shown;
      if (shown.find("::") == std::string::npos) break;
      shown.erase(0, shown.find("::") + 2);
    }
  }
  EXPECT_TRUE(filter({"operator()(int)"}, {}).keeps("main::{lambda(int)#1}::operator()(int) const"));
  EXPECT_TRUE(filter({"leveldb::f"}, {}).keeps("leveldb::(anonymous namespace)::f<int>(char)"));
  EXPECT_FALSE(filter({"veldb::f"}, {}).keeps("leveldb::(anonymous namespace)::f<int>(char)"));
  EXPECT_FALSE(filter({"foo(char*)"}, {}).keeps("foo(int*)"));
}

TEST(FunctionFilter, AnyCaseHoldsForTextsToo) {
  for (const char* pattern : {"(?i)serve(int)", "(?i)SERVER<a>::", "(?i)server::serve", "(?i)^server", "(?i)(INT"})
    EXPECT_TRUE(filter({pattern}, {}).keeps("Server<A>::Serve(int)")) << pattern;
  EXPECT_FALSE(filter({"serve(int)"}, {}).keeps("Server<A>::Serve(int)"));
}

TEST(FunctionFilter, WhatIsNoExpressionIsAText) {
  for (const char* text : {"(", "[", "*", "a**b(", "\\", "a)", "[z-a]", "?", "operator[]", "operator++", "serve("}) {
    const FunctionFilter found = filter({"fine", text}, {});
    EXPECT_TRUE(found.keeps(std::string("x") + text + "y")) << text;
    EXPECT_FALSE(found.keeps("x")) << text;
    EXPECT_FALSE(filter({}, {text}).keeps(text)) << text;
    EXPECT_NE(found.complaint().find(std::string("'") + text + "' is no regular expression: "), std::string::npos)
        << found.complaint();
  }
  EXPECT_EQ(filter({"f(int)", "^g$"}, {"("}).complaint(), "");
  const std::string complaint = filter({"leveldb::[z-a]x"}, {}).complaint();
  EXPECT_NE(complaint.find("at character 11"), std::string::npos) << complaint;
}

TEST(FunctionFilter, TakesTimeLinearInTheNameForPatternsThatBlowUpElsewhere) {
  auto nested = filter({"^(a+)+$", "(x|x|x)*y{20}$"}, {});
  EXPECT_FALSE(nested.keeps(std::string(1'000'000, 'a') + "b"));
  EXPECT_FALSE(nested.keeps(std::string(1'000'000, 'x')));
  // More memory than an expression may have, and names made to be split for long.
  EXPECT_FALSE(filter({"((((a{100}){100}){100}){100})"}, {}).keeps(std::string(1'000'000, 'a')));
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += "operator<::(";
  EXPECT_FALSE(filter({"::b"}, {}).keeps(many));
}

}  // namespace
}  // namespace karst::choice
