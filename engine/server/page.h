// SPDX-License-Identifier: MIT
// The page's files, as Vite built them, inside of the binary.
#pragma once
#include <string_view>

namespace karst::engine {

struct PageFile {
  std::string_view path;  ///< relative: "index.html", "assets/index-1a2b.js"
  std::string_view bytes;
};

/// Nothing when there is no such file; all of them are missing in a build that was made without Node.js.
const PageFile* find_page_file(std::string_view path);

/// The media type by the path's ending.
std::string_view media_type(std::string_view path);

}  // namespace karst::engine
