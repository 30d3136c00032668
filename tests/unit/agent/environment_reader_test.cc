// SPDX-License-Identifier: Apache-2.0
#include "agent/environment_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/unique_fd.h"
#include "process/process_directory.h"
#include "tests/shared/eventually.h"
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
  const LabelSet labels_ = std::make_shared<const Labels>();
  std::map<Pid, std::string> told_;
};

TEST_F(EnvironmentReaderTest, TellsWhatLivingProcessesAre) {
  const Sleeper cart("OTEL_SERVICE_NAME=cart");
  const Sleeper plain("A=b");
  EnvironmentReader reader(Procfs{}, clock_, {.delay = 1ms, .limit = kTestPatience});
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
  EnvironmentReader reader(Procfs{}, clock_, {.delay = 1ms, .limit = kTestPatience});
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

// As one does whose memory is behind a userfaultfd: a FIFO without a writer.
TEST_F(EnvironmentReaderTest, DoesNotWaitForOneThatDoesNotAnswer) {
  TemporaryTree tree;
  for (const char* pid : {"17", "18"}) {
    const std::string directory = std::string("proc/") + pid;
    tree.File(directory + "/stat", std::string(pid) +
                                       " (x) S 1 18 18 0 -1 4194560 0 0 0 0 0 0 0 0 "
                                       "20 0 1 0 5 0 0 0 0 0 0 0 0 0\n");
    tree.File(directory + "/status",
              std::string("Name:\tx\nUid:\t0\t0\t0\t0\nNSpid:\t") + pid + "\n");
    tree.File(directory + "/ns/mnt", "");
    tree.Link(directory + "/root", "/");
  }
  const std::string fifo = tree.AsProcfs().root + "/17/environ";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  tree.File("proc/18/environ", "OTEL_SERVICE_NAME=cart");
  // The one that answers may be late, too, where the machine is: then it gets more time.
  EnvironmentReader::Counters counters;
  for (auto limit = 100ms; counters.read == 0 && limit < kTestPatience; limit *= 2) {
    EnvironmentReader reader(tree.AsProcfs(), clock_, {.delay = 0ms, .limit = limit});
    reader.Want({Pid(17), StartTime(5)}, labels_);
    reader.Want({Pid(18), StartTime(5)}, labels_);
    Start(reader);
    counters = Await(reader, 2);
  }
  EXPECT_EQ(counters.late, 1);
  EXPECT_EQ(counters.read, 1);
  EXPECT_THAT(told_, ElementsAre(Pair(Pid(18), "cart")));
  const UniqueFd writer(::open(fifo.c_str(), O_WRONLY | O_NONBLOCK));  // lets the thread go
}

TEST_F(EnvironmentReaderTest, LeavesOutWhatIsTooMuch) {
  EnvironmentReader reader(Procfs{}, clock_, {.delay = 1h, .most_waiting = 2});
  Start(reader);
  for (uint32_t pid = 1; pid <= 10; ++pid) reader.Want({Pid(pid), StartTime(0)}, labels_);
  EXPECT_GE(reader.counters().left_out, 7) << "two wait, and one may have been taken";
}

}  // namespace
}  // namespace pyrometer
