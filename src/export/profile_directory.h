// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "pyrometer/result.h"
#include "pyrometer/sink.h"

namespace pyrometer {

// Profiles as pprof files, a directory for each label set:
//   DIRECTORY/service_name=nginx,zone=b.9f0c6b1d2e3a4756/20261122T200530.000Z.pb.gz
// The directory's name is the labels as far as they fit a file name, and a hash of all of them; the
// files' are the begin of their window in UTC, so that they sort by time. The labels are also in
// each profile's comments (go tool pprof -comments).
//
// A file appears whole, by a rename, but without fsync: what a power failure leaves may be empty.
// The oldest files go first when there are more bytes than max_size (files count in blocks of
// 4 KiB) or they are older than max_age. What is there is looked at once, by Open, and known from
// then on (24 bytes for each file); files and directories whose names are not of this form are not
// counted and never touched. Thread-safe.
class ProfileDirectory final : public ProfileSink {
 public:
  struct Options {
    std::string directory;  // is made, with its parents, if it is missing
    uint64_t max_size = uint64_t{1} << 30;
    std::chrono::nanoseconds max_age{std::chrono::hours(7 * 24)};
  };

  // Looks at what is there, removes what a crash left half written, and what is too much or too
  // old. Fails where nothing could be written: kPermission, kInvalid (no directory, max_size 0).
  static Result<std::unique_ptr<ProfileDirectory>> Open(Options options, const Clock& clock);

  // One parcel, a gzipped pprof profile.
  Packed Pack(const Profile& profile) const override;

  // Not arrived: "disk_full", "permission", "io". Rejected: "too_old", "too_large" by the options.
  Receipt Deliver(const Parcel& parcel) override;

  uint64_t Bytes() const;  // of the files that count

 private:
  using Time = std::chrono::sys_time<std::chrono::milliseconds>;

  struct File {
    Time begin;
    uint32_t directory = 0;  // index into directories_
    uint32_t blocks = 0;
    uint32_t copy = 1;  // of several with the same window and labels
  };
  struct Directory {
    std::string name;
    uint64_t files = 0;  // 0: the place is free
  };

  ProfileDirectory(Options options, const Clock& clock)
      : options_(std::move(options)), clock_(clock) {}

  static std::string FileName(Time begin, uint32_t copy);
  static bool ParseFileName(std::string_view name, File& file);

  Result<void> Scan();
  void ScanSeries(const std::string& name);
  Result<uint32_t> Write(const Parcel& parcel, const std::string& series, Time begin) const;
  Time OldestAllowed() const;
  // Adds `file` to what its directory and all hold; files_ is the caller's.
  void Count(File& file, const std::string& series);
  void Prune();
  void RemoveOldest();

  const Options options_;
  const Clock& clock_;
  mutable std::mutex mutex_;  // of all below
  std::deque<File> files_;    // by begin
  std::vector<Directory> directories_;
  std::map<std::string, uint32_t, std::less<>> index_of_;  // by name
  std::vector<uint32_t> free_;                             // places in directories_
  uint64_t blocks_ = 0;
};

}  // namespace pyrometer
