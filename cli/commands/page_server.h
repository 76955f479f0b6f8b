// SPDX-License-Identifier: MIT
// The page of `karst view`: its address, the browser, and Ctrl-C.
#pragma once
#include <memory>
#include <string>

#include "engine/server/source.h"

namespace karst::cli {

/// Ctrl-C and what else ends a page is left to serve_page() from here on. Before the first thread is made.
void hold_page_endings();
/// Whether one has come since.
bool is_page_ended();

/// Says the address, opens the browser, and serves until the page is closed; returns the exit status. `shown`: what is
/// behind the page's address. Requires hold_page_endings().
int serve_page(std::unique_ptr<engine::Source> source, const std::string& shown, bool keep, bool no_browser);

}  // namespace karst::cli
