// SPDX-License-Identifier: Apache-2.0
#include "export/spool_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "base/file.h"

namespace pyrometer {
namespace {

using Status = SpoolFile::Status;

std::vector<Parcel> ThreeParcels() {
  const auto begin = std::chrono::system_clock::time_point(std::chrono::seconds(1'900'000'000));
  return {{.body = "first body", .series = "{a=\"1\"}", .begin = begin, .samples = 3},
          {.body = "", .series = "", .begin = begin, .samples = 0},
          {.body = std::string(300, '\xff'), .series = "{c}", .begin = begin, .samples = 1000}};
}

std::string Written(const std::vector<Parcel>& parcels) {
  std::vector<const Parcel*> pointers;
  for (const Parcel& parcel : parcels) pointers.push_back(&parcel);
  const UniqueFd fd(::memfd_create("spool", MFD_CLOEXEC));
  EXPECT_TRUE(SpoolFile::Write(fd.get(), pointers).has_value());
  EXPECT_EQ(::lseek(fd.get(), 0, SEEK_SET), 0);
  std::string bytes = *ReadAll(fd.get(), 1 << 20);
  EXPECT_EQ(bytes.size(), SpoolFile::SizeOf(pointers));
  return bytes;
}

Result<SpoolFile> Opened(const std::string& bytes) {
  UniqueFd fd(::memfd_create("spool", MFD_CLOEXEC));
  EXPECT_TRUE(WriteAll(fd.get(), bytes).has_value());
  return SpoolFile::Open(std::move(fd));
}

bool AreEqual(const Parcel& a, const Parcel& b) {
  return a.body == b.body && a.series == b.series && a.begin == b.begin && a.samples == b.samples;
}

// How many parcels are there to be sent; each must be as it was written.
size_t Readable(const SpoolFile& file, const std::vector<Parcel>& written) {
  size_t readable = 0;
  for (uint32_t i = 0; i < file.entries().size(); ++i) {
    if (file.entries()[i].status != Status::kPending) continue;
    const Result<Parcel> parcel = file.Read(i);
    if (!parcel) {
      EXPECT_EQ(parcel.error().code(), ErrorCode::kMalformed);
      continue;
    }
    EXPECT_LT(i, written.size());
    EXPECT_TRUE(i < written.size() && AreEqual(*parcel, written[i]));
    ++readable;
  }
  return readable;
}

TEST(SpoolFile, GivesBackWhatWasWritten) {
  const Result<SpoolFile> file = Opened(Written(ThreeParcels()));
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->entries().size(), 3);
  EXPECT_EQ(file->entries()[2].samples, 1000);
  EXPECT_EQ(Readable(*file, ThreeParcels()), 3);
}

TEST(SpoolFile, HasTheBytesThatTheReadmeDescribes) {
  const std::string bytes = Written({{.body = "BODY", .series = "S", .begin = {}, .samples = 2}});
  EXPECT_EQ(bytes.substr(0, 16), std::string("PYROSPOL\x01\0\0\0\x01\0\0\0", 16));
  EXPECT_EQ(bytes[20], '\x17');
  EXPECT_EQ(bytes.substr(21, 24), std::string("\x3d\0\0\0\0\0\0\0"    // its offset: 61
                                              "\x01\0\0\0\x04\0\0\0"  // the sizes
                                              "\x02\0\0\0\0\0\0\0",   // the ticks
                                              24));
  EXPECT_EQ(bytes.substr(61), "SBODY");
}

TEST(SpoolFile, RemembersHowFarADeliveryHasCome) {
  UniqueFd fd(::memfd_create("spool", MFD_CLOEXEC));
  const int again = ::dup(fd.get());
  ASSERT_TRUE(WriteAll(fd.get(), Written(ThreeParcels())).has_value());
  const Result<SpoolFile> file = SpoolFile::Open(std::move(fd));
  ASSERT_TRUE(file->SetState(0, SpoolState::kSending).has_value());
  ASSERT_TRUE(file->SetState(2, SpoolState::kDone).has_value());
  ASSERT_TRUE(file->Sync().has_value());
  const Result<SpoolFile> reopened = SpoolFile::Open(UniqueFd(again));
  EXPECT_EQ(reopened->entries()[0].status, Status::kSending);
  EXPECT_EQ(reopened->entries()[1].status, Status::kPending);
  EXPECT_EQ(reopened->entries()[2].status, Status::kDone);
}

TEST(SpoolFile, LosesOnlyWhatIsMissingWhenItIsCutAtAnyByte) {
  const std::string bytes = Written(ThreeParcels());
  size_t before = 0;
  for (size_t size = 0; size <= bytes.size(); ++size) {
    const Result<SpoolFile> file = Opened(bytes.substr(0, size));
    const size_t readable = file ? Readable(*file, ThreeParcels()) : 0;
    EXPECT_TRUE(file || file.error().code() == ErrorCode::kMalformed);
    EXPECT_TRUE(!file || file->entries().size() == 3);
    EXPECT_GE(readable, before) << size;
    before = readable;
  }
  EXPECT_EQ(before, 3);
}

TEST(SpoolFile, LosesOneParcelOrAllWhenAnyByteIsWrong) {
  const std::string bytes = Written(ThreeParcels());
  constexpr size_t kHeader = 20;
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int flip : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff}) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ flip);
      const Result<SpoolFile> file = Opened(flipped);
      ASSERT_EQ(file.has_value(), at >= kHeader) << at;
      const size_t readable = file ? Readable(*file, ThreeParcels()) : 2;
      EXPECT_EQ(readable, 2) << at << " " << flip;
    }
  }
}

TEST(SpoolFile, RefusesWhatIsNone) {
  EXPECT_EQ(Opened("").error().code(), ErrorCode::kMalformed);
  EXPECT_EQ(Opened(std::string(4096, '\0')).error().code(), ErrorCode::kMalformed);
  EXPECT_EQ(Opened("#!/bin/sh\nexit 1\n# and so on").error().code(), ErrorCode::kMalformed);
}

}  // namespace
}  // namespace pyrometer
