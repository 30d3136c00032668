// SPDX-License-Identifier: Apache-2.0
#include "export/profile_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <limits>
#include <span>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/system_error.h"
#include "export/packing.h"
#include "export/series_labels.h"
#include "export/temporary_file.h"
#include "profile/pprof.h"

namespace pyrometer {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kBlock = 4096;
constexpr std::string_view kProfileSuffix = ".pb.gz";
constexpr size_t kHashDigits = 16;
constexpr size_t kNameBytes = 200;  // of the labels; file names may have 255
constexpr LabelRules kFileLabels{.labels = 64, .name = 1024, .value = 2048};

uint32_t BlocksOf(uint64_t bytes) {
  return static_cast<uint32_t>(
      std::min<uint64_t>((bytes + kBlock - 1) / kBlock, std::numeric_limits<uint32_t>::max()));
}

// FNV-1a: names must stay the same from version to version; nobody gains by a collision.
uint64_t HashOf(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

// {service_name="nginx",zone="b"} -> service_name=nginx,zone=b.9f0c6b1d2e3a4756
std::string DirectoryNameOf(std::string_view series) {
  std::string name;
  for (const char c : series) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '=' || c == ',' || (c == '.' && !name.empty());
    if (name.size() == kNameBytes) break;
    if (plain) {
      name += c;
    } else if (c != '{' && c != '}' && c != '"') {
      name += '_';
    }
  }
  return fmt::format("{}.{:016x}", name.empty() ? "all" : name, HashOf(series));
}

bool IsDirectoryName(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot != std::string_view::npos && dot > 0 && name.size() - dot - 1 == kHashDigits &&
         name.find_first_not_of("0123456789abcdef", dot + 1) == std::string_view::npos;
}

Receipt ReceiptOf(const Error& error) {
  Receipt receipt{.outcome = Outcome::kNotArrived, .reason = "io", .message = error.message()};
  if (error.code() == ErrorCode::kExhausted) receipt.reason = "disk_full";
  if (error.code() == ErrorCode::kPermission) receipt.reason = "permission";
  return receipt;
}

Receipt Rejected(const char* reason, std::string message) {
  return {.outcome = Outcome::kRejected, .reason = reason, .message = std::move(message)};
}

}  // namespace

std::string ProfileDirectory::FileName(Time begin, uint32_t copy) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(begin);
  const std::time_t time = seconds.time_since_epoch().count();
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  std::string name =
      fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}.{:03}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                  utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, (begin - seconds).count());
  if (copy > 1) name += fmt::format(".{}", copy);
  return name.append(kProfileSuffix);
}

bool ProfileDirectory::ParseFileName(std::string_view name, File& file) {
  const std::string text(name);
  std::tm utc{};
  int millis = 0;
  unsigned copy = 1;
  if (std::sscanf(text.c_str(), "%4d%2d%2dT%2d%2d%2d.%3dZ.%9u", &utc.tm_year, &utc.tm_mon,
                  &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &utc.tm_sec, &millis, &copy) < 7) {
    return false;
  }
  utc.tm_year -= 1900;
  utc.tm_mon -= 1;
  file.begin = Time(std::chrono::seconds(::timegm(&utc)) + milliseconds(millis));
  file.copy = copy;
  // Whatever the parts allowed: only what we would write ourselves is ours.
  return FileName(file.begin, file.copy) == name;
}

Result<std::unique_ptr<ProfileDirectory>> ProfileDirectory::Open(Options options,
                                                                 const Clock& clock) {
  if (options.directory.empty()) return Fail(ErrorCode::kInvalid, "a directory is needed");
  if (options.max_size == 0) {
    return Fail(ErrorCode::kInvalid, "{}: max_size must be more than 0", options.directory);
  }
  std::unique_ptr<ProfileDirectory> directory(new ProfileDirectory(std::move(options), clock));
  RETURN_IF_ERROR(directory->Scan());
  directory->Prune();
  return directory;
}

Result<void> ProfileDirectory::Scan() {
  std::error_code error;
  std::filesystem::create_directories(options_.directory, error);
  if (error) return SystemError(error.value(), options_.directory);
  if (::faccessat(AT_FDCWD, options_.directory.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return SystemError(errno, options_.directory);
  }
  std::filesystem::directory_iterator entry(options_.directory, error);
  while (!error && entry != std::filesystem::directory_iterator()) {
    const std::string name = entry->path().filename();
    if (IsDirectoryName(name)) ScanSeries(name);
    entry.increment(error);
  }
  if (error) return SystemError(error.value(), options_.directory);
  std::ranges::sort(files_, {}, &File::begin);
  return {};
}

// What cannot be read is left alone: files of such a directory do not count.
void ProfileDirectory::ScanSeries(const std::string& name) {
  const std::string path = options_.directory + "/" + name;
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return;
  std::error_code error;
  std::filesystem::directory_iterator entry(path, error);
  while (!error && entry != std::filesystem::directory_iterator()) {
    const std::string file_name = entry->path().filename();
    const std::string file_path = entry->path();
    File file;
    if (TemporaryFile::IsName(file_name)) {
      ::unlink(file_path.c_str());
    } else if (ParseFileName(file_name, file) && ::lstat(file_path.c_str(), &info) == 0 &&
               S_ISREG(info.st_mode)) {
      file.blocks = BlocksOf(static_cast<uint64_t>(info.st_size));
      Count(file, name);
      files_.push_back(file);  // Scan sorts them all at once
    }
    entry.increment(error);
  }
}

Packed ProfileDirectory::Pack(const Profile& profile) const {
  const SeriesLabels series = FitLabels(profile.labels, kFileLabels);
  PprofOptions options{.has_functions = true, .name = kLongestName};
  for (const auto& [name, value] : series.labels) {
    options.comments.push_back(fmt::format("{}={}", name, value));
  }
  return PackBatches(profile, series, {.name = kLongestName},
                     [&](std::span<const StackCount> stacks) {
                       return EncodePprofBatch(profile, stacks, options).gzip;
                     });
}

Receipt ProfileDirectory::Deliver(const Parcel& parcel) {
  const Time begin = std::chrono::floor<milliseconds>(parcel.begin);
  if (begin < OldestAllowed()) return Rejected("too_old", "older than max_age");
  const uint32_t blocks = BlocksOf(parcel.body.size());
  if (blocks * kBlock > options_.max_size) {
    return Rejected("too_large",
                    fmt::format("{} bytes; max_size is {}", parcel.body.size(), options_.max_size));
  }
  const std::string series = DirectoryNameOf(parcel.series);
  const Result<uint32_t> copy = Write(parcel, series, begin);
  if (!copy) return ReceiptOf(copy.error());
  const std::lock_guard lock(mutex_);
  File file{.begin = begin, .blocks = blocks, .copy = *copy};
  Count(file, series);
  // Nearly always at the end.
  files_.insert(std::ranges::upper_bound(files_, begin, {}, &File::begin), file);
  Prune();
  return {};
}

// Returns which copy it became.
Result<uint32_t> ProfileDirectory::Write(const Parcel& parcel, const std::string& series,
                                         Time begin) const {
  const std::string directory = options_.directory + "/" + series;
  constexpr uint32_t kMostCopies = 1000;
  for (uint32_t copy = 1; copy <= kMostCopies; ++copy) {
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error) return SystemError(error.value(), directory);
    ASSIGN_OR_RETURN(TemporaryFile file, TemporaryFile::Create(directory));
    Result<void> written = WriteAll(file.fd(), parcel.body);
    if (!written) return std::move(written).error().With(directory);
    ASSIGN_OR_RETURN(const bool is_new,
                     std::move(file).RenameToNew(directory + "/" + FileName(begin, copy)));
    if (is_new) return copy;
  }
  return Fail(ErrorCode::kIo, "{}: too many profiles of one time", directory);
}

ProfileDirectory::Time ProfileDirectory::OldestAllowed() const {
  return std::chrono::floor<milliseconds>(clock_.WallNow() - options_.max_age);
}

void ProfileDirectory::Count(File& file, const std::string& series) {
  const auto [known, added] = index_of_.try_emplace(series, 0);
  if (added) {
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(directories_.size()));
      directories_.emplace_back();
    }
    known->second = free_.back();
    free_.pop_back();
    directories_[known->second].name = series;
  }
  file.directory = known->second;
  ++directories_[file.directory].files;
  blocks_ += file.blocks;
}

void ProfileDirectory::Prune() {
  const Time oldest = OldestAllowed();
  while (!files_.empty() &&
         (blocks_ * kBlock > options_.max_size || files_.front().begin < oldest)) {
    RemoveOldest();
  }
}

// Forgets the file even if it cannot be removed: it was removed by somebody else, or there is no
// use in trying again at each write.
void ProfileDirectory::RemoveOldest() {
  const File file = files_.front();
  files_.pop_front();
  blocks_ -= file.blocks;
  Directory& directory = directories_[file.directory];
  const std::string path = options_.directory + "/" + directory.name;
  ::unlink((path + "/" + FileName(file.begin, file.copy)).c_str());
  if (--directory.files > 0) return;
  ::rmdir(path.c_str());  // fails, rightly, if something else is in it
  index_of_.erase(directory.name);
  directory.name.clear();
  free_.push_back(file.directory);
}

uint64_t ProfileDirectory::Bytes() const {
  const std::lock_guard lock(mutex_);
  return blocks_ * kBlock;
}

}  // namespace pyrometer
