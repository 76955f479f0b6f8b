// SPDX-License-Identifier: MIT
// Finds the separate debug files of one module and says why there are none. Private to binary/.
//
// elfutils has a search of its own (dwfl_standard_find_debuginfo). It cannot say what it tried, reads no zstd, has
// directories for all modules alike only by text, and waits for servers as long as they like.
#pragma once
#include <elfutils/libdwfl.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "binary/debug_search.h"
#include "binary/elf_file.h"

namespace karst::binary {

class DebugFiles {
 public:
  /// `elf` is the module's; it is looked at here and no longer.
  DebugFiles(std::filesystem::path module, const ElfFile& elf, DebugSearch search);

  /// For Dwfl_Callbacks::find_debuginfo; a module's user data must be its DebugFiles.
  static int find_debuginfo(Dwfl_Module* module, void** user_data, const char* name, Dwarf_Addr base,
                            const char* file_name, const char* link, GElf_Word crc, char** found);

  /// The module itself says that it has a debug file somewhere, or had names that were stripped.
  bool separated() const { return !link_.empty() || stripped_; }
  /// Where it should have been, and what was wrong with what was there; for the end of a message.
  std::string how_to_get_it() const;
  /// The common debug file (dwz) that was needed and not found; empty when none was.
  const std::string& missing_common() const { return missing_common_; }

 private:
  struct Wanted {
    std::string build_id;    ///< raw; empty: any will do
    bool check_crc = false;  ///< when build-ids cannot be compared
    std::uint32_t crc = 0;
  };

  int find(std::string& found);
  int find_common(Dwfl_Module* module, const std::filesystem::path& debug_file, const char* name, std::string& found);
  /// A readable ELF file that is the wanted one, or -1.
  int open(const std::filesystem::path& path, const Wanted& wanted);
  int accept(int fd, const std::string& path, const Wanted& wanted);
  int ask_servers(std::string_view build_id, const Wanted& wanted, std::string& found);
  std::vector<std::filesystem::path> directories() const;
  std::vector<std::filesystem::path> by_build_id(std::string_view build_id) const;

  std::filesystem::path module_;
  DebugSearch search_;
  std::string build_id_;
  std::string link_;  // name in .gnu_debuglink
  std::uint32_t crc_ = 0;
  bool stripped_ = false;
  bool sought_ = false;
  std::string server_said_;
  std::string refused_;  // a file that was there and could not be taken, and why
  std::string missing_common_;
};

}  // namespace karst::binary
