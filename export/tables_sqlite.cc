// SPDX-License-Identifier: MIT
// All tables in one database of SQLite. The text that makes a table says what each column is, so that `.schema` of the
// sqlite3 command tells. All is one transaction without a journal: the file gets its name when it is whole, or is gone.
#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answers/ready_names.h"
#include "base/new_file.h"
#include "base/output_place.h"
#include "base/utf8.h"
#include "export/tables.h"
#include "sql/columns.h"
#include "sql/gathered.h"
#include "sql/tables.h"

namespace karst::exporting {
namespace {

using sql::Column;

constexpr const char* kVfs = "karst";
constexpr std::string_view kDescriptors = "/proc/self/fd/";

/// The path is a descriptor's, and its file has no name yet: SQLite's own way to a full path would look for one.
int path_as_it_is(sqlite3_vfs* /*vfs*/, const char* path, int room, char* full) {
  return sqlite3_snprintf(room, full, "%s", path) == nullptr ? SQLITE_CANTOPEN : SQLITE_OK;
}

/// SQLite opens nothing that is a link, as a descriptor's path is.
int open_descriptor(const char* path, int flags, int mode) {
  if (!std::string_view(path).starts_with(kDescriptors)) return ::open(path, flags, mode);
  return ::fcntl(std::atoi(path + kDescriptors.size()), F_DUPFD_CLOEXEC, 3);
}

int add_vfs() {
  static sqlite3_vfs vfs = [] {
    sqlite3_vfs made = *sqlite3_vfs_find("unix-none");  // nobody else has the file: no locks
    made.zName = kVfs;
    made.xFullPathname = path_as_it_is;
    return made;
  }();
  const auto open = reinterpret_cast<sqlite3_syscall_ptr>(open_descriptor);
  const int set = vfs.xSetSystemCall(&vfs, "open", open);
  return set == SQLITE_OK ? sqlite3_vfs_register(&vfs, 0) : set;
}

class Database {
 public:
  explicit Database(const std::string& path) {
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    // One thread uses it: locks and statistics of its memory would be a tenth of the time.
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    if (sqlite3_initialize() != SQLITE_OK || add_vfs() != SQLITE_OK ||
        sqlite3_open_v2(path.c_str(), &handle_, flags, kVfs) != SQLITE_OK)
      failed_ = true;
  }
  ~Database() { sqlite3_close(handle_); }
  Database(Database&&) = delete;

  sqlite3* handle() const { return handle_; }
  Status run(const std::string& text) {
    if (failed_ || sqlite3_exec(handle_, text.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return error();
    return Unit{};
  }
  Error error() const {
    const int os = handle_ == nullptr ? 0 : sqlite3_system_errno(handle_);
    return {fmt::format("{}{}{}", handle_ == nullptr ? "SQLite does not start" : sqlite3_errmsg(handle_),
                        os == 0 ? "" : ": ", os == 0 ? "" : std::strerror(os))};
  }
  Status close() {
    if (sqlite3_close(handle_) != SQLITE_OK) return error();
    handle_ = nullptr;
    return Unit{};
  }

 private:
  sqlite3* handle_ = nullptr;
  bool failed_ = false;
};

/// Without a type a number of 64 bits without sign may stand as text: SQLite has none of these.
const char* type_of(const Column& column) {
  switch (column.type) {
    case sql::duckdb::kVarchar:
      return " TEXT";
    case sql::duckdb::kDouble:
      return " REAL";
    case sql::duckdb::kUBigInt:
      return "";
    default:
      return " INTEGER";
  }
}

std::string quoted_name(std::string_view name) {
  std::string made = "\"";
  for (const char c : name) made.append(c == '"' ? 2 : 1, c);
  return made + "\"";
}

/// The call's number is SQLite's own number of the row, so that calls are found by it at once.
std::string making(const answers::Relation& relation, const std::vector<Column>& columns) {
  std::string text = fmt::format("CREATE TABLE {} ( -- {}", quoted_name(relation.name), relation.sentence);
  for (std::size_t at = 0; at < columns.size(); ++at) {
    const Column& column = columns[at];
    const bool is_key = column.name == "id" && column.type == sql::duckdb::kBigInt && at == 0;
    text += fmt::format("\n  {}{}{}{} -- {}", quoted_name(column.name), type_of(column), is_key ? " PRIMARY KEY" : "",
                        at + 1 == columns.size() ? "" : ",", column.sentence);
  }
  return text + "\n)";
}

std::string inserting(const answers::Relation& relation, std::size_t columns) {
  std::string places = "?";
  for (std::size_t at = 1; at < columns; ++at) places += ",?";
  return fmt::format("INSERT INTO {} VALUES ({})", quoted_name(relation.name), places);
}

bool is_plain(std::string_view text) {
  unsigned char all = 0;
  for (const char c : text) all |= static_cast<unsigned char>(c);
  return all < 0x80;
}

/// Puts rows of one table into it.
class RowWriter final : answers::Sink {
 public:
  RowWriter(Database& database, const reader::Trace& trace, const answers::Relation& relation, std::size_t columns)
      : database_(database), trace_(trace), relation_(relation), names_(&trace, valid_utf8), texts_(columns) {
    const std::string text = inserting(relation, columns);
    sqlite3_prepare_v2(database.handle(), text.c_str(), -1, &statement_, nullptr);
  }
  ~RowWriter() { sqlite3_finalize(statement_); }
  RowWriter(RowWriter&&) = delete;

  bool row(const void* row) {
    at_ = 0;
    for (const answers::Field& field : relation_.fields) {
      if (field.type == answers::Type::kRows) continue;
      field_ = &field;
      field.put(row, *this);
    }
    is_ok_ = statement_ != nullptr && sqlite3_step(statement_) == SQLITE_DONE;
    return is_ok_ && sqlite3_reset(statement_) == SQLITE_OK;
  }
  Status status() const {
    if (!is_ok_) return database_.error();
    return Unit{};
  }

 private:
  void none() override {
    sqlite3_bind_null(statement_, ++at_);
    if (field_->type == answers::Type::kThread) sqlite3_bind_null(statement_, ++at_);
  }
  void flag(bool flag) override { sqlite3_bind_int(statement_, ++at_, flag ? 1 : 0); }
  void whole(std::uint64_t number) override {
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
    if (number <= kMost) return this->number(static_cast<std::int64_t>(number));
    if (field_->type == answers::Type::kId) return text(fmt::format("{}", number));
    this->number(static_cast<std::int64_t>(kMost));
  }
  void number(std::int64_t number) override { sqlite3_bind_int64(statement_, ++at_, number); }
  void real(double number) override { sqlite3_bind_double(statement_, ++at_, number); }
  /// SQLite looks at it when the row is whole.
  void text(std::string_view text) override {
    std::string& kept = texts_[static_cast<std::size_t>(at_)];
    if (is_plain(text))
      kept.assign(text);
    else
      kept = valid_utf8(text);
    bind(kept);
  }
  void function(answers::FunctionRef ref) override {
    if (ref.function == 0) return none();
    bind(names_.of(trace_.processes()[ref.process], ref.function));
  }
  void thread(answers::ThreadRef ref) override {
    if (ref.thread == nullptr) return none();
    number(ref.thread->tid);
    text(ref.thread->name);
  }
  void process(answers::ProcessRef ref) override { number(trace_.processes()[ref.process].pid); }

  void bind(const std::string& kept) {
    sqlite3_bind_text64(statement_, ++at_, kept.data(), kept.size(), SQLITE_STATIC, SQLITE_UTF8);
  }

  Database& database_;
  const reader::Trace& trace_;
  const answers::Relation& relation_;
  answers::ReadyNames names_;
  std::vector<std::string> texts_;  // of the row, by column
  sqlite3_stmt* statement_ = nullptr;
  const answers::Field* field_ = nullptr;
  int at_ = 0;
  bool is_ok_ = true;
};

Status write_table(Database& database, sql::Gathered& gathered, const sql::Table& table) {
  const std::vector<Column> columns = sql::columns_of(*table.relation, false);
  if (Status made = database.run(making(*table.relation, columns)); !made) return made;
  RowWriter writer(database, gathered.source().trace, *table.relation, columns.size());
  sql::each_row(table, gathered, [&](const void* row) { return writer.row(row); });
  return writer.status();
}

Status write_all(const sql::Source& source, const std::string& path) {
  Database database(path);
  if (Status begun = database.run("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY;"
                                  "PRAGMA page_size = 16384; BEGIN");
      !begun)
    return begun;
  sql::Gathered gathered(source);
  gathered.by_the_way(sql::tables());
  for (const sql::Table& table : sql::tables())
    if (const Status written = write_table(database, gathered, table); !written)
      return Error{fmt::format("table {}: {}", table.relation->name, written.error().message)};
  if (Status ended = database.run("COMMIT"); !ended) return ended;
  return database.close();
}

}  // namespace

Status export_sqlite(const sql::Source& source, const std::filesystem::path& path) {
  const auto refuse = [&path](const std::string& why) {
    return Error{fmt::format("cannot write {}: {}", path.string(), why)};
  };
  auto place = OutputPlace::find(path);
  if (!place) return refuse(place.error().message);
  using There = OutputPlace::There;
  if (place->there() != There::kNothing && place->there() != There::kFile) return refuse("SQLite needs a file");
  auto file = NewFile::create(place->directory(), place->name());
  if (!file) return refuse(file.error().message);
  if (const Status written = write_all(source, fmt::format("{}{}", kDescriptors, file->descriptor())); !written)
    return refuse(written.error().message);
  file->take_usual_mode();
  int error = file->settle();
  if (error == 0) error = file->replace(place->name());
  if (error != 0) return refuse(std::strerror(error));
  return Unit{};
}

}  // namespace karst::exporting
