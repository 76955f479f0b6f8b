// A loaded module as its own memory tells: its code, its note, its tables of sleds (format/sled_note.h). Reads alone.
#pragma once
#include <link.h>

#include <cstdint>

#include "arch/arch.h"
#include "format/patch_table.h"
#include "format/sled_note.h"
#include "runtime/system/memory.h"

namespace karst::runtime {

struct CodeSegment {
  std::uintptr_t begin = 0;  ///< whole pages
  std::uintptr_t end = 0;
  int protection = 0;
};

/// One sled, or place of a function that is known by the tables, whichever compiler wrote them.
struct SledPlace {
  std::uintptr_t address;
  std::uintptr_t function;  ///< of clang's tables: where the function begins, to tell its sleds from others'; else 0
  format::SledKind kind;
  arch::Sled sled;
  bool always;  ///< of an entry: the source asks to trace it always

  /// Of an entry: what its function is known by. Not always the function's first byte: gcc's sleds may stand behind
  /// an endbr64. clang's may have padding before them as well, but its tables name the beginning.
  std::uintptr_t known_by() const { return function != 0 ? function : address; }
};

/// Where a module's code and its sleds are. All of it is in the module's memory: valid while that is loaded.
struct SledTables {
  static constexpr std::uint32_t kMostSegments = 8;

  CodeSegment segments[kMostSegments];
  std::uint32_t segment_count = 0;
  const std::uint16_t* units = nullptr;  ///< of gcc's table (format::decode_sled)
  std::uint64_t unit_count = 0;
  const format::XRayRecord* xray = nullptr;
  std::uint64_t xray_count = 0;
  const format::PatchSled* plain_sleds = nullptr;  ///< of a module without sleds of its own (plain_code.h)
  std::uint64_t plain_count = 0;
  std::uint64_t plain_bias = 0;
  std::uintptr_t plain_stubs = 0;
  std::uint64_t plain_stubs_size = 0;

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
  bool tables_inside = false;  ///< both tables lie within the module's own memory

  bool table_is_torn = false;  ///< one of them ends before it begins

  /// True if there is anything to trace in it, or was before its tables were damaged.
  bool is_instrumented() const { return unit_count != 0 || xray_count != 0 || finstrument || table_is_torn; }

  /// Null if every record is an unpatched sled in the module's code, an entry first; else what is wrong, to be put
  /// behind the module's path.
  const char* defect() const;
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

template <typename Visit>
void SledTables::for_each_sled_from(std::uint64_t number, Visit visit) const {
  for (std::uint64_t entry = 0; number < unit_count;) {
    const auto at = reinterpret_cast<std::uintptr_t>(units + number);
    const format::SledRecord r = format::decode_sled(units + number, unit_count - number, at, entry);
    if (r.units == 0) return;
    const auto kind = static_cast<format::SledKind>(r.kind & KARST_SLED_KIND_MASK);
    if (kind == format::SledKind::kEntry) entry = r.address;
    const SledPlace place{r.address, 0, kind, kind == format::SledKind::kCold ? arch::Sled::kNothing : arch::Sled::kNop,
                          (r.kind & KARST_SLED_ALWAYS) != 0};
    if (!visit(place, number)) return;
    number += r.units;
  }
  for (; number - unit_count < xray_count; ++number) {
    const format::XRayRecord* const record = xray + (number - unit_count);
    format::XRayRecord r;  // clang does not align its table
    copy(&r, record, sizeof r);
    const auto at = reinterpret_cast<std::uintptr_t>(record);
    const auto kind = static_cast<format::XRayKind>(r.kind);
    if (kind > format::XRayKind::kEntryWithArguments) continue;
    SledPlace place{at + static_cast<std::uintptr_t>(r.address),
                    at + offsetof(format::XRayRecord, function) + static_cast<std::uintptr_t>(r.function),
                    format::SledKind::kEntry, arch::Sled::kSkip, r.always != 0};
    if (kind == format::XRayKind::kReturn) place.kind = format::SledKind::kReturn, place.sled = arch::Sled::kReturn;
    if (kind == format::XRayKind::kTailCall) place.kind = format::SledKind::kTailCall, place.sled = arch::Sled::kTail;
    if (!visit(place, number)) return;
  }
  const std::uint64_t others = unit_count + xray_count;
  std::uintptr_t function = 0;
  for (; number - others < plain_count; ++number) {
    const format::PatchSled& s = plain_sleds[number - others];
    const auto kind = static_cast<format::SledKind>(s.kind);
    if (kind == format::SledKind::kEntry) function = plain_bias + s.function;
    const bool is_cold = kind == format::SledKind::kCold;
    const SledPlace place{is_cold ? plain_bias + s.function : plain_stubs + s.offset, function, kind,
                          is_cold ? arch::Sled::kNothing : arch::Sled::kNop, false};
    if (!visit(place, number)) return;
  }
}

}  // namespace karst::runtime
