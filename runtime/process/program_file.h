// SPDX-License-Identifier: MIT
// The file of a program that is about to be started: whether its dynamic linker can load libkarst.so.
//
// Reads the file's head and, where it has another dynamic linker than this process, that one's names. By descriptors
// that are taken for the moment; on the stack alone.
#pragma once
#include "format/session.h"
#include "runtime/system/child_environment.h"

namespace karst::runtime {

/// At start: which dynamic linker this process has.
void note_own_loader();

struct Starting {
  format::StartsHow how = format::StartsHow::kAsUsual;
  ProgramNeeds needs = {};
};

/// Of an open file (to be read), or what a script names behind #!. `library`: path of libkarst.so.
Starting how_it_starts(int file, const char* library);

}  // namespace karst::runtime
