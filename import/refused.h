// SPDX-License-Identifier: MIT
// Files that are known and cannot be imported: what the user can do instead.
#pragma once
#include <optional>
#include <string_view>

namespace karst::importing {

/// Why a file that begins so is not imported, and what helps. None: it is no file of these.
std::optional<std::string_view> why_refused(std::string_view bytes);

}  // namespace karst::importing
