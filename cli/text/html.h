// SPDX-License-Identifier: MIT
// Pages that a command writes: one file each, which loads nothing and may run no script but the page's own.
#pragma once
#include <string>
#include <string_view>

#include "base/output.h"

namespace karst::cli {

/// Printable text as HTML and SVG take it, in text and in attributes.
std::string markup(std::string_view text);

/// A script that is part of the page, and what a browser must find it to be: the base64 of its SHA-256, which the
/// page's policy names.
struct PageScript {
  std::string_view text, sha256;
};

/// From the doctype to the open body, which has a heading with `title`. `style` is CSS beside what all pages have; dark
/// where the reader's system is. `script`: null for none; end_page() writes it.
void begin_page(std::string_view title, std::string_view style, const PageScript* script, Output& output);
void end_page(const PageScript* script, Output& output);

}  // namespace karst::cli
