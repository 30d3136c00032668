// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/file_identity.h"
#include "foreign/direct_foreign_files.h"

namespace pyrometer {

// A file system that answers, but for some files only when it is told to, or kLate when the
// limit is over.
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
  // No process says what it has mapped, until it is told to; or that is told at once.
  void HangOnProcesses() {
    const std::lock_guard lock(mutex_);
    hangs_on_processes_ = true;
  }
  void RefuseForProcesses(ErrorCode why = ErrorCode::kLate) {
    const std::lock_guard lock(mutex_);
    refusal_ = why;
  }
  void AnswerForProcesses() {
    const std::lock_guard lock(mutex_);
    hangs_on_processes_ = false;
    refusal_.reset();
    answered_.notify_all();
  }
  // What happens while one is asked, given its directory.
  void WhenAProcessIsAsked(std::function<void(const std::string&)> happens) {
    const std::lock_guard lock(mutex_);
    when_asked_ = std::move(happens);
  }
  int processes_answered() const {
    const std::lock_guard lock(mutex_);
    return processes_answered_;
  }
  int questions_to_processes() const {
    const std::lock_guard lock(mutex_);
    return questions_to_processes_;
  }
  // Of the last one.
  std::chrono::nanoseconds limit_for_processes() const {
    const std::lock_guard lock(mutex_);
    return limit_for_processes_;
  }

  void Answer() {
    AnswerForProcesses();
    const std::lock_guard lock(mutex_);
    hung_.clear();
    hangs_on_paths_ = false;
    answered_.notify_all();
  }
  int questions() const {
    const std::lock_guard lock(mutex_);
    return questions_;
  }
  // Who has asked and has no answer yet.
  int waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_;
  }

  Result<OpenedFile> OpenForReading(int path_fd, const FilePatience& patience) override {
    const Result<Inode> file = InodeOf(path_fd);
    {
      std::unique_lock lock(mutex_);
      ++questions_;
      RETURN_IF_ERROR(
          Await(lock, patience, [&] { return !file || !hung_.contains(file->number); }));
    }
    return files_.OpenForReading(path_fd, patience);
  }
  Result<UniqueFd> LookUp(int root_fd, const std::string& path, int flags,
                          const FilePatience& patience) override {
    {
      std::unique_lock lock(mutex_);
      ++questions_;
      RETURN_IF_ERROR(Await(lock, patience, [&] { return !hangs_on_paths_; }));
    }
    return files_.LookUp(root_fd, path, flags, patience);
  }
  Result<UniqueFd> ReadText(int directory_fd, const std::string& name, uint64_t most,
                            const FilePatience& patience) override {
    RETURN_IF_ERROR(AskProcess(directory_fd, patience));
    return files_.ReadText(directory_fd, name, most, patience);
  }
  Result<UniqueFd> Follow(int directory_fd, const std::string& name,
                          const FilePatience& patience) override {
    RETURN_IF_ERROR(AskProcess(directory_fd, patience));
    return files_.Follow(directory_fd, name, patience);
  }

 private:
  template <typename Answers>
  Result<void> Await(std::unique_lock<std::mutex>& lock, const FilePatience& patience,
                     const Answers& answers) {
    ++waiting_;
    const bool in_time = answered_.wait_for(lock, patience.limit, answers);
    --waiting_;
    if (in_time) return {};
    return Fail(ErrorCode::kLate, "no answer");
  }
  Result<void> AskProcess(int directory_fd, const FilePatience& patience) {
    std::unique_lock lock(mutex_);
    ++questions_to_processes_;
    limit_for_processes_ = patience.limit;
    RETURN_IF_ERROR(Await(lock, patience, [&] { return !hangs_on_processes_; }));
    if (refusal_) return Fail(*refusal_, "no answer");
    if (when_asked_) {
      when_asked_(std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", directory_fd)));
    }
    ++processes_answered_;
    return {};
  }

  mutable std::mutex mutex_;
  std::condition_variable answered_;
  std::set<uint64_t> hung_;  // inodes
  bool hangs_on_paths_ = false;
  int questions_ = 0;
  int waiting_ = 0;
  bool hangs_on_processes_ = false;
  std::optional<ErrorCode> refusal_;
  std::function<void(const std::string&)> when_asked_;
  int questions_to_processes_ = 0;
  int processes_answered_ = 0;
  std::chrono::nanoseconds limit_for_processes_{};
  DirectForeignFiles files_;
};

}  // namespace pyrometer
