// What was inlined into functions: against the source, against addr2line, and through resolve().
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "fixture.h"
#include "symbols/dwarf_inlined.h"
#include "symbols/resolve.h"
#include "symbols/symbol_image.h"

namespace karst::symbols {
namespace {

using namespace test;

/// A function's tree as text: depth, name without scope and parameters, copies.
std::string tree_of(const SymbolTable& table, std::string_view function) {
  std::string text;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const Symbol symbol = table.at(i);
    if (symbol.name != function) continue;
    for (std::size_t k = 0; k < symbol.inlined_count; ++k) {
      const InlinedSymbol inlined = table.inlined_at(symbol.inlined_first + k);
      std::string name(inlined.name.substr(0, inlined.name.find('(')));
      name.erase(0, name.rfind(':') == std::string::npos ? 0 : name.rfind(':') + 1);
      text += std::to_string(inlined.depth) + " " + name + " " + std::to_string(inlined.copies) + "\n";
    }
  }
  return text;
}

bool is_one_of(const std::string& text, std::initializer_list<const char*> all) {
  return std::find(all.begin(), all.end(), text) != all.end();
}

class InlinedInEveryBuild : public testing::TestWithParam<const char*> {};

TEST_P(InlinedInEveryBuild, IsATreeWithCopiesCounted) {
  const auto table = load_fixture(GetParam());
  const std::string tree = tree_of(table, "holder(int volatile*)");
  EXPECT_TRUE(is_one_of(tree, {"1 middle 1\n2 inmost 1\n1 take 1\n1 twice_used 2\n",    // gcc: by address
                               "1 middle 1\n2 inmost 1\n1 twice_used 2\n1 take 1\n"}))  // clang
      << tree;
  EXPECT_EQ(tree_of(table, "holds_nothing(int volatile*)"), "");
  EXPECT_FALSE(table.inlined_cut());
}

TEST_P(InlinedInEveryBuild, SaysWhereItIsDefinedAndCalled) {
  const auto table = load_fixture(GetParam());
  std::istringstream text(read_file(source("inlined.cc")));
  std::map<std::string, unsigned> lines;
  unsigned number = 1;
  for (std::string line; std::getline(text, line); ++number) {
    if (line.find("inline") == 0 && line.find("middle") != std::string::npos) lines["definition"] = number;
    if (line.find("= deep::middle(x)") != std::string::npos) lines["call"] = number;
  }
  for (std::size_t i = 0; i < table.inlined_size(); ++i) {
    const InlinedSymbol inlined = table.inlined_at(i);
    if (inlined.name.find("middle") == std::string_view::npos) continue;
    EXPECT_EQ(inlined.name, "deep::middle(int volatile*)");
    EXPECT_EQ(inlined.file, source("inlined.cc"));
    EXPECT_EQ(inlined.line, lines["definition"]);
    EXPECT_EQ(inlined.call_file, source("inlined.cc"));
    EXPECT_EQ(inlined.call_line, lines["call"]);
    return;
  }
  FAIL() << "deep::middle is not there";
}

INSTANTIATE_TEST_SUITE_P(Gcc, InlinedInEveryBuild,
                         testing::Values("inlined_O0", "inlined_O2", "inlined_dwarf4", "inlined_split", "inlined_lto"),
                         fixture_name);
#if KARST_HAVE_CLANG
INSTANTIATE_TEST_SUITE_P(Clang, InlinedInEveryBuild, testing::Values("inlined_clang_dwarf4", "inlined_clang_dwarf5"),
                         fixture_name);
#endif

/// Names in the chain that addr2line gives for each of a function's bytes; a name without scope is `f`.
std::set<std::string> inlined_by_addr2line(const std::string& file, const Symbol& symbol) {
  std::ostringstream command;
  command << "addr2line -a -i -f -C -e " << fixture(file).string();
  for (std::uint64_t at = symbol.begin; at < symbol.end; ++at) command << " 0x" << std::hex << at;
  std::istringstream output(output_of(command.str()));
  std::set<std::string> names;
  std::vector<std::string> chain;  // innermost first; the last one is the function itself
  const auto flush = [&] {
    for (std::size_t i = 0; i + 1 < chain.size(); ++i) names.insert(chain[i].substr(0, chain[i].find('(')));
    chain.clear();
  };
  for (std::string line; std::getline(output, line);) {
    if (line.starts_with("0x")) {
      flush();
      continue;
    }
    chain.push_back(line);
    std::getline(output, line);  // its place
  }
  flush();
  return names;
}

TEST(Inlined, HasAllThatAddr2lineFindsInAnyByteOfAnyFunction) {
  for (const char* file : {"inlined_O2", "optimised_dwarf4", "inlined_lto"}) {
    const auto table = load_fixture(file);
    std::size_t found = 0;
    for (std::size_t i = 0; i < table.size(); ++i) {
      const Symbol symbol = table.at(i);
      if (symbol.line == 0) continue;
      std::set<std::string> ours;
      for (std::size_t k = 0; k < symbol.inlined_count; ++k) {
        const std::string_view name = table.inlined_at(symbol.inlined_first + k).name;
        ours.insert(std::string(name.substr(0, name.find('('))));
      }
      for (const std::string& name : inlined_by_addr2line(file, symbol)) {
        if (symbol.name.starts_with(name)) continue;  // at the seams of -g's ranges the function is told twice
        EXPECT_EQ(ours.count(name), 1U) << file << ": " << name << " in " << symbol.name;
        ++found;
      }
    }
    EXPECT_GT(found, 0U) << file;
  }
}

TEST(Inlined, TreesMergeCopiesKeepOrderAndHaveAnEnd) {
  InlineTree tree;
  const char origins[2000] = {};
  const auto a = tree.add(InlineTree::kRoot, origins);
  EXPECT_TRUE(a.fresh);
  const auto b = tree.add(InlineTree::kRoot, origins + 1);
  const auto inner = tree.add(a.node, origins + 1);
  EXPECT_TRUE(inner.fresh) << "the same function elsewhere in the tree is another node";
  const auto again = tree.add(InlineTree::kRoot, origins);
  EXPECT_EQ(again.node, a.node);
  EXPECT_FALSE(again.fresh);
  tree.record(a.node).line = 1;
  tree.record(b.node).line = 2;
  tree.record(inner.node).line = 3;
  std::vector<ImageInlined> flat;
  tree.flatten(flat);
  ASSERT_EQ(flat.size(), 3U);
  EXPECT_EQ(flat[0].line, 1U);
  EXPECT_EQ(flat[0].copies, 2U);
  EXPECT_EQ(flat[1].line, 3U);
  EXPECT_EQ(flat[1].depth, 2U);
  EXPECT_EQ(flat[2].line, 2U);
  for (std::size_t i = 2; tree.add(InlineTree::kRoot, origins + i).node != InlineTree::kNowhere; ++i) {
    ASSERT_LE(i, InlineTree::kMaxNodes);
  }
  flat.clear();
  tree.flatten(flat);
  EXPECT_EQ(flat.size(), InlineTree::kMaxNodes);
}

TEST(Inlined, ReachesTheModelByFunctionIdWithMappedPaths) {
  const auto table = load_fixture("inlined_O2");
  reader::Process process;
  process.modules.resize(1);
  process.modules[0].path = fixture("inlined_O2");
  process.modules[0].build_id = table.build_id();
  process.functions.resize(8);
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table.at(i).name != "holder(int volatile*)") continue;
    for (const std::uint32_t id : {5U, 7U}) {
      process.functions[id].id = id;
      process.functions[id].address = table.at(i).begin;
    }
  }
  process.functions[7].filtered = true;
  ResolveOptions options;
  options.cache = Cache();
  options.map_paths = {*PathMapping::parse(std::string(KARST_FIXTURE_SOURCES) + "=/elsewhere")};
  EXPECT_TRUE(resolve(process, options).problems.empty());
  EXPECT_TRUE(process.inlined.of(7).empty()) << "left out by a filter: it will not occur";
  EXPECT_TRUE(process.inlined.of(4).empty());
  const auto inlined = process.inlined.of(5);
  ASSERT_EQ(inlined.size(), 4U);
  EXPECT_EQ(process.inlined.text(inlined[1].name), "deep::inmost(int volatile*)");
  EXPECT_EQ(inlined[1].depth, 2U);
  EXPECT_EQ(process.inlined.text(inlined[1].file), "/elsewhere/inlined.cc");
  EXPECT_EQ(process.inlined.text(inlined[1].call_file), "/elsewhere/inlined.cc");
  EXPECT_EQ(inlined[3].copies, 2U);
}

TEST(Inlined, AnImageThatNamesInlinedFunctionsOutsideOfItIsRefused) {
  const auto image = [](auto change) {
    ImageBuilder builder;
    ImageRow row{};
    row.end = 16;
    row.inlined_count = 1;
    ImageInlined inlined{};
    inlined.depth = 1;
    inlined.copies = 1;
    change(row, inlined);
    builder.add_row(row);
    builder.inlined().push_back(inlined);
    auto made = builder.finish("id", 0);
    return SymbolTable::from_image(std::move(made->bytes), made->size).ok();
  };
  EXPECT_TRUE(image([](ImageRow&, ImageInlined&) {}));
  EXPECT_FALSE(image([](ImageRow& row, ImageInlined&) { row.inlined_count = 2; }));
  EXPECT_FALSE(image([](ImageRow& row, ImageInlined&) { row.inlined_first = 0xffffffffU; }));
  EXPECT_FALSE(image([](ImageRow&, ImageInlined& inlined) { inlined.name = 1; }));
  EXPECT_FALSE(image([](ImageRow&, ImageInlined& inlined) { inlined.call_file = 99; }));
  EXPECT_FALSE(image([](ImageRow&, ImageInlined& inlined) { inlined.depth = 0; }));
}

}  // namespace
}  // namespace karst::symbols
