// SPDX-License-Identifier: Apache-2.0
#include "export/grpc_receipt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/printable.h"
#include "export/answer_limits.h"
#include "proto/rpc_status.pb.h"

namespace pyrometer {
namespace {

constexpr int64_t kLongestRetrySeconds = 3600;
constexpr std::string_view kRefusedStream = "RST_STREAM with error code 7";

struct StatusKind {
  std::string_view name;
  Outcome outcome;  // if it is the server's
};

// By code, 0 to 16. OTLP's retryable ones that do not say whether the request was worked on are
// "maybe", since servers count what comes twice.
constexpr std::array<StatusKind, 17> kKinds = {{
    {"ok", Outcome::kDelivered},
    {"cancelled", Outcome::kMaybeArrived},
    {"unknown", Outcome::kRejected},
    {"invalid_argument", Outcome::kRejected},
    {"timeout", Outcome::kMaybeArrived},
    {"not_found", Outcome::kRejected},
    {"already_exists", Outcome::kRejected},
    {"permission_denied", Outcome::kNotArrived},
    {"resource_exhausted", Outcome::kRejected},
    {"failed_precondition", Outcome::kRejected},
    {"aborted", Outcome::kNotArrived},
    {"out_of_range", Outcome::kNotArrived},
    {"unimplemented", Outcome::kRejected},
    {"internal", Outcome::kRejected},
    {"unavailable", Outcome::kNotArrived},
    {"data_loss", Outcome::kMaybeArrived},
    {"unauthenticated", Outcome::kNotArrived},
}};

StatusKind KindOf(grpc::StatusCode code) {
  const auto index = static_cast<size_t>(code);
  return index < kKinds.size() ? kKinds[index] : kKinds[grpc::StatusCode::UNKNOWN];
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::optional<std::chrono::nanoseconds> RetryDelayOf(const std::string& details) {
  rpc::Status status;
  if (details.empty() || !status.ParseFromString(details)) return std::nullopt;
  for (const rpc::Any& detail : status.details()) {
    rpc::RetryInfo info;
    if (!std::string_view(detail.type_url()).ends_with("/google.rpc.RetryInfo") ||
        !info.ParseFromString(detail.value())) {
      continue;
    }
    const rpc::Duration& delay = info.retry_delay();
    const int64_t seconds = std::clamp<int64_t>(delay.seconds(), 0, kLongestRetrySeconds);
    const int32_t nanos = std::clamp(delay.nanos(), 0, 999'999'999);
    return std::chrono::seconds(seconds) + std::chrono::nanoseconds(nanos);
  }
  return std::nullopt;
}

// Why a request was not even sent, by the library's words.
std::string_view ReasonOfUnsent(const grpc::Status& status) {
  const std::string words = status.error_message();
  const StatusKind kind = KindOf(status.error_code());
  if (kind.outcome == Outcome::kMaybeArrived) return kind.name;  // our deadline, or Cancel
  if (Contains(words, "DNS resolution")) return "resolve";
  for (const std::string_view sign : {"andshake", "SSL", "TLS", "certificate", "ALPN"}) {
    if (Contains(words, sign)) return "tls";
  }
  return "connect";
}

// A status that the library made up from a proxy's HTTP status, or for want of any.
void Judge(const grpc::Status& status, Receipt& receipt) {
  using grpc::StatusCode;
  const StatusCode code = status.error_code();
  if (code == StatusCode::UNIMPLEMENTED || code == StatusCode::UNAUTHENTICATED ||
      code == StatusCode::PERMISSION_DENIED) {
    return;
  }
  for (const std::string_view busy : {"status: 429", "status: 503"}) {
    if (Contains(status.error_message(), busy)) return;
  }
  receipt.outcome = Outcome::kMaybeArrived;
  if (IsOfTrouble(status) && code != StatusCode::CANCELLED) receipt.reason = "connection_lost";
}

}  // namespace

bool IsOfTrouble(const grpc::Status& status) {
  using grpc::StatusCode;
  const StatusCode code = status.error_code();
  return code == StatusCode::UNAVAILABLE || code == StatusCode::UNKNOWN ||
         code == StatusCode::INTERNAL || code == StatusCode::CANCELLED;
}

bool SpeaksOfConnection(const grpc::Status& status) {
  // A stream that was refused (HTTP/2 error 7) was not worked on.
  if (!IsOfTrouble(status) || Contains(status.error_message(), kRefusedStream)) return false;
  constexpr std::array<std::string_view, 9> kWords = {
      "Socket closed", "Connection reset", "Broken pipe",          "Transport closed", "RST_STREAM",
      "GOAWAY",        "Stream removed",   "Connection timed out", "No route to host"};
  return std::ranges::any_of(
      kWords, [&](std::string_view words) { return Contains(status.error_message(), words); });
}

Receipt ReceiptOf(const grpc::Status& status, CallEnd end) {
  const StatusKind kind = KindOf(status.error_code());
  Receipt receipt{.outcome = kind.outcome, .reason = std::string(kind.name)};
  receipt.message =
      fmt::format("gRPC {}: {}", kind.name, Printable(status.error_message(), kServerWordsBytes));
  if (end == CallEnd::kNeverSent) {
    receipt.outcome = Outcome::kNotArrived;
    receipt.reason = ReasonOfUnsent(status);
    return receipt;
  }
  if (end == CallEnd::kAlone) Judge(status, receipt);
  receipt.retry_after = RetryDelayOf(status.error_details());
  if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED && receipt.retry_after) {
    receipt.outcome = Outcome::kNotArrived;
  }
  if (!receipt.retry_after && (status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
                               status.error_code() == grpc::StatusCode::PERMISSION_DENIED)) {
    receipt.retry_after = kAskAgainWithOtherCredentials;
  }
  return receipt;
}

}  // namespace pyrometer
