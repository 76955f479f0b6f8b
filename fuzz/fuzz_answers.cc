// All that karst answers about a trace of any bytes: its commands as command_lines.txt lists them, in every format, and
// every question that a page of karst view may ask. What goes to a terminal has no byte that a terminal obeys; what is
// JSON is JSON.
//
// An input is given to an eighth of the command lines, and every other one to the page: its checksum says to which, so
// that what was found is found again. KARST_FUZZ_ALL=1: to all of them.
#include <fcntl.h>
#include <simdjson.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "cli/command.h"
#include "engine/api/api.h"
#include "engine/cut/cut.h"
#include "engine/index/index.h"
#include "format/checksum.h"
#include "format/trace.h"
#include "fuzz/require.h"
#include "reader/trace.h"
#include "write/synthetic.h"

extern "C" __attribute__((weak)) void __sanitizer_set_report_fd(void* fd);

namespace {

using namespace karst;
using fuzz::require;

/// The files that command lines name. They go with the process.
class Desk {
 public:
  Desk() {
    std::string name = (std::filesystem::temp_directory_path() / "karst-answers-XXXXXX").string();
    require(mkdtemp(name.data()) != nullptr, "there is a temporary directory");
    directory_ = name;
    writing::SyntheticTrace wanted;
    wanted.events = 200;
    wanted.functions = 5;
    auto writer = writing::TraceWriter::create(path("other.karst"));
    require(writer.ok(), "a trace is written");
    writing::add_synthetic(*writer, wanted);
    require(writer->finish().ok(), "a trace is finished");
  }
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;
  ~Desk() { std::filesystem::remove_all(directory_); }
  std::string path(std::string_view name) const { return directory_ / name; }

  void put(std::span<const std::byte> bytes) const {
    std::ofstream(path("in.karst"), std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::filesystem::path directory_;
};

/// What a command prints on one of the standard streams.
class Caught {
 public:
  explicit Caught(int stream) : stream_(stream), memory_(memfd_create("output", MFD_CLOEXEC)), own_(dup(stream)) {
    require(memory_ >= 0 && own_ >= 0, "there are descriptors");
  }
  Caught(const Caught&) = delete;
  Caught& operator=(const Caught&) = delete;
  ~Caught() {
    close(memory_);
    close(own_);
  }
  int own() const { return own_; }
  void begin() const {
    std::fflush(stdout);
    require(ftruncate(memory_, 0) == 0 && lseek(memory_, 0, SEEK_SET) == 0, "memory can be emptied");
    dup2(memory_, stream_);
  }
  std::string end() const {
    std::fflush(stdout);
    dup2(own_, stream_);
    struct stat status {};
    require(fstat(memory_, &status) == 0, "memory has a size");
    std::string text(static_cast<std::size_t>(status.st_size), '\0');
    require(pread(memory_, text.data(), text.size(), 0) == status.st_size, "memory can be read");
    return text;
  }

 private:
  int stream_, memory_, own_;
};

struct Streams {
  Streams() {
    if (__sanitizer_set_report_fd != nullptr)
      __sanitizer_set_report_fd(reinterpret_cast<void*>(static_cast<std::intptr_t>(err.own())));
  }
  Caught out{STDOUT_FILENO};
  Caught err{STDERR_FILENO};
};

std::vector<std::vector<std::string>> command_lines() {
  std::ifstream file(KARST_COMMAND_LINES);
  std::vector<std::vector<std::string>> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    auto& words_of = lines.emplace_back(1, "karst");
    for (std::string word; words >> word;) words_of.push_back(word);
  }
  require(lines.size() > 20, "there is a list of command lines");
  return lines;
}

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += word + " ";
  return line;
}

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Whether a terminal only shows it.
bool is_harmless(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_character(text);
    if (length == 0) return false;
    const auto byte = static_cast<unsigned char>(text.front());
    if (length == 1 && ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f)) return false;
    if (length > 1 && is_misleading(utf8_code_point(text.substr(0, length)))) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool is_json(std::string_view text) {
  simdjson::dom::parser parser;
  return parser.parse(simdjson::padded_string(text)).error() == simdjson::SUCCESS;
}

void ask(const std::vector<std::string>& line, const Desk& desk, const Streams& streams) {
  std::vector<std::string> words = line;
  for (std::string& word : words) {
    if (word == "FILE") word = desk.path("in.karst");
    if (word == "OTHER") word = desk.path("other.karst");
    if (word == "OUT") word = desk.path("out");
    if (word == "NEW") {
      word = desk.path("new");
      std::filesystem::remove_all(word);
    }
  }
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  streams.out.begin();
  streams.err.begin();
  const int status = cli::run_command_line(static_cast<int>(arguments.size()), arguments.data());
  const std::string said = streams.err.end();
  const std::string text = streams.out.end();
  const auto hold = [&](bool condition, const char* what) {
    if (!condition) std::fprintf(stderr, "%s: %d\n%s\n%s\n", joined(line).c_str(), status, text.c_str(), said.c_str());
    require(condition, what);
  };
  hold(status == cli::kExitOk || status == cli::kExitFailed || status == cli::kExitOver,
       "a command line is understood");
  hold(is_harmless(text) && is_harmless(said), "a terminal only shows what is printed");
  const bool json = has(line, "--json") || has(line, "chrome");
  if (json && status == cli::kExitOk) hold(is_json(text), "what is called JSON is JSON");
}

void ask(engine::Api& api, const std::string& path, const engine::Parameters& parameters) {
  const engine::Reply reply = api.answer(path, parameters);
  const auto hold = [&](bool condition, const char* what) {
    if (!condition) {
      std::fprintf(stderr, "%s", path.c_str());
      for (const auto& [name, value] : parameters) std::fprintf(stderr, " %s=%s", name.c_str(), value.c_str());
      std::fprintf(stderr, ": %d\n", reply.status);
    }
    require(condition, what);
  };
  hold(reply.status == 200 || reply.status == 400 || reply.status == 404 || reply.status == 413 || reply.status == 507,
       "an answer, or a word why there is none");
  if (reply.type.starts_with("application/json")) hold(is_json(reply.body), "it is JSON");
}

/// A few rows of a thread that differ: the ends, and some between.
std::vector<std::size_t> some_rows(std::size_t count) {
  std::vector<std::size_t> rows;
  for (const std::size_t row : {std::size_t{0}, std::size_t{1}, count / 3, count / 2, count - 1})
    if (row < count && (rows.empty() || rows.back() < row)) rows.push_back(row);
  return rows;
}

void ask_page(reader::Trace trace) {
  engine::IndexProgress progress;
  const auto index = engine::TraceIndex::build(std::move(trace), progress);
  if (!index) return;
  engine::Api api({index->get(), index->get()}, "fuzz");
  api.set_server({.cut = engine::cut_trace});
  for (const char* path : {"trace", "minimap", "functions", "flame", "outliers", "requests", "notes", "plots", "colors",
                           "frames", "locks", "memory", "threads", "align", "tiles"}) {
    ask(api, path, {{"width", "300"}});
    ask(api, path, {{"width", "9"}, {"begin", "10"}, {"end", "5000"}, {"b.trace", "1"}, {"raw", "1"}});
  }
  ask(api, "flame", {{"inverted", "1"}});
  ask(api, "search", {{"q", "f.*"}});
  for (std::uint32_t number = 0; number < 4; ++number) {
    const std::string of = std::to_string(number);
    for (const char* path : {"lock", "frame", "state", "source", "histogram", "occurrences"})
      ask(api, path,
          {{"lock", of},
           {"set", of},
           {"target", "1000"},
           {"cpu", of},
           {"index", of},
           {"function", of},
           {"limit", "9"}});
    ask(api, "frame", {{"set", of}, {"number", "1"}, {"target", "1000"}});
    ask(api, "tiles", {{"width", "64"}, {"function", of}});
    ask(api, "occurrences", {{"function", of}, {"order", "duration"}, {"limit", "9"}});
  }
  for (std::uint32_t thread = 0; thread < std::min<std::size_t>((*index)->threads().size(), 4); ++thread) {
    const std::string of = std::to_string(thread);
    ask(api, "cut", {{"threads", of}, {"begin", "5"}, {"end", "3000"}});
    for (const std::size_t row : some_rows((*index)->threads()[thread].calls.size()))
      for (const char* path : {"call", "values", "explain", "flows", "memory", "state", "functions", "flame", "align"})
        ask(api, path,
            {{"thread", of}, {"index", std::to_string(row)}, {"b.thread", "0"}, {"b.index", "0"}, {"b.trace", "1"}});
  }
}

/// Names of raw traces are a sandbox's to look up, which fuzz_module and fuzz_symbol_image look at: here they stay
/// without.
std::vector<std::byte> resolved(std::span<const std::byte> bytes) {
  std::vector<std::byte> copy(bytes.begin(), bytes.end());
  format::FileHeader header;
  if (copy.size() < sizeof header) return copy;
  std::memcpy(&header, copy.data(), sizeof header);
  const bool sound = header.crc == format::crc32c(&header, offsetof(format::FileHeader, crc));
  header.flags |= format::kFileResolved;
  if (sound) header.crc = format::crc32c(&header, offsetof(format::FileHeader, crc));
  std::memcpy(copy.data(), &header, sizeof header);
  return copy;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Desk desk;
  static const Streams streams;
  static const std::vector<std::vector<std::string>> lines = command_lines();
  const std::vector<std::byte> bytes = resolved(std::as_bytes(std::span(data, size)));
  auto trace = reader::Trace::open_memory(bytes, "fuzz");
  if (!trace || !trace->resolved()) return 0;
  desk.put(bytes);
  constexpr std::size_t kSlices = 8;
  static const bool all = std::getenv("KARST_FUZZ_ALL") != nullptr;
  const std::size_t slice = format::crc32c(bytes.data(), bytes.size()) % (2 * kSlices);
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (all || i % kSlices == slice / 2) ask(lines[i], desk, streams);
  if (all || slice % 2 == 0) ask_page(std::move(*trace));
  return 0;
}
