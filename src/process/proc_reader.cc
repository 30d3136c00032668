// SPDX-License-Identifier: Apache-2.0
#include "process/proc_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pyrometer {
namespace {

// More processes that do not answer are asked each time, with little patience.
constexpr size_t kMostUnanswered = 4096;
constexpr size_t kMostDue = 16;
// Of all time, to be waited in vain.
constexpr int kShareInVain = 10;

// A number for a process among those of file systems.
FilePatience PatienceWith(Pid pid, std::chrono::nanoseconds limit) {
  constexpr uint64_t kProcesses = uint64_t{1} << 63;
  return {.limit = limit, .file_system = kProcesses | pid.value()};
}

}  // namespace

ProcReader::ProcReader(const Options& options, const Clock& clock,
                       std::shared_ptr<ForeignFiles> files)
    : options_(options),
      clock_(clock),
      files_(std::move(files)),
      may_wait_(options.in_vain),
      counted_at_(clock.Now()) {}

Result<ProcMaps> ProcReader::Mappings(const ProcessDirectory& directory) {
  Result<ProcMaps> maps = ReadMaps(directory, "maps");
  if (!maps && !IsGone(maps.error())) return maps.error();
  if (maps && maps->bytes > 0) return *std::move(maps);
  // A leader that has ended before its other threads shows none.
  ASSIGN_OR_RETURN(const std::vector<Tid> threads, directory.Threads());
  for (const Tid tid : threads) {
    maps = ReadMaps(directory, fmt::format("task/{}/maps", tid.value()));
    if (!maps && !IsGone(maps.error())) return maps.error();
    if (maps && maps->bytes > 0) return *std::move(maps);
  }
  return ProcMaps{};
}

Result<ProcMaps> ProcReader::ReadMaps(const ProcessDirectory& directory, const std::string& name) {
  const ProcMapsLimits limits;
  ASSIGN_OR_RETURN(const UniqueFd text, Ask(directory.pid(), [&](const FilePatience& patience) {
                     return files_->ReadText(directory.fd(), name, limits.bytes + 1, patience);
                   }));
  return ReadProcMaps(text.get(), limits);
}

Result<UniqueFd> ProcReader::OpenMapped(const ProcessDirectory& directory,
                                        const FileMapping& range) {
  return Ask(directory.pid(), [&](const FilePatience& patience) {
    const std::string name =
        fmt::format("map_files/{:x}-{:x}", range.start.value(), range.end.value());
    return files_->Follow(directory.fd(), name, patience);
  });
}

template <typename Question>
Result<UniqueFd> ProcReader::Ask(Pid pid, Question question) {
  const MonotonicTime begin = clock_.Now();
  const auto unanswered = unanswered_.find(pid);
  if (unanswered != unanswered_.end() && !unanswered->second.Admit(begin)) {
    return Fail(ErrorCode::kExhausted, "process {} has not answered before", pid.value());
  }
  Result<UniqueFd> answer = question(PatienceWith(pid, PatienceAt(begin)));
  if (answer || answer.error().code() != ErrorCode::kExhausted) {
    if (unanswered != unanswered_.end()) unanswered_.erase(unanswered);
    return answer;
  }
  ++late_;
  const MonotonicTime end = clock_.Now();
  may_wait_ -= std::min(may_wait_, Between(begin, end));
  if (unanswered != unanswered_.end()) {
    unanswered->second.Failed(options_.pauses, end);
  } else if (unanswered_.size() < kMostUnanswered) {
    unanswered_[pid].Failed(options_.pauses, end);
  }
  return answer;
}

std::chrono::nanoseconds ProcReader::PatienceAt(MonotonicTime now) {
  may_wait_ = std::min(options_.in_vain, may_wait_ + Between(counted_at_, now) / kShareInVain);
  counted_at_ = now;
  return may_wait_ < options_.patience ? options_.short_patience : options_.patience;
}

std::vector<Pid> ProcReader::Due() const {
  const MonotonicTime now = clock_.Now();
  std::vector<Pid> due;
  for (const auto& [pid, breaker] : unanswered_) {
    if (due.size() == kMostDue) break;
    if (breaker.IsDue(now)) due.push_back(pid);
  }
  return due;
}

}  // namespace pyrometer
