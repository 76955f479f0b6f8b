// SPDX-License-Identifier: MIT
// Function names that fit a column of a table.
#pragma once
#include <string>
#include <string_view>

#include "base/plain_name.h"

namespace karst::cli {

/// At most `width` characters of a plain name: scopes go first, the last part stays.
std::string fit_name(std::string_view name, std::size_t width);

}  // namespace karst::cli
