// SPDX-License-Identifier: MIT
// A file that gets its name when it is whole, in place of what has that name.
//
// Until then it has no name at all (O_TMPFILE), so that nothing is left behind whatever ends this process. Where the
// file system lacks that it has a temporary name, which the destructor and remove_temporary_now() take away.
// All of it goes by descriptors: see base/output_place.h.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"

namespace karst {

/// Move-only; one thread at a time. Functions that return an int return 0 or an errno.
class NewFile {
 public:
  NewFile() = default;
  /// In that directory, for the name `name` or one like it, with mode 0600. The directory may be let go of then.
  static Result<NewFile> create(const Descriptor& directory, const std::string& name);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&& other) noexcept;
  ~NewFile();

  int descriptor() const { return file_.get(); }
  /// Instead of 0600 the mode that any new file of the user has.
  void take_usual_mode() const;
  /// Gives it that name in its directory, in place of what has it.
  int replace(const std::string& name);
  /// Gives it that name; EEXIST where there is something.
  int take_free_name(const std::string& name);
  /// The directory's entries are on the disk then, as far as it may be read.
  int flush_directory() const;
  /// Some file systems tell only when a file is closed that they had no room.
  int settle() const;

  /// For a signal handler that ends the process: removes the temporary files that have names.
  static void remove_temporary_now();

 private:
  int link_as(const std::string& name) const;
  void named();
  void remove_temporary();

  Descriptor directory_;
  Descriptor file_;
  std::string temporary_;  // empty: it has no name, or the final one
  int noted_ = -1;         // where remove_temporary_now() finds it
};

}  // namespace karst
