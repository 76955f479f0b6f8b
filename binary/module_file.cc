// SPDX-License-Identifier: MIT
#include "binary/module_file.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "format/arena.h"
#include "format/file_identity.h"
#include "sandbox/sandbox.h"

namespace karst::binary {
namespace {

using format::FileIdentity;

FileIdentity identity_of(const std::string& bytes) {
  FileIdentity file;
  if (bytes.size() == format::kFileIdentitySize) std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(&file));
  return file;
}

}  // namespace

Error ModuleFile::has_changed(const std::string& how) const {
  return Error{"cannot take names from " + path.string() + ": the file has changed since the trace was made (" + how +
               "); put back the file that ran"};
}

Status ModuleFile::admits(const struct stat& there) const {
  if (!by_file) return Unit{};
  const FileIdentity ran = identity_of(file);
  const FileIdentity now = format::file_identity(there);
  if (ran == FileIdentity{})
    return Error{"cannot take names from " + path.string() +
                 ": it has no build-id, and which file ran could not be told; link it with -Wl,--build-id"};
  if (ran == now) return Unit{};
  if (ran.size == 0 && ran.inode == now.inode && now.modified_ns <= ran.modified_ns) return Unit{};
  std::string how;
  if (ran.inode != now.inode || (ran.size != 0 && ran.device != now.device))
    how = "it is another file";
  else if (ran.size != 0 && ran.size != now.size)
    how = "it has another size";
  else
    how = "it was written to";
  return has_changed(how + ", which is told by inode, size and time, as it has no build-id");
}

bool ModuleFile::admits_mapped(const struct stat& there) const {
  if (!by_file) return true;
  const FileIdentity ran = identity_of(file);
  const FileIdentity now = format::file_identity(there);
  // What /proc/PID/maps calls the device is not what stat() calls it on all file systems.
  return ran.inode != 0 && (ran.size == 0 ? ran.inode == now.inode : ran == now);
}

bool ModuleFile::admits(std::string_view other) const {
  if (build_id.empty() || other == build_id) return true;
  // The arena has room for so much of it.
  constexpr std::size_t kMost = sizeof format::ArenaModule::build_id;
  return build_id.size() == kMost && other.starts_with(build_id);
}

std::uint64_t ModuleFile::written_ns() const {
  if (by_file) return identity_of(file).modified_ns;
  struct stat status {};
  const bool known = mapped != nullptr ? ::fstat(mapped->get(), &status) == 0 : ::stat(path.c_str(), &status) == 0;
  return known ? format::file_identity(status).modified_ns : 0;
}

LiveFiles::LiveFiles(const reader::Process& process, const std::optional<sandbox::Credentials>& as)
    : process_(process) {
  if (process.pid == 0) return;
  const std::string directory = "/proc/" + std::to_string(process.pid);
  struct stat status {};
  // What a process calls its number may be another's. Its own user may read what it has mapped.
  if (::stat(directory.c_str(), &status) == 0 && status.st_uid == (as ? as->uid : ::geteuid())) directory_ = directory;
}

std::string LiveFiles::link_of(const reader::Module& module) {
  if (module.path == process_.executable) return directory_ + "/exe";
  if (!mappings_) mappings_ = read_maps(directory_ + "/maps");
  const auto at = std::find_if(mappings_->begin(), mappings_->end(),
                               [&](const Mapping& m) { return m.contains(module.text_begin); });
  return at == mappings_->end() ? std::string() : directory_ + "/" + at->link();
}

ModuleFile LiveFiles::of(const reader::Module& module) {
  ModuleFile found(module);
  if (directory_.empty() || module.unloaded_ticks != 0 || !module.path.starts_with('/')) return found;
  struct stat there {};
  const bool is_there = ::stat(module.path.c_str(), &there) == 0;
  if (is_there && module.by_file && found.admits(there)) return found;
  const std::string link = link_of(module);
  Descriptor opened(link.empty() ? -1 : sandbox::open_regular(link.c_str()));
  struct stat mapped {};
  if (!opened || ::fstat(opened.get(), &mapped) != 0) return found;
  if (is_there && mapped.st_dev == there.st_dev && mapped.st_ino == there.st_ino) return found;
  if (found.admits_mapped(mapped)) found.mapped = std::make_shared<const Descriptor>(std::move(opened));
  return found;
}

}  // namespace karst::binary
