// SPDX-License-Identifier: MIT
#include "symbols/values.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "binary/elf_module.h"
#include "sandbox/sandbox.h"
#include "symbols/calling_convention.h"
#include "symbols/dwarf_functions.h"
#include "symbols/dwarf_types.h"

namespace karst::symbols {

using namespace format;

namespace {

constexpr int kDeepestMember = 2;
constexpr std::size_t kMostMembers = 6;  // of a structure that is shown by its members
constexpr std::size_t kMostEnumerators = 64;
constexpr std::size_t kLongestName = 120;
constexpr std::uint32_t kAllMissing = ~std::uint32_t{0};
constexpr std::uint64_t kNoPlace = ~std::uint64_t{0};

std::string plain(std::string_view name) {
  std::string text(name.substr(0, kLongestName));
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return c == ',' || c == ':' || c == '|' || c == ';' || c == '=' || c == '{' || c == '}'; }, '_');
  return text;
}

struct Builder {
  FunctionValues& out;
  std::vector<ValueOp>* ops = nullptr;
  std::string text;

  std::size_t used() const { return out.arguments.size() + out.returned.size(); }

  void describe(const std::string& name, std::string_view type) {
    if (!text.empty()) text += ',';
    text += name;
    text += ':';
    text += type;
  }
  void put(const std::string& name, std::string_view type, ValueHow how, std::uint8_t place, std::uint64_t size,
           std::uint64_t offset) {
    if (used() == kMostValues || size > 0xffff || offset > 0x7fffffff) return describe(name, "-");
    ops->push_back(
        {static_cast<std::uint8_t>(how), place, static_cast<std::uint16_t>(size), static_cast<std::int32_t>(offset)});
    describe(name, type);
  }
  /// A part of the object that is no more than 8 bytes.
  void scalar(const std::string& name, std::string_view type, const Source& source, std::uint64_t size,
              std::uint64_t offset) {
    if (size == 0) return describe(name, "-");  // its type is not here
    if (source.missing == kAllMissing) return describe(name, "?");
    for (std::uint64_t at = offset; at < offset + size && at < 32; ++at)
      if ((source.missing >> at & 1) != 0) return describe(name, "?");
    if (source.by_address) return put(name, type, ValueHow::kMemory, source.words[0], size, offset);
    if (offset / 8 >= source.words.size() || offset % 8 + size > 8) return describe(name, "-");
    put(name, type, ValueHow::kRegister, source.words[offset / 8], size, offset % 8);
  }

  void enumeration(Dwarf_Die type, const std::string& name, const Source& source, std::uint64_t offset) {
    const std::uint64_t size = size_of(type);
    std::string code = "e" + std::to_string(size) + "{";
    std::size_t count = 0;
    Dwarf_Die child;
    if (dwarf_child(&type, &child) == 0) do {
        Dwarf_Attribute at;
        Dwarf_Sword value = 0;
        if (dwarf_tag(&child) != DW_TAG_enumerator ||
            dwarf_formsdata(dwarf_attr(&child, DW_AT_const_value, &at), &value) != 0)
          continue;
        if (count++ != 0) code += ';';
        code += plain(name_of(&child)) + "=" + std::to_string(value);
      } while (count < kMostEnumerators && dwarf_siblingof(&child, &child) == 0);
    scalar(name, code + "}", source, size, offset);
  }

  /// One value, or a structure's members.
  void object(Dwarf_Die type, const std::string& name, const Source& source, std::uint64_t offset, int depth = 0) {
    const std::uint64_t size = size_of(type);
    switch (dwarf_tag(&type)) {
      case DW_TAG_base_type:
        return base(type, name, source, offset);
      case DW_TAG_enumeration_type:
        return enumeration(type, name, source, offset);
      case DW_TAG_pointer_type: {
        const auto target = type_of(&type);
        const bool is_text = target && dwarf_tag(&const_cast<Dwarf_Die&>(*target)) == DW_TAG_base_type &&
                             name_of(&const_cast<Dwarf_Die&>(*target)) == "char";
        // A text behind a pointer in memory would be two steps away.
        if (is_text && !source.by_address && offset % 8 == 0 && offset / 8 < source.words.size())
          return put(name, "s", ValueHow::kText, source.words[offset / 8], 0, 0);
        return scalar(name, "x", source, 8, offset);
      }
      case DW_TAG_reference_type:
      case DW_TAG_rvalue_reference_type: {
        const auto target = type_of(&type);
        if (!target || source.by_address || offset / 8 >= source.words.size() || is_opaque(*target))
          return scalar(name, "x", source, 8, offset);
        return object(*target, name, {true, {source.words[offset / 8]}}, 0, depth);
      }
      case DW_TAG_structure_type:
      case DW_TAG_class_type:
        return structure(type, name, source, offset, depth);
      case DW_TAG_ptr_to_member_type:
      case DW_TAG_unspecified_type:  // nullptr_t
        return size <= 8 ? scalar(name, "x", source, 8, offset) : describe(name, "-");
      default:
        return describe(name, "-");
    }
  }

  static bool is_opaque(Dwarf_Die type) {
    const int tag = dwarf_tag(&type);
    return (is_class(type) && dwarf_hasattr(&type, DW_AT_declaration) != 0) || tag == DW_TAG_array_type ||
           tag == DW_TAG_subroutine_type || tag == DW_TAG_union_type;
  }

  void base(Dwarf_Die type, const std::string& name, const Source& source, std::uint64_t offset) {
    const std::uint64_t size = size_of(type);
    if (size != 1 && size != 2 && size != 4 && size != 8) return describe(name, "-");
    const std::string digits = std::to_string(size);
    switch (number_of(&type, DW_AT_encoding).value_or(0)) {
      case DW_ATE_boolean:
        return scalar(name, "b", source, size, offset);
      case DW_ATE_signed_char:
      case DW_ATE_unsigned_char:
        return name_of(&type) == "char"                                 ? scalar(name, "c", source, size, offset)
               : number_of(&type, DW_AT_encoding) == DW_ATE_signed_char ? scalar(name, "i1", source, size, offset)
                                                                        : scalar(name, "u1", source, size, offset);
      case DW_ATE_signed:
        return scalar(name, "i" + digits, source, size, offset);
      case DW_ATE_unsigned:
      case DW_ATE_UTF:
        return scalar(name, "u" + digits, source, size, offset);
      case DW_ATE_float:
        return size >= 4 ? scalar(name, "f" + digits, source, size, offset) : describe(name, "-");
      default:
        return describe(name, "-");
    }
  }

  void structure(Dwarf_Die type, const std::string& name, const Source& source, std::uint64_t offset, int depth) {
    if (is_instance(type, "basic_string", "char") && size_of(type) == 32 && source.by_address)
      return put(name, "s", ValueHow::kSizedText, source.words[0], 0, offset);
    if (is_instance(type, "basic_string_view", "char") && size_of(type) == 16) {
      if (source.by_address) return put(name, "s", ValueHow::kViewMemory, source.words[0], 0, offset);
      if (offset == 0 && source.words.size() == 2)
        return put(name, "s", ValueHow::kViewText, source.words[0], source.words[1], 0);
    }
    if (is_instance(type, "vector", "") && size_of(type) == 24 && source.by_address)
      if (const std::uint64_t each = element_size(type); each != 0)
        return put(name, "v" + std::to_string(each), ValueHow::kMemory, source.words[0], 16, offset);
    const auto members = members_of(type);
    if (!members || members->empty() || members->size() > kMostMembers || depth == kDeepestMember)
      return source.by_address ? put(name, "x", ValueHow::kRegister, source.words[0], 8, 0) : describe(name, "-");
    for (const Member& m : *members)
      object(m.type,
             m.name.empty() ? name
             : name.empty() ? plain(m.name)
                            : name + "." + plain(m.name),
             source, offset + m.offset, depth + 1);
  }

  /// Bytes of an element of std::vector<T>, by its first template parameter; 0: not known, or of bits.
  static std::uint64_t element_size(Dwarf_Die type) {
    Dwarf_Die child;
    if (dwarf_child(&type, &child) != 0) return 0;
    do {
      if (dwarf_tag(&child) != DW_TAG_template_type_parameter) continue;
      auto element = type_of(&child);
      if (!element || name_of(&*element) == "bool") return 0;
      return size_of(*element);
    } while (dwarf_siblingof(&child, &child) == 0);
    return 0;
  }
};

/// What DWARF says of where an argument is at its function's first instruction.
enum class Told : std::uint8_t {
  kPlace,      ///< there
  kFrame,      ///< in the frame that is to come, all along: code that is not optimised
  kElsewhere,  ///< somewhere later
  kGone,
};

struct Location {
  Told told = Told::kElsewhere;
  Source source{};
};

/// A place in the frame, `offset` bytes from its base.
Location in_frame(Dwarf_Die* function, Dwarf_Addr entry, std::int64_t offset) {
  Dwarf_Attribute at;
  Dwarf_Op* base = nullptr;
  std::size_t count = 0;
  if (dwarf_attr_integrate(function, DW_AT_frame_base, &at) == nullptr ||
      dwarf_getlocation_addr(&at, entry, &base, &count, 1) != 1 || count != 1)
    return {Told::kFrame};
  constexpr Dwarf_Word kReturnAddress = 8;
  switch (base[0].atom) {
    case DW_OP_call_frame_cfa:
      break;
    case DW_OP_breg7:  // rsp and so many bytes: DWARF 2
      offset += static_cast<std::int64_t>(base[0].number - kReturnAddress);
      break;
    case DW_OP_reg6:  // rbp, as it will be when it has been set up
      offset -= 2 * static_cast<std::int64_t>(kReturnAddress);
      break;
    default:
      return {Told::kFrame};
  }
  const auto place = place_of_stack(offset);
  return place ? Location{Told::kPlace, {false, {*place}}} : Location{Told::kFrame};
}

Location location_of(Dwarf_Die* parameter, Dwarf_Die* function, Dwarf_Addr entry) {
  Dwarf_Attribute at;
  Dwarf_Op* ops = nullptr;
  std::size_t count = 0;
  if (dwarf_attr(parameter, DW_AT_location, &at) == nullptr) return {Told::kGone};
  if (dwarf_getlocation_addr(&at, entry, &ops, &count, 1) != 1 || count == 0) return {};
  const auto atom = ops[0].atom;
  // gcc has taken it away from this copy of the function: debuggers look for what callers had in mind.
  if (atom == DW_OP_GNU_parameter_ref) return {Told::kGone};
  if (atom == DW_OP_fbreg)
    return count == 1 ? in_frame(function, entry, static_cast<std::int64_t>(ops[0].number)) : Location{Told::kFrame};
  if (count == 1 && atom >= DW_OP_breg0 && atom <= DW_OP_breg31 && ops[0].number == 0) {
    const auto place = place_of_register(atom - DW_OP_breg0);
    return place ? Location{Told::kPlace, {true, {*place}}} : Location{};
  }
  Location found{Told::kPlace, {}};
  std::uint64_t bytes = 0;
  bool is_there = false;
  for (std::size_t i = 0; i < count; ++i) {
    if (ops[i].atom == DW_OP_piece) {
      for (std::uint64_t end = bytes + std::min<std::uint64_t>(ops[i].number, 32); bytes < end; ++bytes)
        if (!is_there && bytes < 32) found.source.missing |= 1U << bytes;
      is_there = false;
      continue;
    }
    const std::uint64_t number = ops[i].atom == DW_OP_regx                                 ? ops[i].number
                                 : ops[i].atom >= DW_OP_reg0 && ops[i].atom <= DW_OP_reg31 ? ops[i].atom - DW_OP_reg0
                                                                                           : kNoPlace;
    const auto place = place_of_register(number);
    if (!place && count == 1) return {};
    is_there = place.has_value();
    if (place) found.source.words.push_back(*place);
  }
  return found.source.words.empty() ? Location{} : found;
}

/// What compilers have done to a function of which they know every call: arguments are gone, moved, passed by value.
struct Changes {
  Compiler compiler;
  bool arguments = false;
  bool foreign = false;  ///< its convention is another one; what DWARF tells of registers holds
  bool result = false;   ///< maybe nothing is returned, and frames say nothing of the convention
};

bool has_frame_in_rbp(Dwarf_Die* function, Dwarf_Addr entry) {
  Dwarf_Attribute at;
  Dwarf_Op* base = nullptr;
  std::size_t count = 0;
  return dwarf_attr(function, DW_AT_frame_base, &at) != nullptr &&
         dwarf_getlocation_addr(&at, entry, &base, &count, 1) == 1 && count == 1 && base[0].atom == DW_OP_reg6;
}

/// `is_local`: the module's symbol table says so, which knows of what a linker has made local (LTO).
Changes changes_of(Dwarf_Die* function, Dwarf_Addr entry, const std::string& name, bool is_local) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  Changes found{Compiler::of(function), has(".part.") || has(".constprop.") || has(".isra."),
                has(".isra.") || has(".part.")};
  // regcall, vectorcall, ms_abi and their like, as clang tells them; and what has been changed (DW_CC_nocall).
  if (const auto convention = number_of(function, DW_AT_calling_convention);
      convention && *convention != DW_CC_normal && *convention != DW_CC_program)
    found.foreign = found.result = true;
  Dwarf_Attribute at;
  bool external = false;
  if (dwarf_attr_integrate(function, DW_AT_external, &at) != nullptr) dwarf_formflag(&at, &external);
  if (external && !is_local) return found;
  found.arguments = true;
  // clang gives what it has changed no other name. What is not optimised has its frame's base in rbp.
  if (found.compiler.by_clang) found.result = found.result || !has_frame_in_rbp(function, entry);
  return found;
}

bool is_among(const std::vector<std::uint8_t>& some, const std::vector<std::uint8_t>& all) {
  return std::all_of(some.begin(), some.end(),
                     [&](std::uint8_t word) { return std::find(all.begin(), all.end(), word) != all.end(); });
}

bool is_of_arguments(const Source& source) {
  return std::all_of(source.words.begin(), source.words.end(), is_argument_register);
}

struct Parameter {
  Dwarf_Die die;
  Dwarf_Die type;
  std::string name;
  std::uint32_t number;          ///< 0: hidden, such as `this`
  std::optional<Source> source;  ///< by the convention
  Location told;
};

/// A definition in the old style of C: what is shorter than an int or a double comes as one.
bool is_widened(Dwarf_Die function, Dwarf_Die type) {
  Dwarf_Attribute at;
  Dwarf_Die unit;
  if (dwarf_tag(&type) != DW_TAG_base_type || number_of(&type, DW_AT_encoding).value_or(0) != DW_ATE_float ||
      size_of(type) >= 8 || dwarf_diecu(&function, &unit, nullptr, nullptr) == nullptr)
    return false;
  switch (dwarf_srclang(&unit)) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case 0x2a:
    case 0x2b:
      return false;
    default:
      return dwarf_attr_integrate(&function, DW_AT_prototyped, &at) == nullptr;
  }
}

/// How many parameters a C++ function has by its symbol, `scope::f(int, std::map<int, int>) const`; none: it is no
/// such.
std::optional<std::size_t> count_by_name(std::string_view name) {
  if (const auto clone = name.find(" [clone"); clone != std::string_view::npos) name = name.substr(0, clone);
  const auto end = name.rfind(')');
  if (end == std::string_view::npos || name.substr(end).find("::") != std::string_view::npos) return std::nullopt;
  std::size_t commas = 0;
  int depth = 0;
  for (std::size_t i = end; i-- > 0;) {
    const char c = name[i];
    if (c == ')' || c == '>' || c == ']' || c == '}') ++depth;
    if (c == ',' && depth == 0) ++commas;
    if (c == '(' && depth == 0) {
      if (name.substr(0, i).ends_with("operator")) return std::nullopt;
      const std::string_view all = name.substr(i + 1, end - i - 1);
      return all.empty() ? 0 : commas + (all.ends_with("...") ? 0 : 1);
    }
    if (c == '(' || c == '<' || c == '[' || c == '{') --depth;
  }
  return std::nullopt;
}

std::vector<Parameter> parameters_of(Dwarf_Die function, Dwarf_Addr entry, HiddenResult result,
                                     const Changes& changes) {
  std::vector<Parameter> found;
  Convention convention(result, changes.compiler);
  Dwarf_Die child;
  if (dwarf_child(&function, &child) != 0) return found;
  Dwarf_Attribute at;
  std::uint32_t number = 0;
  do {
    if (dwarf_tag(&child) != DW_TAG_formal_parameter) continue;
    bool artificial = false;
    if (dwarf_attr_integrate(&child, DW_AT_artificial, &at) != nullptr) dwarf_formflag(&at, &artificial);
    if (!artificial) ++number;
    const auto type = type_of(&child);
    if (!type) {
      convention.lose();
      continue;
    }
    std::string name = plain(name_of(&child));
    if (name.empty()) name = artificial ? "hidden" : "#" + std::to_string(number);
    Location told = location_of(&child, &function, entry);
    // A constructor's copies do not all have these.
    if (told.told == Told::kGone && (name == "__in_chrg" || name == "__vtt_parm")) convention.lose();
    auto source = convention.next(*type);
    // clang's lists begin behind its sled, which changes no register. Without a sled there may be a place of later.
    constexpr Dwarf_Addr kClangSled = 11;
    if (told.told == Told::kElsewhere && changes.compiler.by_clang)
      if (Location behind = location_of(&child, &function, entry + kClangSled);
          behind.told == Told::kPlace &&
          (changes.arguments ? is_of_arguments(behind.source) : source && is_among(behind.source.words, source->words)))
        told = std::move(behind);
    if (is_widened(function, *type)) source = std::nullopt, told = {Told::kFrame};
    found.push_back({child, *type, std::move(name), artificial ? 0 : number, std::move(source), std::move(told)});
  } while (dwarf_siblingof(&child, &child) == 0);
  return found;
}

/// DWARF has an argument where the convention has none. gcc does not tell of another convention (ms_abi) in words.
bool is_contradicted(const Parameter& p) {
  if (p.told.told != Told::kPlace || !p.source) return false;
  // To the end of a class's register one may add what is not in it.
  return p.told.source.by_address != p.source->by_address || !is_among(p.told.source.words, p.source->words);
}

bool is_on_stack(const Source& source) {
  return std::any_of(source.words.begin(), source.words.end(), [](std::uint8_t word) {
    return word > KARST_SAVED_WORDS_BEFORE_STACK && word < kFirstVectorPlace;
  });
}

/// Code by clang that is not optimised keeps all arguments of registers in its frame, which rbp tells.
bool is_plainly_kept(Dwarf_Die function, Dwarf_Addr entry, const std::vector<Parameter>& parameters) {
  if (!has_frame_in_rbp(&function, entry)) return false;
  const auto in_frame = [](const Parameter& p) { return p.told.told == Told::kFrame; };
  return std::any_of(parameters.begin(), parameters.end(), in_frame) &&
         std::all_of(parameters.begin(), parameters.end(), [&](const Parameter& p) {
           return in_frame(p) || (p.told.told == Told::kPlace && is_on_stack(p.told.source));
         });
}

/// Where an argument is as its call begins; none: that is not certain.
std::optional<Source> source_of(const Parameter& p, const Changes& changes, bool foreign) {
  const Told told = p.told.told;
  if (foreign) {
    const bool certain =
        told == Told::kPlace && !is_on_stack(p.told.source) && (!is_class(p.type) || p.told.source.by_address);
    return certain ? std::optional(p.told.source) : std::nullopt;
  }
  if (told == Told::kPlace && (!is_class(p.type) || p.told.source.by_address)) return p.told.source;
  // Of classes in registers DWARF has each member's place; the convention has the whole, if it is kept.
  if (told == Told::kPlace) {
    if (!p.source || !is_among(p.told.source.words, p.source->words)) return std::nullopt;
    auto source = p.source;
    source->missing = p.told.source.missing;
    return source;
  }
  // gcc has no place for a class whose members it took apart. What others call is passed all of it; clang's callers in
  // the same file leave out what is not used.
  if (told == Told::kGone && is_class(p.type) && changes.compiler.by_gcc && !changes.arguments) return p.source;
  if (told == Told::kGone || (told == Told::kElsewhere && changes.arguments) ||
      (told == Told::kFrame && changes.result))
    return std::nullopt;
  return p.source;
}

std::string arguments_of(Dwarf_Die function, Dwarf_Addr entry, HiddenResult result, Changes& changes,
                         const ValueWish& wish, FunctionValues& out) {
  Builder builder{out, &out.arguments, {}};
  const std::vector<Parameter> parameters = parameters_of(function, entry, result, changes);
  // With -gstrict-dwarf clang leaves out parameters that it has no words for.
  const auto named =
      std::count_if(parameters.begin(), parameters.end(), [](const Parameter& p) { return p.number != 0; });
  const auto by_name = count_by_name(wish.name);
  const bool lacks_some = by_name && *by_name > static_cast<std::size_t>(named);
  if (lacks_some || (!changes.arguments && std::any_of(parameters.begin(), parameters.end(), is_contradicted)))
    changes.foreign = changes.result = true;
  const bool may_lack_stores = changes.compiler.by_clang && !is_plainly_kept(function, entry, parameters);
  for (const Parameter& p : parameters) {
    if (!wish.only.empty() && std::find(wish.only.begin(), wish.only.end(), p.number) == wish.only.end()) continue;
    auto source = source_of(p, changes, changes.foreign);
    // clang's callers do not write what they know that nobody reads.
    if (source && is_class(p.type) && !source->by_address && is_on_stack(*source) && may_lack_stores)
      source->missing = kAllMissing;
    if (source)
      builder.object(p.type, p.name, *source, 0);
    else
      builder.describe(p.name, p.told.told == Told::kGone || p.told.told == Told::kElsewhere ? "?" : "-");
  }
  return builder.text;
}

std::string returned_by(const std::optional<Dwarf_Die>& type, const Compiler& compiler, FunctionValues& out) {
  if (!type) return {};
  Builder builder{out, &out.returned, {}};
  const Source source = place_of_result(*type, compiler);
  if (source.words.empty()) return ":-";
  builder.object(*type, "", source, 0);
  return builder.text;
}

/// Where the part of the function begins that has this address: a function with a cold part has two, and no lowest pc.
std::optional<Dwarf_Addr> entry_of(Dwarf_Die* function, Dwarf_Addr address) {
  Dwarf_Addr base = 0;
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  std::ptrdiff_t offset = 0;
  while ((offset = dwarf_ranges(function, offset, &base, &begin, &end)) > 0)
    if (begin <= address && address < end) return begin;
  return std::nullopt;
}

FunctionValues values_of_function(Dwarf_Die function, const ValueWish& wish, bool is_local) {
  FunctionValues out;
  const auto entry = entry_of(&function, wish.address);
  if (!is_c_or_cpp(&function) || !entry) return out;
  const std::optional<Dwarf_Die> result = type_of(&function);
  Changes changes = changes_of(&function, *entry, wish.name, is_local);
  const HiddenResult hidden = hidden_result(result, changes.compiler);
  const std::string arguments = arguments_of(function, *entry, hidden, changes, wish, out);
  if (!wish.arguments) out.arguments.clear();
  const std::string returned = !wish.returned             ? ""
                               : changes.result && result ? ":-"
                                                          : returned_by(result, changes.compiler, out);
  out.description = (wish.arguments ? arguments : "") + "|" + returned;
  if (out.description == "|") out.description.clear();
  return out;
}

/// Functions of the symbol table, and whether all names of the code there are local.
std::vector<std::pair<binary::AddressRange, bool>> local_functions(const binary::ElfModule& elf) {
  std::vector<std::pair<binary::AddressRange, bool>> found;
  constexpr int kLocal = 2;
  for (const binary::ElfFunction& f : elf.functions()) {
    if (!found.empty() && found.back().first.begin == f.range.begin)
      found.back().second = found.back().second && f.rank == kLocal;
    else
      found.emplace_back(f.range, f.rank == kLocal);
  }
  return found;
}

bool is_local(const std::vector<std::pair<binary::AddressRange, bool>>& functions, std::uint64_t address) {
  const auto after = std::upper_bound(functions.begin(), functions.end(), address,
                                      [](std::uint64_t at, const auto& f) { return at < f.first.begin; });
  return after != functions.begin() && std::prev(after)->second && address < std::prev(after)->first.end;
}

void write(sandbox::AnswerWriter& out, const std::vector<ValueOp>& ops) {
  out.number(ops.size());
  for (const ValueOp& op : ops) {
    out.number(op.how | std::uint64_t{op.place} << 8 | std::uint64_t{op.size} << 16 |
               std::uint64_t{static_cast<std::uint32_t>(op.offset)} << 32);
  }
}

bool read(sandbox::AnswerReader& in, std::vector<ValueOp>& ops) {
  const std::uint64_t count = in.count(sizeof(std::uint64_t));
  if (count > kMostValues) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t op = in.number();
    ops.push_back({static_cast<std::uint8_t>(op), static_cast<std::uint8_t>(op >> 8),
                   static_cast<std::uint16_t>(op >> 16), static_cast<std::int32_t>(op >> 32)});
  }
  return true;
}

}  // namespace

Result<std::vector<FunctionValues>> values_of(const binary::ModuleFile& module, const std::vector<ValueWish>& wishes,
                                              const ResolveOptions& options) {
  sandbox::SandboxOptions sandbox{.as = options.as};
  if (options.debug.servers != nullptr) sandbox.keep = options.debug.servers->descriptors();
  const auto answer = sandbox::in_sandbox(sandbox, [&](sandbox::AnswerWriter& out) {
    binary::DebugSearch search = options.debug;
    if (search.servers != nullptr) search.servers->stay_offline();
    auto elf = binary::ElfModule::open(module, search);
    if (!elf) return out.text(elf.error().message);
    ImageBuilder texts;
    const DwarfFunctions functions(*elf, texts);
    if (!functions.present())
      return out.text("it has no debug information, which says what arguments functions have: compile it with -g");
    out.text(std::string_view());
    const auto local = local_functions(*elf);
    for (const ValueWish& wish : wishes) {
      const auto [first, end] = functions.at(wish.address);
      const FunctionValues found =
          first != end ? values_of_function(functions.functions()[first].die, wish, is_local(local, wish.address))
                       : FunctionValues{};
      write(out, found.arguments);
      write(out, found.returned);
      out.text(found.description);
    }
  });
  if (!answer) return Error{answer.error().message};
  sandbox::AnswerReader in(*answer);
  if (const std::string_view error = in.text(); !error.empty()) return Error{std::string(error)};
  std::vector<FunctionValues> found(wishes.size());
  for (FunctionValues& values : found) {
    if (!read(in, values.arguments) || !read(in, values.returned)) return Error{"its reader gave no sound answer"};
    values.description = std::string(in.text());
    if (values.arguments.size() + values.returned.size() > kMostValues) return Error{"its reader gave no sound answer"};
  }
  if (!in.is_whole()) return Error{"its reader gave no sound answer"};
  return found;
}

}  // namespace karst::symbols
