// SPDX-License-Identifier: Apache-2.0
#include "export/profile_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "proto/pprof.pb.h"
#include "tests/unit/base/temporary_tree.h"
#include "tests/unit/profile/made_profile.h"

namespace pyrometer {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::MatchesRegex;

class SetClock final : public Clock {
 public:
  std::chrono::system_clock::time_point WallNow() const override { return now; }
  // 2026-11-22 20:00:00 UTC
  std::chrono::system_clock::time_point now{seconds(1'795'377'600)};
};

class ProfileDirectoryTest : public testing::Test {
 protected:
  std::unique_ptr<ProfileDirectory> Open(uint64_t max_size = 1 << 20) {
    auto directory = ProfileDirectory::Open(
        {.directory = tree_.Path("profiles"), .max_size = max_size, .max_age = hours(24)}, clock_);
    EXPECT_TRUE(directory.has_value()) << directory.error().message();
    return *std::move(directory);
  }

  Parcel MakeParcel(std::chrono::nanoseconds ago, const std::string& service = "nginx",
                    size_t bytes = 100) const {
    Parcel parcel;
    parcel.body = std::string(bytes, 'b');
    parcel.series = "{service_name=\"" + service + "\"}";
    parcel.begin =
        std::chrono::time_point_cast<std::chrono::system_clock::duration>(clock_.now - ago);
    return parcel;
  }

  // Names of all files, sorted.
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    const std::filesystem::path root = tree_.Path("profiles");
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      if (entry.is_regular_file()) files.push_back(entry.path().filename());
    }
    std::ranges::sort(files);
    return files;
  }

  size_t Directories() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(tree_.Path("profiles")), {}));
  }

  SetClock clock_;
  TemporaryTree tree_;
};

TEST_F(ProfileDirectoryTest, HasADirectoryForEachLabelSetAndAFileForEachWindow) {
  const auto directory = Open();
  MadeProfile made;
  made.Add({MakeLocation("main")}, 3);
  made.profile().labels = {{"path", "/a b"}, {"service_name", "nginx"}};
  made.profile().begin = clock_.now - milliseconds(1500);
  const Packed packed = directory->Pack(made.profile());
  ASSERT_EQ(packed.parcels.size(), 1);
  EXPECT_EQ(packed.parcels[0].samples, 3);
  EXPECT_EQ(directory->Deliver(packed.parcels[0]).outcome, Outcome::kDelivered);
  EXPECT_THAT(Files(), ElementsAre("20261122T195958.500Z.pb.gz"));
  const auto series = std::filesystem::directory_iterator(tree_.Path("profiles"))->path();
  EXPECT_THAT(series.filename(), MatchesRegex("path=_a_b,service_name=nginx\\.[0-9a-f]{16}"));
  const auto bytes = ReadFile(series / "20261122T195958.500Z.pb.gz");
  pprof::Profile profile;
  ASSERT_TRUE(profile.ParseFromString(Inflate(*bytes)));
  EXPECT_EQ(profile.sample(0).value(0), 3);
  EXPECT_THAT(profile.string_table(), Contains("service_name=nginx"));
  EXPECT_THAT(profile.string_table(), Contains("path=/a b"));
}

TEST_F(ProfileDirectoryTest, TellsLabelSetsApartWhoseNamesLookAlike) {
  const auto directory = Open();
  EXPECT_EQ(directory->Deliver(MakeParcel(seconds(1), "a b")).outcome, Outcome::kDelivered);
  EXPECT_EQ(directory->Deliver(MakeParcel(seconds(1), "a/b")).outcome, Outcome::kDelivered);
  EXPECT_EQ(directory->Deliver(MakeParcel(seconds(1), std::string(3000, 'x'))).outcome,
            Outcome::kDelivered);
  EXPECT_EQ(directory->Deliver(MakeParcel(seconds(1), "../../..")).outcome, Outcome::kDelivered);
  EXPECT_EQ(Directories(), 4);
}

TEST_F(ProfileDirectoryTest, KeepsBothOfTwoProfilesOfOneWindow) {
  const auto directory = Open();
  directory->Deliver(MakeParcel(seconds(1)));
  directory->Deliver(MakeParcel(seconds(1)));
  EXPECT_THAT(Files(), ElementsAre("20261122T195959.000Z.2.pb.gz", "20261122T195959.000Z.pb.gz"));
}

TEST_F(ProfileDirectoryTest, RemovesTheOldestWhenThereIsTooMuch) {
  const auto directory = Open(3 * 4096);
  for (const int ago : {30, 10, 40, 20}) directory->Deliver(MakeParcel(seconds(ago)));
  EXPECT_THAT(Files(), ElementsAre("20261122T195930.000Z.pb.gz", "20261122T195940.000Z.pb.gz",
                                   "20261122T195950.000Z.pb.gz"));
  EXPECT_EQ(directory->Bytes(), 3 * 4096);
}

TEST_F(ProfileDirectoryTest, RemovesWhatIsTooOldAndTheDirectoryWithTheLastFile) {
  const auto directory = Open();
  directory->Deliver(MakeParcel(hours(23), "old"));
  EXPECT_EQ(Directories(), 1);
  clock_.now += hours(2);
  directory->Deliver(MakeParcel(seconds(1), "new"));
  EXPECT_EQ(Directories(), 1);
  EXPECT_THAT(Files(), ElementsAre("20261122T215959.000Z.pb.gz"));
}

TEST_F(ProfileDirectoryTest, RejectsWhatItWouldRemoveAtOnce) {
  const auto directory = Open(8192);
  EXPECT_EQ(directory->Deliver(MakeParcel(hours(25))).reason, "too_old");
  const Receipt receipt = directory->Deliver(MakeParcel(seconds(1), "nginx", 10'000));
  EXPECT_EQ(receipt.outcome, Outcome::kRejected);
  EXPECT_EQ(receipt.reason, "too_large");
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(ProfileDirectoryTest, KnowsItsFilesAfterARestart) {
  Open()->Deliver(MakeParcel(seconds(30)));
  Open()->Deliver(MakeParcel(seconds(20), "other"));
  const auto directory = Open(2 * 4096);
  EXPECT_EQ(directory->Bytes(), 2 * 4096);
  directory->Deliver(MakeParcel(seconds(10)));
  EXPECT_THAT(Files(), ElementsAre("20261122T195940.000Z.pb.gz", "20261122T195950.000Z.pb.gz"));
}

TEST_F(ProfileDirectoryTest, RemovesWhatACrashLeft) {
  Open()->Deliver(MakeParcel(seconds(30)));
  const std::string series =
      std::filesystem::directory_iterator(tree_.Path("profiles"))->path().filename();
  tree_.File("profiles/" + series + "/.pyrometer-0123456789abcdef", "half");
  Open();
  EXPECT_THAT(Files(), ElementsAre("20261122T195930.000Z.pb.gz"));
}

TEST_F(ProfileDirectoryTest, TouchesNoForeignFile) {
  Open()->Deliver(MakeParcel(seconds(30)));
  const std::string series =
      std::filesystem::directory_iterator(tree_.Path("profiles"))->path().filename();
  const std::vector<std::string> foreign = {"profiles/20200101T000000.000Z.pb.gz",
                                            "profiles/mine/20200101T000000.000Z.pb.gz",
                                            "profiles/" + series + "/notes.txt",
                                            "profiles/" + series + "/20200101T000000Z.pb.gz",
                                            "profiles/" + series + "/20201301T000000.000Z.pb.gz",
                                            "profiles/.pyrometer-0123456789abcdef"};
  for (const std::string& file : foreign) tree_.File(file, std::string(100'000, 'x'));
  const auto directory = Open(4096);
  EXPECT_EQ(directory->Bytes(), 4096);
  clock_.now += hours(25);
  directory->Deliver(MakeParcel(seconds(1), "other"));
  for (const std::string& file : foreign) {
    EXPECT_TRUE(std::filesystem::exists(tree_.Path(file))) << file;
  }
  EXPECT_FALSE(
      std::filesystem::exists(tree_.Path("profiles/" + series + "/20261122T195930.000Z.pb.gz")));
}

TEST_F(ProfileDirectoryTest, RemovesNothingToMakeRoomForForeignFiles) {
  Open()->Deliver(MakeParcel(seconds(30)));
  const std::string series =
      std::filesystem::directory_iterator(tree_.Path("profiles"))->path().filename();
  for (const std::string name : {"20991231T000000.000Z.pb.gz.bak", "20991231T000000.000Z"}) {
    tree_.File("profiles/" + series + "/" + name, std::string(100'000, 'x'));
  }
  EXPECT_EQ(Open(4096)->Bytes(), 4096U);
  EXPECT_TRUE(
      std::filesystem::exists(tree_.Path("profiles/" + series + "/20261122T195930.000Z.pb.gz")));
}

TEST_F(ProfileDirectoryTest, MakesItsDirectoriesAgainWhenTheyAreRemoved) {
  const auto directory = Open();
  directory->Deliver(MakeParcel(seconds(30)));
  std::filesystem::remove_all(tree_.Path("profiles"));
  EXPECT_EQ(directory->Deliver(MakeParcel(seconds(20))).outcome, Outcome::kDelivered);
  EXPECT_THAT(Files(), ElementsAre("20261122T195940.000Z.pb.gz"));
}

// A write that fails in the middle leaves nothing; the limit on the size of files stands for a disk
// that is full, which needs privileges to be made.
TEST_F(ProfileDirectoryTest, LeavesNothingOfAProfileThatDoesNotFit) {
  const auto directory = Open();
  directory->Deliver(MakeParcel(seconds(30)));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1000;
  std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Receipt receipt = directory->Deliver(MakeParcel(seconds(20), "nginx", 5'000));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(receipt.outcome, Outcome::kNotArrived);
  EXPECT_THAT(Files(), ElementsAre("20261122T195930.000Z.pb.gz"));
  EXPECT_EQ(directory->Bytes(), 4096);
}

TEST_F(ProfileDirectoryTest, SaysThatADiskIsFull) {
  tree_.Directory("profiles");
  if (::mount("none", tree_.Path("profiles").c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "mounting a small file system needs privileges";
  }
  {
    const auto directory = Open();
    const Receipt receipt = directory->Deliver(MakeParcel(seconds(20), "nginx", 100'000));
    EXPECT_EQ(receipt.outcome, Outcome::kNotArrived);
    EXPECT_EQ(receipt.reason, "disk_full");
    EXPECT_THAT(Files(), IsEmpty());
    EXPECT_EQ(directory->Deliver(MakeParcel(seconds(20))).outcome, Outcome::kDelivered);
  }
  ::umount(tree_.Path("profiles").c_str());
}

TEST_F(ProfileDirectoryTest, TakesParcelsFromManyThreads) {
  const auto directory = Open(64 * 4096);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(directory->Deliver(MakeParcel(seconds(i), t % 2 == 0 ? "a" : "b")).outcome,
                  Outcome::kDelivered);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Files().size(), 64);
  EXPECT_EQ(directory->Bytes(), 64 * 4096);
}

TEST_F(ProfileDirectoryTest, RefusesWhatCannotBeADirectory) {
  tree_.File("file", "");
  for (const std::string& path : {std::string(), tree_.Path("file"), tree_.Path("file/below")}) {
    EXPECT_FALSE(ProfileDirectory::Open({.directory = path}, clock_).has_value()) << path;
  }
  EXPECT_FALSE(
      ProfileDirectory::Open({.directory = tree_.Path("x"), .max_size = 0}, clock_).has_value());
}

}  // namespace
}  // namespace pyrometer
