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
#include "export/left_spools.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// What the destinations of a configuration have in common.
struct DeliverySettings {
  SpoolConfig spool;
  uint64_t memory = uint64_t{256} << 20;  // of the agent; a queue takes an eighth at most
  std::chrono::nanoseconds window{};

  bool operator==(const DeliverySettings&) const = default;
};

// All sinks that profiles go to, each behind an outbox of its own. Their threads have no
// capabilities. Thread-safe; Apply and Close are called by one thread.
class Destinations {
  struct Destination;
  using List = std::vector<std::shared_ptr<Destination>>;

 public:
  // One destination, as it is now.
  struct State {
    std::string name;
    std::string type;     // as in the configuration
    std::string address;  // without credentials
    DeliveryCounters counters;
  };

  // A change that cannot fail any more.
  struct Plan {
    List next;
    std::vector<Destination*> fresh;  // of these: those that have no outbox yet
    List gone;
    DeliverySettings settings;
    uint64_t spooled = 0;  // sinks that share the spool
  };

  // Both outlive this.
  Destinations(const Clock& clock, Log& log);
  ~Destinations();
  Destinations(const Destinations&) = delete;
  Destinations& operator=(const Destinations&) = delete;

  // Makes the sinks that a configuration wants and that are not there yet; changes nothing. Errors:
  // kInvalid.
  Result<Plan> Prepare(const std::vector<SinkConfig>& sinks,
                       const DeliverySettings& settings) const;

  // Makes what is there what was prepared. A sink whose configuration is the same goes on; one that
  // is gone gets two seconds for what it has, leaves the rest in its spool, and says so in the log.
  // What such spools take counts against the room for all.
  // REQUIRES: nothing was applied since `plan` was prepared.
  void Apply(Plan plan);

  // Never waits.
  void Offer(const ShippedWindow& window);

  // Delivers what there is until `deadline`, all sinks at once; see Outbox::Close. Returns what
  // became of everything.
  std::vector<State> Close(MonotonicTime deadline);

  std::vector<State> states() const;

  // Of the spools that earlier configurations left.
  LeftSpools::Counters left_spools() const;

 private:
  static void CloseAll(const List& list, MonotonicTime deadline);
  static std::vector<State> StatesOf(const List& list);
  void KeepLeftSpools(const List& list);
  // When it returns, nobody touches what earlier configurations left.
  void LeaveSpoolsAlone();

  const Clock& clock_;
  Log& log_;
  DeliverySettings settings_;  // of the thread that calls Apply
  uint64_t spooled_ = 0;       // likewise: sinks that share the spool
  mutable absl::Mutex mutex_;
  List list_ ABSL_GUARDED_BY(mutex_);
  // While sinks are replaced: windows for those that are about to come.
  std::vector<ShippedWindow> held_ ABSL_GUARDED_BY(mutex_);
  bool is_holding_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<LeftSpools> left_spools_ ABSL_GUARDED_BY(mutex_);
  LeftSpools::Counters left_before_ ABSL_GUARDED_BY(mutex_);  // while there are none
};

// "sink pyroscope: offered=10 delivered=8 spooled=0 dropped=2 (rejected=2)" and, if an earlier run
// had left something in the spool, "sink pyroscope: found=5 delivered=4 spooled=0 dropped=1
// (maybe_arrived=1)".
std::vector<std::string> AccountingLines(const Destinations::State& sink);

// The address of a sink as people may see it: without user names and passwords.
std::string ShownAddress(const SinkConfig& sink);
std::string_view Name(SinkType type);

}  // namespace pyrometer
