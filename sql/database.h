// SPDX-License-Identifier: MIT
// Traces as a database that SQL asks. It is in memory, and reads and writes no file but those it is told of.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sql/api.h"
#include "sql/scan.h"

namespace karst::sql {

struct DatabaseOptions {
  bool allow_files = false;    ///< SQL reads and writes the user's files
  std::string only_file;       ///< the one that it writes all the same; empty: none
  std::string only_directory;  ///< as only_file, with all that is below it
  std::uint64_t memory = 0;    ///< bytes it may use; 0: half of the machine's
};

/// A column of an answer.
struct AnswerColumn {
  enum class Kind : std::uint8_t { kText, kNumber, kFlag, kNested };
  std::string name;
  Kind kind;
};

/// Takes an answer as it comes. Every value is text, as DuckDB writes it: of a number, or flag, as JSON has them, and
/// of lists and structs JSON.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  virtual void columns(const std::vector<AnswerColumn>& columns) = 0;
  /// One for each column, valid until it returns; none: SQL's NULL. False: no more are wanted.
  virtual bool row(const std::vector<std::optional<std::string_view>>& values) = 0;
};

/// Of one thread; it uses several itself.
class Database {
 public:
  /// `sources` outlive it.
  static Result<std::unique_ptr<Database>> open(const duckdb::Api& api, std::vector<Source> sources,
                                                const DatabaseOptions& options);
  ~Database();
  Database(Database&&) = delete;

  /// Runs statements. What the last one answers goes to `sink`; those before it prepare it. Error: in the words of
  /// DuckDB, with the place in `text`.
  Status ask(const std::string& text, AnswerSink& sink);
  /// The same into a file, DatabaseOptions::only_file.
  Status write_parquet(const std::string& text, const std::string& path);
  /// Ends what is asked: it returns an error. From another thread, or from a signal handler.
  void interrupt();
  /// How far it is, 0 to 100: of the calls that are read, or of what DuckDB does without any. None: nobody knows. From
  /// another thread.
  std::optional<double> percent() const;
  /// All tables, each into a file NAME.parquet in DatabaseOptions::only_directory. Calls are a directory, with a part
  /// for each process.
  Status write_all_parquet();

 private:
  struct Impl;
  explicit Database(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The last of several statements, without its semicolon. Semicolons in texts, names and comments end none.
std::string_view last_statement(std::string_view text);
/// Whether a semicolon ends the last of them, so that nothing more is to come.
bool is_ended(std::string_view text);

}  // namespace karst::sql
