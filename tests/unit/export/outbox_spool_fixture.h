// SPDX-License-Identifier: Apache-2.0
// Outboxes with a spool in a directory of the test's own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "export/outbox.h"
#include "export/spool_directory.h"
#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/export/delivery_fixture.h"

namespace pyrometer {

inline Receipt RefuseAll(const Parcel& /*parcel*/) {
  return Refused();
}
inline Receipt TakeAll(const Parcel& /*parcel*/) {
  return Taken();
}

class OutboxSpoolTest : public testing::Test {
 protected:
  OutboxOptions Options() const {
    OutboxOptions options;
    options.name = "test";
    options.max_age = kForEver;
    options.spool = SpoolOptions{.directory = Spool(), .max_age = kForEver};
    return options;
  }
  std::string Spool() const { return tree_.Path("spool"); }
  std::unique_ptr<Outbox> Make(ProfileSink& sink, OutboxOptions options) {
    return std::make_unique<Outbox>(std::move(options), sink, clock_, log_.log());
  }
  std::unique_ptr<Outbox> Make(ProfileSink& sink) { return Make(sink, Options()); }
  void Offer(Outbox& outbox, const std::string& name, uint64_t ticks = 1) {
    outbox.Offer(WindowOf({ProfileNamed(name, ticks, clock_.WallNow())}));
  }
  bool PassUntil(Outbox& outbox, std::chrono::nanoseconds step,
                 const std::function<bool()>& holds) {
    return Eventually([&] {
      clock_.Pass(step);
      outbox.Offer(WindowOf({}));
      return holds();
    });
  }
  bool PassUntilNothingWaits(Outbox& outbox) {
    return PassUntil(outbox, std::chrono::seconds(1), [&] {
      const DeliveryCounters counters = outbox.counters();
      return counters.has_spool && counters.ticks.in_memory == 0 && counters.ticks.spooled == 0 &&
             counters.found_in_spool.spooled == 0 && counters.spool_files == 0;
    });
  }
  // Leaves windows of these names in the spool, one tick each.
  void LeaveInSpool(const std::vector<std::string>& names) {
    ScriptedSink sink(RefuseAll);
    const auto outbox = Make(sink);
    for (const std::string& name : names) {
      Offer(*outbox, name);
      ASSERT_TRUE(Eventually([&] { return outbox->counters().windows_waiting == 0; }));
    }
    outbox->Close(clock_.Now());
    ASSERT_EQ(outbox->counters().ticks.spooled, names.size());
  }
  // As if a run had ended while it sent the first parcel in the spool.
  void BeginSending() const {
    const Result<SpoolDirectory> directory = SpoolDirectory::Open(Spool());
    const Result<SpoolFile> file = directory->OpenFile(directory->List()->front());
    ASSERT_TRUE(file->SetState(0, SpoolState::kSending).has_value());
  }
  std::vector<std::string> FilesInSpool() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(Spool())) {
      if (entry.path().extension() == ".parcels") names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }

  TemporaryTree tree_;
  SteppedClock clock_;
  ReadableLog log_{clock_};
};

}  // namespace pyrometer
