// SPDX-License-Identifier: MIT
// An answer of Karst's is a relation: rows of fields, each declared once with its name, its type and a sentence. What
// writes an answer (a table for people, CSV, JSON, the page's columns) knows relations and types, and no answer. An
// answer's file here declares it; analysis/ computes its rows.
//
//   Relation relation{"requests", "request", "A row for each request that the program told of",
//                     {field<RequestRow>("request", Type::kId, "its number", [](const RequestRow& r) { return r.of.id;
//                     }),
//                      ...}};
//
// A relation is declared over a type of row. It is handed rows by address; who does so sees to it that they are of that
// type. Relations and rows may be used by several threads at once.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "reader/trace.h"

namespace karst::answers {

/// What a field's values are. It says how they are written, how they sort, and what stands behind the field's key where
/// programs read it.
enum class Type : std::uint8_t {
  kTime,      ///< ns since the trace's first event (_ns); in order
  kDuration,  ///< ns (_ns)
  kBytes,
  kCount,
  kNumber,  ///< that counts nothing, as a line or a descriptor; in order
  kId,      ///< a number of 64 bits of the program's own; in order
  kShare,   ///< a part of a whole: 0 to 1
  kReal,    ///< a number with a fraction; another field has its unit
  kFlag,
  kText,
  kFunction,  ///< FunctionRef; programs get its name
  kThread,    ///< ThreadRef; programs get its id (_tid) and its name
  kProcess,   ///< ProcessRef; programs get its id (pid)
  kRows,      ///< rows of another relation; JSON alone has them
};

/// A function of a process, by its id there; 0: none.
struct FunctionRef {
  std::uint32_t process;
  std::uint32_t function;
};
struct ThreadRef {
  const reader::Thread* thread;  ///< null: not known
};
/// By its place among the trace's processes.
struct ProcessRef {
  std::uint32_t process;
};

/// What a field holds in a row. The first of all: it is not known, or there is none.
using Value = std::variant<std::monostate, bool, std::uint64_t, std::int64_t, double, std::string_view, std::string,
                           FunctionRef, ThreadRef, ProcessRef>;

template <typename T>
Value value_of(T&& what) {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (std::same_as<Plain, Value>) {
    return std::forward<T>(what);
  } else if constexpr (requires { what.has_value(); }) {  // an optional
    return what ? value_of(*std::forward<T>(what)) : Value();
  } else if constexpr (std::same_as<Plain, bool>) {
    return Value(what);
  } else if constexpr (std::unsigned_integral<Plain>) {
    return Value(std::in_place_type<std::uint64_t>, what);
  } else if constexpr (std::signed_integral<Plain>) {
    return Value(std::in_place_type<std::int64_t>, what);
  } else if constexpr (std::same_as<Plain, std::string> && std::is_lvalue_reference_v<T>) {
    return Value(std::string_view(what));
  } else if constexpr (std::floating_point<Plain>) {
    return Value(std::in_place_type<double>, what);
  } else if constexpr (std::convertible_to<T, const char*>) {
    return Value(std::string_view(what));
  } else {
    return Value(std::forward<T>(what));
  }
}

/// Takes a field's value, for who writes many rows: no Value is made in between.
class Sink {
 public:
  virtual void none() = 0;
  virtual void flag(bool flag) = 0;
  virtual void whole(std::uint64_t number) = 0;
  virtual void number(std::int64_t number) = 0;
  virtual void real(double number) = 0;
  /// Valid until it returns.
  virtual void text(std::string_view text) = 0;
  virtual void function(FunctionRef ref) = 0;
  virtual void thread(ThreadRef ref) = 0;
  virtual void process(ProcessRef ref) = 0;

 protected:
  ~Sink() = default;
};

template <typename T>
void put_value(Sink& sink, const T& what) {
  if constexpr (std::same_as<T, Value>) {
    std::visit([&sink](const auto& value) { put_value(sink, value); }, what);
  } else if constexpr (std::same_as<T, std::monostate>) {
    sink.none();
  } else if constexpr (requires { what.has_value(); }) {  // an optional
    what ? put_value(sink, *what) : sink.none();
  } else if constexpr (std::same_as<T, bool>) {
    sink.flag(what);
  } else if constexpr (std::unsigned_integral<T>) {
    sink.whole(what);
  } else if constexpr (std::signed_integral<T>) {
    sink.number(what);
  } else if constexpr (std::floating_point<T>) {
    sink.real(what);
  } else if constexpr (std::same_as<T, FunctionRef>) {
    sink.function(what);
  } else if constexpr (std::same_as<T, ThreadRef>) {
    sink.thread(what);
  } else if constexpr (std::same_as<T, ProcessRef>) {
    sink.process(what);
  } else {
    sink.text(what);
  }
}

struct Relation;
using UseRow = std::function<void(const void* row)>;

/// What a field of kRows holds.
enum class Inner : std::uint8_t {
  kRows,
  kRow,     ///< one or none: an object of its own
  kValues,  ///< rows of one field, which is all that is written of them
};

/// How people see a field.
struct Look {
  enum class Shown : std::uint8_t {
    kAlways,  ///< where lines have no end, and where they have
    kWide,    ///< where they have none, or where it is asked for
    kAsked,   ///< where it is asked for
  };
  std::string title = {};  ///< above its column; empty: its key
  int rank = 0;            ///< of columns that are too many the highest goes first; 0: never
  Shown shown = Shown::kAlways;
  std::size_t least_width = 0;
  std::size_t most_width = 0;  ///< what is longer is shortened; 0: any
  bool is_name = false;        ///< a text that is shortened as a function's name is
  /// Words of the row in place of the value alone, as "<53 ms" of a call whose begin is not known; null: the value's.
  std::function<std::string(const void* row)> words = {};
  /// Whether a row comes behind all others where they are sorted by this; null: none does.
  std::function<bool(const void* row)> last = {};
};

struct Field {
  std::string key;   ///< for people: --columns and --sort
  std::string name;  ///< for programs: the key with its unit. Of kThread that is its id; its name has the key.
  Type type;
  std::string sentence;  ///< what it is, without its name
  std::function<void(const void* row, Sink& sink)> put = {};
  bool may_lack = false;  ///< its value may be unknown in a row
  Look look = {};
  // Of kRows alone: their relation, and how to come by them.
  Inner inner = Inner::kRows;
  const Relation* rows = nullptr;
  std::function<void(const void* row, const UseRow& use)> each = {};

  Value get(const void* row) const;
};

/// These and, before each, the relations of rows within its rows; each once.
std::vector<const Relation*> with_inner(const std::vector<const Relation*>& relations);

/// Whether its rows hold rows.
bool has_rows(const Relation& relation);

/// What programs call a field.
std::string name_for_programs(const std::string& key, Type type);

struct Relation {
  std::string name;      ///< in the plural
  std::string one;       ///< a row
  std::string sentence;  ///< "A row for each ..."
  std::vector<Field> fields;
  /// What people see behind the last column where lines have no end; null: nothing.
  std::function<std::string(const void* row)> behind = {};
  std::string behind_title = {};  ///< above that
  /// What programs call the list of its rows, where that is not its name.
  std::string listed_as = {};

  /// By its key, or by what stands above its column. Null: there is no such field.
  const Field* find(std::string_view called) const;
};

/// `get(row)` returns what value_of() takes; a text by reference or as a view must outlive the row's use.
template <typename Row, typename Get>
Field field(std::string key, Type type, std::string sentence, Get get, Look look = {}) {
  std::string name = name_for_programs(key, type);
  return {.key = std::move(key),
          .name = std::move(name),
          .type = type,
          .sentence = std::move(sentence),
          .put = [get](const void* row, Sink& sink) { put_value(sink, get(*static_cast<const Row*>(row))); },
          .look = std::move(look)};
}

/// One that some traces cannot know: `get` returns an optional, or a Value.
template <typename Row, typename Get>
Field field_if_known(std::string key, Type type, std::string sentence, Get get, Look look = {}) {
  Field made = field<Row>(std::move(key), type, std::move(sentence), get, std::move(look));
  made.may_lack = true;
  return made;
}

/// A field once more, under the name that it had before, which goes on for a version. Stands before it.
inline Field formerly(std::string was, Field field) {
  field.sentence = "as " + field.key + ", which takes its place";
  field.key = field.name = std::move(was);
  field.look = {.shown = Look::Shown::kAsked, .is_name = field.look.is_name};
  return field;
}

/// For Look::words.
template <typename Row, typename Words>
std::function<std::string(const void*)> words(Words of) {
  return [of](const void* row) { return of(*static_cast<const Row*>(row)); };
}

/// `each(row, use)` calls use(&inner) for rows of `relation`, which must outlive the field.
template <typename Row, typename Each>
Field rows(std::string key, std::string sentence, const Relation& relation, Each each) {
  return {.key = key,
          .name = key,
          .type = Type::kRows,
          .sentence = std::move(sentence),
          .put = [](const void*, Sink& sink) { sink.none(); },
          .look = {.shown = Look::Shown::kAsked},
          .rows = &relation,
          .each = [each](const void* row, const UseRow& use) { each(*static_cast<const Row*>(row), use); }};
}

/// One row or none: `each` calls use() at most once.
template <typename Row, typename Each>
Field row(std::string key, std::string sentence, const Relation& relation, Each each) {
  Field made = rows<Row>(std::move(key), std::move(sentence), relation, each);
  made.inner = Inner::kRow;
  return made;
}

/// Rows of one field of that type: a Value is a row.
const Relation& values_of(Type type);

/// Values of that type: `each(row, use)` calls use() with what value_of() takes.
template <typename Row, typename Each>
Field list(std::string key, Type type, std::string sentence, Each each) {
  Field made =
      rows<Row>(std::move(key), std::move(sentence), values_of(type), [each](const Row& row, const UseRow& use) {
        each(row, [&use]<typename T>(T&& what) {
          const Value value = value_of(std::forward<T>(what));
          use(&value);
        });
      });
  made.inner = Inner::kValues;
  return made;
}

/// `fields`, which are of what `get(row)` gives, as fields of the row.
template <typename Row, typename Get>
std::vector<Field> fields_of(std::vector<Field> fields, Get get) {
  for (Field& field : fields) {
    if (field.put)
      field.put = [get, put = std::move(field.put)](const void* row, Sink& sink) {
        const auto& inner = get(*static_cast<const Row*>(row));
        put(&inner, sink);
      };
    if (field.each)
      field.each = [get, each = std::move(field.each)](const void* row, const UseRow& use) {
        const auto& inner = get(*static_cast<const Row*>(row));
        each(&inner, use);
      };
    if (field.look.words)
      field.look.words = [get, words = std::move(field.look.words)](const void* row) {
        const auto& inner = get(*static_cast<const Row*>(row));
        return words(&inner);
      };
  }
  return fields;
}

/// Those of a relation's fields, by their keys. Requires that it has them.
std::vector<Field> some_of(const Relation& relation, std::initializer_list<std::string_view> keys);

/// Fields together, in this order.
inline std::vector<Field> joined(std::initializer_list<std::vector<Field>> lists) {
  std::vector<Field> all;
  for (const std::vector<Field>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

/// 0 where there is no whole.
inline double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// Whether values of this type go up as they are sorted; the others begin with the greatest.
bool sorts_upwards(Type type);

/// Times of rows: what they are computed in is ticks.
class Times {
 public:
  explicit Times(const reader::Trace& trace);
  /// `start`: ticks that times count from, where the trace is a part of another one.
  Times(const reader::Trace& trace, std::uint64_t start) : trace_(&trace), start_(start) {}
  std::uint64_t ns(std::uint64_t ticks) const { return trace_->clock().to_ns(ticks); }
  /// Since the trace's first event.
  std::uint64_t since_start(std::uint64_t ticks) const { return ticks > start_ ? ns(ticks - start_) : 0; }

 private:
  const reader::Trace* trace_;
  std::uint64_t start_;
};

}  // namespace karst::answers
