// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "metadata/http_getter.h"
#include "pyrometer/labels.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Labels of the node itself, such as topology.kubernetes.io/zone: the API server is asked until it
// has answered once, on a thread of its own. They seldom change while a node runs. Needs the
// permission `get` on nodes. Thread-safe.
class NodeLabels {
 public:
  struct Options {
    HttpEndpoint endpoint;
    std::string node_name;
    std::vector<std::string> wanted;        // by their keys at the node
    std::chrono::milliseconds pause{1000};  // after a failure, at first; it doubles
    std::chrono::milliseconds longest_pause{60'000};
    // Told of each failure, and with nullptr of the answer after one; may be empty. Called on the
    // thread.
    std::function<void(const Error*)> told{};
  };

  // Its thread has the capabilities of the thread that calls this. `clock`, by which it pauses,
  // outlives it.
  NodeLabels(Options options, const Clock& clock);
  ~NodeLabels();
  NodeLabels(const NodeLabels&) = delete;
  NodeLabels& operator=(const NodeLabels&) = delete;

  // Those wanted that the node has, named as LabelNameOf() does; sorted. Nothing before the answer.
  std::optional<Labels> Get() const;

 private:
  void Run();
  Result<Labels> Ask();

  const Options options_;
  const Clock& clock_;
  HttpGetter http_;
  std::minstd_rand random_{std::random_device()()};
  mutable absl::Mutex mutex_;
  std::optional<Labels> labels_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // the last: it uses all of the above
};

// Those of `wanted` that the node in `json`, the API server's answer, has. Errors: kMalformed.
Result<Labels> ReadNodeLabels(std::string_view json, const std::vector<std::string>& wanted);

}  // namespace pyrometer
