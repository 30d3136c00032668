// SPDX-License-Identifier: Apache-2.0
#include "metadata/otel_environment.h"

#include <charconv>
#include <cstdint>
#include <optional>

#include "base/text.h"

namespace pyrometer {
namespace {

// "" if there is none.
std::string_view Variable(std::string_view environment, std::string_view name) {
  for (const std::string_view entry : Split(environment, '\0')) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return {};
}

// Nothing if it is not well written.
std::optional<std::string> PercentDecoded(std::string_view text) {
  constexpr int kHex = 16;
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const std::string_view digits = text.substr(i + 1, 2);
    uint8_t byte = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), byte, kHex);
    if (digits.size() != 2 || read.ptr != digits.data() + digits.size()) return std::nullopt;
    decoded += static_cast<char>(byte);
    i += digits.size();
  }
  return decoded;
}

std::string ServiceAmong(std::string_view attributes) {
  std::string service;
  for (const std::string_view attribute : Split(attributes, ',')) {
    const size_t equals = attribute.find('=');
    if (equals == std::string_view::npos) return "";
    const std::optional<std::string> value = PercentDecoded(Trim(attribute.substr(equals + 1)));
    if (!value) return "";
    if (Trim(attribute.substr(0, equals)) == "service.name") service = *value;
  }
  return service;
}

}  // namespace

std::string OtelServiceName(std::string_view environment) {
  const std::string_view name = Variable(environment, "OTEL_SERVICE_NAME");
  if (!name.empty()) return std::string(name);
  const std::string_view attributes = Variable(environment, "OTEL_RESOURCE_ATTRIBUTES");
  return attributes.empty() ? "" : ServiceAmong(attributes);
}

}  // namespace pyrometer
