// SPDX-License-Identifier: MIT
// Answers for programs: CSV (RFC 4180, with a line feed alone behind each line) and JSON, of any relation.
//
// Both have the same names: Field::name. What is not known is an empty field in CSV, and missing in JSON. CSV has
// all fields but those that hold rows. A relation without functions, threads and processes needs no trace.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "answers/ready_names.h"
#include "answers/relation.h"
#include "base/json.h"
#include "base/output.h"
#include "reader/trace.h"

namespace karst::answers {

/// `text` in quotes; control characters are escaped as in text for people.
std::string csv_field(std::string_view text);

/// Writes the head when it is made, then a line for each row. Use from one thread.
class Csv final : Sink {
 public:
  /// All must outlive it; null: there is no trace.
  Csv(const reader::Trace* trace, const Relation& relation, Output& output);
  Csv(const reader::Trace& trace, const Relation& relation, Output& output) : Csv(&trace, relation, output) {}
  void row(const void* row);

 private:
  /// The latest one's id and name: many rows are of one thread.
  struct ReadyThread {
    const reader::Thread* thread = nullptr;
    std::string text = {};
  };

  void none() override;
  void flag(bool flag) override;
  void whole(std::uint64_t number) override;
  void number(std::int64_t number) override;
  void real(double number) override;
  void text(std::string_view text) override;
  void function(FunctionRef ref) override;
  void thread(ThreadRef ref) override;
  void process(ProcessRef ref) override;

  void take_room();
  void put(std::string_view text);
  void spill(std::string_view text);
  template <typename Number>
  void put_number(Number number);

  const reader::Trace* trace_;
  Output& output_;
  ReadyNames names_;
  ReadyThread thread_;
  std::vector<const Field*> fields_;  // that have a column
  const Field* field_ = nullptr;      // the one that is written
  char* begin_ = nullptr;             // room in the output
  char* texts_end_ = nullptr;         // of what texts may take of it
  char* at_ = nullptr;                // what is written of the row so far ends here
};

/// The fields of a row, into an object that is open. Rows that have rows themselves stand on lines of their own.
void write_fields(Json& json, const reader::Trace* trace, const Relation& relation, const void* row);
inline void write_fields(Json& json, const reader::Trace& trace, const Relation& relation, const void* row) {
  write_fields(json, &trace, relation, row);
}

/// A row on a line of its own, as an object in a list that is open.
void write_row(Json& json, const reader::Trace* trace, const Relation& relation, const void* row);
inline void write_row(Json& json, const reader::Trace& trace, const Relation& relation, const void* row) {
  write_row(json, &trace, relation, row);
}

}  // namespace karst::answers
