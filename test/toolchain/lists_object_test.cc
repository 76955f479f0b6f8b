#include "toolchain/lists_object.h"

#include <gelf.h>
#include <gtest/gtest.h>

#include <fstream>

#include "choice/function_lists.h"

namespace karst::toolchain {
namespace {

TEST(ListsObject, IsAnObjectThatTheLinkerPutsIntoTheProgram) {
  const std::string directory = testing::TempDir();
  const std::string object = directory + "lists.o";
  const std::string program = directory + "lists.so";
  const std::string bytes =
      lists_object({"no-trace=std::*", "no-trace=[", "min-instructions=7", "only=a b", "other=x"});
  std::ofstream(object, std::ios::binary) << bytes;
  const std::string command = "cc -shared -nostdlib -Wl,--fatal-warnings,--gc-sections -o " + program + " " + object;
  ASSERT_EQ(std::system(command.c_str()), 0);
  const choice::ListChoice lists = choice::carried_lists({program}).front();
  EXPECT_EQ(lists.no_trace, std::vector<std::string>{"std::*"});  // the damaged glob is left out
  EXPECT_EQ(lists.only, std::vector<std::string>{"a b"});
  EXPECT_EQ(lists.min_instructions, 7U);
}

TEST(ListsObject, CanBeReadByPrograms) {
  const auto name = as_inherited_file("hello");
  ASSERT_TRUE(name.ok());
  EXPECT_EQ(std::system(("test \"$(cat " + *name + ")\" = hello").c_str()), 0);
}

TEST(CarriedLists, AreNoneInOtherFiles) {
  const std::string file = testing::TempDir() + "no-elf";
  std::ofstream(file) << "text";
  for (const std::string& path : {file, std::string("/proc/self/exe"), std::string("/nowhere/x"), std::string("/")})
    EXPECT_TRUE(choice::carried_lists({path}).front().empty()) << path;
}

}  // namespace
}  // namespace karst::toolchain
