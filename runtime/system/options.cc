// SPDX-License-Identifier: MIT
// Reads KARST_OPTIONS by the table. The table's words for people stay out of the library: of each row it has a copy
// without pointers, so that there is nothing to relocate in each traced process.
#include "runtime/system/options.h"

#include "runtime/system/memory.h"
#include "runtime/system/message.h"

namespace karst::runtime {
namespace {

using format::OptionReader;

struct Row {
  char name[20];
  format::OptionKind kind;
  OptionReader reader;
  format::OptionField field;
};

struct Table {
  Row rows[format::kOptionCount];
};

consteval Table without_words() {
  Table table{};
  for (std::size_t i = 0; i < format::kOptionCount; ++i) {
    const format::OptionRow& row = format::kOptionTable[i];
    for (std::size_t at = 0; row.name[at] != '\0'; ++at) table.rows[i].name[at] = row.name[at];
    table.rows[i].kind = row.kind;
    table.rows[i].reader = row.reader;
    table.rows[i].field = row.field;
  }
  return table;
}

constexpr Table kTable = without_words();

const Row* find(const char* name) {
  for (const Row& row : kTable.rows)
    if (equal(row.name, name)) return &row;
  return nullptr;
}

/// An entry, unquoted, and cut where nothing of ours is that long: a regular expression for `karst run` may be.
struct Entry {
  char text[256];
  std::size_t size = 0;
  bool is_cut = false;

  Entry(const char* begin, const char* end) {
    format::unquote_entry(begin, end, [this](char c) {
      is_cut = is_cut || size == sizeof text - 1;
      if (!is_cut) text[size++] = c;
    });
    text[size] = '\0';
  }

  /// Ends the name where the value begins, which is returned.
  const char* split() {
    std::size_t at = 0;
    while (at != size && text[at] != '=') ++at;
    if (at == size) return text + at;
    text[at] = '\0';
    return text + at + 1;
  }
};

void say_unknown(const char* name) {
  Message()
      .text("KARST_OPTIONS: unknown option ")
      .text(name, length(name))
      .text(" ignored (known: ")
      .text(format::kRuntimeOptionNames.text)
      .text("; under `karst run` ")
      .text(format::kKarstOptionNames.text)
      .text(")");
}

void read(Options& options, Entry& entry) {
  const char* value = entry.split();
  const Row* row = find(entry.text);
  if (row != nullptr && row->reader == OptionReader::kKarst) {
    if (options.session.name[0] == '\0')
      Message().text("KARST_OPTIONS: ").text(row->name).text(" ignored: it takes effect under `karst run` alone");
  } else if (entry.is_cut) {
    Message().text("KARST_OPTIONS: an entry of more than 255 bytes was ignored");
  } else if (row == nullptr) {
    say_unknown(entry.text);
  } else if (!format::read_value(options, row->kind, row->field, value)) {
    if (const char* needed = format::needed_value(row->kind); *needed != '\0')
      Message()
          .text("KARST_OPTIONS: ")
          .text(row->name)
          .text("=")
          .text(value, length(value))
          .text(" ignored: ")
          .text(needed);
  }
}

}  // namespace

void copy_without_session(char* to, std::size_t size, const char* raw) {
  std::size_t used = 0;
  for (const char* end = raw; *raw != '\0'; raw = *end == ',' ? end + 1 : end) {
    end = format::end_of_entry(raw);
    if (starts_with(raw, "session=")) continue;
    if (used != 0 && used + 1 < size) to[used++] = ',';
    for (const char* p = raw; p != end && used + 1 < size; ++p) to[used++] = *p;
  }
  to[used] = '\0';
}

Options Options::from(char** environment) {
  Options options;
  if (environment == nullptr) return options;
  constexpr char kName[] = "KARST_OPTIONS=";
  for (; *environment != nullptr; ++environment) {
    if (starts_with(*environment, kName)) {
      options.raw = *environment + sizeof kName - 1;
      options.given = true;
      break;
    }
  }
  for (const char* begin = options.raw; *begin != '\0';) {
    const char* end = format::end_of_entry(begin);
    if (Entry entry(begin, end); entry.size != 0) read(options, entry);
    begin = *end == ',' ? end + 1 : end;
  }
  return options;
}

}  // namespace karst::runtime
