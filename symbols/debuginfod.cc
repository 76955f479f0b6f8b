#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "symbols/debug_search.h"

namespace karst::symbols {
namespace {

/// What is used of libdebuginfod.so.1; its header is not needed for four functions.
struct Client {
  using Handle = void*;
  using Progress = int (*)(Handle, long, long);
  Handle (*begin)() = nullptr;
  void (*end)(Handle) = nullptr;
  int (*find)(Handle, const unsigned char*, int, char**) = nullptr;
  void (*set_progress)(Handle, Progress) = nullptr;
  void (*set_data)(Handle, void*) = nullptr;
  void* (*get_data)(Handle) = nullptr;

  bool load() {
    // Never closed: it starts libcurl, which may leave threads.
    void* library = ::dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    return library != nullptr && take(library, "debuginfod_begin", begin) && take(library, "debuginfod_end", end) &&
           take(library, "debuginfod_find_debuginfo", find) &&
           take(library, "debuginfod_set_progressfn", set_progress) &&
           take(library, "debuginfod_set_user_data", set_data) && take(library, "debuginfod_get_user_data", get_data);
  }

 private:
  template <typename Function>
  static bool take(void* library, const char* name, Function& to) {
    to = reinterpret_cast<Function>(::dlsym(library, name));
    return to != nullptr;
  }
};

/// What the client's progress function sees: it is called several times a second, and ends the transfer by returning 1.
struct Watch {
  const Client* client = nullptr;
  long received = 0;
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
  bool impatient = false;
};
const Client* watched_client = nullptr;  // the function is not given where the data is

int watch(void* handle, long received, long) {
  auto* seen = static_cast<Watch*>(watched_client->get_data(handle));
  if (seen == nullptr) return 0;
  const auto now = std::chrono::steady_clock::now();
  if (received != seen->received) {
    seen->received = received;
    seen->last = now;
  }
  seen->impatient = now - seen->last > std::chrono::seconds(Debuginfod::kPatience);
  return seen->impatient ? 1 : 0;
}

std::string urls() {
  const char* text = std::getenv("DEBUGINFOD_URLS");
  return text == nullptr ? std::string() : std::string(text);
}

}  // namespace

std::shared_ptr<Debuginfod> Debuginfod::of_environment() {
  return urls().find_first_not_of(' ') == std::string::npos ? nullptr : std::make_shared<Debuginfod>();
}

Result<Debuginfod::Found> Debuginfod::find(std::string_view build_id) {
  if (!gave_up_.empty()) return Error{gave_up_};
  static Client client;
  static const bool loaded = client.load();
  if (!loaded) {
    gave_up_ = "libdebuginfod.so.1 is not installed (Debian: libdebuginfod1), so DEBUGINFOD_URLS is of no use";
    return Error{gave_up_};
  }
  watched_client = &client;
  const Client::Handle handle = client.begin();
  if (handle == nullptr) {
    gave_up_ = "elfutils' debuginfod client does not start";
    return Error{gave_up_};
  }
  Watch seen;
  client.set_data(handle, &seen);
  client.set_progress(handle, watch);
  char* path = nullptr;
  const int fd = client.find(handle, reinterpret_cast<const unsigned char*>(build_id.data()),
                             static_cast<int>(build_id.size()), &path);
  client.end(handle);
  if (fd >= 0) {
    Found found{fd, path != nullptr ? path : ""};
    std::free(path);
    return found;
  }
  if (seen.impatient) {
    gave_up_ = "the debuginfod servers " + urls() + " sent nothing for " + std::to_string(kPatience) + " seconds";
    return Error{gave_up_};
  }
  if (fd == -ENOENT) return Error{"the debuginfod servers " + urls() + " do not have it"};
  gave_up_ = "no debuginfod server of " + urls() + " can be asked: " + std::strerror(-fd);
  return Error{gave_up_};
}

DebugSearch DebugSearch::of_environment() {
  DebugSearch search;
  search.servers = Debuginfod::of_environment();
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

}  // namespace karst::symbols
