// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>

#include "base/direct_foreign_files.h"
#include "base/file_identity.h"
#include "tests/shared/fake_clock.h"

namespace pyrometer {

// A file system that answers, but for some files only when it is told to.
class HangingFiles : public ForeignFiles {
 public:
  ~HangingFiles() override { Answer(); }

  // Nothing is said of that file, nor of what paths lead to.
  void HangOn(const Inode& file) {
    const std::lock_guard lock(mutex_);
    hung_.insert(file.number);
  }
  void HangOnPaths() {
    const std::lock_guard lock(mutex_);
    hangs_on_paths_ = true;
  }
  // No process says what it has mapped: who asks waits as long as he has patience, by `clock`.
  void HangOnProcesses(FakeClock& clock) { clock_ = &clock; }
  void AnswerForProcesses() { clock_ = nullptr; }
  int questions_to_processes() const { return questions_to_processes_; }

  void Answer() {
    const std::lock_guard lock(mutex_);
    hung_.clear();
    hangs_on_paths_ = false;
    answered_.notify_all();
  }
  int questions() const {
    const std::lock_guard lock(mutex_);
    return questions_;
  }

  Result<OpenedFile> OpenForReading(int path_fd, const FilePatience& patience) override {
    const Result<Inode> file = InodeOf(path_fd);
    {
      std::unique_lock lock(mutex_);
      ++questions_;
      answered_.wait(lock, [&] { return !file || !hung_.contains(file->number); });
    }
    return files_.OpenForReading(path_fd, patience);
  }
  Result<UniqueFd> LookUp(int root_fd, const std::string& path, int flags,
                          const FilePatience& patience) override {
    {
      std::unique_lock lock(mutex_);
      ++questions_;
      answered_.wait(lock, [&] { return !hangs_on_paths_; });
    }
    return files_.LookUp(root_fd, path, flags, patience);
  }
  Result<UniqueFd> ReadText(int directory_fd, const std::string& name, uint64_t most,
                            const FilePatience& patience) override {
    RETURN_IF_ERROR(AskProcess(patience));
    return files_.ReadText(directory_fd, name, most, patience);
  }
  Result<UniqueFd> Follow(int directory_fd, const std::string& name,
                          const FilePatience& patience) override {
    RETURN_IF_ERROR(AskProcess(patience));
    return files_.Follow(directory_fd, name, patience);
  }

 private:
  Result<void> AskProcess(const FilePatience& patience) {
    ++questions_to_processes_;
    if (clock_ == nullptr) return {};
    clock_->Advance(patience.limit);
    return Fail(ErrorCode::kExhausted, "no answer");
  }

  mutable std::mutex mutex_;
  std::condition_variable answered_;
  std::set<uint64_t> hung_;  // inodes
  bool hangs_on_paths_ = false;
  int questions_ = 0;
  // Of one thread.
  FakeClock* clock_ = nullptr;  // if processes do not answer
  int questions_to_processes_ = 0;
  DirectForeignFiles files_;
};

}  // namespace pyrometer
