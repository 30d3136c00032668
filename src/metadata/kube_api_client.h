// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "metadata/container_source.h"
#include "metadata/http_getter.h"
#include "metadata/pod_json.h"

namespace pyrometer {

// The pods of one node as the API server tells: listed once, then followed by one watch, on a
// thread of its own. Listed again only when the server has forgotten where the watch was (410
// Gone), or the watch has failed several times in a row. Needs the permissions `list` and `watch`
// on pods. Thread-safe.
class KubeApiClient final : public ContainerSource {
 public:
  struct Options {
    HttpEndpoint endpoint;
    std::string node_name;
    size_t page = 500;                      // pods in one answer to a list
    size_t most_pods = 10'000;              // a node has hundreds; of more none is taken
    std::chrono::seconds watch{300};        // half of the longest time that one watch lasts
    std::chrono::seconds idle{150};         // without a byte; servers send bookmarks each minute
    std::chrono::milliseconds pause{1000};  // after a failure, at first; it doubles
    std::chrono::milliseconds longest_pause{60'000};
  };

  // Its thread has the capabilities of the thread that calls this. `clock`, by which it pauses,
  // outlives it.
  KubeApiClient(Options options, const Clock& clock);
  ~KubeApiClient() override;
  KubeApiClient(const KubeApiClient&) = delete;
  KubeApiClient& operator=(const KubeApiClient&) = delete;

  // From memory; until the pods were listed, and while the watch fails again and again, the last
  // error. Waits for the first answer.
  Result<std::vector<ContainerMetadata>> List() override;
  void Cancel() override;
  void TellChanges(const std::function<void()>& changed) override;

 private:
  using Pods = std::map<std::string, std::vector<ContainerMetadata>>;  // by uid

  // Why a watch or a list ended.
  struct End {
    bool gone = false;
    std::optional<Error> error{};
    std::optional<std::chrono::seconds> retry_after{};
  };

  void Run();
  End ListPods();
  // Until it ends; `progress` is set if anything came.
  End Watch(bool& progress);
  End EndOf(const HttpResponse& response, std::string_view what) const;
  // What came of one line; false: the watch is over, see `end`.
  bool TakeEvent(std::string_view line, End& end, bool& progress);
  // `failures` in a row.
  void Fail(Error error, uint32_t failures);
  void Recover();
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Longer after each failure. False at the end.
  bool Pause(uint32_t failures, std::optional<std::chrono::seconds> at_least);
  std::string Path() const;

  const Options options_;
  const Clock& clock_;
  HttpGetter http_;
  // The thread's.
  std::string version_{};
  bool from_cache_ = true;  // the next list may be as old as the server's memory
  std::minstd_rand random_{std::random_device()()};

  absl::Mutex mutex_;
  Pods pods_ ABSL_GUARDED_BY(mutex_);
  bool listed_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Error> error_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> changed_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;  // the last: it uses all of the above
};

}  // namespace pyrometer
