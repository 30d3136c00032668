// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "export/delivery_ledger.h"
#include "export/spool_file.h"

namespace pyrometer {

// How often a parcel in the spool was tried by this run.
struct SpooledAttempts {
  uint64_t attempts = 0;
  uint64_t refusals = 0;         // since others were taken
  uint64_t answers_at_last = 0;  // of the destination, at the last attempt
};

// What is known of a file in the spool without opening it.
struct SpooledFile {
  uint64_t number = 0;
  uint64_t bytes = 0;
  uint64_t parcels = 0;  // neither delivered nor dropped; those under way included
  uint64_t ticks = 0;    // of these
  uint64_t ticks_under_way = 0;
  std::chrono::system_clock::time_point begin{};  // of its window
  std::chrono::nanoseconds born{};  // by the monotonic clock; before its beginning: negative
  Origin origin = Origin::kThisRun;
  std::string_view given_up{};  // why, if it was, perhaps while some were under way

  std::vector<bool> ended{};  // parcels delivered or dropped; empty until it is opened
  std::map<uint32_t, SpooledAttempts> tried{};
};

// A parcel in the spool whose turn it is.
struct SpooledParcel {
  std::shared_ptr<SpooledFile> record;
  std::shared_ptr<const SpoolFile> file;
  uint32_t index = 0;
  uint64_t ticks = 0;
};

// The files in the spool, and the turns of their parcels: one file is open at a time, from the
// oldest to the newest and again, as long as there are any. Does no I/O. Thread-compatible.
class SpooledFiles {
 public:
  using Record = std::shared_ptr<SpooledFile>;

  void Add(SpooledFile file);

  // The next to be opened; nothing while one is open.
  Record NextToOpen() const;
  // `parcels` of it wait. REQUIRES: NextToOpen() returned `record`.
  void Opened(Record record, SpoolFile file, std::vector<uint32_t> parcels);

  bool has_waiting() const { return !waiting_.empty(); }
  // REQUIRES: has_waiting().
  SpooledParcel Take();
  // What was taken was delivered or dropped.
  void End(const SpooledParcel& parcel);
  // ... or it was not: then the next file's turn has come. False if its file is gone: it counts no
  // more.
  bool PutBack(const SpooledParcel& parcel);

  Record Oldest() const { return files_.empty() ? nullptr : files_.begin()->second; }
  // Gives up a file, besides what is under way. Returns its ticks. `reason` lasts for ever.
  uint64_t GiveUp(const Record& record, std::string_view reason);
  // Files of which nothing is left: to be removed from the disk.
  bool has_finished() const { return !finished_.empty(); }
  std::vector<uint64_t> TakeFinished() { return std::exchange(finished_, {}); }

  uint64_t count() const { return files_.size(); }
  uint64_t bytes() const { return bytes_; }
  std::optional<std::chrono::system_clock::time_point> oldest() const;

 private:
  void Out(const SpooledParcel& parcel);
  void CloseIfDone();

  std::map<uint64_t, Record> files_;  // by number
  uint64_t bytes_ = 0;
  std::vector<uint64_t> finished_;

  Record open_;
  std::shared_ptr<const SpoolFile> file_;  // of open_
  std::deque<uint32_t> waiting_;           // of open_
  uint64_t under_way_ = 0;                 // of open_
  uint64_t last_opened_ = 0;
};

}  // namespace pyrometer
