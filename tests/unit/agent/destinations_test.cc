// SPDX-License-Identifier: Apache-2.0
#include "agent/destinations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/shared/eventually.h"
#include "tests/unit/agent/named_window.h"
#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DestinationsTest : public testing::Test {
 protected:
  // A server whose port nobody listens on.
  static SinkConfig Server(const std::string& name) {
    SinkConfig sink;
    sink.type = SinkType::kPyroscope;
    sink.name = name;
    sink.url = "http://127.0.0.1:1";
    return sink;
  }
  static SinkConfig Files(const std::string& directory) {
    SinkConfig sink;
    sink.name = "file";
    sink.directory = directory;
    return sink;
  }

  Result<void> Apply(const std::vector<SinkConfig>& sinks) {
    ASSIGN_OR_RETURN(Destinations::Plan plan, destinations_.Prepare(sinks, settings_));
    destinations_.Apply(std::move(plan));
    return {};
  }
  void OfferOneTick() {
    Profile profile;
    profile.samples.resize(1);
    profile.samples[0].count = 1;
    destinations_.Offer(std::make_shared<const std::vector<Profile>>(1, profile));
  }
  std::string Told() {
    logger_->flush();
    return text_.str();
  }

  TemporaryTree tree_;
  const Clock clock_;
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> logger_ = std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_));
  Log log_{clock_, Log::kQuiet, logger_};
  DeliverySettings settings_{.spool = {.directory = tree_.Path("spool"), .max_size = 4 << 20},
                             .window = std::chrono::seconds(1)};
  Destinations destinations_{clock_, log_};
};

TEST_F(DestinationsTest, KeepsWhatIsConfiguredAsBefore) {
  ASSERT_TRUE(Apply({Server("one")}));
  OfferOneTick();
  ASSERT_TRUE(Apply({Server("one")}));
  EXPECT_EQ(destinations_.states()[0].counters.ticks.offered, 1);
}

// The spools of all sinks together are as large as configured: one sink more means less for each.
TEST_F(DestinationsTest, DividesTheSpoolAnewWhenAnotherSinkNeedsItsShare) {
  ASSERT_TRUE(Apply({Server("one")}));
  OfferOneTick();
  ASSERT_TRUE(Apply({Server("one"), Server("two")}));
  ASSERT_EQ(destinations_.states().size(), 2);
  EXPECT_EQ(destinations_.states()[0].counters.ticks.offered, 0) << "has the whole spool still";
}

TEST_F(DestinationsTest, TellsWhatBecameOfTheTicksOfASinkThatGoes) {
  settings_.spool.max_size = 0;
  ASSERT_TRUE(Apply({Server("one")}));
  OfferOneTick();
  ASSERT_TRUE(Apply({}));
  EXPECT_THAT(Told(), HasSubstr("sink one: offered=1 delivered=0 spooled=0 dropped=1"));
}

// What waits in the spool is encoded for the protocol that the sink spoke.
TEST_F(DestinationsTest, DoNotSendInOneProtocolWhatWasMadeForAnother) {
  SinkConfig sink = Server("changing");
  ASSERT_TRUE(Apply({sink}));
  OfferOneTick();
  sink.ingest = true;
  ASSERT_TRUE(Apply({sink}));
  EXPECT_THAT(Told(), HasSubstr("sink changing: offered=1 delivered=0 spooled=1 dropped=0"));
  const auto files_of = [&](const char* spool) {
    size_t files = 0;
    const std::string directory = settings_.spool.directory + "/" + spool;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      if (entry.path().extension() == ".parcels") ++files;
    }
    return files;
  };
  EXPECT_EQ(files_of("changing.pyroscope"), 1);
  EXPECT_EQ(destinations_.states()[0].counters.found_in_spool.spooled, 0);
}

TEST_F(DestinationsTest, CountWhatASinkThatWentHasLeft) {
  ASSERT_TRUE(Apply({Server("one")}));
  OfferOneTick();
  ASSERT_TRUE(Apply({Server("two")}));
  EXPECT_TRUE(Eventually([&] { return destinations_.left_spools().files == 1; }));
  // It finds it again when it comes back.
  ASSERT_TRUE(Apply({Server("one")}));
  const auto found = [&] { return destinations_.states()[0].counters.found_in_spool.offered; };
  EXPECT_TRUE(Eventually([&] { return found() == 1; }));
  ASSERT_TRUE(Apply({}));
  EXPECT_THAT(Told(), HasSubstr("sink one: found=1 delivered=0 "));
}

TEST(AccountingLines, TellOfWhatWasFoundInTheSpoolByItself) {
  Destinations::State sink;
  sink.name = "one";
  DeliveryTicks& now = sink.counters.ticks;
  now.offered = 10;
  now.delivered = 8;
  now.dropped = {{"rejected", 2}};
  EXPECT_THAT(AccountingLines(sink),
              ElementsAre("sink one: offered=10 delivered=8 spooled=0 dropped=2 (rejected=2)"));
  DeliveryTicks& before = sink.counters.found_in_spool;
  before.offered = 7;
  before.delivered = 3;
  before.dropped = {{"corrupt", 1}, {"maybe_arrived", 2}};
  before.spooled = 1;
  EXPECT_THAT(AccountingLines(sink),
              ElementsAre("sink one: offered=10 delivered=8 spooled=0 dropped=2 (rejected=2)",
                          "sink one: found=7 delivered=3 spooled=1 dropped=3 (corrupt=1 "
                          "maybe_arrived=2)"));
}

TEST_F(DestinationsTest, AreAsBeforeUntilAPlanIsApplied) {
  ASSERT_TRUE(Apply({Server("one")}));
  EXPECT_TRUE(destinations_.Prepare({Server("two")}, settings_));
  EXPECT_FALSE(destinations_.Prepare({Files("/proc/nowhere")}, settings_));
  ASSERT_EQ(destinations_.states().size(), 1);
  EXPECT_EQ(destinations_.states()[0].name, "one");
}

}  // namespace
}  // namespace pyrometer
