// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pyrometer/ids.h"
#include "server/agent_status.h"

namespace pyrometer {

// What the agent does, as one HTML page. It shows the flame graph of /flamegraph in a frame, and
// with its script it asks for itself every few seconds; it needs nothing else, and all of it but
// that works without scripts. Every string in `status` is shown as text, whatever it contains.
std::string StatusPage(const AgentStatus& status);

// Why the samples of a process have their labels, as a page of the same style: `told`, in lines.
std::string ExplanationPage(Pid pid, std::string_view told);

// The value of the Content-Security-Policy header for both pages: only its own script and style, by
// their hashes, and requests to where it came from.
std::string StatusPagePolicy();

}  // namespace pyrometer
