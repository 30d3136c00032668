// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include "pyrometer/result.h"

namespace pyrometer {

// Of several sources of containers, those in whose place others are asked: there is none, it may
// not be asked, or it speaks another protocol.
class AbsentSources {
 public:
  // Whether `error` is that of such a one.
  bool Take(const Error& error) {
    const bool is_absence = IsAbsence(error);
    if (!is_absence && error.code() != ErrorCode::kPermission) return false;
    if (!error_ || (IsAbsence(*error_) && !is_absence)) {
      error_ = error;
    } else if (IsAbsence(*error_)) {
      error_ = Error(error_->code(), error_->message() + "; " + error.message());
    }
    return true;
  }

  // For when no other answers: the first that may not be asked, else where all were looked for.
  // REQUIRES: Take() was true.
  Error Why() && { return *std::move(error_); }

 private:
  static bool IsAbsence(const Error& error) {
    return error.code() == ErrorCode::kNotFound || error.code() == ErrorCode::kUnsupported;
  }

  std::optional<Error> error_;
};

}  // namespace pyrometer
