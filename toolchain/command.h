// SPDX-License-Identifier: MIT
// The command lines that the wrappers run.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "toolchain/request.h"

namespace karst::toolchain {

/// Where the wrappers' files are.
struct Installation {
  std::string directory;  ///< lib/karst: specs, module objects, karst-as
  std::string include;    ///< what holds karst/karst.h; empty when the compiler finds it by itself
};

/// For gcc and its kin (g++, gfortran, gnat by gcc): specs make the driver itself decide when it compiles, assembles
/// and links.
Result<std::vector<std::string>> gcc_command(const std::string& compiler, const Request& request,
                                             const Installation& installed);

/// For clang and clang++, 14 or newer.
Result<std::vector<std::string>> clang_command(const std::string& compiler, const Request& request,
                                               const Installation& installed);

/// The object files that such a command writes before any linker, where their names are known: their tables of sleds
/// can be shortened (toolchain/clang_objects.h). Of a command that compiles and links at once they are not.
std::vector<std::string> clang_objects(const Request& request);

/// The program or library that such a command links; empty: none.
std::string clang_linked(const Request& request);

/// gnatmake compiles by gcc and links by gnatlink, which are to be karst-gcc, with our options, and one that runs it.
/// `karst_gcc` is its path. Errors in options are karst-gcc's to tell.
std::vector<std::string> gnatmake_command(const std::string& gnatmake, const std::string& karst_gcc,
                                          const std::vector<std::string>& arguments);

/// What the driver passes to the linker for --karst-link.
std::vector<std::string> runtime_link_arguments(const Installation& installed);

}  // namespace karst::toolchain
