// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pyrometer/result.h"

namespace pyrometer {

// How a client checks a server and shows who it is. Files are PEM.
struct ClientTls {
  std::string ca_file{};      // these authorities and no others; "": the system's
  std::string cert_file{};    // of the client, with its key_file; "": none
  std::string key_file{};     // read again, as the others, for new connections once they changed
  std::string server_name{};  // expected in the certificate; "": the host's
};

struct BasicAuth {
  std::string username{};
  std::string password{};
  std::string password_file{};  // instead, if not empty
};

// What HTTP and gRPC clients have in common.
struct ClientOptions {
  std::chrono::nanoseconds timeout{std::chrono::seconds(10)};  // of a request with its connection
  std::chrono::nanoseconds connect_timeout{std::chrono::seconds(5)};
  std::vector<std::pair<std::string, std::string>> headers{};
  std::optional<BasicAuth> basic_auth{};
  std::string bearer_token_file{};
  ClientTls tls{};
};

// kInvalid if a header could not be sent as it is (and might forge another), there are two ways of
// authentication, one half of a client certificate, or no time.
Result<void> CheckClientOptions(const ClientOptions& options);

// What of an address may be shown: a user's name and password before an '@' may not.
std::string_view WithoutUser(std::string_view address);

// The value of the header Authorization; "" if there is none. Reads the file with the secret each
// time, since tokens are replaced while we run.
Result<std::string> AuthorizationOf(const ClientOptions& options);

}  // namespace pyrometer
