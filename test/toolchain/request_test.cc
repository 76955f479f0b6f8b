// The wrappers' own options, and the command lines made of them.
#include "toolchain/request.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "format/filter_list.h"
#include "toolchain/command.h"

namespace karst::toolchain {
namespace {

const Installation kInstalled{"/opt/k/lib/karst", "/opt/k/include"};

std::string file_with(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::path(testing::TempDir()) / name;
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

std::vector<std::string> clang(const std::vector<std::string>& arguments) {
  const auto request = parse_request(arguments);
  EXPECT_TRUE(request.ok());
  const auto command = clang_command("clang", *request, kInstalled);
  EXPECT_TRUE(command.ok());
  return command ? *command : std::vector<std::string>();
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool links(const std::vector<std::string>& arguments) { return has(clang(arguments), "/opt/k/lib/karst/module.o"); }

TEST(Request, TakesItsOwnOptionsAndLeavesTheRest) {
  const auto request = parse_request({"-O2", "--karst-method=finstrument", "a.c", "--karst-link", "-o", "a"});
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->method, Method::kFinstrument);
  EXPECT_TRUE(request->with_runtime);
  EXPECT_EQ(request->rest, (std::vector<std::string>{"-O2", "a.c", "-o", "a"}));
}

TEST(Request, FindsItsOwnOptionsInResponseFiles) {
  const std::string inner = file_with("inner.rsp", "--karst-link 'two words.c'");
  const std::string own = file_with("own.rsp", "-O2 --karst-threshold=7\n\"@" + inner + "\" -c");
  const std::string plain = "@" + file_with("plain.rsp", "-O2 -DX='a b'");
  const auto request = parse_request({"a.c", "@" + own, plain, "@/no/such/file", "@"});
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->threshold, "7");
  EXPECT_TRUE(request->with_runtime);
  EXPECT_EQ(request->rest, (std::vector<std::string>{"a.c", "-O2", "two words.c", "-c", plain, "@/no/such/file", "@"}));
  const std::string endless = file_with("endless.rsp", "");
  std::ofstream(endless) << "--karst-link @" << endless << " -c";
  EXPECT_TRUE(parse_request({"@" + endless}).ok());
  EXPECT_FALSE(parse_request({"@" + file_with("wrong.rsp", "--karst-wait")}).ok());
}

TEST(Request, RefusesWhatItDoesNotKnow) {
  for (const char* wrong : {"--karst-method=jit", "--karst-method", "--karst-threshold=", "--karst-threshold=x",
                            "--karst-no-trace", "--karst-only=", "--karst-min-instructions=-1", "--karst-wait",
                            "--karst-link=1", "--karst-min-instructions=1000001", "--karst-"}) {
    const auto request = parse_request({wrong});
    ASSERT_FALSE(request.ok()) << wrong;
    EXPECT_NE(request.error().message.find(wrong), std::string::npos) << request.error().message;
  }
}

TEST(Request, ReadsListsAndNamesFileAndLineOfWhatIsWrong) {
  const std::string good = file_with("good.list", "# all of std\n\n  std::*  # here\nsrc/*.h\r\n{lambda()#1}");
  const auto request =
      parse_request({"--karst-no-trace=" + good, "--karst-only=" + good, "--karst-min-instructions=12"});
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->lists,
            (std::vector<std::string>{"no-trace=std::*", "no-trace=src/*.h", "no-trace={lambda()#1}", "only=std::*",
                                      "only=src/*.h", "only={lambda()#1}", "min-instructions=12"}));
  const std::string bad = file_with("bad.list", "a\n#\noperator[\n");
  const auto refused = parse_request({"--karst-no-trace=" + bad});
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(refused.error().message.starts_with(bad + ":3: a [ without its ]")) << refused.error().message;
  EXPECT_FALSE(parse_request({"--karst-only=" + bad + ".none"}).ok());
  EXPECT_FALSE(parse_request({"--karst-only=/"}).ok());
}

TEST(FilterList, FindsWhatIsNoGlob) {
  using format::glob_problem;
  for (const char* good : {"a", "*", "[a-z]*", "[]x]", "[!]x]", "[a-]", "a\\[", "\\\\[b]", "operator\\[\\]", "[\\]]"})
    EXPECT_EQ(glob_problem(good), "") << good;
  for (const char* bad : {"[", "[]", "[!", "a[b", "\\", "x[\\]", "[z-a]", "[a-"})
    EXPECT_NE(glob_problem(bad), "") << bad;
  EXPECT_NE(glob_problem(std::string(5000, 'a')), "");
  EXPECT_NE(glob_problem(std::string_view("a\0b", 3)), "");
  EXPECT_TRUE(format::is_path_glob("a/b"));
  EXPECT_FALSE(format::is_path_glob("operator\\/"));
}

TEST(ClangCommand, LinksTheModuleObjectWhereThereIsALink) {
  EXPECT_TRUE(links({"a.c"}));
  EXPECT_TRUE(links({"a.o", "-o", "a"}));
  EXPECT_TRUE(links({"-shared", "-Wl,--whole-archive", "-lx"}));
  EXPECT_TRUE(links({"-x", "c", "-"}));
  EXPECT_TRUE(links({"@" + file_with("rsp", "-O2 'a b.o'\n-o out")}));
  for (const auto& no : std::vector<std::vector<std::string>>{{"-c", "a.c"},
                                                              {"-E", "a.c"},
                                                              {"-S", "a.c"},
                                                              {"-M", "a.c"},
                                                              {"-fsyntax-only", "a.c"},
                                                              {"-r", "a.o"},
                                                              {"--version"},
                                                              {"-v"},
                                                              {"-print-search-dirs"},
                                                              {"-o", "out"},
                                                              {"-include", "a.h"},
                                                              {"-x", "c"},
                                                              {},
                                                              {"@" + file_with("rsp-c", "-c a.c")}})
    EXPECT_FALSE(links(no)) << testing::PrintToString(no);
}

TEST(ClangCommand, LeavesItsOwnSubprocessesAlone) {
  EXPECT_EQ(clang({"-cc1", "-triple", "x"}), (std::vector<std::string>{"clang", "-cc1", "-triple", "x"}));
}

TEST(ClangCommand, PutsItsOptionsInFrontWhereTheUsersWin) {
  const auto command = clang({"-c", "a.c"});
  EXPECT_EQ(command, (std::vector<std::string>{"clang", "--start-no-unused-arguments", "-Xclang", "-fxray-instrument",
                                               "-Xclang", "-fxray-instruction-threshold=1", "-idirafter",
                                               "/opt/k/include", "--end-no-unused-arguments", "-c", "a.c"}));
  EXPECT_FALSE(has(clang({"-fno-xray-instrument", "-c", "a.c"}), "-fxray-instrument"));
  EXPECT_TRUE(has(clang({"--karst-threshold=200", "a.c"}), "-fxray-instruction-threshold=200"));
  EXPECT_TRUE(has(clang({"--karst-method=finstrument", "a.c"}), "/opt/k/lib/karst/module-finstrument-clang.o"));
}

TEST(ClangCommand, RefusesWhatCannotBeTracedWithTheReason) {
  for (const auto& [argument, reason] :
       std::vector<std::pair<std::string, std::string>>{{"-m32", "only 64-bit x86-64"},
                                                        {"--target=aarch64-linux-gnu", "only 64-bit x86-64"},
                                                        {"-fxray-instrument", "would patch the same sleds"}}) {
    const auto request = parse_request({argument, "a.c"});
    ASSERT_TRUE(request.ok());
    const auto command = clang_command("clang", *request, kInstalled);
    ASSERT_FALSE(command.ok()) << argument;
    EXPECT_NE(command.error().message.find(reason), std::string::npos) << command.error().message;
  }
  const auto request = parse_request({"--karst-method=finstrument-after-inlining", "a.c"});
  EXPECT_TRUE(clang_command("clang", *request, kInstalled).ok());
  EXPECT_TRUE(clang_command("clang", *parse_request({"-fxray-instrument", "-c", "a.c"}), kInstalled).ok());
  EXPECT_TRUE(
      clang_command("clang", *parse_request({"-fxray-instrument", "-fno-xray-link-deps", "a.c"}), kInstalled).ok());
  const auto gcc = gcc_command("gcc", *request, kInstalled);
  ASSERT_FALSE(gcc.ok());
  EXPECT_NE(gcc.error().message.find("gcc has no such instrumentation"), std::string::npos);
}

TEST(GccCommand, ChoosesSpecsByMethod) {
  const auto sled = gcc_command("gcc", *parse_request({"a.c"}), kInstalled);
  ASSERT_TRUE(sled.ok());
  EXPECT_EQ(*sled, (std::vector<std::string>{"gcc", "-specs=/opt/k/lib/karst/karst-gcc.specs", "-idirafter",
                                             "/opt/k/include", "a.c"}));
  const auto calls = gcc_command("gcc", *parse_request({"--karst-method=finstrument", "a.c"}), kInstalled);
  EXPECT_TRUE(has(*calls, "-specs=/opt/k/lib/karst/karst-gcc-finstrument.specs"));
  EXPECT_FALSE(gcc_command("gcc", *parse_request({"--karst-threshold=3"}), kInstalled).ok());
}

TEST(GnatmakeCommand, CompilesAndLinksByKarstGcc) {
  EXPECT_EQ(gnatmake_command("gnatmake", "/b/karst-gcc", {"-q", "--karst-method=finstrument", "a.adb"}),
            (std::vector<std::string>{"gnatmake", "--GCC=/b/karst-gcc --karst-method=finstrument",
                                      "--GNATLINK=gnatlink --GCC=/b/karst-gcc", "-largs", "--karst-method=finstrument",
                                      "-margs", "-q", "a.adb"}));
}

TEST(Clang, KnowsTheObjectsThatACommandWrites) {
  using Words = std::vector<std::string>;
  const auto objects = [](const Words& arguments) { return clang_objects(*parse_request(arguments)); };
  EXPECT_EQ(objects({"-O2", "-c", "src/a.c", "-o", "b/a.o"}), Words{"b/a.o"});
  EXPECT_EQ(objects({"-c", "-ob.o", "a.c"}), Words{"b.o"});
  EXPECT_EQ(objects({"-c", "--output=b.o", "a.c"}), Words{"b.o"});
  EXPECT_EQ(objects({"-c", "src/a.b.cc", "c.S", "-MF", "d.c", "-lm"}), (Words{"a.b.o", "c.o"}));
  EXPECT_EQ(objects({"@" + file_with("objects.rsp", "-c 'a b.c'")}), Words{"a b.o"});
  EXPECT_EQ(objects({"-c", "a.c", "other.o", "other.a"}), Words{"a.o"});
  for (const Words& none : {Words{"a.c", "-o", "a"},
                            {"-S", "a.c"},
                            {"-c", "-S", "a.c"},
                            {"-E", "-c", "a.c"},
                            {"-c"},
                            {"-cc1", "-c", "a.c", "-o", "a.o"},
                            {"-c", "-fno-xray-instrument", "a.c"},
                            {"-c", "--karst-method=finstrument", "a.c"},
                            {"-working-directory=x", "-c", "a.c"}})
    EXPECT_EQ(objects(none), Words{}) << testing::PrintToString(none);
}

TEST(Clang, RefusesNopsOfItsOwnInThePlaceOfSleds) {
  const auto error = [](const std::vector<std::string>& arguments) {
    const auto request = parse_request(arguments);
    EXPECT_TRUE(request.ok());
    const auto command = clang_command("clang", *request, kInstalled);
    return command ? std::string() : command.error().message;
  };
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"-fpatchable-function-entry=5", "-c", "a.c"},
        {"-fpatchable-function-entry=0,2", "-fpatchable-function-entry=8,2", "a.c"},
        {"-Xclang", "-fpatchable-function-entry=10", "-c", "a.c"},
        {"@" + file_with("patchable.rsp", "-O2 -fpatchable-function-entry=1"), "a.c"}})
    EXPECT_NE(error(arguments).find("clang puts its own NOPs in the place of sleds"), std::string::npos);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"-fpatchable-function-entry=5", "--version"},
        {"-fpatchable-function-entry=5", "-fpatchable-function-entry=0", "a.c"},
        {"-fpatchable-function-entry=0,0", "a.c"},
        {"-fpatchable-function-entry=5", "-fno-xray-instrument", "a.c"},
        {"-fpatchable-function-entry=5", "--karst-method=finstrument", "a.c"}})
    EXPECT_EQ(error(arguments), "");
}

}  // namespace
}  // namespace karst::toolchain
