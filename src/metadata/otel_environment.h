// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace pyrometer {

// The service that a process's environment names for OpenTelemetry: OTEL_SERVICE_NAME, else
// service.name among OTEL_RESOURCE_ATTRIBUTES, "" if neither has a value. `environment` is the text
// of /proc/PID/environ: NAME=VALUE, each with a NUL at its end; of variables with one name the
// first counts, as for getenv(3). Attributes are KEY=VALUE with commas between them, in which ',',
// '=' and
// '%' are written %2C, %3D and %25; of those that say it twice the last counts, and a list with an
// entry that is none says nothing. Source: OpenTelemetry's specification, resource/sdk.md,
// "Specifying resource information via an environment variable".
std::string OtelServiceName(std::string_view environment);

}  // namespace pyrometer
