// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/circuit_breaker.h"
#include "base/clock.h"
#include "base/foreign_files.h"
#include "base/unique_fd.h"
#include "process/object_mapping.h"
#include "process/proc_maps.h"
#include "process/process_directory.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// Reads what /proc shows of a process's memory. The kernel takes the lock of that memory for it
// (mmap_lock), which a process can hold for ever: whoever has a file system of his own that does
// not answer, and unmaps a page of it that is to be written back; as can a frozen file system, or a
// CPU quota, for a while. So others are asked to read, and waited for a moment: what does not
// answer is not asked again but after pauses, until it does. Thread-compatible.
class ProcReader {
 public:
  struct Options {
    // How long to wait for one answer. It takes some 0.1 ms, and longer where other programs wait
    // for a processor.
    std::chrono::nanoseconds patience = std::chrono::milliseconds(100);
    // The same if many did not answer of late: what was waited for them in vain may be so much, and
    // a tenth of all time.
    std::chrono::nanoseconds short_patience = std::chrono::milliseconds(5);
    std::chrono::nanoseconds in_vain = std::chrono::milliseconds(500);
    CircuitBreaker::Pauses pauses = {};
  };

  ProcReader(const Options& options, const Clock& clock, std::shared_ptr<ForeignFiles> files);

  // Executable mappings, from a living thread where the leader has ended. Errors: kExhausted if it
  // does not answer, or did not of late; else see IsGone().
  Result<ProcMaps> Mappings(const ProcessDirectory& directory);

  // The file mapped at exactly this range, whatever its path leads to now. O_PATH. Errors: as
  // above.
  Result<UniqueFd> OpenMapped(const ProcessDirectory& directory, const FileMapping& range);

  // Some of the processes that did not answer and may be asked again.
  std::vector<Pid> Due() const;

  // A process has ended, or runs another program: whether it answers is not known.
  void Forget(Pid pid) { unanswered_.erase(pid); }

  uint64_t unanswered() const { return unanswered_.size(); }  // processes, now
  uint64_t late() const { return late_; }                     // answers that did not come in time

 private:
  template <typename Question>
  Result<UniqueFd> Ask(Pid pid, Question question);
  Result<ProcMaps> ReadMaps(const ProcessDirectory& directory, const std::string& name);
  std::chrono::nanoseconds PatienceAt(MonotonicTime now);

  const Options options_;
  const Clock& clock_;
  const std::shared_ptr<ForeignFiles> files_;
  absl::flat_hash_map<Pid, CircuitBreaker> unanswered_;
  std::chrono::nanoseconds may_wait_;  // in vain, as of `counted_at_`
  MonotonicTime counted_at_;
  uint64_t late_ = 0;
};

}  // namespace pyrometer
