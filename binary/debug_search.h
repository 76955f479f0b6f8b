// SPDX-License-Identifier: MIT
// Where to look for debug information that is not in the module itself.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace karst::binary {

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

  // In a sandbox (sandbox.h) there is no network. What a module needs is noted there, fetched outside, and the module
  // is read again.

  /// From here on find() knows only what fetch() got. For the sandbox's copy of this object.
  void stay_offline() { offline_ = true; }
  /// What find() was asked for last, offline, and did not know; empty: nothing.
  const std::string& wanted() const { return wanted_; }
  /// Asks the servers and keeps the answer, so that find() gives it. False: that was done before.
  bool fetch(std::string_view build_id);
  /// Of the files that were fetched.
  std::vector<int> descriptors() const;

 private:
  Result<Found> ask(std::string_view build_id);

  struct Fetched {
    std::string build_id;
    std::shared_ptr<const int> fd;  ///< closed with the last of its owners; null: it was not to be had
    std::string path;               ///< or why not
  };
  std::vector<Fetched> fetched_;
  bool offline_ = false;
  std::string wanted_;
  int patience_;
  std::string gave_up_;  // why no server is asked any more
};

/// Beside the module, in `.debug/` beside it, in `directories`, in /usr/lib/debug, and on servers.
struct DebugSearch {
  /// Laid out like /usr/lib/debug: `.build-id/ab/cdef.debug`, `usr/bin/app.debug`; or with the files themselves in it.
  std::vector<std::filesystem::path> directories;
  /// Null: none are asked. Who asks tells them, and the network, the build-ids of all that was traced: so none are
  /// asked unless the user wants karst to. That distributions set DEBUGINFOD_URLS for everybody says nothing about
  /// that.
  std::shared_ptr<Debuginfod> servers;

  /// Asks the servers that the environment names. False: it names none.
  bool ask_servers();
  /// KARST_DEBUG_DIR (directories separated by colons). KARST_DEBUGINFOD=1: ask_servers().
  static DebugSearch of_environment();
};

}  // namespace karst::binary
