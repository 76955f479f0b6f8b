// SPDX-License-Identifier: MIT
// clang has no specs. Our options stand in front of the user's, so that the user's win, between two marks (clang 14)
// that keep it quiet about those that a step does not use. What is linked in comes along where the command line looks
// like a link; not in relocatable links, whose result is linked again.
#include <algorithm>
#include <array>
#include <string_view>

#include "toolchain/command.h"
#include "toolchain/lists_object.h"
#include "toolchain/response_file.h"

namespace karst::toolchain {
namespace {

constexpr std::array<std::string_view, 26> kWithOperand = {
    "-o",       "-x",       "-D",       "-U",      "-I",         "-L",      "-F",       "-T",          "-u",
    "-z",       "-MF",      "-MT",      "-MQ",     "-MJ",        "-Xclang", "-Xlinker", "-Xassembler", "-Xpreprocessor",
    "-include", "-imacros", "-isystem", "-iquote", "-idirafter", "-target", "-arch",    "-mllvm"};

/// What libkarst.a stands before (runtime/ways_out/ways_out.h); karst-gcc.specs has the same.
constexpr std::array<std::string_view, 11> kWrapped = {"setjmp",     "_setjmp",       "__sigsetjmp",   "getcontext",
                                                       "setcontext", "swapcontext",   "longjmp",       "_longjmp",
                                                       "siglongjmp", "__longjmp_chk", "pthread_create"};

constexpr std::array<std::string_view, 7> kStops = {"-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "--precompile"};

constexpr std::string_view kPatchable = "-fpatchable-function-entry=";

/// Of "N" or "N,M": no NOPs at all.
bool is_zero(const std::string& sizes) {
  return !sizes.empty() && sizes.substr(0, sizes.find(',')).find_first_not_of('0') == std::string::npos;
}

/// What of a command line decides which arguments of ours go along.
struct Overview {
  bool has_input = false;
  bool stops_early = false;         ///< before linking
  bool makes_objects = false;       ///< -c ...
  bool makes_text = false;          ///< ... unless one of these stands beside it
  bool elsewhere = false;           ///< -working-directory
  std::vector<std::string> inputs;  ///< files, as they are named
  std::string output;               ///< -o
  bool relocatable = false;
  bool is_static = false;
  bool own_unwinder = false;  ///< the unwinder is linked into the module
  std::string foreign;        ///< the option that asks for another architecture
  bool own_xray = false;      ///< the user asks for XRay, and so for LLVM's runtime when linking ...
  bool link_deps = true;      ///< ... unless this says no
  bool off = false;           ///< -fno-xray-instrument
  std::string patchable;      ///< -fpatchable-function-entry=N: functions get NOPs in the place of an entry's sled

  bool links() const { return has_input && !stops_early && !relocatable; }

  void see(const std::vector<std::string>& arguments, int depth) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::string& a = arguments[i];
      if (a.size() > 1 && a[0] == '@' && depth < 8) {
        if (const auto words = read_response_file(a.substr(1))) {
          see(*words, depth + 1);
          continue;
        }
      }
      if (a.empty() || a[0] != '-' || a == "-" || a.starts_with("-l") || a.starts_with("-Wl,")) {
        has_input = true;
        if (a.empty() || a[0] != '-' || a == "-") inputs.push_back(a);
        continue;
      }
      see_option(a, i + 1 < arguments.size() ? arguments[i + 1] : std::string());
      if (std::find(kWithOperand.begin(), kWithOperand.end(), a) != kWithOperand.end()) {
        if (a == "-Xlinker") has_input = true;
        ++i;
      }
    }
  }

 private:
  void see_option(const std::string& a, const std::string& next) {
    if (a == "-r") relocatable = true;
    if (a == "-c") makes_objects = true;
    if (a == "-S" || a == "-E" || a == "-M" || a == "-MM") makes_text = true;
    if (a.starts_with("-working-directory")) elsewhere = true;
    if (a == "-o" || a == "--output") output = next;
    if (a.starts_with("-o") && a.size() > 2) output = a.substr(2);
    if (a.starts_with("--output=")) output = a.substr(sizeof "--output=" - 1);
    if (std::find(kStops.begin(), kStops.end(), a) != kStops.end()) stops_early = true;
    if (a == "-static" || a == "-static-pie" || a == "--static") is_static = own_unwinder = true;
    if (a == "-static-libgcc") own_unwinder = true;
    if (a == "-m32" || a == "-mx32" || a == "-m16") foreign = a;
    if (a.starts_with("--target=") && !a.starts_with("--target=x86_64")) foreign = a;
    if (a == "-target" && !next.starts_with("x86_64")) foreign = a + " " + next;
    if (a == "-fxray-instrument") own_xray = true;
    const std::string& option = a == "-Xclang" ? next : a;
    if (option.starts_with(kPatchable)) patchable = is_zero(option.substr(kPatchable.size())) ? "" : option;
    if (a == "-fno-xray-instrument" || a == "-fnoxray-instrument") {
      off = true;
      own_xray = false;
    }
    if (a == "-fxray-link-deps") own_xray = link_deps = true;
    if (a == "-fno-xray-link-deps" || a == "-fnoxray-link-deps") link_deps = false;
  }
};

/// XRay is asked of the compiler proper (-Xclang), not of the driver, which would link LLVM's runtime; how to tell it
/// not to has changed its name between versions.
std::vector<std::string> instrumentation(const Request& request, const Overview& overview) {
  switch (request.method) {
    case Method::kFinstrument:
      return {"-finstrument-functions"};
    case Method::kFinstrumentAfterInlining:
      return {"-finstrument-functions-after-inlining"};
    case Method::kSled:
      break;
  }
  if (overview.off) return {};
  return {"-Xclang", "-fxray-instrument", "-Xclang", "-fxray-instruction-threshold=" + request.threshold};
}

}  // namespace

Result<std::vector<std::string>> clang_command(const std::string& compiler, const Request& request,
                                               const Installation& installed) {
  const auto& rest = request.rest;
  std::vector<std::string> command = {compiler};
  // The driver's own sub-processes, and what is not an order to compile.
  if (!rest.empty() && rest[0].starts_with("-cc1")) {
    command.insert(command.end(), rest.begin(), rest.end());
    return command;
  }
  Overview overview;
  overview.see(rest, 0);
  if (!overview.foreign.empty())
    return Error{overview.foreign + ": only 64-bit x86-64 code can be traced - build this with the plain compiler"};
  if (overview.links() && overview.own_xray && overview.link_deps)
    return Error{
        "-fxray-instrument links LLVM's XRay runtime, which would patch the same sleds as Karst - leave it out, or use "
        "the "
        "plain compiler"};
  if (overview.has_input && !overview.patchable.empty() && request.method == Method::kSled && !overview.off)
    return Error{overview.patchable +
                 ": clang puts its own NOPs in the place of sleds, so nothing of this code would be in a trace - leave "
                 "it out, or use --karst-method=finstrument"};
  if (request.threshold_given && request.method != Method::kSled)
    return Error{"--karst-threshold goes with --karst-method=sled alone; see --karst-min-instructions"};
  command.emplace_back("--start-no-unused-arguments");
  const auto flags = instrumentation(request, overview);
  command.insert(command.end(), flags.begin(), flags.end());
  if (!installed.include.empty()) command.insert(command.end(), {"-idirafter", installed.include});
  if (overview.links()) {
    if (overview.is_static) {  // it cannot load the runtime, so it has it inside
      for (const std::string_view name : kWrapped) command.push_back("-Wl,--wrap=" + std::string(name));
      command.insert(command.end(), {"-u", "karst_register_module", "-u", "karst_static_ways_out",
                                     installed.directory + "/libkarst.a"});
    }
    if (overview.own_unwinder)
      command.insert(command.end(), {"-Wl,--wrap=_Unwind_SetIP", installed.directory + "/own-unwinder.o"});
    command.push_back(installed.directory +
                      (request.method == Method::kSled ? "/module.o" : "/module-finstrument-clang.o"));
    if (!request.lists.empty()) {
      const auto object = as_inherited_file(lists_object(request.lists));
      if (!object) return object.error();
      command.push_back(*object);
    }
  }
  command.emplace_back("--end-no-unused-arguments");
  command.insert(command.end(), rest.begin(), rest.end());
  if (request.with_runtime && overview.links()) {
    command.emplace_back("--start-no-unused-arguments");
    const auto link = runtime_link_arguments(installed);
    command.insert(command.end(), link.begin(), link.end());
    command.emplace_back("--end-no-unused-arguments");
  }
  return command;
}

std::vector<std::string> clang_objects(const Request& request) {
  Overview overview;
  overview.see(request.rest, 0);
  if (request.method != Method::kSled || overview.off || !overview.makes_objects || overview.makes_text ||
      overview.elsewhere || (!request.rest.empty() && request.rest[0].starts_with("-cc1")))
    return {};
  if (!overview.output.empty()) return {overview.output};
  std::vector<std::string> objects;
  for (const std::string& input : overview.inputs) {
    const std::string name = input.substr(input.find_last_of('/') + 1);
    const std::string stem = name.substr(0, name.find_last_of('.'));
    // Objects and archives among the sources are not for this step, and not ours to change.
    if (name != stem + ".o" && name != stem + ".a") objects.push_back(stem + ".o");
  }
  return objects;
}

std::string clang_linked(const Request& request) {
  Overview overview;
  overview.see(request.rest, 0);
  if (request.method != Method::kSled || !overview.links() || overview.elsewhere ||
      (!request.rest.empty() && request.rest[0].starts_with("-cc1")))
    return {};
  return overview.output.empty() ? "a.out" : overview.output;
}

}  // namespace karst::toolchain
