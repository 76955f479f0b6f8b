// page/src/backend/protocol.ts against the headers that say the same in C++: the page has no number of its own.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "engine/api/relations.h"
#include "engine/protocol.h"
#include "format/note_kinds.h"
#include "reader/model.h"

namespace karst::test {
namespace {

const std::string kFile = std::string(KARST_SOURCE_DIR) + "/page/src/backend/protocol.ts";

std::string constants() {
  std::string text =
      "// What the page shares with engine/protocol.h, reader/model.h and format/note_kinds.h. Made of them by "
      "docs_test,\n"
      "// which fails when they differ; KARST_RENEW=1 build/bin/docs_test --gtest_filter='PageConstants.*' writes this "
      "file\n"
      "// anew.\n";
  const auto add = [&text](const char* name, const std::string& value, const char* meaning) {
    text += fmt::format("\n/** {} */\nexport const {} = {};\n", meaning, name, value);
  };
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  const auto hex = [](std::uint64_t value) { return fmt::format("{:#x}", value); };
  add("PROTOCOL_VERSION", number(engine::kProtocolVersion), "Of all answers; the page refuses others.");
  add("TILES_MAGIC", hex(engine::kTilesMagic), "First word of tiles.");
  add("MINIMAP_MAGIC", hex(engine::kMinimapMagic), "First word of a minimap.");
  add("kNoParent", hex(reader::kNoParent), "In a column of parents: none.");
  add("kOpenBegin", number(reader::kCallOpenBegin), "Flag of a call: its begin is not known.");
  add("kOpenEnd", number(reader::kCallOpenEnd), "Flag of a call: its end is not known.");
  add("kUnwound", number(reader::kCallUnwound), "Flag of a call: an exception ended it.");
  add("kJumped", number(reader::kCallJumped), "Flag of a call: a longjmp ended it.");
  add("kTailCall", number(reader::kCallTail), "Flag of a call: a tail call ended it.");
  add("kResumed", number(reader::kCallResumed), "Flag of a call: it goes on, on a stack that came back.");
  add("kInherited", number(reader::kCallInherited), "Flag of a call: it was open when its process was forked.");
  add("kSummed", number(engine::kSliceSummed), "Flag of a slice: it stands for several calls.");
  add("kLeft", number(reader::kCallLeft),
      "Both bits: a tail call's jump left the call; what that called is beside it.");
  add("kCut", number(reader::kCallCut), "Both bits: the call's function was switched off while it ran.");
  std::string groups = "[\n";
  for (const char* word : format::kNoteGroupWords) groups += fmt::format("  \"{}\",\n", word);
  add("NOTE_GROUPS", groups + "] as const", "What people choose among in a list of notes.");
  return text;
}

std::string in_capitals(std::string_view key, bool first) {
  std::string name;
  for (bool next = first; const char c : key) {
    if (c == '_' || c == '-') {
      next = true;
      continue;
    }
    name += next ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    next = false;
  }
  return name;
}

/// What a value is on the page, and the name of what reads it (page/src/backend/rows.ts).
std::pair<std::string, std::string> page_type(answers::Type type) {
  switch (type) {
    case answers::Type::kFlag:
      return {"boolean", "flag"};
    case answers::Type::kText:
    case answers::Type::kId:
      return {"string", "text"};
    case answers::Type::kFunction:
    case answers::Type::kThread:
    case answers::Type::kProcess:
      return {"number", "place"};
    default:
      return {"number", "num"};
  }
}

/// The same of rows within a row.
std::pair<std::string, std::string> page_rows(const answers::Field& field) {
  if (field.inner == answers::Inner::kValues) {
    const auto [of, reads] = page_type(field.rows->fields.front().type);
    return {of + "[]", fmt::format("list({})", reads)};
  }
  const std::string one = in_capitals(field.rows->one, true), all = in_capitals(field.rows->name, false);
  if (field.inner == answers::Inner::kRow) return {one + " | null", fmt::format("rowIn(() => {})", all)};
  return {one + "[]", fmt::format("rowsIn(() => {})", all)};
}

std::string meaning(const answers::Field& field) {
  std::string text = field.sentence;
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  if (field.type == answers::Type::kFunction) text += ": in TraceInfo.functions; -1: none";
  if (field.type == answers::Type::kThread) text += ": in TraceInfo.threads; -1: not known";
  if (field.type == answers::Type::kProcess) text += ": in TraceInfo.processes";
  return text + ".";
}

/// The page's type of a row, and under which name each of its fields stands: its key in the page's own answers, its
/// name in JSON for programs.
std::string rows_of(const answers::Relation& relation, std::string answers::Field::*name_of) {
  const std::string type = in_capitals(relation.one, true);
  std::string columns;
  std::string text = fmt::format("\n/** {}. */\nexport interface {} {{\n", relation.sentence, type);
  for (const answers::Field& field : relation.fields) {
    const auto [of, reads] = field.type == answers::Type::kRows ? page_rows(field) : page_type(field.type);
    const std::string name = in_capitals(field.key, false);
    text += fmt::format("  /** {} */\n  {}: {}{};\n", meaning(field), name, of, field.may_lack ? " | null" : "");
    columns += fmt::format("  {}: [\"{}\", {}],\n", name, field.*name_of,
                           field.may_lack ? fmt::format("maybe({})", reads) : reads);
  }
  return text + fmt::format("}}\n\nexport const {}: Columns<{}> = {{\n{}}};\n", in_capitals(relation.name, false), type,
                            columns);
}

std::string rows_of_answers() {
  std::string text =
      "// Rows of Karst's answers. Made of their declarations (engine/api/relations.h) by docs_test, which fails when "
      "they differ;\n"
      "// KARST_RENEW=1 build/bin/docs_test --gtest_filter='PageConstants.*' writes this file anew. Times are ns.\n"
      "import { flag, list, maybe, num, place, rowIn, rowsIn, text, type Columns } from \"./rows\";\n";
  for (const answers::Relation* relation : engine::relations_of_page())
    text += rows_of(*relation, &answers::Field::key);
  for (const answers::Relation* relation : engine::relations_of_programs())
    text += rows_of(*relation, &answers::Field::name);
  return text;
}

/// The file has this text; it gets it where that is asked for.
void expect_file(const std::string& path, const std::string& made) {
  if (std::getenv("KARST_RENEW") != nullptr) std::ofstream(path) << made;
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), made);
}

TEST(PageConstants, AreThoseOfTheHeaders) { expect_file(kFile, constants()); }

TEST(PageConstants, RowsAreThoseOfTheAnswers) {
  expect_file(std::string(KARST_SOURCE_DIR) + "/page/src/backend/answers.ts", rows_of_answers());
}

}  // namespace
}  // namespace karst::test
