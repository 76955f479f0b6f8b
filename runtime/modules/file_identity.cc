// SPDX-License-Identifier: MIT
// One look at the path, and one at the line of /proc/thread-self/maps in which the module's code lies: if both have the
// same inode, the file at the path is the one that is mapped.
#include "runtime/modules/file_identity.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/system/memory.h"
#include "runtime/system/own_program.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {
namespace {

using format::FileIdentity;

bool look_at(const char* path, FileIdentity& file) {
  struct stat status {};
  if (sys::call(SYS_newfstatat, AT_FDCWD, sys::word(path), sys::word(&status), 0) != 0 || !S_ISREG(status.st_mode))
    return false;
  file = format::file_identity(status);
  return true;
}

/// A line is "7f10-7f20 r-xp 00001000 fe:00 11116556   /path": numbers of mappings, rights, offset, device, inode. Not
/// by base/process_maps.h: a guest takes no memory and calls nothing but the system.
class MappedFile {
 public:
  /// What is mapped at `address`.
  explicit MappedFile(std::uintptr_t address) : address_(address) {
    const long file = sys::open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    char bytes[1024];
    for (long size = 0; (size = sys::read(static_cast<int>(file), bytes, sizeof bytes)) > 0 && !is_known_;)
      for (long i = 0; i < size && !is_known_; ++i) take(bytes[i]);
    sys::close(static_cast<int>(file));
  }
  /// 0: no file, or the kernel cannot be asked.
  std::uint64_t inode() const { return is_known_ ? fields_[kInode] : 0; }
  std::uint32_t device() const { return static_cast<std::uint32_t>(fields_[kMajor] << 20 | fields_[kMinor]); }

 private:
  enum Field : std::uint32_t { kBegin, kEnd, kRights, kOffset, kMajor, kMinor, kInode, kRest };

  void take(char c) {
    if (c == '\n') {
      field_ = kBegin;
      for (std::uint64_t& field : fields_) field = 0;
      return;
    }
    if (field_ == kRest) return;
    const bool ends = c == ' ' || (c == '-' && field_ == kBegin) || (c == ':' && field_ == kMajor);
    if (ends) {
      is_known_ = field_ == kInode && address_ >= fields_[kBegin] && address_ < fields_[kEnd];
      ++field_;
      return;
    }
    const std::uint64_t digit =
        c <= '9' ? static_cast<std::uint64_t>(c - '0') : static_cast<std::uint64_t>(c - 'a') + 10;
    fields_[field_] = fields_[field_] * (field_ == kInode ? 10 : 16) + digit;
  }

  std::uintptr_t address_;
  std::uint32_t field_ = kBegin;
  std::uint64_t fields_[kRest] = {};
  bool is_known_ = false;
};

}  // namespace

bool identify_file(const char* path, std::uintptr_t code, Look look, FileIdentity& file) {
  char program[4096];
  if (*path == '\0') path = link_to_own_program(program, sizeof program);
  const bool is_there = look_at(path, file);
  if (look == Look::kAtPath) return is_there;
  const MappedFile mapped(code);
  // Without /proc, or with code that was moved to other pages, the path is all there is: the link to the program is
  // the kernel's own word, and a library's file was there when it was loaded.
  if (mapped.inode() == 0 || (is_there && mapped.inode() == file.inode)) return is_there;
  file = {mapped.inode(), 0, 0, mapped.device()};
  return true;
}

}  // namespace karst::runtime
