// SPDX-License-Identifier: Apache-2.0
#include "export/left_spools.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/stoppable_sleep.h"
#include "export/spool_survey.h"

namespace pyrometer {

LeftSpools::LeftSpools(Options options, Counters counters, const Clock& clock, Log& log)
    : options_(std::move(options)),
      clock_(clock),
      log_(log),
      counters_(std::move(counters)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

LeftSpools::Counters LeftSpools::Stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  return counters();
}

LeftSpools::Counters LeftSpools::counters() const {
  const absl::MutexLock lock(&mutex_);
  return counters_;
}

void LeftSpools::Run(const std::stop_token& stop) {
  if (options_.on_thread_start) options_.on_thread_start();
  while (!stop.stop_requested() && Sweep(stop)) SleepFor(options_.interval, stop);
}

bool LeftSpools::Sweep(const std::stop_token& stop) {
  uint64_t used_bytes = 0;
  std::set<std::string> empty;
  std::vector<LeftFile> left = FindLeft(used_bytes, empty);
  RemoveEmpty(empty);
  std::ranges::sort(left, {}, [](const LeftFile& file) { return file.facts.written; });
  uint64_t bytes = 0;
  for (const LeftFile& file : left) bytes += file.facts.bytes;
  uint64_t files = left.size();
  for (const LeftFile& file : left) {
    if (stop.stop_requested()) break;
    const bool is_too_old = IsTooOld(file.facts);
    if (!is_too_old && used_bytes + bytes <= options_.max_size) break;
    if (!Drop(file, is_too_old ? "too_old" : "spool_full")) continue;
    bytes -= file.facts.bytes;
    --files;
  }
  const absl::MutexLock lock(&mutex_);
  counters_.files = files;
  counters_.bytes = bytes;
  return !left.empty();
}

std::vector<LeftSpools::LeftFile> LeftSpools::FindLeft(uint64_t& used_bytes,
                                                       std::set<std::string>& empty) const {
  std::vector<LeftFile> left;
  std::error_code error;  // no directory: nothing is left
  std::filesystem::directory_iterator entry(options_.directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string spool = entry->path().filename().string();
    const Result<std::vector<SpoolFileFacts>> files = SpoolDirectory::Look(PathOf(spool));
    if (!files) continue;  // something else, or not ours to read
    if (options_.used.contains(spool)) {
      for (const SpoolFileFacts& file : *files) used_bytes += file.bytes;
      continue;
    }
    if (files->empty()) empty.insert(spool);
    for (const SpoolFileFacts& file : *files) left.push_back({.spool = spool, .facts = file});
  }
  return left;
}

bool LeftSpools::IsTooOld(const SpoolFileFacts& file) const {
  return clock_.WallNow() - file.written > options_.max_age;
}

bool LeftSpools::Drop(const LeftFile& file, std::string_view reason) {
  const std::string what = fmt::format("spool {}, which no sink uses", file.spool);
  const Result<SpoolDirectory> directory = SpoolDirectory::Open(PathOf(file.spool));
  if (!directory) {
    // Who has it looks after it.
    if (directory.error().code() != ErrorCode::kExhausted) log_.Failed(what, directory.error());
    return false;
  }
  uint64_t ticks = 0;
  bool is_readable = false;
  if (const Result<SpoolFile> opened = directory->OpenFile(file.facts.number)) {
    const SpoolSurvey survey = Survey(*opened, /*at_least_once=*/true);
    ticks = survey.ticks + survey.corrupt_ticks;
    is_readable = survey.unreadable == 0;
  }
  const Result<void> removed = directory->Remove(file.facts.number);
  if (!removed) {
    log_.Failed(what, removed.error());
    return false;
  }
  log_.Warn(what, fmt::format("{} ticks of a window dropped: {}", ticks, reason));
  const absl::MutexLock lock(&mutex_);
  counters_.dropped_ticks[std::string(reason)] += ticks;
  counters_.unreadable_files += is_readable ? 0 : 1;
  return true;
}

void LeftSpools::RemoveEmpty(const std::set<std::string>& spools) const {
  for (const std::string& spool : spools) {
    const Result<SpoolDirectory> directory = SpoolDirectory::Open(PathOf(spool));
    if (!directory) continue;
    const Result<std::vector<uint64_t>> files = directory->List();
    if (files && files->empty()) (void)directory->RemoveItself();
  }
}

}  // namespace pyrometer
