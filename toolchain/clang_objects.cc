// SPDX-License-Identifier: MIT
#include "toolchain/clang_objects.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "binary/elf_file.h"
#include "format/sled_note.h"

namespace karst::toolchain {
namespace {

using format::XRayKind;
using format::XRayRecord;

constexpr std::string_view kOldName = "xray_instr_map";
constexpr std::string_view kNewName = "karst_clang_sleds";
constexpr std::string_view kIndexName = "xray_fn_idx";  // where in the table each function's sleds are; of newer clang
constexpr std::uint64_t kMostAlignment = 1 << 16;       // libelf fills files up to where sections begin
constexpr std::string_view kRelocations = ".rela";
constexpr std::uint64_t kMostBeforeEntry = 5;  // an endbr64 and a byte

/// Beside a file whose name it is to get; else it is removed.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& file, mode_t mode) : file_(file), path_(file + ".karst-XXXXXX") {
    file_descriptor_ = Descriptor(mkostemp(path_.data(), O_CLOEXEC));
    is_there_ = static_cast<bool>(file_descriptor_);
    if (is_there_ && fchmod(file_descriptor_.get(), mode & 07777) != 0) file_descriptor_.close();
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (is_there_) unlink(path_.c_str());
  }
  /// Negative: it could not be made, and errno says why.
  int descriptor() const { return file_descriptor_.get(); }
  bool take_name() {
    if (!file_descriptor_.close() || rename(path_.c_str(), file_.c_str()) != 0) return false;
    is_there_ = false;
    return true;
  }

 private:
  std::string file_;
  std::string path_;
  Descriptor file_descriptor_;
  bool is_there_ = false;
};

/// A place in a section.
struct Place {
  std::size_t section;
  std::uint64_t offset;
  std::uint64_t symbol;  ///< what the relocation names, and what it adds
  std::int64_t addend;
};

/// A table as it is to be, with its relocations.
struct Table {
  std::vector<std::uint16_t> units;
  std::vector<Elf64_Rela> relocations;
  std::vector<Place> entries;
};

constexpr unsigned char kEntrySled[] = {0xeb, 0x09, 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00};
constexpr unsigned char kEntryNops[] = {0x0f, 0x1f, 0x44, 0x00, 0x00, 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00};
static_assert(sizeof kEntrySled == sizeof kEntryNops);

/// KARST_UNTRACED_SECTION as it is to be: addresses of functions, all from relocations.
struct UntracedFunctions {
  std::vector<std::uint64_t> addresses;
  std::vector<Elf64_Rela> relocations;
};

/// The sections of one object file.
class Object {
 public:
  /// False if it is not a 64-bit x86 object that we understand.
  bool read(const binary::ElfFile& file) {
    Elf* const elf = elf_ = file.get();
    if (!file.is_x86_64() || file.type() != ET_REL || elf_getshdrnum(elf, &count_) != 0 ||
        elf_getshdrstrndx(elf, &names_) != 0)
      return false;
    for (std::size_t i = 1; i < count_; ++i) {
      GElf_Shdr section;
      if (gelf_getshdr(elf_getscn(elf, i), &section) == nullptr || section.sh_addralign > kMostAlignment) return false;
      if (section.sh_type == SHT_RELA) relocations_of_[section.sh_info] = i;
      if (section.sh_type == SHT_SYMTAB) symbols_ = i;
      if (section.sh_type == SHT_SYMTAB_SHNDX) indices_ = i;
      const char* name = elf_strptr(elf, names_, section.sh_name);
      if (section.sh_type != SHT_PROGBITS || name == nullptr) continue;
      if (name == kOldName) tables_.push_back(i);
      if (name == kIndexName) indexes_.push_back(i);
    }
    if (symbols_ == 0) return false;
    symbol_data_ = elf_getdata(elf_getscn(elf, symbols_), nullptr);
    index_data_ = indices_ == 0 ? nullptr : elf_getdata(elf_getscn(elf, indices_), nullptr);
    return symbol_data_ != nullptr && find_named();
  }
  /// Sections that nobody needs where the tables are others.
  const std::vector<std::size_t>& indexes() const { return indexes_; }
  std::size_t count() const { return count_; }
  std::size_t names() const { return names_; }
  const std::vector<std::size_t>& tables() const { return tables_; }
  /// 0: it has none.
  std::size_t relocations_of(std::size_t section) const {
    const auto found = relocations_of_.find(section);
    return found == relocations_of_.end() ? 0 : found->second;
  }
  /// Nothing if something in it is unknown.
  std::optional<Table> shortened(std::size_t table) const;
  /// Functions without an entry in one of its tables. Those with names of the file's own in a section that the linker
  /// may drop for another file's are not told.
  UntracedFunctions untraced(const std::map<std::size_t, Table>& tables) const;
  std::size_t symbols() const { return symbols_; }

 private:
  /// What something refers to, other than an index, cannot change its size.
  bool find_named() {
    is_named_.resize(count_);
    std::vector<bool> is_table(count_);
    for (const std::size_t table : tables_) is_table[table] = true;
    const std::size_t symbols = symbol_data_->d_size / sizeof(Elf64_Sym);
    std::vector<bool> is_of_table(symbols);
    bool any = false;
    for (std::size_t i = 1; i < symbols; ++i)
      if (const auto section = section_of(i)) any = (is_of_table[i] = is_table[*section]) || any;
    for (const auto& [section, number] : relocations_of_) {
      if (!any || std::find(indexes_.begin(), indexes_.end(), section) != indexes_.end()) continue;
      for (const Elf64_Rela& relocation : relocations(number)) {
        const std::uint64_t symbol = ELF64_R_SYM(relocation.r_info);
        if (symbol >= symbols) return false;
        if (is_of_table[symbol]) is_named_[*section_of(symbol)] = true;
      }
    }
    return true;
  }
  std::vector<Elf64_Rela> relocations(std::size_t number) const {
    const Elf_Data* data = elf_rawdata(elf_getscn(elf_, number), nullptr);
    std::vector<Elf64_Rela> all(data == nullptr ? 0 : data->d_size / sizeof(Elf64_Rela));
    if (!all.empty()) std::memcpy(all.data(), data->d_buf, all.size() * sizeof all[0]);
    return all;
  }
  std::optional<std::size_t> section_of(std::uint64_t symbol, std::uint64_t* value = nullptr) const {
    GElf_Sym found;
    Elf32_Word wide = 0;
    if (gelf_getsymshndx(symbol_data_, index_data_, static_cast<int>(symbol), &found, &wide) == nullptr) return {};
    if (value != nullptr) *value = found.st_value;
    const std::size_t section = found.st_shndx == SHN_XINDEX ? wide : found.st_shndx;
    const bool is_one = found.st_shndx == SHN_XINDEX || found.st_shndx < SHN_LORESERVE;
    if (!is_one || section == SHN_UNDEF || section >= count_) return {};
    return section;
  }
  /// Where the field at `offset` of the table points to.
  std::optional<Place> place_at(const std::map<std::uint64_t, Elf64_Rela>& relocations, std::uint64_t offset) const {
    const auto found = relocations.find(offset);
    if (found == relocations.end() || ELF64_R_TYPE(found->second.r_info) != R_X86_64_PC64) return {};
    const std::uint64_t symbol = ELF64_R_SYM(found->second.r_info);
    std::uint64_t value = 0;
    const auto section = section_of(symbol, &value);
    if (!section) return {};
    return Place{*section, value + static_cast<std::uint64_t>(found->second.r_addend), symbol, found->second.r_addend};
  }
  bool has_entry_sled(const Place& place) const {
    const Elf_Data* data = elf_rawdata(elf_getscn(elf_, place.section), nullptr);
    return data != nullptr && data->d_buf != nullptr && place.offset <= data->d_size &&
           data->d_size - place.offset >= sizeof kEntrySled &&
           std::memcmp(static_cast<const char*>(data->d_buf) + place.offset, kEntrySled, sizeof kEntrySled) == 0;
  }
  bool is_even(const Place& place) const {
    GElf_Shdr section;
    return gelf_getshdr(elf_getscn(elf_, place.section), &section) != nullptr && section.sh_addralign >= 2 &&
           section.sh_addralign % 2 == 0 && place.offset % 2 == 0;
  }

  Elf* elf_ = nullptr;
  std::size_t count_ = 0;
  std::size_t names_ = 0;
  std::size_t symbols_ = 0;
  std::size_t indices_ = 0;
  Elf_Data* symbol_data_ = nullptr;
  Elf_Data* index_data_ = nullptr;
  std::map<std::size_t, std::size_t> relocations_of_;
  std::vector<std::size_t> tables_;
  std::vector<std::size_t> indexes_;
  std::vector<bool> is_named_;
};

void append_distant(Table& table, const Place& to) {
  const std::uint64_t at = table.units.size() * sizeof table.units[0];
  table.relocations.push_back({at, ELF64_R_INFO(to.symbol, R_X86_64_PC32), to.addend});
  table.units.insert(table.units.end(), {0, 0});
}

void append_far(Table& table, std::uint16_t kind, const Place& to) {
  table.units.insert(table.units.end(), {KARST_SLED_UNIT_FAR, kind});
  append_distant(table, to);
}

std::optional<Table> Object::shortened(std::size_t number) const {
  if (is_named_[number] || relocations_of(number) == 0) return {};
  const Elf_Data* data = elf_rawdata(elf_getscn(elf_, number), nullptr);
  if (data == nullptr || data->d_size % sizeof(XRayRecord) != 0) return {};
  std::map<std::uint64_t, Elf64_Rela> by_offset;
  for (const Elf64_Rela& relocation : relocations(relocations_of(number))) by_offset[relocation.r_offset] = relocation;

  Table table;
  std::optional<Place> entry;
  std::optional<Place> function;  // that the entry belongs to
  for (std::size_t i = 0; i < data->d_size; i += sizeof(XRayRecord)) {
    XRayRecord record;
    std::memcpy(&record, static_cast<const char*>(data->d_buf) + i, sizeof record);
    if (record.version != format::kXRayVersion || record.kind > static_cast<std::uint8_t>(XRayKind::kTypedEvent))
      return {};
    const auto kind = static_cast<XRayKind>(record.kind);
    if (kind > XRayKind::kEntryWithArguments) continue;
    const auto sled = place_at(by_offset, i);
    const auto begin = place_at(by_offset, i + offsetof(XRayRecord, function));
    if (!sled || !begin || !is_even(*sled)) return {};
    if (kind == XRayKind::kEntry || kind == XRayKind::kEntryWithArguments) {
      // The new table does not say where the function begins: before the sled are an endbr64 and a byte at most.
      if (begin->section != sled->section || sled->offset - begin->offset > kMostBeforeEntry) return {};
      if (record.always != 0)
        append_far(table, KARST_SLED_ENTRY | KARST_SLED_ALWAYS, *sled);
      else
        append_distant(table, *sled);
      if (!has_entry_sled(*sled)) return {};
      table.entries.push_back(*sled);
      entry = sled;
      function = begin;
      continue;
    }
    if (!function || begin->section != function->section || begin->offset != function->offset) return {};
    const std::uint16_t tail = kind == XRayKind::kTailCall ? KARST_SLED_UNIT_TAIL_CALL : 0;
    const std::uint64_t distance = sled->offset - entry->offset;
    if (sled->section == entry->section && distance != 0 && distance < KARST_SLED_UNIT_TAIL_CALL) {
      if (tail != 0) table.units.push_back(KARST_SLED_UNIT_JUMP);
      table.units.push_back(static_cast<std::uint16_t>(distance | KARST_SLED_UNIT_NEAR | tail));
    } else {
      append_far(table, kind == XRayKind::kTailCall ? KARST_SLED_TAIL_CALL : KARST_SLED_RETURN, *sled);
    }
  }
  return table;
}

UntracedFunctions Object::untraced(const std::map<std::size_t, Table>& tables) const {
  std::map<std::pair<std::size_t, std::uint64_t>, bool> entries;
  for (const auto& [number, table] : tables)
    for (const Place& entry : table.entries) entries[{entry.section, entry.offset}] = true;
  UntracedFunctions found;
  const std::size_t count = symbol_data_->d_size / sizeof(Elf64_Sym);
  for (std::size_t i = 1; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(symbol_data_, static_cast<int>(i), &symbol) == nullptr || GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
      continue;
    const auto section = section_of(i);
    GElf_Shdr header;
    if (!section || gelf_getshdr(elf_getscn(elf_, *section), &header) == nullptr ||
        (GELF_ST_BIND(symbol.st_info) == STB_LOCAL && (header.sh_flags & SHF_GROUP) != 0))
      continue;
    const auto entry = entries.lower_bound({*section, symbol.st_value});
    if (entry != entries.end() && entry->first.first == *section &&
        entry->first.second - symbol.st_value <= kMostBeforeEntry)
      continue;
    found.relocations.push_back({found.addresses.size() * sizeof(std::uint64_t), ELF64_R_INFO(i, R_X86_64_64), 0});
    found.addresses.push_back(0);
  }
  return found;
}

/// What a section has in place of what it had.
struct Replacement {
  const void* contents;
  std::size_t size;
  std::uint32_t name;       ///< 0: the one that it has
  std::uint64_t alignment;  ///< 0: the same
};

/// Writes an object with other tables. Both must outlive it.
class Copy {
 public:
  Copy(const Object& object, Elf* from, Elf* to) : object_(object), from_(from), to_(to) {}

  /// `tables` by section. False: libelf says why not.
  bool write(const std::map<std::size_t, Table>& tables, const UntracedFunctions& untraced) {
    GElf_Ehdr header;
    const Elf_Data* const names = elf_rawdata(elf_getscn(from_, object_.names()), nullptr);
    if (names == nullptr || gelf_getehdr(from_, &header) == nullptr || gelf_newehdr(to_, ELFCLASS64) == nullptr ||
        !set_header(header, !untraced.addresses.empty()))
      return false;
    std::string text(static_cast<const char*>(names->d_buf), names->d_size);
    const auto name_of_relocations = static_cast<std::uint32_t>(text.size());
    const auto name = name_of_relocations + static_cast<std::uint32_t>(kRelocations.size());
    text.append(kRelocations).append(kNewName).append(1, '\0');
    const auto name_of_untraced = static_cast<std::uint32_t>(text.size());
    text.append(kRelocations).append(KARST_UNTRACED_SECTION).append(1, '\0');

    std::map<std::size_t, Replacement> replacements;
    replacements[object_.names()] = {text.data(), text.size(), 0, 1};
    for (const auto& [number, table] : tables) {
      const auto& units = table.units;
      const auto& relocations = table.relocations;
      replacements[number] = {units.data(), units.size() * sizeof units[0], name, sizeof units[0]};
      replacements[object_.relocations_of(number)] = {relocations.data(), relocations.size() * sizeof relocations[0],
                                                      name_of_relocations, alignof(Elf64_Rela)};
    }
    for (const std::size_t number : object_.indexes())
      for (const std::size_t emptied : {number, object_.relocations_of(number)})
        if (emptied != 0) replacements[emptied] = {"", 0, 0, 1};
    const std::map<std::size_t, std::string> code = code_of(tables);
    for (const auto& [number, bytes] : code) replacements[number] = {bytes.data(), bytes.size(), 0, 0};
    for (std::size_t i = 1; i < object_.count(); ++i) {
      const auto found = replacements.find(i);
      if (!copy(i, found == replacements.end() ? nullptr : &found->second)) return false;
    }
    if (!untraced.addresses.empty() && !add(untraced, name_of_untraced)) return false;
    return copy_first_section() && elf_update(to_, ELF_C_WRITE) >= 0;
  }

 private:
  /// Linkers heed SHF_GNU_RETAIN in files of this kind alone.
  bool set_header(GElf_Ehdr& header, bool retains) {
    if (retains) header.e_ident[EI_OSABI] = ELFOSABI_GNU;
    return gelf_update_ehdr(to_, &header) != 0;
  }

  bool add(const UntracedFunctions& untraced, std::uint32_t name_of_relocations) {
    const auto put = [this](GElf_Shdr header, const void* contents, std::uint64_t size) {
      Elf_Scn* const fresh = elf_newscn(to_);
      Elf_Data* const data = fresh == nullptr ? nullptr : elf_newdata(fresh);
      if (data == nullptr) return false;
      data->d_buf = const_cast<void*>(contents);
      data->d_size = size;
      data->d_type = ELF_T_BYTE;
      data->d_align = header.sh_addralign = alignof(std::uint64_t);
      data->d_version = EV_CURRENT;
      header.sh_size = size;
      return gelf_update_shdr(fresh, &header) != 0;
    };
    GElf_Shdr section{};
    section.sh_name = name_of_relocations + static_cast<std::uint32_t>(kRelocations.size());
    section.sh_type = SHT_PROGBITS;
    section.sh_flags = kRetained;
    if (!put(section, untraced.addresses.data(), untraced.addresses.size() * sizeof untraced.addresses[0]))
      return false;
    GElf_Shdr relocations{};
    relocations.sh_name = name_of_relocations;
    relocations.sh_type = SHT_RELA;
    relocations.sh_flags = SHF_INFO_LINK;
    relocations.sh_link = static_cast<GElf_Word>(object_.symbols());
    relocations.sh_info = static_cast<GElf_Word>(object_.count());
    relocations.sh_entsize = sizeof untraced.relocations[0];
    return put(relocations, untraced.relocations.data(), untraced.relocations.size() * sizeof untraced.relocations[0]);
  }
  static constexpr GElf_Xword kRetained = 0x200000;  // SHF_GNU_RETAIN, which Debian 12's elf.h lacks

  /// Sections with entries, in which these are NOPs. The tables know that they are there.
  std::map<std::size_t, std::string> code_of(const std::map<std::size_t, Table>& tables) const {
    std::map<std::size_t, std::string> code;
    for (const auto& [number, table] : tables) {
      for (const Place& entry : table.entries) {
        std::string& bytes = code[entry.section];
        if (bytes.empty()) {
          const Elf_Data* const data = elf_rawdata(elf_getscn(from_, entry.section), nullptr);
          bytes.assign(static_cast<const char*>(data->d_buf), data->d_size);
        }
        std::memcpy(bytes.data() + entry.offset, kEntryNops, sizeof kEntryNops);
      }
    }
    return code;
  }

  bool copy(std::size_t number, const Replacement* replacement) {
    Elf_Scn* const old = elf_getscn(from_, number);
    Elf_Scn* const fresh = elf_newscn(to_);
    GElf_Shdr section;
    if (fresh == nullptr || gelf_getshdr(old, &section) == nullptr) return false;
    const Elf_Data* const before = elf_rawdata(old, nullptr);
    Elf_Data* const data = elf_newdata(fresh);
    if (before == nullptr || data == nullptr) return false;
    *data = *before;
    data->d_type = ELF_T_BYTE;
    data->d_off = 0;
    data->d_align = std::max<std::uint64_t>(section.sh_addralign, 1);
    if (replacement != nullptr) {
      data->d_buf = const_cast<void*>(replacement->contents);
      data->d_size = replacement->size;
      if (replacement->alignment != 0) data->d_align = section.sh_addralign = replacement->alignment;
      if (replacement->name != 0) section.sh_name = replacement->name;
    }
    section.sh_size = data->d_size;
    return gelf_update_shdr(fresh, &section) != 0;
  }

  /// Its header has what does not fit into the file's: of very many sections their number, which libelf writes, and
  /// which of them has the names.
  bool copy_first_section() {
    GElf_Shdr before;
    GElf_Shdr section;
    Elf_Scn* const first = elf_getscn(to_, 0);
    if (gelf_getshdr(elf_getscn(from_, 0), &before) == nullptr || gelf_getshdr(first, &section) == nullptr)
      return false;
    section.sh_link = before.sh_link;
    return gelf_update_shdr(first, &section) != 0;
  }

  const Object& object_;
  Elf* from_;
  Elf* to_;
};

}  // namespace

Status shorten_sled_tables(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1) return Unit{};
  // Mapped: the compiler has ended, and the object is the user's own.
  const binary::ElfFile from(Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC)), binary::ElfAccess::kMap);
  Object object;
  if (!from.is_elf() || !object.read(from)) return Unit{};
  std::map<std::size_t, Table> tables;
  for (const std::size_t number : object.tables())
    if (auto table = object.shortened(number)) tables.emplace(number, std::move(*table));
  // Where a table stays as it is, karst does not ask which functions have none.
  const UntracedFunctions untraced =
      tables.size() == object.tables().size() ? object.untraced(tables) : UntracedFunctions{};
  if (tables.empty() && untraced.addresses.empty()) return Unit{};
  const auto problem = [&](const char* why) { return Error{path + " keeps its larger table of sleds: " + why}; };
  TemporaryFile out(path, status.st_mode);
  if (out.descriptor() < 0) return problem(std::strerror(errno));
  {
    const binary::ElfHandle to(elf_begin(out.descriptor(), ELF_C_WRITE, nullptr));
    if (to == nullptr || !Copy(object, from.get(), to.get()).write(tables, untraced)) return problem(elf_errmsg(-1));
  }
  if (!out.take_name()) return problem(std::strerror(errno));
  return Unit{};
}

}  // namespace karst::toolchain
