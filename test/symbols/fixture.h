// What the tests of symbols/ share: where the fixtures are, what their sources say, and a directory to play in.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "symbols/symbol_table.h"

namespace karst::symbols::test {

inline std::filesystem::path fixture(const std::string& name) { return std::filesystem::path(KARST_FIXTURES) / name; }
inline std::filesystem::path source(const std::string& name) {
  return (std::filesystem::path(KARST_FIXTURE_SOURCES) / name).lexically_normal();
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
inline void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline SymbolTable load_fixture(const std::string& name) {
  auto table = SymbolTable::load(fixture(name), "");
  if (!table) throw std::runtime_error(table.error().message);
  return std::move(*table);
}

/// A marker (`//= NAME` at the end of a line) in a fixture's source: a function of that name is defined on that line.
struct Marker {
  std::string name;
  std::string file;
  unsigned line = 0;
};

inline std::vector<Marker> markers(const std::string& file) {
  std::vector<Marker> found;
  std::ifstream in(source(file));
  std::string text;
  for (unsigned line = 1; std::getline(in, text); ++line) {
    if (auto at = text.find("//= "); at != std::string::npos) {
      found.push_back({text.substr(at + 4), source(file).string(), line});
    }
  }
  return found;
}

/// The name without what the compiler appended to its clones.
inline std::string without_clone(std::string_view name) { return std::string(name.substr(0, name.find(" [clone "))); }

/// Names the tests of a suite over fixtures.
inline std::string fixture_name(const testing::TestParamInfo<const char*>& fixture_of_test) {
  std::string name = fixture_of_test.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

/// What a command prints on stdout.
inline std::string output_of(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  char buffer[4096];
  for (std::size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, n);
  pclose(pipe);
  return output;
}

/// A new directory, removed with all in it at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "karst-symbols-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace karst::symbols::test
