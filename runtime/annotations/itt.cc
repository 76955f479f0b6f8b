// SPDX-License-Identifier: MIT
// A program that carries ittnotify loads the library that INTEL_LIBITTNOTIFY64 names and calls its __itt_api_init, with
// a table of the pointers that its calls go through. The program may carry any version of it, so functions are found
// by name, and what we do not have becomes what the program has for that.
#include "runtime/annotations/itt.h"

#include "runtime/system/memory.h"
#include "runtime/system/message.h"

namespace karst::runtime::itt {
namespace {

constexpr std::uint32_t kMostFunctions = 1000;
constexpr char kPrefix[] = "__itt_";

bool is_understood(const Program& program) {
  for (std::uint32_t i = 0; i < sizeof kMagic; ++i)
    if (program.magic[i] != kMagic[i]) return false;
  return program.version_major == kVersion && program.version_build >= kFirstBuild && program.functions != nullptr;
}

void* function_named(const char* name) {
  if (!starts_with(name, kPrefix)) return nullptr;
  const Functions all[] = {task_functions(), object_functions()};
  for (const Functions& known : all)
    for (std::uint32_t i = 0; i < known.count; ++i)
      if (equal(known.first[i].name, name + sizeof kPrefix - 1)) return known.first[i].function;
  return nullptr;
}

void attach(const Program& program, std::uint32_t groups) {
  if (!is_understood(program)) {
    Message().text("this program's ittnotify is of a version that Karst does not know: what it says is not recorded");
    return;
  }
  for (std::uint32_t i = 0; i < kMostFunctions; ++i) {
    const Function& f = program.functions[i];
    if (f.name == nullptr) return;
    if (f.pointer == nullptr) continue;
    void* const ours = (f.group & groups) != 0 ? function_named(f.name) : nullptr;
    store(*f.pointer, ours != nullptr ? ours : f.none);
  }
}

}  // namespace
}  // namespace karst::runtime::itt

extern "C" __attribute__((visibility("default"))) void __itt_api_init(const karst::runtime::itt::Program* program,
                                                                      std::uint32_t groups) {
  if (program != nullptr) karst::runtime::itt::attach(*program, groups);
}
