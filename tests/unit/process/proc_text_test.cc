// SPDX-License-Identifier: Apache-2.0
#include "process/proc_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace pyrometer {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string StatLine(const std::string& comm, const std::string& flags = "4194304") {
  return "42 (" + comm + ") S 1 42 42 0 -1 " + flags +
         " 100 0 0 0 5 6 0 0 20 0 3 0 987654 1000 200 18446744073709551615 4198400 1 0 0 0 0 0 0 "
         "0\n";
}

TEST(ProcStat, ReadsNameStateAndStart) {
  const Result<ProcStat> stat = ParseProcStat(StatLine("bash"));
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->comm, "bash");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->start, StartTime(987654));
  EXPECT_FALSE(stat->kernel_thread);
  EXPECT_EQ(stat->code, Address(4198400));
}

TEST(ProcStat, IsNotFooledByAHostileName) {
  for (const char* comm : {") R 1 1 1", "a (b) c", "((", "))", " ", "x\n1 (y) Z 7", ""}) {
    const Result<ProcStat> stat = ParseProcStat(StatLine(comm));
    ASSERT_TRUE(stat.has_value()) << comm;
    EXPECT_EQ(stat->comm, comm);
    EXPECT_EQ(stat->state, 'S');
    EXPECT_EQ(stat->start, StartTime(987654));
  }
}

TEST(ProcStat, KnowsKernelThreads) {
  EXPECT_TRUE(ParseProcStat(StatLine("kworker/0:1", "69238880"))->kernel_thread);
}

TEST(ProcStat, RefusesWhatIsNoStatFile) {
  for (const char* text : {"", "42", "42 (bash", "42 (bash)", "42 (bash) S 1 2 3", "42 )bash( S"}) {
    const Result<ProcStat> stat = ParseProcStat(text);
    ASSERT_FALSE(stat.has_value()) << text;
    EXPECT_EQ(stat.error().code(), ErrorCode::kMalformed);
  }
}

TEST(ProcStatus, TakesTheInnermostPidAndTheFileSystemUser) {
  const Result<ProcStatus> status = ParseProcStatus(
      "Name:\tjava\nUid:\t1000\t1001\t1002\t1003\nGid:\t5\t5\t5\t5\nNSpid:\t4711\t12\t1\n");
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->namespace_pid, Pid(1));
  EXPECT_EQ(status->user, 1000U);
  EXPECT_EQ(status->owner, 1003U);
}

TEST(ProcStatus, RefusesAFileWithoutThem) {
  EXPECT_FALSE(ParseProcStatus("Name:\tjava\nNSpid:\t1\n").has_value());
  EXPECT_FALSE(ParseProcStatus("Uid:\t0\t0\t0\t0\nNSpid:\n").has_value());
  EXPECT_FALSE(ParseProcStatus("").has_value());
}

}  // namespace
}  // namespace pyrometer
