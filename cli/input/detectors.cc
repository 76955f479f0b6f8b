// SPDX-License-Identifier: MIT
#include "cli/input/detectors.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <utility>

#include "base/trusted_directory.h"
#include "cli/input/program_options.h"

namespace karst::cli {
namespace {

namespace fs = std::filesystem;
using Trust = TrustedDirectory::Trust;

/// What is larger is no detector.
constexpr std::size_t kMostBytes = 1 << 20;

fs::path users_directory() {
  if (const char* const xdg = std::getenv("XDG_CONFIG_HOME"); xdg != nullptr && xdg[0] == '/')
    return fs::path(xdg) / "karst/detectors";
  if (const char* const home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    return fs::path(home) / ".config/karst/detectors";
  return {};
}

class DetectorSearch {
 public:
  /// Error: the directory is not read.
  Status add(const fs::path& path, Trust trust) {
    const auto directory = TrustedDirectory::open(path, trust);
    if (!directory) return directory.error();
    for (const std::string& name : directory->names()) add_file(*directory, name);
    return Unit{};
  }
  void notice(std::string why) { notices_.push_back(std::move(why)); }
  FoundDetectors take() {
    FoundDetectors found{{}, std::move(failures_), std::move(notices_)};
    for (auto& [name, detector] : by_name_) found.detectors.push_back(std::move(detector));
    return found;
  }

 private:
  void add_file(const TrustedDirectory& directory, const std::string& name) {
    const std::string path = directory.path_of(name).string();
    if (name.ends_with(".py")) return notice(path + " is not run: detectors are written in SQL, in files of .sql");
    if (!name.ends_with(".sql")) return;
    auto text = directory.read(name, kMostBytes);
    if (!text) return failures_.push_back(text.error().message);
    auto detector = sql::parse_detector(std::move(*text), path);
    if (!detector) return failures_.push_back(detector.error().message);
    std::string called = detector->name;
    by_name_.insert_or_assign(std::move(called), std::move(*detector));
  }

  std::map<std::string, sql::Detector> by_name_;
  std::vector<std::string> failures_, notices_;
};

}  // namespace

Result<FoundDetectors> find_detectors(const std::vector<std::string>& directories) {
  const auto runtime = find_runtime();
  if (!runtime) return runtime.error();
  DetectorSearch search;
  const fs::path own = fs::path(*runtime).parent_path().parent_path() / "share/karst/detectors";
  if (const Status added = search.add(own, Trust::kAsOurself); !added)
    return Error{added.error().message + "; is Karst installed whole?"};
  std::error_code ignored;
  if (const fs::path users = users_directory(); !users.empty() && fs::exists(users, ignored)) {
    if (const Status added = search.add(users, Trust::kChecked); !added) search.notice(added.error().message);
  }
  for (const std::string& directory : directories)
    if (const Status added = search.add(directory, Trust::kChecked); !added) return added.error();
  return search.take();
}

}  // namespace karst::cli
