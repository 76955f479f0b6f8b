// SPDX-License-Identifier: MIT
#include "binary/elf_module.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/descriptor.h"
#include "binary/elf_file.h"
#include "binary/plain_sections.h"
#include "binary/vdso.h"
#include "sandbox/sandbox.h"

namespace karst::binary {
namespace {

const Dwfl_Callbacks kCallbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = DebugFiles::find_debuginfo,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = nullptr,
};

Error error_at(const std::filesystem::path& path, const std::string& what) {
  return Error{"cannot read symbols of " + path.string() + ": " + what};
}

std::string dwfl_reason() {
  const char* text = dwfl_errmsg(-1);
  return text != nullptr ? text : "not an ELF file";
}

/// Executable sections; without section headers (sstrip), executable segments.
std::vector<AddressRange> text_ranges(const ElfFile& elf) {
  std::vector<AddressRange> ranges;
  const auto add = [&ranges](std::uint64_t begin, std::uint64_t size) {
    std::uint64_t end = 0;
    if (size != 0 && !__builtin_add_overflow(begin, size, &end)) ranges.push_back({begin, end});
  };
  for (const ElfSection& s : elf.sections())
    if ((s.header.sh_flags & SHF_EXECINSTR) != 0) add(s.header.sh_addr, s.header.sh_size);
  if (ranges.empty())
    for (const GElf_Phdr& s : elf.segments())
      if (s.p_type == PT_LOAD && (s.p_flags & PF_X) != 0) add(s.p_vaddr, s.p_memsz);
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return ranges;
}

const AddressRange* range_of(const std::vector<AddressRange>& ranges, std::uint64_t address) {
  auto after = std::upper_bound(ranges.begin(), ranges.end(), address,
                                [](std::uint64_t a, const AddressRange& r) { return a < r.begin; });
  if (after == ranges.begin()) return nullptr;
  const AddressRange& range = *std::prev(after);
  return address < range.end ? &range : nullptr;
}

/// The module's file.
Result<int> open_file(const ModuleFile& file) {
  if (is_vdso(file.path)) {
    auto vdso = open_vdso();
    return vdso ? vdso : error_at(file.path, vdso.error().message);
  }
  const int fd = sandbox::open_regular(file.path.c_str());
  if (fd < 0) return error_at(file.path, fd == -EINVAL ? "not a regular file" : std::strerror(-fd));
  struct stat status {};
  if (::fstat(fd, &status) == 0) {
    const Status admitted = file.admits(status);
    if (admitted) return fd;
    ::close(fd);
    return admitted.error();
  }
  ::close(fd);
  return error_at(file.path, "its state is not known");
}

}  // namespace

Result<ElfModule> ElfModule::open(const ModuleFile& file, const DebugSearch& search) {
  const auto take = [&](int descriptor) -> Result<ElfModule> {
    auto module = open(descriptor, file.path, search);
    if (module && !file.admits(module->build_id())) return file.has_changed("another build-id");
    return module;
  };
  const auto there = open_file(file);
  auto module = there ? take(*there) : Result<ElfModule>(there.error());
  if (module || file.mapped == nullptr) return module;
  const int mapped = ::fcntl(file.mapped->get(), F_DUPFD_CLOEXEC, 0);
  if (mapped < 0) return module;
  auto ran = take(mapped);
  return ran ? std::move(ran) : std::move(module);  // the path is what users know
}

Result<ElfModule> ElfModule::open(int descriptor, const std::filesystem::path& path, const DebugSearch& search) {
  auto file = with_plain_sections(descriptor);
  if (!file) return error_at(path, file.error().message);
  Descriptor opened(*file);
  ElfModule result;
  result.dwfl_.reset(dwfl_begin(&kCallbacks));
  if (result.dwfl_ == nullptr) return error_at(path, dwfl_reason());
  // Base 0 on top of p_vaddr: addresses stay those of the file.
  result.module_ = dwfl_report_elf(result.dwfl_.get(), "module", path.c_str(), opened.get(), 0, true);
  if (result.module_ == nullptr) return error_at(path, dwfl_reason());
  opened.release();  // libdwfl's from here on
  dwfl_report_end(result.dwfl_.get(), nullptr, nullptr);

  GElf_Addr bias = 0;
  const auto elf = ElfFile::of(dwfl_module_getelf(result.module_, &bias));
  if (!elf.header()) return error_at(path, dwfl_reason());
  if (!elf.is_x86_64()) return error_at(path, "not for x86-64");
  if (elf.type() != ET_EXEC && elf.type() != ET_DYN)
    return error_at(path, "neither an executable nor a shared library");
  const unsigned char* id = nullptr;
  GElf_Addr id_address = 0;
  if (int size = dwfl_module_build_id(result.module_, &id, &id_address); size > 0) {
    result.build_id_ = {reinterpret_cast<const char*>(id), static_cast<std::size_t>(size)};
  }
  result.text_ = text_ranges(elf);
  result.debug_files_ = std::make_unique<DebugFiles>(path, elf, search);
  void** user_data = nullptr;
  dwfl_module_info(result.module_, &user_data, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  if (user_data != nullptr) *user_data = result.debug_files_.get();
  return result;
}

bool ElfModule::in_text(std::uint64_t address) const { return range_of(text_, address) != nullptr; }

std::vector<ElfFunction> ElfModule::functions() const {
  std::vector<ElfFunction> functions;
  int count = dwfl_module_getsymtab(module_);
  for (int i = 1; i < count; ++i) {  // 0 is the null symbol
    GElf_Sym symbol;
    GElf_Addr address = 0;
    GElf_Word section = 0;
    const char* name = dwfl_module_getsym_info(module_, i, &symbol, &address, &section, nullptr, nullptr);
    if (name == nullptr || name[0] == '\0' || section == SHN_UNDEF) continue;
    int type = GELF_ST_TYPE(symbol.st_info);
    if (type != STT_FUNC && type != STT_GNU_IFUNC) continue;
    const AddressRange* text = range_of(text_, address);
    if (text == nullptr) continue;
    // A size beyond the section is a lie; 0 (assembly) is settled below.
    std::uint64_t size = std::min<std::uint64_t>(symbol.st_size, text->end - address);
    int binding = GELF_ST_BIND(symbol.st_info);
    int rank = binding == STB_LOCAL ? 2 : binding == STB_WEAK ? 1 : 0;
    functions.push_back({{address, address + size}, name, rank, type == STT_GNU_IFUNC});
  }
  std::sort(functions.begin(), functions.end(), [](const ElfFunction& a, const ElfFunction& b) {
    if (a.range.begin != b.range.begin) return a.range.begin < b.range.begin;
    if (a.rank != b.rank) return a.rank < b.rank;
    std::size_t a_length = std::strlen(a.name);
    std::size_t b_length = std::strlen(b.name);
    return a_length != b_length ? a_length < b_length : std::strcmp(a.name, b.name) < 0;
  });
  // A function without a size reaches to the next one.
  std::uint64_t next = 0;
  for (auto it = functions.rbegin(); it != functions.rend(); ++it) {
    if (it != functions.rbegin() && std::prev(it)->range.begin != it->range.begin) next = std::prev(it)->range.begin;
    if (it->range.end != it->range.begin) continue;
    std::uint64_t limit = range_of(text_, it->range.begin)->end;
    it->range.end = next > it->range.begin ? std::min(next, limit) : limit;
  }
  return functions;
}

std::vector<ElfFunction> ElfModule::objects_at(const std::vector<std::uint64_t>& addresses) const {
  std::vector<ElfFunction> found(addresses.size());
  const int count = dwfl_module_getsymtab(module_);
  for (int i = 1; i < count; ++i) {
    GElf_Sym symbol;
    GElf_Addr begin = 0;
    GElf_Word section = 0;
    const char* name = dwfl_module_getsym_info(module_, i, &symbol, &begin, &section, nullptr, nullptr);
    if (name == nullptr || name[0] == '\0' || section == SHN_UNDEF || GELF_ST_TYPE(symbol.st_info) != STT_OBJECT)
      continue;
    const int binding = GELF_ST_BIND(symbol.st_info);
    const int rank = binding == STB_LOCAL ? 2 : binding == STB_WEAK ? 1 : 0;
    for (std::size_t of = 0; of < addresses.size(); ++of) {
      if (addresses[of] < begin || addresses[of] - begin >= symbol.st_size) continue;
      ElfFunction& best = found[of];
      const bool nearer =
          best.name == nullptr || begin > best.range.begin ||
          (begin == best.range.begin && (rank < best.rank || (rank == best.rank && std::strcmp(name, best.name) < 0)));
      if (nearer) best = {{begin, begin + symbol.st_size}, name, rank};
    }
  }
  return found;
}

}  // namespace karst::binary
