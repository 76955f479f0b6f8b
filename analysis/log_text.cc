// SPDX-License-Identifier: MIT
// Each conversion is checked and bounded, then formatted alone: printf's by libc's snprintf, which so says what the
// program's own would; std::format's by {fmt}.
#include "analysis/log_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdio>
#include <optional>
#include <vector>

#include "format/log.h"
#include "format/printf.h"

namespace karst::analysis {

namespace {

constexpr std::size_t kMostText = 64 << 10;  // bytes of a log's text; what is longer is cut
constexpr int kMostSize = 2000;              // a width or a precision
constexpr std::string_view kOfInteger = "bBdoxX";

struct Argument {
  char type = 0;
  std::uint64_t bits = 0;  // of an integer: with its sign
  std::string_view text;
  bool is_cut = false;
  bool is_null = false;

  bool is_text() const { return type == format::kLogText; }
  bool is_floating() const { return type == 'f' || type == 'd'; }
  bool is_integer() const { return !is_text() && !is_floating() && type != format::kLogAddress; }
  double number() const {
    return type == 'f' ? std::bit_cast<float>(static_cast<std::uint32_t>(bits)) : std::bit_cast<double>(bits);
  }
  std::string_view what() const {
    return is_text() ? "text" : is_floating() ? "number" : is_integer() ? "integer" : "address";
  }
};

std::uint64_t with_sign(std::uint64_t bits, std::uint32_t bytes) {
  const std::uint64_t sign = std::uint64_t{1} << (8 * bytes - 1);
  return (bits ^ sign) - sign;
}

class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : left_(bytes) {}

  /// What is missing is zero.
  std::uint64_t bits(std::uint32_t count) {
    std::uint64_t bits = 0;
    for (std::uint32_t i = 0; i < count && i < left_.size(); ++i)
      bits |= std::uint64_t{static_cast<unsigned char>(left_[i])} << (8 * i);
    left_.remove_prefix(std::min<std::size_t>(count, left_.size()));
    return bits;
  }
  std::string_view text(std::size_t size) {
    const std::string_view text = left_.substr(0, size);
    left_.remove_prefix(text.size());
    return text;
  }

 private:
  std::string_view left_;
};

std::vector<Argument> arguments_in(std::string_view types, std::string_view bytes) {
  Bytes left(bytes);
  std::vector<Argument> arguments;
  for (const char type : types.substr(0, format::kMostLogArguments)) {
    Argument a;
    a.type = type;
    const std::uint32_t size = format::log_bytes(type);
    if (a.is_text()) {
      const auto head = static_cast<std::uint16_t>(left.bits(sizeof format::kLogTextCut));
      a.is_null = head == format::kLogTextNull;
      a.is_cut = (head & format::kLogTextCut) != 0;
      if (!a.is_null) a.text = left.text(head & ~format::kLogTextCut);
    } else if (size == 0) {
      break;  // of a later version: nothing behind it can be told either
    } else {
      a.bits = left.bits(size);
      if (type == 'c' || type == 'b' || type == 'h' || type == 'i') a.bits = with_sign(a.bits, size);
    }
    arguments.push_back(a);
  }
  return arguments;
}

/// Null: there is no such argument.
const Argument* find(const std::vector<Argument>& arguments, int number) {
  return number >= 0 && static_cast<std::size_t>(number) < arguments.size()
             ? &arguments[static_cast<std::size_t>(number)]
             : nullptr;
}

// printf's.

template <typename Value>
std::string print(const std::string& conversion, Value value) {
  std::array<char, 256> small{};
  const int size = std::snprintf(small.data(), small.size(), conversion.c_str(), value);
  if (size < 0) return {};
  if (static_cast<std::size_t>(size) < small.size()) return std::string(small.data(), static_cast<std::size_t>(size));
  std::string text(static_cast<std::size_t>(size), '\0');
  std::snprintf(text.data(), text.size() + 1, conversion.c_str(), value);
  return text;
}

/// As the conversion's length says, or whole where the program gave more than that takes.
std::uint64_t cut_to(std::uint64_t bits, const format::PrintfConversion& c, const Argument& a, bool is_signed) {
  std::uint32_t bytes = 8;
  if (c.length == 'H') bytes = 1;
  if (c.length == 'h') bytes = 2;
  if (c.length == 0 && format::log_bytes(a.type) <= 4) bytes = 4;
  if (bytes == 8) return bits;
  bits &= (std::uint64_t{1} << (8 * bytes)) - 1;
  return is_signed ? with_sign(bits, bytes) : bits;
}

class Printf {
 public:
  Printf(std::string_view format, const std::vector<Argument>& arguments) : format_(format), arguments_(arguments) {}

  std::string text() {
    const auto size = static_cast<std::uint32_t>(std::min<std::size_t>(format_.size(), kMostText));
    std::uint32_t at = 0;
    std::uint32_t written = 0;
    int next = 0;
    format::PrintfConversion c;
    while (out_.size() < kMostText && format::next_conversion(format_.data(), size, at, next, c)) {
      out_ += format_.substr(written, c.begin - written);
      out_ += converted(c);
      written = c.end;
    }
    out_ += format_.substr(std::min(written, size), size - std::min(written, size));
    return std::move(out_);
  }

 private:
  /// The width or the precision; nothing where it is none. `fits`: false where it is too large, or no integer.
  std::optional<int> size_of(int number, int argument, bool& fits) const {
    if (argument >= 0) {
      const Argument* a = find(arguments_, argument);
      if (a == nullptr || !a->is_integer()) {
        fits = false;
        return {};
      }
      number = static_cast<int>(static_cast<std::int64_t>(a->bits));
    } else if (number < 0) {
      return {};
    }
    fits = fits && number <= kMostSize && number >= -kMostSize;
    return number;
  }

  std::string converted(const format::PrintfConversion& c) const {
    const std::string_view whole = format_.substr(c.begin, c.end - c.begin);
    if (c.conversion == '%') return "%";
    if (c.conversion == 0 || c.argument < 0) return std::string(whole);
    const auto wrong = [&whole](std::string_view why) { return fmt::format("%!{}({})", whole.substr(1), why); };
    const Argument* a = find(arguments_, c.argument);
    if (a == nullptr) return wrong("missing");
    bool fits = true;
    const std::optional<int> width = size_of(c.width, c.width_argument, fits);
    const std::optional<int> precision = size_of(c.precision, c.precision_argument, fits);
    if (!fits) return wrong("size");
    std::string spec = "%" + std::string(format_.substr(c.flags_begin, c.flags_end - c.flags_begin));
    if (width) spec += fmt::to_string(*width);  // a negative one is the flag - and a width
    const bool has_precision = precision && *precision >= 0;
    if (has_precision) spec += "." + fmt::to_string(*precision);
    switch (c.conversion) {
      case 'd':
      case 'i':
        if (!a->is_integer()) break;
        return print(spec + "ll" + c.conversion, static_cast<long long>(cut_to(a->bits, c, *a, true)));
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        if (!a->is_integer()) break;
        return print(spec + "ll" + c.conversion, static_cast<unsigned long long>(cut_to(a->bits, c, *a, false)));
      case 'c':
        if (!a->is_integer() || c.length != 0) break;
        return print(spec + 'c', static_cast<int>(static_cast<unsigned char>(a->bits)));
      case 'a':
      case 'A':
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (!a->is_floating()) break;
        return print(spec + c.conversion, a->number());
      case 'p':
        if (a->type != format::kLogAddress) break;
        // As glibc does it.
        if (a->bits == 0) return print(spec.substr(0, spec.find('.')) + 's', "(nil)");
        return print("%#" + spec.substr(1) + "llx", static_cast<unsigned long long>(a->bits));
      case 's': {
        if (!a->is_text() || c.length != 0) break;
        const std::string text = a->is_null ? (has_precision && *precision < 6 ? "" : "(null)") : std::string(a->text);
        return print(spec + 's', text.c_str()) + (a->is_cut ? "..." : "");
      }
      default:
        break;
    }
    return wrong(a->what());
  }

  std::string_view format_;
  const std::vector<Argument>& arguments_;
  std::string out_;
};

// std::format's.

/// Bytes of the first character; npos: it is none of UTF-8.
std::size_t character_size(std::string_view text) {
  const auto byte = [&text](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const std::size_t size = byte(0) < 0x80   ? 1
                           : byte(0) < 0xc0 ? 0
                           : byte(0) < 0xe0 ? 2
                           : byte(0) < 0xf0 ? 3
                           : byte(0) < 0xf8 ? 4
                                            : 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xc0) != 0x80) return std::string_view::npos;
  return size != 0 ? size : std::string_view::npos;
}

/// Whether {fmt} takes `[[FILL]ALIGN][SIGN][#][0][WIDTH][.PRECISION][L][TYPE]` for the argument.
bool fits(std::string_view spec, const Argument& a) {
  const auto takes = [&spec](std::string_view letters) {
    const bool is = !spec.empty() && letters.find(spec[0]) != std::string_view::npos;
    if (is) spec.remove_prefix(1);
    return is;
  };
  const auto take_digits = [&takes] {
    bool any = false;
    while (takes("0123456789")) any = true;
    return any;
  };
  constexpr std::string_view kAlign = "<>^";
  if (const std::size_t fill = character_size(spec);
      fill < spec.size() && kAlign.find(spec[fill]) != std::string_view::npos)
    spec.remove_prefix(fill);
  takes(kAlign);
  bool of_number = takes("+- ");
  of_number = takes("#") || of_number;
  of_number = takes("0") || of_number;
  take_digits();
  const bool has_precision = takes(".");
  if (has_precision && !take_digits()) return false;
  const bool has_locale = takes("L");
  const char type = spec.empty() ? '\0' : spec[0];
  if (spec.size() > 1) return false;
  if (a.is_text()) return !of_number && !has_locale && (type == '\0' || type == 's');
  if (a.is_floating()) return type == '\0' || std::string_view("aAeEfFgG").find(type) != std::string_view::npos;
  if (has_precision) return false;
  if (a.type == format::kLogAddress) return !of_number && !has_locale && (type == '\0' || type == 'p');
  if (type != '\0' && kOfInteger.find(type) != std::string_view::npos) return true;
  const bool is_letter = a.type == 'c' || (a.type == '?' && a.bits <= 1);
  if (is_letter && (of_number || has_locale)) return false;
  return type == '\0' || (type == 'c' && a.type == 'c') || (type == 's' && a.type == '?' && a.bits <= 1);
}

class Braces {
 public:
  Braces(std::string_view format, const std::vector<Argument>& arguments)
      : left_(format.substr(0, kMostText)), arguments_(arguments) {}

  std::string text() {
    while (!left_.empty() && out_.size() < kMostText) {
      const std::size_t brace = left_.find_first_of("{}");
      out_ += left_.substr(0, brace);
      if (brace == std::string_view::npos) break;
      const char which = left_[brace];
      left_.remove_prefix(brace + 1);
      if (which == '}' || (!left_.empty() && left_[0] == '{')) {
        out_ += which;  // doubled, or by itself
        if (!left_.empty() && left_[0] == which) left_.remove_prefix(1);
      } else {
        field();
      }
    }
    return std::move(out_);
  }

 private:
  // From behind a field's opening brace to behind its closing one.
  void field() {
    std::size_t end = 0;
    for (int depth = 1; end < left_.size(); ++end) {
      if (left_[end] == '{') ++depth;
      if (left_[end] == '}' && --depth == 0) break;
    }
    std::string_view inside = left_.substr(0, end);
    if (end == left_.size()) {
      out_ += '{';
      out_ += inside;
      left_ = {};
      return;
    }
    left_.remove_prefix(end + 1);
    const std::string_view whole = inside;
    const auto wrong = [&](std::string_view why) { out_ += fmt::format("{{!{}({})}}", whole, why); };
    const Argument* a = take_argument(inside);
    if (a == nullptr) return wrong("missing");
    std::string spec;
    if (!inside.empty()) {
      if (inside[0] != ':') return wrong("format");
      if (!resolve(inside.substr(1), spec)) return wrong("size");
    }
    if (!fits(spec, *a)) return wrong(a->what());
    try {
      out_ += formatted(spec, *a);
    } catch (const fmt::format_error&) {
      return wrong(a->what());
    }
    if (a->is_cut) out_ += "...";
  }

  /// By its number, or the next one; takes that off the text.
  const Argument* take_argument(std::string_view& text) {
    int number = 0;
    const auto digits = std::from_chars(text.data(), text.data() + text.size(), number);
    if (digits.ptr == text.data()) {
      if (!text.empty() && text[0] != ':') return nullptr;
      return find(arguments_, next_ < 1000 ? next_++ : -1);
    }
    if (digits.ec != std::errc()) number = -1;
    text.remove_prefix(static_cast<std::size_t>(digits.ptr - text.data()));
    return find(arguments_, number);
  }

  /// With arguments in the place of widths and precisions that are braces. False: one is no integer, or too large.
  bool resolve(std::string_view from, std::string& spec) {
    while (!from.empty()) {
      if (from[0] == '{') {
        const std::size_t end = from.find('}');
        if (end == std::string_view::npos) return false;
        std::string_view inside = from.substr(1, end - 1);
        const Argument* a = take_argument(inside);
        if (a == nullptr || !inside.empty() || !a->is_integer() || a->bits > kMostSize) return false;
        spec += fmt::to_string(a->bits);
        from.remove_prefix(end + 1);
      } else {
        spec += from[0];
        from.remove_prefix(1);
      }
    }
    // What was put in may stand beside digits.
    for (const char* at = spec.data(); at != spec.data() + spec.size(); ++at) {
      int number = 0;
      if (*at < '0' || *at > '9') continue;
      const auto digits = std::from_chars(at, spec.data() + spec.size(), number);
      if (digits.ec != std::errc() || number > kMostSize) return false;
      at = digits.ptr - 1;
    }
    return true;
  }

  // The page's engine has no exceptions: what {fmt} would throw for, fits() refuses.
  template <typename Value>
  static std::string formatted(const std::string& spec, const Value& value) {
    return fmt::vformat("{:" + spec + "}", fmt::make_format_args(value));
  }

  static std::string formatted(const std::string& spec, const Argument& a) {
    switch (a.type) {
      case format::kLogText:
        return formatted(spec, a.is_null ? std::string_view("(null)") : a.text);
      case format::kLogAddress: {
        // Addresses are the program's: here they may have fewer bits.
        std::string of_text = spec.find_first_of("<>^") == std::string::npos ? ">" + spec : spec;
        if (of_text.back() == 'p') of_text.pop_back();
        return formatted(of_text, fmt::format("{:#x}", a.bits));
      }
      case 'f':
        return formatted(spec, static_cast<float>(a.number()));
      case 'd':
        return formatted(spec, a.number());
      case 'c':
        return formatted(spec, static_cast<char>(a.bits));
      case '?':
        if (a.bits > 1 || (!spec.empty() && kOfInteger.find(spec.back()) != std::string_view::npos)) break;
        return formatted(spec, a.bits == 1);
      case 'b':
      case 'h':
      case 'i':
      case 'q':
        return formatted(spec, static_cast<std::int64_t>(a.bits));
      default:
        break;
    }
    return formatted(spec, static_cast<__int128>(a.bits));  // {fmt} takes + for what has a sign alone
  }

  std::string_view left_;
  const std::vector<Argument>& arguments_;
  int next_ = 0;
  std::string out_;
};

}  // namespace

std::string log_text(std::string_view format, std::string_view values, std::string_view bytes) {
  if (bytes.empty() || values.empty()) return std::string(format.substr(0, kMostText));
  const std::vector<Argument> arguments = arguments_in(values.substr(1), bytes.substr(1));
  std::string text = values[0] == '{' ? Braces(format, arguments).text() : Printf(format, arguments).text();
  if (text.size() > kMostText) text.replace(kMostText, std::string::npos, "...");
  return text;
}

std::uint32_t log_level(std::string_view bytes) { return bytes.empty() ? 0 : static_cast<unsigned char>(bytes[0]); }

std::string log_level_name(std::uint32_t level) {
  constexpr std::array<std::string_view, 5> kNames = {"", "debug", "info", "warning", "error"};
  return level < kNames.size() ? std::string(kNames[level]) : fmt::format("level {}", level);
}

}  // namespace karst::analysis
