// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "config/agent_config.h"
#include "pyrometer/result.h"
#include "pyrometer/sink.h"

namespace pyrometer {

// The sink that `config` describes. Connects to nothing yet. Errors: kInvalid.
Result<std::unique_ptr<ProfileSink>> MakeSink(const SinkConfig& config);

}  // namespace pyrometer
