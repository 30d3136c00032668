// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "export/client_options.h"
#include "export/http_client.h"
#include "pyrometer/result.h"
#include "pyrometer/sink.h"

namespace pyrometer {

// A Pyroscope server, or what speaks its protocols. A parcel is a push.v1.PushRequest with one
// profile, since servers store parts of larger requests and name one reason only; /ingest gets the
// profile in it and its labels in the address.
//
// Splits profiles so that requests stay below the server's defaults: 16,000 samples, and 2 MB
// uncompressed, above which its rate limit refuses for ever. Stacks are cut to 1,000 frames at the
// root; the server would cut leaves.
//
// Outcomes: as ReceiptOf, except that a 500 for a profile which the server cannot decode is a
// rejection: it would fail again. All other 500s are temporary (no ingester, a full disk) and may
// have stored the profile. Thread-safe.
class PyroscopeSink final : public ProfileSink {
 public:
  struct Options {
    std::string url;       // "http://host:4040", with a prefix if a proxy wants one
    std::string tenant{};  // X-Scope-OrgID; "": none
    bool ingest = false;   // POST /ingest, for servers without push.v1
    ClientOptions client{};
  };

  // As HttpClient::Make. Connects to nothing yet.
  static Result<std::unique_ptr<PyroscopeSink>> Make(Options options);

  Packed Pack(const Profile& profile) const override;
  Receipt Deliver(const Parcel& parcel) override;
  void Cancel() override { http_->Cancel(); }

 private:
  PyroscopeSink(std::unique_ptr<HttpClient> http, bool ingest)
      : http_(std::move(http)), ingest_(ingest) {}

  Receipt Ingest(const Parcel& parcel);

  const std::unique_ptr<HttpClient> http_;
  const bool ingest_;
};

}  // namespace pyrometer
