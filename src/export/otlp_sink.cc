// SPDX-License-Identifier: Apache-2.0
// The protocol: opentelemetry.io/docs/specs/otlp; the wire format, proto/otlp_profiles.proto.
#include "export/otlp_sink.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "export/answer_limits.h"
#include "export/packing.h"
#include "export/series_labels.h"
#include "profile/deflater.h"
#include "profile/inflate.h"
#include "profile/otlp.h"
#include "proto/otlp_profiles.pb.h"
#include "proto/rpc_status.pb.h"

namespace pyrometer {
namespace {

namespace otlp = opentelemetry::proto::collector::profiles::v1development;

constexpr BatchLimits kOtlpLimits{
    .stacks = 15'000, .bytes = 1'900'000, .depth = 999, .name = kLongestName};
constexpr size_t kLongestRequest = 64 << 20;  // uncompressed; far above what Pack makes
constexpr size_t kKeyBytes = 1024;
constexpr size_t kValueBytes = 2048;

// Label -> attribute of a resource (OpenTelemetry semantic conventions).
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kConventions = {{
    {"service_name", "service.name"},
    {"namespace", "k8s.namespace.name"},
    {"pod", "k8s.pod.name"},
    {"container", "k8s.container.name"},
    {"node", "k8s.node.name"},
    {"cluster", "k8s.cluster.name"},
    {"container_id", "container.id"},
    {"host", "host.name"},
}};

std::string_view ConventionOf(std::string_view label) {
  const auto* const at = std::ranges::find(kConventions, label, [](auto& c) { return c.first; });
  return at == kConventions.end() ? label : at->second;
}

// Keys may be any text, so that only what is no text is changed. A label that bears a
// conventional name itself wins over one that is translated to it.
SeriesLabels AttributesOf(const Labels& labels) {
  SeriesLabels out;
  std::map<std::string, std::string, std::less<>> attributes;
  for (const bool translated : {false, true}) {
    for (const auto& [name, value] : labels) {
      const std::string_view key = ConventionOf(name);
      if (name.empty() || value.empty() || (key != name) != translated) continue;
      if (name.starts_with("__")) {
        if (!name.starts_with("__meta_") && !name.starts_with("__tmp")) {
          ++out.altered["label_reserved"];
        }
        continue;
      }
      const std::string clean = Printable(value, kValueBytes);
      const auto [at, added] = attributes.try_emplace(Printable(key, kKeyBytes), clean);
      if (!added) ++out.altered["label_dropped"];
      if (value.size() > kValueBytes || key.size() > kKeyBytes) {
        ++out.altered["label_shortened"];
      } else if (clean != value || at->first != key) {
        ++out.altered["label_cleaned"];
      }
    }
  }
  attributes.try_emplace("service.name", "unknown_service");  // the specification's own word
  out.labels.assign(attributes.begin(), attributes.end());
  return out;
}

// Servers explain themselves in a google.rpc.Status.
HttpAnswer WithWords(HttpAnswer answer) {
  rpc::Status status;
  if (status.ParseFromString(answer.body) && !status.message().empty()) {
    answer.body = status.message();
  }
  return answer;
}

// What a server says about a request that it took.
Receipt ReceiptOfResponse(const std::string& bytes, uint64_t samples) {
  Receipt receipt;
  otlp::ExportProfilesServiceResponse response;
  // A server that answers 200 has taken it, whatever else it says.
  if (!response.ParseFromString(bytes)) return receipt;
  const otlp::ExportProfilesPartialSuccess& part = response.partial_success();
  receipt.message = Printable(part.error_message(), kServerWordsBytes);
  if (part.rejected_profiles() > 0) {
    receipt.reason = "partial_success";
    receipt.rejected_samples = samples;  // there is one profile in it
  } else if (!receipt.message.empty()) {
    receipt.reason = "warning";
  }
  return receipt;
}

// "http://host:4317/" -> "host:4317"; tells whether the scheme forbids TLS, if there is one.
std::string WithoutScheme(std::string endpoint, bool& insecure) {
  for (const auto& [scheme, plain] :
       {std::pair<std::string_view, bool>{"http://", true}, {"https://", false}}) {
    if (!endpoint.starts_with(scheme)) continue;
    endpoint.erase(0, scheme.size());
    while (endpoint.ends_with('/')) endpoint.pop_back();
    insecure = plain;
  }
  return endpoint;
}

}  // namespace

Result<std::unique_ptr<OtlpSink>> OtlpSink::Make(Options options, const Clock& clock) {
  std::unique_ptr<OtlpSink> sink(new OtlpSink);
  if (!options.grpc) {
    ASSIGN_OR_RETURN(sink->http_,
                     HttpClient::Make(std::move(options.endpoint), std::move(options.client)));
    return sink;
  }
  bool insecure = options.insecure;
  std::string address = WithoutScheme(std::move(options.endpoint), insecure);
  ASSIGN_OR_RETURN(sink->grpc_, GrpcClient::Make({.address = std::move(address),
                                                  .insecure = insecure,
                                                  .gzip = true,
                                                  .client = std::move(options.client)},
                                                 clock));
  return sink;
}

Packed OtlpSink::Pack(const Profile& profile) const {
  const SeriesLabels attributes = AttributesOf(profile.labels);
  const OtlpOptions options{.resource = attributes.labels, .name = kLongestName};
  return PackBatches(profile, attributes, kOtlpLimits, [&](std::span<const StackCount> stacks) {
    Deflater gzip(Deflater::Format::kGzip);
    gzip.Append(EncodeOtlp(profile, stacks, options));
    return std::move(gzip).Finish();
  });
}

Receipt OtlpSink::Deliver(const Parcel& parcel) {
  if (http_ != nullptr) {
    const auto answer = http_->Post(
        {.path = "/v1development/profiles",
         .body = parcel.body,
         .headers = {"Content-Type: application/x-protobuf", "Content-Encoding: gzip"}});
    if (!answer) return answer.error();
    Receipt receipt = ReceiptOf(WithWords(*answer));
    if (receipt.outcome != Outcome::kDelivered) return receipt;
    return ReceiptOfResponse(answer->body, parcel.samples);
  }
  // gRPC's library compresses messages itself and cannot be given a compressed one.
  const Result<std::string> plain = Inflated(parcel.body, kLongestRequest);
  if (!plain) {
    return {
        .outcome = Outcome::kRejected, .reason = "bad_parcel", .message = plain.error().message()};
  }
  const auto answer = grpc_->Call(
      "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export", *plain);
  return answer ? ReceiptOfResponse(*answer, parcel.samples) : answer.error();
}

void OtlpSink::Cancel() {
  if (http_ != nullptr) http_->Cancel();
  if (grpc_ != nullptr) grpc_->Cancel();
}

}  // namespace pyrometer
