// SPDX-License-Identifier: Apache-2.0
#include "config/config_values.h"

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "config/byte_size.h"
#include "config/duration.h"

namespace pyrometer {
namespace {

constexpr size_t kLongestSinkName = 64;
constexpr uint32_t kHighestPort = 65535;

bool IsAlphanumeric(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c));
}

std::optional<uint32_t> ParseNumber(std::string_view text) {
  uint32_t number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (text.empty() || error != std::errc() || end != last) return std::nullopt;
  return number;
}

// A text of which `is_valid` holds.
ValueKind<std::string> Text(std::string expected, std::function<bool(std::string_view)> is_valid) {
  return {.parse = [is_valid =
                        std::move(is_valid)](std::string_view text) -> std::optional<std::string> {
            if (!is_valid(text)) return std::nullopt;
            return std::string(text);
          },
          .expected = std::move(expected)};
}

bool IsPath(std::string_view text) {
  return text.starts_with('/');
}

bool IsHostName(std::string_view host) {
  return !host.empty() && std::ranges::all_of(host, [](char c) {
    return IsAlphanumeric(c) || c == '-' || c == '.' || c == '_';
  });
}

bool IsBracketedAddress(std::string_view host) {
  return host.size() >= std::string_view("[::]").size() && host.starts_with('[') &&
         host.ends_with(']') && std::ranges::all_of(host.substr(1, host.size() - 2), [](char c) {
           return IsAlphanumeric(c) || c == ':' || c == '.' || c == '%';
         });
}

bool IsHost(std::string_view host) {
  return IsHostName(host) || IsBracketedAddress(host);
}

bool IsPort(std::string_view text, uint32_t least) {
  const std::optional<uint32_t> port = ParseNumber(text);
  return port && *port >= least && *port <= kHighestPort;
}

bool IsHostAndPort(std::string_view text, uint32_t least_port) {
  const size_t colon = text.rfind(':');
  return colon != std::string_view::npos && IsHost(text.substr(0, colon)) &&
         IsPort(text.substr(colon + 1), least_port);
}

// What follows the scheme; nothing if it is not http or https.
std::optional<std::string_view> WithoutHttpScheme(std::string_view url) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (url.starts_with(scheme)) return url.substr(scheme.size());
  }
  return std::nullopt;
}

bool IsHttpUrl(std::string_view url) {
  const std::optional<std::string_view> rest = WithoutHttpScheme(url);
  if (!rest || rest->find_first_of("?#@ \\\"<>") != std::string_view::npos) return false;
  const std::string_view authority = rest->substr(0, rest->find('/'));
  return IsHost(authority) || IsHostAndPort(authority, 1);
}

}  // namespace

ValueKind<std::string> AnyText() {
  return Text("a text", [](std::string_view) { return true; });
}

ValueKind<std::string> NonEmptyText() {
  return Text("a text that is not empty", [](std::string_view text) { return !text.empty(); });
}

ValueKind<std::string> AbsolutePath() {
  return Text("an absolute path, like /var/lib/x", IsPath);
}

ValueKind<std::string> AbsolutePathOrNothing() {
  return Text("an absolute path, like /etc/x, or \"\" for none",
              [](std::string_view text) { return text.empty() || IsPath(text); });
}

ValueKind<std::string> SinkName() {
  return Text(fmt::format("a name of at most {} letters, digits, '-', '_' and '.', a letter or "
                          "digit first",
                          kLongestSinkName),
              [](std::string_view text) {
                return !text.empty() && text.size() <= kLongestSinkName &&
                       IsAlphanumeric(text[0]) && IsHostName(text);
              });
}

ValueKind<bool> Boolean() {
  return OneOf<bool>({{"true", true}, {"false", false}});
}

ValueKind<uint32_t> WholeNumber(uint32_t least, uint32_t most) {
  return {.parse = [least, most](std::string_view text) -> std::optional<uint32_t> {
            const std::optional<uint32_t> number = ParseNumber(text);
            return number && *number >= least && *number <= most ? number : std::nullopt;
          },
          .expected = fmt::format("a whole number from {} to {}", least, most)};
}

ValueKind<double> Percentage() {
  return {.parse = [](std::string_view text) -> std::optional<double> {
            if (!text.ends_with('%')) return std::nullopt;
            const char* const last = text.data() + text.size() - 1;
            double percent = 0;
            const auto [end, error] =
                std::from_chars(text.data(), last, percent, std::chars_format::fixed);
            // Written so that a NaN, which from_chars reads, is refused.
            if (error != std::errc() || end != last || !(percent > 0 && percent <= 100)) {
              return std::nullopt;
            }
            return percent / 100;
          },
          .expected = "a share of the machine, more than 0% and at most 100%, like 1%"};
}

ValueKind<std::chrono::nanoseconds> Duration(DurationRange range, std::string_view example) {
  return {.parse = [range](std::string_view text) -> std::optional<std::chrono::nanoseconds> {
            const Result<std::chrono::nanoseconds> duration = ParseDuration(text);
            if (!duration || *duration < range.least || *duration > range.most) return std::nullopt;
            return *duration;
          },
          .expected = fmt::format("a duration from {} to {}, like {}", FormatDuration(range.least),
                                  FormatDuration(range.most), example)};
}

ValueKind<uint64_t> ByteSize(uint64_t least, std::string_view zero_means) {
  const bool zero_allowed = !zero_means.empty();
  return {
      .parse = [least, zero_allowed](std::string_view text) -> std::optional<uint64_t> {
        const Result<uint64_t> size = ParseByteSize(text);
        if (!size || (*size < least && !(zero_allowed && *size == 0))) return std::nullopt;
        return *size;
      },
      .expected = fmt::format("a size of at least {}, like 512MiB or 1GiB{}", FormatByteSize(least),
                              zero_allowed ? fmt::format("; or 0: {}", zero_means) : "")};
}

ValueKind<std::string> HttpUrl() {
  return Text("a URL like http://host:4040 or https://host/path, without user, password and query",
              IsHttpUrl);
}

ValueKind<std::string> HostAndPort(uint32_t least_port) {
  return Text("a host and port, like localhost:7070 or [::1]:7070",
              [least_port](std::string_view text) { return IsHostAndPort(text, least_port); });
}

ValueKind<std::string> ListenAddress(std::string_view empty_means) {
  return Text(fmt::format("an address and port, like 127.0.0.1:4041 or [::1]:4041; or \"\": {}",
                          empty_means),
              [](std::string_view text) { return text.empty() || IsHostAndPort(text, 0); });
}

ValueKind<std::string> GrpcEndpoint() {
  return Text("a host and port, like collector:4317 or http://collector:4317, without a path",
              [](std::string_view text) {
                return IsHostAndPort(WithoutHttpScheme(text).value_or(text), 1);
              });
}

}  // namespace pyrometer
