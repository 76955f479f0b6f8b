// SPDX-License-Identifier: MIT
// The program's environment, as far as it is ours.
#pragma once
#include <cstddef>
#include <cstdint>

namespace karst::runtime {

/// Takes KARST_OPTIONS, our part of LD_PRELOAD and the variables by which annotated programs find us out of
/// `environment` (as passed to main; may be null), so that programs that this one starts are loaded without us. Before
/// anyone else reads it.
void hide_from_children(char** environment);

/// Cuts our libraries out of a list whose parts are separated by colons or blanks; false when nothing is left of it.
bool cut_preload(char* list);
/// Somewhere in the text one of our libraries is named.
bool names_us_anywhere(const char* text);
/// The part of the list (LD_PRELOAD) that is ours, all in one place: libkarst.so and what comes right behind it that is
/// ours by its name, `count` libraries at least, as there may be plugins among them. `size` 0: there is none.
struct PartOfList {
  const char* begin;
  std::size_t size;
};
PartOfList own_part_of_preload(const char* list, std::uint32_t count);

}  // namespace karst::runtime
