// Compares all functions of fixtures with what binutils says of them: a second reader of ELF and DWARF.
#include <cxxabi.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "fixture.h"

namespace karst::symbols {
namespace {

using namespace test;

/// Function symbols by address, as readelf lists them.
std::map<std::uint64_t, std::set<std::string>> elf_functions(const std::string& name) {
  std::map<std::uint64_t, std::set<std::string>> functions;
  std::istringstream lines(output_of("readelf -W --symbols '" + fixture(name).string() + "'"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream columns(line);
    std::string number, address, size, type, binding, visibility, section, symbol;
    columns >> number >> address >> size >> type >> binding >> visibility >> section >> symbol;
    if (type != "FUNC" || section == "UND") continue;
    functions[std::stoull(address, nullptr, 16)].insert(symbol.substr(0, symbol.find('@')));
  }
  return functions;
}

class Oracle : public testing::TestWithParam<const char*> {};

TEST_P(Oracle, EveryFunctionSymbolIsARowWithOneOfItsNames) {
  auto expected = elf_functions(GetParam());
  ASSERT_GT(expected.size(), 30U);
  auto table = load_fixture(GetParam());
  for (const auto& [address, names] : expected) {
    auto symbol = table.lookup(address);
    ASSERT_TRUE(symbol.has_value()) << *names.begin();
    EXPECT_EQ(symbol->begin, address);
    EXPECT_TRUE(names.contains(std::string(symbol->link_name)))
        << symbol->link_name << " is none of " << *names.begin();
  }
  EXPECT_EQ(table.size(), expected.size());
}

TEST_P(Oracle, EveryNameIsTheLibrarysDemangledNameWithNothingButAReturnTypeLess) {
  auto table = load_fixture(GetParam());
  int templates = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    Symbol symbol = table.at(i);
    int status = 0;
    std::unique_ptr<char, decltype(&std::free)> full(
        abi::__cxa_demangle(std::string(symbol.link_name).c_str(), nullptr, nullptr, &status), std::free);
    if (full == nullptr) {
      EXPECT_EQ(symbol.name, symbol.link_name);
    } else if (std::string_view text = full.get(); text != symbol.name) {
      // "RET name", or wound around it: "int (*name)(char)".
      ++templates;
      EXPECT_NE(text.find(without_clone(symbol.name)), std::string_view::npos) << text << " gave " << symbol.name;
      EXPECT_NE(symbol.name.find('<'), std::string_view::npos) << text << " gave " << symbol.name;
    }
  }
  EXPECT_GE(templates, 10);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Oracle,
                         testing::Values("dwarf4", "dwarf5", "optimised", "compressed", "no_pie", "lto", "no_debug"),
                         fixture_name);

/// Without optimisation a function's first instruction is on the line of its definition. (With it, it may be on
/// that of an inlined function, and addr2line answers another question.)
class Addr2line : public testing::TestWithParam<const char*> {};

TEST_P(Addr2line, AgreesOnFileAndLineOfEveryFunction) {
  auto table = load_fixture(GetParam());
  std::ostringstream command;
  command << "addr2line -e '" << fixture(GetParam()).string() << "'" << std::hex;
  for (std::size_t i = 0; i < table.size(); ++i) command << " " << table.at(i).begin;
  std::istringstream lines(output_of(command.str()));
  std::size_t compared = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    Symbol symbol = table.at(i);
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    line = line.substr(0, line.find(" (discriminator"));
    std::size_t colon = line.rfind(':');
    if (line.substr(colon + 1) == "?" || line.starts_with("??")) {  // the symbol table's file at most
      EXPECT_EQ(symbol.file, "") << symbol.name;
      continue;
    }
    EXPECT_EQ(symbol.file, std::filesystem::path(line.substr(0, colon)).lexically_normal()) << symbol.name;
    // Over several lines the name's line is the definition's, to addr2line that of the closing parenthesis.
    bool by_line_table = std::string_view(GetParam()) == "clang_lines_only";
    std::uint32_t lines_of_head = !by_line_table && symbol.name == "Shape::method(int, int) const" ? 2 : 0;
    EXPECT_EQ(std::to_string(symbol.line + lines_of_head), line.substr(colon + 1)) << symbol.name;
    ++compared;
  }
  EXPECT_GT(compared, 30U);
}

INSTANTIATE_TEST_SUITE_P(Gcc, Addr2line, testing::Values("dwarf4", "dwarf5"), fixture_name);
#if KARST_HAVE_CLANG
INSTANTIATE_TEST_SUITE_P(Clang, Addr2line, testing::Values("clang_lines_only"), fixture_name);
#endif

}  // namespace
}  // namespace karst::symbols
