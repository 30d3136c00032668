// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "agent/window_shipper.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/agent_config.h"
#include "export/delivery_counters.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// What the destinations of a configuration have in common.
struct DeliverySettings {
  SpoolConfig spool;
  uint64_t memory = uint64_t{256} << 20;  // of the agent; the queues take an eighth at most
  std::chrono::nanoseconds window{};

  bool operator==(const DeliverySettings&) const = default;
};

// All sinks that profiles go to, each behind an outbox of its own. Their threads have no
// capabilities. Thread-safe; Apply and Close are called by one thread.
class Destinations {
 public:
  // One destination, as it is now.
  struct State {
    std::string name;
    std::string type;     // as in the configuration
    std::string address;  // without credentials
    DeliveryCounters counters;
  };

  // Both outlive this.
  Destinations(const Clock& clock, Log& log);
  ~Destinations();
  Destinations(const Destinations&) = delete;
  Destinations& operator=(const Destinations&) = delete;

  // Makes what is there what the configuration wants. A sink whose configuration is the same goes
  // on; one that is gone gets two seconds for what it has, and leaves the rest in its spool.
  // Errors: kInvalid, and then nothing changes.
  Result<void> Apply(const std::vector<SinkConfig>& sinks, const DeliverySettings& settings);

  // Never waits.
  void Offer(const ShippedWindow& window);

  // Delivers what there is until `deadline`, all sinks at once; see Outbox::Close. Returns what
  // became of everything.
  std::vector<State> Close(MonotonicTime deadline);

  std::vector<State> states() const;

 private:
  struct Destination;
  using List = std::vector<std::shared_ptr<Destination>>;

  static void CloseAll(const List& list, MonotonicTime deadline);
  static std::vector<State> StatesOf(const List& list);
  void Replace(const List& gone, List next, const std::vector<Destination*>& fresh,
               uint64_t spooled);

  const Clock& clock_;
  Log& log_;
  DeliverySettings settings_;  // of the thread that calls Apply
  mutable absl::Mutex mutex_;
  List list_ ABSL_GUARDED_BY(mutex_);
  // While sinks are replaced: windows for those that are about to come.
  std::vector<ShippedWindow> held_ ABSL_GUARDED_BY(mutex_);
  bool is_holding_ ABSL_GUARDED_BY(mutex_) = false;
};

// The address of a sink as people may see it: without user names and passwords.
std::string ShownAddress(const SinkConfig& sink);
std::string_view Name(SinkType type);

}  // namespace pyrometer
