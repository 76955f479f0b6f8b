#include "toolchain/asm_filter.h"

#include "format/sled_note.h"

namespace karst::toolchain {
namespace {

using format::SledKind;

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

bool is_directive(std::string_view line, std::string_view name) {
  return line.starts_with(name) &&
         (line.size() == name.size() || line[name.size()] == ' ' || line[name.size()] == '\t');
}

/// Which function the assembler is in, and whether it has an entry sled. gcc puts exit sleds also into the thunks that
/// adjust `this` on the way to a virtual function, which have no entry: their exits would close calls of others.
class FunctionTracker {
 public:
  void see(std::string_view line) {
    if (line == "#APP") in_inline_assembly_ = true;
    if (line == "#NO_APP") in_inline_assembly_ = false;
    if (in_inline_assembly_ || !is_directive(line, ".type")) return;
    const std::string_view operands = trim(line.substr(5));
    const auto comma = operands.find(',');
    if (comma == std::string_view::npos || trim(operands.substr(comma + 1)) != "@function") return;
    const std::string_view name = trim(operands.substr(0, comma));
    if (name.ends_with(kCold) && name.substr(0, name.size() - kCold.size()) == name_) return;  // its second part
    name_ = name;
    has_entry_ = false;
  }
  void enter() { has_entry_ = true; }
  bool has_entry() const { return has_entry_; }

 private:
  static constexpr std::string_view kCold = ".cold";
  std::string_view name_;
  bool has_entry_ = false;
  bool in_inline_assembly_ = false;
};

class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  bool done() const { return rest_.empty(); }
  /// The next line with its line end.
  std::string_view next() {
    const std::string_view line = peek();
    rest_.remove_prefix(line.size());
    return line;
  }
  std::string_view peek() const {
    const auto end = rest_.find('\n');
    return end == std::string_view::npos ? rest_ : rest_.substr(0, end + 1);
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

std::string_view bare(std::string_view line) {
  if (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  return trim(line);
}

/// After an exit's record comes the instruction that leaves: a return in its forms, or else a jump to another function.
SledKind exit_kind(Lines lines) {
  while (!lines.done()) {
    const std::string_view line = bare(lines.next());
    if (line.empty() || line.front() == '.' || line.front() == '#' || line.back() == ':') continue;
    const bool returns = line.starts_with("ret") || line.starts_with("rep ret") || line.starts_with("rep; ret") ||
                         line.find("__x86_return_thunk") != std::string_view::npos;
    return returns ? SledKind::kReturn : SledKind::kTailCall;
  }
  return SledKind::kReturn;
}

/// `?` puts the record into the group of the section that the sled lies in, if any: the assembler alone knows which
/// that is, whatever inline assembly and macros did.
void append_record(std::string& out, SledKind kind) {
  out += "\t.pushsection\tkarst_sleds,\"aR?\",@progbits\n\t.balign\t4\n\t.long\t1b - ., ";
  out += static_cast<char>('0' + static_cast<int>(kind));
  out += "\n\t.popsection\n";
}

bool starts_record(std::string_view line, std::string_view table) {
  return line.starts_with(".section") && trim(line.substr(8)).starts_with(table);
}

/// How many lines from `line` on make up gcc's call of __fentry__: one, several in the large code model, 0 if none.
int entry_call_lines(std::string_view line, Lines lines) {
  constexpr int kMost = 6;
  if (!line.starts_with("1:") || line.size() == 2) return 0;
  if (line.find("call") != std::string_view::npos) return line.find("__fentry__") != std::string_view::npos ? 1 : 0;
  bool found = false;
  for (int count = 1; count <= kMost; ++count) {
    found = found || line.find("__fentry__") != std::string_view::npos;
    if (found && starts_record(bare(lines.peek()), "__mcount_loc")) return count;
    if (lines.done()) return 0;
    line = bare(lines.next());
  }
  return 0;
}

}  // namespace

std::string filter_assembly(std::string_view source) {
  std::string out;
  out.reserve(source.size() + source.size() / 8);
  FunctionTracker function;
  Lines lines(source);
  while (!lines.done()) {
    const std::string_view raw = lines.next();
    const std::string_view line = bare(raw);
    if (int count = entry_call_lines(line, lines); count != 0) {
      while (--count != 0) lines.next();
      out += "1:\t.byte\t0x0f, 0x1f, 0x44, 0x00, 0x00\n";
      continue;
    }
    const bool entry = starts_record(line, "__mcount_loc");
    if (entry || starts_record(line, "__return_loc")) {
      lines.next();  // .quad 1b
      lines.next();  // .previous
      if (entry) function.enter();
      if (function.has_entry()) append_record(out, entry ? SledKind::kEntry : exit_kind(lines));
      continue;
    }
    function.see(line);
    out += raw;
  }
  return out;
}

}  // namespace karst::toolchain
