// SPDX-License-Identifier: MIT
// Intel's ITT: what each function of ittnotify becomes. docs/guide/annotated.md has the table.
//
// itt.cc          the library's entry: fills the program's table by name
// itt_tasks.cc    tasks, frames, markers, metadata
// itt_objects.cc  domains, texts, counters, events, locks
#pragma once
#include "runtime/annotations/itt_abi.h"
#include "runtime/annotations/kept_texts.h"

namespace karst::runtime::itt {

/// A function of the table that is ours.
struct Known {
  const char* name;  ///< behind "__itt_"
  void* function;
};
struct Functions {
  const Known* first;
  std::uint32_t count;
};
Functions task_functions();
Functions object_functions();

inline Said name_of(const Domain* domain) { return domain != nullptr ? said(domain->name) : Said(); }
inline Said text_of(const Text* text) { return text != nullptr ? said(text->text) : Said(); }

/// Says a value that lies in the program's memory.
void say_number(NoteName* name, Type type, const void* value);

/// The bits of an integer of this type, extended to 64; false: it is none.
bool read_integer(Type type, const void* value, std::uint64_t& result);

}  // namespace karst::runtime::itt
