// SPDX-License-Identifier: MIT
#include "export/firefox_tables.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <array>

namespace karst::exporting::firefox {
namespace {

constexpr int kTracedCall = 1;  // among the profile's categories
constexpr int kLibrary = 1;     // of resources' types

/// A table of that many rows, of columns that are made one after the other.
class Table {
 public:
  Table(Json& json, Output& output, const char* name, std::size_t rows) : json_(json), output_(output), rows_(rows) {
    json_.line().key(name).open('{').field("length", rows);
  }
  ~Table() { json_.close('}').flush(output_); }
  Table(Table&&) = delete;

  /// `value(i)`: JSON of each row.
  template <typename Value>
  void column(const char* name, Value value) {
    json_.line().key(name).open('[');
    for (std::size_t i = 0; i < rows_; ++i) {
      json_.raw(value(i));
      if ((i & 0xfffU) == 0) json_.flush(output_);
    }
    json_.close(']').flush(output_);
  }
  void same(const char* name, const char* json) {
    column(name, [json](std::size_t) { return json; });
  }

 private:
  Json& json_;
  Output& output_;
  const std::size_t rows_;
};

std::string text_of(std::size_t number) { return fmt::format(FMT_COMPILE("{}"), number); }

/// A place in another table, which has -1 for none.
std::string place_or(std::int64_t place, const char* none) {
  return place < 0 ? none : text_of(static_cast<std::size_t>(place));
}

}  // namespace

char* put_ms(char* to, std::uint64_t ns) {
  return fmt::format_to(to, FMT_COMPILE("{}.{:06}"), ns / 1'000'000, ns % 1'000'000);
}

std::string ms(std::uint64_t ns) {
  std::array<char, 32> text;
  return {text.data(), put_ms(text.data(), ns)};
}

std::size_t Texts::of(std::string_view text) {
  const auto [at, fresh] = places_.try_emplace(std::string(text), texts_.size());
  if (fresh) texts_.emplace_back(text);
  return at->second;
}

void write_tables(Json& json, Output& output, const analysis::FunctionList& functions, const columns::FlameTree& stacks,
                  Texts& texts) {
  const std::vector<analysis::FunctionInfo>& all = functions.functions();
  const std::size_t others = all.size();  // the last one
  const auto line_of = [&](std::size_t i) { return i == others || all[i].line == 0 ? "null" : text_of(all[i].line); };
  {
    Table table(json, output, "funcTable", others + 1);
    table.column("name", [&](std::size_t i) {
      return text_of(texts.of(i == others ? "(more stacks than can be told apart)" : std::string_view(all[i].name)));
    });
    table.column("resource", [&](std::size_t i) { return place_or(i == others ? -1 : all[i].module, "-1"); });
    table.column("source", [&](std::size_t i) { return place_or(i == others ? -1 : all[i].file, "null"); });
    table.column("lineNumber", line_of);
    table.same("columnNumber", "null");
    table.same("isJS", "false");
    table.same("relevantForJS", "false");
  }
  {
    Table table(json, output, "frameTable", others + 1);
    table.column("func", text_of);
    table.column("line", line_of);
    table.same("address", "-1");
    table.same("inlineDepth", "0");
    table.column("category", [](std::size_t) { return text_of(kTracedCall); });
    table.same("subcategory", "0");
    for (const char* const none : {"nativeSymbol", "innerWindowID", "column"}) table.same(none, "null");
  }
  {
    const auto& nodes = stacks.nodes();
    Table table(json, output, "stackTable", nodes.size() - 1);
    table.column("frame", [&](std::size_t i) {
      const std::uint32_t function = nodes[i + 1].function;
      return text_of(function == columns::FlameTree::kOther ? others : function);
    });
    table.column("prefix", [&](std::size_t i) { return place_or(std::int64_t{nodes[i + 1].parent} - 1, "null"); });
  }
  {
    Table table(json, output, "resourceTable", functions.modules().size());
    table.column("name", [&](std::size_t i) {
      const std::string& path = functions.modules()[i];
      return text_of(texts.of(std::string_view(path).substr(path.rfind('/') + 1)));
    });
    table.column("type", [](std::size_t) { return text_of(kLibrary); });
    table.same("lib", "null");
    table.same("host", "null");
  }
  {
    Table table(json, output, "sources", functions.files().size());
    table.column("filename", [&](std::size_t i) { return text_of(texts.of(functions.files()[i])); });
    table.same("uuid", "null");
  }
  {
    Table table(json, output, "nativeSymbols", 0);
    for (const char* const name : {"libIndex", "address", "name", "functionSize"}) table.same(name, "null");
  }
  json.line().list("stringArray", texts.all(), [](const std::string& text) { return std::string_view(text); });
}

}  // namespace karst::exporting::firefox
