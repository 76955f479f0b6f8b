// SPDX-License-Identifier: MIT
// What switches stacks without a word to anybody: fibers of libraries, and of functions that programs have in
// themselves. Their calls are one lane each where hooks go by the stack pointer (stacks=1).
#pragma once
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace karst::patch {

/// Why a program is known to switch stacks: "is linked with libco.so"; empty: it is not. `libraries`: names of those
/// that it asks for. `find_name`: the first of these, each with zeros around it, that its tables of symbols' names
/// have; empty if they have none.
std::string stack_switcher(std::span<const std::string_view> libraries,
                           const std::function<std::string_view(std::initializer_list<std::string_view>)>& find_name);

}  // namespace karst::patch
