// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tl/expected.hpp>

#include "export/client_options.h"
#include "export/grpc_client.h"
#include "export/http_client.h"
#include "pyrometer/result.h"
#include "pyrometer/sink.h"

namespace pyrometer {

// Whose names a file tells: what an object is called in profiles.
struct DebuginfoId {
  std::string text;      // hex
  bool is_hash = false;  // of the object's file, which has no build id
};

// A file to send.
struct DebuginfoFile {
  uint64_t size = 0;
  std::string hash;  // of the file; not empty
  // Fills all of what it is given with the bytes at an offset.
  std::function<Result<void>(uint64_t offset, std::span<std::byte>)> read;
};

// Gives a Parca server the debug information that it asks for: the service
// parca.debuginfo.v1alpha1.DebuginfoService. One call of Ask or Upload at a time.
class DebuginfoClient {
 public:
  struct Options {
    std::string address;    // "host:7070"
    bool insecure = false;  // no TLS
    ClientOptions client{};
    // For sending a file. (Parca's own --http-read-timeout, 5 s by default, ends it sooner.)
    std::chrono::nanoseconds upload_timeout{std::chrono::minutes(5)};
  };

  // As GrpcClient::Make. Connects to nothing yet.
  static Result<std::unique_ptr<DebuginfoClient>> Make(Options options);

  enum class Wish {
    kWanted,
    kHasIt,   // or knows where to get it
    kAtWork,  // somebody is sending it, or has begun to
  };
  // Does the server want a file for that object? Errors: as GrpcClient::Call.
  tl::expected<Wish, Receipt> Ask(const DebuginfoId& id);

  // Sends one that it wants. The receipt's reason, if it was not delivered: as GrpcClient::Call, so
  // "already_exists" if somebody else was faster, "failed_precondition" if somebody else is sending
  // one, and "invalid_argument" if the server will never take this; "http_403" and the like from
  // where the server wants it sent to; "bad_answer" if we do not understand the server.
  Receipt Upload(const DebuginfoId& id, const DebuginfoFile& file);

  // Ends what is under way, and anything later at once. Any thread.
  void Cancel();

 private:
  DebuginfoClient(Options options, std::unique_ptr<GrpcClient> grpc)
      : options_(std::move(options)), grpc_(std::move(grpc)) {}

  Receipt SendByGrpc(const DebuginfoId& id, const std::string& upload_id,
                     const DebuginfoFile& file);
  Receipt SendByHttp(const std::string& url, const DebuginfoFile& file);

  const Options options_;
  const std::unique_ptr<GrpcClient> grpc_;
  std::mutex mutex_;  // of all below
  bool cancelled_ = false;
  HttpClient* http_ = nullptr;  // that is sending a file
};

}  // namespace pyrometer
