#include "symbols/resolve.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "fixture.h"
#include "symbols/missing_names.h"

namespace karst::symbols {
namespace {

using namespace test;

constexpr std::uint64_t kBias = 0x7f0012340000;

reader::Module module_of(const std::string& name, std::uint32_t index) {
  reader::Module module;
  module.index = index;
  module.bias = kBias + index * 0x10000000ULL;
  module.path = fixture(name);
  if (auto table = SymbolTable::load(module.path, "")) module.build_id = table->build_id();
  return module;
}

reader::Function function_of(std::uint32_t id, const reader::Module& module, std::uint64_t elf_address) {
  reader::Function function;
  function.id = id;
  function.module = module.index;
  function.address = module.bias + elf_address;
  function.name = "function#" + std::to_string(id);
  return function;
}

std::uint64_t address_of(const std::string& name, std::string_view function) {
  auto table = load_fixture(name);
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table.at(i).name == function) return table.at(i).begin;
  }
  throw std::runtime_error("the fixture has no " + std::string(function));
}

ResolveOptions without_cache() {
  ResolveOptions options;
  options.cache = Cache();
  return options;
}

TEST(Resolve, FillsInFunctionsOfSeveralModulesBySledAddress) {
  reader::Process process;
  process.modules = {module_of("optimised", 0), module_of("libc_unit.so", 1)};
  process.functions = {reader::Function{},
                       function_of(1, process.modules[1], address_of("libc_unit.so", "c_global") + 4),
                       function_of(2, process.modules[0], address_of("optimised", "plain(int)") + 4)};
  auto result = resolve(process, without_cache());
  EXPECT_EQ(result.named, 2U);
  EXPECT_EQ(result.unnamed, 0U);
  EXPECT_TRUE(result.problems.empty());
  EXPECT_EQ(process.functions[1].name, "c_global");
  EXPECT_EQ(process.functions[1].link_name, "c_global");
  EXPECT_EQ(process.functions[1].file, source("c_unit.c"));
  EXPECT_EQ(process.functions[2].name, "plain(int)");
  EXPECT_EQ(process.functions[2].link_name, "_Z5plaini");
  EXPECT_GT(process.functions[2].line, 0U);
  EXPECT_EQ(process.functions[0].name, "");
}

TEST(Resolve, NamesAFunctionOfAStrippedModuleByItsPlaceAndSaysSo) {
  reader::Process process;
  process.modules = {module_of("stripped/app", 0)};
  std::uint64_t address = address_of("optimised", "plain(int)");
  process.functions = {reader::Function{}, function_of(1, process.modules[0], address)};
  auto result = resolve(process, without_cache());
  EXPECT_EQ(result.unnamed, 1U);
  std::ostringstream name;
  name << "app+0x" << std::hex << address;
  EXPECT_EQ(process.functions[1].name, name.str());
  EXPECT_EQ(process.functions[1].link_name, "");
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_EQ(result.problems[0].count, 1U);
  EXPECT_NE(result.problems[0].message.find("stripped/app"), std::string::npos);
}

TEST(Resolve, SaysWhatIsMissingOfEachModuleAndKeepsGoing) {
  reader::Process process;
  process.modules = {module_of("optimised", 0), module_of("missing", 1), module_of("no_debug", 2),
                     module_of("dwarf5", 3)};
  process.modules[0].build_id = "another id";
  process.functions = {reader::Function{}, function_of(1, process.modules[0], 0x1234),
                       function_of(2, process.modules[1], 0xabc),
                       function_of(3, process.modules[2], address_of("no_debug", "plain(int)")),
                       function_of(4, process.modules[3], address_of("dwarf5", "plain(int)"))};
  auto result = resolve(process, without_cache());
  EXPECT_EQ(process.functions[1].name, "optimised+0x1234");
  EXPECT_EQ(process.functions[2].name, "missing+0xabc");
  EXPECT_EQ(process.functions[3].name, "plain(int)");
  EXPECT_EQ(process.functions[4].name, "plain(int)");
  ASSERT_EQ(result.problems.size(), 3U);
  EXPECT_NE(result.problems[0].message.find("changed"), std::string::npos);
  EXPECT_NE(result.problems[1].message.find("No such file"), std::string::npos);
  EXPECT_NE(result.problems[2].message.find("-g"), std::string::npos);
}

TEST(Resolve, LeavesNamesOfAResolvedTraceAndFunctionsOfUnknownModulesAlone) {
  reader::Process process;
  process.modules = {module_of("dwarf5", 0)};
  process.functions = {reader::Function{}, function_of(1, process.modules[0], 0x10),
                       function_of(2, process.modules[0], 0)};
  process.functions[1].name = "kept()";
  process.functions[1].link_name = "_Z4keptv";
  process.functions[2].module = 7;
  auto result = resolve(process, without_cache());
  EXPECT_EQ(process.functions[1].name, "kept()");
  EXPECT_EQ(process.functions[2].name, "function#2");
  EXPECT_EQ(result.named + result.unnamed, 0U);
}

TEST(Resolve, SurvivesAddressesAndBiasesThatCannotBe) {
  reader::Process process;
  process.modules = {module_of("dwarf5", 0)};
  process.modules[0].bias = ~std::uint64_t{0};
  process.functions = {reader::Function{}, function_of(1, process.modules[0], 0)};
  process.functions[1].address = 5;
  EXPECT_EQ(resolve(process, without_cache()).unnamed, 1U);
  EXPECT_EQ(process.functions[1].name, "dwarf5+0x6");
}

TEST(Resolve, MovesPathsAndFindsTheTextThere) {
  TemporaryDirectory directory;
  std::filesystem::copy(source("second.cc"), directory.path() / "second.cc");
  reader::Process process;
  process.modules = {module_of("dwarf5", 0)};
  process.functions = {reader::Function{},
                       function_of(1, process.modules[0], address_of("dwarf5", "second_unit(int)"))};
  auto options = without_cache();
  auto mapping = PathMapping::parse(std::string(KARST_FIXTURE_SOURCES) + "/=" + directory.path().string());
  ASSERT_TRUE(mapping.ok());
  options.map_paths = {*mapping};
  resolve(process, options);
  EXPECT_EQ(process.functions[1].file, directory.path() / "second.cc");
  auto sources = collect_sources({&process, 1});
  ASSERT_EQ(sources.files.size(), 1U);
  EXPECT_EQ(sources.files[0].path, process.functions[1].file);
  EXPECT_EQ(sources.files[0].text, read_file(source("second.cc")));
  EXPECT_TRUE(sources.problems.empty());
}

TEST(PathMapping, MatchesWholeDirectoriesAndTheFirstThatFits) {
  std::vector<PathMapping> maps = {*PathMapping::parse("/build/=/src"), *PathMapping::parse("/build/x=/never"),
                                   *PathMapping::parse("/all=/")};
  EXPECT_EQ(map_path("/build/x/a.cc", maps), "/src/x/a.cc");
  EXPECT_EQ(map_path("/builder/a.cc", maps), "/builder/a.cc");
  EXPECT_EQ(map_path("/build", maps), "/src");
  EXPECT_EQ(map_path("/all/a.cc", maps), "/a.cc");
  EXPECT_EQ(map_path("a.cc", maps), "a.cc");
  EXPECT_EQ(map_path("/a.cc", std::vector{*PathMapping::parse("/=/root")}), "/root/a.cc");
}

TEST(PathMapping, RefusesWhatIsNotFromAndTo) {
  for (const char* bad : {"", "=", "/a", "/a=", "=/b"}) {
    auto mapping = PathMapping::parse(bad);
    ASSERT_FALSE(mapping.ok()) << bad;
    EXPECT_NE(mapping.error().message.find("FROM=TO"), std::string::npos);
  }
}

class SourcesTest : public testing::Test {
 protected:
  void add(const std::string& file) {
    reader::Function function;
    function.id = 1;
    function.file = file;
    process_.functions.push_back(function);
  }
  std::string put(const char* name, const std::string& text) {
    write_file(directory_.path() / name, text);
    return (directory_.path() / name).string();
  }

  TemporaryDirectory directory_;
  reader::Process process_;
};

TEST_F(SourcesTest, HoldEachFileOnceInOrder) {
  std::string b = put("b.cc", "bb\n"), a = put("a.cc", "aa\n"), empty = put("c.cc", "");
  for (const auto& file : {b, a, b, empty, std::string()}) add(file);
  auto sources = collect_sources({&process_, 1});
  ASSERT_EQ(sources.files.size(), 3U);
  EXPECT_EQ(sources.files[0].text, "aa\n");
  EXPECT_EQ(sources.files[1].path, b);
  EXPECT_EQ(sources.files[2].text, "");
  EXPECT_TRUE(sources.problems.empty());
}

TEST_F(SourcesTest, LeaveOutWhatIsNoTextOfReasonableSizeAndSaySo) {
  std::string fifo = (directory_.path() / "fifo").string();
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  add(fifo);
  add(directory_.path().string());
  add(put("large.cc", std::string(1001, 'x')));
  add(put("binary.cc", std::string("a\0b", 3)));
  add(put("fits.cc", std::string(1000, 'y')));
  auto sources = collect_sources({&process_, 1}, {.file_bytes = 1000, .total_bytes = 5000});
  ASSERT_EQ(sources.files.size(), 1U);
  EXPECT_EQ(sources.files[0].text, std::string(1000, 'y'));
  EXPECT_EQ(sources.problems.size(), 4U);
}

TEST_F(SourcesTest, CountFilesThatAreNotHereTogether) {
  add("/no/such/directory/a.cc");
  add("/no/such/directory/b.cc");
  add("relative.cc");
  auto sources = collect_sources({&process_, 1});
  EXPECT_TRUE(sources.files.empty());
  ASSERT_EQ(sources.problems.size(), 1U);
  EXPECT_EQ(sources.problems[0].count, 3U);
  EXPECT_NE(sources.problems[0].message.find("/no/such/directory/a.cc"), std::string::npos);
  EXPECT_NE(sources.problems[0].message.find("--map-path"), std::string::npos);
}

TEST_F(SourcesTest, AreFoundBesideTheirModuleByTheEndOfTheirPath) {
  std::filesystem::create_directory(directory_.path() / "src");
  put("a.cc", "by name");
  put("src/a.cc", "by two parts");
  put("b.cc", "relative");
  put("late.cc", "written after the module was built");
  constexpr std::uint64_t kLongAgo = 1, kInTheFuture = std::uint64_t{1} << 62;  // ns since 1970
  process_.modules.resize(1);
  process_.modules[0].path = (directory_.path() / "app").string();
  process_.modules[0].built_by_ns = kInTheFuture;
  add("/no/such/src/a.cc");
  add("./b.cc");
  add("/no/such/nowhere.cc");
  auto sources = collect_sources({&process_, 1});
  ASSERT_EQ(sources.files.size(), 2U);
  EXPECT_EQ(sources.files[0].path, "./b.cc");
  EXPECT_EQ(sources.files[0].text, "relative");
  EXPECT_EQ(sources.files[1].path, "/no/such/src/a.cc");
  EXPECT_EQ(sources.files[1].text, "by two parts");
  ASSERT_EQ(sources.problems.size(), 1U);
  EXPECT_EQ(sources.problems[0].count, 1U);

  // What is newer than the module, and all where it is not known when that was built.
  for (const std::uint64_t built_by : {kLongAgo, std::uint64_t{0}}) {
    process_.modules[0].built_by_ns = built_by;
    process_.functions.clear();
    add("/no/such/late.cc");
    EXPECT_TRUE(collect_sources({&process_, 1}).files.empty()) << built_by;
  }
}

TEST_F(SourcesTest, StopAtTheTotalAndLeaveOutFilteredFunctions) {
  add(put("a.cc", std::string(600, 'a')));
  add(put("b.cc", std::string(600, 'b')));
  add(put("c.cc", std::string(300, 'c')));
  add(put("d.cc", "d"));
  process_.functions.back().filtered = true;
  auto sources = collect_sources({&process_, 1}, {.file_bytes = 1000, .total_bytes = 1000});
  ASSERT_EQ(sources.files.size(), 2U);
  EXPECT_EQ(sources.files[1].text, std::string(300, 'c'));
  ASSERT_EQ(sources.problems.size(), 1U);
  EXPECT_NE(sources.problems[0].message.find("b.cc"), std::string::npos);
}

TEST(MissingNames, OfManyModulesAreOneLine) {
  MissingNames missing;
  EXPECT_TRUE(missing.folded().empty());
  missing.add({{"functions of /lib/a.so have no file", 3}});
  missing.add({{"functions of /lib/a.so have no file", 3}});
  ASSERT_EQ(missing.folded().size(), 1U);
  EXPECT_EQ(missing.folded()[0].message, "functions of /lib/a.so have no file");
  EXPECT_EQ(missing.folded()[0].count, 6U);
  for (int i = 0; i < 9; ++i) missing.add({{"functions of /lib/" + std::to_string(i) + ".so have no file", 1}});
  ASSERT_EQ(missing.folded().size(), 1U);
  EXPECT_EQ(missing.folded()[0].message,
            "functions of /lib/a.so have no file. There are 9 more like this: 'karst info' lists the modules");
}

}  // namespace
}  // namespace karst::symbols
