// SPDX-License-Identifier: MIT
#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "base/suggestion.h"

namespace karst::cli {
namespace {

/// The whole text as a number.
std::optional<std::uint64_t> number_in(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

Check positive() {
  return [](const std::string& text) {
    return number_in(text).value_or(0) != 0 ? std::string() : "'" + text + "' is no number from 1 on";
  };
}

Check number_to(std::uint64_t most) {
  return [most](const std::string& text) {
    const auto number = number_in(text);
    return number && *number <= most ? std::string() : fmt::format("'{}' is no number from 0 to {}", text, most);
  };
}

Check one_of(const std::vector<std::string>& words) {
  return [words](const std::string& text) {
    if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
    std::string list;
    for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
    return "'" + text + "' is none of " + list + did_you_mean(text, words);
  };
}

Option Option::type_name(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

Option Option::check(const Check& check) const {
  option_->check(CLI::Validator([check](const std::string& text) { return check(text); }, ""));
  return *this;
}

Option Option::required() const {
  option_->required();
  return *this;
}

Option Option::allow_extra_args(bool allow) const {
  option_->allow_extra_args(allow);
  return *this;
}

Option Option::unlisted() const {
  option_->group("");
  return *this;
}

Option Option::repeats() const {
  option_->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args(false);
  return *this;
}

Option Option::at_most(int count) const {
  option_->expected(0, count);
  return *this;
}

Option Option::each(const std::function<void(std::string)>& use) const {
  option_->each(use);
  return *this;
}

Command Command::add_subcommand(const std::string& name, const std::string& description) const {
  return {app_->add_subcommand(name, description), *program_};
}

template <typename T>
Option Command::add_option(const std::string& name, T& value, const std::string& help) const {
  return Option(app_->add_option(name, value, help));
}
template Option Command::add_option(const std::string&, std::string&, const std::string&) const;
template Option Command::add_option(const std::string&, std::vector<std::string>&, const std::string&) const;
template Option Command::add_option(const std::string&, std::uint32_t&, const std::string&) const;
template Option Command::add_option(const std::string&, std::uint64_t&, const std::string&) const;
template Option Command::add_option(const std::string&, std::optional<std::string>&, const std::string&) const;
template Option Command::add_option(const std::string&, std::optional<std::uint32_t>&, const std::string&) const;
template Option Command::add_option(const std::string&, std::optional<std::uint64_t>&, const std::string&) const;
template Option Command::add_option(const std::string&, double&, const std::string&) const;

Option Command::add_option(const std::string& name, const std::function<void(const std::vector<std::string>&)>& use,
                           const std::string& help) const {
  const auto take = [use](const CLI::results_t& values) {
    use(values);
    return true;
  };
  return Option(app_->add_option(name, take, help));
}

Option Command::add_flag(const std::string& name, bool& value, const std::string& help) const {
  return Option(app_->add_flag(name, value, help));
}

Option Command::add_flag(const std::string& name, std::string& value, const std::string& help) const {
  return Option(app_->add_flag(name, value, help));
}

Option Command::add_flag(const std::string& name, const std::function<void(std::int64_t)>& use,
                         const std::string& help) const {
  return Option(app_->add_flag_function(name, use, help));
}

void Command::callback(const std::function<void()>& run) const { app_->callback(run); }

void Command::footer(const std::string& text) const { app_->footer(text); }

std::string Command::given_of(const std::string& heading, const std::string& besides) const {
  for (const CLI::Option* option : app_->get_options()) {
    if (option->count() == 0 || option->get_group() != heading || option->get_lnames().empty()) continue;
    if (const std::string name = "--" + option->get_lnames().front(); name != besides) return name;
  }
  return {};
}

}  // namespace karst::cli
