// SPDX-License-Identifier: MIT
#include "engine/server/page.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace karst::engine {

// Laid out by engine/server/embed.cmake.
extern "C" {
struct EmbeddedFile {
  const char* path;
  const char* begin;
  const char* end;
};
extern const EmbeddedFile karst_page_files[];
extern const std::uint64_t karst_page_file_count;
}

namespace {

const std::vector<PageFile>& files() {
  static const std::vector<PageFile> all = [] {
    std::vector<PageFile> list;
    for (std::uint64_t i = 0; i < karst_page_file_count; ++i) {
      const EmbeddedFile& file = karst_page_files[i];
      list.push_back({file.path, {file.begin, static_cast<std::size_t>(file.end - file.begin)}});
    }
    return list;
  }();
  return all;
}

}  // namespace

const PageFile* find_page_file(std::string_view path) {
  for (const PageFile& file : files()) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

std::string_view media_type(std::string_view path) {
  static constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".svg", "image/svg+xml"},
      {".png", "image/png"},
      {".woff2", "font/woff2"},
      {".json", "application/json"},
      {".wasm", "application/wasm"},
  };
  for (const auto& [ending, type] : kTypes) {
    if (path.ends_with(ending)) return type;
  }
  return "application/octet-stream";
}

}  // namespace karst::engine
