// SPDX-License-Identifier: MIT
#include "toolchain/asm_filter.h"

#include "format/sled_note.h"
#include "toolchain/sibling_call.h"

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
  /// True if the line is the label at which the second part of the function begins.
  bool see(std::string_view line) {
    if (line == "#APP") in_inline_assembly_ = true;
    if (line == "#NO_APP") in_inline_assembly_ = false;
    if (in_inline_assembly_) return false;
    if (is_directive(line, ".type")) see_type(line);
    if (cold_name_.empty() || line.size() != cold_name_.size() + 1 || line.back() != ':' ||
        !line.starts_with(cold_name_))
      return false;
    cold_name_ = {};
    return has_entry_;
  }
  /// The line ends a function without an entry sled: its name. Else empty.
  std::string_view ends_untraced(std::string_view line) const {
    if (in_inline_assembly_ || has_entry_ || name_.empty() || !is_directive(line, ".size")) return {};
    const std::string_view operands = trim(line.substr(5));
    return operands.substr(0, operands.find(',')) == name_ ? name_ : std::string_view();
  }
  void enter() { has_entry_ = true; }
  bool has_entry() const { return has_entry_; }

 private:
  void see_type(std::string_view line) {
    const std::string_view operands = trim(line.substr(5));
    const auto comma = operands.find(',');
    if (comma == std::string_view::npos || trim(operands.substr(comma + 1)) != "@function") return;
    const std::string_view name = trim(operands.substr(0, comma));
    if (name.ends_with(kCold) && name.substr(0, name.size() - kCold.size()) == name_) {
      cold_name_ = name;
      return;
    }
    name_ = name;
    cold_name_ = {};
    has_entry_ = false;
  }

  static constexpr std::string_view kCold = ".cold";
  std::string_view name_;
  std::string_view cold_name_;  // of its second part, announced and not begun
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
/// `in_place`: what gcc said of that jump.
SledKind exit_kind(Lines lines, bool in_place) {
  while (!lines.done()) {
    const std::string_view line = bare(lines.next());
    if (line.empty() || line.front() == '.' || line.front() == '#' || line.back() == ':') continue;
    const bool returns = line.starts_with("ret") || line.starts_with("rep ret") || line.starts_with("rep; ret") ||
                         line.find("__x86_return_thunk") != std::string_view::npos;
    return returns ? SledKind::kReturn : in_place ? SledKind::kRegisterTailCall : SledKind::kTailCall;
  }
  return SledKind::kReturn;
}

/// `?` puts the record into the group of the section that the sled lies in, if any: the assembler alone knows which
/// that is, whatever inline assembly and macros did.
void append_record(std::string& out, const std::string& record) {
  out += "\t.pushsection\tkarst_sleds,\"aR?\",@progbits\n\t.balign\t2\n";
  out += record;
  out += "\t.popsection\n";
}

/// In a section that is not loaded, which karst reads in the file.
void append_untraced(std::string& out, std::string_view function) {
  out += "\t.pushsection\t" KARST_UNTRACED_SECTION ",\"R?\",@progbits\n\t.balign\t8\n\t.quad\t";
  out += function;
  out += "\n\t.popsection\n";
}

constexpr const char* kDistance = "\t.long\t1b - .\n";

/// Of any kind, anywhere.
void append_far(std::string& out, SledKind kind, bool always = false) {
  const unsigned word = static_cast<unsigned>(kind) | (always ? unsigned{KARST_SLED_ALWAYS} : 0U);
  append_record(out,
                "\t.short\t" + std::to_string(KARST_SLED_UNIT_FAR) + ", " + std::to_string(word) + "\n" + kDistance);
}

/// Of an exit that is near to its function's entry.
void append_near(std::string& out, SledKind kind, const std::string& entry) {
  constexpr int kNear = KARST_SLED_UNIT_NEAR;
  const int bits = format::is_tail_call(kind) ? KARST_SLED_UNIT_TAIL_CALL | kNear : kNear;
  std::string record = "\t.short\t";
  if (kind == SledKind::kRegisterTailCall) record += std::to_string(KARST_SLED_UNIT_REGISTERS) + ", ";
  append_record(out, record + "1b - " + entry + " + " + std::to_string(bits) + "\n");
}

/// Whether a function's exit is sure to lie in the section of its entry and less than 32 KiB behind it. The assembler
/// refuses distances that do not fit, so what is not sure is far.
class Nearness {
 public:
  /// The function's entry is here, by this label's number.
  void begin(std::uint64_t label) {
    label_ = label;
    bytes_ = 0;
    entry_section_ = section_;
    in_entry_section_ = true;
  }
  /// It goes on somewhere else, or by text that does not tell.
  void end() { bytes_ = kMost; }
  void see(std::string_view line) {
    if (line == "#APP") end();
    if (line.empty() || line.front() == '#') return;
    if (line.back() == ':' && line.find_first_of(" \t") == std::string_view::npos) return;
    if (line.front() != '.')
      bytes_ += kInstruction;
    else if (!is_section(line) && is_near())
      see_directive(line);
  }
  bool is_near() const { return bytes_ < kMost && in_entry_section_; }
  std::string entry() const { return ".Lkarst" + std::to_string(label_); }

 private:
  static constexpr std::uint64_t kMost = 0x7000;
  static constexpr std::uint64_t kInstruction = 15;  // bytes at most

  bool is_section(std::string_view line) {
    // Most lines are of debug information: .long, .uleb128, .loc.
    if (line.size() < 2 || std::string_view("tdbsp").find(line[1]) == std::string_view::npos) return false;
    for (const std::string_view name : {".text", ".data", ".bss"})
      if (is_directive(line, name)) {
        enter(line);
        return true;
      }
    if (is_directive(line, ".section")) {
      const std::string_view operands = line.substr(8);
      enter(trim(operands.substr(0, operands.find(','))));
      return true;
    }
    for (const std::string_view name : {".pushsection", ".popsection", ".previous", ".subsection"})
      if (is_directive(line, name)) end();
    return false;
  }
  void enter(std::string_view section) {
    section_ = section;
    in_entry_section_ = section == entry_section_;
  }
  /// Those of gcc's that take no room in code, or little.
  void see_directive(std::string_view line) {
    constexpr std::string_view kEmpty[] = {".loc",  ".type",  ".size", ".globl", ".weak",
                                           ".file", ".ident", ".set",  ".local", ".hidden"};
    if (line.starts_with(".cfi_")) return;
    for (const std::string_view name : kEmpty)
      if (is_directive(line, name)) return;
    constexpr std::size_t kBytesInLine = 16;
    if (is_directive(line, ".p2align") && is_usual(trim(line.substr(8))))
      bytes_ += kAlignment;
    else if (is_directive(line, ".byte") && line.size() < kBytesInLine * 4)
      bytes_ += kBytesInLine * 2;
    else
      end();
  }
  static constexpr std::uint64_t kAlignment = 64;
  static bool is_usual(std::string_view operands) {
    constexpr std::string_view kDigits = "0123456";  // up to kAlignment bytes
    return !operands.empty() && kDigits.find(operands[0]) != std::string_view::npos &&
           (operands.size() == 1 || operands[1] == ',');
  }

  std::uint64_t label_ = 0;
  std::uint64_t bytes_ = kMost;
  std::string_view section_ = ".text";
  std::string_view entry_section_;
  bool in_entry_section_ = false;
};

constexpr std::string_view kEntryTable = "__mcount_loc";
constexpr std::string_view kAlwaysTable = "karst_always_loc";

bool starts_record(std::string_view line, std::string_view table) {
  return line.starts_with(".section") && trim(line.substr(8)).starts_with(table);
}

/// gcc's record of an entry. In a section of another name (attribute fentry_section): KARST_ALWAYS in the source.
bool starts_entry_record(std::string_view line) {
  return starts_record(line, kEntryTable) || starts_record(line, kAlwaysTable);
}

/// How many lines from `line` on make up gcc's call of __fentry__: one, several in the large code model, 0 if none.
int entry_call_lines(std::string_view line, Lines lines) {
  constexpr int kMost = 6;
  if (!line.starts_with("1:") || line.size() == 2) return 0;
  if (line.find("call") != std::string_view::npos) return line.find("__fentry__") != std::string_view::npos ? 1 : 0;
  bool found = false;
  for (int count = 1; count <= kMost; ++count) {
    found = found || line.find("__fentry__") != std::string_view::npos;
    if (found && starts_entry_record(bare(lines.peek()))) return count;
    if (lines.done()) return 0;
    line = bare(lines.next());
  }
  return 0;
}

// The runtime changes a sled that threads are executing by storing its first two bytes at once, which the processor
// promises to do as one for an even address.
constexpr std::string_view kAlign = "\t.p2align 1,0x90\n";

/// True if behind the label come gcc's NOP and the record of an exit.
bool is_exit_sled(Lines lines) {
  if (!bare(lines.peek()).starts_with(".byte")) return false;
  lines.next();
  return starts_record(bare(lines.peek()), "__return_loc");
}

}  // namespace

std::string filter_assembly(std::string_view source) {
  std::string out;
  out.reserve(source.size() + source.size() / 8);
  FunctionTracker function;
  Nearness nearness;
  std::uint64_t entries = 0;
  Lines lines(source);
  const char* unwritten = source.data();  // what stays as it is is written in large pieces
  const auto write_up_to = [&](const char* end) {
    out.append(unwritten, end);
    unwritten = end;
  };
  bool in_place = false;  // the instruction at hand is a tail call that may be made in place
  while (!lines.done()) {
    const std::string_view raw = lines.next();
    const std::string_view line = bare(raw);
    if (raw.starts_with("#(")) {
      write_up_to(raw.data());
      while (lines.peek().starts_with("#  ")) lines.next();
      unwritten = lines.rest().data();
      in_place = may_be_called_in_place({raw.data(), unwritten});
      continue;
    }
    if (int count = entry_call_lines(line, lines); count != 0) {
      write_up_to(raw.data());
      while (--count != 0) lines.next();
      unwritten = lines.rest().data();
      nearness.begin(++entries);
      out += kAlign;
      out += nearness.entry() + ":\n1:\t.byte\t0x0f, 0x1f, 0x44, 0x00, 0x00\n";
      continue;
    }
    if (line == "1:" && function.has_entry() && is_exit_sled(lines)) {
      write_up_to(raw.data());
      out += kAlign;
    }
    const bool entry = starts_entry_record(line);
    if (entry || starts_record(line, "__return_loc")) {
      write_up_to(raw.data());
      lines.next();  // .quad 1b
      lines.next();  // .previous
      unwritten = lines.rest().data();
      if (entry) function.enter();
      if (entry && starts_record(line, kAlwaysTable))
        append_far(out, SledKind::kEntry, true);
      else if (entry)
        append_record(out, kDistance);
      else if (function.has_entry() && nearness.is_near())
        append_near(out, exit_kind(lines, in_place), nearness.entry());
      else if (function.has_entry())
        append_far(out, exit_kind(lines, in_place));
      continue;
    }
    const bool cold = function.see(line);
    nearness.see(line);
    if (const std::string_view untraced = function.ends_untraced(line); !untraced.empty()) {
      write_up_to(lines.rest().data());
      append_untraced(out, untraced);
    }
    if (!cold) continue;
    write_up_to(lines.rest().data());
    nearness.end();
    out += "1:\n";
    append_far(out, SledKind::kCold);
  }
  write_up_to(source.data() + source.size());
  return out;
}

}  // namespace karst::toolchain
