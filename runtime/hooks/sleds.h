// Modules with sleds: found by their note, checked, entered into the arena's tables, patched.
#pragma once
#include <cstdint>

namespace karst::runtime {

/// Modules with sleds among those loaded now. Reads the note alone; cheap.
std::uint32_t count_instrumented_modules();

/// At start. Enters all loaded modules with sleds and their functions into the arena. A module whose table is damaged
/// is left alone with a message. Returns how many modules can be patched.
std::uint32_t register_modules();

/// At start, before other threads exist. Patches the sleds of the functions that are on in the arena. False when the
/// system does not allow it; then nothing is patched.
bool patch_modules();

/// Sleds of all registered modules.
std::uint64_t sled_count();

}  // namespace karst::runtime
