// SPDX-License-Identifier: MIT
#include "answers/files.h"

#include <initializer_list>

namespace karst::answers {
namespace {

using analysis::FileSums;

template <typename Row>
void add_sums(std::vector<Field>& fields) {
  const auto number = [&fields](const char* key, Type type, const char* sentence, std::uint64_t FileSums::*of) {
    fields.push_back(field<Row>(key, type, sentence, [of](const Row& r) { return r.sums().*of; }));
  };
  const auto time = [&fields](const char* key, const char* sentence, std::uint64_t FileSums::*of) {
    fields.push_back(
        field<Row>(key, Type::kDuration, sentence, [of](const Row& r) { return r.facts.times.ns(r.sums().*of); }));
  };
  number("calls", Type::kCount, "how many there were", &FileSums::calls);
  number("errors", Type::kCount, "how many of them failed", &FileSums::errors);
  number("read", Type::kBytes, "what they read", &FileSums::read);
  number("written", Type::kBytes, "what they wrote", &FileSums::written);
  time("total", "how long they took together", &FileSums::total);
  time("longest", "how long the longest took", &FileSums::longest);
}

std::string_view function_name(const FileFacts& facts, std::uint32_t process, std::uint32_t function) {
  if (function == 0) return {};
  return facts.trace.function(facts.trace.processes()[process], function).name;
}

Field kind_of_use() {
  return field<FileUseRow>("call", Type::kText, "which function of libc's was called",
                           [](const FileUseRow& r) { return function_name(r.facts, r.of.process, r.of.zone); });
}

/// `called`: what the rows are of. `uses`: the relation of theirs.
Relation groups(std::string name, std::string one, std::string sentence, Field called, const Relation& uses) {
  Relation relation{std::move(name), std::move(one), std::move(sentence), {}};
  relation.fields.push_back(std::move(called));
  add_sums<FileRow>(relation.fields);
  relation.fields.push_back(rows<FileRow>("calls_by", "its calls, by what made them and to what", uses,
                                          [](const FileRow& r, const UseRow& use) {
                                            for (const analysis::FileUse& each : r.of.uses) {
                                              const FileUseRow row{r.facts, each};
                                              use(&row);
                                            }
                                          }));
  relation.fields.push_back(field<FileRow>("longest_call", Type::kText, "which function of libc's took longest",
                                           [](const FileRow& r) { return r.of.longest_call; }));
  return relation;
}

}  // namespace

const Relation& file_calls() {
  using Row = FileCallRow;
  static const Relation relation{
      "file_calls",
      "file_call",
      "A row for each call to a file or socket, thread by thread in order of begin",
      {field<Row>("begin", Type::kTime, "after the trace's first event",
                  [](const Row& r) { return r.facts.times.since_start(r.of.begin); }),
       field<Row>("duration", Type::kDuration, "how long it took",
                  [](const Row& r) { return r.facts.times.ns(r.of.duration); }),
       field<Row>("open", Type::kFlag, "whether its begin or its end is not known",
                  [](const Row& r) { return r.of.open; }),
       field<Row>("call", Type::kText, "which function of libc's was called",
                  [](const Row& r) { return function_name(r.facts, r.of.thread->process, r.of.zone); }),
       field<Row>("file", Type::kText, "its path, or a socket's other end",
                  [](const Row& r) -> const std::string& { return r.facts.files.name(r.of.file); }),
       field_if_known<Row>("fd", Type::kNumber, "its descriptor", [](const Row& r) { return r.of.fd; }),
       field<Row>("read", Type::kBytes, "what was read", [](const Row& r) { return r.of.read; }),
       field<Row>("written", Type::kBytes, "what was written", [](const Row& r) { return r.of.written; }),
       field_if_known<Row>(
           "result", Type::kNumber, "what it returned, -1 of one that failed",
           [](const Row& r) { return r.of.error.empty() ? value_of(r.of.result) : value_of(std::int64_t{-1}); }),
       field<Row>("error", Type::kText, "why it failed, as EAGAIN; empty: it did not, or that is not known",
                  [](const Row& r) -> const std::string& { return r.of.error; }),
       field<Row>("process", Type::kProcess, "of its thread",
                  [](const Row& r) { return ProcessRef{r.of.thread->process}; }),
       field<Row>("thread", Type::kThread, "that made it", [](const Row& r) { return ThreadRef{r.of.thread}; }),
       field<Row>("function", Type::kFunction, "the traced function that made it", [](const Row& r) {
         return FunctionRef{r.of.thread->process, r.of.caller};
       })}};
  return relation;
}

const Relation& file_uses() {
  static const Relation relation = [] {
    Relation made{"file_uses", "file_use", "A row for each function that called, and what it called", {}};
    made.fields.push_back(kind_of_use());
    add_sums<FileUseRow>(made.fields);
    made.fields.push_back(
        field<FileUseRow>("function", Type::kFunction, "the traced function that called", [](const FileUseRow& r) {
          return FunctionRef{r.of.process, r.of.caller};
        }));
    return made;
  }();
  return relation;
}

const Relation& files_of_user() {
  static const Relation relation = [] {
    Relation made{"files_of_user", "file_of_user", "A row for each file, and what was called", {}};
    made.fields.push_back(kind_of_use());
    add_sums<FileUseRow>(made.fields);
    made.fields.push_back(
        field<FileUseRow>("file", Type::kText, "its path, or a socket's other end",
                          [](const FileUseRow& r) -> const std::string& { return r.facts.files.name(r.of.file); }));
    return made;
  }();
  return relation;
}

const Relation& files() {
  static const Relation relation =
      groups("files", "file", "A row for each file, socket and pipe that was used",
             field<FileRow>("file", Type::kText, "its path as the program gave it, or a socket's other end",
                            [](const FileRow& r) -> const std::string& { return r.facts.files.name(r.of.file); }),
             file_uses());
  return relation;
}

const Relation& file_users() {
  static const Relation relation = groups("file_users", "file_user", "A row for each function that used files",
                                          field<FileRow>("function", Type::kFunction, "the traced function that called",
                                                         [](const FileRow& r) {
                                                           return FunctionRef{r.of.process, r.of.caller};
                                                         }),
                                          files_of_user());
  return relation;
}

}  // namespace karst::answers
