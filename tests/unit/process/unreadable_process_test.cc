// SPDX-License-Identifier: Apache-2.0
// A process that cannot be read now is not dead.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/unit/process/process_history_fixture.h"

namespace pyrometer {
namespace {

using ::testing::SizeIs;

constexpr uid_t kNobody = 65534;

// Without the right to read what only its owner may.
class AsNobody {
 public:
  AsNobody() {
    if (::getuid() == 0) {
      EXPECT_EQ(::seteuid(kNobody), 0);
    }
  }
  ~AsNobody() {
    if (::getuid() == 0) {
      EXPECT_EQ(::seteuid(0), 0);
    }
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
};

// With room for so many open files more. What is called meanwhile must have been called before: the
// sanitizer that checks the types of objects opens a pipe when it meets one for the first time.
class FewFiles {
 public:
  explicit FewFiles(rlim_t more) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const UniqueFd next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const rlimit few{static_cast<rlim_t>(next.get()) + more, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~FewFiles() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }
  FewFiles(const FewFiles&) = delete;
  FewFiles& operator=(const FewFiles&) = delete;

 private:
  rlimit before_{};
};

class UnreadableProcess : public ProcessHistoryTest {
 protected:
  UnreadableProcess() {
    // The sanitizer looks at a table of virtual functions by a pipe, the first time that it is
    // used.
    const Clock& clock = clock_;
    last_ = clock.Now();
    // Everybody may look into the tree itself.
    ::chmod(std::filesystem::path(machine_.proc()).parent_path().c_str(), 0755);
  }
  void TearDown() override {
    if (std::filesystem::exists(Of(""))) SetMode("", 0755);
  }

  std::string Of(const std::string& name) const { return machine_.proc() + "/100/" + name; }
  void SetMode(const std::string& name, mode_t mode) const {
    ASSERT_EQ(::chmod(Of(name).c_str(), mode), 0) << name;
  }
  void ScanAgain() { static_cast<void>(history_.Scan({})); }
  bool IsKnown() { return PathAt(100, 5, 3, kStart) == "/lib/a+0x3000"; }
};

TEST_F(UnreadableProcess, IsNotEndedByAScan) {
  Scan();
  for (const char* const hidden : {"", "stat", "task", "maps"}) {
    const mode_t mode = std::filesystem::is_directory(Of(hidden)) ? 0755 : 0644;
    SetMode(hidden, 0);
    const uint64_t unreadable = history_.counters().processes_unreadable;
    {
      const AsNobody nobody;
      ScanAgain();
    }
    SetMode(hidden, mode);
    EXPECT_TRUE(IsKnown()) << hidden;
    EXPECT_FALSE(sink_.withdrawn.contains(Pid(100))) << hidden;
    EXPECT_EQ(sink_.by_pid[Pid(100)].mappings.size(), 1U) << hidden;
    EXPECT_EQ(history_.counters().processes_unreadable, unreadable + 1) << hidden;
  }
}

TEST_F(UnreadableProcess, IsNotEndedForWantOfFileDescriptors) {
  Scan();
  ScanAgain();
  {
    const FewFiles few(1);
    ScanAgain();
  }
  EXPECT_TRUE(IsKnown());
  EXPECT_FALSE(sink_.withdrawn.contains(Pid(100)));
  EXPECT_EQ(history_.counters().processes_unreadable, 1U);
}

TEST_F(UnreadableProcess, IsReadAgainAtTheNextScan) {
  SetMode("", 0);
  {
    const AsNobody nobody;
    ScanAgain();
  }
  EXPECT_EQ(history_.process_count(), 0U);
  SetMode("", 0755);
  Scan();
  EXPECT_TRUE(IsKnown());
}

TEST_F(UnreadableProcess, IsKnownWithoutItsMappings) {
  SetMode("maps", 0);
  {
    const AsNobody nobody;
    Scan();
  }
  EXPECT_EQ(history_.process_count(), 1U);
  EXPECT_FALSE(history_.MappingsAt(kKey, ExecId(3), Now())->complete);
  Apply(At(Mapping(100, "/lib/b", 'b'), 0x10000, 0x12000));
  EXPECT_EQ(PathAt(100, 5, 3, 0x10000), "/lib/b+0x3000");
  SetMode("maps", 0644);
  history_.Recheck(kKey);
  EXPECT_TRUE(IsKnown());
  EXPECT_TRUE(history_.MappingsAt(kKey, ExecId(3), Now())->complete);
}

TEST_F(UnreadableProcess, IsReadAgainForTheNextSample) {
  const ProcessKey nobody{Pid(4242), StartTime(1)};
  EXPECT_FALSE(history_.MappingsAt(nobody, ExecId(3), Now()).has_value());
  {
    const FewFiles few(1);
    EXPECT_FALSE(history_.MappingsAt(kKey, ExecId(3), Now()).has_value());
  }
  EXPECT_EQ(history_.counters().processes_unreadable, 1U);
  const std::optional<ProgramMappings> mappings = history_.MappingsAt(kKey, ExecId(3), Now());
  ASSERT_TRUE(mappings.has_value());
  EXPECT_THAT(mappings->mappings, SizeIs(1));
}

TEST_F(UnreadableProcess, KeepsItsMappingsWhenItIsLookedAtAgain) {
  Scan();
  for (const rlim_t more : {0, 1}) {
    const uint64_t unreadable = history_.counters().processes_unreadable;
    {
      const FewFiles few(more);
      history_.Recheck(kKey);
    }
    EXPECT_EQ(history_.counters().processes_unreadable, unreadable + 1) << more;
  }
  EXPECT_TRUE(IsKnown());
  EXPECT_THAT(sink_.by_pid[Pid(100)].mappings, SizeIs(1));
  EXPECT_EQ(history_.counters().rechecks_changed, 0U);
}

TEST_F(UnreadableProcess, StillLeadsToFilesLater) {
  Scan();
  MappingEvent event = At(Mapping(200, "/lib/b", 'b'), 0x10000, 0x12000);
  Fork(100, 200);  // it has no /proc/200: only pid 100 shows its root
  const StartTime start = BootClock::Now().ToStartTime(last_);
  event.when = Now();
  {
    const FewFiles few(0);
    Apply(event);
  }
  EXPECT_EQ(history_.counters().objects_unopened, 1U);
  event = At(Mapping(200, "/lib/b", 'b'), 0x20000, 0x22000);
  Apply(event);
  EXPECT_EQ(PathAt(200, start.value(), 3, 0x20000), "/lib/b+0x3000");
}

TEST_F(UnreadableProcess, IsGoneOnlyIfItIsNotThere) {
  Scan();
  machine_.RemoveProcess(100);
  ScanAgain();
  EXPECT_TRUE(sink_.withdrawn.contains(Pid(100)));
  EXPECT_EQ(history_.counters().processes_unreadable, 0U);
}

TEST_F(UnreadableProcess, IsNoReasonToLoseTheOthersWhenProcCannotBeListed) {
  Scan();
  std::filesystem::rename(machine_.proc(), machine_.proc() + "-away");
  EXPECT_FALSE(history_.Scan({}).has_value());
  EXPECT_EQ(history_.counters().scans_failed, 1U);
  EXPECT_FALSE(sink_.withdrawn.contains(Pid(100)));
  EXPECT_TRUE(history_.TakeLost()) << "it is to be tried again";
  std::filesystem::rename(machine_.proc() + "-away", machine_.proc());
  Scan();
  EXPECT_FALSE(history_.TakeLost());
  EXPECT_TRUE(IsKnown());
}

}  // namespace
}  // namespace pyrometer
