// SPDX-License-Identifier: Apache-2.0
#include "foreign/nursery.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <iterator>

namespace pyrometer {
namespace {

constexpr std::chrono::seconds kLongForNursery(60);

// What a child tells of itself.
struct Told {
  pid_t pid = 0;
  mode_t umask = 0;
  int descriptors = 0;
};

void Tell(const MessageSocket& socket) {
  Told told{.pid = ::getpid(), .umask = ::umask(0)};
  const std::filesystem::directory_iterator open("/proc/self/fd");
  told.descriptors = static_cast<int>(std::distance(begin(open), end(open)));
  socket.Send(told).has_value();  // else nothing arrives, and the test fails
}

void TellAndWait(const MessageSocket& socket) {
  Tell(socket);
  while (true) ::pause();
}

Told Hear(const MessageSocket& socket) {
  Told told;
  EXPECT_TRUE(socket.WaitUntilReadable(kLongForNursery) && socket.Receive(told).has_value());
  return told;
}

bool IsClosed(const MessageSocket& socket) {
  char any = 0;
  return socket.WaitUntilReadable(kLongForNursery) && !socket.Receive(any);
}

TEST(Nursery, ForksProcessesThatHaveNothingOfOurs) {
  const int ours = ::dup(STDOUT_FILENO);
  Result<Nursery> nursery = Nursery::Start({.prepare = [] { ::umask(07); }, .serve = Tell});
  ASSERT_TRUE(nursery.has_value());
  const Result<Nursery::Process> first = nursery->Fork();
  const Result<Nursery::Process> second = nursery->Fork();
  ASSERT_TRUE(first && second);
  for (const auto* child : {&*first, &*second}) {
    const Told told = Hear(child->socket);
    EXPECT_EQ(told.pid, child->pid);
    EXPECT_EQ(told.umask, 07U) << "what was prepared";
    EXPECT_EQ(told.descriptors, 5) << "three for nobody, the socket and the listing";
    EXPECT_TRUE(IsClosed(child->socket)) << "nobody else has the other end";
  }
  EXPECT_NE(first->pid, second->pid);
  ::close(ours);
}

TEST(Nursery, KillsAChild) {
  Result<Nursery> nursery = Nursery::Start({.serve = TellAndWait});
  ASSERT_TRUE(nursery.has_value());
  const Result<Nursery::Process> killed = nursery->Fork();
  const Result<Nursery::Process> other = nursery->Fork();
  ASSERT_TRUE(killed && other);
  Hear(killed->socket);
  Hear(other->socket);
  nursery->Kill(killed->pid);
  EXPECT_TRUE(IsClosed(killed->socket));
  EXPECT_EQ(::kill(other->pid, 0), 0) << "the other one lives";
  nursery->Kill(killed->pid);  // again: no error
  EXPECT_TRUE(nursery->Fork().has_value());
}

TEST(Nursery, HasATwinForWhenItIsKilled) {
  Result<Nursery> nursery = Nursery::Start({.serve = TellAndWait});
  ASSERT_TRUE(nursery.has_value());
  const Result<Nursery::Process> child = nursery->Fork();
  ASSERT_TRUE(child.has_value());
  Hear(child->socket);
  for (int i = 0; i < 3; ++i) {
    const pid_t killed = nursery->pid();
    ::kill(killed, SIGKILL);
    EXPECT_TRUE(i > 0 || IsClosed(child->socket)) << "those that it forked go with it";
    const Result<Nursery::Process> next = nursery->Fork();
    ASSERT_TRUE(next.has_value()) << next.error().message();
    EXPECT_EQ(Hear(next->socket).pid, next->pid);
    EXPECT_NE(nursery->pid(), killed);
  }
}

}  // namespace
}  // namespace pyrometer
