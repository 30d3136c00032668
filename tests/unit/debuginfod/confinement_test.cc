// SPDX-License-Identifier: Apache-2.0
#include "debuginfod/confinement.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "base/nursery.h"
#include "base/unique_fd.h"
#include "tests/unit/debuginfod/temporary_directory.h"

namespace pyrometer {
namespace {

constexpr uint64_t kMost = 4096;

// What a confined process could do.
struct Findings {
  bool is_confined = false;
  bool has_landlock = false;
  bool wrote_inside = false;
  bool wrote_outside = false;
  bool removed_outside = false;
  bool wrote_too_much = false;
  bool executed = false;
  bool signalled = false;
  bool changed_mode = false;
  bool has_capabilities = true;
};

bool CanWrite(const std::string& path, size_t size) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const std::vector<char> bytes(size, 'x');
  return file && ::write(file.get(), bytes.data(), size) == static_cast<ssize_t>(size);
}

bool HasCapabilities() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("CapEff:")) return line.find_first_of("123456789abcdef", 7) != line.npos;
  }
  return true;
}

// Replaces this process if it can, and so leaves the question without an answer.
bool CanExecute() {
  std::array<char*, 1> none{nullptr};
  ::execve("/bin/true", none.data(), none.data());
  return false;
}

Findings Try(const std::string& inside, const std::string& outside) {
  Findings found;
  found.has_landlock = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1) > 0;
  found.is_confined = ConfineTo(inside, kMost).has_value();
  found.has_capabilities = HasCapabilities();
  found.wrote_inside = CanWrite(inside + "/new", kMost);
  found.wrote_outside = CanWrite(outside + "/new", 1) || CanWrite(outside + "/old", 1);
  found.removed_outside = ::unlink((outside + "/old").c_str()) == 0;
  found.wrote_too_much = CanWrite(inside + "/large", kMost + 1);
  found.signalled = ::kill(::getppid(), 0) == 0;
  found.changed_mode = ::chmod((inside + "/new").c_str(), 04777) == 0;
  found.executed = CanExecute();
  return found;
}

TEST(Confinement, LeavesADirectoryAndNothingElse) {
  const TemporaryDirectory inside;
  const TemporaryDirectory outside;
  std::ofstream(outside.path() + "/old") << "here before";
  const auto nursery = Nursery::Start("confined", [&](const MessageSocket& socket) {
    socket.Send(Try(inside.path(), outside.path())).has_value();
  });
  ASSERT_TRUE(nursery);
  const Result<Nursery::Child> child = (*nursery)->Fork();
  ASSERT_TRUE(child);
  ASSERT_TRUE(child->socket.WaitUntilReadable(std::chrono::seconds(30)));
  Findings found;
  ASSERT_TRUE(child->socket.Receive(found)) << "it executed something, or was killed";
  EXPECT_TRUE(found.is_confined);
  EXPECT_FALSE(found.has_capabilities);
  EXPECT_TRUE(found.wrote_inside);
  EXPECT_FALSE(found.wrote_too_much);
  EXPECT_FALSE(found.signalled);
  EXPECT_FALSE(found.changed_mode);
  EXPECT_FALSE(found.executed);
  if (!found.has_landlock) GTEST_SKIP() << "no Landlock: older than Linux 5.13, or switched off";
  EXPECT_FALSE(found.wrote_outside);
  EXPECT_FALSE(found.removed_outside);
}

}  // namespace
}  // namespace pyrometer
