// SPDX-License-Identifier: Apache-2.0
#include "export/client_options.h"

#include <absl/strings/escaping.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <string_view>

#include "base/file.h"
#include "base/text.h"

namespace pyrometer {
namespace {

constexpr size_t kSecretBytes = 64 << 10;

bool IsToken(std::string_view name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  return !name.empty() && name.find_first_not_of(kAllowed) == std::string_view::npos;
}

// What both HTTP/1.1 and gRPC carry unchanged.
bool IsHeaderText(std::string_view value) {
  return std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~'; });
}

Result<std::string> ReadSecret(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kSecretBytes));
  std::string secret(Trim(text));
  if (secret.empty()) return Fail(ErrorCode::kInvalid, "{}: is empty", path);
  return secret;
}

}  // namespace

Result<void> CheckClientOptions(const ClientOptions& options) {
  for (const auto& [name, value] : options.headers) {
    if (!IsToken(name)) {
      return Fail(ErrorCode::kInvalid,
                  "header \"{}\": a name has letters, digits, '-', '_' and '.' only", name);
    }
    if (!IsHeaderText(value)) {
      return Fail(ErrorCode::kInvalid, "header {}: its value must be printable ASCII", name);
    }
  }
  if (options.basic_auth && !options.bearer_token_file.empty()) {
    return Fail(ErrorCode::kInvalid, "basic_auth and bearer_token_file exclude each other");
  }
  if (options.tls.cert_file.empty() != options.tls.key_file.empty()) {
    return Fail(ErrorCode::kInvalid, "a client certificate needs both cert_file and key_file");
  }
  if (options.timeout < std::chrono::milliseconds(1)) {
    return Fail(ErrorCode::kInvalid, "the timeout must be at least 1ms");
  }
  return {};
}

std::string_view WithoutUser(std::string_view address) {
  return address.substr(address.rfind('@') + 1);  // npos + 1 is 0
}

Result<std::string> AuthorizationOf(const ClientOptions& options) {
  std::string authorization;
  if (!options.bearer_token_file.empty()) {
    ASSIGN_OR_RETURN(const std::string token, ReadSecret(options.bearer_token_file));
    if (!IsHeaderText(token)) {
      return Fail(ErrorCode::kInvalid, "{}: a token is printable ASCII", options.bearer_token_file);
    }
    authorization = "Bearer " + token;
  } else if (options.basic_auth) {
    std::string password = options.basic_auth->password;
    if (!options.basic_auth->password_file.empty()) {
      ASSIGN_OR_RETURN(password, ReadSecret(options.basic_auth->password_file));
    }
    const std::string pair = options.basic_auth->username + ":" + password;
    authorization = "Basic " + absl::Base64Escape(absl::string_view(pair.data(), pair.size()));
  }
  return authorization;
}

}  // namespace pyrometer
