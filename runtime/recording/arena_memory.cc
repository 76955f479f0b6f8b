// SPDX-License-Identifier: MIT
// Where the arena's memory comes from: a memfd, or a file that the user named (file=PATH). Whatever it is, memory is
// made real before it is used, as a store to what cannot be had would raise SIGBUS in the program.
//
// A file outlives the process and the machine's restart. Its space is allocated before its pages are touched, and only
// file systems are taken on which allocated space stays so: with copy-on-write a later store could still find the disk
// full. A core file gets the parts that are in use (MADV_DODUMP): the kernel would write all others as zeros.
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "runtime/recording/arena.h"
#include "runtime/system/held_directory.h"
#include "runtime/system/memory.h"
#include "runtime/system/memory_group.h"
#include "runtime/system/message.h"
#include "runtime/system/own_program.h"
#include "runtime/system/syscalls.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

namespace karst::runtime {

using namespace format;

namespace {

/// A file's growth past RLIMIT_FSIZE raises SIGXFSZ, which would end our host; memfds are files to that limit.
class FileSizeLimit {
 public:
  /// Raised to `size` while this lives, if it was lower and that is allowed.
  explicit FileSizeLimit(std::uint64_t size) {
    if (sys::call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, sys::word(&before_)) != 0 || before_.rlim_cur >= size) return;
    const rlimit raised{size, before_.rlim_max < size ? size : before_.rlim_max};
    raised_ = sys::call(SYS_prlimit64, 0, RLIMIT_FSIZE, sys::word(&raised), 0) == 0;
    allows_ = raised_;
  }
  ~FileSizeLimit() {
    if (raised_) sys::call(SYS_prlimit64, 0, RLIMIT_FSIZE, sys::word(&before_), 0);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  bool allows() const { return allows_; }

 private:
  rlimit before_{};
  bool raised_ = false;
  bool allows_ = true;
};

/// A path in the making: what does not fit makes it unusable.
class Path {
 public:
  static constexpr std::size_t kMost = sizeof(Arena::FileName);
  explicit Path(const char* from = "") { text(from, length(from)); }
  void text(const char* from, std::size_t size) {
    failed_ = failed_ || size >= kMost - used_;
    if (failed_) return;
    copy(bytes_ + used_, from, size);
    used_ += size;
    bytes_[used_] = '\0';
  }
  void number(std::uint64_t n) {
    char digits[20];
    std::size_t at = sizeof digits;
    do digits[--at] = static_cast<char>('0' + n % 10);
    while ((n /= 10) != 0);
    text(digits + at, sizeof digits - at);
  }
  bool fits() const { return !failed_; }
  const char* get() const { return bytes_; }

 private:
  std::size_t used_ = 0;
  bool failed_ = false;
  char bytes_[kMost] = {};
};

/// %p: the process's number, %%: a per cent sign.
Path expand(const char* pattern) {
  Path path;
  for (const char* p = pattern; *p != '\0'; ++p) {
    const bool special = *p == '%' && (p[1] == 'p' || p[1] == '%');
    if (special && p[1] == 'p')
      path.number(static_cast<std::uint64_t>(sys::getpid()));
    else
      path.text(p, 1);
    p += special ? 1 : 0;
  }
  return path;
}

enum class There { kNothing, kDeadArena, kLivingArena, kSomethingElse };

/// What lies under that name. Nothing is opened but a regular file of our own user.
There look_at(int directory, const char* name) {
  struct stat status {};
  if (sys::call(SYS_newfstatat, directory, sys::word(name), sys::word(&status), AT_SYMLINK_NOFOLLOW) != 0)
    return There::kNothing;
  if (!S_ISREG(status.st_mode) || status.st_uid != static_cast<uid_t>(sys::call(SYS_geteuid)))
    return There::kSomethingElse;
  const long fd = sys::call(SYS_openat, directory, sys::word(name), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
  if (fd < 0) return There::kSomethingElse;
  ArenaHeader h{};
  const long n = sys::read(static_cast<int>(fd), &h, sizeof h);
  sys::close(static_cast<int>(fd));
  // Another process may have made it this very moment, and have written nothing yet.
  if (n == 0 || (n == sizeof h && h.magic == 0 && h.pid == 0)) return There::kLivingArena;
  if (n < static_cast<long>(offsetof(ArenaHeader, end_ticks)) || h.magic != kArenaMagic) return There::kSomethingElse;
  const auto own = static_cast<std::uint32_t>(sys::getpid());  // before an exec
  constexpr long kNoSuchProcess = -3;
  return h.pid == own || sys::call(SYS_kill, h.pid, 0) == kNoSuchProcess ? There::kDeadArena : There::kLivingArena;
}

constexpr std::uint64_t kLargeStep = 64 << 10;  // from here on the process's group is asked for room

/// On these what was allocated can be written to for good.
bool keeps_space(int descriptor) {
  struct statfs system {};
  if (sys::call(SYS_fstatfs, descriptor, sys::word(&system)) != 0) return false;
  return system.f_type == EXT4_SUPER_MAGIC || system.f_type == XFS_SUPER_MAGIC || system.f_type == TMPFS_MAGIC;
}

}  // namespace

/// What forked children need as well: from the root on, as the program may go elsewhere, and with the executable's name
/// for %e.
void Arena::keep_file_name(const char* pattern) {
  Path path;
  char buffer[4096];
  if (*pattern == '\0') return;
  if (*pattern != '/') {
    const long n = sys::call(SYS_getcwd, sys::word(buffer), sizeof buffer);
    if (n > 1) path.text(buffer, static_cast<std::size_t>(n - 1));
    path.text("/", 1);
  }
  for (const char* p = pattern; *p != '\0'; ++p) {
    if (*p != '%' || p[1] != 'e') {
      path.text(p, 1);
      if (*p == '%' && p[1] == '%') path.text(++p, 1);
      continue;
    }
    ++p;
    const std::size_t n = own_program(buffer, sizeof buffer);
    std::size_t at = n;
    while (at > 0 && buffer[at - 1] != '/') --at;
    for (; at < n; ++at) {
      if (buffer[at] == '%') path.text("%", 1);
      path.text(buffer + at, 1);
    }
  }
  if (path.fits())
    copy(file_, path.get(), length(path.get()) + 1);
  else
    Message().text("file= ignored: its name is too long");
}

/// Null when descriptor_ is a file of that size, else why there is none. An arena that an ended process left under the
/// name becomes NAME.old; beside a living one's, this one is NAME.PID. Nothing else is replaced.
const char* Arena::open_file(std::uint64_t size) {
  Path path = expand(file_);
  if (!path.fits()) return "its name is too long";
  const HeldDirectory directory(path.get());
  if (directory.number() == -ELOOP) return "a symbolic link leads there that another user may have made";
  if (directory.number() < 0) return "it cannot be created there";
  const int in = directory.number();
  for (int tries = 0; tries < 4; ++tries) {
    if (!path.fits()) return "its name is too long";
    const long name = sys::word(HeldDirectory::name_in(path.get()));
    const long fd = sys::call(SYS_openat, in, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    constexpr long kExists = -17;
    if (fd >= 0) {
      descriptor_.take(fd);
      const char* why = nullptr;
      const FileSizeLimit limit(size);
      if (!keeps_space(descriptor_.number()))
        why = "its file system may lose space that was allocated; ext4, xfs and tmpfs are known not to";
      else if (!limit.allows())
        why = "the limit on the size of files (RLIMIT_FSIZE, ulimit -f) is below its size";
      else if (sys::call(SYS_ftruncate, descriptor_.number(), static_cast<long>(size)) != 0)
        why = "it cannot have the size that is needed";
      if (why == nullptr) return nullptr;
      descriptor_.close();
      sys::call(SYS_unlinkat, in, name, 0);
      return why;
    }
    if (fd != kExists) return "it cannot be created there";
    switch (look_at(in, HeldDirectory::name_in(path.get()))) {
      case There::kNothing:
        break;
      case There::kDeadArena: {
        Path old(path.get());
        old.text(".old", 4);
        if (!old.fits()) return "its name is too long";
        sys::call(SYS_renameat, in, name, in, sys::word(HeldDirectory::name_in(old.get())));
        break;
      }
      case There::kLivingArena:
        path.text(".", 1);
        path.number(static_cast<std::uint64_t>(sys::getpid()));
        break;
      case There::kSomethingElse:
        return "something that is no arena of this user's has that name";
    }
  }
  return "something that is in the way there cannot be moved";
}

/// Null when descriptor_ is a file, or a sealed memfd, of that size, else why there is none.
const char* Arena::open_memory(std::uint64_t size) {
  in_file_ = false;
  if (file_[0] != '\0') {
    const char* why = open_file(size);
    in_file_ = why == nullptr;
    if (in_file_) return nullptr;
    Message().text("file=").text(file_).text(" ignored: ").text(why);
  }
  const long fd = sys::call(SYS_memfd_create, sys::word("karst-arena"), MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return "no shared memory can be made (memfd_create failed)";
  descriptor_.take(fd);
  const FileSizeLimit limit(size);
  if (!limit.allows()) {
    descriptor_.close();
    return "the limit on the size of files (RLIMIT_FSIZE, ulimit -f) is below what the trace's memory takes";
  }
  const bool sized = sys::call(SYS_ftruncate, descriptor_.number(), static_cast<long>(size)) == 0;
  // A reader refuses an arena that could shrink under it.
  sys::call(SYS_fcntl, descriptor_.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  if (sized) return nullptr;
  descriptor_.close();
  return "no memory can be mapped for the trace";
}

// Writes by the system, which says when memory is short.
bool Arena::put(std::uint64_t offset, const void* from, std::uint64_t size) const {
  const FileSizeLimit limit(offset + size);
  if (!limit.allows()) return false;
  const char* p = static_cast<const char*>(from);
  while (size != 0) {
    const long n =
        sys::call(SYS_pwrite64, descriptor_.number(), sys::word(p), static_cast<long>(size), static_cast<long>(offset));
    if (n == -4 /* EINTR */) continue;
    if (n <= 0) return false;
    p += n;
    offset += static_cast<std::uint64_t>(n);
    size -= static_cast<std::uint64_t>(n);
  }
  return true;
}

/// What a forked child must not have, as it would write into its parent's history, and what no core file shall.
void Arena::advise_mapping() {
  sys::madvise(reinterpret_cast<void*>(base_), own_size_, MADV_DONTFORK);
  sys::madvise(reinterpret_cast<void*>(base_), layout_.size, MADV_DONTDUMP);
}

/// That part is in use: a core file has it, unless the arena is in a file itself or the user wants none (core=off).
void Arena::advise_dump(std::uint64_t offset, std::uint64_t size) const {
  if (!in_cores_ || in_file_ || size == 0) return;
  const std::uint64_t begin = align_down(offset, kBlockSize);
  sys::madvise(reinterpret_cast<void*>(base_ + begin), align_up(offset + size, kBlockSize) - begin, MADV_DODUMP);
}

bool Arena::reserve(std::uint64_t offset, std::uint64_t size) const {
  if (!make_real(offset, size)) return false;
  advise_dump(offset, size);
  return true;
}

// Populating both allocates the pages and maps them, and reports that memory is short instead of a SIGBUS at the first
// store. It needs no descriptor, so it works after a daemon has closed all of them.
bool Arena::make_real(std::uint64_t offset, std::uint64_t size) const {
  const std::uint64_t begin = align_down(offset, kBlockSize);
  const std::uint64_t end = align_up(offset + size, kBlockSize);
  if (end - begin >= kLargeStep && !memory_group_has_room(end - begin)) return false;
  // What was allocated in a file has its place on the disk; without the descriptor the page fault sees to that.
  if (in_file_ && descriptor_.is_there() && !allocate(begin, end)) return false;
  const long result = sys::populate(reinterpret_cast<void*>(base_ + begin), end - begin);
  if (result != -22 /* EINVAL: Linux before 5.14 */) return result == 0;
  rlimit limit{};
  return descriptor_.is_there() && sys::call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, sys::word(&limit)) == 0 &&
         limit.rlim_cur >= end && allocate(begin, end);
}

bool Arena::allocate(std::uint64_t begin, std::uint64_t end) const {
  for (int tries = 0; tries < 100; ++tries) {
    const long done = sys::call(SYS_fallocate, descriptor_.number(), FALLOC_FL_KEEP_SIZE, static_cast<long>(begin),
                                static_cast<long>(end - begin));
    if (done != -4 /* EINTR */) return done == 0;
  }
  return false;
}

}  // namespace karst::runtime
