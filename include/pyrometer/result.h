// SPDX-License-Identifier: Apache-2.0
// How functions fail: Result<T> holds a value or an Error.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace pyrometer {

// The kind of failure, as far as a caller may act on it. It also decides the program's exit status,
// see src/cli.
enum class ErrorCode {
  kInternal,              // a bug, or a failure with no better name
  kInvalid,               // the user's input or configuration is wrong
  kNotFound,              // does not exist (any more)
  kPermission,            // privileges are missing
  kUnsupported,           // this kernel or machine cannot do it
  kMalformed,             // input (ELF, perf map, /proc) is not in its format
  kIo,                    // the operating system failed to read or write
  kExhausted,             // a limit or budget was reached
  kLate,                  // who was asked did not answer in time
  kCommandNotFound,       // the command to be profiled does not exist
  kCommandNotExecutable,  // ... or cannot be executed
};

// A failure: a code, and a message that says what failed, on what, and what the user can do.
// Callers add context on the way up: `error.With("reading symbols of /usr/bin/foo")`.
class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same failure, with `context` put before the message.
  Error With(std::string_view context) && {
    return Error(code_, fmt::format("{}: {}", context, message_));
  }

 private:
  ErrorCode code_;
  std::string message_;
};

template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
  Result(Error error) : tl::expected<T, Error>(tl::unexpect, std::move(error)) {}
};

// Makes an Error from a format string: `return Fail(ErrorCode::kInvalid, "no such unit: {}", s);`
template <typename... Args>
Error Fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Error(code, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace pyrometer

#define PYROMETER_CONCAT_(a, b) a##b
#define PYROMETER_CONCAT(a, b) PYROMETER_CONCAT_(a, b)

// Returns the error of `expression`, a Result, from the function if it has one.
#define RETURN_IF_ERROR(expression)                                              \
  do {                                                                           \
    if (auto&& pyrometer_result = (expression); !pyrometer_result.has_value()) { \
      return std::move(pyrometer_result).error();                                \
    }                                                                            \
  } while (false)

// `ASSIGN_OR_RETURN(const Foo foo, MakeFoo());`: declares or assigns, or returns the error.
#define ASSIGN_OR_RETURN(target, expression) \
  PYROMETER_ASSIGN_OR_RETURN_(PYROMETER_CONCAT(pyrometer_result_, __LINE__), target, expression)
#define PYROMETER_ASSIGN_OR_RETURN_(result, target, expression) \
  auto result = (expression);                                   \
  if (!result.has_value()) return std::move(result).error();    \
  target = *std::move(result)
