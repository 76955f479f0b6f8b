// Fields of CSV (RFC 4180), with a line feed alone behind each line.
#pragma once
#include <string>
#include <string_view>

#include "cli/text.h"

namespace karst::cli {

/// `text` in quotes; control characters are escaped as in text for people.
inline std::string csv_field(std::string_view text) {
  std::string field = "\"";
  for (const char c : printable(text)) field.append(c == '"' ? 2 : 1, c);
  return field + "\"";
}

}  // namespace karst::cli
