// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "export/object_files.h"
#include "profiler/profiler.h"

namespace pyrometer {

// The files that the profiler has seen. Thread-safe.
class ProfiledFiles final : public ObjectFiles {
 public:
  // REQUIRES: `profiler` is there whenever Find is called.
  explicit ProfiledFiles(const std::unique_ptr<Profiler>& profiler) : profiler_(profiler) {}

  std::shared_ptr<const UniqueFd> Find(const CodeObject& object,
                                       const std::stop_token& stop) override {
    return profiler_->FindNames(object.build_id, object.hash, stop);
  }

 private:
  const std::unique_ptr<Profiler>& profiler_;
};

}  // namespace pyrometer
