// SPDX-License-Identifier: MIT
// What calls were given and what they returned, where a trace has it (format/values.h), ready to be shown.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/note.h"
#include "reader/model.h"
#include "reader/trace.h"

namespace karst::analysis {

/// One value. `name` is empty for a returned one that is no structure.
struct Value {
  std::string name;
  std::string text;  ///< as in C++: 7, 0x1f, true, RED, "text"; <unreadable>, <optimized out>, <not shown>, <cut>
};

/// The values in a note of arguments or of returned values, by its function's description. Bytes of the program's that
/// are not printable are escaped. Without a description: nothing.
std::vector<Value> values_in(const reader::Trace& trace, const reader::Thread& thread, const reader::Calls& calls,
                             const reader::Note& note);
/// The same by the description alone: reader::Function::values of the function, and the note's bytes.
std::vector<Value> values_in(std::string_view description, format::NoteKind kind, std::string_view bytes);
/// What a record says beside its name: `(size=24) = 0x5555`. Empty: it is torn.
std::string record_text(std::string_view description, std::string_view bytes);
/// A record's numbers. There are many records, so this takes no memory of the heap.
class RecordNumbers {
 public:
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  /// 0 behind the last one.
  std::uint64_t operator[](std::size_t i) const { return i < count_ ? numbers_[i] : 0; }
  /// False: there is no room.
  bool add(std::uint64_t number) {
    if (count_ == numbers_.size()) return false;
    numbers_[count_++] = number;
    return true;
  }

 private:
  std::array<std::uint64_t, 8> numbers_{};  // more than any record has
  std::size_t count_ = 0;
};
/// Empty: it is torn, or has other values.
RecordNumbers record_numbers(std::string_view bytes);
/// Ticks of the call that Note::row is that went by for tracing: the kernel read values for the note, or the note says
/// what else took so long. 0: it says nothing of that.
std::uint64_t ticks_of_tracing(const reader::Calls& calls, const reader::Note& note);
/// `n=7, path="/tmp"`
std::string values_text(const std::vector<Value>& values);

/// The number that a value's text is, or the size of what it shows as `[3]`; nothing for an address and other texts.
std::optional<double> number_in(std::string_view text);

/// Names of the function's arguments that were asked for.
std::vector<std::string> argument_names(const reader::Function& function);
/// Whether what the function returns was asked for.
bool has_returned(const reader::Function& function);

/// Names and texts: of arguments, and "returned", or "returned NAME".
using NamedValues = std::vector<std::pair<std::string, std::string>>;

/// Which note has the values of which call, of one thread. The calls and their notes must outlive it.
class CallValues {
 public:
  explicit CallValues(const reader::Calls& calls);

  const reader::Calls& calls() const { return calls_; }
  bool empty() const { return arguments_.empty() && returned_.empty(); }
  std::size_t bytes() const { return (arguments_.capacity() + returned_.capacity()) * sizeof(Rows::value_type); }
  /// Null: nothing is noted of the call.
  const reader::Note* arguments(std::uint32_t row) const { return find(arguments_, row); }
  const reader::Note* returned(std::uint32_t row) const { return find(returned_, row); }
  /// What is noted of the call; mostly nothing.
  NamedValues named(const reader::Trace& trace, const reader::Thread& thread, std::uint32_t row) const;
  bool has(std::uint32_t row) const { return arguments(row) != nullptr || returned(row) != nullptr; }

 private:
  using Rows = std::vector<std::pair<std::uint32_t, std::uint32_t>>;  // row, number of the note; sorted
  const reader::Note* find(const Rows& rows, std::uint32_t row) const;

  const reader::Calls& calls_;
  Rows arguments_;
  Rows returned_;
};

/// `open(path="/etc/passwd", flags=0) = 3`: the function's name with values in the place of its parameters. The name as
/// it is where there are none.
std::string name_with_values(std::string_view name, const std::vector<Value>& arguments,
                             const std::vector<Value>& returned);
/// The same with what is noted of a call.
std::string name_with_values(std::string_view name, const CallValues& values, const reader::Trace& trace,
                             const reader::Thread& thread, const reader::Calls& calls, std::uint32_t row);

}  // namespace karst::analysis
