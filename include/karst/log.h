/* SPDX-License-Identifier: MIT */
/* Logs: messages with a format and arguments. The trace gets the arguments' bytes; the reader formats them.
 *
 *   karst_log("read %d bytes from %s", n, path);              printf's format; -Wformat checks it as it does printf's
 *   karst_log_format("read {} bytes from {}", n, path);       std::format's, checked by a compiler from C++14 on
 *   karst_log_at(KARST_LOG_WARNING, "%d are left", n);        the same of a level, from 1 to 255, which is a
 *   karst_log_format_at(KARST_LOG_ERROR, "{:x}", flags);      number when the program runs; the others are of INFO
 *
 * A format is a string literal of at most 1000 bytes, with at most 8 arguments: numbers, enumerations, texts,
 * addresses; in C++ std::string and std::string_view for {}, too. Texts are copied; of all arguments together 2000
 * bytes are kept. Texts of %s end at a NUL or at their precision; all other pointers are addresses, which nothing
 * follows. Arguments are evaluated once, as a function's are, whether anything is recorded or not.
 */
#ifndef KARST_LOG_H
#define KARST_LOG_H
#ifndef KARST_FIND_
#error "include <karst/karst.h>, which has this header in it"
#endif
#include "note.h"

/* clang's -Weverything has words for what follows that concern no user of it. */
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunknown-warning-option"
#pragma clang diagnostic ignored "-Wpadded"
#pragma clang diagnostic ignored "-Wold-style-cast"
#pragma clang diagnostic ignored "-Wc++98-compat-pedantic"
#pragma clang diagnostic ignored "-Wunsafe-buffer-usage"
#pragma clang diagnostic ignored "-Wused-but-marked-unused"
#endif
#ifdef __cplusplus
extern "C" {
#endif
/* Logs. What a call site hands over are its format, a letter for the type of each argument (those of Python's struct
 * module, and u: a pointer to signed or unsigned char; S: to an address and a size) and a word for each. */
enum { KARST_LOG_DEBUG = 1, KARST_LOG_INFO = 2, KARST_LOG_WARNING = 3, KARST_LOG_ERROR = 4 };

struct karst_format {
  struct karst_name name;
  uint32_t texts; /* libkarst's */
};
KARST_STUB_ void karst_log_(struct karst_format* format, const char* types, uint32_t level, const uint64_t* words)
    KARST_NOTE_(void, log, (struct karst_format*, const char*, uint32_t, const uint64_t*),
                (format, types, level, words))
    /* Never defined: called where no program comes. */
    __attribute__((format(printf, 1, 2))) void karst_check_format_(const char* format, ...);
KARST_STUB_ uint64_t karst_float_word_(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}
KARST_STUB_ uint64_t karst_double_word_(double value) {
  uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}
KARST_STUB_ uint64_t karst_integer_word_(int64_t value) { return (uint64_t)value; }
KARST_STUB_ uint64_t karst_natural_word_(uint64_t value) { return value; }
KARST_STUB_ uint64_t karst_address_word_(const volatile void* value) { return (uint64_t)(uintptr_t)value; }

#ifdef __cplusplus
}
#endif

/* Macros with as many arguments as one likes are of C99 and C++11. */
#if defined(__cplusplus) ? __cplusplus >= 201103L : !defined(__STRICT_ANSI__) || __STDC_VERSION__ >= 199901L
#define karst_log(...) karst_log_at(KARST_LOG_INFO, __VA_ARGS__)
#define karst_log_at(level, ...)                  \
  do {                                            \
    if (0) karst_check_format_(__VA_ARGS__);      \
    KARST_LOG_WORDS_('%', level, __VA_ARGS__, 0); \
  } while (0)
#define karst_log_format(...) karst_log_format_at(KARST_LOG_INFO, __VA_ARGS__)
#define karst_log_format_at(level, ...)           \
  do {                                            \
    KARST_CHECK_BRACES_(__VA_ARGS__);             \
    KARST_LOG_WORDS_('{', level, __VA_ARGS__, 0); \
  } while (0)

/* What follows gets a 0 behind the last argument, as a macro's dots may not stand for nothing. */
#define KARST_FIRST_(first, ...) first
#define KARST_COUNT_(...) KARST_TENTH_(__VA_ARGS__, KARST_MANY_, KARST_MANY_, KARST_MANY_, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0)
#define KARST_MANY_ more_than_8_arguments
#define KARST_TENTH_(f, a, b, c, d, e, g, h, i, j, k, l, m, n, ...) n
#define KARST_EACH_(what, ...) KARST_JOIN_(KARST_EACH_, KARST_COUNT_(__VA_ARGS__))(what, __VA_ARGS__)
#define KARST_EACH_0(what, f, ...)
#define KARST_EACH_1(what, f, a, ...) , what(a)
#define KARST_EACH_2(what, f, a, ...) , what(a) KARST_EACH_1(what, f, __VA_ARGS__)
#define KARST_EACH_3(what, f, a, ...) , what(a) KARST_EACH_2(what, f, __VA_ARGS__)
#define KARST_EACH_4(what, f, a, ...) , what(a) KARST_EACH_3(what, f, __VA_ARGS__)
#define KARST_EACH_5(what, f, a, ...) , what(a) KARST_EACH_4(what, f, __VA_ARGS__)
#define KARST_EACH_6(what, f, a, ...) , what(a) KARST_EACH_5(what, f, __VA_ARGS__)
#define KARST_EACH_7(what, f, a, ...) , what(a) KARST_EACH_6(what, f, __VA_ARGS__)
#define KARST_EACH_8(what, f, a, ...) , what(a) KARST_EACH_7(what, f, __VA_ARGS__)
#define KARST_STATIC_FORMAT_(format) static struct karst_format karst_format_ = {{"" format, __FILE__, __LINE__, 0}, 0}

#ifndef __cplusplus
#define KARST_CHECK_BRACES_(...) (void)0
#define KARST_LOG_WORDS_(style, level, ...)                                            \
  KARST_STATIC_FORMAT_(KARST_FIRST_(__VA_ARGS__));                                     \
  static const char karst_types_[] = {style KARST_EACH_(KARST_TYPE_, __VA_ARGS__), 0}; \
  const uint64_t karst_words_[] = {0 KARST_EACH_(KARST_WORD_, __VA_ARGS__)};           \
  karst_log_(&karst_format_, karst_types_, (uint32_t)(level), karst_words_ + 1)
/* clang-format off: bit-fields are of no type that can be named, and become integers in ?: */
#define KARST_TYPE_(x) \
  __extension__ _Generic((x), _Bool : '?', char : 'c', signed char : 'b', unsigned char : 'B', short : 'h',         \
    unsigned short : 'H', int : 'i', unsigned : 'I', long : 'q', unsigned long : 'Q', long long : 'q',              \
    unsigned long long : 'Q', float : 'f', double : 'd', long double : 'd', char* : 's', const char* : 's',         \
    signed char* : 'u', const signed char* : 'u', unsigned char* : 'u', const unsigned char* : 'u',                 \
    default : _Generic((0 ? (x) : (x)), int : 'i', unsigned : 'I', default : 'P'))
#define KARST_WORD_(x)                                              \
  __extension__ _Generic((x), _Bool                                 \
                         : karst_natural_word_, char                \
                         : karst_integer_word_, signed char         \
                         : karst_integer_word_, unsigned char       \
                         : karst_natural_word_, short               \
                         : karst_integer_word_, unsigned short      \
                         : karst_natural_word_, int                 \
                         : karst_integer_word_, unsigned            \
                         : karst_natural_word_, long                \
                         : karst_integer_word_, unsigned long       \
                         : karst_natural_word_, long long           \
                         : karst_integer_word_, unsigned long long  \
                         : karst_natural_word_, float               \
                         : karst_float_word_, double                \
                         : karst_double_word_, long double          \
                         : karst_double_word_, default              \
                         : _Generic((0 ? (x) : (x)), int            \
                                    : karst_integer_word_, unsigned \
                                    : karst_natural_word_, default  \
                                    : karst_address_word_))(x)
/* clang-format on */
#else
#define KARST_LOG_WORDS_(style, level, ...)        \
  KARST_STATIC_FORMAT_(KARST_FIRST_(__VA_ARGS__)); \
  karst_log_words_<style>(&karst_format_, static_cast<uint32_t>(level) KARST_EACH_(karst_word_of_, __VA_ARGS__))

template <char kType>
struct karst_word {
  static constexpr char type = kType;
  uint64_t bits;
  KARST_NOTRACE uint64_t word() const { return bits; }
};
struct karst_text_word {
  static constexpr char type = 'S';
  const char* data;
  size_t size;
  KARST_NOTRACE uint64_t word() const { return karst_address_word_(this); }
};

KARST_STUB_ karst_word<'?'> karst_word_of_(bool x) { return {karst_natural_word_(x)}; }
KARST_STUB_ karst_word<'c'> karst_word_of_(char x) { return {karst_integer_word_(x)}; }
KARST_STUB_ karst_word<'b'> karst_word_of_(signed char x) { return {karst_integer_word_(x)}; }
KARST_STUB_ karst_word<'B'> karst_word_of_(unsigned char x) { return {karst_natural_word_(x)}; }
KARST_STUB_ karst_word<'h'> karst_word_of_(short x) { return {karst_integer_word_(x)}; }
KARST_STUB_ karst_word<'H'> karst_word_of_(unsigned short x) { return {karst_natural_word_(x)}; }
KARST_STUB_ karst_word<'i'> karst_word_of_(int x) { return {karst_integer_word_(x)}; }
KARST_STUB_ karst_word<'I'> karst_word_of_(unsigned x) { return {karst_natural_word_(x)}; }
KARST_STUB_ karst_word<'q'> karst_word_of_(long x) { return {karst_integer_word_(x)}; }
KARST_STUB_ karst_word<'Q'> karst_word_of_(unsigned long x) { return {karst_natural_word_(x)}; }
KARST_STUB_ karst_word<'q'> karst_word_of_(long long x) { return {karst_integer_word_(x)}; }
KARST_STUB_ karst_word<'Q'> karst_word_of_(unsigned long long x) { return {karst_natural_word_(x)}; }
KARST_STUB_ karst_word<'f'> karst_word_of_(float x) { return {karst_float_word_(x)}; }
KARST_STUB_ karst_word<'d'> karst_word_of_(double x) { return {karst_double_word_(x)}; }
// For code that may use general registers alone (-mgeneral-regs-only), in which clang refuses the type.
#ifndef KARST_NO_LONG_DOUBLE
KARST_STUB_ karst_word<'d'> karst_word_of_(long double x) { return {karst_double_word_(static_cast<double>(x))}; }
#endif
KARST_STUB_ karst_word<'s'> karst_word_of_(const char* x) { return {karst_address_word_(x)}; }
KARST_STUB_ karst_word<'u'> karst_word_of_(const signed char* x) { return {karst_address_word_(x)}; }
KARST_STUB_ karst_word<'u'> karst_word_of_(const unsigned char* x) { return {karst_address_word_(x)}; }
KARST_STUB_ karst_word<'P'> karst_word_of_(const volatile void* x) { return {karst_address_word_(x)}; }
KARST_STUB_ karst_word<'P'> karst_word_of_(decltype(nullptr)) { return {0}; }
/* Texts that know their size. */
template <typename Text>
KARST_STUB_ auto karst_word_of_(const Text& text) -> decltype(text.find_first_of(text.data()), karst_text_word()) {
  return {text.data(), text.size()};
}
template <typename Type>
struct karst_is_enum {
  static constexpr bool value = __is_enum(Type);
};
template <typename Enum, bool kIsEnum = karst_is_enum<Enum>::value>
struct karst_enum {};
template <typename Enum>
struct karst_enum<Enum, true> {
  typedef __underlying_type(Enum) type;
};
/* Enumerations. */
template <typename Enum>
KARST_STUB_ auto karst_word_of_(Enum x) -> decltype(karst_word_of_(typename karst_enum<Enum>::type())) {
  return karst_word_of_(static_cast<typename karst_enum<Enum>::type>(x));
}

template <char kStyle, typename... Words>
KARST_STUB_ void karst_log_words_(karst_format* format, uint32_t level, Words... words) {
  static const char types[] = {kStyle, Words::type..., 0};
  const uint64_t all[] = {0, words.word()...};
  karst_log_(format, types, level, all + 1);
}

#if __cplusplus >= 201402L
/* What is wrong with a format of {}, or nothing. */
enum class karst_mistake { none, braces, argument, unused, specification, type };

template <char... kTypes>
struct karst_types {
  static constexpr bool is_integer(char type) {
    for (const char* known = "bBhHiIqQ"; *known != 0; ++known)
      if (*known == type) return true;
    return false;
  }
  static constexpr bool is_one_of(char c, const char* letters) {
    for (; *letters != 0; ++letters)
      if (*letters == c) return true;
    return false;
  }
  static constexpr bool fits(char presentation, char type) {
    if (presentation == 0) return true;
    if (type == 'f' || type == 'd') return is_one_of(presentation, "aAeEfFgG");
    if (type == 's' || type == 'S') return presentation == 's';
    if (type == 'P' || type == 'u') return presentation == 'p';
    if (is_one_of(presentation, "bBdoxX")) return true;
    return presentation == (type == '?' ? 's' : 'c');
  }

  static constexpr karst_mistake mistake(const char* f) {
    const char types[] = {kTypes..., 0};
    bool used[sizeof...(kTypes) + 1] = {};
    unsigned next = 0;
    bool counted = false, numbered = false;
    for (; *f != 0; ++f) {
      if (*f == '}' && *++f != '}') return karst_mistake::braces;
      if (*f != '{') continue;
      if (*++f == '{') continue;
      char type = 0;
      karst_mistake found = take_argument(f, types, used, next, counted, numbered, type);
      if (found != karst_mistake::none) return found;
      if (*f == ':') {
        ++f;
        const bool number = type != 's' && type != 'S' && type != 'P' && type != 'u';
        unsigned fill = 1;
        while (*f != 0 && (f[fill] & 0xc0) == 0x80) ++fill;
        if (*f != 0 && *f != '{' && *f != '}' && is_one_of(f[fill], "<>^")) f += fill;
        if (is_one_of(*f, "<>^")) ++f;
        if (is_one_of(*f, "+- ") && !(number && *f++ != 0)) return karst_mistake::specification;
        if (*f == '#' && !(number && *f++ != 0)) return karst_mistake::specification;
        if (*f == '0' && !(number && *f++ != 0)) return karst_mistake::specification;
        found = take_number(f, types, used, next, counted, numbered);
        if (found != karst_mistake::none) return found;
        if (*f == '.') {
          ++f;
          if (type != 'f' && type != 'd' && type != 's' && type != 'S') return karst_mistake::specification;
          if (*f != '{' && !is_one_of(*f, "0123456789")) return karst_mistake::specification;
          found = take_number(f, types, used, next, counted, numbered);
          if (found != karst_mistake::none) return found;
        }
        if (*f == 'L') ++f;
        if (*f != 0 && *f != '}') {
          if (!is_one_of(*f, "aAbBcdeEfFgGopsxX")) return karst_mistake::specification;
          if (!fits(*f, type)) return karst_mistake::type;
          ++f;
        }
      }
      if (*f != '}') return *f == 0 ? karst_mistake::braces : karst_mistake::specification;
    }
    for (unsigned i = 0; i < sizeof...(kTypes); ++i)
      if (!used[i]) return karst_mistake::unused;
    return karst_mistake::none;
  }

 private:
  static constexpr karst_mistake take_argument(const char*& f, const char* types, bool* used, unsigned& next,
                                               bool& counted, bool& numbered, char& type) {
    unsigned number = 0;
    if (*f >= '0' && *f <= '9') {
      for (; *f >= '0' && *f <= '9'; ++f) number = number > 99 ? number : number * 10 + static_cast<unsigned>(*f - '0');
      numbered = true;
    } else {
      number = next++;
      counted = true;
    }
    if (*f == 0) return karst_mistake::braces;
    if ((counted && numbered) || number >= sizeof...(kTypes)) return karst_mistake::argument;
    used[number] = true;
    type = types[number];
    return karst_mistake::none;
  }
  /* A width or precision: digits, or {} with an integer. */
  static constexpr karst_mistake take_number(const char*& f, const char* types, bool* used, unsigned& next,
                                             bool& counted, bool& numbered) {
    unsigned number = 0;
    for (; *f >= '0' && *f <= '9'; ++f) number = number > 2000 ? number : number * 10 + static_cast<unsigned>(*f - '0');
    if (number > 2000) return karst_mistake::specification;
    if (*f != '{') return karst_mistake::none;
    ++f;
    char type = 0;
    const karst_mistake found = take_argument(f, types, used, next, counted, numbered, type);
    if (found != karst_mistake::none) return found;
    if (!is_integer(type)) return karst_mistake::type;
    return *f++ == '}' ? karst_mistake::none : karst_mistake::braces;
  }
};
template <typename... Words>
karst_types<Words::type...> karst_types_of_(const char* format, Words...);

#define KARST_CHECK_BRACES_(...) KARST_CHECK_ALL_BRACES_(__VA_ARGS__, 0)
#define KARST_CHECK_ALL_BRACES_(...)                                                                              \
  constexpr karst_mistake karst_mistake_ =                                                                        \
      decltype(karst_types_of_("" KARST_EACH_(karst_word_of_, __VA_ARGS__)))::mistake(KARST_FIRST_(__VA_ARGS__)); \
  static_assert(karst_mistake_ != karst_mistake::braces, "karst_log_format: a brace has no counterpart");         \
  static_assert(karst_mistake_ != karst_mistake::argument, "karst_log_format: a field has no argument");          \
  static_assert(karst_mistake_ != karst_mistake::unused, "karst_log_format: an argument has no field");           \
  static_assert(karst_mistake_ != karst_mistake::specification, "karst_log_format: a field cannot be so");        \
  static_assert(karst_mistake_ != karst_mistake::type, "karst_log_format: a field does not fit its argument")
#else
#define KARST_CHECK_BRACES_(...) static_cast<void>(0)
#endif
#endif
#endif
#ifdef __clang__
#pragma clang diagnostic pop
#endif

#endif
