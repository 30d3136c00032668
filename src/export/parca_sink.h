// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "export/client_options.h"
#include "export/grpc_client.h"
#include "pyrometer/result.h"
#include "pyrometer/sink.h"

namespace pyrometer {

// A Parca server, or what speaks its protocol (Polar Signals Cloud). A parcel is one
// parca.profilestore.v1alpha1.WriteRawRequest with one profile, delivered by gRPC; the profile type
// is process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta, and the same with samples:count. Never by
// OTLP, which Parca reads wrongly. Requests stay far below the server's 64 MiB. Outcomes: as
// GrpcClient::Call. Thread-safe.
class ParcaSink final : public ProfileSink {
 public:
  struct Options {
    std::string address;    // "host:7070"
    bool insecure = false;  // no TLS
    ClientOptions client{};
  };

  // As GrpcClient::Make. Connects to nothing yet.
  static Result<std::unique_ptr<ParcaSink>> Make(Options options, const Clock& clock);

  Packed Pack(const Profile& profile) const override;
  Receipt Deliver(const Parcel& parcel) override;
  void Cancel() override { grpc_->Cancel(); }

 private:
  explicit ParcaSink(std::unique_ptr<GrpcClient> grpc) : grpc_(std::move(grpc)) {}

  const std::unique_ptr<GrpcClient> grpc_;
};

}  // namespace pyrometer
