// SPDX-License-Identifier: Apache-2.0
#include "base/nursery.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace pyrometer {
namespace {

pid_t ParentOf(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;) {
    if (word == "PPid:" && status >> word) return std::stoi(word);
  }
  return 0;
}

class NurseryTest : public testing::Test {
 protected:
  // A child says who it is, and waits for the end of its socket.
  const std::unique_ptr<Nursery> nursery_ = *Nursery::Start("nursery-test", [](auto socket) {
    const pid_t self = ::getpid();
    if (!socket.Send(self)) return;
    char byte = 0;
    socket.Receive(byte).has_value();
  });

  static pid_t Said(const Nursery::Child& child) {
    pid_t pid = 0;
    return child.socket.Receive(pid) ? pid : 0;
  }
};

TEST_F(NurseryTest, ForksAndKills) {
  const Nursery::Child child = *nursery_->Fork();
  EXPECT_EQ(Said(child), child.pid);
  nursery_->Kill(child.pid);
  EXPECT_EQ(Said(child), 0);
}

// It is slow to answer once: later answers are not taken for earlier ones.
TEST_F(NurseryTest, TellsItsChildrenApartAfterAnAnswerThatCameTooLate) {
  const Nursery::Child first = *nursery_->Fork();
  const pid_t forker = ParentOf(Said(first));
  ASSERT_EQ(::kill(forker, SIGSTOP), 0);
  EXPECT_EQ(nursery_->Fork().error().code(), ErrorCode::kExhausted);
  ASSERT_EQ(::kill(forker, SIGCONT), 0);
  for (int i = 0; i < 3; ++i) {
    const Result<Nursery::Child> child = nursery_->Fork();
    ASSERT_TRUE(child);
    EXPECT_EQ(Said(*child), child->pid);
  }
}

}  // namespace
}  // namespace pyrometer
