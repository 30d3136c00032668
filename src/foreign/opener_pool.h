// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/message_socket.h"
#include "foreign/foreign_files.h"
#include "foreign/local_copies.h"
#include "foreign/nursery.h"
#include "foreign/opener.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Opens files, and reads texts of /proc, in other processes: openers, one request at a time each,
// which a nursery forks when they are needed. One that does not answer in time is killed and
// forgotten; until it ends, which may be never, it counts as stuck. Files that do not lie on a
// local file system are copied. The other processes hold none of our descriptors, and end when this
// one ends, as far as they can. Thread-safe; each caller waits for its own request only.
class OpenerPool final : public ForeignFiles {
 public:
  struct Options {
    // Shared, as threads that wait here may outlive all else.
    std::shared_ptr<const Clock> clock;
    // With so many that open files or look for them, no more is opened; with half as many that look
    // for them, no more is looked for. With so many that read in /proc, no more is read there.
    size_t max_stuck = 32;
    size_t max_stuck_reading = 8;
    size_t max_idle = 4;  // openers that are kept for the next request
    LocalCopies::Options copies = {};
    FileOperations* operations = nullptr;  // what openers do; null: the real thing
  };

  // A file system gets no more of them until one has ended. So those that hang for days take no
  // more each time that they are tried, and the rest has its files. Which one answers a look-up is
  // only guessed from where that begins: one that is reached in many ways gets two of each.
  static constexpr size_t kMostStuckOfOne = 2;

  // Forks the nursery. REQUIRES: this process has one thread. Errors: those of fork(2) and
  // socketpair(2).
  static Result<std::unique_ptr<OpenerPool>> Start(const Options& options);
  OpenerPool(const OpenerPool&) = delete;
  OpenerPool& operator=(const OpenerPool&) = delete;

  Result<OpenedFile> OpenForReading(int path_fd, const FilePatience& patience) override;
  Result<UniqueFd> LookUp(int root_fd, const std::string& path, int flags,
                          const FilePatience& patience) override;
  Result<UniqueFd> ReadText(int directory_fd, const std::string& name, uint64_t most,
                            const FilePatience& patience) override;
  Result<UniqueFd> Follow(int directory_fd, const std::string& name,
                          const FilePatience& patience) override;

  void GiveUpAt(MonotonicTime when) override { give_up_at_ = when.value(); }
  size_t stuck() override;

 private:
  enum class Work { kOpening, kLookingUp, kReading };
  struct Opener {
    MessageSocket socket;
    pid_t pid = 0;
    uint64_t file_system = 0;    // of its last request
    Work work = Work::kOpening;  // likewise
    MonotonicTime must_be_free;  // is killed if it has not said that it is free by then
  };
  struct Answer {
    OpenerReply reply;
    UniqueFd attached;
  };
  class Session;

  OpenerPool(const Options& options, Nursery nursery)
      : options_(options), copies_(options.copies), nursery_(std::move(nursery)) {}

  template <typename Question>
  auto AgainIfItDies(const FilePatience& patience, const Question& question);
  Result<OpenedFile> Open(int path_fd, const FilePatience& patience);
  // What `request` says of `name`, below `directory_fd`.
  Result<UniqueFd> AskFor(Work work, const OpenerRequest& request, int directory_fd,
                          const std::string& name, const FilePatience& patience);
  Result<UniqueFd> AskOnce(Work work, OpenerRequest request, int directory_fd,
                           const std::string& name, const FilePatience& patience);
  Result<Opener> Take(Work work, uint64_t file_system);
  void Return(Opener opener);
  void GiveUp(Opener opener);
  // With the lock held.
  void Sweep();
  bool MayTake(Work work, uint64_t file_system) const;
  bool HasRoomFor(Work work) const;
  void Kill(Opener opener);
  Result<Opener> Fork();

  const Options options_;
  std::atomic<uint64_t> give_up_at_ = UINT64_MAX;  // a MonotonicTime
  LocalCopies copies_;
  std::mutex mutex_;  // guards the rest
  Nursery nursery_;
  std::vector<Opener> idle_;
  std::vector<Opener> closing_;  // have answered, but may hang before they are free
  std::vector<Opener> stuck_;
  std::atomic<size_t> last_stuck_ = 0;  // by the last call of stuck()
};

}  // namespace pyrometer
