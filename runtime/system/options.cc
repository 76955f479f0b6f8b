#include "runtime/system/options.h"

#include "format/options.h"
#include "runtime/system/memory.h"
#include "runtime/system/message.h"

namespace karst::runtime {
namespace {

bool parse_switch(const char* s, bool& out) {
  if (s[0] != '0' && s[0] != '1') return false;
  if (s[1] != '\0') return false;
  out = s[0] == '1';
  return true;
}

void apply(Options& options, char* entry) {
  char* value = entry;
  while (*value != '\0' && *value != '=') ++value;
  if (*value == '=') *value++ = '\0';
  if (equal(entry, "memory")) {
    if (!format::parse_memory_size(value, options.memory))
      Message()
          .text("KARST_OPTIONS: memory=")
          .text(value, length(value))
          .text(" ignored: a size from 64K to 64G is needed, like 256M");
  } else if (equal(entry, "kept-memory")) {
    if (!format::parse_memory_size(value, options.kept_memory))
      Message()
          .text("KARST_OPTIONS: kept-memory=")
          .text(value, length(value))
          .text(" ignored: a size from 64K to 64G is needed, like 256M");
  } else if (equal(entry, "off") || equal(entry, "count") || equal(entry, "prefault") || equal(entry, "stats") ||
             equal(entry, "follow") || equal(entry, "control") || equal(entry, "on-crash") || equal(entry, "empty") ||
             equal(entry, "probes") || equal(entry, "detours") || equal(entry, "stacks")) {
    bool& target = equal(entry, "on-crash") ? options.on_crash
                   : entry[0] == 'o'        ? options.off
                   : equal(entry, "count")  ? options.count
                   : entry[0] == 'c'        ? options.control
                   : entry[0] == 'd'        ? options.detours
                   : entry[0] == 'e'        ? options.empty
                   : equal(entry, "probes") ? options.probes
                   : equal(entry, "stacks") ? options.stacks
                   : entry[0] == 'p'        ? options.prefault
                   : entry[0] == 'f'        ? options.follow
                                            : options.stats;
    if (!parse_switch(value, target))
      Message()
          .text("KARST_OPTIONS: ")
          .text(entry)
          .text("=")
          .text(value, length(value))
          .text(" ignored: 0 or 1 is needed");
  } else if (equal(entry, "budget") || equal(entry, "plain-budget")) {
    if (!format::parse_budget(value, entry[0] == 'p' ? options.plain_budget : options.budget))
      Message()
          .text("KARST_OPTIONS: ")
          .text(entry)
          .text("=")
          .text(value, length(value))
          .text(" ignored: a share of time from 0.1% to 100% is needed, like 5%");
  } else if (equal(entry, "min-duration")) {
    if (!format::parse_duration(value, options.min_duration_ns))
      Message()
          .text("KARST_OPTIONS: min-duration=")
          .text(value, length(value))
          .text(" ignored: a time from 1ns to 10s is needed, like 5us");
  } else if (equal(entry, "clock")) {
    if (!format::parse_clock(value, options.clock))
      Message()
          .text("KARST_OPTIONS: clock=")
          .text(value, length(value))
          .text(" ignored: tsc, thread, or a thread's period from 20ns to 1ms is needed, like thread:100ns");
  } else if (equal(entry, "signal")) {
    if (!format::parse_signal(value, options.signal))
      Message()
          .text("KARST_OPTIONS: signal=")
          .text(value, length(value))
          .text(" ignored: USR1, USR2 or a number from 34 to 64 is needed");
  } else if (equal(entry, "snapshots")) {
    const std::uint64_t n = length(value);
    if (n < sizeof options.snapshots)
      copy(options.snapshots, value, n + 1);
    else
      Message().text("KARST_OPTIONS: snapshots= ignored: the directory's name is too long");
  } else if (equal(entry, "file")) {
    const std::uint64_t n = length(value);
    if (n != 0 && n < sizeof options.file)
      copy(options.file, value, n + 1);
    else
      Message()
          .text("KARST_OPTIONS: file= ignored: a name of 1 to ")
          .number(sizeof options.file - 1)
          .text(" bytes is needed");
  } else if (equal(entry, "patch")) {
    options.patch = equal(value, "all") ? 2 : equal(value, "program") ? 1 : 0;
    if (options.patch == 0 && !equal(value, "off"))
      Message()
          .text("KARST_OPTIONS: patch=")
          .text(value, length(value))
          .text(" ignored: off, program or all is needed");
  } else if (equal(entry, "preloads")) {
    options.preloads = 0;
    for (const char* p = value; *p >= '0' && *p <= '9' && options.preloads < 1000; ++p)
      options.preloads = options.preloads * 10 + static_cast<std::uint32_t>(*p - '0');
  } else if (equal(entry, "core")) {
    if (equal(value, "on") || equal(value, "off"))
      options.core = equal(value, "on");
    else
      Message().text("KARST_OPTIONS: core=").text(value, length(value)).text(" ignored: on or off is needed");
  } else if (equal(entry, "session")) {
    const std::uint64_t n = length(value);
    std::uint64_t name = 0;  // without the secret
    while (name < n && value[name] != ':') ++name;
    if (name >= sizeof options.session) return;
    copy(options.session, value, name);
    options.session[name] = '\0';
    if (name < n) options.secret = format::parse_secret(value + name + 1);
  } else if (equal(entry, "functions") || equal(entry, "not-functions") || equal(entry, "no-trace") ||
             equal(entry, "only") || equal(entry, "min-instructions") || equal(entry, "carried-lists") ||
             equal(entry, "keep") || equal(entry, "slowest") || equal(entry, "over") || equal(entry, "margin")) {
    if (options.session[0] == '\0')
      Message().text("KARST_OPTIONS: ").text(entry).text(" ignored: it takes effect under `karst run` alone");
  } else {
    Message()
        .text("KARST_OPTIONS: unknown option ")
        .text(entry, length(entry))
        .text(
            " ignored (known: memory, off, prefault, stats, follow, min-duration, clock, control, budget, kept-memory, "
            "file, core, on-crash, patch, probes, detours, empty, stacks; "
            "under `karst "
            "run` functions, "
            "not-functions, "
            "no-trace, "
            "only, "
            "min-instructions, carried-lists, keep, slowest, over, margin)");
  }
}

}  // namespace

void copy_without_session(char* to, std::size_t size, const char* raw) {
  std::size_t used = 0;
  for (const char* end = raw; *raw != '\0'; raw = *end == ',' ? end + 1 : end) {
    for (end = raw; *end != '\0' && *end != ','; ++end)
      if (*end == '\\' && end[1] != '\0') ++end;
    if (starts_with(raw, "session=")) continue;
    if (used != 0 && used + 1 < size) to[used++] = ',';
    for (const char* p = raw; p != end && used + 1 < size; ++p) to[used++] = *p;
  }
  to[used] = '\0';
}

Options Options::from(char** environment) {
  Options options;
  if (environment == nullptr) return options;
  constexpr char kName[] = "KARST_OPTIONS=";
  for (; *environment != nullptr; ++environment) {
    if (starts_with(*environment, kName)) {
      options.raw = *environment + sizeof kName - 1;
      options.given = true;
      break;
    }
  }
  char entry[256];
  const char* p = options.raw;
  while (*p != '\0') {
    unsigned size = 0;
    bool too_long = false;
    for (; *p != '\0' && *p != ','; ++p) {
      if (*p == '\\' && p[1] != '\0') ++p;
      if (size < sizeof entry - 1)
        entry[size++] = *p;
      else
        too_long = true;
    }
    if (*p == ',') ++p;
    entry[size] = '\0';
    // A regular expression for `karst run` may be long; nothing of ours is.
    if (size != 0 && (!too_long || starts_with(entry, "functions=") || starts_with(entry, "not-functions=") ||
                      starts_with(entry, "no-trace=") || starts_with(entry, "keep=") || starts_with(entry, "only=") ||
                      starts_with(entry, "slowest=") || starts_with(entry, "over=")))
      apply(options, entry);
    else if (too_long)
      Message().text("KARST_OPTIONS: an entry of more than 255 bytes was ignored");
  }
  return options;
}

}  // namespace karst::runtime
