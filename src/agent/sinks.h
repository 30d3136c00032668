// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/log.h"
#include "config/agent_config.h"
#include "export/debuginfo_uploader.h"
#include "export/object_files.h"
#include "pyrometer/result.h"
#include "pyrometer/sink.h"

namespace pyrometer {

// The sink that `config` describes; `clock` outlives it. Connects to nothing yet. Errors: kInvalid;
// kPermission for a directory that cannot be written.
// `debuginfo`: see ParcaSink::Options.
Result<std::unique_ptr<ProfileSink>> MakeSink(const SinkConfig& config, const Clock& clock,
                                              const DebuginfoUploader* debuginfo = nullptr);

// What sends debug information to the server of `config`, beside its profiles. The others outlive
// it. Errors: kInvalid.
struct UploadParts {
  ObjectFiles& files;
  const Clock& clock;
  Log& log;
  std::function<void()> on_thread_start;
};
Result<std::unique_ptr<DebuginfoUploader>> MakeUploader(const SinkConfig& config,
                                                        const UploadParts& parts);

}  // namespace pyrometer
