#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace karst::cli {

std::size_t terminal_width() {
  if (isatty(STDOUT_FILENO) != 1) return 0;
  if (const char* const columns = std::getenv("COLUMNS"); columns != nullptr) {
    const std::string_view text = columns;
    std::size_t width = 0;
    std::from_chars(text.data(), text.data() + text.size(), width);
    if (width >= 20) return width;
  }
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20 ? size.ws_col : 80;
}

}  // namespace karst::cli
