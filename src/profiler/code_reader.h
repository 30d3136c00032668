// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/unique_fd.h"
#include "foreign/indexer.h"
#include "foreign/question_threads.h"
#include "indexer/mapped_content.h"
#include "process/process_knowledge.h"
#include "profiler/cold_view.h"
#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"

namespace pyrometer {

// Reads bytes of objects' code, a page at a time, by QuestionThreads. Keeps the pages read last.
// Thread-safe; one caller at a time.
class CodeReader {
 public:
  static constexpr size_t kMostPages = 64;  // kept: 256 KiB
  // For a page; the file system is taken for hung after kLimit only.
  static constexpr std::chrono::milliseconds kWait{200};
  static constexpr std::chrono::seconds kLimit{10};

  // Both must outlive this.
  CodeReader(ProcessKnowledge& processes, std::shared_ptr<Indexer> indexer,
             QuestionThreads& workers)
      : processes_(processes), indexer_(std::move(indexer)), workers_(workers) {}

  using Code = UnwindTableSource::Code;
  Code Read(ObjectId object, ElfAddress address, std::span<std::byte> out);

  // Closes the file that is open for the next call, and forgets what was read.
  void CloseFile();

 private:
  static constexpr size_t kPage = Indexer::kMostOfCode;
  // The file that was read last.
  struct File {
    ObjectId object;
    std::shared_ptr<const UniqueFd> file;  // null: it cannot be read, or
    bool is_late = false;                  // there is no point in waiting for more of it
    uint64_t account = 0;
    MappedContent content;
    std::vector<Segment> segments;
  };
  struct Page {
    ObjectId object;
    uint64_t number = 0;
    std::vector<std::byte> bytes;  // fewer at the file's end
  };

  void Open(ObjectId object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Null if it did not come.
  const Page* PageOf(uint64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<std::vector<std::byte>> Fetch(uint64_t number)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ProcessKnowledge& processes_;
  const std::shared_ptr<Indexer> indexer_;
  QuestionThreads& workers_;
  absl::Mutex mutex_;
  std::optional<File> file_ ABSL_GUARDED_BY(mutex_);
  std::list<Page> pages_ ABSL_GUARDED_BY(mutex_);  // most recently used first
};

}  // namespace pyrometer
