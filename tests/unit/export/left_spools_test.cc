// SPDX-License-Identifier: Apache-2.0
#include "export/left_spools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/export/delivery_fixture.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr uint64_t kTicks = 7;  // of each file

class LeftSpoolsTest : public testing::Test {
 protected:
  // A file of some 1,000 bytes that was written so long before now.
  void Spool(const std::string& name, uint64_t number, std::chrono::hours before) {
    const Result<SpoolDirectory> spool = SpoolDirectory::Open(PathOf(name));
    ASSERT_TRUE(spool) << spool.error().message();
    Parcel parcel;
    parcel.body = std::string(1000, 'b');
    parcel.series = "a series";
    parcel.samples = kTicks;
    const Parcel* const parcels[] = {&parcel};
    ASSERT_TRUE(spool->Write(number, parcels));
    const std::string file = fmt::format("{}/{:016}.parcels", PathOf(name), number);
    const auto written = std::chrono::file_clock::from_sys(clock_.WallNow() - before);
    std::filesystem::last_write_time(file, written);
    bytes_of_file_ = std::filesystem::file_size(file);
  }
  std::string PathOf(const std::string& spool) const { return tree_.Path("spool/" + spool); }
  std::vector<uint64_t> Numbers(const std::string& spool) const {
    std::vector<uint64_t> numbers;
    const auto files = SpoolDirectory::Look(PathOf(spool));
    if (!files) return numbers;
    for (const SpoolFileFacts& file : *files) numbers.push_back(file.number);
    return numbers;
  }
  LeftSpools::Options Options() const {
    return {.directory = tree_.Path("spool"),
            .used = {"used"},
            .max_size = 1 << 20,
            .max_age = std::chrono::hours(24),
            .interval = std::chrono::milliseconds(1),
            .on_thread_start = {}};
  }
  std::unique_ptr<LeftSpools> Keep(LeftSpools::Options options) {
    return std::make_unique<LeftSpools>(std::move(options), LeftSpools::Counters(), clock_,
                                        log_.log());
  }

  TemporaryTree tree_;
  SteppedClock clock_;
  ReadableLog log_{clock_};
  uint64_t bytes_of_file_ = 0;
};

TEST_F(LeftSpoolsTest, KeepWhatMayBeWantedAgain) {
  Spool("left", 1, std::chrono::hours(23));
  Spool("used", 1, std::chrono::hours(25));
  const auto left = Keep(Options());
  EXPECT_TRUE(Eventually([&] { return left->counters().files == 1; }));
  EXPECT_EQ(left->counters().bytes, bytes_of_file_);
  left->Stop();
  EXPECT_THAT(Numbers("left"), ElementsAre(1));
  EXPECT_THAT(Numbers("used"), ElementsAre(1)) << "its sink's business";
  EXPECT_TRUE(left->counters().dropped_ticks.empty());
}

TEST_F(LeftSpoolsTest, DropWhatBecomesTooOldAndTheirDirectory) {
  Spool("left", 1, std::chrono::hours(22));
  Spool("left", 2, std::chrono::hours(1));
  const auto left = Keep(Options());
  ASSERT_TRUE(Eventually([&] { return left->counters().files == 2; }));
  clock_.Pass(std::chrono::hours(3));
  ASSERT_TRUE(Eventually([&] { return left->counters().files == 1; }));
  EXPECT_THAT(Numbers("left"), ElementsAre(2));
  EXPECT_THAT(left->counters().dropped_ticks, ElementsAre(Pair("too_old", kTicks)));
  clock_.Pass(std::chrono::hours(24));
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(PathOf("left")); }));
  EXPECT_THAT(left->counters().dropped_ticks, ElementsAre(Pair("too_old", 2 * kTicks)));
}

TEST_F(LeftSpoolsTest, DropTheOldestOfAllOfThemUntilThereIsRoomBesideThoseInUse) {
  Spool("used", 1, std::chrono::hours(5));
  Spool("used", 2, std::chrono::hours(5));
  Spool("left", 1, std::chrono::hours(4));
  Spool("also", 1, std::chrono::hours(3));
  Spool("left", 2, std::chrono::hours(2));
  LeftSpools::Options options = Options();
  options.max_size = 3 * bytes_of_file_;
  const auto left = Keep(options);
  ASSERT_TRUE(Eventually([&] { return left->counters().files == 1; }));
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(PathOf("also")); }));
  left->Stop();
  EXPECT_THAT(Numbers("left"), ElementsAre(2));
  EXPECT_THAT(Numbers("used"), ElementsAre(1, 2));
  EXPECT_THAT(left->counters().dropped_ticks, ElementsAre(Pair("spool_full", 2 * kTicks)));
}

TEST_F(LeftSpoolsTest, LeaveAloneWhatAnotherProcessHasAndWhatIsNoSpool) {
  Spool("another", 1, std::chrono::hours(48));
  Spool("left", 1, std::chrono::hours(48));
  std::filesystem::create_directories(PathOf("photos"));
  std::ofstream(PathOf("photos") + "/0000000000000001.parcels") << "mine";
  const Result<SpoolDirectory> other = SpoolDirectory::Open(PathOf("another"));
  ASSERT_TRUE(other);
  const auto left = Keep(Options());
  ASSERT_TRUE(Eventually([&] { return !std::filesystem::exists(PathOf("left")); }));
  left->Stop();
  EXPECT_THAT(Numbers("another"), ElementsAre(1));
  EXPECT_TRUE(std::filesystem::exists(PathOf("photos") + "/0000000000000001.parcels"));
}

TEST_F(LeftSpoolsTest, SayOfAFileThatCannotBeReadThatItsTicksAreNotKnown) {
  Spool("left", 1, std::chrono::hours(48));
  const std::string file = PathOf("left") + "/0000000000000001.parcels";
  std::ofstream(file) << "garbage";
  std::filesystem::last_write_time(
      file, std::chrono::file_clock::from_sys(clock_.WallNow() - std::chrono::hours(48)));
  const auto left = Keep(Options());
  EXPECT_TRUE(Eventually([&] { return left->counters().unreadable_files == 1; }));
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(PathOf("left")); }));
}

}  // namespace
}  // namespace pyrometer
