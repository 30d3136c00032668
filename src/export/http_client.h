// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "export/client_options.h"
#include "pyrometer/result.h"
#include "pyrometer/sink.h"

namespace pyrometer {

struct HttpAnswer {
  int status = 0;
  std::string body{};  // its first 64 KiB
  std::optional<std::chrono::nanoseconds> retry_after{};
};

// What an answer means to a sink, by its status alone; 2xx: delivered. The reason is "http_429".
// - 408, 425, 429, 503 say that the request was not taken: not arrived.
// - 401, 403, 407: not arrived either; credentials get replaced, so it is worth asking once a
//   minute (or when Retry-After says) rather than losing profiles.
// - 500, 502, 504 and other 5xx: something behind may have taken it: maybe arrived.
// - 501, 505 and all else: rejected.
Receipt ReceiptOf(const HttpAnswer& answer);

// Posts to one server over HTTP/1.1, with or without TLS. Keeps connections, of which each is used
// by one request at a time, at most five minutes, so that changed certificates and addresses come
// into effect. Follows no redirection. A proxy is the environment's (http_proxy, https_proxy,
// no_proxy). Never sends a request twice by itself. Thread-safe.
class HttpClient {
 public:
  struct Request {
    std::string path;  // after the path of the client's URL: "/ingest?name=x"
    std::string_view body;
    std::vector<std::string> headers{};  // "Content-Type: application/proto"
  };

  // kInvalid if `url` is no http or https URL or has more than a host, a port and a path, or the
  // options fail CheckClientOptions. Connects to nothing yet.
  static Result<std::unique_ptr<HttpClient>> Make(std::string url, ClientOptions options);
  ~HttpClient();

  // Takes no longer than the options' timeout. The error, where there was no answer:
  // - not arrived: "resolve", "connect", "proxy", "tls", "credentials", and all others if the
  //   request was not handed over whole to the connection;
  // - maybe arrived: "timeout", "cancelled", "connection_lost", "bad_answer" after that, or in the
  //   middle of a successful answer. A kept connection that was lost, and no other to be had, is
  //   "connection_lost".
  tl::expected<HttpAnswer, Receipt> Post(const Request& request);

  // Ends what is under way within a second, and anything later at once. Closes the connections that
  // are idle, so that whoever destroys this need not speak with the network. Any thread.
  void Cancel();

 private:
  struct Handle;
  struct Transfer;

  HttpClient(std::string url, ClientOptions options);
  Result<std::unique_ptr<Handle>> TakeHandle();
  Result<std::unique_ptr<Handle>> MakeHandle() const;
  // What came of a transfer that ended with `curl_code`, a CURLcode.
  static tl::expected<HttpAnswer, Receipt> Conclude(Handle& handle, Transfer& transfer,
                                                    int curl_code);
  void GiveBack(std::unique_ptr<Handle> handle);
  std::vector<std::string> HeadersOf(const Request& request, std::string_view authorization) const;

  const std::string url_;  // without a slash at its end
  const ClientOptions options_;
  std::string connect_to_;  // libcurl's form; if the certificate's name is not the host's
  std::string host_header_;
  std::atomic<bool> cancelled_ = false;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Handle>> idle_;
};

}  // namespace pyrometer
