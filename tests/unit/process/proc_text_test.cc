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

TEST(ProcMaps, ReadsExecutableLinesOnly) {
  const auto mappings = ParseProcMaps(
      "55e8e0000000-55e8e0001000 r--p 00000000 08:01 1234                       /usr/bin/cat\n"
      "55e8e0001000-55e8e0005000 r-xp 00001000 08:01 1234                       /usr/bin/cat\n"
      "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]\n"
      "7ffc001f0000-7ffc001f2000 r-xp 00000000 00:00 0                          [vdso]\n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n");
  ASSERT_THAT(mappings, SizeIs(2));
  EXPECT_EQ(mappings[0].range.start, Address(0x55e8e0001000));
  EXPECT_EQ(mappings[0].range.end, Address(0x55e8e0005000));
  EXPECT_EQ(mappings[0].range.offset, FileOffset(0x1000));
  const MappedFile cat{"/usr/bin/cat", BuildId(), 8, 1, 1234, 0};
  EXPECT_EQ(mappings[0].file, cat);
  EXPECT_EQ(mappings[1].file.path, kVdsoPath);
}

TEST(ProcMaps, KeepsOddPathsWhole) {
  struct Case {
    const char* line;
    const char* path;
  };
  const Case cases[] = {
      {"1000-2000 r-xp 00000000 00:00 0 ", ""},
      {"1000-2000 rwxp 00000000 00:00 0", ""},
      {"1000-2000 r-xp 0 fe:1f 9   /a b  c", "/a b  c"},
      {"1000-2000 r-xp 0 fe:1f 9 /a\\012b\\012", "/a\nb\n"},
      {"1000-2000 r-xp 0 fe:1f 9 /a\\011\\", "/a\\011\\"},
      {"1000-2000 r-xp 0 00:01 7 /memfd:jit (deleted)", "/memfd:jit (deleted)"},
      {"1000-2000 r-xs 0 00:01 7 /dev/zero (deleted)", "/dev/zero (deleted)"},
      {"1000-2000 rwxp 0 00:00 0 [anon:v8 code]", "[anon:v8 code]"},
  };
  for (const Case& c : cases) {
    const auto mappings = ParseProcMaps(std::string(c.line) + "\n");
    ASSERT_THAT(mappings, SizeIs(1)) << c.line;
    EXPECT_EQ(mappings[0].file.path, c.path);
  }
}

TEST(ProcMaps, SaysWhatIsWritableToo) {
  const auto mappings = ParseProcMaps(
      "1000-2000 r-xp 0 00:00 0\n2000-3000 rwxp 0 00:00 0\n3000-4000 --xp 0 00:00 0\n"
      "4000-5000 -wxs 0 00:00 0\n");
  ASSERT_THAT(mappings, SizeIs(4));
  EXPECT_FALSE(mappings[0].range.writable);
  EXPECT_TRUE(mappings[1].range.writable);
  EXPECT_FALSE(mappings[2].range.writable);
  EXPECT_TRUE(mappings[3].range.writable);
}

TEST(ProcMaps, LeavesOutLinesThatMakeNoSense) {
  EXPECT_THAT(ParseProcMaps("\n\nx\n2000-1000 r-xp 0 00:00 0\n1000-2000 r-\n1000 r-xp 0 0:0 0\n"
                            "1000-2000 r-xp 0 zz:00 0 /x\n-r-xp\n99999999999999999999-2 r-xp 0"),
              IsEmpty());
}

TEST(ProcMaps, ReadsALastLineWithoutNewline) {
  EXPECT_THAT(ParseProcMaps("1000-2000 r-xp 0 00:00 0 /x"), SizeIs(1));
}

TEST(ProcStatus, TakesTheInnermostPidAndTheFileSystemUser) {
  const Result<ProcStatus> status = ParseProcStatus(
      "Name:\tjava\nUid:\t1000\t1001\t1002\t1003\nGid:\t5\t5\t5\t5\nNSpid:\t4711\t12\t1\n");
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->namespace_pid, Pid(1));
  EXPECT_EQ(status->owner, 1003U);
}

TEST(ProcStatus, RefusesAFileWithoutThem) {
  EXPECT_FALSE(ParseProcStatus("Name:\tjava\nNSpid:\t1\n").has_value());
  EXPECT_FALSE(ParseProcStatus("Uid:\t0\t0\t0\t0\nNSpid:\n").has_value());
  EXPECT_FALSE(ParseProcStatus("").has_value());
}

}  // namespace
}  // namespace pyrometer
