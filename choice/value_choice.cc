// SPDX-License-Identifier: MIT
#include "choice/value_choice.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <utility>

#include "base/plain_name.h"
#include "format/values.h"

namespace karst::choice {

namespace {

/// `REGEX[:N,...]`. A number that is too great is one that no function has.
std::vector<std::uint32_t> take_numbers(std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon + 1 == text.size() ||
      text.find_first_not_of("0123456789,", colon + 1) != std::string::npos || text[colon + 1] == ',')
    return {};
  std::vector<std::uint32_t> numbers;
  for (std::size_t at = colon + 1; at < text.size();) {
    std::uint32_t number = ~std::uint32_t{0};
    const auto [end, error] = std::from_chars(&text[at], text.data() + text.size(), number);
    if (end != &text[at]) numbers.push_back(number);
    at = static_cast<std::size_t>(end - text.data()) + 1;
  }
  text.resize(colon);
  return numbers;
}

}  // namespace

ValueChoice::ValueChoice(const std::vector<std::string>& arguments, const std::vector<std::string>& returned) {
  for (const bool args : {true, false})
    for (std::string text : args ? arguments : returned) {
      auto only = args ? take_numbers(text) : std::vector<std::uint32_t>();
      (args ? arguments_ : returned_).push_back({FunctionFilter({text}), std::move(only)});
    }
}

namespace {
/// Where a coroutine's frame lies: by the calling convention the first argument, whatever debug information says.
symbols::FunctionValues frame_of_coroutine() {
  constexpr auto kFirst = static_cast<std::uint8_t>(offsetof(format::SavedRegisters, rdi) / sizeof(std::uint64_t));
  const format::ValueOp address{static_cast<std::uint8_t>(format::ValueHow::kRegister), kFirst, sizeof(std::uint64_t),
                                0};
  return {{address}, {}, std::string(format::kCoroutineFrame) + ":x|"};
}
}  // namespace

std::string ValuesOfModule::problem_of_late(const std::string& module) const {
  if (late == 0) return {};
  return "no arguments of " + std::to_string(late) + (late == 1 ? " function of " : " functions of ") + module +
         " are noted: where the call can be recorded, registers have changed";
}

std::optional<symbols::ValueWish> ValueChoice::wish_of(const std::string& name) const {
  symbols::ValueWish wish;
  bool all = false;
  for (const Rule& rule : arguments_) {
    if (!rule.functions.keeps(name)) continue;
    wish.arguments = true;
    all = all || rule.only.empty();
    wish.only.insert(wish.only.end(), rule.only.begin(), rule.only.end());
  }
  if (all) wish.only.clear();
  wish.returned =
      std::any_of(returned_.begin(), returned_.end(), [&](const Rule& rule) { return rule.functions.keeps(name); });
  return wish.arguments || wish.returned ? std::optional(wish) : std::nullopt;
}

ValuesOfModule ValueChoice::of_module(const reader::Module& module,
                                      const std::vector<const reader::Function*>& functions,
                                      const symbols::ResolveOptions& resolve) const {
  ValuesOfModule values;
  std::vector<symbols::ValueWish> wishes;
  std::vector<const reader::Function*> wanted;
  for (const reader::Function* f : functions) {
    if (f->tail_exit || f->note) continue;
    if (coroutines_ && coroutine_part(f->name) != CoroutinePart::kNone) {
      values.functions.push_back({f, frame_of_coroutine()});
      continue;
    }
    auto wish = wish_of(f->name);
    if (!wish) continue;
    ++values.meant;
    if (f->late && wish->arguments) {
      ++values.late;
      wish->arguments = false;
      if (!wish->returned) continue;
    }
    wish->address = f->address - module.bias;
    wish->name = f->name;
    wishes.push_back(std::move(*wish));
    wanted.push_back(f);
  }
  if (wishes.empty()) return values;
  const std::size_t coroutines = values.functions.size();
  auto found = symbols::values_of(binary::ModuleFile(module), wishes, resolve);
  if (!found) {
    values.problem = found.error().message;
    return values;
  }
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!(*found)[i].description.empty()) values.functions.push_back({wanted[i], std::move((*found)[i])});
  if (values.functions.size() == coroutines)
    values.problem = "they have no debug information of C or C++: compile them with -g";
  return values;
}

}  // namespace karst::choice
