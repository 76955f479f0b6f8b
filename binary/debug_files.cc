// SPDX-License-Identifier: MIT
#include "binary/debug_files.h"

#include <elfutils/libdwelf.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/hex.h"
#include "binary/plain_sections.h"
#include "sandbox/sandbox.h"

namespace karst::binary {
namespace {

namespace fs = std::filesystem;

std::string build_id_of(const ElfFile& elf) {
  const void* bytes = nullptr;
  const ssize_t size = dwelf_elf_gnu_build_id(elf.get(), &bytes);
  return size > 0 ? std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(size)) : std::string();
}

bool has_symbol_table(const ElfFile& elf) {
  const auto sections = elf.sections();
  return std::any_of(sections.begin(), sections.end(),
                     [](const ElfSection& s) { return s.header.sh_type == SHT_SYMTAB; });
}

/// That of .gnu_debuglink, over the whole file.
bool crc_of(int fd, std::uint32_t& crc) {
  constexpr std::size_t kBuffer = std::size_t{1} << 18;
  const auto buffer = std::make_unique<unsigned char[]>(kBuffer);
  uLong sum = crc32_z(0, nullptr, 0);
  for (off_t at = 0;;) {
    const ssize_t n = ::pread(fd, buffer.get(), kBuffer, at);
    if (n < 0) return false;
    if (n == 0) break;
    sum = crc32_z(sum, buffer.get(), static_cast<std::size_t>(n));
    at += n;
  }
  crc = static_cast<std::uint32_t>(sum);
  return true;
}

}  // namespace

DebugFiles::DebugFiles(fs::path module, const ElfFile& elf, DebugSearch search)
    : module_(std::move(module)),
      search_(std::move(search)),
      build_id_(build_id_of(elf)),
      stripped_(!has_symbol_table(elf)) {
  GElf_Word crc = 0;
  if (const char* link = dwelf_elf_gnu_debuglink(elf.get(), &crc); link != nullptr) {
    link_ = link;
    crc_ = crc;
  }
}

int DebugFiles::find_debuginfo(Dwfl_Module* module, void** user_data, const char*, Dwarf_Addr, const char* file_name,
                               const char* link, GElf_Word crc, char** found) {
  auto* self = static_cast<DebugFiles*>(*user_data);
  if (self == nullptr) return -1;
  // libdwfl asks here for the debug file, and when that is open, with its name, for the one that it shares with others.
  const bool own = link == nullptr || (!self->link_.empty() && self->link_ == link && self->crc_ == crc);
  std::string path;
  const int fd = own ? self->find(path) : self->find_common(module, file_name != nullptr ? file_name : "", link, path);
  if (fd >= 0) *found = ::strdup(path.c_str());
  return fd;
}

std::vector<fs::path> DebugFiles::directories() const {
  std::vector<fs::path> all = search_.directories;
  all.emplace_back("/usr/lib/debug");
  return all;
}

std::vector<fs::path> DebugFiles::by_build_id(std::string_view build_id) const {
  std::vector<fs::path> paths;
  const std::string digits = hex(build_id);
  if (digits.size() < 6 || digits.size() > 128) return paths;
  const fs::path name = fs::path(".build-id") / digits.substr(0, 2) / (digits.substr(2) + ".debug");
  for (const fs::path& directory : directories()) paths.push_back(directory / name);
  return paths;
}

int DebugFiles::find(std::string& found) {
  if (std::exchange(sought_, true)) return -1;  // libdwfl asks again for each thing that it did not get
  Wanted wanted{build_id_, false, 0};
  std::vector<fs::path> candidates = by_build_id(build_id_);
  if (!link_.empty()) {
    wanted.check_crc = true;
    wanted.crc = crc_;
    std::error_code error;
    fs::path real = fs::canonical(module_, error);  // a name in PATH may be a link to where the files are
    if (error) real = module_;
    const fs::path link = fs::path(link_).filename();
    const fs::path beside = real.parent_path();
    candidates.insert(candidates.end(), {beside / link, beside / ".debug" / link});
    for (const fs::path& directory : directories()) candidates.push_back(directory / beside.relative_path() / link);
    for (const fs::path& directory : search_.directories) candidates.push_back(directory / link);
  }
  for (const fs::path& path : candidates) {
    const int fd = open(path, wanted);
    if (fd < 0) continue;
    found = path;
    return fd;
  }
  return ask_servers(build_id_, wanted, found);
}

int DebugFiles::find_common(Dwfl_Module* module, const fs::path& debug_file, const char* name, std::string& found) {
  Dwarf_Addr bias = 0;
  Dwarf* dwarf = dwfl_module_getdwarf(module, &bias);  // open already: that is why we are asked
  const char* stated = nullptr;
  const void* id = nullptr;
  const ssize_t id_size = dwarf == nullptr ? 0 : dwelf_dwarf_gnu_debugaltlink(dwarf, &stated, &id);
  if (id_size <= 0) return -1;
  const Wanted wanted{{static_cast<const char*>(id), static_cast<std::size_t>(id_size)}, false, 0};
  std::vector<fs::path> candidates = {debug_file.parent_path() / name};  // `name` alone when that is absolute
  for (const fs::path& path : by_build_id(wanted.build_id)) candidates.push_back(path);
  for (const fs::path& directory : search_.directories) {
    candidates.push_back(directory / ".dwz" / fs::path(name).filename());
    candidates.push_back(directory / fs::path(name).filename());
  }
  for (const fs::path& path : candidates) {
    const int fd = open(path, wanted);
    if (fd < 0) continue;
    found = path;
    return fd;
  }
  const int fd = ask_servers(wanted.build_id, wanted, found);
  if (fd < 0) missing_common_ = std::string(name) + " (build-id " + hex(wanted.build_id) + ")";
  return fd;
}

int DebugFiles::open(const fs::path& path, const Wanted& wanted) {
  const int fd = sandbox::open_regular(path.c_str());
  if (fd < 0) return -1;
  // A build without build-id, whose debug link names itself.
  struct stat status {};
  struct stat own {};
  if (::fstat(fd, &status) != 0 ||
      (::stat(module_.c_str(), &own) == 0 && own.st_dev == status.st_dev && own.st_ino == status.st_ino)) {
    ::close(fd);
    return -1;
  }
  return accept(fd, path, wanted);
}

int DebugFiles::accept(int fd, const std::string& path, const Wanted& wanted) {
  std::string id;
  if (const auto elf = ElfFile::borrowing(fd, ElfAccess::kMap); elf.is_elf()) id = build_id_of(elf);
  bool same = false;
  if (!wanted.build_id.empty() && !id.empty()) {
    same = id == wanted.build_id;
  } else if (wanted.check_crc) {
    std::uint32_t crc = 0;
    same = crc_of(fd, crc) && crc == wanted.crc;
  }
  if (!same) {
    ::close(fd);
    if (refused_.empty()) refused_ = path + " belongs to another build";
    return -1;
  }
  auto plain = with_plain_sections(fd);
  if (plain) return *plain;
  refused_ = path + " cannot be used: " + plain.error().message;
  return -1;
}

int DebugFiles::ask_servers(std::string_view build_id, const Wanted& wanted, std::string& found) {
  if (search_.servers == nullptr || build_id.empty()) return -1;
  auto answer = search_.servers->find(build_id);
  if (!answer) {
    server_said_ = answer.error().message;
    return -1;
  }
  found = answer->path;
  return accept(answer->fd, answer->path, wanted);
}

std::string DebugFiles::how_to_get_it() const {
  std::string text = "its debug file";
  // Debian's are called like the end of the build-id.
  const std::string id = hex(build_id_);
  if (!link_.empty() && id.find(link_.substr(0, link_.find('.'))) == std::string::npos) text += " " + link_;
  if (!build_id_.empty()) text += " (build-id " + id + ")";
  text += link_.empty() ? " is not in " : " is neither beside it nor in ";
  const std::vector<fs::path> all = directories();
  for (std::size_t i = 0; i < all.size(); ++i) text += (i == 0 ? "" : ", ") + all[i].string();
  if (!refused_.empty()) text += "; " + refused_;
  text += server_said_.empty() ? "" : "; " + server_said_;
  text += ". Install its -dbgsym package, or use --debug-dir";
  if (search_.servers == nullptr) {
    const char* const urls = std::getenv("DEBUGINFOD_URLS");
    text += urls == nullptr || *urls == '\0'
                ? " or, with servers in DEBUGINFOD_URLS, --debuginfod"
                : " or --debuginfod, which tells the servers of DEBUGINFOD_URLS this build-id";
  }
  return text;
}

}  // namespace karst::binary
