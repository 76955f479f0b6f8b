// SPDX-License-Identifier: MIT
// Traces of other tools, made into .karst files. The counterpart of export/.
//
// A format is one file: it gets the bytes of a foreign file and returns what they say as plain values
// (import/foreign_trace.h). It writes nothing. formats() lists all; write_trace() is the same for each.
//
// Every byte is hostile. A format returns an Error for what is no trace of its kind; of a trace it takes what it can
// and counts what it leaves out. It never trusts an order, a nesting, a size or a number.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "import/foreign_trace.h"
#include "write/trace_writer.h"

namespace karst::importing {

/// Reads one format.
using Importer = Result<ForeignTrace> (*)(std::string_view bytes);

struct Format {
  const char* name;
  const char* description;
  bool (*may_be)(std::string_view bytes);  ///< a quick look at how they begin
  Importer importer;
};

/// The same of a format whose traces are directories, of which these get a descriptor.
struct DirectoryFormat {
  const char* name;
  const char* description;
  bool (*may_be)(int directory);
  Result<ForeignTrace> (*importer)(int directory);
};

/// All formats there are.
std::span<const Format> formats();
std::span<const DirectoryFormat> directory_formats();

// The formats: a name, by which may_be_NAME() and import_NAME() are declared, and a line for the help.
// The first one that a file may be is its format.
#define KARST_IMPORT_FORMATS(F)                                             \
  F(speedscope, "evented profiles of speedscope's own JSON")                \
  F(chrome, "JSON of chrome://tracing, viztracer and clang's -ftime-trace") \
  F(perfetto, "track events of Perfetto's protobuf")                        \
  F(xray, "logs of clang's -fxray-instrument, basic and FDR mode")          \
  F(tracy, "zones of Tracy, as tracy-csvexport -u writes them")             \
  F(perf, "samples of perf record, as perf script writes them")

#define KARST_DECLARE_IMPORTER(name, description) \
  bool may_be_##name(std::string_view bytes);     \
  Result<ForeignTrace> import_##name(std::string_view bytes);
KARST_IMPORT_FORMATS(KARST_DECLARE_IMPORTER)
#undef KARST_DECLARE_IMPORTER

#define KARST_IMPORT_DIRECTORIES(F) F(uftrace, "directories of uftrace record")

#define KARST_DECLARE_IMPORTER(name, description) \
  bool may_be_##name(int directory);              \
  Result<ForeignTrace> import_##name(int directory);
KARST_IMPORT_DIRECTORIES(KARST_DECLARE_IMPORTER)
#undef KARST_DECLARE_IMPORTER

/// What a .karst file got, and what it did not.
struct Summary {
  std::uint64_t processes = 0;
  std::uint64_t threads = 0;
  std::uint64_t calls = 0;
  std::uint64_t notes = 0;
  std::uint64_t samples = 0;
  std::uint64_t open = 0;   ///< of the calls, those whose end is not known
  std::uint64_t aside = 0;  ///< of the calls, those that overlapped others of their thread
  std::map<std::string, std::uint64_t> left_out;
  std::vector<std::string> remarks;
};

/// Adds all of it to `writer`, which the caller finishes. Error: there is nothing in it.
Result<Summary> write_trace(ForeignTrace trace, writing::TraceWriter& writer);

}  // namespace karst::importing
