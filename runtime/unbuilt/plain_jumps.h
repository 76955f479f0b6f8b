// SPDX-License-Identifier: MIT
// Jumps from a module's code to the stubs of its table of patches: bytes are written where those that karst saw stand,
// and nowhere else.
#pragma once
#include <cstdint>

#include "runtime/unbuilt/patch_tables.h"

namespace karst::runtime {

/// Writes the jumps of functions for which `is_wanted(context, number)` says so, where the bytes are those that karst
/// saw. Nobody executes the module's code meanwhile. Calls left_out(context, number) for every other function. False,
/// and nothing written, if the system does not let the code be changed.
bool write_jumps(const ModuleImage& image, const PlainCode& code, void* context,
                 bool (*is_wanted)(void* context, std::uint32_t function),
                 void (*left_out)(void* context, std::uint32_t function));

/// Writes the jumps of the table's probes and detours, alike. Calls written(context, probe) or left_out(context, probe)
/// for each probe that has some. False, and nothing written, if the system does not let the code be changed.
bool write_probe_jumps(const ModuleImage& image, const PlainCode& code, void* context,
                       void (*written)(void* context, std::uint32_t probe),
                       void (*left_out)(void* context, std::uint32_t probe));

/// Takes back jumps, as far as that can be while threads run the code: of the functions that `next(context)` gives, one
/// after the other, whose sleds are off, until that is no function's number. Somebody else's bytes are left. False: the
/// system does not let the code be changed.
bool remove_jumps(const ModuleImage& image, const PlainCode& code, void* context, std::uint32_t (*next)(void* context));

/// All jumps of the function are as they shall be.
bool jumps_stand(const ModuleImage& image, const PlainCode& code, std::uint32_t function);

/// In a child by a raw system call, which may have come while that was under way: some of the code is writable.
bool is_code_open();
/// It is protected as before.
void close_code();

/// The jumps of all the table's detours are as they shall be.
bool detours_stand(const ModuleImage& image, const PlainCode& code);

/// Of functions whose jumps somebody else has written, in a process that runs (collect/inject/patch.h): calls
/// left_out(context, number) for every function that lacks one.
void check_jumps(const ModuleImage& image, const PlainCode& code, void* context,
                 void (*left_out)(void* context, std::uint32_t function));

}  // namespace karst::runtime
