// SPDX-License-Identifier: MIT
// Which file a module's names may come from: the very file that ran, wherever it is now.
//
// A path is no identity: the file may have been rebuilt, replaced or removed while the process went on. A build-id
// tells; without one, what the kernel said of the file when the module was registered (format/file_identity.h).
#pragma once
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/process_maps.h"
#include "base/result.h"
#include "reader/model.h"
#include "sandbox/credentials.h"

namespace karst::binary {

struct ModuleFile {
  ModuleFile(std::filesystem::path where, std::string id = {}) : path(std::move(where)), build_id(std::move(id)) {}
  explicit ModuleFile(const reader::Module& module)
      : path(module.path), build_id(module.build_id), by_file(module.by_file), file(module.file) {}

  std::filesystem::path path;
  std::string build_id;  ///< raw bytes; empty: it has none, or any will do
  bool by_file = false;  ///< as of reader::Module
  std::string file;
  /// The file that a process has mapped, where that is another one than the one at the path. For the sandbox to keep.
  std::shared_ptr<const Descriptor> mapped{};

  /// The file at the path is the one that ran, as far as that can be told before it is read. Error: it is not, and why.
  Status admits(const struct stat& there) const;
  /// The same of the file that is mapped.
  bool admits_mapped(const struct stat& there) const;
  /// An ELF file that calls itself this is the one that ran.
  bool admits(std::string_view other_build_id) const;
  Error has_changed(const std::string& how) const;
  /// When the contents of the file that ran were last written, in nanoseconds since 1970; 0: not known. Without a look
  /// into a file with a build-id: one that was built since may be there.
  std::uint64_t written_ns() const;
};

/// The files of a process that may still run: by its links in /proc it has them also when they were removed.
class LiveFiles {
 public:
  /// With the rights of `as`: nothing is opened of another user's process.
  LiveFiles(const reader::Process& process, const std::optional<sandbox::Credentials>& as);
  ModuleFile of(const reader::Module& module);

 private:
  std::string link_of(const reader::Module& module);

  const reader::Process& process_;
  std::string directory_;  // empty: the process is not there, or not ours to look at
  std::optional<std::vector<Mapping>> mappings_;
};

}  // namespace karst::binary
