#include "symbols/symbol_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "fixture.h"

namespace karst::symbols {
namespace {

using namespace test;

std::optional<Symbol> by_name(const SymbolTable& table, std::string_view name) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table.at(i).name == name) return table.at(i);
  }
  return std::nullopt;
}

/// Every function that the fixture's sources mark is in the table by that name, with that file and line.
void expect_markers(const SymbolTable& table, std::string_view build) {
  // The whole program was looked at, what nobody calls any more thrown away, and what is alike put together.
  bool may_miss = build == "lto" || build == "sections" || build == "folded";
  int hits = 0;
  for (const char* file : {"shapes.cc", "second.cc"}) {
    for (const Marker& marker : markers(file)) {
      // clang names a lambda $_0 where the ABI leaves that to it.
      if (build.starts_with("clang") && marker.name.starts_with("with_lambda(int)::{")) continue;
      bool found = false;
      std::string seen;
      for (std::size_t i = 0; i < table.size() && !found; ++i) {
        Symbol symbol = table.at(i);
        if (without_clone(symbol.name) != marker.name) continue;
        seen += std::string(symbol.file) + ":" + std::to_string(symbol.line) + " ";
        found = symbol.file == marker.file && symbol.line == marker.line;
      }
      hits += found ? 1 : 0;
      if (may_miss && seen.empty()) continue;
      EXPECT_TRUE(found) << marker.name << " should be at " << marker.file << ":" << marker.line
                         << (seen.empty() ? "; it is not in the table" : "; it is at " + seen);
    }
  }
  EXPECT_GE(hits, build == "folded" ? 15 : 25);
}

class EveryKindOfBuild : public testing::TestWithParam<const char*> {};

TEST_P(EveryKindOfBuild, GivesNameFileAndLineOfEveryMarkedFunction) {
  auto table = load_fixture(GetParam());
  EXPECT_TRUE(table.has_debug_info());
  expect_markers(table, GetParam());
}

TEST_P(EveryKindOfBuild, HasRowsInOrderAndFindsEachFromItsFirstToItsLastByte) {
  auto table = load_fixture(GetParam());
  ASSERT_GT(table.size(), 30U);
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    Symbol symbol = table.at(i);
    ASSERT_LE(last, symbol.begin);
    ASSERT_LT(symbol.begin, symbol.end);
    last = symbol.end;
    for (std::uint64_t address : {symbol.begin, symbol.begin + (symbol.end - symbol.begin) / 2, symbol.end - 1}) {
      auto found = table.lookup(address);
      ASSERT_TRUE(found.has_value());
      EXPECT_EQ(found->link_name, symbol.link_name);
    }
  }
  EXPECT_FALSE(table.lookup(0).has_value());
  EXPECT_FALSE(table.lookup(table.at(0).begin - 1).has_value());
  EXPECT_FALSE(table.lookup(last).has_value());
  EXPECT_FALSE(table.lookup(~std::uint64_t{0}).has_value());
}

INSTANTIATE_TEST_SUITE_P(Gcc, EveryKindOfBuild,
                         testing::Values("dwarf4", "dwarf5", "optimised", "optimised_dwarf4", "compressed", "no_pie",
                                         "lto", "sections", "types_units", "split", "no_build_id", "debuglink/app"),
                         fixture_name);
#if KARST_HAVE_GOLD
INSTANTIATE_TEST_SUITE_P(Gold, EveryKindOfBuild, testing::Values("folded"), fixture_name);
#endif
#if KARST_HAVE_CLANG
INSTANTIATE_TEST_SUITE_P(Clang, EveryKindOfBuild, testing::Values("clang_dwarf4", "clang_dwarf5", "clang_lines_only"),
                         fixture_name);
#endif

TEST(SymbolTable, PutsAFunctionWhoseDefinitionTakesSeveralLinesAtItsName) {
  auto method = by_name(load_fixture("optimised"), "Shape::method(int, int) const");
  ASSERT_TRUE(method.has_value());
  std::string text = read_file(source("shapes.cc"));
  auto line = std::count(text.begin(), text.begin() + static_cast<long>(text.find("int Shape::method(")), '\n') + 1;
  EXPECT_EQ(method->line, line);
}

TEST(SymbolTable, NamesTheColdPartOfAFunctionAfterItAndWhereItIsDefined) {
  auto table = load_fixture("optimised");
  auto hot = by_name(table, "may_be_cold(int)");
  auto cold = by_name(table, "may_be_cold(int) [clone .cold]");
  ASSERT_TRUE(hot.has_value());
  ASSERT_TRUE(cold.has_value());
  EXPECT_EQ(cold->file, hot->file);
  EXPECT_EQ(cold->line, hot->line);
  EXPECT_EQ(cold->link_name, "_Z11may_be_coldi.cold");
}

TEST(SymbolTable, FindsTheFunctionOfEverySledOfGccBehindItsEndbr) {
  auto table = load_fixture("sleds");
  std::string addresses = read_file(fixture("sleds.table"));
  ASSERT_GT(addresses.size(), 30 * sizeof(std::uint64_t));
  std::set<std::uint64_t> seen;
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= addresses.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t address = 0;
    std::memcpy(&address, addresses.data() + at, sizeof address);
    auto symbol = table.lookup(address);
    ASSERT_TRUE(symbol.has_value());
    EXPECT_LE(address - symbol->begin, 4U) << symbol->name;
    EXPECT_NE(symbol->file, "") << symbol->name;
    EXPECT_TRUE(seen.insert(symbol->begin).second) << symbol->name << " twice";
  }
  EXPECT_TRUE(seen.contains(by_name(table, "plain(int)")->begin));
}

TEST(SymbolTable, TellsFunctionsOfOneNameInTwoFilesApart) {
  auto table = load_fixture("dwarf5");
  std::vector<std::string> files;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table.at(i).name == "hidden(int)") files.push_back(std::string(table.at(i).file));
  }
  std::sort(files.begin(), files.end());
  EXPECT_EQ(files, (std::vector<std::string>{source("second.cc").string(), source("shapes.cc").string()}));
}

TEST(SymbolTable, WithoutDebugInformationHasNamesAlone) {
  auto table = load_fixture("no_debug");
  EXPECT_FALSE(table.has_debug_info());
  auto plain = by_name(table, "plain(int)");
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->link_name, "_Z5plaini");
  EXPECT_EQ(plain->file, "");
  EXPECT_EQ(plain->line, 0U);
}

TEST(SymbolTable, TakesNamesFromDwarfWhereTheSymbolTableIsGone) {
  auto named = load_fixture("optimised");
  auto table = load_fixture("dwarf_only");
  for (const char* name : {"plain(int)", "Shape::method(int, int) const", "one<int>(int)", "main"}) {
    auto expected = by_name(named, name);
    ASSERT_TRUE(expected.has_value());
    auto symbol = table.lookup(expected->begin);
    ASSERT_TRUE(symbol.has_value()) << name;
    EXPECT_EQ(symbol->name, name);
    EXPECT_EQ(symbol->link_name, expected->link_name);
    EXPECT_EQ(symbol->file, expected->file);
    EXPECT_EQ(symbol->line, expected->line);
  }
  // g++ gives functions of one file no linkage name; the plain one is all there is.
  auto hidden = by_name(named, "hidden(int)");
  ASSERT_TRUE(hidden.has_value());
  EXPECT_EQ(table.lookup(hidden->begin)->name, "hidden");
}

TEST(SymbolTable, OfAStrippedProgramHasNoneOfItsFunctions) {
  auto named = by_name(load_fixture("optimised"), "plain(int)");
  ASSERT_TRUE(named.has_value());
  auto table = load_fixture("stripped/app");
  EXPECT_FALSE(table.has_debug_info());
  EXPECT_FALSE(table.lookup(named->begin).has_value());
}

TEST(SymbolTable, OfALibraryInCHasGlobalHiddenAndAssembledFunctions) {
  auto table = load_fixture("libc_unit.so");
  auto global = by_name(table, "c_global");  // and not its weak alias
  ASSERT_TRUE(global.has_value());
  EXPECT_EQ(global->file, source("c_unit.c"));
  EXPECT_FALSE(by_name(table, "c_weak").has_value());
  EXPECT_TRUE(by_name(table, "c_hidden").has_value());
  auto assembly = by_name(table, "c_assembly");
  ASSERT_TRUE(assembly.has_value());
  EXPECT_GT(assembly->end, assembly->begin);
}

TEST(SymbolTable, RefusesAFileWithAnotherBuildId) {
  std::string id(load_fixture("optimised").build_id());
  ASSERT_EQ(id.size(), 20U);
  EXPECT_TRUE(SymbolTable::load(fixture("optimised"), id).ok());
  id[0] = static_cast<char>(id[0] ^ 1);
  auto changed = SymbolTable::load(fixture("optimised"), id);
  ASSERT_FALSE(changed.ok());
  EXPECT_NE(changed.error().message.find("optimised"), std::string::npos);
  EXPECT_NE(changed.error().message.find("changed"), std::string::npos);
  EXPECT_FALSE(SymbolTable::load(fixture("no_build_id"), id).ok());
  EXPECT_EQ(load_fixture("no_build_id").build_id(), "");
}

#if KARST_HAVE_ADA
TEST(SymbolTable, ShowsAdaAsItIsWritten) {
  const auto table = load_fixture("ada/hello");
  for (const char* name : {"hello.shapes.area", "hello.shapes.\"+\"", "hello"}) {
    const auto symbol = by_name(table, name);
    ASSERT_TRUE(symbol.has_value()) << name;
    EXPECT_EQ(symbol->file, source("hello.adb")) << name;
  }
}
#endif

#if KARST_HAVE_FORTRAN
TEST(SymbolTable, ShowsFortranByTheLinkersNamesWithItsLines) {
  const auto table = load_fixture("fortran");
  const auto area = by_name(table, "__circle_MOD_area");
  ASSERT_TRUE(area.has_value());
  EXPECT_EQ(area->file, source("circle.f90"));
  EXPECT_EQ(area->line, 3U);
  EXPECT_TRUE(by_name(table, "MAIN__").has_value());
}
#endif

}  // namespace
}  // namespace karst::symbols
