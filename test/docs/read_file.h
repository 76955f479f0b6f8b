// Files of the source tree, for tests that hold docs against code.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace karst::test {

/// `path`: from the root of the sources. Fails the test if it cannot be opened.
inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(std::filesystem::path(KARST_SOURCE_DIR) / path);
  EXPECT_TRUE(file.is_open()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace karst::test
