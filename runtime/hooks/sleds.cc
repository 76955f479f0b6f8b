#include "runtime/hooks/sleds.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include "format/sled_note.h"
#include "runtime/arch/arch.h"
#include "runtime/core/arena.h"
#include "runtime/core/memory.h"
#include "runtime/core/message.h"
#include "runtime/core/syscalls.h"
#include "runtime/hooks/hooks.h"

namespace karst::runtime {

using namespace format;

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint32_t kNtGnuBuildId = 3;

struct Segment {
  std::uintptr_t begin;
  std::uintptr_t end;
  int protection;
};
constexpr std::uint32_t kMostSegments = 8;

/// A loaded module with a Karst note, as the dynamic linker describes it.
struct Found {
  const char* path = "";
  std::uint64_t bias = 0;
  std::uintptr_t text_begin = 0;  // of all executable segments
  std::uintptr_t text_end = 0;
  Segment segments[kMostSegments];
  std::uint32_t segment_count = 0;
  const SledRecord* table = nullptr;
  std::uint64_t records = 0;
  const std::uint8_t* build_id = nullptr;
  std::uint32_t build_id_size = 0;
  bool table_inside = false;  // the table lies within the module's own segments
  std::uint32_t note_version = 0;
};

/// A registered module, in the order of the arena's table.
struct Module {
  std::uintptr_t text_begin;
  std::uintptr_t text_end;
  Segment segments[kMostSegments];
  std::uint32_t segment_count;
  const SledRecord* table;
  std::uint64_t records;
  std::uint32_t first_function;
  std::uint32_t function_count;
  std::uint32_t* order;  // table order of functions -> index from first_function
  Trampolines trampolines;
};

Module g_modules[kArenaModules];
std::uint32_t g_module_count;
std::uint64_t g_sleds;

std::uintptr_t address_of(const SledRecord& r) {
  return reinterpret_cast<std::uintptr_t>(&r.address) + static_cast<std::uintptr_t>(std::intptr_t{r.address});
}

SledKind kind_of(const SledRecord& r) { return static_cast<SledKind>(r.kind & KARST_SLED_KIND_MASK); }

template <typename T>
const T* self_relative(const std::int32_t& field) {
  return reinterpret_cast<const T*>(reinterpret_cast<std::uintptr_t>(&field) +
                                    static_cast<std::uintptr_t>(std::intptr_t{field}));
}

void read_notes(const char* p, std::uint64_t size, Found& found) {
  while (size >= sizeof(ElfW(Nhdr))) {
    const auto& note = *reinterpret_cast<const ElfW(Nhdr)*>(p);
    const std::uint64_t name_size = align_up(note.n_namesz, 4);
    const std::uint64_t all = sizeof note + name_size + align_up(note.n_descsz, 4);
    if (all > size) return;
    const char* name = p + sizeof note;
    const char* content = name + name_size;
    if (note.n_namesz == sizeof KARST_NOTE_NAME && note.n_type == KARST_NOTE_TYPE &&
        note.n_descsz >= sizeof(SledNote) && equal(name, KARST_NOTE_NAME)) {
      const auto& sleds = *reinterpret_cast<const SledNote*>(content);
      found.note_version = sleds.version;
      found.table = self_relative<SledRecord>(sleds.table_begin);
      const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(found.table);
      const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(self_relative<SledRecord>(sleds.table_end));
      found.records = end > begin ? (end - begin) / sizeof(SledRecord) : 0;
    } else if (note.n_namesz == 4 && note.n_type == kNtGnuBuildId && equal(name, "GNU")) {
      found.build_id = reinterpret_cast<const std::uint8_t*>(content);
      found.build_id_size = note.n_descsz;
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
    if (segment.p_type == PT_LOAD && begin >= from && begin + size <= from + segment.p_memsz) return true;
  }
  return false;
}

bool look(const dl_phdr_info& info, Found& found) {
  found.path = info.dlpi_name;
  found.bias = info.dlpi_addr;
  std::uintptr_t low = ~std::uintptr_t{0};
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    const std::uintptr_t begin = info.dlpi_addr + segment.p_vaddr;
    // mold puts notes aligned to 4 and to 8 bytes into one segment of alignment 8; those met in practice can be stepped
    // through by 4 all the same.
    if (segment.p_type == PT_NOTE && segment.p_align <= 8 && is_loaded(info, begin, segment.p_memsz))
      read_notes(reinterpret_cast<const char*>(begin), segment.p_memsz, found);
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0) {
      if (begin < low) low = begin;
      if (begin + segment.p_memsz > found.text_end) found.text_end = begin + segment.p_memsz;
      if (found.segment_count < kMostSegments)
        found.segments[found.segment_count++] = {
            align_down(begin, kPage), align_up(begin + segment.p_memsz, kPage),
            PROT_READ | PROT_EXEC | ((segment.p_flags & PF_W) != 0 ? PROT_WRITE : 0)};
    }
  }
  found.text_begin = low;
  if (found.records == 0) return false;
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(found.table);
  found.table_inside = is_loaded(info, begin, found.records * sizeof(SledRecord));
  return true;
}

template <typename Visit>
void for_each_instrumented(Visit visit) {
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        Found found;
        if (look(*info, found)) (*static_cast<Visit*>(context))(found);
        return 0;
      },
      &visit);
}

bool in_code(const Found& m, std::uintptr_t at) {
  for (std::uint32_t i = 0; i < m.segment_count; ++i)
    if (at >= m.segments[i].begin && at <= m.segments[i].end - arch::kSledSize) return true;
  return false;
}

/// Null if every record is an unpatched sled in the module's code, an entry first; else what is wrong.
const char* check(const Found& m) {
  if (m.note_version != KARST_NOTE_VERSION) return "was built by another version of Karst";
  if (!m.table_inside || m.text_end <= m.text_begin) return "has a damaged sled table";
  if (kind_of(m.table[0]) != SledKind::kEntry) return "has a damaged sled table";
  for (std::uint64_t i = 0; i < m.records; ++i) {
    const std::uintptr_t at = address_of(m.table[i]);
    if (kind_of(m.table[i]) > SledKind::kCold || !in_code(m, at)) return "has a damaged sled table";
    if (kind_of(m.table[i]) == SledKind::kCold) continue;
    if (!arch::is_sled(reinterpret_cast<const unsigned char*>(at))) return "has other code where its sleds should be";
  }
  return nullptr;
}

const char* shown_path(const char* path, char (&buffer)[4096], std::uint32_t& size) {
  if (*path != '\0') {
    size = static_cast<std::uint32_t>(length(path));
    return path;
  }
  const long n = sys::call(SYS_readlinkat, -100, sys::word("/proc/self/exe"), sys::word(buffer), sizeof buffer - 1);
  size = n > 0 ? static_cast<std::uint32_t>(n) : 0;
  buffer[size] = '\0';
  return buffer;
}

// Heap sort (Williams, Floyd 1964). libstdc++'s <algorithm> does not compile without floating point, which the runtime
// must do without; this one needs no memory and no recursion either.
void heap_sort(std::uint64_t* v, std::uint32_t count) {
  const auto sift_down = [v](std::uint32_t root, std::uint32_t size) {
    const std::uint64_t value = v[root];
    for (std::uint32_t child = 2 * root + 1; child < size; child = 2 * root + 1) {
      if (child + 1 < size && v[child] < v[child + 1]) ++child;
      if (v[child] <= value) break;
      v[root] = v[child];
      root = child;
    }
    v[root] = value;
  };
  for (std::uint32_t i = count / 2; i-- != 0;) sift_down(i, count);
  for (std::uint32_t size = count; size > 1; --size) {
    const std::uint64_t greatest = v[0];
    v[0] = v[size - 1];
    v[size - 1] = greatest;
    sift_down(0, size - 1);
  }
}

// Ids follow addresses, so that neighbours in the program are neighbours in every table.
bool enter_functions(const Found& found, Module& m) {
  std::uint32_t count = 0;
  for (std::uint64_t i = 0; i < found.records; ++i)
    if (kind_of(found.table[i]) == SledKind::kEntry) ++count;
  const std::uint64_t scratch_size = align_up(count * (sizeof(std::uint64_t) + sizeof(std::uint32_t)), kPage);
  const long scratch = sys::mmap(0, scratch_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (sys::failed(scratch) || !g_arena.reserve_functions(count)) return false;
  auto* sorted = reinterpret_cast<std::uint64_t*>(scratch);  // offset in text << 32 | place in the table's order
  m.order = reinterpret_cast<std::uint32_t*>(sorted + count);
  std::uint32_t n = 0;
  for (std::uint64_t i = 0; i < found.records; ++i)
    if (kind_of(found.table[i]) == SledKind::kEntry) {
      sorted[n] = (address_of(found.table[i]) - found.text_begin) << 32 | n;
      ++n;
    }
  heap_sort(sorted, count);
  ArenaHeader& h = g_arena.header();
  m.first_function = h.function_count + 1;
  m.function_count = count;
  ArenaFunction* functions = g_arena.functions() + m.first_function;
  for (std::uint32_t i = 0; i < count; ++i) {
    functions[i].address = found.text_begin + (sorted[i] >> 32);
    functions[i].module = h.module_count;
    functions[i].flags = kArenaFunctionOn;
    m.order[static_cast<std::uint32_t>(sorted[i])] = i;
  }
  store(h.function_count, h.function_count + count);
  return true;
}

void register_module(const Found& found) {
  char buffer[4096];
  std::uint32_t path_size = 0;
  const char* path = shown_path(found.path, buffer, path_size);
  if (const char* wrong = check(found)) {
    Message().text(path, path_size).text(" ").text(wrong).text("; it is not traced");
    return;
  }
  if (g_module_count == kArenaModules) {
    Message().text(path, path_size).text(" is not traced: too many modules with sleds");
    return;
  }
  ArenaHeader& h = g_arena.header();
  Module& m = g_modules[g_module_count];
  m.text_begin = found.text_begin;
  m.text_end = found.text_end;
  m.segment_count = found.segment_count;
  copy(m.segments, found.segments, sizeof m.segments);
  m.table = found.table;
  m.records = found.records;
  if (!g_arena.reserve_modules(1) || !enter_functions(found, m)) {
    Message().text(path, path_size).text(" is not traced: there is not enough memory for its functions' table");
    return;
  }
  ArenaModule& entry = g_arena.modules()[h.module_count];
  entry.bias = found.bias;
  entry.text_begin = found.text_begin;
  entry.text_end = found.text_end;
  entry.loaded_ticks = __builtin_ia32_rdtsc();
  entry.path_offset = g_arena.add_text(path, path_size);
  entry.path_size = entry.path_offset == 0 ? 0 : path_size;
  entry.first_function = m.first_function;
  entry.function_count = m.function_count;
  const std::uint32_t room = sizeof entry.build_id;
  entry.build_id_size = found.build_id_size < room ? found.build_id_size : room;
  if (entry.build_id_size != 0) copy(entry.build_id, found.build_id, entry.build_id_size);
  store(h.module_count, h.module_count + 1);
  ++g_module_count;
  g_sleds += found.records;
}

bool set_protection(const Segment& s, int protection) {
  return sys::mprotect(s.begin, s.end - s.begin, protection) == 0;
}

bool make_writable(const Module& m) {
  for (std::uint32_t i = 0; i < m.segment_count; ++i)
    if (!set_protection(m.segments[i], PROT_READ | PROT_WRITE)) return false;
  return true;
}

void restore_protection(const Module& m) {
  for (std::uint32_t i = 0; i < m.segment_count; ++i)
    if (!set_protection(m.segments[i], m.segments[i].protection))
      set_protection(m.segments[i], PROT_READ | PROT_WRITE | PROT_EXEC);
}

void patch(const Module& m) {
  const ArenaFunction* functions = g_arena.functions() + m.first_function;
  std::uint32_t in_order = 0;
  std::uint32_t index = 0;
  for (std::uint64_t i = 0; i < m.records; ++i) {
    const SledRecord& r = m.table[i];
    if (kind_of(r) == SledKind::kCold) continue;
    const bool entry = kind_of(r) == SledKind::kEntry;
    if (entry) index = m.order[in_order++];
    if ((load(functions[index].flags) & kArenaFunctionOn) == 0) continue;
    arch::write_call(reinterpret_cast<unsigned char*>(address_of(r)),
                     entry ? m.trampolines.enter(index) : m.trampolines.exit(index));
  }
}

}  // namespace

std::uint32_t count_instrumented_modules() {
  std::uint32_t count = 0;
  for_each_instrumented([&count](const Found&) { ++count; });
  return count;
}

std::uint32_t register_modules() {
  for_each_instrumented([](const Found& found) { register_module(found); });
  return g_module_count;
}

// Trampolines come first: they show whether the system lets written memory become executable (SELinux, systemd's
// MemoryDenyWriteExecute, PR_SET_MDWE), before anything of the program is touched.
bool patch_modules() {
  for (std::uint32_t i = 0; i < g_module_count; ++i) {
    Module& m = g_modules[i];
    if (m.trampolines.create(m.text_begin, m.text_end, m.first_function, m.function_count)) continue;
    while (i-- != 0) g_modules[i].trampolines.destroy();
    return false;
  }
  // A handler of the program (when libkarst comes late) could be in the code that cannot be executed now.
  const sys::SignalsBlocked guard;
  for (std::uint32_t i = 0; i < g_module_count; ++i) {
    Module& m = g_modules[i];
    const bool writable = make_writable(m);
    if (writable) patch(m);
    restore_protection(m);
    if (writable) continue;
    set_hooks(karst_hook_discard, karst_hook_discard);  // modules before this one are patched
    return false;
  }
  return true;
}

std::uint64_t sled_count() { return g_sleds; }

}  // namespace karst::runtime
