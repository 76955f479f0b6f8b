// SPDX-License-Identifier: MIT
// The symbol whose range has the address is the variable. Its type, by DWARF, says which member lies there: classes and
// arrays are gone into until one begins at the address that is no class of the program's own.
#include "symbols/static_locks.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "binary/elf_module.h"
#include "format/lock.h"
#include "sandbox/sandbox.h"
#include "symbols/demangle.h"
#include "symbols/dwarf_types.h"

namespace karst::symbols {
namespace {

constexpr std::size_t kMostName = 300;
constexpr int kDeepestScope = 16;

struct Variable {
  std::uint64_t begin = 0;
  std::string name;
  std::string member;  // what follows the name
  bool placed = false;
};

std::string hexadecimal(std::uint64_t number) {
  char digits[16];
  return "0x" + std::string(digits, std::to_chars(std::begin(digits), std::end(digits), number, 16).ptr);
}

/// Types of libraries: what is in them is no name that a user knows.
bool is_lock_type(const Dwarf_Die& type) {
  Dwarf_Die die = type;
  const std::string_view name = name_of(&die);
  constexpr std::string_view kNames[] = {
      "mutex",        "recursive_mutex",    "timed_mutex",        "recursive_timed_mutex",
      "shared_mutex", "shared_timed_mutex", "condition_variable", "condition_variable_any"};
  return name.starts_with("pthread_") || name.starts_with("__") ||
         std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

std::optional<std::uint64_t> elements_of(Dwarf_Die array) {
  Dwarf_Die child;
  if (dwarf_child(&array, &child) != 0) return std::nullopt;
  std::optional<std::uint64_t> count;
  do {
    if (dwarf_tag(&child) != DW_TAG_subrange_type) continue;
    if (count) return std::nullopt;  // more dimensions
    count = number_of(&child, DW_AT_count);
    if (const auto last = number_of(&child, DW_AT_upper_bound); !count && last) count = *last + 1;
  } while (dwarf_siblingof(&child, &child) == 0);
  return count;
}

/// `.mutex_`, `[3].lock`: what lies `offset` bytes into a variable of this type. None: it is not known.
std::optional<std::string> place_in(Dwarf_Die type, std::uint64_t offset) {
  std::string text;
  for (int depth = 0; depth < kDeepestType; ++depth) {
    if (dwarf_tag(&type) == DW_TAG_array_type) {
      const auto element = type_of(&type);
      const auto count = elements_of(type);
      const std::uint64_t size = element ? size_of(*element) : 0;
      if (!count || size == 0 || offset / size >= *count) return std::nullopt;
      text += "[" + std::to_string(offset / size) + "]";
      offset %= size;
      type = *element;
      continue;
    }
    if (dwarf_tag(&type) == DW_TAG_union_type || !is_class(type) || is_lock_type(type))
      return offset == 0 ? std::optional(text) : std::nullopt;
    const auto members = members_of(type);
    if (!members) return std::nullopt;
    const auto at = std::find_if(members->begin(), members->end(), [&](const Member& member) {
      return offset >= member.offset && offset - member.offset < size_of(member.type);
    });
    if (at == members->end()) return std::nullopt;
    if (!at->name.empty()) text += "." + std::string(at->name);
    offset -= at->offset;
    type = at->type;
  }
  return std::nullopt;
}

/// Fills in the members of variables, which are in order of their begin.
class Members {
 public:
  Members(std::span<const std::uint64_t> addresses, std::vector<Variable>& found)
      : addresses_(addresses), found_(found) {}

  void run(Dwarf* dwarf, Dwarf_Addr bias) {
    bias_ = bias;
    Dwarf_CU* unit = nullptr;
    Dwarf_Die die;
    while (dwarf_get_units(dwarf, unit, &unit, nullptr, nullptr, &die, nullptr) == 0) scan(die, 0);
  }

 private:
  void scan(Dwarf_Die scope, int depth) {
    Dwarf_Die child;
    if (depth > kDeepestScope || dwarf_child(&scope, &child) != 0) return;
    do {
      const int tag = dwarf_tag(&child);
      if (tag == DW_TAG_variable)
        look_at(child);
      else if (tag == DW_TAG_namespace || tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block)
        scan(child, depth + 1);
    } while (dwarf_siblingof(&child, &child) == 0);
  }

  void look_at(Dwarf_Die variable) {
    Dwarf_Attribute location;
    Dwarf_Op* ops = nullptr;
    std::size_t count = 0;
    if (dwarf_attr(&variable, DW_AT_location, &location) == nullptr ||
        dwarf_getlocation(&location, &ops, &count) != 0 || count != 1)
      return;
    Dwarf_Addr begin = ops[0].number;
    if (ops[0].atom == DW_OP_addrx) {
      Dwarf_Attribute address;
      if (dwarf_getlocation_attr(&location, ops, &address) != 0 || dwarf_formaddr(&address, &begin) != 0) return;
    } else if (ops[0].atom != DW_OP_addr) {
      return;
    }
    begin += bias_;
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (found_[i].begin != begin || found_[i].name.empty() || found_[i].placed) continue;
      const auto type = type_of(&variable);
      const auto place = type ? place_in(*type, addresses_[i] - begin) : std::nullopt;
      if (!place) continue;
      found_[i].member = *place;
      found_[i].placed = true;
    }
  }

  std::span<const std::uint64_t> addresses_;
  std::vector<Variable>& found_;
  Dwarf_Addr bias_ = 0;
};

/// In the sandbox: for each address what lies there; empty: not known.
std::vector<std::string> names_in(const binary::ElfModule& module, const std::vector<std::uint64_t>& addresses) {
  const std::vector<binary::ElfFunction> objects = module.objects_at(addresses);
  std::vector<Variable> found(addresses.size());
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (objects[i].name == nullptr) continue;
    found[i].begin = objects[i].range.begin;
    found[i].name = demangle(objects[i].name);
  }
  Dwarf_Addr bias = 0;
  if (Dwarf* dwarf = module.dwarf(&bias); dwarf != nullptr) Members(addresses, found).run(dwarf, bias);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    Variable& variable = found[i];
    const std::uint64_t offset = addresses[i] - variable.begin;
    if (!variable.name.empty() && !variable.placed && offset != 0) variable.member = "+" + hexadecimal(offset);
    names.push_back((variable.name + variable.member).substr(0, kMostName));
  }
  return names;
}

std::vector<std::string> names_apart(const std::string& path, const std::string& build_id,
                                     const std::vector<std::uint64_t>& addresses, const ResolveOptions& options) {
  sandbox::SandboxOptions sandbox{.as = options.as};
  if (options.debug.servers != nullptr) sandbox.keep = options.debug.servers->descriptors();
  const auto answer = sandbox::in_sandbox(sandbox, [&](sandbox::AnswerWriter& out) {
    if (options.debug.servers != nullptr) options.debug.servers->stay_offline();
    // Without a build-id nobody knows whether it is the file that ran.
    if (build_id.empty()) return;
    const auto module = binary::ElfModule::open({path, build_id}, options.debug);
    if (!module) return;
    for (const std::string& name : names_in(*module, addresses)) out.text(name);
  });
  if (!answer) return {};
  sandbox::AnswerReader in(*answer);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < addresses.size(); ++i) names.emplace_back(in.text().substr(0, kMostName));
  return in.is_whole() ? names : std::vector<std::string>();
}

std::string bytes_of(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    unsigned byte = 0;
    std::from_chars(digits.data() + i, digits.data() + i + 2, byte, 16);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace

void name_static_locks(reader::Process& process, const ResolveOptions& options) {
  std::map<std::pair<std::string, std::string>, std::vector<reader::Function*>> modules;  // by path and build-id
  for (reader::Function& function : process.functions) {
    if (!function.note || !function.values.starts_with(format::kStaticLock) || function.file.empty()) continue;
    modules[{function.file, bytes_of(std::string_view(function.values).substr(sizeof format::kStaticLock - 1))}]
        .push_back(&function);
    // Neither is of use any more, and both say which build of which file it was.
    function.file.clear();
    function.values = format::kStaticLock;
  }
  for (const auto& [module, locks] : modules) {
    std::vector<std::uint64_t> addresses;
    for (const reader::Function* lock : locks) {
      const std::size_t plus = lock->name.rfind("+0x");
      std::uint64_t address = 0;
      if (plus != std::string::npos)
        std::from_chars(lock->name.data() + plus + 3, lock->name.data() + lock->name.size(), address, 16);
      addresses.push_back(address);
    }
    const std::vector<std::string> names = names_apart(module.first, module.second, addresses, options);
    for (std::size_t i = 0; i < names.size(); ++i)
      if (!names[i].empty())
        locks[i]->name = locks[i]->link_name = locks[i]->name.substr(0, locks[i]->name.find(' ') + 1) + names[i];
  }
}

}  // namespace karst::symbols
