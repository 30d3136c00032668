// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/printable.h"
#include "base/text.h"
#include "export/answer_limits.h"
#include "export/http_client.h"

namespace pyrometer {
namespace {

Outcome OutcomeOf(int status) {
  switch (status) {
    case 401:
    case 403:
    case 407:
    case 408:
    case 425:
    case 429:
    case 503:
      return Outcome::kNotArrived;
    case 501:
    case 505:
      return Outcome::kRejected;
    default:
      break;
  }
  if (status >= 200 && status < 300) return Outcome::kDelivered;
  return status >= 500 ? Outcome::kMaybeArrived : Outcome::kRejected;
}

bool IsAboutCredentials(int status) {
  return status == 401 || status == 403 || status == 407;
}

}  // namespace

Receipt ReceiptOf(const HttpAnswer& answer) {
  Receipt receipt{.outcome = OutcomeOf(answer.status)};
  if (receipt.outcome == Outcome::kDelivered) return receipt;
  receipt.reason = fmt::format("http_{}", answer.status);
  receipt.message = fmt::format("HTTP {}", answer.status);
  const std::string_view words = Trim(answer.body);
  if (!words.empty()) receipt.message += ": " + Printable(words, kServerWordsBytes);
  receipt.retry_after = answer.retry_after;
  if (!receipt.retry_after && IsAboutCredentials(answer.status)) {
    receipt.retry_after = kAskAgainWithOtherCredentials;
  }
  return receipt;
}

}  // namespace pyrometer
