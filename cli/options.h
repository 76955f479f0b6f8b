// SPDX-License-Identifier: MIT
// How commands declare their options. CLI11 reads the command line, but its header alone takes seconds to compile and
// leaves a copy of itself in each object. So it is included where command lines are read, in options.cc, help.cc,
// main.cc and two more, and the commands know what is here.
//
// Handles: copies mean the same command or option. They are valid while main()'s CLI::App lives.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace karst::cli {

/// What is wrong with a value; empty if nothing is.
using Check = std::function<std::string(const std::string&)>;

/// For options that count: 1 and up. Without the text that CLI11 puts into the help for it.
Check positive();
/// Must be a number from 0 to `most`.
Check number_to(std::uint64_t most);
/// The same for options that are one of some words.
Check one_of(const std::vector<std::string>& words);

/// For options whose text `read` must be able to read.
template <typename Read>
Check readable(Read read) {
  return [read](const std::string& text) {
    const auto value = read(text);
    return value ? std::string() : value.error().message;
  };
}

class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  /// What the help calls its value; empty: nothing.
  Option type_name(const std::string& name) const;
  Option check(const Check& check) const;
  Option required() const;
  /// Whether one mention takes all words that follow, for lists; they do unless this says no.
  Option allow_extra_args(bool allow) const;
  /// It is taken, and is in no list.
  Option unlisted() const;
  /// It may be given several times, with one value each.
  Option repeats() const;
  /// None to `count` values.
  Option at_most(int count) const;
  /// Calls back for each value that was given.
  Option each(const std::function<void(std::string)>& use) const;

 private:
  CLI::Option* option_;
};

class Command {
 public:
  /// `program`: the words of a program that is to be run, once they are known; must outlive it.
  Command(CLI::App* app, const std::vector<std::string>& program) : app_(app), program_(&program) {}
  Command add_subcommand(const std::string& name, const std::string& description) const;
  /// `name`: "-o,--output", or "FILE" for one that is told by its position. `value` must outlive the parse; it is a
  /// string, a number or a vector of strings.
  template <typename T>
  Option add_option(const std::string& name, T& value, const std::string& help) const;
  /// Calls back with all values, as they were typed. More than one are refused, unless the option repeats().
  Option add_option(const std::string& name, const std::function<void(const std::vector<std::string>&)>& use,
                    const std::string& help) const;
  Option add_flag(const std::string& name, bool& value, const std::string& help) const;
  /// `name` says in braces what `value` is if the option has none: "--strip{most}".
  Option add_flag(const std::string& name, std::string& value, const std::string& help) const;
  Option add_flag(const std::string& name, const std::function<void(std::int64_t)>& use, const std::string& help) const;
  /// Runs after the whole command line was read.
  void callback(const std::function<void()>& run) const;
  void footer(const std::string& text) const;
  /// The name of the first option in the help's group `heading` that the command line has, but for `besides`; empty: it
  /// has none.
  std::string given_of(const std::string& heading, const std::string& besides = {}) const;
  CLI::App& app() const { return *app_; }
  /// For who runs a program: its own words. They are there when the callback runs.
  const std::vector<std::string>& program() const { return *program_; }

 private:
  CLI::App* app_;
  const std::vector<std::string>* program_;
};

}  // namespace karst::cli
