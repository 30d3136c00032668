// SPDX-License-Identifier: Apache-2.0
#include "agent/environment_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/file_identity.h"
#include "base/unique_fd.h"
#include "foreign/direct_foreign_files.h"
#include "process/process_directory.h"
#include "tests/shared/eventually.h"
#include "tests/shared/fake_clock.h"
#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

using testing::ElementsAre;
using testing::Pair;
using namespace std::chrono_literals;

// A process that waits for its end, with one variable in its environment.
class Sleeper {
 public:
  explicit Sleeper(std::string variable) {
    std::string name = "sleep";
    std::string time = "1000";
    const std::vector<char*> arguments = {name.data(), time.data(), nullptr};
    const std::vector<char*> environment = {variable.data(), nullptr};
    EXPECT_EQ(
        ::posix_spawnp(&pid_, "sleep", nullptr, nullptr, arguments.data(), environment.data()), 0);
    // It returns while the kernel is still loading the program, which has no environment then.
    const std::string file = "/proc/" + std::to_string(pid_) + "/environ";
    EXPECT_TRUE(Eventually([&] { return ReadFile(file).value_or("") == variable + '\0'; }));
  }
  ~Sleeper() { End(); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  ProcessKey key() const {
    const Pid pid(static_cast<uint32_t>(pid_));
    return {pid, ProcessDirectory::Open(Procfs{}, pid)->Stat()->start};
  }
  void Kill() const { ::kill(pid_, SIGKILL); }
  void End() {
    if (pid_ <= 0) return;
    Kill();
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  // Until nothing of it is left but what its parent waits for.
  void AwaitZombie() const {
    siginfo_t info{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT), 0);
  }

 private:
  pid_t pid_ = -1;
};

// Answers but for one file, as does one whose memory is behind a userfaultfd.
class PartlySilent final : public DirectForeignFiles {
 public:
  Result<UniqueFd> ReadText(int directory_fd, const std::string& name, uint64_t most,
                            const FilePatience& patience) override {
    const Result<Inode> directory = InodeOf(directory_fd);
    if (directory && directory->number == silent_) {
      ++asked_;
      return Fail(ErrorCode::kLate, "no answer");
    }
    return DirectForeignFiles::ReadText(directory_fd, name, most, patience);
  }
  void Silence(const std::string& directory) {
    const UniqueFd fd(::open(directory.c_str(), O_PATH));
    silent_ = InodeOf(fd.get())->number;
  }
  int asked() const { return asked_; }

 private:
  uint64_t silent_ = 0;
  std::atomic<int> asked_ = 0;
};

class EnvironmentReaderTest : public testing::Test {
 protected:
  void Start(EnvironmentReader& reader) {
    reader.Start(
        [this](const ProcessKey& process, const LabelSet& labels, const std::string& service) {
          told_[process.pid] = service;
          EXPECT_EQ(labels, labels_);
        });
  }
  // Returns the counters once so many are settled.
  static EnvironmentReader::Counters Await(const EnvironmentReader& reader, uint64_t count) {
    EXPECT_TRUE(Eventually([&] {
      const EnvironmentReader::Counters now = reader.counters();
      return now.read + now.gone + now.refused + now.late + now.left_out >= count;
    }));
    return reader.counters();
  }

  const Clock clock_;
  const std::shared_ptr<PartlySilent> files_ = std::make_shared<PartlySilent>();
  const LabelSet labels_ = std::make_shared<const Labels>();
  std::map<Pid, std::string> told_;
};

TEST_F(EnvironmentReaderTest, TellsWhatLivingProcessesAre) {
  const Sleeper cart("OTEL_SERVICE_NAME=cart");
  const Sleeper plain("A=b");
  EnvironmentReader reader(Procfs{}, clock_, files_, {.delay = 1ms, .limit = kTestPatience});
  reader.Want(cart.key(), labels_);
  Start(reader);
  reader.Want(plain.key(), labels_);
  EXPECT_EQ(Await(reader, 2).read, 2);
  reader.Stop();
  EXPECT_THAT(told_, ElementsAre(Pair(cart.key().pid, "cart"), Pair(plain.key().pid, "")));
}

TEST_F(EnvironmentReaderTest, TellsNothingOfThoseThatHaveEnded) {
  Sleeper ended("OTEL_SERVICE_NAME=cart");
  const Sleeper zombie("OTEL_SERVICE_NAME=cart");
  const Sleeper other("OTEL_SERVICE_NAME=cart");
  EnvironmentReader reader(Procfs{}, clock_, files_, {.delay = 1ms, .limit = kTestPatience});
  reader.Want(ended.key(), labels_);
  reader.Want(zombie.key(), labels_);
  reader.Want({other.key().pid, StartTime(other.key().start_time.value() - 1)}, labels_);
  ended.End();
  zombie.Kill();
  zombie.AwaitZombie();
  Start(reader);
  EXPECT_EQ(Await(reader, 3).gone, 3);
  reader.Stop();
  EXPECT_TRUE(told_.empty());
}

TEST_F(EnvironmentReaderTest, LeavesOutThoseLikeOneThatDoesNotAnswer) {
  TemporaryTree tree;
  for (const char* pid : {"17", "18", "19"}) {
    const std::string directory = std::string("proc/") + pid;
    tree.File(directory + "/stat", std::string(pid) +
                                       " (x) S 1 18 18 0 -1 4194560 0 0 0 0 0 0 0 0 "
                                       "20 0 1 0 5 0 0 0 0 0 0 0 0 0\n");
    const std::string user = pid == std::string("18") ? "7" : "0";
    tree.File(directory + "/status", "Name:\tx\nUid:\t" + user + "\t" + user + "\t" + user + "\t" +
                                         user + "\nNSpid:\t" + pid + "\n");
    tree.File(directory + "/ns/mnt", "");
    tree.Link(directory + "/root", "/");
    tree.File(directory + "/environ", "OTEL_SERVICE_NAME=cart");
  }
  files_->Silence(tree.AsProcfs().root + "/17");
  FakeClock clock;
  EnvironmentReader reader(tree.AsProcfs(), clock, files_, {.delay = 0ms, .pause = 10s});
  const auto ask = [&](uint32_t pid) { return reader.Ask({Pid(pid), StartTime(5)}); };
  EXPECT_FALSE(ask(17));
  EXPECT_FALSE(ask(17));
  EXPECT_EQ(files_->asked(), 1) << "not again so soon";
  const EnvironmentReader::Answer other = ask(18);
  ASSERT_TRUE(other && *other);
  EXPECT_EQ(**other, "cart");
  clock.Advance(11s);
  EXPECT_FALSE(ask(17));
  EXPECT_EQ(files_->asked(), 2);
}

TEST_F(EnvironmentReaderTest, SaysNothingOfWhatIsTooLarge) {
  TemporaryTree tree;
  tree.File("proc/17/stat",
            "17 (x) S 1 18 18 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0\n");
  tree.File("proc/17/status", "Name:\tx\nUid:\t0\t0\t0\t0\nNSpid:\t17\n");
  tree.File("proc/17/ns/mnt", "");
  tree.Link("proc/17/root", "/");
  tree.File("proc/17/environ", std::string((size_t{1} << 20) + 1, 'x'));
  EnvironmentReader reader(tree.AsProcfs(), clock_, files_);
  const EnvironmentReader::Answer answer = reader.Ask({Pid(17), StartTime(5)});
  ASSERT_TRUE(answer);
  EXPECT_FALSE(*answer);
}

TEST_F(EnvironmentReaderTest, LeavesOutWhatIsTooMuch) {
  EnvironmentReader reader(Procfs{}, clock_, files_, {.delay = 1h, .most_waiting = 2});
  Start(reader);
  for (uint32_t pid = 1; pid <= 10; ++pid) reader.Want({Pid(pid), StartTime(0)}, labels_);
  EXPECT_GE(reader.counters().left_out, 7) << "two wait, and one may have been taken";
}

}  // namespace
}  // namespace pyrometer
