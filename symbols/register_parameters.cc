// SPDX-License-Identifier: MIT
#include "symbols/register_parameters.h"

#include <dwarf.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

#include "symbols/calling_convention.h"
#include "symbols/demangle.h"
#include "symbols/dwarf_types.h"

namespace karst::symbols {
namespace {

constexpr std::size_t kIntegerRegisters = 6;
constexpr std::size_t kVectorRegisters = 8;
// clang passes what a pointer leads to in its place, in this many parts at most (ArgumentPromotion), where it knows all
// callers.
constexpr std::size_t kMostPromoted = 3;
constexpr int kDeepestScope = 16;

/// What compilers made of a function has another name, and other parameters than its source says.
bool has_other_parameters(std::string_view link_name) { return link_name.find('.') != std::string_view::npos; }

bool is_artificial(Dwarf_Die* die) {
  Dwarf_Attribute at;
  bool flag = false;
  if (dwarf_attr_integrate(die, DW_AT_artificial, &at) != nullptr) dwarf_formflag(&at, &flag);
  return flag;
}

bool is_pointer(const Dwarf_Die& type) {
  switch (dwarf_tag(const_cast<Dwarf_Die*>(&type))) {
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type:
      return true;
    default:
      return false;
  }
}

/// Where DWARF has a parameter as its function begins, if that is a register: -1 otherwise.
int register_at_entry(Dwarf_Die* parameter, Dwarf_Addr entry) {
  Dwarf_Attribute at;
  Dwarf_Op* ops = nullptr;
  std::size_t count = 0;
  if (dwarf_attr(parameter, DW_AT_location, &at) == nullptr ||
      dwarf_getlocation_addr(&at, entry, &ops, &count, 1) != 1 || count != 1)
    return -1;
  return ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31 ? ops[0].atom - DW_OP_reg0 : -1;
}

bool are_in_registers(Dwarf_Die function, Dwarf_Addr entry, const ParametersOf& asked) {
  if (has_other_parameters(asked.link_name)) return false;
  // Another convention than C's (ms_abi, regcall), or parameters that were changed (DW_CC_nocall).
  if (const auto convention = symbols::number_of(&function, DW_AT_calling_convention);
      convention && *convention != DW_CC_normal && *convention != DW_CC_program)
    return false;
  const Compiler compiler = Compiler::of(&function);
  if (!compiler.by_gcc && !compiler.by_clang) return false;
  const HiddenResult result = hidden_result(type_of(&function), compiler);
  if (result == HiddenResult::kUnknown) return false;
  Convention convention(result, compiler);
  std::size_t integers = result == HiddenResult::kHidden ? 1 : 0;
  std::size_t vectors = 0;
  bool has_this = false;
  Dwarf_Die child;
  if (dwarf_child(&function, &child) == 0) do {
      if (dwarf_tag(&child) == DW_TAG_unspecified_parameters) return false;
      if (dwarf_tag(&child) != DW_TAG_formal_parameter) continue;
      const auto type = type_of(&child);
      if (!type) return false;
      has_this = has_this || is_artificial(&child);
      const auto source = convention.next(*type);
      if (!source) return false;
      if (!std::all_of(source->words.begin(), source->words.end(), is_argument_register)) return false;
      // gcc does not tell of another convention in words.
      if (const int at = register_at_entry(&child, entry); at >= 0 && compiler.by_gcc) {
        const auto place = place_of_register(static_cast<std::uint64_t>(at));
        if (!place || std::find(source->words.begin(), source->words.end(), *place) == source->words.end())
          return false;
      }
      const auto of_vectors =
          static_cast<std::size_t>(std::count_if(source->words.begin(), source->words.end(),
                                                 [](std::uint8_t word) { return word >= format::kFirstVectorPlace; }));
      const bool is_promoted = compiler.by_clang && asked.is_local && is_pointer(*type);
      integers += is_promoted ? kMostPromoted : source->words.size() - of_vectors;
      vectors += is_promoted ? kMostPromoted : of_vectors;
    } while (dwarf_siblingof(&child, &child) == 0);
  // clang does not list what some constructors and destructors are given besides.
  if (compiler.by_clang && has_this) ++integers;
  return integers <= kIntegerRegisters && vectors <= kVectorRegisters;
}

class Walk {
 public:
  Walk(Dwarf* dwarf, std::uint64_t bias, std::vector<ParametersOf>& functions)
      : dwarf_(dwarf), bias_(bias), functions_(functions), is_seen_(functions.size()) {}

  /// Which of them the DWARF knows.
  std::vector<bool> all() {
    Dwarf_Off at = 0;
    Dwarf_Off next = 0;
    std::size_t header = 0;
    for (; dwarf_nextcu(dwarf_, at, &next, &header, nullptr, nullptr, nullptr) == 0; at = next) {
      Dwarf_Die unit;
      if (dwarf_offdie(dwarf_, at + header, &unit) == nullptr || !is_c_or_cpp(&unit) || !has_some(&unit)) continue;
      scope(&unit, 0);
    }
    return std::move(is_seen_);
  }

 private:
  /// The first that does not lie before.
  std::size_t first_from(Dwarf_Addr address) const {
    return static_cast<std::size_t>(
        std::lower_bound(functions_.begin(), functions_.end(), address,
                         [](const ParametersOf& f, Dwarf_Addr at) { return f.address < at; }) -
        functions_.begin());
  }

  /// visit(first, end) of those in each of its ranges.
  template <typename Visit>
  void for_ranges(Dwarf_Die* die, Visit visit) const {
    Dwarf_Addr base = 0;
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;
    std::ptrdiff_t offset = 0;
    while ((offset = dwarf_ranges(die, offset, &base, &begin, &end)) > 0)
      if (end > begin) visit(first_from(begin + bias_), first_from(end + bias_), begin);
  }

  bool has_some(Dwarf_Die* unit) const {
    bool found = false;
    for_ranges(unit, [&](std::size_t first, std::size_t end, Dwarf_Addr) { found = found || first != end; });
    return found;
  }

  void scope(Dwarf_Die* parent, int depth) {
    Dwarf_Die child;
    if (depth == kDeepestScope || dwarf_child(parent, &child) != 0) return;
    do {
      const int tag = dwarf_tag(&child);
      if (tag == DW_TAG_namespace) scope(&child, depth + 1);
      if (tag == DW_TAG_subprogram) function(&child);
    } while (dwarf_siblingof(&child, &child) == 0);
  }

  // Functions that the linker has folded into one must all be such.
  void function(Dwarf_Die* die) {
    for_ranges(die, [&](std::size_t first, std::size_t end, Dwarf_Addr begin) {
      if (first == end || functions_[first].address != begin + bias_) return;
      const bool found = are_in_registers(*die, begin, functions_[first]);
      functions_[first].in_registers = found && (!is_seen_[first] || functions_[first].in_registers);
      is_seen_[first] = true;
    });
  }

  Dwarf* dwarf_;
  std::uint64_t bias_;
  std::vector<ParametersOf>& functions_;
  std::vector<bool> is_seen_;
};

/// The types of the parameters in a demangled name, `scope::f(int, char const*) const`, as one text; none: it is of
/// another form.
std::optional<std::string_view> parameter_list(std::string_view name) {
  for (const std::string_view end : {" const", " volatile", " &&", " &"})
    if (name.ends_with(end)) name.remove_suffix(end.size());
  if (!name.ends_with(')')) return std::nullopt;
  int depth = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    if (name[i] == ')') ++depth;
    if (name[i] == '(' && --depth == 0) {
      if (name.substr(0, i).ends_with("operator")) return std::nullopt;
      return name.substr(i + 1, name.size() - i - 2);
    }
  }
  return std::nullopt;
}

enum class Simple : std::uint8_t { kOther, kInteger, kPointer, kVector };

Simple simple_type(std::string_view type) {
  if (type.ends_with('*') || type.ends_with('&')) return Simple::kPointer;
  for (const std::string_view end : {" const", " volatile"})
    if (type.ends_with(end)) type.remove_suffix(end.size());
  if (type.ends_with('*')) return Simple::kPointer;
  constexpr std::string_view kIntegers[] = {"bool",    "char",           "signed char", "unsigned char",
                                            "short",   "unsigned short", "int",         "unsigned int",
                                            "long",    "unsigned long",  "long long",   "unsigned long long",
                                            "wchar_t", "char8_t",        "char16_t",    "char32_t"};
  if (std::find(std::begin(kIntegers), std::end(kIntegers), type) != std::end(kIntegers)) return Simple::kInteger;
  return type == "float" || type == "double" ? Simple::kVector : Simple::kOther;
}

}  // namespace

bool are_in_registers_by_name(std::string_view link_name, bool is_local) {
  if (!link_name.starts_with("_Z") || has_other_parameters(link_name)) return false;
  const std::string name = demangle(std::string(link_name).c_str());
  const auto list = parameter_list(name);
  if (!list) return false;
  // `this`, room for a result, and what some constructors are given: names do not tell of them.
  std::size_t integers = 3;
  std::size_t vectors = 0;
  int depth = 0;
  for (std::size_t begin = 0, at = 0; at <= list->size() && !list->empty(); ++at) {
    const char c = at < list->size() ? (*list)[at] : ',';
    if (c == '(' || c == '<' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == '>' || c == ']' || c == '}') --depth;
    if (c != ',' || (depth != 0 && at < list->size())) continue;
    std::string_view type = list->substr(begin, at - begin);
    if (type.starts_with(' ')) type.remove_prefix(1);
    begin = at + 1;
    switch (simple_type(type)) {
      case Simple::kOther:
        return false;
      case Simple::kInteger:
        ++integers;
        break;
      case Simple::kPointer:
        integers += is_local ? kMostPromoted : 1;
        vectors += is_local ? kMostPromoted : 0;
        break;
      case Simple::kVector:
        ++vectors;
        break;
    }
  }
  return integers <= kIntegerRegisters && vectors <= kVectorRegisters;
}

void look_at_parameters(Dwarf* dwarf, std::uint64_t bias, std::vector<ParametersOf>& functions) {
  std::vector<bool> is_known(functions.size());
  if (dwarf != nullptr) is_known = Walk(dwarf, bias, functions).all();
  for (std::size_t i = 0; i < functions.size(); ++i)
    if (!is_known[i])
      functions[i].in_registers = are_in_registers_by_name(functions[i].link_name, functions[i].is_local);
}

}  // namespace karst::symbols
