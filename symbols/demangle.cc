// SPDX-License-Identifier: MIT
#include "symbols/demangle.h"

#include <libiberty/demangle.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace karst::symbols {
namespace {

/// libiberty itself refuses names over 1024 bytes, which templates reach, to save stack. Measured, 64,000 nested types
/// overflow 8 MiB of stack and 32,000 do not.
constexpr std::size_t kMaxLinkName = std::size_t{16} << 10;
/// A name of a few hundred bytes can stand for more text than there is memory: each pair of the pair before.
constexpr std::size_t kMaxName = std::size_t{1} << 20;

struct TooLong {};

bool may_be_rust(std::string_view mangled) {
  return mangled.starts_with("_R") || (mangled.starts_with("_ZN") && mangled.find("17h") != mangled.npos);
}

std::string demangle_ada(const char* link_name) {
  struct Free {
    void operator()(char* text) const { std::free(text); }
  };
  const std::unique_ptr<char, Free> name(ada_demangle(link_name, 0));
  // What is not gnat's comes back in angle brackets.
  return name == nullptr || name.get()[0] == '<' ? std::string(link_name) : std::string(name.get());
}

void append(const char* text, std::size_t size, void* name) {
  auto& to = *static_cast<std::string*>(name);
  // The only way to stop the printer. It keeps all it has on the stack, and x86-64 has unwind tables for C.
  if (size > kMaxName - to.size()) throw TooLong{};
  to.append(text, size);
}

}  // namespace

std::string demangle(const char* link_name, Language language) {
  std::string_view mangled = link_name;
  if (mangled.size() > kMaxLinkName) return link_name;
  if (language == Language::kAda && !mangled.starts_with("_Z")) return demangle_ada(link_name);
  if (!mangled.starts_with("_")) return link_name;
  std::string name;
  try {
    // First: Rust's old scheme is valid C++ with a namespace that looks like a hash.
    if (may_be_rust(mangled) && rust_demangle_callback(link_name, DMGL_PARAMS, append, &name) != 0) return name;
    name.clear();
    constexpr int kOptions = DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP | DMGL_NO_RECURSE_LIMIT;
    if (cplus_demangle_v3_callback(link_name, kOptions, append, &name) != 0) return name;
  } catch (const TooLong&) {
    // As it is, then.
  }
  return link_name;
}

}  // namespace karst::symbols
