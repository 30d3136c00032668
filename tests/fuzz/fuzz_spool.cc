// SPDX-License-Identifier: Apache-2.0
// A file of the spool: as it is, and with the checksums of its header and rows made right, which no
// fuzzer would find. What can be read lies within the file.
#include <zlib.h>

#include <algorithm>
#include <string>

#include "export/spool_file.h"
#include "tests/fuzz/fuzz_file.h"

namespace {

using namespace pyrometer;

constexpr size_t kHeader = 20;
constexpr size_t kRow = 40;

void PutChecksum(std::string& bytes, size_t from, size_t to) {
  const uLong sum = ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()) + from, to - from);
  for (size_t i = 0; i < 4; ++i) bytes[to + i] = static_cast<char>(sum >> (8 * i) & 0xff);
}

void MakeRight(std::string& bytes) {
  if (bytes.size() < kHeader) return;
  const size_t parcels = static_cast<unsigned char>(bytes[12]);
  bytes.replace(0, kHeader - 4, std::string("PYROSPOL\x01\0\0\0\0\0\0\0", 16));
  bytes[12] = static_cast<char>(parcels);
  PutChecksum(bytes, 0, kHeader - 4);
  for (size_t i = 0; i < parcels; ++i) {
    const size_t row = kHeader + parcels + i * kRow;
    if (row + kRow > bytes.size()) return;
    PutChecksum(bytes, row, row + kRow - 4);
  }
}

void ReadAllParcels(const std::string& bytes) {
  Result<SpoolFile> file =
      SpoolFile::Open(FuzzFile(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  if (!file) return;
  Require(file->size() == bytes.size());
  Require(file->entries().size() <= SpoolFile::kMostParcels);
  for (uint32_t i = 0; i < file->entries().size(); ++i) {
    const SpoolFile::Entry& entry = file->entries()[i];
    if (entry.status == SpoolFile::Status::kCorrupt) continue;
    Require(entry.offset + entry.series_size + entry.body_size <= bytes.size());
    const Result<Parcel> parcel = file->Read(i);
    if (!parcel) continue;
    Require(bytes.compare(entry.offset, entry.series_size, parcel->series) == 0);
    Require(bytes.compare(entry.offset + entry.series_size, entry.body_size, parcel->body) == 0);
    Require(file->SetState(i, SpoolState::kDone).has_value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  std::string file(reinterpret_cast<const char*>(bytes), size);
  ReadAllParcels(file);
  MakeRight(file);
  ReadAllParcels(file);
  return 0;
}
