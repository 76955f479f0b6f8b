// SPDX-License-Identifier: MIT
#include "collect/inject/changes.h"

#include <cstring>
#include <optional>
#include <utility>

#include "format/patch_table.h"
#include "format/sled_note.h"

namespace karst::collect {
namespace {

using namespace format;

/// Reads numbers out of a table that may say anything.
class Table {
 public:
  static std::optional<Table> read(const ForeignMemory& memory, const PatchedModule& module) {
    Table t;
    if (module.table_size < sizeof(PatchTable) || module.table_size > kMostPatchTable) return std::nullopt;
    t.bytes_.resize(module.table_size);
    if (!memory.read(module.table, t.bytes_.data(), t.bytes_.size())) return std::nullopt;
    std::memcpy(&t.head_, t.bytes_.data(), sizeof t.head_);
    const PatchTable& h = t.head_;
    t.sleds_ = sizeof h + std::uint64_t{h.probes} * sizeof(PatchProbe);
    t.jumps_ = t.sleds_ + std::uint64_t{h.sleds} * sizeof(PatchSled);
    t.fixups_ = t.jumps_ + std::uint64_t{h.jumps} * sizeof(PatchJump);
    t.detours_ = t.fixups_ + std::uint64_t{h.fixups} * sizeof(PatchFixup);
    const std::uint64_t code = t.detours_ + std::uint64_t{h.detours} * sizeof(PatchDetour);
    if (h.magic != kPatchTableMagic || h.version != kPatchTableVersion || code > t.bytes_.size() ||
        h.code_size > t.bytes_.size() - code)
      return std::nullopt;
    t.text_ = code + h.code_size;
    for (std::uint32_t i = 0; i < h.sleds; ++i)
      if (const auto sled = t.get<PatchSled>(t.sleds_, i); sled.kind == static_cast<std::uint32_t>(SledKind::kEntry))
        t.entries_.push_back(sled.function);
    return t;
  }

  std::uint32_t jumps() const { return head_.jumps; }
  PatchJump jump(std::uint32_t i) const { return get<PatchJump>(jumps_, i); }
  std::uint32_t fixups() const { return head_.fixups; }
  PatchFixup fixup(std::uint32_t i) const { return get<PatchFixup>(fixups_, i); }

  /// What the jump is of, in the process.
  Change change_of(const PatchJump& jump, const PatchedModule& module) const {
    Change change;
    if (jump.function < head_.functions) {
      if (jump.function < entries_.size()) change.function = module.bias + entries_[jump.function];
      return change;
    }
    std::uint32_t number = jump.function - head_.functions;
    if (number < head_.probes) {
      change.what = Change::What::kProbe;
      const auto semaphore = get<PatchProbe>(sizeof head_, number).semaphore;
      if (semaphore != 0) change.semaphore = module.bias + semaphore;
      return change;
    }
    change.what = Change::What::kDetour;
    number -= head_.probes;
    if (number >= head_.detours) return change;
    const auto detour = get<PatchDetour>(detours_, number);
    change.function = module.bias + detour.function;
    change.stub = module.stubs + detour.offset;
    constexpr std::size_t kMostName = 80;
    if (detour.name < bytes_.size() - text_) {
      const char* const name = bytes_.data() + text_ + detour.name;
      change.name.assign(name, strnlen(name, std::min(kMostName, bytes_.size() - text_ - detour.name)));
    }
    return change;
  }

 private:
  template <typename T>
  T get(std::uint64_t begin, std::uint32_t i) const {
    T value{};
    std::memcpy(&value, bytes_.data() + begin + std::uint64_t{i} * sizeof value, sizeof value);
    return value;
  }

  std::vector<char> bytes_;
  PatchTable head_{};
  std::uint64_t sleds_ = 0, jumps_ = 0, fixups_ = 0, detours_ = 0, text_ = 0;
  std::vector<std::uint64_t> entries_;  // ELF addresses of functions, by number
};

bool is_code(const std::vector<Mapping>& mappings, const Edit& edit) {
  return std::any_of(mappings.begin(), mappings.end(), [&](const Mapping& m) {
    return m.is_code() && !m.path.empty() && edit.address >= m.begin && edit.address + edit.size <= m.end;
  });
}

/// None: the jump makes no sense.
std::optional<Edit> edit_of(const PatchJump& j, const PatchedModule& module, bool back) {
  if (!is_possible(j)) return std::nullopt;
  Edit edit{site_of(j, module.bias, module.stubs)};
  if (back) std::swap(edit.before, edit.after);
  return edit;
}

}  // namespace

Changes changes_of(const ForeignMemory& memory, const std::vector<Mapping>& mappings, bool back) {
  PatchedModules modules{};
  if (const std::uint64_t at = find_in_runtime(memory, mappings, "karst_patched_modules"); at != 0)
    memory.read(at, &modules, sizeof modules);
  Changes found;
  if (modules.version != kPatchTableVersion) return found;
  std::uint64_t size = 0;
  for (std::uint32_t i = 0; i < std::min(modules.count, kMostPatchedModules); ++i) {
    size += std::min(modules.modules[i].table_size, kMostPatchTable + 1);
    if (size > kMostPatchTable) break;  // it lies
    const auto table = Table::read(memory, modules.modules[i]);
    if (!table) continue;
    std::optional<std::uint32_t> function;
    bool is_whole = true;  // what the function has so far
    const auto end_function = [&] {
      if (!is_whole && found.all.back().is_detour()) found.lost_detour = found.all.back().name;
      if (!is_whole) found.all.pop_back();
      found.not_code += is_whole ? 0 : 1;
      is_whole = true;
    };
    for (std::uint32_t n = 0; n < table->jumps(); ++n) {
      const PatchJump jump = table->jump(n);
      if (function != jump.function) {
        end_function();
        found.all.push_back(table->change_of(jump, modules.modules[i]));
      }
      function = jump.function;
      const auto edit = edit_of(jump, modules.modules[i], back);
      is_whole = is_whole && edit && is_code(mappings, *edit);
      if (is_whole) found.all.back().edits.push_back(*edit);
    }
    end_function();
    for (std::uint32_t n = 0; n < table->fixups(); ++n)
      found.returns.push_back(modules.modules[i].bias + table->fixup(n).target);
  }
  std::sort(found.returns.begin(), found.returns.end());
  return found;
}

}  // namespace karst::collect
