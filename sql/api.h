// SPDX-License-Identifier: MIT
// What Karst uses of DuckDB's C API (its duckdb.h 1.4), declared here as the library is loaded when it is needed.
// Handles are pointers to what only the library knows.
#pragma once
#include <cstdint>

namespace karst::sql::duckdb {

using Handle = void*;  ///< a database, connection, config, statement, type, vector, chunk ...
using Delete = void (*)(void* data);
using Bind = void (*)(Handle info);
using Init = void (*)(Handle info);
using Function = void (*)(Handle info, Handle chunk);

enum State : int { kSuccess = 0, kError = 1 };

enum Type : int {
  kBoolean = 1,
  kTinyInt = 2,
  kBigInt = 5,
  kUTinyInt = 6,
  kUBigInt = 9,
  kFloat = 10,
  kDouble = 11,
  kHugeInt = 16,
  kVarchar = 17,
  kDecimal = 19,
  kList = 24,
  kStruct = 25,
  kMap = 26,
  kUnion = 28,
  kUHugeInt = 32,
  kArray = 33,
};

/// How far a query is: -1 percent where that is not known.
struct Progress {
  double percent;
  std::uint64_t rows, all_rows;
};

enum StatementType : int { kSelect = 1, kExplain = 4, kCall = 19 };

/// As the library lays it out; the first five are of an older API.
struct Result {
  std::uint64_t columns, rows, changed;
  void* column;
  char* error;
  void* data;
};

/// A text in a vector: of 12 bytes or fewer they follow the size.
struct Text {
  std::uint32_t size;
  char begin[4];
  union {
    char rest[8];
    const char* outside;
  };

  const char* data() const {
    return size <= sizeof begin + sizeof rest ? reinterpret_cast<const char*>(this) + sizeof size : outside;
  }
};
static_assert(sizeof(Text) == 16);

// The functions: what they return, their name without "duckdb_", what they take.
#define KARST_DUCKDB_FUNCTIONS(F)                                                                                    \
  F(const char*, library_version, ())                                                                                \
  F(std::uint64_t, vector_size, ())                                                                                  \
  F(void, free, (void*))                                                                                             \
  F(State, create_config, (Handle * config))                                                                         \
  F(State, set_config, (Handle config, const char* name, const char* value))                                         \
  F(void, destroy_config, (Handle * config))                                                                         \
  F(State, open_ext, (const char* path, Handle* database, Handle config, char** error))                              \
  F(void, close, (Handle * database))                                                                                \
  F(State, connect, (Handle database, Handle * connection))                                                          \
  F(void, disconnect, (Handle * connection))                                                                         \
  F(void, interrupt, (Handle connection))                                                                            \
  F(Progress, query_progress, (Handle connection))                                                                   \
  F(State, query, (Handle connection, const char* text, Result* result))                                             \
  F(std::uint64_t, extract_statements, (Handle connection, const char* text, Handle* statements))                    \
  F(const char*, extract_statements_error, (Handle statements))                                                      \
  F(State, prepare_extracted_statement, (Handle connection, Handle statements, std::uint64_t at, Handle * prepared)) \
  F(void, destroy_extracted, (Handle * statements))                                                                  \
  F(State, prepare, (Handle connection, const char* text, Handle* prepared))                                         \
  F(const char*, prepare_error, (Handle prepared))                                                                   \
  F(void, destroy_prepare, (Handle * prepared))                                                                      \
  F(StatementType, prepared_statement_type, (Handle prepared))                                                       \
  F(std::uint64_t, prepared_statement_column_count, (Handle prepared))                                               \
  F(const char*, prepared_statement_column_name, (Handle prepared, std::uint64_t at))                                \
  F(Type, prepared_statement_column_type, (Handle prepared, std::uint64_t at))                                       \
  F(State, execute_prepared_streaming, (Handle prepared, Result * result))                                           \
  F(const char*, result_error, (Result * result))                                                                    \
  F(void, destroy_result, (Result * result))                                                                         \
  F(Handle, fetch_chunk, (Result result))                                                                            \
  F(std::uint64_t, data_chunk_get_size, (Handle chunk))                                                              \
  F(Handle, data_chunk_get_vector, (Handle chunk, std::uint64_t column))                                             \
  F(void, data_chunk_set_size, (Handle chunk, std::uint64_t size))                                                   \
  F(void, destroy_data_chunk, (Handle * chunk))                                                                      \
  F(Handle, create_logical_type, (Type type))                                                                        \
  F(void, destroy_logical_type, (Handle * type))                                                                     \
  F(Handle, create_vector, (Handle type, std::uint64_t capacity))                                                    \
  F(void, destroy_vector, (Handle * vector))                                                                         \
  F(void*, vector_get_data, (Handle vector))                                                                         \
  F(std::uint64_t*, vector_get_validity, (Handle vector))                                                            \
  F(void, vector_ensure_validity_writable, (Handle vector))                                                          \
  F(void, vector_assign_string_element_len, (Handle vector, std::uint64_t at, const char* text, std::uint64_t size)) \
  F(void, vector_reference_vector, (Handle to, Handle from))                                                         \
  F(void, slice_vector, (Handle vector, Handle selection, std::uint64_t size))                                       \
  F(Handle, create_selection_vector, (std::uint64_t size))                                                           \
  F(std::uint32_t*, selection_vector_get_data_ptr, (Handle selection))                                               \
  F(void, destroy_selection_vector, (Handle selection))                                                              \
  F(Handle, create_table_function, ())                                                                               \
  F(void, destroy_table_function, (Handle * function))                                                               \
  F(void, table_function_set_name, (Handle function, const char* name))                                              \
  F(void, table_function_set_extra_info, (Handle function, void* data, Delete destroy))                              \
  F(void, table_function_set_bind, (Handle function, Bind bind))                                                     \
  F(void, table_function_set_init, (Handle function, Init init))                                                     \
  F(void, table_function_set_local_init, (Handle function, Init init))                                               \
  F(void, table_function_set_function, (Handle function, Function call))                                             \
  F(void, table_function_supports_projection_pushdown, (Handle function, bool supports))                             \
  F(State, register_table_function, (Handle connection, Handle function))                                            \
  F(void, table_function_add_named_parameter, (Handle function, const char* name, Handle type))                      \
  F(Handle, bind_get_named_parameter, (Handle info, const char* name))                                               \
  F(void, bind_set_bind_data, (Handle info, void* data, Delete destroy))                                             \
  F(void*, init_get_bind_data, (Handle info))                                                                        \
  F(bool, is_null_value, (Handle value))                                                                             \
  F(std::int64_t, get_int64, (Handle value))                                                                         \
  F(char*, get_varchar, (Handle value))                                                                              \
  F(void, destroy_value, (Handle * value))                                                                           \
  F(void*, bind_get_extra_info, (Handle info))                                                                       \
  F(void, bind_add_result_column, (Handle info, const char* name, Handle type))                                      \
  F(void, bind_set_cardinality, (Handle info, std::uint64_t rows, bool exact))                                       \
  F(void*, init_get_extra_info, (Handle info))                                                                       \
  F(std::uint64_t, init_get_column_count, (Handle info))                                                             \
  F(std::uint64_t, init_get_column_index, (Handle info, std::uint64_t at))                                           \
  F(void, init_set_init_data, (Handle info, void* data, Delete destroy))                                             \
  F(void, init_set_max_threads, (Handle info, std::uint64_t most))                                                   \
  F(void, init_set_error, (Handle info, const char* error))                                                          \
  F(void*, function_get_init_data, (Handle info))                                                                    \
  F(void*, function_get_local_init_data, (Handle info))                                                              \
  F(void, function_set_error, (Handle info, const char* error))

/// The library's functions; null until it is loaded.
struct Api {
#define KARST_DUCKDB_MEMBER(type, name, parameters) type(*name) parameters = nullptr;
  KARST_DUCKDB_FUNCTIONS(KARST_DUCKDB_MEMBER)
#undef KARST_DUCKDB_MEMBER
};

}  // namespace karst::sql::duckdb
