// SPDX-License-Identifier: MIT
// A loaded module as its own memory tells: its code, its note, its tables of sleds (format/sled_note.h). Reads alone.
#pragma once
#include <link.h>

#include <cstdint>

#include "arch/arch.h"
#include "format/patch_table.h"
#include "format/sled_note.h"
#include "runtime/system/memory.h"

namespace karst::runtime {

/// Why a sled must stay as it is, and so its function.
enum class SiteDefect : std::uint8_t {
  kNone,
  kOtherCode,   ///< it is none: somebody has written other code there
  kUnknownExit  ///< flags may be live there, and the patched sled would not keep them
};

struct CodeSegment {
  std::uintptr_t begin = 0;  ///< whole pages
  std::uintptr_t end = 0;
  int protection = 0;
};

/// One sled, or place of a function that is known by the tables, whichever compiler wrote them.
struct SledPlace {
  std::uintptr_t address;
  std::uintptr_t function;  ///< of XRay's table: where the function begins, to tell its sleds from others'; else 0
  format::SledKind kind;
  arch::Sled sled;
  bool always;        ///< of an entry: the source asks to trace it always
  bool late = false;  ///< of an entry: FunctionTable::late()

  /// Of an entry: what its function is known by. Not always the function's first byte: sleds may stand behind an
  /// endbr64, and clang's behind a byte of padding. XRay's table names the beginning.
  std::uintptr_t known_by() const { return function != 0 ? function : address; }
};

/// Where a module's code and its sleds are. All of it is in the module's memory: valid while that is loaded.
struct SledTables {
  static constexpr std::uint32_t kMostSegments = 8;

  CodeSegment segments[kMostSegments];
  std::uint32_t segment_count = 0;
  const std::uint16_t* gcc = nullptr;  ///< karst_sleds
  std::uint64_t gcc_units = 0;
  const std::uint16_t* clang = nullptr;  ///< karst_clang_sleds
  std::uint64_t clang_units = 0;
  bool clang_entries_are_nops = false;  ///< in this table
  const format::XRayRecord* xray = nullptr;
  std::uint64_t xray_count = 0;
  const format::PatchSled* plain_sleds =
      nullptr;  ///< of functions without sleds (unbuilt/plain_code.h); then it has no others
  std::uint64_t plain_count = 0;
  std::uint64_t plain_bias = 0;
  std::uintptr_t plain_stubs = 0;
  std::uint64_t plain_stubs_size = 0;
  std::uint32_t plain_left_alone = 0;  ///< functions that were wanted and cannot be patched

  /// Calls visit(SledPlace) for every sled in the tables' order: a function's entry comes before its exits.
  template <typename Visit>
  void for_each_sled(Visit visit) const {
    for_each_sled_from(0, [&visit](const SledPlace& place, std::uint64_t) {
      visit(place);
      return true;
    });
  }
  /// The same from the entry with this number on: calls visit(SledPlace, its number) until that returns false. Numbers
  /// ascend.
  template <typename Visit>
  void for_each_sled_from(std::uint64_t number, Visit visit) const;
};

struct ModuleImage : SledTables {
  const char* path = "";  ///< empty: the program itself. Valid while the module is loaded
  std::uint64_t bias = 0;
  std::uintptr_t text_begin = 0;  ///< of all executable segments
  std::uintptr_t text_end = 0;
  const std::uint8_t* build_id = nullptr;
  std::uint32_t build_id_size = 0;

  bool has_note = false;           ///< one of Karst's wrappers linked it; without, it can have calls alone, no sleds
  std::uint32_t note_version = 0;  ///< 0: a note that makes no sense
  std::uint32_t note_flags = 0;
  std::uint32_t least_runtime = 0;
  bool finstrument = false;    ///< it has code made with -finstrument-functions: the note says so, or its symbols do
  bool own_exits = false;      ///< of such code: it calls the exit function when an exception passes
  bool tables_inside = false;  ///< all tables lie within the module's own memory

  bool table_is_torn = false;  ///< one of them ends before it begins

  /// For messages.
  const char* name() const { return *path != '\0' ? path : "the program"; }
  /// True if there is anything to trace in it, or was before its tables were damaged.
  bool is_instrumented() const { return gcc_units != 0 || has_clangs() || finstrument || table_is_torn; }
  /// From here on it is the part of the module that was not built for tracing.
  void forget_sleds();
  bool has_clangs() const { return clang_units != 0 || xray_count != 0; }

  /// Null if every record is a place in the module's code, an entry first; else what is wrong, to be put behind the
  /// module's path.
  const char* defect() const;
  /// Of a module without a defect, before it is patched: whether the sled can be.
  SiteDefect defect_of(const SledPlace& place) const;
  /// Bytes of code from `at` to the end of its segment; 0 if it lies in none.
  std::uint64_t code_from(std::uintptr_t at) const;
};

/// Code that was written to would be in core files as a whole. Debuggers have it from the module's file, as they have
/// that of any program; of its pages they look for the ELF header's alone.
void leave_out_of_cores(const CodeSegment& segment);

/// Reads what the dynamic linker says of a module, and the module's note. False if it is not instrumented.
bool read_image(const dl_phdr_info& info, ModuleImage& image);

/// The module, of any namespace, in whose memory `address` lies. False if there is none or it is not instrumented.
bool find_image(std::uintptr_t address, ModuleImage& image);

/// True if `address` lies in the memory of any module, of any namespace, instrumented or not; the vdso's as well.
bool is_in_any_module(std::uintptr_t address);

/// Calls visit(const ModuleImage&) for every instrumented module of the first namespace.
template <typename Visit>
void for_each_image(Visit visit) {
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        ModuleImage image;
        if (read_image(*info, image)) (*static_cast<Visit*>(context))(image);
        return 0;
      },
      &visit);
}

inline arch::Sled gccs_sled(format::SledKind kind) {
  return kind == format::SledKind::kCold ? arch::Sled::kNothing : arch::Sled::kNop;
}
inline arch::Sled clangs_sled(format::SledKind kind) {
  return kind == format::SledKind::kReturn ? arch::Sled::kReturn
         : format::is_tail_call(kind)      ? arch::Sled::kTail
         : kind == format::SledKind::kCold ? arch::Sled::kNothing
                                           : arch::Sled::kSkip;
}

template <typename Visit>
void SledTables::for_each_sled_from(std::uint64_t number, Visit visit) const {
  // One of the two tables of units, whose numbers begin at `first`. True if the next table is to be visited, too.
  const auto walk = [&](const std::uint16_t* units, std::uint64_t count, std::uint64_t first, auto sled_of) {
    if (number - first >= count) return true;
    const auto at = reinterpret_cast<std::uintptr_t>(units);
    number =
        first + format::walk_sleds(units, count, at, number - first, [&](const format::SledRecord& r, std::uint64_t n) {
          const auto kind = static_cast<format::SledKind>(r.kind & KARST_SLED_KIND_MASK);
          return visit(SledPlace{r.address, 0, kind, sled_of(kind), (r.kind & KARST_SLED_ALWAYS) != 0}, first + n);
        });
    return number - first == count;
  };
  const auto rewritten_sled = [this](format::SledKind kind) {
    return kind == format::SledKind::kEntry && clang_entries_are_nops ? arch::Sled::kNop : clangs_sled(kind);
  };
  if (!walk(gcc, gcc_units, 0, gccs_sled) || !walk(clang, clang_units, gcc_units, rewritten_sled)) return;
  const std::uint64_t of_units = gcc_units + clang_units;
  for (; number - of_units < xray_count; ++number) {
    const format::XRayRecord* const record = xray + (number - of_units);
    format::XRayRecord r;  // clang does not align its table
    copy(&r, record, sizeof r);
    const auto at = reinterpret_cast<std::uintptr_t>(record);
    const auto kind = static_cast<format::XRayKind>(r.kind);
    if (kind > format::XRayKind::kEntryWithArguments) continue;
    const format::SledKind sled_kind = kind == format::XRayKind::kReturn ? format::SledKind::kReturn
                                       : kind == format::XRayKind::kTailCall && r.in_registers == 1
                                           ? format::SledKind::kRegisterTailCall
                                       : kind == format::XRayKind::kTailCall ? format::SledKind::kTailCall
                                                                             : format::SledKind::kEntry;
    const SledPlace place{at + static_cast<std::uintptr_t>(r.address),
                          at + offsetof(format::XRayRecord, function) + static_cast<std::uintptr_t>(r.function),
                          sled_kind, clangs_sled(sled_kind), r.always != 0};
    if (!visit(place, number)) return;
  }
  const std::uint64_t others = of_units + xray_count;
  std::uintptr_t function = 0;
  for (; number - others < plain_count; ++number) {
    const format::PatchSled& s = plain_sleds[number - others];
    const auto kind = static_cast<format::SledKind>(s.kind & ~format::kPatchSledLate);
    if (kind == format::SledKind::kEntry) function = plain_bias + s.function;
    const bool is_cold = kind == format::SledKind::kCold;
    const SledPlace place{is_cold ? plain_bias + s.function : plain_stubs + s.offset,
                          function,
                          kind,
                          gccs_sled(kind),
                          false,
                          (s.kind & format::kPatchSledLate) != 0};
    if (!visit(place, number)) return;
  }
}

}  // namespace karst::runtime
