// SPDX-License-Identifier: Apache-2.0
#include "config/sink_headers.h"

#include <absl/strings/ascii.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace pyrometer {
namespace {

std::string Lower(std::string_view text) {
  return absl::AsciiStrToLower(absl::string_view(text.data(), text.size()));
}

// RFC 9110, section 5.6.2.
bool IsToken(std::string_view name) {
  constexpr std::string_view kSymbols = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::ranges::all_of(name, [kSymbols](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           kSymbols.find(c) != std::string_view::npos;
  });
}

bool IsOurs(std::string_view lower) {
  constexpr std::array<std::string_view, 14> kOurs = {"accept",         "accept-encoding",
                                                      "connection",     "content-encoding",
                                                      "content-length", "content-type",
                                                      "expect",         "host",
                                                      "keep-alive",     "te",
                                                      "trailer",        "transfer-encoding",
                                                      "upgrade",        "connect-protocol-version"};
  return std::ranges::find(kOurs, lower) != kOurs.end() || lower.starts_with("grpc-");
}

}  // namespace

std::optional<std::string> WhyNoHeader(std::string_view name, std::string_view value) {
  if (!IsToken(name)) return "is no header name; expected letters, digits and '-'";
  const std::string lower = Lower(name);
  if (IsOurs(lower)) return "is set by the sink itself";
  // gRPC takes the bytes of such a header in base64, and refuses others beyond ASCII.
  if (lower.ends_with("-bin")) return "names that end in -bin are for binary values, not for texts";
  const bool is_ascii = std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~'; });
  if (!is_ascii) return "its value may only have printable ASCII characters";
  return std::nullopt;
}

bool CarriesSecret(std::string_view header) {
  constexpr std::array<std::string_view, 12> kSecrets = {
      "authorization", "auth",    "cookie",     "key",         "apikey",   "token",
      "secret",        "secrets", "credential", "credentials", "password", "signature"};
  std::string lower = Lower(header);
  std::ranges::replace(lower, '_', '-');
  const std::string_view last_word = Split(lower, '-').back();
  return std::ranges::find(kSecrets, last_word) != kSecrets.end();
}

bool IsSameHeader(std::string_view a, std::string_view b) {
  return Lower(a) == Lower(b);
}

}  // namespace pyrometer
