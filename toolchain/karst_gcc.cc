// karst-gcc and karst-g++ (by the name it is run under): the real compiler with the specs that make it emit sleds.
//
// The compiler is KARST_CC / KARST_CXX, or gcc / g++. All arguments pass unchanged; the specs do the rest
// (karst-gcc.specs).
// --karst-link also links the runtime into what is linked, for programs that shall trace without LD_PRELOAD.
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// Where the specs, module.o and karst-as are: ../lib/karst beside the directory of this program.
std::string toolchain_directory() {
  char self[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n <= 0) return {};
  std::string path(self, static_cast<std::size_t>(n));
  path.resize(path.find_last_of('/'));
  path.resize(path.find_last_of('/'));
  return path + "/lib/karst";
}

}  // namespace

int main(int argc, char** argv) {
  const bool cxx = std::string_view(argv[0]).ends_with("++");
  const char* name = cxx ? "karst-g++" : "karst-gcc";
  const std::string directory = toolchain_directory();
  const std::string specs = directory + "/karst-gcc.specs";
  if (access(specs.c_str(), R_OK) != 0) {
    std::fprintf(stderr, "%s: cannot read %s: %s; is Karst installed whole?\n", name, specs.c_str(),
                 std::strerror(errno));
    return 1;
  }
  const char* variable = cxx ? "KARST_CXX" : "KARST_CC";
  const char* chosen = getenv(variable);
  std::string compiler = chosen != nullptr && *chosen != '\0' ? chosen : cxx ? "g++" : "gcc";
  if (compiler.find("clang") != std::string::npos) {
    std::fprintf(stderr, "%s: %s=%s: clang is not supported yet; set it to a gcc (11 or newer), or unset it\n", name,
                 variable, compiler.c_str());
    return 1;
  }
  setenv("KARST_TOOLCHAIN_DIR", directory.c_str(), 1);

  std::vector<std::string> link;
  std::vector<char*> arguments;
  std::string specs_option = "-specs=" + specs;
  arguments.push_back(compiler.data());
  arguments.push_back(specs_option.data());
  bool with_runtime = false;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--karst-link")
      with_runtime = true;
    else
      arguments.push_back(argv[i]);
  }
  if (with_runtime) {
    const std::string libraries = directory.substr(0, directory.find_last_of('/'));
    link = {"-L" + libraries, "-Wl,-rpath," + libraries, "-Wl,--push-state,--no-as-needed", "-lkarst",
            "-Wl,--pop-state"};
    for (std::string& a : link) arguments.push_back(a.data());
  }
  arguments.push_back(nullptr);
  execvp(compiler.c_str(), arguments.data());
  std::fprintf(stderr, "%s: cannot run %s: %s; set %s to the compiler to use\n", name, compiler.c_str(),
               std::strerror(errno), variable);
  return 127;
}
