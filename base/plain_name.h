// SPDX-License-Identifier: MIT
// Function names for narrow places, as the viewer's page shortens them (page/src/model/names.ts).
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace karst {

/// The name without parameters, template arguments and clone suffixes, scopes included:
/// `leveldb::(anonymous namespace)::f<int>(char)` is `leveldb::f`. Never empty.
std::string plain_name(std::string_view name);

/// The parts of a plain name, which view `name`: scopes, then the function's own. At least one.
std::vector<std::string_view> plain_parts(std::string_view name);
/// Those from `from` on, `::` between them.
std::string join_parts(const std::vector<std::string_view>& parts, std::size_t from);

/// What a function is that compilers make of a C++20 coroutine beside the one that begins it.
enum class CoroutinePart {
  kNone,     ///< none of them
  kResumes,  ///< `f() [clone .actor]` of gcc, `f() [clone .resume]` of clang: goes on with it
  kEnds,     ///< `f() [clone .destroy]`, and of clang `f() [clone .cleanup]`
};
/// By the function's name. The first argument of each of them is where the coroutine's frame lies.
CoroutinePart coroutine_part(std::string_view name);

}  // namespace karst
