// Asks for tables, checks each number in them against the module and the table's own size, maps stubs, writes jumps.
#include "runtime/hooks/plain_code.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "arch/page.h"
#include "runtime/hooks/hooks.h"
#include "runtime/hooks/probes.h"
#include "runtime/process/session.h"
#include "runtime/system/lock.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"
#include "runtime/system/syscalls.h"

extern "C" {
__attribute__((visibility("default"))) karst::format::PatchedModules karst_patched_modules;
}

namespace karst::runtime {

using namespace format;

namespace {

// In a static program we are ourselves in the code that is patched.
#ifdef KARST_STATIC
constexpr int kWhilePatching = PROT_READ | PROT_WRITE | PROT_EXEC;
#else
constexpr int kWhilePatching = PROT_READ | PROT_WRITE;
#endif

struct Plain {
  ModuleImage image;
  PlainCode code;
  bool is_here = false;
  bool has_gone = false;  // and that was not told yet
};
Plain g_plain[kMostPatchedModules];
std::uint32_t g_plain_count;
WipedLock g_told;  // of karst_patched_modules. Modules come above within dl_iterate_phdr(), whose lock is theirs

/// Modules that were asked for, by where they lie and what they are called.
struct Asked {
  std::uint64_t bias;
  std::uint64_t name;  // a hash
  bool is_here;
};
constexpr std::uint32_t kMostAsked = 1024;
constexpr char kNoMemory[] = "there is no memory for its stubs near its code";
Asked g_asked[kMostAsked];
std::uint32_t g_asked_count;

bool are_places(const ValueOp* ops, std::uint32_t count) {
  constexpr std::uint32_t kWords = sizeof(SavedProbe) / sizeof(std::uint64_t);
  const auto is_word = [](std::uint32_t place) { return place < kWords; };
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool is_indexed = ops[i].how == static_cast<std::uint8_t>(ValueHow::kIndexed);
    if (!is_word(ops[i].place) && ops[i].place < kFirstVectorPlace) return false;
    if (is_indexed && !is_word(indexed_size(ops[i].size).index)) return false;
  }
  return true;
}

bool are_probes_sound(const PlainCode& p) {
  const PatchTable& t = *p.table;
  if (t.probes == 0) return true;
  if (t.text_size == 0 || p.text[t.text_size - 1] != '\0' || t.code_size < kPatchProbesSlot + sizeof(std::uint64_t))
    return false;
  for (std::uint32_t i = 0; i < t.probes; ++i) {
    const PatchProbe& probe = p.probes[i];
    if (probe.name >= t.text_size || probe.description >= t.text_size || probe.values > kMostProbeValues ||
        !are_places(probe.ops, probe.values))
      return false;
  }
  return true;
}

/// The table is whole, and each number in it is in its bounds.
bool is_sound(const PlainCode& p, const ModuleImage& image) {
  const PatchTable& t = *p.table;
  if (!are_probes_sound(p) || (t.text_size != 0 && p.text[t.text_size - 1] != '\0')) return false;
  for (std::uint32_t i = 0; i < t.sleds; ++i) {
    const PatchSled& s = p.sleds[i];
    const std::uint64_t at = image.bias + s.function;
    const std::uint32_t kind = s.kind & ~kPatchSledLate;
    if (kind > KARST_SLED_COLD || ((i == 0 || kind != s.kind) && kind != KARST_SLED_ENTRY) || at < image.text_begin ||
        at >= image.text_end)
      return false;
    if (s.kind == KARST_SLED_COLD) continue;
    const std::uint32_t size = arch::sled_size(arch::Sled::kNop);
    if (s.offset > t.code_size || t.code_size - s.offset < size || !arch::is_sled(p.code + s.offset)) return false;
  }
  for (std::uint32_t i = 0; i < t.jumps; ++i) {
    const PatchJump& j = p.jumps[i];
    if (j.size == 0 || j.size > sizeof j.before || j.function >= std::uint64_t{t.functions} + t.probes + t.detours ||
        j.offset >= t.code_size || (j.field != kPatchNoField && (j.size < 4 || j.field > j.size - 4)) ||
        image.code_from(image.bias + j.address) < j.size)
      return false;
  }
  for (std::uint32_t i = 0; i < t.fixups; ++i)
    if (p.fixups[i].offset > t.code_size || t.code_size - p.fixups[i].offset < 4) return false;
  for (std::uint32_t i = 0; i < t.detours; ++i) {
    const std::uint32_t at = p.detours[i].offset;
    if (p.detours[i].name >= t.text_size || at < kPatchDetourJump || at % kPatchDetourNop != 0 || at >= t.code_size ||
        t.code_size - at < kPatchDetourNop || image.code_from(image.bias + p.detours[i].function) == 0)
      return false;
  }
  return true;
}

/// Maps the table that `descriptor` holds. False: it is none, or not of this module.
bool open_table(int descriptor, const ModuleImage& image, PlainCode& p) {
  struct stat status {};
  if (sys::call(SYS_fstat, descriptor, sys::word(&status)) != 0) return false;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  // What is not sealed could change behind the checks.
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_WRITE;
  const long seals = sys::call(SYS_fcntl, descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & kNeeded) != kNeeded || size < sizeof(PatchTable) || size > kMostPatchTable) return false;
  const long at = sys::mmap(0, size, PROT_READ, MAP_PRIVATE, descriptor);
  if (sys::failed(at)) return false;
  p.size = size;
  p.table = reinterpret_cast<const PatchTable*>(at);
  const PatchTable& t = *p.table;
  const std::uint64_t probes = std::uint64_t{t.probes} * sizeof(PatchProbe);
  const std::uint64_t sleds = std::uint64_t{t.sleds} * sizeof(PatchSled);
  const std::uint64_t jumps = std::uint64_t{t.jumps} * sizeof(PatchJump);
  const std::uint64_t fixups = std::uint64_t{t.fixups} * sizeof(PatchFixup);
  const std::uint64_t detours = std::uint64_t{t.detours} * sizeof(PatchDetour);
  p.probes = reinterpret_cast<const PatchProbe*>(p.table + 1);
  p.sleds = reinterpret_cast<const PatchSled*>(reinterpret_cast<const char*>(p.probes) + probes);
  p.jumps = reinterpret_cast<const PatchJump*>(reinterpret_cast<const char*>(p.sleds) + sleds);
  p.fixups = reinterpret_cast<const PatchFixup*>(reinterpret_cast<const char*>(p.jumps) + jumps);
  p.detours = reinterpret_cast<const PatchDetour*>(reinterpret_cast<const char*>(p.fixups) + fixups);
  p.code = reinterpret_cast<const unsigned char*>(p.detours) + detours;
  p.text = reinterpret_cast<const char*>(p.code) + t.code_size;
  if (t.magic == kPatchTableMagic && t.version == kPatchTableVersion && (t.functions != 0) == (t.sleds != 0) &&
      (t.functions != 0 || t.probes != 0 || t.detours != 0) && t.code_size < kMostPatchTable &&
      sizeof t + probes + sleds + jumps + fixups + detours + t.code_size + t.text_size == size &&
      image.bias + t.code_begin == image.text_begin && is_sound(p, image))
    return true;
  sys::munmap(reinterpret_cast<void*>(at), size);
  p = PlainCode{};
  return false;
}

bool is_ours(const char* path) {
  const char* name = path;
  for (const char* c = path; *c != '\0'; ++c)
    if (*c == '/') name = c + 1;
  return starts_with(name, "libkarst.so");
}

/// Each semaphore of the table lies in memory of the module that it may write to.
bool are_semaphores_sound(const dl_phdr_info& info, const PlainCode& p) {
  for (std::uint32_t i = 0; i < p.table->probes; ++i) {
    const std::uint64_t at = p.probes[i].semaphore;
    bool is_inside = at == 0;
    for (int n = 0; n < info.dlpi_phnum; ++n) {
      const ElfW(Phdr)& s = info.dlpi_phdr[n];
      is_inside =
          is_inside || (s.p_type == PT_LOAD && (s.p_flags & PF_W) != 0 && at >= s.p_vaddr &&
                        s.p_memsz >= sizeof(std::uint16_t) && at - s.p_vaddr <= s.p_memsz - sizeof(std::uint16_t));
    }
    if (!is_inside) return false;
  }
  return true;
}

void use_stubs(ModuleImage& image, const PlainCode& p) {
  image.plain_sleds = p.sleds;
  image.plain_count = p.table->sleds;
  image.plain_bias = image.bias;
  image.plain_stubs = p.stubs;
  image.plain_stubs_size = p.stubs_size;
}

/// False: it was asked for before.
bool is_new(const dl_phdr_info& info) {
  std::uint64_t name = 0xcbf29ce484222325U;  // FNV-1a
  for (const char* c = info.dlpi_name; c != nullptr && *c != '\0'; ++c)
    name = (name ^ static_cast<unsigned char>(*c)) * 0x100000001b3U;
  for (std::uint32_t i = 0; i < g_asked_count; ++i) {
    if (g_asked[i].bias != info.dlpi_addr || g_asked[i].name != name) continue;
    g_asked[i].is_here = true;
    return false;
  }
  if (g_asked_count == kMostAsked) return false;
  g_asked[g_asked_count++] = {info.dlpi_addr, name, true};
  return true;
}

bool is_same_table(const PlainCode& a, const PlainCode& b) {
  if (a.size != b.size) return false;
  const auto* x = reinterpret_cast<const unsigned char*>(a.table);
  const auto* y = reinterpret_cast<const unsigned char*>(b.table);
  for (std::uint64_t i = 0; i < a.size; ++i)
    if (x[i] != y[i]) return false;
  return true;
}

/// A module that has come back to its place has its stubs there still. Null: it is none.
Plain* known(const Plain& p) {
  for (std::uint32_t i = 0; i < g_plain_count; ++i)
    if (!g_plain[i].is_here && g_plain[i].image.bias == p.image.bias && is_same_table(g_plain[i].code, p.code))
      return &g_plain[i];
  return nullptr;
}

/// The descriptor of the module's table; negative: there is none.
int ask_for_table(const dl_phdr_info& info, bool is_program, bool functions, const Options* session = nullptr) {
  const long file = sys::open(is_program ? "/proc/self/exe" : info.dlpi_name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;  // the vdso, and programs that may be executed but not read
  const int table = ask_for_patches(static_cast<int>(file), is_program, functions, session);
  sys::close(static_cast<int>(file));
  return table;
}

bool is_program(const dl_phdr_info& info) { return info.dlpi_name == nullptr || *info.dlpi_name == '\0'; }

/// True if there is a table of the module.
bool fetch(const dl_phdr_info& info, const WantedCode& wanted) {
  Plain p;
  const bool is_programs = is_program(info);
  if ((!is_programs && is_ours(info.dlpi_name)) || !is_new(info)) return false;
  const bool has_sleds = read_image(info, p.image);
  const bool functions = !has_sleds && (is_programs ? wanted.program : wanted.libraries);
  if (p.image.segment_count == 0 || (!functions && !wanted.probes && !(is_programs && wanted.detours))) return false;
  const int table = ask_for_table(info, is_programs, functions);
  if (table < 0) return false;
  const bool opened = open_table(table, p.image, p.code);
  sys::close(table);
  if (!opened) return false;
  Plain* place = known(p);
  if (place != nullptr) {
    sys::munmap(const_cast<PatchTable*>(p.code.table), p.code.size);
    p.code = place->code;
    p.code.is_new = true;
    use_stubs(p.image, p.code);
  } else if (!are_semaphores_sound(info, p.code) || g_plain_count == kMostPatchedModules) {
    sys::munmap(const_cast<PatchTable*>(p.code.table), p.code.size);
    return false;
  }
  p.is_here = true;
  if (place == nullptr) place = &g_plain[g_plain_count++];
  *place = p;
  return true;
}

std::uint32_t fetch_all(const WantedCode& wanted) {
  struct Search {
    const WantedCode& wanted;
    std::uint32_t found;
  } search{wanted, 0};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        auto& s = *static_cast<Search*>(context);
        if (fetch(*info, s.wanted)) ++s.found;
        return 0;
      },
      &search);
  return search.found;
}

void put32(unsigned char* at, std::uint64_t value) {
  const auto low = static_cast<std::uint32_t>(value);
  copy(at, &low, sizeof low);
}

/// Distances of 32 bits reach from the stubs to all of the module, and to what its code names near it.
bool map_stubs(const ModuleImage& image, PlainCode& p) {
  const PatchTable& t = *p.table;
  const std::uint64_t size = align_up(t.code_size, arch::kPage);
  const long at = map_near_code(image.text_begin, image.text_end, size);
  if (at == -1) return false;
  auto* code = reinterpret_cast<unsigned char*>(at);
  copy(code, p.code, t.code_size);
  if (t.probes != 0) {
    ProbeSite* sites = make_probe_sites(p.probes, t.probes, p.text);
    if (sites == nullptr) {
      sys::munmap(code, size);
      return false;
    }
    const std::uint64_t words[] = {reinterpret_cast<std::uint64_t>(karst_hook_probe),
                                   reinterpret_cast<std::uint64_t>(sites)};
    static_assert(kPatchHookSlot == 0 && kPatchProbesSlot == sizeof words[0]);
    copy(code, words, sizeof words);
  }
  bool reaches = true;
  for (std::uint32_t i = 0; i < t.fixups; ++i) {
    const PatchFixup& f = p.fixups[i];
    const std::uint64_t from = static_cast<std::uint64_t>(at) + f.offset + 4;
    const auto distance = static_cast<std::int64_t>(image.bias + f.target - from);
    reaches = reaches && distance == static_cast<std::int32_t>(distance);
    put32(code + f.offset, static_cast<std::uint64_t>(distance));
  }
  if (!reaches || sys::mprotect(static_cast<std::uintptr_t>(at), size, PROT_READ | PROT_EXEC) != 0) {
    sys::munmap(code, size);
    return false;
  }
  p.stubs = static_cast<std::uintptr_t>(at);
  p.stubs_size = size;
  const Locked lock(g_told);
  PatchedModules& told = karst_patched_modules;
  told.modules[told.count] = {image.bias, p.stubs, reinterpret_cast<std::uint64_t>(p.table), p.size};
  store(told.count, told.count + 1);
  return true;
}

bool same_bytes(const unsigned char* a, const unsigned char* b, std::uint32_t size) {
  for (std::uint32_t i = 0; i < size; ++i)
    if (a[i] != b[i]) return false;
  return true;
}

/// The `j.size` bytes that are to stand at `at`.
void make_jump(const PatchJump& j, const PlainCode& p, std::uintptr_t at, unsigned char* bytes) {
  copy(bytes, j.after, j.size);
  if (j.field != kPatchNoField) put32(bytes + j.field, p.stubs + j.offset - (at + j.field + 4U));
}

}  // namespace

std::uint32_t fetch_plain_code(const WantedCode& wanted) {
  // An earlier attach may have been cut off: its stubs stay, as jumps may lead to them.
  if (!g_told.create()) return 0;
  g_plain_count = 0;
  g_asked_count = 0;
  karst_patched_modules.version = kPatchTableVersion;
  store(karst_patched_modules.count, 0U);
  return fetch_all(wanted);
}

std::uint32_t fetch_late_code(const WantedCode& wanted) {
  for (std::uint32_t i = 0; i < g_asked_count; ++i) g_asked[i].is_here = false;
  const std::uint32_t found = fetch_all(wanted);
  for (std::uint32_t i = 0; i < g_asked_count;) {
    if (g_asked[i].is_here) {
      ++i;
      continue;
    }
    for (std::uint32_t n = 0; n < g_plain_count; ++n)
      if (g_plain[n].is_here && g_plain[n].image.bias == g_asked[i].bias) g_plain[n].has_gone = true;
    g_asked[i] = g_asked[--g_asked_count];
  }
  return found;
}

void for_each_gone_code(void (*visit)(const ModuleImage& image)) {
  for (std::uint32_t i = 0; i < g_plain_count; ++i) {
    Plain& p = g_plain[i];
    if (!p.has_gone) continue;
    p.has_gone = p.is_here = false;
    if (p.code.table->functions != 0) visit(p.image);
  }
}

void map_plain_code() {
  for (std::uint32_t i = 0; i < g_plain_count; ++i) {
    Plain& p = g_plain[i];
    if (!p.is_here || p.code.stubs != 0) continue;
    if (map_stubs(p.image, p.code))
      use_stubs(p.image, p.code);
    else
      Message().text(p.image.name()).text(" is not traced: ").text(kNoMemory);
  }
}

void for_each_plain_code(void (*visit)(ModuleImage& image, PlainCode& code)) {
  for (std::uint32_t i = 0; i < g_plain_count; ++i)
    if (Plain& p = g_plain[i]; p.is_here && p.code.stubs != 0 && p.code.table->functions != 0) visit(p.image, p.code);
}

namespace {

/// Until this goes, the module's code may be written to.
class Writable {
 public:
  explicit Writable(const ModuleImage& image) : image_(image) {
    for (; changed_ < image.segment_count; ++changed_) {
      const CodeSegment& s = image.segments[changed_];
      if (sys::mprotect(s.begin, s.end - s.begin, kWhilePatching) != 0) return;
    }
  }
  ~Writable() {
    for (std::uint32_t i = 0; i < changed_; ++i) {
      const CodeSegment& s = image_.segments[i];
      sys::mprotect(s.begin, s.end - s.begin, s.protection);
    }
  }
  Writable(const Writable&) = delete;
  Writable& operator=(const Writable&) = delete;

  bool all() const { return changed_ == image_.segment_count; }
  void leave_out_of_core_files() const {
    for (std::uint32_t i = 0; i < changed_; ++i) leave_out_of_cores(image_.segments[i]);
  }

 private:
  const ModuleImage& image_;
  std::uint32_t changed_ = 0;
};

/// Calls visit(number, first, end) for each function or probe: numbers of its jumps, which stand together.
template <typename Visit>
void for_each_patched(const PlainCode& p, Visit visit) {
  const PatchTable& t = *p.table;
  for (std::uint32_t i = 0; i < t.jumps;) {
    const std::uint32_t first = i;
    const std::uint32_t number = p.jumps[i].function;
    while (i < t.jumps && p.jumps[i].function == number) ++i;
    visit(number, first, i);
  }
}

/// A function or probe is changed as a whole or not at all; no two of them overlap.
bool write_if_as_seen(const ModuleImage& image, const PlainCode& p, std::uint32_t first, std::uint32_t end) {
  for (std::uint32_t i = first; i < end; ++i) {
    const auto* site = reinterpret_cast<const unsigned char*>(image.bias + p.jumps[i].address);
    if (!same_bytes(site, p.jumps[i].before, p.jumps[i].size)) return false;
  }
  for (std::uint32_t i = first; i < end; ++i) {
    const std::uintptr_t at = image.bias + p.jumps[i].address;
    make_jump(p.jumps[i], p, at, reinterpret_cast<unsigned char*>(at));
  }
  return true;
}

bool stands(const ModuleImage& image, const PlainCode& p, std::uint32_t jump) {
  const PatchJump& j = p.jumps[jump];
  const std::uintptr_t at = image.bias + j.address;
  unsigned char wanted[sizeof j.after];
  make_jump(j, p, at, wanted);
  return same_bytes(reinterpret_cast<const unsigned char*>(at), wanted, j.size);
}

/// A probe of it is one that was asked for.
bool has_notes(const PlainCode& p) {
  for (std::uint32_t i = 0; i < p.table->probes; ++i)
    if (p.probes[i].kind == PatchProbeKind::kNote) return true;
  return false;
}

void begin_probes_of(const ModuleImage& image, const PlainCode& p) {
  const Writable code(image);
  if (!code.all()) {
    if (has_notes(p))
      Message().text(image.name()).text(": its probes are not recorded, as its code may not be written to");
    return;
  }
  std::uint32_t missing = 0;
  for_each_patched(p, [&](std::uint32_t number, std::uint32_t first, std::uint32_t end) {
    if (number < p.table->functions) return;
    const bool is_written = write_if_as_seen(image, p, first, end);
    const std::uint32_t probe = number - p.table->functions;
    if (probe >= p.table->probes) return;
    if (!is_written) {
      missing += p.probes[probe].kind == PatchProbeKind::kNote ? 1 : 0;
      return;
    }
    enter_probe((*reinterpret_cast<ProbeSite* const*>(p.stubs + kPatchProbesSlot))[probe]);
    if (p.probes[probe].semaphore != 0) raise_semaphore(image.bias + p.probes[probe].semaphore);
  });
  code.leave_out_of_core_files();
  if (missing != 0)
    Message()
        .text(image.name())
        .text(": probes that are not recorded, as its code is not as in its file: ")
        .number(missing);
}

/// The jumps of all its detours. Theirs are the last in the table.
bool detours_stand(const ModuleImage& image, const PlainCode& p) {
  for (std::uint32_t i = p.table->jumps; i-- != 0;) {
    if (p.jumps[i].function < p.table->functions + p.table->probes) break;
    if (!stands(image, p, i)) return false;
  }
  return true;
}

/// Null, or why the program gets no detours.
const char* fetch_detours_of(const dl_phdr_info& info, const Options& session) {
  for (std::uint32_t i = 0; i < g_plain_count; ++i)
    if (g_plain[i].is_here && g_plain[i].code.table->detours != 0) return nullptr;  // another karst was faster
  Plain p;
  read_image(info, p.image);
  const int table = ask_for_table(info, true, false, &session);
  if (table < 0) return "none of its functions can be patched";
  const bool opened = open_table(table, p.image, p.code);
  sys::close(table);
  if (!opened) return "what karst gives it is not of its code";
  if (g_plain_count == kMostPatchedModules || p.code.table->functions != 0 || p.code.table->probes != 0 ||
      !map_stubs(p.image, p.code)) {
    sys::munmap(const_cast<PatchTable*>(p.code.table), p.code.size);
    return kNoMemory;
  }
  p.is_here = true;
  p.code.is_new = false;  // its threads execute the code
  g_plain[g_plain_count] = p;
  store(g_plain_count, g_plain_count + 1);
  return nullptr;
}

}  // namespace

bool write_jumps(const ModuleImage& image, const PlainCode& p, void* context,
                 bool (*is_wanted)(void* context, std::uint32_t function),
                 void (*left_out)(void* context, std::uint32_t function)) {
  const Writable code(image);
  if (!code.all()) return false;
  for_each_patched(p, [&](std::uint32_t number, std::uint32_t first, std::uint32_t end) {
    if (number >= p.table->functions) return;
    if (!is_wanted(context, number) || !write_if_as_seen(image, p, first, end)) left_out(context, number);
  });
  code.leave_out_of_core_files();
  return true;
}

void begin_probes() {
  for (std::uint32_t i = 0; i < g_plain_count; ++i)
    if (Plain& p = g_plain[i];
        p.is_here && p.code.is_new && p.code.stubs != 0 && (p.code.table->probes != 0 || p.code.table->detours != 0))
      begin_probes_of(p.image, p.code);
}

namespace {

/// `to` becomes the address of the jump before the NOP at `offset`, and the NOP a short jump to that one: by a store of
/// two bytes in an aligned quadword, as in arch/arch.h, so threads may be executing it.
bool open_detour(const PlainCode& p, std::uint32_t offset, std::uintptr_t to) {
  constexpr std::uint64_t kNop = 0x0000000000841f0fU;  // nopl 0(%rax, %rax, 1)
  constexpr std::uint16_t kJumpBack = 0xf0eb;          // jmp to the 14 bytes before it
  static_assert(kPatchDetourNop == sizeof kNop && kPatchDetourJump == 2 + 6 + sizeof to);
  if (load(*reinterpret_cast<const std::uint64_t*>(p.stubs + offset)) != kNop)
    return *reinterpret_cast<const std::uintptr_t*>(p.stubs + offset - sizeof to) == to;
  if (sys::mprotect(p.stubs, p.stubs_size, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return false;
  store(*reinterpret_cast<std::uintptr_t*>(p.stubs + offset - sizeof to), to);
  store(*reinterpret_cast<std::uint16_t*>(p.stubs + offset), kJumpBack);
  sys::mprotect(p.stubs, p.stubs_size, PROT_READ | PROT_EXEC);
  return true;
}

/// Calls visit(code, detour) for the program's own function of this name. What it returns; else `otherwise`.
template <typename Result, typename Visit>
Result with_detour(const char* name, Result otherwise, Visit visit) {
  for (std::uint32_t i = 0; i < g_plain_count; ++i) {
    const Plain& p = g_plain[i];
    // Some alone would tell of memory that is never given back.
    if (!p.is_here || p.code.stubs == 0 || p.code.table->detours == 0 || !detours_stand(p.image, p.code)) continue;
    for (std::uint32_t n = 0; n < p.code.table->detours; ++n)
      if (const PatchDetour& detour = p.code.detours[n]; equal(p.code.text + detour.name, name))
        return visit(p.code, detour);
  }
  return otherwise;
}

}  // namespace

const char* fetch_detours(const Options& session) {
  struct Search {
    const Options& session;
    const char* problem;
  } search{session, "it is no program"};
  if (!g_told.create()) return kNoMemory;
  karst_patched_modules.version = kPatchTableVersion;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        auto& s = *static_cast<Search*>(context);
        if (!is_program(*info)) return 0;
        s.problem = fetch_detours_of(*info, s.session);
        return 1;
      },
      &search);
  return search.problem;
}

const void* find_detour(const char* name) {
  return with_detour<const void*>(name, nullptr, [](const PlainCode& p, const PatchDetour& detour) {
    return reinterpret_cast<const void*>(p.stubs + detour.offset + kPatchDetourNop);
  });
}

bool open_detour(const char* name, const void* to) {
  return with_detour(name, false, [to](const PlainCode& p, const PatchDetour& detour) {
    return open_detour(p, detour.offset, reinterpret_cast<std::uintptr_t>(to));
  });
}

void end_of_new_code() {
  for (std::uint32_t i = 0; i < g_plain_count; ++i) g_plain[i].code.is_new = false;
}

void check_jumps(const ModuleImage& image, const PlainCode& p, void* context,
                 void (*left_out)(void* context, std::uint32_t function)) {
  for (std::uint32_t i = 0; i < p.table->jumps; ++i) {
    const std::uint32_t number = p.jumps[i].function;
    if (number < p.table->functions && !stands(image, p, i)) left_out(context, number);
  }
}

}  // namespace karst::runtime
