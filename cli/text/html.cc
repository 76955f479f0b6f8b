// SPDX-License-Identifier: MIT
#include "cli/text/html.h"

#include <fmt/format.h>

#include "cli/text/text.h"

namespace karst::cli {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; }
body { margin: 1rem; font: 14px/1.4 system-ui, sans-serif; background: #fff; color: #1b1b1b; }
h1 { font-size: 1.05rem; margin: 0 0 .6rem; overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) { body { background: #16181c; color: #e4e4e4; } }
)";

}  // namespace

std::string markup(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

void begin_page(std::string_view title, std::string_view style, const PageScript* script, Output& output) {
  const std::string scripts = script == nullptr ? "" : fmt::format("; script-src 'sha256-{}'", script->sha256);
  output.append(
      fmt::format("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; "
                  "form-action 'none'; style-src 'unsafe-inline'{}\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width\">\n"
                  "<title>{}</title>\n<style>{}{}</style></head><body><main>\n<h1>{}</h1>\n",
                  scripts, markup(title), kStyle, style, markup(title)));
}

void end_page(const PageScript* script, Output& output) {
  output.append("</main>\n");
  if (script != nullptr) output.append(fmt::format("<script>{}</script>\n", script->text));
  output.append("</body></html>\n");
}

}  // namespace karst::cli
