// Function names for narrow places, as the viewer's page shortens them (viewer/src/model/names.ts).
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

}  // namespace karst
