// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/clock.h"
#include "config/agent_config.h"
#include "pyrometer/result.h"
#include "pyrometer/sink.h"

namespace pyrometer {

// The sink that `config` describes; `clock` outlives it. Connects to nothing yet. Errors: kInvalid;
// kPermission for a directory that cannot be written.
Result<std::unique_ptr<ProfileSink>> MakeSink(const SinkConfig& config, const Clock& clock);

}  // namespace pyrometer
