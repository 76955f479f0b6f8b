// SPDX-License-Identifier: MIT
#include "sql/columns.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/utf8.h"

namespace karst::sql {
namespace {

using answers::Field;
using answers::Relation;
using Part = Column::Part;

duckdb::Type type_of(answers::Type type) {
  switch (type) {
    case answers::Type::kId:
      return duckdb::kUBigInt;
    case answers::Type::kShare:
    case answers::Type::kReal:
      return duckdb::kDouble;
    case answers::Type::kFlag:
      return duckdb::kBoolean;
    case answers::Type::kText:
    case answers::Type::kFunction:
      return duckdb::kVarchar;
    default:
      return duckdb::kBigInt;
  }
}

bool is_ascii(std::string_view text) {
  unsigned char all = 0;
  for (const char c : text) all |= static_cast<unsigned char>(c);
  return all < 0x80;
}

std::int64_t held(std::uint64_t number) {
  return static_cast<std::int64_t>(std::min(number, std::uint64_t{std::numeric_limits<std::int64_t>::max()}));
}

}  // namespace

std::vector<Column> columns_of(const Relation& relation, bool of_trace) {
  std::vector<Column> columns;
  if (of_trace) columns.push_back({"trace", duckdb::kVarchar, Part::kTrace, 0, "the file that the row is of"});
  for (std::size_t at = 0; at < relation.fields.size(); ++at) {
    const Field& field = relation.fields[at];
    const char* const sentence = field.sentence.c_str();
    if (field.type == answers::Type::kRows) continue;
    if (field.type != answers::Type::kThread) {
      columns.push_back({field.name, type_of(field.type), Part::kWhole, at, sentence});
      continue;
    }
    columns.push_back({field.name, duckdb::kBigInt, Part::kThreadId, at, sentence});
    columns.push_back({field.key, duckdb::kVarchar, Part::kThreadName, at, "its name"});
  }
  return columns;
}

const char* type_name(duckdb::Type type) {
  switch (type) {
    case duckdb::kBoolean:
      return "BOOLEAN";
    case duckdb::kUBigInt:
      return "UBIGINT";
    case duckdb::kDouble:
      return "DOUBLE";
    case duckdb::kVarchar:
      return "VARCHAR";
    default:
      return "BIGINT";
  }
}

Names::Names(const duckdb::Api& api, std::span<const Source> sources) : api_(api) {
  not_known_ = place("(function not known)");
  for (const Source& source : sources) {
    traces_.push_back(place(source.trace.name()));
    auto& of_source = functions_.emplace_back();
    for (const reader::Process& process : source.trace.processes()) {
      auto& of_process = of_source.emplace_back(process.functions.size());
      for (std::uint32_t id = 1; id < of_process.size(); ++id)
        of_process[id] = place(source.trace.function(process, id).name);
      for (const reader::Thread& thread : process.threads) threads_[&thread] = place(thread.name);
    }
  }
  duckdb::Handle text = api_.create_logical_type(duckdb::kVarchar);
  vector_ = api_.create_vector(text, texts_.size());
  api_.destroy_logical_type(&text);
  api_.vector_ensure_validity_writable(vector_);
  api_.vector_get_validity(vector_)[0] &= ~std::uint64_t{1};
  for (std::size_t at = 1; at < texts_.size(); ++at)
    api_.vector_assign_string_element_len(vector_, at, texts_[at].data(), texts_[at].size());
  texts_.clear();
  places_.clear();
}

Names::~Names() { api_.destroy_vector(&vector_); }

std::uint32_t Names::place(std::string name) {
  name = valid_utf8(name);
  const auto [at, fresh] = places_.try_emplace(std::move(name), static_cast<std::uint32_t>(texts_.size()));
  if (fresh) texts_.push_back(at->first);
  return at->second;
}

std::uint32_t Names::function(std::size_t source, answers::FunctionRef ref) const {
  if (ref.function == 0) return 0;
  const auto& of = functions_[source][ref.process];
  return ref.function < of.size() ? of[ref.function] : not_known_;
}

std::uint32_t Names::thread(const reader::Thread* thread) const {
  const auto at = threads_.find(thread);
  return at == threads_.end() ? 0 : at->second;
}

ChunkWriter::ChunkWriter(const duckdb::Api& api, const Names& names, std::span<const Source> sources,
                         const Relation& relation, const std::vector<const Column*>& columns)
    : api_(api), names_(names), sources_(sources), relation_(relation) {
  for (const Column* column : columns) {
    Place& place = places_.emplace_back();
    place.column = column;
  }
}

ChunkWriter::~ChunkWriter() {
  for (Place& place : places_)
    if (place.selection != nullptr) api_.destroy_selection_vector(place.selection);
}

bool ChunkWriter::is_selected(const Column& column) const {
  if (column.part == Part::kWhole) return relation_.fields[column.field].type == answers::Type::kFunction;
  return column.part != Part::kThreadId;
}

void ChunkWriter::begin(duckdb::Handle chunk, std::uint64_t most) {
  chunk_ = chunk;
  size_ = 0;
  for (std::size_t at = 0; at < places_.size(); ++at) {
    Place& place = places_[at];
    place.vector = api_.data_chunk_get_vector(chunk, at);
    place.validity = nullptr;
    if (is_selected(*place.column)) {
      place.selection = api_.create_selection_vector(most);
      place.selected = api_.selection_vector_get_data_ptr(place.selection);
    } else {
      place.data = api_.vector_get_data(place.vector);
    }
  }
}

void ChunkWriter::row(std::size_t source, const void* row) {
  source_ = source;
  for (Place& place : places_) {
    at_ = &place;
    if (place.column->part == Part::kTrace)
      set_name(place, names_.trace(source));
    else
      relation_.fields[place.column->field].put(row, *this);
  }
  ++size_;
}

void ChunkWriter::end() {
  for (Place& place : places_) {
    if (!is_selected(*place.column)) continue;
    api_.vector_reference_vector(place.vector, names_.vector());
    api_.slice_vector(place.vector, place.selection, size_);
    api_.destroy_selection_vector(std::exchange(place.selection, nullptr));
  }
  api_.data_chunk_set_size(chunk_, size_);
}

void ChunkWriter::set_none(Place& place) {
  if (place.validity == nullptr) {
    api_.vector_ensure_validity_writable(place.vector);
    place.validity = api_.vector_get_validity(place.vector);
  }
  place.validity[size_ / 64] &= ~(std::uint64_t{1} << (size_ % 64));
}

template <typename T>
void ChunkWriter::set(T value) {
  static_cast<T*>(at_->data)[size_] = value;
}

void ChunkWriter::none() {
  if (is_selected(*at_->column)) return set_name(*at_, 0);
  set_none(*at_);
}
void ChunkWriter::flag(bool flag) { set(flag); }
void ChunkWriter::whole(std::uint64_t number) {
  if (at_->column->type == duckdb::kUBigInt) return set(number);
  if (at_->column->type == duckdb::kDouble) return set(static_cast<double>(number));
  set(held(number));
}
void ChunkWriter::number(std::int64_t number) {
  if (at_->column->type == duckdb::kDouble) return set(static_cast<double>(number));
  set(number);
}
void ChunkWriter::real(double number) {
  if (at_->column->type == duckdb::kDouble) return set(number);
  constexpr double kMost = 9.2e18;
  set(std::isnan(number) ? std::int64_t{0} : std::llround(std::clamp(number, -kMost, kMost)));
}
void ChunkWriter::text(std::string_view text) {
  if (is_ascii(text)) return api_.vector_assign_string_element_len(at_->vector, size_, text.data(), text.size());
  const std::string valid = valid_utf8(text);
  api_.vector_assign_string_element_len(at_->vector, size_, valid.data(), valid.size());
}
void ChunkWriter::function(answers::FunctionRef ref) { set_name(*at_, names_.function(source_, ref)); }
void ChunkWriter::thread(answers::ThreadRef ref) {
  if (ref.thread == nullptr) return none();
  if (at_->column->part == Part::kThreadName) return set_name(*at_, names_.thread(ref.thread));
  set(std::int64_t{ref.thread->tid});
}
void ChunkWriter::process(answers::ProcessRef ref) {
  set(std::int64_t{sources_[source_].trace.processes()[ref.process].pid});
}

}  // namespace karst::sql
