// Function names for narrow places, as the viewer's page shortens them (viewer/src/model/names.ts).
#pragma once
#include <string>
#include <string_view>

namespace karst::cli {

/// The name without parameters, template arguments and clone suffixes, scopes included:
/// `leveldb::(anonymous namespace)::f<int>(char)` is `leveldb::f`. Never empty.
std::string plain_name(std::string_view name);

/// At most `width` characters of a plain name: scopes go first, the last part stays.
std::string fit_name(std::string_view name, std::size_t width);

}  // namespace karst::cli
