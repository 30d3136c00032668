// SPDX-License-Identifier: Apache-2.0
#include "record/child_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/shared/eventually.h"
#include "tests/unit/base/temporary_tree.h"

namespace pyrometer {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

ChildCommand Start(const Words& words) {
  Result<ChildCommand> child = ChildCommand::Start(words);
  EXPECT_TRUE(child.has_value());
  return *std::move(child);
}

int StatusOf(const Words& words) {
  ChildCommand child = Start(words);
  EXPECT_TRUE(child.Release().has_value());
  return *child.Wait();
}

// What a shell script prints.
std::string OutputOf(const std::string& script) {
  TemporaryTree tree;
  EXPECT_EQ(StatusOf({"sh", "-c", script + " >\"$0\"", tree.Path("out")}), 0);
  return *ReadFile(tree.Path("out"));
}

bool Exists(Pid pid) {
  return ::kill(static_cast<pid_t>(pid.value()), 0) == 0;
}

bool EndsWithin(const ChildCommand& child, std::chrono::milliseconds time) {
  pollfd poll{.fd = child.ended_fd(), .events = POLLIN, .revents = 0};
  return ::poll(&poll, 1, static_cast<int>(time.count())) == 1;
}

TEST(ChildCommand, ReturnsTheExitStatus) {
  EXPECT_EQ(StatusOf({"true"}), 0);
  EXPECT_EQ(StatusOf({"sh", "-c", "exit 7"}), 7);
}

TEST(ChildCommand, ReturnsTheSignalThatKilledIt) {
  EXPECT_EQ(StatusOf({"sh", "-c", "kill -KILL $$"}), 128 + SIGKILL);
}

TEST(ChildCommand, PassesItsArgumentsUntouched) {
  EXPECT_EQ(StatusOf({"sh", "-c", "[ \"$1\" = '-x  *' ] && [ -z \"$2\" ] && [ $# = 2 ]", "sh",
                      "-x  *", ""}),
            0);
}

TEST(ChildCommand, RunsNothingBeforeItIsReleased) {
  TemporaryTree tree;
  ChildCommand child = Start({"touch", tree.Path("ran")});
  EXPECT_TRUE(Exists(child.pid()));
  EXPECT_FALSE(EndsWithin(child, 50ms));
  EXPECT_FALSE(std::filesystem::exists(tree.Path("ran")));
  ASSERT_TRUE(child.Release().has_value());
  EXPECT_EQ(*child.Wait(), 0);
  EXPECT_TRUE(std::filesystem::exists(tree.Path("ran")));
}

TEST(ChildCommand, HasTheCommandsNameBeforeItIsReleased) {
  const ChildCommand child = Start({"/bin/sleep", "0"});
  const std::string path = "/proc/" + std::to_string(child.pid().value()) + "/comm";
  EXPECT_TRUE(Eventually([&] { return ReadFile(path).value_or("") == "sleep\n"; }));
}

TEST(ChildCommand, KeepsItsPidWhenReleased) {
  TemporaryTree tree;
  ChildCommand child = Start({"sh", "-c", "echo $$ >\"$0\"", tree.Path("pid")});
  const std::string pid = std::to_string(child.pid().value());
  ASSERT_TRUE(child.Release().has_value());
  EXPECT_EQ(*child.Wait(), 0);
  EXPECT_EQ(*ReadFile(tree.Path("pid")), pid + "\n");
}

TEST(ChildCommand, TellsThatACommandDoesNotExist) {
  for (const char* command : {"no-such-command", "/no/such/command", "/etc/passwd/x"}) {
    ChildCommand child = Start({command});
    const Result<void> released = child.Release();
    ASSERT_FALSE(released.has_value()) << command;
    EXPECT_EQ(released.error().code(), ErrorCode::kCommandNotFound);
    EXPECT_THAT(released.error().message(), HasSubstr(command));
    EXPECT_FALSE(Exists(child.pid()));
  }
}

TEST(ChildCommand, TellsThatACommandCannotBeExecuted) {
  TemporaryTree tree;
  tree.File("plain", "text");
  for (const std::string& command : {tree.Path("plain"), tree.Path()}) {
    ChildCommand child = Start({command});
    const Result<void> released = child.Release();
    ASSERT_FALSE(released.has_value()) << command;
    EXPECT_EQ(released.error().code(), ErrorCode::kCommandNotExecutable);
  }
}

TEST(ChildCommand, IsKilledIfNeverReleased) {
  std::optional<Pid> pid;
  {
    const ChildCommand child = Start({"true"});
    pid = child.pid();
    EXPECT_TRUE(Exists(*pid));
  }
  EXPECT_FALSE(Exists(*pid));
}

TEST(ChildCommand, IsAskedToEndIfForgotten) {
  std::optional<Pid> pid;
  {
    ChildCommand child = Start({"sleep", "1000"});
    ASSERT_TRUE(child.Release().has_value());
    pid = child.pid();
  }
  int status = 0;
  ASSERT_EQ(::waitpid(static_cast<pid_t>(pid->value()), &status, 0),
            static_cast<pid_t>(pid->value()));
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST(ChildCommand, TellsByADescriptorThatItHasEnded) {
  ChildCommand child = Start({"sleep", "1000"});
  ASSERT_TRUE(child.Release().has_value());
  EXPECT_FALSE(EndsWithin(child, 0ms));
  child.Terminate();
  EXPECT_TRUE(EndsWithin(child, kTestPatience));
  EXPECT_EQ(*child.Wait(), 128 + SIGTERM);
  EXPECT_EQ(*child.Wait(), 128 + SIGTERM) << "a second time";
}

TEST(ChildCommand, SurvivesTheDeathOfAChildNotYetReleased) {
  ChildCommand child = Start({"true"});
  ASSERT_EQ(::kill(static_cast<pid_t>(child.pid().value()), SIGINT), 0);
  ASSERT_TRUE(EndsWithin(child, kTestPatience));
  EXPECT_TRUE(child.Release().has_value());
  EXPECT_EQ(*child.Wait(), 128 + SIGINT);
}

TEST(ChildCommand, InheritsNoDescriptorOfOurs) {
  const Result<UniqueFd> ours = Open("/dev/null", O_RDONLY);
  ASSERT_TRUE(ours.has_value());
  const std::string before = OutputOf("ls /proc/self/fd");
  const Result<UniqueFd> more = Open("/dev/null", O_RDONLY);
  const ChildCommand another = Start({"true"});
  EXPECT_EQ(OutputOf("ls /proc/self/fd"), before);
}

TEST(ChildCommand, StartsWithCleanSignals) {
  sigset_t blocked;
  sigset_t old_mask;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, &old_mask);
  const auto old_pipe = ::signal(SIGPIPE, SIG_IGN);
  const auto old_usr1 = ::signal(SIGUSR1, [](int) {});
  const auto old_hup = ::signal(SIGHUP, SIG_IGN);

  const std::string signals = OutputOf("cat /proc/self/status");

  ::signal(SIGHUP, old_hup);
  ::signal(SIGUSR1, old_usr1);
  ::signal(SIGPIPE, old_pipe);
  sigprocmask(SIG_SETMASK, &old_mask, nullptr);
  EXPECT_THAT(signals, HasSubstr("SigBlk:\t0000000000000000"));
  // nohup(1) reaches through us.
  EXPECT_THAT(signals, HasSubstr("SigIgn:\t0000000000000001"));
  EXPECT_THAT(signals, HasSubstr("SigCgt:\t0000000000000000"));
}

}  // namespace
}  // namespace pyrometer
