// SPDX-License-Identifier: MIT
// How libraries of this project report failure: a value or an Error. Only cli/ prints and exits.
#pragma once
#include <string>
#include <utility>
#include <variant>

namespace karst {

/// What went wrong: what happened, to which file, and what to do. Written for the user.
struct Error {
  std::string message;
};

/// A T or an Error (what std::expected is from C++23 on).
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  /// Requires ok().
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  /// Requires !ok().
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

/// Success without a value.
struct Unit {};
using Status = Result<Unit>;

}  // namespace karst
