// SPDX-License-Identifier: Apache-2.0
// Which headers a configuration may add to a sink's requests.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pyrometer {

// Why a header of this name and value cannot be sent; nothing if it can. HTTP and gRPC alike: the
// sinks' own headers, and those of the connection, are not the user's to set.
std::optional<std::string> WhyNoHeader(std::string_view name, std::string_view value);

// True if a header of this name carries a secret, by its name: Authorization, Cookie, X-Api-Key,
// X-Vault-Token, ...
bool CarriesSecret(std::string_view header);

// Header names are the same in upper and lower case.
bool IsSameHeader(std::string_view a, std::string_view b);

}  // namespace pyrometer
