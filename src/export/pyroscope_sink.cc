// SPDX-License-Identifier: Apache-2.0
// The protocols: github.com/grafana/pyroscope, api/push/v1/push.proto and pkg/ingester/pyroscope;
// push.v1 over Connect (connectrpc.com/docs/protocol). Limits: its pkg/validation/limits.go.
#include "export/pyroscope_sink.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <tuple>

#include "export/packing.h"
#include "export/series_labels.h"
#include "profile/pprof.h"
#include "profile/stack_batches.h"
#include "proto/push.pb.h"

namespace pyrometer {
namespace {

constexpr size_t kOwnLabels = 2;  // __name__ and __delta__
constexpr LabelRules kPyroscopeLabels{.labels = 30 - kOwnLabels, .name = 1024, .value = 2048};
constexpr BatchLimits kPyroscopeLimits{
    .stacks = 15'000, .bytes = 1'900'000, .depth = 999, .name = kLongestName};

// A random UUID; the server writes it into its log. Asks the kernel, since on a virtual machine the
// instruction behind std::random_device took 20 us here, a ninth of the agent's time with 300 label
// sets.
std::string NewId() {
  std::array<uint32_t, 4> bits{};
  // So few bytes are given at once; before the kernel is ready any number will do.
  std::ignore = ::getrandom(bits.data(), sizeof(bits), GRND_NONBLOCK);
  bits[1] = (bits[1] & 0xFFFF0FFFU) | 0x4000U;
  bits[2] = (bits[2] & 0x3FFFFFFFU) | 0x80000000U;
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:04x}{:08x}", bits[0], bits[1] >> 16,
                     bits[1] & 0xFFFFU, bits[2] >> 16, bits[2] & 0xFFFFU, bits[3]);
}

// What the labels say by themselves, for a server that knows profiles by name and labels.
void AddLabels(const Labels& labels, push::v1::RawProfileSeries& series) {
  Labels all = labels;
  all.emplace_back("__name__", "process_cpu");
  all.emplace_back("__delta__", "false");  // the profile is of its window already
  std::sort(all.begin(), all.end());
  for (const auto& [name, value] : all) {
    push::v1::LabelPair& pair = *series.add_labels();
    pair.set_name(name);
    pair.set_value(value);
  }
}

// Every byte but letters, digits and "-_." as %XX.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    escaped += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<uint8_t>(c));
  }
  return escaped;
}

// /ingest has labels as app{name=value,...}, without any way to quote.
std::string WithoutDelimiters(std::string value) {
  std::ranges::replace_if(
      value, [](char c) { return c == ',' || c == '{' || c == '}' || c == '='; }, '_');
  return value;
}

std::string IngestPath(const push::v1::RawProfileSeries& series) {
  std::string service = "unknown_service";
  std::string labels;
  for (const push::v1::LabelPair& label : series.labels()) {
    if (label.name().starts_with("__")) continue;
    if (label.name() == "service_name") {
      service = WithoutDelimiters(label.value());
      continue;
    }
    if (!labels.empty()) labels += ',';
    labels += fmt::format("{}={}", label.name(), WithoutDelimiters(label.value()));
  }
  return fmt::format("/ingest?name={}&format=pprof&spyName=pyrometer",
                     Escaped(fmt::format("{}{{{}}}", service, labels)));
}

// True if the answer says that the profile cannot be read: such a 500 is permanent. Its words come
// from the libraries that the server decodes with; what they do not cover counts as temporary.
bool CannotDecode(const HttpAnswer& answer) {
  constexpr int kServerError = 500;
  constexpr std::array<std::string_view, 7> kWords = {
      "unmarshal", "gzip", "proto:", "decompress", "checksum", "malformed", "unexpected EOF"};
  return answer.status == kServerError && std::ranges::any_of(kWords, [&](std::string_view word) {
           return answer.body.find(word) != std::string::npos;
         });
}

Receipt ReceiptFor(const tl::expected<HttpAnswer, Receipt>& answer) {
  if (!answer) return answer.error();
  Receipt receipt = ReceiptOf(*answer);
  if (CannotDecode(*answer)) {
    receipt.outcome = Outcome::kRejected;
    receipt.reason = "undecodable";
  }
  return receipt;
}

}  // namespace

Result<std::unique_ptr<PyroscopeSink>> PyroscopeSink::Make(Options options) {
  if (!options.tenant.empty()) {
    options.client.headers.emplace_back("X-Scope-OrgID", options.tenant);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<HttpClient> http,
                   HttpClient::Make(std::move(options.url), std::move(options.client)));
  return std::unique_ptr<PyroscopeSink>(new PyroscopeSink(std::move(http), options.ingest));
}

Packed PyroscopeSink::Pack(const Profile& profile) const {
  const SeriesLabels labels = FitLabels(profile.labels, kPyroscopeLabels);
  // With functions claimed, the server replaces every address by 0.
  const PprofOptions options{.has_functions = false, .name = kLongestName};
  return PackBatches(profile, labels, kPyroscopeLimits, [&](std::span<const StackCount> stacks) {
    push::v1::PushRequest request;
    push::v1::RawProfileSeries& series = *request.add_series();
    AddLabels(labels.labels, series);
    push::v1::RawSample& sample = *series.add_samples();
    sample.set_raw_profile(EncodePprofBatch(profile, stacks, options).gzip);
    sample.set_id(NewId());
    return request.SerializeAsString();
  });
}

Receipt PyroscopeSink::Deliver(const Parcel& parcel) {
  if (ingest_) return Ingest(parcel);
  return ReceiptFor(
      http_->Post({.path = "/push.v1.PusherService/Push",
                   .body = parcel.body,
                   .headers = {"Content-Type: application/proto", "Connect-Protocol-Version: 1"}}));
}

Receipt PyroscopeSink::Ingest(const Parcel& parcel) {
  push::v1::PushRequest request;
  if (!request.ParseFromString(parcel.body) || request.series_size() != 1 ||
      request.series(0).samples_size() != 1) {
    return {.outcome = Outcome::kRejected,
            .reason = "bad_parcel",
            .message = "the parcel is not one of this sink's"};
  }
  return ReceiptFor(http_->Post({.path = IngestPath(request.series(0)),
                                 .body = request.series(0).samples(0).raw_profile(),
                                 .headers = {"Content-Type: application/octet-stream"}}));
}

}  // namespace pyrometer
