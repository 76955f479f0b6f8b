// SPDX-License-Identifier: MIT
// Reads program headers, notes and tables of a loaded module. Each place that they name is compared with the module's
// own segments before it is read.
#include "runtime/modules/module_image.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>

#include "arch/page.h"
#include "runtime/system/syscalls.h"

namespace karst::runtime {

using namespace format;

namespace {

constexpr std::uint32_t kNtGnuBuildId = 3;
constexpr std::uint32_t kRuntimeOfUnits = 3;   // since which gcc's table is as it is
constexpr std::uint64_t kMostBeforeSled = 64;  // of clang's: an endbr64, padding, and whatever a later version may put
#ifdef KARST_STATIC
constexpr bool kIsStatic = true;  // then nothing tells what the program calls
#else
constexpr bool kIsStatic = false;
#endif
constexpr const char* kDamaged = "has a damaged sled table";

template <typename T>
const T* self_relative(const std::int32_t& field) {
  return reinterpret_cast<const T*>(reinterpret_cast<std::uintptr_t>(&field) +
                                    static_cast<std::uintptr_t>(std::intptr_t{field}));
}

/// False if the table ends before it begins.
template <typename T>
bool set_table(const std::int32_t& begin, const std::int32_t& end, const T*& table, std::uint64_t& count) {
  table = self_relative<T>(begin);
  const auto first = reinterpret_cast<std::uintptr_t>(table);
  const auto last = reinterpret_cast<std::uintptr_t>(self_relative<T>(end));
  count = last > first ? (last - first) / sizeof(T) : 0;
  return last >= first;
}

void read_karst_note(const char* content, std::uint32_t size, ModuleImage& image) {
  const auto& note = *reinterpret_cast<const SledNote*>(content);
  image.has_note = true;
  image.note_version = note.version;
  image.note_flags = note.flags;
  image.table_is_torn = !set_table(note.table_begin, note.table_end, image.gcc, image.gcc_units);
  if (note.version == 1) return;
  if (size < (note.version == 2 ? std::size_t{kSledNoteSizeOfVersion2} : sizeof(SledNote))) {
    image.note_version = 0;
    return;
  }
  if (!set_table(note.xray_begin, note.xray_end, image.xray, image.xray_count)) image.table_is_torn = true;
  image.least_runtime = note.runtime;
  if (note.version == 2) return;
  if (!set_table(note.clang_begin, note.clang_end, image.clang, image.clang_units)) image.table_is_torn = true;
  image.clang_entries_are_nops = note.version >= kSledNoteOfNops;
}

void read_notes(const char* p, std::uint64_t size, ModuleImage& image) {
  while (size >= sizeof(ElfW(Nhdr))) {
    const auto& note = *reinterpret_cast<const ElfW(Nhdr)*>(p);
    const std::uint64_t name_size = align_up(note.n_namesz, 4);
    const std::uint64_t all = sizeof note + name_size + align_up(note.n_descsz, 4);
    if (all > size) return;
    const char* name = p + sizeof note;
    const char* content = name + name_size;
    if (note.n_namesz == sizeof KARST_NOTE_NAME && note.n_type == KARST_NOTE_TYPE &&
        note.n_descsz >= kSledNoteSizeOfVersion1 && equal(name, KARST_NOTE_NAME)) {
      read_karst_note(content, note.n_descsz, image);
    } else if (note.n_namesz == 4 && note.n_type == kNtGnuBuildId && equal(name, "GNU")) {
      image.build_id = reinterpret_cast<const std::uint8_t*>(content);
      image.build_id_size = note.n_descsz;
    }
    p += all;
    size -= all;
  }
}

/// True if the range is loaded as part of the module.
bool is_loaded(const dl_phdr_info& info, std::uintptr_t begin, std::uint64_t size) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    const std::uintptr_t from = info.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && begin >= from && size <= segment.p_memsz && begin - from <= segment.p_memsz - size)
      return true;
  }
  return false;
}

template <typename T>
bool is_inside(const dl_phdr_info& info, const T* table, std::uint64_t count) {
  return count == 0 || is_loaded(info, reinterpret_cast<std::uintptr_t>(table), count * sizeof(T));
}

/// A table of the dynamic section; null if it is not there as a whole. Some dynamic linkers put addresses into the
/// section, others leave it as it is in the file.
template <typename T>
const T* dynamic_table(const dl_phdr_info& info, std::uint64_t value, std::uint64_t count) {
  if (value == 0 || count > (std::uint64_t{1} << 32)) return nullptr;
  const std::uint64_t size = count * sizeof(T);
  if (is_loaded(info, value, size)) return reinterpret_cast<const T*>(value);
  return is_loaded(info, info.dlpi_addr + value, size) ? reinterpret_cast<const T*>(info.dlpi_addr + value) : nullptr;
}

/// True if the module calls __cyg_profile_func_enter of another one: it has code made with -finstrument-functions,
/// whatever it was linked with.
bool calls_instrument_functions(const dl_phdr_info& info, const ElfW(Phdr) & segment) {
  std::uint64_t symbols = 0;
  std::uint64_t strings = 0;
  std::uint64_t strings_size = 0;
  std::uint64_t hash = 0;
  std::uint64_t gnu_hash = 0;
  const std::uint64_t all = segment.p_memsz / sizeof(ElfW(Dyn));
  const auto* dynamic = dynamic_table<ElfW(Dyn)>(info, segment.p_vaddr, all);
  for (std::uint64_t i = 0; dynamic != nullptr && i < all && dynamic[i].d_tag != DT_NULL; ++i) {
    const std::uint64_t value = dynamic[i].d_un.d_ptr;
    if (dynamic[i].d_tag == DT_SYMTAB) symbols = value;
    if (dynamic[i].d_tag == DT_STRTAB) strings = value;
    if (dynamic[i].d_tag == DT_STRSZ) strings_size = value;
    if (dynamic[i].d_tag == DT_HASH) hash = value;
    if (dynamic[i].d_tag == DT_GNU_HASH) gnu_hash = value;
  }
  // GNU's table begins with how many symbols stand before those that it finds: the undefined ones. The old one has a
  // chain of all.
  std::uint64_t count = 0;
  if (const auto* words = dynamic_table<std::uint32_t>(info, gnu_hash, 4))
    count = words[1];
  else if (const auto* old = dynamic_table<std::uint32_t>(info, hash, 2))
    count = old[1];
  const auto* symbol = dynamic_table<ElfW(Sym)>(info, symbols, count);
  const auto* text = dynamic_table<char>(info, strings, strings_size);
  if (symbol == nullptr || text == nullptr) return false;
  constexpr char kName[] = "__cyg_profile_func_enter";
  for (std::uint64_t i = 1; i < count; ++i) {
    if (symbol[i].st_shndx != SHN_UNDEF || symbol[i].st_name >= strings_size ||
        strings_size - symbol[i].st_name < sizeof kName)
      continue;
    if (equal(text + symbol[i].st_name, kName)) return true;
  }
  return false;
}

#ifndef KARST_STATIC
// Of another namespace than ours: dl_iterate_phdr shows only the caller's. `header` is the ELF header in memory.
void describe(const char* path, std::uintptr_t bias, std::uintptr_t header, dl_phdr_info& info) {
  const auto& elf = *reinterpret_cast<const ElfW(Ehdr)*>(header);
  info.dlpi_name = path;
  info.dlpi_addr = bias;
  info.dlpi_phdr = reinterpret_cast<const ElfW(Phdr)*>(header + elf.e_phoff);
  info.dlpi_phnum = elf.e_phnum;
}
#endif

/// False if flags may be live at the sled and the patched one would not keep them.
bool is_safe_exit(const SledPlace& p, arch::Leaves leaves) {
  if (p.sled == arch::Sled::kTail) return leaves != arch::Leaves::kUnknown;
  // clang's sled has its return within itself: what follows is another block of the function.
  if (p.sled == arch::Sled::kReturn) return true;
  // gcc's returns are not conditional; it may begin a thunk there, inline.
  return (p.kind != SledKind::kReturn && !format::is_tail_call(p.kind)) || leaves != arch::Leaves::kIf;
}

/// True if the table has whole records of known kinds, an entry first.
bool is_whole(const std::uint16_t* units, std::uint64_t count) {
  bool has_entry = false;
  const auto is_known = [&](const SledRecord& r, std::uint64_t /*number*/) {
    const std::uint32_t kind = r.kind & KARST_SLED_KIND_MASK;
    has_entry = has_entry || kind == KARST_SLED_ENTRY;
    return has_entry && kind <= KARST_SLED_REGISTER_TAIL_CALL &&
           (r.kind & ~std::uint32_t{KARST_SLED_KIND_MASK | KARST_SLED_ALWAYS}) == 0;
  };
  return walk_sleds(units, count, reinterpret_cast<std::uintptr_t>(units), 0, is_known) == count;
}

struct Search {
  std::uintptr_t address;
  ModuleImage* image;
  bool instrumented;
};

}  // namespace

void leave_out_of_cores(const CodeSegment& s) {
  const bool has_header = __builtin_memcmp(reinterpret_cast<const void*>(s.begin), ELFMAG, SELFMAG) == 0;
  const std::uintptr_t begin = s.begin + (has_header ? arch::kPage : 0);
  if (begin < s.end) sys::madvise(reinterpret_cast<void*>(begin), s.end - begin, MADV_DONTDUMP);
}

bool read_image(const dl_phdr_info& info, ModuleImage& image) {
  image.path = info.dlpi_name;
  image.bias = info.dlpi_addr;
  std::uintptr_t low = ~std::uintptr_t{0};
  const ElfW(Phdr)* dynamic = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    const std::uintptr_t begin = info.dlpi_addr + segment.p_vaddr;
    // mold puts notes aligned to 4 and to 8 bytes into one segment of alignment 8; those met in practice can be stepped
    // through by 4 all the same.
    if (segment.p_type == PT_NOTE && segment.p_align <= 8 && is_loaded(info, begin, segment.p_memsz))
      read_notes(reinterpret_cast<const char*>(begin), segment.p_memsz, image);
    if (segment.p_type == PT_DYNAMIC) dynamic = &segment;
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0) {
      if (begin < low) low = begin;
      if (begin + segment.p_memsz > image.text_end) image.text_end = begin + segment.p_memsz;
      if (image.segment_count < ModuleImage::kMostSegments)
        image.segments[image.segment_count++] = {
            align_down(begin, arch::kPage), align_up(begin + segment.p_memsz, arch::kPage),
            PROT_READ | PROT_EXEC | ((segment.p_flags & PF_W) != 0 ? PROT_WRITE : 0)};
    }
  }
  image.text_begin = low;
  image.finstrument = (image.note_flags & KARST_NOTE_FINSTRUMENT) != 0;
  image.own_exits = (image.note_flags & KARST_NOTE_NO_CLEANUPS) == 0;
  const bool calls = kIsStatic ? image.has_note : dynamic != nullptr && calls_instrument_functions(info, *dynamic);
  if (calls && !image.finstrument) {
    image.finstrument = true;
    image.own_exits = image.gcc_units != 0 || !image.has_clangs();  // the note does not tell which compiler's
  }
  image.tables_inside = is_inside(info, image.gcc, image.gcc_units) &&
                        is_inside(info, image.clang, image.clang_units) &&
                        is_inside(info, image.xray, image.xray_count);
  return image.is_instrumented();
}

bool find_image(std::uintptr_t address, ModuleImage& image) {
  Search search{address, &image, false};
  const int found = dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        auto& s = *static_cast<Search*>(context);
        if (!is_loaded(*info, s.address, 1)) return 0;
        s.instrumented = read_image(*info, *s.image);
        return 1;
      },
      &search);
  if (found != 0) return search.instrumented;
#ifdef KARST_STATIC
  return false;
#else
  Dl_info symbol{};
  link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<const void*>(address), &symbol, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 ||
      map == nullptr)
    return false;
  dl_phdr_info info{};
  describe(map->l_name, map->l_addr, reinterpret_cast<std::uintptr_t>(symbol.dli_fbase), info);
  return is_loaded(info, address, 1) && read_image(info, image);
#endif
}

bool is_in_any_module(std::uintptr_t address) {
  const int found = dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        return is_loaded(*info, *static_cast<const std::uintptr_t*>(context), 1) ? 1 : 0;
      },
      &address);
  if (found != 0) return true;
#ifdef KARST_STATIC
  return false;
#else
  Dl_info symbol{};  // other namespaces
  return dladdr(reinterpret_cast<const void*>(address), &symbol) != 0;
#endif
}

void ModuleImage::forget_sleds() {
  gcc = clang = nullptr;
  xray = nullptr;
  gcc_units = clang_units = xray_count = 0;
  has_note = finstrument = own_exits = table_is_torn = false;
  note_version = note_flags = least_runtime = 0;
  tables_inside = true;
}

std::uint64_t ModuleImage::code_from(std::uintptr_t at) const {
  for (std::uint32_t i = 0; i < segment_count; ++i)
    if (at >= segments[i].begin && at < segments[i].end) return segments[i].end - at;
  return 0;
}

const char* ModuleImage::defect() const {
  if ((has_note && note_version == 0) || least_runtime > KARST_RUNTIME_VERSION)
    return "was built by another version of Karst";
  if (table_is_torn || !tables_inside || text_end <= text_begin) return kDamaged;
  if (text_end - text_begin > arch::kReach) return "has more code than calls can reach across";
  if (plain_count != 0) return nullptr;  // its table was checked when it came
  if (gcc_units != 0 && least_runtime < kRuntimeOfUnits)
    return "was built by an older Karst, whose table of sleds is another: build it again";
  if (!is_whole(gcc, gcc_units) || !is_whole(clang, clang_units)) return kDamaged;
  for (std::uint64_t i = 0; i < xray_count; ++i) {
    if (xray[i].version != kXRayVersion) return "was built by a clang whose table of sleds Karst does not know";
    if (xray[i].kind > static_cast<std::uint8_t>(XRayKind::kTypedEvent)) return kDamaged;
  }
  const char* wrong = nullptr;
  for_each_sled([&](const SledPlace& p) {
    if (wrong != nullptr) return;
    const std::uint32_t size = arch::sled_size(p.sled);
    if (code_from(p.address) < (size == 0 ? 1 : size) ||
        (p.kind == SledKind::kEntry && (code_from(p.known_by()) == 0 || p.address - p.known_by() > kMostBeforeSled)))
      wrong = kDamaged;
  });
  return wrong;
}

SiteDefect ModuleImage::defect_of(const SledPlace& place) const {
  const std::uint32_t size = arch::sled_size(place.sled);
  if (size == 0 || plain_count != 0) return SiteDefect::kNone;  // stubs were checked with their table
  const auto* site = reinterpret_cast<const unsigned char*>(place.address);
  if (!arch::is_sled(site, place.sled)) return SiteDefect::kOtherCode;
  const bool is_safe = is_safe_exit(place, arch::leaves(site + size, code_from(place.address) - size));
  return is_safe ? SiteDefect::kNone : SiteDefect::kUnknownExit;
}

}  // namespace karst::runtime
