// SPDX-License-Identifier: Apache-2.0
#include "server/access.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace pyrometer {
namespace {

constexpr size_t kMaxTokenBytes = 4096;

Result<std::string> ReadToken(const std::string& file) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kMaxTokenBytes));
  const std::string_view token = Trim(text);
  if (token.empty()) return Fail(ErrorCode::kInvalid, "{}: is empty", file);
  return std::string(token);
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0 || text.empty() || text.size() > 2 * kMaxTokenBytes) return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  const size_t padding = text.size() - (text.find_last_not_of('=') + 1);
  bytes.resize(static_cast<size_t>(size) - std::min<size_t>(padding, 2));
  return bytes;
}

// What the header shows as the token, if anything.
std::optional<std::string> ShownToken(std::string_view authorization) {
  const size_t blank = authorization.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const std::string scheme = Lower(authorization.substr(0, blank));
  const std::string_view rest = Trim(authorization.substr(blank));
  if (scheme == "bearer") return std::string(rest);
  if (scheme != "basic") return std::nullopt;
  const std::optional<std::string> pair = DecodeBase64(rest);
  if (!pair) return std::nullopt;
  const size_t colon = pair->find(':');
  if (colon == std::string::npos) return std::nullopt;
  return pair->substr(colon + 1);
}

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

Digest DigestOf(std::string_view text) {
  Digest digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

// Without the port, and an IPv6 address without its brackets.
std::string_view HostOnly(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

bool IsAddress(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

}  // namespace

bool Access::MayAsk(std::string_view authorization) const {
  if (token_file_.empty()) return true;
  const Result<std::string> token = ReadToken(token_file_);
  const std::optional<std::string> shown = ShownToken(authorization);
  if (!token || !shown) return false;
  // Digests are of equal length whatever was shown.
  const Digest wanted = DigestOf(*token);
  const Digest got = DigestOf(*shown);
  return CRYPTO_memcmp(wanted.data(), got.data(), wanted.size()) == 0;
}

std::string Access::Trouble() const {
  if (token_file_.empty()) return "";
  const Result<std::string> token = ReadToken(token_file_);
  return token ? "" : "the server's bearer token: " + token.error().message();
}

bool Access::MayBeForeign(std::string_view host) const {
  if (!token_file_.empty()) return false;
  const std::string name = Lower(HostOnly(host));
  return name != "localhost" && !name.ends_with(".localhost") && !IsAddress(name);
}

}  // namespace pyrometer
