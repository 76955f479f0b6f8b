// SPDX-License-Identifier: MIT
// What a process has mapped, as the kernel writes it in /proc/PID/maps: the one reader of that file for tools.
//
// A line is "begin-end rights offset major:minor inode path", numbers in hexadecimal but for the inode. All but the
// path is the kernel's own word. The path is what some process called a file: it may have spaces, words that look like
// rights, and any bytes but a newline. So lines are taken apart from the left, and never searched as a whole.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace karst {

struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  ///< in the file
  std::uint64_t inode = 0;
  std::string rights;  ///< like "r-xp"
  /// Empty: no file. As the kernel writes it: " (deleted)" behind one that is removed, \012 in a newline's place. A
  /// file may really be called so.
  std::string path;
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;

  bool contains(std::uint64_t address) const { return address >= begin && address < end; }
  bool is_executable() const { return rights.size() > 2 && rights[2] == 'x'; }
  /// Executable, readable, and not writable.
  bool is_code() const { return rights.starts_with("r-x"); }
  std::string file_name() const { return path.substr(path.find_last_of('/') + 1); }
  /// Of libkarst.so, by its name.
  bool is_runtime() const { return path.starts_with('/') && file_name().starts_with("libkarst.so"); }
  /// The link to the file below /proc/PID: "map_files/400000-401000". The kernel pads the numbers in maps with zeros to
  /// eight digits, and knows no padded ones here.
  std::string link() const;
};

/// Lines that are none, or not whole, are left out; of so many that no process has them, the rest.
std::vector<Mapping> parse_maps(std::string_view text);
/// The same of a file, as /proc/PID/maps. Empty: it cannot be read, or the process has ended.
std::vector<Mapping> read_maps(const std::string& file);

}  // namespace karst
