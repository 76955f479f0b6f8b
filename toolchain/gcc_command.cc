// SPDX-License-Identifier: MIT
#include "toolchain/command.h"
#include "toolchain/lists_object.h"

namespace karst::toolchain {

std::vector<std::string> runtime_link_arguments(const Installation& installed) {
  const std::string libraries = installed.directory.substr(0, installed.directory.find_last_of('/'));
  return {"-L" + libraries, "-Wl,-rpath," + libraries, "-Wl,--push-state,--no-as-needed", "-lkarst", "-Wl,--pop-state"};
}

Result<std::vector<std::string>> gcc_command(const std::string& compiler, const Request& request,
                                             const Installation& installed) {
  if (request.method == Method::kFinstrumentAfterInlining)
    return Error{
        "--karst-method=finstrument-after-inlining: gcc has no such instrumentation, clang has; use karst-clang, "
        "or --karst-method=finstrument"};
  if (request.threshold_given)
    return Error{
        "--karst-threshold is clang's; for gcc use --karst-min-instructions, which leaves out when the "
        "program starts"};
  std::vector<std::string> command = {compiler};
  command.push_back("-specs=" + installed.directory +
                    (request.method == Method::kSled ? "/karst-gcc.specs" : "/karst-gcc-finstrument.specs"));
  if (!installed.include.empty()) command.insert(command.end(), {"-idirafter", installed.include});
  if (!request.lists.empty()) {
    const auto object = as_inherited_file(lists_object(request.lists));
    if (!object) return object.error();
    const auto specs = as_inherited_file("*startfile:\n+ %{!r:" + *object + "}\n\n");
    if (!specs) return specs.error();
    command.push_back("-specs=" + *specs);
  }
  command.insert(command.end(), request.rest.begin(), request.rest.end());
  if (request.with_runtime) {
    const auto link = runtime_link_arguments(installed);
    command.insert(command.end(), link.begin(), link.end());
  }
  return command;
}

std::vector<std::string> gnatmake_command(const std::string& gnatmake, const std::string& karst_gcc,
                                          const std::vector<std::string>& arguments) {
  std::string driver = karst_gcc;
  std::vector<std::string> command = {gnatmake};
  for (const std::string& a : arguments)
    if (a.starts_with(kOwnPrefix)) driver += " " + a;
  command.push_back("--GCC=" + driver);
  command.push_back("--GNATLINK=gnatlink --GCC=" + karst_gcc);
  command.emplace_back("-largs");
  for (const std::string& a : arguments)
    if (a.starts_with(kOwnPrefix)) command.push_back(a);
  command.emplace_back("-margs");
  for (const std::string& a : arguments)
    if (!a.starts_with(kOwnPrefix)) command.push_back(a);
  return command;
}

}  // namespace karst::toolchain
