// SPDX-License-Identifier: Apache-2.0
// What the values of a configuration may be.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pyrometer {

// A kind of value: how to read it, and how to tell people what is expected.
template <typename T>
struct ValueKind {
  std::function<std::optional<T>(std::string_view)> parse;  // nothing: not of this kind
  std::string expected;                                     // "a duration from 1s to 10m, like 10s"
};

ValueKind<std::string> AnyText();
ValueKind<std::string> NonEmptyText();
ValueKind<std::string> AbsolutePath();
ValueKind<std::string> AbsolutePathOrNothing();  // "" if it is empty
ValueKind<std::string> SinkName();               // fit for a label's value and a directory's name
ValueKind<bool> Boolean();
ValueKind<uint32_t> WholeNumber(uint32_t least, uint32_t most);
ValueKind<double> Percentage();  // "1%" is 0.01; more than 0, at most all

struct DurationRange {
  std::chrono::nanoseconds least;
  std::chrono::nanoseconds most;
};
ValueKind<std::chrono::nanoseconds> Duration(DurationRange range, std::string_view example);

// At least `least` bytes, or 0, which means `zero_means`; 0 is not allowed if that is empty.
ValueKind<uint64_t> ByteSize(uint64_t least, std::string_view zero_means = "");

// "http://host:4040/path", https as well. Without user and password, query and fragment.
ValueKind<std::string> HttpUrl();
// "host:7070"; an IPv6 address is in brackets. The port is `least_port` or more.
ValueKind<std::string> HostAndPort(uint32_t least_port);
// As HostAndPort, or an empty text for `empty_means`.
ValueKind<std::string> ListenAddress(std::string_view empty_means);
// Of gRPC: "host:4317", also with http:// or https:// before it.
ValueKind<std::string> GrpcEndpoint();

template <typename T>
ValueKind<T> OneOf(std::vector<std::pair<std::string, T>> choices) {
  std::string expected;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) expected += i + 1 == choices.size() ? " or " : ", ";
    expected += choices[i].first;
  }
  return {.parse = [choices = std::move(choices)](std::string_view text) -> std::optional<T> {
            for (const auto& [name, value] : choices) {
              if (name == text) return value;
            }
            return std::nullopt;
          },
          .expected = std::move(expected)};
}

}  // namespace pyrometer
