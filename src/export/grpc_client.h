// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "base/clock.h"
#include "export/client_options.h"
#include "pyrometer/result.h"
#include "pyrometer/sink.h"

namespace pyrometer {

// Calls methods of one gRPC server with messages that are encoded already. One channel, which is
// replaced after Options::longest_use, when a certificate file changes, and after a timeout, since
// its connection may be dead.
// Calls neither wait for a server that is away nor are sent twice. A proxy is the environment's.
// Thread-safe.
class GrpcClient {
 public:
  struct Options {
    std::string address;    // "host:port"
    bool insecure = false;  // no TLS
    bool gzip = false;      // compresses requests
    // A connection takes no new calls after this. Servers close connections on their own, a Go
    // server's read timeout whatever goes on there: Parca's after 5 s. A request that meets that
    // end may have arrived or not, so each burst of requests gets a connection of its own (tried
    // against Parca 0.28: half of all profiles were in doubt).
    std::chrono::nanoseconds longest_use{std::chrono::seconds(3)};
    ClientOptions client{};
  };

  // Sets variables of the environment that gRPC's library reads, unless they are set. The first
  // Make does so as well; but then no other thread may look into the environment, as libcurl's and
  // those that tell the local time do.
  static void ConfigureLibrary();

  // kInvalid if `address` is none, or the client's options fail CheckClientOptions. Connects to
  // nothing yet. `clock`, by which connections age, outlives it.
  static Result<std::unique_ptr<GrpcClient>> Make(Options options, const Clock& clock);
  ~GrpcClient();

  // `method`: "/package.Service/Method". Returns the server's message. Takes no longer than the
  // client's timeout. The error's outcome is
  // - not arrived, if the request was never handed to a connection ("connect", "resolve", "tls",
  //   "timeout", "credentials"), or the server says so: "unavailable", "aborted", "out_of_range",
  //   "resource_exhausted" with RetryInfo (see its retry_after), and "unauthenticated" and
  //   "permission_denied", with one minute to ask again, since credentials get replaced;
  // - maybe arrived, if the answer is missing ("timeout", "connection_lost", "cancelled") or says
  //   that the server gave up: "timeout", "cancelled", "data_loss";
  // - rejected else, for "resource_exhausted" without RetryInfo, too (OTLP's rule; what servers
  //   mean by it is a message that is too large).
  tl::expected<std::string, Receipt> Call(const std::string& method, std::string_view request);

  // Ends what is under way, and anything later at once. Lets go of the connection, so that whoever
  // destroys this need not speak with the network. Any thread.
  void Cancel();

 private:
  struct State;
  explicit GrpcClient(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace pyrometer
