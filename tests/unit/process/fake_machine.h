// SPDX-License-Identifier: Apache-2.0
// A /proc tree in a temporary directory, and stand-ins for what the process module talks to.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/procfs.h"
#include "process/address_space_sink.h"
#include "process/object_inspector.h"
#include "tests/unit/process/patient_inspections.h"

namespace pyrometer {

// A build id whose bytes are all `byte`.
inline BuildId FakeBuildId(char byte) {
  const std::vector<std::byte> bytes(20, std::byte(byte));
  return BuildId(bytes);
}

// Understands two kinds of files: "ELF x..." has the build id x (none if it is 0) and one
// executable segment, which is at address 0x3000 and offset 0x1000; "BAD" cannot be read; all else
// is no ELF file.
class FakeInspector : public ObjectInspector {
 public:
  Result<ObjectFacts> Inspect(int fd) override {
    ++inspections;
    if (is_late.exchange(false)) return Fail(ErrorCode::kIo, "the reader is late");
    std::array<char, 5> text{};
    if (::pread(fd, text.data(), text.size(), 0) < 0) return Fail(ErrorCode::kIo, "pread");
    const std::string_view start(text.data(), text.size());
    if (start.starts_with("BAD")) return Fail(ErrorCode::kMalformed, "bad file");
    if (!start.starts_with("ELF ")) return ObjectFacts{};
    return ObjectFacts{start[4] == '0' ? BuildId() : FakeBuildId(start[4]),
                       {{FileOffset(0x1000), ElfAddress(0x3000), 0x2000, 0x2000, true}}};
  }

  std::atomic<int> inspections = 0;
  std::atomic<bool> is_late = false;  // the next time
};

class RecordingSink : public AddressSpaceSink {
 public:
  struct Published {
    ProcessKey process;
    ExecId exec;
    ExecPages exec_pages;
    std::vector<PublishedMapping> mappings;
  };

  bool Publish(const ProcessKey& process, ExecId exec, const ExecPages& exec_pages,
               std::span<const PublishedMapping> sorted) override {
    ++publishes;
    by_pid[process.pid] = {process, exec, exec_pages, {sorted.begin(), sorted.end()}};
    return has_room;
  }
  void Withdraw(Pid pid) override {
    by_pid.erase(pid);
    withdrawn.insert(pid);
  }
  void ReleaseWithdrawn() override { ++releases; }
  void Sweep(std::span<const Pid> pids) override { living = {pids.begin(), pids.end()}; }
  std::vector<Pid> TakeMissed() override { return std::exchange(missed, {}); }
  std::vector<ObjectId> TakeUsed() override { return std::exchange(used, {}); }

  int publishes = 0;
  bool has_room = true;
  int releases = 0;
  std::vector<Pid> missed;
  std::vector<ObjectId> used;
  std::set<Pid> living;  // as of the last sweep
  std::map<Pid, Published> by_pid;
  std::set<Pid> withdrawn;  // at least once
};

class FakeMachine {
 public:
  FakeMachine() {
    std::string pattern = testing::TempDir() + "/pyrometer_proc_XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    std::filesystem::create_directories(proc());
    std::filesystem::create_directories(root() + "/tmp");
  }
  ~FakeMachine() { std::filesystem::remove_all(directory_); }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;

  std::string proc() const { return directory_ + "/proc"; }
  std::string root() const { return directory_ + "/root"; }
  Procfs procfs() const { return {.root = proc(), .sys = directory_ + "/sys"}; }

  void WriteFile(const std::string& path, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << content;
  }

  void AddProcess(uint32_t pid, uint64_t start, const std::string& maps,
                  const std::string& comm = "fake", char state = 'S') const {
    const std::string base = fmt::format("{}/{}/", proc(), pid);
    WriteFile(base + "stat",
              fmt::format("{} ({}) {} 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {} 0 0\n", pid, comm,
                          state, start));
    WriteFile(base + "maps", maps);
    SetUser(pid, ::getuid());
    WriteFile(base + "ns/mnt", "");
    std::filesystem::create_directories(fmt::format("{}task/{}", base, pid));
    std::filesystem::create_symlink(root(), base + "root");
  }

  void SetUser(uint32_t pid, uint32_t user) const {
    WriteFile(fmt::format("{}/{}/status", proc(), pid),
              fmt::format("Uid:\t{0}\t{0}\t{0}\t{0}\nNSpid:\t{1}\t7\n", user, pid));
  }

  void RemoveProcess(uint32_t pid) const {
    std::filesystem::remove_all(fmt::format("{}/{}", proc(), pid));
  }

  // What /proc/PID/map_files has for a mapping.
  void LinkMapping(uint32_t pid, const std::string& range, const std::string& target) const {
    const std::string directory = fmt::format("{}/{}/map_files/", proc(), pid);
    std::filesystem::create_directories(directory);
    std::filesystem::create_symlink(target, directory + range);
  }

  // "major:minor inode path" of a file in the root, as in a line of maps.
  std::string MapsTail(const std::string& path) const {
    struct stat status {};
    EXPECT_EQ(::stat((root() + path).c_str(), &status), 0);
    return fmt::format("{:02x}:{:02x} {} {}", gnu_dev_major(status.st_dev),
                       gnu_dev_minor(status.st_dev), status.st_ino, path);
  }

 private:
  std::string directory_;
};

inline std::string ContentOf(const Result<UniqueFd>& fd) {
  if (!fd) return fd.error().message();
  std::string content(64, '\0');
  const ssize_t size = ::pread(fd->get(), content.data(), content.size(), 0);
  content.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return content;
}

}  // namespace pyrometer
