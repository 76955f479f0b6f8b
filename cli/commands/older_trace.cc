// SPDX-License-Identifier: MIT
#include "cli/commands/older_trace.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "cli/command.h"
#include "format/trace.h"
#include "sandbox/sandbox.h"

namespace karst::cli {

OlderTrace::OlderTrace(const std::string& file) {
  auto place = OutputPlace::find(file);
  if (!place || place->there() != OutputPlace::There::kFile) return;
  place_.emplace(std::move(*place));
  // Whoever may write to the directory may put anything there at any time: a FIFO would keep us waiting.
  const Descriptor there(sandbox::open_regular(place_->name().c_str(), O_NOFOLLOW, directory()));
  char magic[sizeof format::kFileMagic]{};
  if (!there || read(there.get(), magic, sizeof magic) != sizeof magic ||
      std::memcmp(magic, format::kFileMagic, sizeof magic) != 0)
    return;  // not ours to keep
  held_ = place_->name() + "." + std::to_string(getpid()) + ".old";
  if (linkat(directory(), place_->name().c_str(), directory(), held_.c_str(), 0) != 0) held_.clear();
}

OlderTrace::~OlderTrace() {
  if (!held_.empty()) unlinkat(directory(), held_.c_str(), 0);
}

bool OlderTrace::move_to(const std::string& name) {
  if (held_.empty() || renameat(directory(), held_.c_str(), directory(), name.c_str()) != 0) return false;
  held_.clear();
  return true;
}

void give_to_caller(const Descriptor& written, const std::string& name) {
  const char* const user = std::getenv("SUDO_UID");
  const char* const group = std::getenv("SUDO_GID");
  if (geteuid() != 0 || user == nullptr || group == nullptr) return;
  uid_t uid = 0;
  gid_t gid = 0;
  if (std::from_chars(user, user + std::strlen(user), uid).ec != std::errc() ||
      std::from_chars(group, group + std::strlen(group), gid).ec != std::errc())
    return;
  if (!written || fchown(written.get(), uid, gid) != 0) say(name + " stays root's: " + std::strerror(errno));
}

}  // namespace karst::cli
