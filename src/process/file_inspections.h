// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_set.h>
#include <absl/synchronization/mutex.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/file_identity.h"
#include "base/unique_fd.h"
#include "foreign/foreign_files.h"
#include "foreign/question_threads.h"
#include "process/object_inspector.h"
#include "pyrometer/mapping.h"
#include "pyrometer/result.h"

namespace pyrometer {

// An O_PATH descriptor, of which nothing can be read and which nobody waits for.
using PathFd = std::shared_ptr<const UniqueFd>;

// What only the file system of a file can tell.
struct FileQuestion {
  enum class Depth {
    kDirectory,  // a directory, instead of a file
    kIdentity,   // which file it is
    kOpen,       // and the file for reading
    kFacts,      // and what its headers say
  };
  uint64_t file_system = 0;  // see QuestionThreads
  Depth depth = Depth::kFacts;
  PathFd file = nullptr;  // null: what `path` leads to inside `root`
  PathFd root = nullptr;
  std::string path = {};
};

struct FileFindings {
  PathFd file;
  FileIdentity identity;
  OpenedFile opened;  // unless only the identity was wanted
  ObjectFacts facts;  // if wanted
};

// Asks file systems without waiting for them, but for a moment: long enough for all that answer as
// they should. Thread-compatible.
class FileInspections {
 public:
  struct Options {
    // How long to wait for one answer, and for all between two calls of BeginBurst(): a local file
    // system takes some 0.1 ms, and more if the disk has to be asked.
    std::chrono::nanoseconds patience = std::chrono::milliseconds(10);
    std::chrono::nanoseconds patience_in_all = std::chrono::milliseconds(20);
    // After so long a file system is taken for one that does not answer.
    std::chrono::nanoseconds limit = std::chrono::seconds(5);
    // Many: they do nothing but wait, and whoever has a hung directory may keep two.
    QuestionThreads::Options threads = {.threads = 16};
    // What callers hold, and is let go of while answers are waited for; null: they hold none. So
    // others may use what it guards meanwhile, but not ask here: one caller at a time. Must outlive
    // this.
    absl::Mutex* lock = nullptr;
  };
  using Ticket = uint64_t;
  struct Answer {
    Ticket ticket = 0;
    uint64_t file_system = 0;
    QuestionEnd work = QuestionEnd::kLate;
    Result<FileFindings> findings = FileFindings();  // if it is done
    std::chrono::nanoseconds took{};
  };

  // Jobs under way keep `files` and `inspector`; `clock` outlives it.
  FileInspections(const Options& options, const Clock& clock, std::shared_ptr<ForeignFiles> files,
                  std::shared_ptr<ObjectInspector> inspector);

  void BeginBurst() { BeginBurst(options_.patience_in_all); }
  void BeginBurst(std::chrono::nanoseconds patience_in_all) { left_ = patience_in_all; }
  // What is left of the patience of this burst.
  std::chrono::nanoseconds left() const { return left_; }
  // How long it may be waited for the next answer.
  std::chrono::nanoseconds PatienceForOne() const;
  // Where answers of others are left, whose callers wait out of the same patience.
  struct Door {
    std::mutex mutex;
    std::condition_variable arrived;
  };
  // Waits so long, and at most for `most`, until `take` returns true, which is called with the
  // door's mutex held and without the callers' lock. False: it did not in time.
  bool WaitFor(Door& door, std::chrono::nanoseconds most, const std::function<bool()>& take);

  // The answer will come under that ticket, once. Nothing: refused.
  std::optional<Ticket> Ask(FileQuestion question);

  // The answer to the question asked last, if it comes soon. A file system that kept us waiting in
  // vain is not waited for again until it has answered in good time.
  std::optional<Answer> Await(Ticket ticket, uint64_t file_system);

  // The directory that `path` leads to inside `root`, if that is found soon; else null.
  PathFd FindDirectory(uint64_t file_system, PathFd root, const std::string& path);

  // Those that have come and were not awaited.
  std::vector<Answer> TakeAnswers();

  const std::shared_ptr<ForeignFiles>& files() const { return files_; }
  QuestionCounters counters() const { return threads_.counters(); }

 private:
  struct Mailbox;
  class WithoutLock;

  void Note(const Answer& answer);

  const Options options_;
  const std::shared_ptr<ForeignFiles> files_;
  const std::shared_ptr<ObjectInspector> inspector_;
  const std::shared_ptr<Mailbox> mailbox_;
  Ticket last_ = 0;
  std::chrono::nanoseconds left_;
  absl::flat_hash_set<uint64_t> slow_;  // file systems that are not waited for
  QuestionThreads threads_;
};

}  // namespace pyrometer
