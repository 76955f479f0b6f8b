// SPDX-License-Identifier: MIT
// Where an output goes: a name in a directory that is held by descriptor, or what is written to as it is.
//
// The path is followed here, component by component, and never again: whoever may write to a directory of it can put
// something else there at any time. So nobody of them leads what we write, perhaps as root, to a file of their choice.
//
// A symbolic link is followed if nobody but root or ourselves can have put it where it is:
// * it belongs to root or to us, and so does the directory that it is in;
// * others may not write to that directory, or it is sticky and the link has no second name; where we are not root, our
//   own link will do.
// The kernel's links in /proc (/dev/stdout, /dev/fd/63) lead where only the kernel knows, and are followed by it.
#pragma once
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"

namespace karst {

/// Move-only; a value. Nothing is created.
class OutputPlace {
 public:
  enum class There {
    kNothing,
    kFile,       ///< a regular file: a new one takes its name
    kDirectory,  ///< or a path that names one, as one with a slash at its end does
    kSpecial,    ///< a device, a pipe, a socket: written to as it is
    kOpened,     ///< a descriptor of this process, as /dev/stdout and /dev/fd/63 name them, whatever it leads to
  };
  /// A place inside of this process's own descriptors is what?
  enum class Opened {
    kAsItIs,    ///< There::kOpened
    kByItsName  ///< its regular file's name is followed as any other; There::kSpecial where it has none
  };
  /// Error: why there is no such place, without the path.
  static Result<OutputPlace> find(const std::filesystem::path& path, Opened opened = Opened::kAsItIs);

  There there() const { return there_; }
  /// Of what is there. Requires that something is.
  const struct stat& status() const { return status_; }
  /// The directory, to be used with name() in openat() and the like; of kDirectory, itself. Not of kSpecial and
  /// kOpened.
  const Descriptor& directory() const { return directory_; }
  const std::string& name() const { return name_; }
  /// Its path for messages, and for who opens it as any foreign file is opened.
  const std::filesystem::path& path() const { return path_; }
  /// Of kSpecial and kOpened: a descriptor to write to.
  Result<Descriptor> open() const;
  /// What is there may be written to: a new file that takes its name must not go around its mode.
  bool is_writable() const;

 private:
  friend class PlaceSearch;
  OutputPlace() = default;

  There there_ = There::kNothing;
  struct stat status_ {};
  Descriptor directory_;
  std::string name_;
  std::filesystem::path path_;
  Descriptor held_;         // kSpecial, by O_PATH
  int opened_number_ = -1;  // kOpened
};

}  // namespace karst
