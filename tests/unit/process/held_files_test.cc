// SPDX-License-Identifier: Apache-2.0
#include "process/held_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>

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
