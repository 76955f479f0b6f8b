// Where to look for debug information that is not in the module itself.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reader/result.h"

namespace karst::symbols {

/// Asks debuginfod servers, by elfutils' own client (libdebuginfod, loaded when first needed), which reads
/// DEBUGINFOD_URLS, keeps what it got in a cache of its own, and checks nothing: who gets a file compares its build-id.
/// Servers that do not answer within kPatience seconds (unless DEBUGINFOD_TIMEOUT is set), or are not there, are
/// asked once and then no more. One thread, and no other that uses the environment meanwhile.
class Debuginfod {
 public:
  static constexpr int kPatience = 30;

  /// `patience`: seconds.
  explicit Debuginfod(int patience = kPatience) : patience_(patience) {}
  /// Null when the environment names no servers.
  static std::shared_ptr<Debuginfod> of_environment();

  struct Found {
    int fd = -1;  ///< the caller's, to close
    std::string path;
  };
  /// The debug file for a build-id (raw bytes). The error says why not: no client, no server, not known to any.
  Result<Found> find(std::string_view build_id);

 private:
  int patience_;
  std::string gave_up_;  // why no server is asked any more
};

/// Beside the module, in `.debug/` beside it, in `directories`, in /usr/lib/debug, and on servers.
struct DebugSearch {
  /// Laid out like /usr/lib/debug: `.build-id/ab/cdef.debug`, `usr/bin/app.debug`; or with the files themselves in it.
  std::vector<std::filesystem::path> directories;
  std::shared_ptr<Debuginfod> servers;  ///< null: none are asked

  /// KARST_DEBUG_DIR (directories separated by colons) and DEBUGINFOD_URLS.
  static DebugSearch of_environment();
};

}  // namespace karst::symbols
