// SPDX-License-Identifier: Apache-2.0
#include "export/spool_file.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/system_error.h"

namespace pyrometer {
namespace {

constexpr std::string_view kMagic = "PYROSPOL";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kHeaderSize = 20;  // magic, version, number of parcels, checksum of these
constexpr uint64_t kRowSize = 40;     // offset, two sizes, samples, begin, two checksums

uint64_t TableSize(uint64_t parcels) {
  return kHeaderSize + parcels * (1 + kRowSize);
}

uint32_t Checksum(std::string_view bytes, uint32_t before = 0) {
  return static_cast<uint32_t>(
      ::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

template <typename Number>
void Put(std::string& out, Number number) {
  for (size_t i = 0; i < sizeof(Number); ++i) {
    out.push_back(static_cast<char>(number >> (8 * i) & 0xff));
  }
}

// REQUIRES: `bytes` has as many.
template <typename Number>
Number Take(std::string_view& bytes) {
  Number number = 0;
  for (size_t i = 0; i < sizeof(Number); ++i) {
    number |= static_cast<Number>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  bytes.remove_prefix(sizeof(Number));
  return number;
}

std::string Header(uint32_t parcels) {
  std::string header(kMagic);
  Put(header, kVersion);
  Put(header, parcels);
  Put(header, Checksum(header));
  return header;
}

int64_t Nanoseconds(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

std::string Row(const Parcel& parcel, uint64_t offset) {
  std::string row;
  Put(row, offset);
  Put(row, static_cast<uint32_t>(parcel.series.size()));
  Put(row, static_cast<uint32_t>(parcel.body.size()));
  Put(row, parcel.samples);
  Put(row, static_cast<uint64_t>(Nanoseconds(parcel.begin)));
  Put(row, Checksum(parcel.body, Checksum(parcel.series)));
  Put(row, Checksum(row));
  return row;
}

SpoolFile::Status StatusOf(unsigned char state) {
  switch (static_cast<SpoolState>(state)) {
    case SpoolState::kPending:
      return SpoolFile::Status::kPending;
    case SpoolState::kSending:
      return SpoolFile::Status::kSending;
    case SpoolState::kDone:
      return SpoolFile::Status::kDone;
  }
  return SpoolFile::Status::kCorrupt;
}

// REQUIRES: kRowSize bytes. `begin` and `end` are where parcels may lie.
SpoolFile::Entry EntryOf(unsigned char state, std::string_view row, uint64_t begin, uint64_t end) {
  const uint32_t checksum = Checksum(row.substr(0, kRowSize - sizeof(uint32_t)));
  SpoolFile::Entry entry;
  entry.offset = Take<uint64_t>(row);
  entry.series_size = Take<uint32_t>(row);
  entry.body_size = Take<uint32_t>(row);
  entry.samples = Take<uint64_t>(row);
  entry.begin = std::chrono::system_clock::time_point(
      std::chrono::nanoseconds(static_cast<int64_t>(Take<uint64_t>(row))));
  entry.checksum = Take<uint32_t>(row);
  if (Take<uint32_t>(row) != checksum) return {};
  const uint64_t size = uint64_t{entry.series_size} + entry.body_size;
  const bool is_inside = entry.offset >= begin && entry.offset <= end && size <= end - entry.offset;
  if (is_inside) entry.status = StatusOf(state);
  return entry;
}

Result<std::string> ReadString(int fd, uint64_t offset, uint64_t size) {
  std::string bytes(size, '\0');
  RETURN_IF_ERROR(ReadAt(fd, offset, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

Result<uint32_t> NumberOfParcels(int fd) {
  ASSIGN_OR_RETURN(const std::string header, ReadString(fd, 0, kHeaderSize));
  std::string_view rest = std::string_view(header).substr(kMagic.size());
  const auto version = Take<uint32_t>(rest);
  const auto parcels = Take<uint32_t>(rest);
  if (!header.starts_with(kMagic) || version != kVersion) {
    return Fail(ErrorCode::kMalformed, "not a spool file of version {}", kVersion);
  }
  if (header != Header(parcels) || parcels > SpoolFile::kMostParcels) {
    return Fail(ErrorCode::kMalformed, "a broken spool file");
  }
  return parcels;
}

}  // namespace

uint64_t SpoolFile::SizeOf(std::span<const Parcel* const> parcels) {
  uint64_t size = TableSize(parcels.size());
  for (const Parcel* parcel : parcels) size += parcel->series.size() + parcel->body.size();
  return size;
}

Result<void> SpoolFile::Write(int fd, std::span<const Parcel* const> parcels) {
  constexpr size_t kMost = std::numeric_limits<uint32_t>::max();
  std::string table = Header(static_cast<uint32_t>(parcels.size()));
  table.append(parcels.size(), static_cast<char>(SpoolState::kPending));
  uint64_t offset = TableSize(parcels.size());
  for (const Parcel* parcel : parcels) {
    if (parcel->series.size() > kMost || parcel->body.size() > kMost) {
      return Fail(ErrorCode::kInvalid, "a parcel of more than {} bytes", kMost);
    }
    table += Row(*parcel, offset);
    offset += parcel->series.size() + parcel->body.size();
  }
  RETURN_IF_ERROR(WriteAll(fd, table));
  for (const Parcel* parcel : parcels) {
    RETURN_IF_ERROR(WriteAll(fd, parcel->series));
    RETURN_IF_ERROR(WriteAll(fd, parcel->body));
  }
  return {};
}

Result<SpoolFile> SpoolFile::Open(UniqueFd fd) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return SystemError(errno, "fstat");
  const auto size = static_cast<uint64_t>(info.st_size);
  ASSIGN_OR_RETURN(const uint32_t parcels, NumberOfParcels(fd.get()));
  const uint64_t end_of_table = TableSize(parcels);
  const uint64_t there = std::min(size, end_of_table) - kHeaderSize;
  ASSIGN_OR_RETURN(std::string table, ReadString(fd.get(), kHeaderSize, there));
  // Of a file that was cut, the states and rows that are gone are wrong in any case.
  table.resize(end_of_table - kHeaderSize);
  std::vector<Entry> entries;
  entries.reserve(parcels);
  for (uint32_t i = 0; i < parcels; ++i) {
    const std::string_view row = std::string_view(table).substr(parcels + i * kRowSize, kRowSize);
    entries.push_back(EntryOf(static_cast<unsigned char>(table[i]), row, end_of_table, size));
  }
  return SpoolFile(std::move(fd), size, std::move(entries));
}

Result<Parcel> SpoolFile::Read(uint32_t index) const {
  const Entry& entry = entries_[index];
  Parcel parcel;
  ASSIGN_OR_RETURN(parcel.series, ReadString(fd_.get(), entry.offset, entry.series_size));
  ASSIGN_OR_RETURN(parcel.body,
                   ReadString(fd_.get(), entry.offset + entry.series_size, entry.body_size));
  if (Checksum(parcel.body, Checksum(parcel.series)) != entry.checksum) {
    return Fail(ErrorCode::kMalformed, "a parcel whose bytes changed");
  }
  parcel.begin = entry.begin;
  parcel.samples = entry.samples;
  return parcel;
}

Result<void> SpoolFile::SetState(uint32_t index, SpoolState state) const {
  const auto byte = static_cast<char>(state);
  const auto offset = static_cast<off_t>(kHeaderSize + index);
  ssize_t written = -1;
  do {
    written = ::pwrite(fd_.get(), &byte, 1, offset);
  } while (written < 0 && errno == EINTR);
  if (written != 1) return SystemError(errno, "writing the state of a parcel in the spool");
  return {};
}

Result<void> SpoolFile::Sync() const {
  if (::fdatasync(fd_.get()) != 0) return SystemError(errno, "fdatasync of a spool file");
  return {};
}

}  // namespace pyrometer
