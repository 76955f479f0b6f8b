// SPDX-License-Identifier: MIT
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/cache_directory.h"
#include "binary/debug_search.h"

namespace karst::binary {
namespace {

/// What is used of libdebuginfod.so.1; its header is not needed for three functions.
struct Client {
  using Handle = void*;
  Handle (*begin)() = nullptr;
  void (*end)(Handle) = nullptr;
  int (*find)(Handle, const unsigned char*, int, char**) = nullptr;

  bool load() {
    // Never closed: it starts libcurl, which may leave threads.
    void* library = ::dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    return library != nullptr && take(library, "debuginfod_begin", begin) && take(library, "debuginfod_end", end) &&
           take(library, "debuginfod_find_debuginfo", find);
  }

 private:
  template <typename Function>
  static bool take(void* library, const char* name, Function& to) {
    to = reinterpret_cast<Function>(::dlsym(library, name));
    return to != nullptr;
  }
};

/// Sets a variable of the environment that the user has not set, for as long as it lives. The client reads its limits
/// there and nowhere else: its progress function is not called before a server has answered.
class Default {
 public:
  Default(const char* name, const std::string& value) : name_(name), ours_(std::getenv(name) == nullptr) {
    if (ours_) ::setenv(name, value.c_str(), 0);
  }
  Default(const Default&) = delete;
  Default& operator=(const Default&) = delete;
  ~Default() {
    if (ours_) ::unsetenv(name_);
  }

 private:
  const char* name_;
  bool ours_;
};

std::string urls() {
  const char* text = std::getenv("DEBUGINFOD_URLS");
  return text == nullptr ? std::string() : std::string(text);
}

}  // namespace

std::shared_ptr<Debuginfod> Debuginfod::of_environment() {
  return urls().find_first_not_of(' ') == std::string::npos ? nullptr : std::make_shared<Debuginfod>();
}

Result<Debuginfod::Found> Debuginfod::find(std::string_view build_id) {
  const auto known = std::find_if(fetched_.begin(), fetched_.end(),
                                  [build_id](const Fetched& fetched) { return fetched.build_id == build_id; });
  if (known != fetched_.end()) {
    const int fd = known->fd != nullptr ? ::fcntl(*known->fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (fd < 0) return Error{known->path};
    return Found{fd, known->path};
  }
  if (!offline_) return ask(build_id);
  wanted_ = build_id;
  return Error{"no server was asked"};
}

bool Debuginfod::fetch(std::string_view build_id) {
  for (const Fetched& fetched : fetched_)
    if (fetched.build_id == build_id) return false;
  auto found = ask(build_id);
  Fetched fetched{std::string(build_id), nullptr, found ? found->path : found.error().message};
  if (found)
    fetched.fd = std::shared_ptr<const int>(new int(found->fd), [](const int* fd) {
      ::close(*fd);
      delete fd;  // NOLINT(cppcoreguidelines-owning-memory)
    });
  fetched_.push_back(std::move(fetched));
  return true;
}

std::vector<int> Debuginfod::descriptors() const {
  std::vector<int> all;
  for (const Fetched& fetched : fetched_)
    if (fetched.fd != nullptr) all.push_back(*fetched.fd);
  return all;
}

Result<Debuginfod::Found> Debuginfod::ask(std::string_view build_id) {
  if (!gave_up_.empty()) return Error{gave_up_};
  // The client makes a directory in HOME, whosever that is.
  if (std::getenv("DEBUGINFOD_CACHE_PATH") == nullptr && CacheDirectory::of_user().empty()) {
    gave_up_ =
        "debuginfod servers are not asked: the environment names no cache directory of this user's (HOME, "
        "XDG_CACHE_HOME); DEBUGINFOD_CACHE_PATH may name one for them";
    return Error{gave_up_};
  }
  static Client client;
  static const bool loaded = client.load();
  if (!loaded) {
    gave_up_ = "libdebuginfod.so.1 is not installed (Debian: libdebuginfod1), so DEBUGINFOD_URLS is of no use";
    return Error{gave_up_};
  }
  const Default timeout("DEBUGINFOD_TIMEOUT", std::to_string(patience_));
  const Default retries("DEBUGINFOD_RETRY_LIMIT", "0");
  const Client::Handle handle = client.begin();
  if (handle == nullptr) {
    gave_up_ = "elfutils' debuginfod client does not start";
    return Error{gave_up_};
  }
  char* path = nullptr;
  const int fd = client.find(handle, reinterpret_cast<const unsigned char*>(build_id.data()),
                             static_cast<int>(build_id.size()), &path);
  client.end(handle);
  if (fd >= 0) {
    Found found{fd, path != nullptr ? path : ""};
    std::free(path);
    return found;
  }
  if (fd == -ETIME || fd == -ETIMEDOUT) {
    gave_up_ =
        "the debuginfod servers " + urls() + " do not answer (DEBUGINFOD_TIMEOUT sets how long they are waited for)";
    return Error{gave_up_};
  }
  if (fd == -ENOENT) return Error{"the debuginfod servers " + urls() + " do not have it"};
  gave_up_ = "no debuginfod server of " + urls() + " can be asked: " + std::strerror(-fd);
  return Error{gave_up_};
}

bool DebugSearch::ask_servers() {
  if (servers == nullptr) servers = Debuginfod::of_environment();
  return servers != nullptr;
}

DebugSearch DebugSearch::of_environment() {
  DebugSearch search;
  if (const char* wanted = std::getenv("KARST_DEBUGINFOD"); wanted != nullptr && std::string_view(wanted) == "1")
    search.ask_servers();
  if (const char* text = std::getenv("KARST_DEBUG_DIR"); text != nullptr) {
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(':'), rest.size());
      if (end != 0) search.directories.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return search;
}

}  // namespace karst::binary
