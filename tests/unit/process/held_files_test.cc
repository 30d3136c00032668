// SPDX-License-Identifier: Apache-2.0
#include "process/held_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>
#include <vector>

namespace pyrometer {
namespace {

bool IsOpen(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

// Holds a new file as object `id`; its number, which no other file gets while it is open.
int HoldNew(HeldFiles& files, uint32_t id) {
  const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  files.Hold(ObjectId(id), {.fd = UniqueFd(fd)}, nullptr);
  return fd;
}

TEST(HeldFiles, CloseTheOneNotUsedForLongest) {
  HeldFiles files(2);
  HoldNew(files, 1);
  const int second = HoldNew(files, 2);
  EXPECT_NE(files.Find(ObjectId(1)), nullptr);
  const UniqueFd reserved(::fcntl(second, F_DUPFD_CLOEXEC, 0));  // so that 3 gets another number
  HoldNew(files, 3);
  EXPECT_EQ(files.Find(ObjectId(2)), nullptr);
  EXPECT_FALSE(IsOpen(second));
  EXPECT_NE(files.Find(ObjectId(1)), nullptr);
  EXPECT_NE(files.Find(ObjectId(3)), nullptr);
}

TEST(HeldFiles, CloseOneOfWhoHasMost) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
  const auto hold = [](HeldFiles& files, uint32_t id, uid_t owner) {
    UniqueFd fd(::memfd_create("file", MFD_CLOEXEC));
    ASSERT_EQ(::fchown(fd.get(), owner, owner), 0);
    files.Hold(ObjectId(id), {.fd = std::move(fd)}, nullptr);
  };
  HeldFiles files(4);
  hold(files, 1, 4711);
  for (const uint32_t id : {2, 3, 4, 5, 6, 7}) hold(files, id, 4712);
  hold(files, 8, 4713);
  std::vector<uint32_t> held;
  for (uint32_t id = 1; id <= 8; ++id) {
    if (files.Holds(ObjectId(id))) held.push_back(id);
  }
  EXPECT_EQ(held, std::vector<uint32_t>({1, 6, 7, 8}));
  files.CloseUnused({ObjectId(6), ObjectId(7)});
  hold(files, 9, 4713);
  hold(files, 10, 4713);
  hold(files, 11, 4711);
  EXPECT_FALSE(files.Holds(ObjectId(6))) << "who has as many, and was used before the others";
  EXPECT_TRUE(files.Holds(ObjectId(9)));
}

TEST(HeldFiles, StayOpenForWhoSharesThem) {
  HeldFiles files(1);
  const int first = HoldNew(files, 1);
  ObjectFile shared = files.Find(ObjectId(1));
  HoldNew(files, 2);
  EXPECT_EQ(files.Find(ObjectId(1)), nullptr);
  EXPECT_TRUE(IsOpen(first));
  shared.reset();
  EXPECT_FALSE(IsOpen(first));
}

TEST(HeldFiles, AreNeverMoreThanTwiceTheBudget) {
  HeldFiles files(2);
  std::vector<ObjectFile> shared;
  for (const uint32_t id : {1, 2, 3, 4}) {
    HoldNew(files, id);
    shared.push_back(files.Find(ObjectId(id)));
  }
  const int refused = HoldNew(files, 5);
  EXPECT_EQ(files.Find(ObjectId(5)), nullptr);
  EXPECT_FALSE(IsOpen(refused));
  shared.clear();
  HoldNew(files, 5);
  EXPECT_NE(files.Find(ObjectId(5)), nullptr);
}

TEST(HeldFiles, OutliveTheirHolder) {
  ObjectFile shared;
  {
    HeldFiles files(1);
    HoldNew(files, 1);
    shared = files.Find(ObjectId(1));
  }
  EXPECT_TRUE(IsOpen(shared->get()));
}

}  // namespace
}  // namespace pyrometer
