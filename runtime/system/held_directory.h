// SPDX-License-Identifier: MIT
// The directory that a file is to be made in, held while that is done: as base/output_place.h is for karst.
//
// A symbolic link on the way is followed if nobody but root or our own user can have put it where it is. So another
// user's link leads no file of ours, or of root's where our host is, into another directory. The last part of the name
// is whoever makes the file's to look at (O_NOFOLLOW, or a rename, which replaces a link).
#pragma once

namespace karst::runtime {

/// In signal handlers as well: system calls, and memory of its own.
class HeldDirectory {
 public:
  explicit HeldDirectory(const char* path);
  ~HeldDirectory();
  HeldDirectory(const HeldDirectory&) = delete;
  HeldDirectory& operator=(const HeldDirectory&) = delete;

  /// A descriptor, or -errno; -ELOOP, too, where a link is not followed.
  int number() const { return number_; }
  /// The last part of such a path.
  static const char* name_in(const char* path);

 private:
  int number_;
};

}  // namespace karst::runtime
