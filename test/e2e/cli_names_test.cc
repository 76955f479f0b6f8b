// The same names as page/test/unit has for page/src/model/names.ts.
#include <gtest/gtest.h>

#include "cli/text/names.h"

namespace karst::cli {
namespace {

TEST(Names, LoseParametersAndTemplateArguments) {
  EXPECT_EQ(plain_name("leveldb::DBImpl::MakeRoomForWrite(bool)"), "leveldb::DBImpl::MakeRoomForWrite");
  EXPECT_EQ(plain_name("main"), "main");
  EXPECT_EQ(plain_name("app.Shop.get.<locals>.<lambda>"), "app.Shop.get.<locals>.<lambda>");
  EXPECT_EQ(plain_name("<module>"), "<module>");
  EXPECT_EQ(plain_name("leveldb::(anonymous namespace)::PosixEnv::Schedule(void (*)(void*), void*)"),
            "leveldb::PosixEnv::Schedule");
  EXPECT_EQ(plain_name("std::vector<std::pair<int, a::b>, std::allocator<c> >::push_back(std::pair<int, a::b>&&)"),
            "std::vector::push_back");
  EXPECT_EQ(plain_name("f(int) [clone .cold]"), "f");
  EXPECT_EQ(plain_name("serve(int)::{lambda(int)#1}::operator()(int) const"), "serve::{lambda}::operator()");
  EXPECT_EQ(plain_name("a::operator<<(std::ostream&, b)"), "a::operator<<");
  EXPECT_EQ(plain_name("a::operator<(b) const"), "a::operator<");
  EXPECT_EQ(plain_name("a::operator bool() const"), "a::operator bool");
  EXPECT_EQ(plain_name("a::operator[](unsigned long)"), "a::operator[]");
  EXPECT_EQ(plain_name("app+0x1234"), "app+0x1234");
}

TEST(Names, AreNeverEmptyWhateverTheyAre) {
  for (const char* name :
       {"(", "<", "::", "()", "(anonymous namespace)", "{lambda", "operator", " [clone", "a::", ")>]"})
    EXPECT_FALSE(plain_name(name).empty()) << name;
  EXPECT_EQ(plain_name(""), "");
}

TEST(Names, ScopesGoFirst) {
  EXPECT_EQ(fit_name("leveldb::DBImpl::Write(bool)", 40), "leveldb::DBImpl::Write");
  EXPECT_EQ(fit_name("leveldb::DBImpl::Write(bool)", 15), "DBImpl::Write");
  EXPECT_EQ(fit_name("leveldb::DBImpl::Write(bool)", 6), "Write");
  EXPECT_EQ(fit_name("leveldb::DBImpl::MakeRoomForWrite(bool)", 10), "...orWrite");
  EXPECT_EQ(fit_name("abcdef", 2), "ef");
}

}  // namespace
}  // namespace karst::cli
