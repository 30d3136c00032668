// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "pyrometer/result.h"

namespace pyrometer {

// Whom to ask, and how to prove who is who.
struct HttpEndpoint {
  std::string url{};          // "https://host:6443", without a slash at its end
  std::string unix_socket{};  // connected to in the place of the URL's host
  std::string
      token_file{};       // "": no token. Read for each request, so that a new one counts at once
  std::string ca_file{};  // "": the system's. Read for each connection
  bool verify = true;     // that the certificate is the host's, by a known authority
};

struct HttpResponse {
  static constexpr int kOk = 200;

  int status = 0;
  std::string body{};  // of a stream only if it failed
  std::optional<std::chrono::seconds> retry_after{};
};

// Gets from one server over HTTP/1.1, with a connection for each request: there are minutes or days
// between two. Uses no proxy, since those it asks are on this node or in its cluster. Follows no
// redirection, which a token must not. Thread-safe.
class HttpGetter {
 public:
  struct Limits {
    std::chrono::milliseconds timeout{5000};
    std::chrono::seconds idle{0};       // without a byte; 0: as long as the timeout
    size_t longest = size_t{16} << 20;  // body; of a stream without a bound
  };
  // Gets pieces of a body as they come, if the status is 200; false ends it.
  using Stream = std::function<bool(std::string_view)>;

  explicit HttpGetter(HttpEndpoint endpoint) : endpoint_(std::move(endpoint)) {}

  // `path` begins with '/'. Any status is an answer. A stream that says false is a success. Errors:
  // kNotFound, kPermission: no such socket or token, or they may not be used; kExhausted: a longer
  // body; kIo.
  Result<HttpResponse> Get(const std::string& path, Limits limits, const Stream& stream = {}) const;

  // Ends requests that are under way within a second, and later ones at once. Any thread.
  void Cancel() { cancelled_ = true; }

 private:
  const HttpEndpoint endpoint_;
  std::atomic<bool> cancelled_ = false;
};

// The error that an answer other than 200 is, kPermission for 403 and else kIo; `what` begins its
// message.
Error ErrorOf(const HttpResponse& response, std::string_view what);

// A text as a part of a query.
std::string InQuery(std::string_view text);

}  // namespace pyrometer
