// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "export/client_options.h"
#include "export/grpc_client.h"
#include "export/http_client.h"
#include "pyrometer/result.h"
#include "pyrometer/sink.h"

namespace pyrometer {

// A receiver of OTLP profiles 1.10 or 1.11 (OpenTelemetry collector 0.148 or newer), by HTTP or
// gRPC. A parcel is one gzipped ExportProfilesServiceRequest with one profile, see EncodeOtlp; the
// profile's labels are attributes of its resource, by the names of the semantic conventions where
// those have one: service_name is service.name, pod is k8s.pod.name.
//
// Requests stay below gRPC's usual 4 MiB, and below what Pyroscope takes, which is one of those
// receivers. Outcomes: as ReceiptOf and GrpcClient::Call. What a server rejects of a request that
// it accepts (partial_success) is in rejected_samples; a warning of it, with none rejected, in
// message. Thread-safe.
class OtlpSink final : public ProfileSink {
 public:
  struct Options {
    // HTTP: "http://collector:4318", to which /v1development/profiles is added. gRPC:
    // "collector:4317", or the same as a URL: http: no TLS, https: TLS.
    std::string endpoint;
    bool grpc = false;
    bool insecure = false;  // gRPC to a bare address: no TLS
    ClientOptions client{};
  };

  // As HttpClient::Make and GrpcClient::Make. Connects to nothing yet.
  static Result<std::unique_ptr<OtlpSink>> Make(Options options, const Clock& clock);

  Packed Pack(const Profile& profile) const override;
  Receipt Deliver(const Parcel& parcel) override;
  void Cancel() override;

 private:
  OtlpSink() = default;

  std::unique_ptr<HttpClient> http_;  // one of them
  std::unique_ptr<GrpcClient> grpc_;
};

}  // namespace pyrometer
