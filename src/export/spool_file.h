// SPDX-License-Identifier: Apache-2.0
// The parcels of one window on disk; the format is in README.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "pyrometer/result.h"
#include "pyrometer/sink.h"

namespace pyrometer {

// How far the delivery of a parcel in the spool has come. Any two differ in three bits or more, and
// none is another's complement: a byte that is flipped is none of them.
enum class SpoolState : uint8_t {
  kPending = 0x17,
  kSending = 0x6a,  // an attempt has begun, and how it ended is not known
  kDone = 0xb5,     // delivered or dropped: to be forgotten
};

// An open file of the spool. Its bytes are not trusted: what cannot be right costs the parcels that
// it concerns. Thread-safe, as long as two threads do not touch the same parcel.
class SpoolFile {
 public:
  static constexpr uint32_t kMostParcels = 65536;

  enum class Status {
    kPending,
    kSending,
    kDone,
    kCorrupt,  // its state, its sizes or its place in the file are wrong
  };
  struct Entry {
    Status status = Status::kCorrupt;
    uint64_t samples = 0;                         // 0 if they are not known either
    std::chrono::system_clock::time_point begin;  // likewise
    uint64_t offset = 0;                          // of its series, which its body follows
    uint32_t series_size = 0;                     // bytes
    uint32_t body_size = 0;
    uint32_t checksum = 0;  // of both
  };

  // Writes a whole file of pending parcels. REQUIRES: at most kMostParcels, and `fd` is empty.
  // Errors: those of write(2), and kInvalid for a parcel of 4 GiB.
  static Result<void> Write(int fd, std::span<const Parcel* const> parcels);
  // What Write writes, in bytes.
  static uint64_t SizeOf(std::span<const Parcel* const> parcels);

  // Reads the entries, not the parcels. Errors: kMalformed for what is no spool file, kIo.
  static Result<SpoolFile> Open(UniqueFd fd);

  const std::vector<Entry>& entries() const { return entries_; }
  uint64_t size() const { return size_; }  // bytes

  // REQUIRES: an entry that is not corrupt. Errors: kMalformed if its bytes changed; kIo.
  Result<Parcel> Read(uint32_t index) const;

  // What the next reader sees, be it after a kill; and after a power loss too once Sync returned.
  // Errors: those of pwrite(2) and fdatasync(2).
  Result<void> SetState(uint32_t index, SpoolState state) const;
  Result<void> Sync() const;

 private:
  SpoolFile(UniqueFd fd, uint64_t size, std::vector<Entry> entries)
      : fd_(std::move(fd)), size_(size), entries_(std::move(entries)) {}

  UniqueFd fd_;
  uint64_t size_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace pyrometer
