// SPDX-License-Identifier: Apache-2.0
#include "binary/inflating_source.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/binary/elf_fixtures.h"

namespace pyrometer {
namespace {

constexpr size_t kSize = (size_t{45} << 20) + 12345;  // more than is held at a time

// Numbers that count up, each for a while: compresses well, and differs everywhere.
std::vector<std::byte> Content() {
  std::vector<std::byte> content(kSize);
  for (uint64_t at = 0; at + 8 <= kSize; at += 8) {
    const uint64_t number = at >> 6;
    std::memcpy(content.data() + at, &number, sizeof(number));
  }
  return content;
}

// An ELF file with a section of `content`, compressed, of which `lost` bytes at the end are
// missing.
class CompressedFile {
 public:
  explicit CompressedFile(const std::vector<std::byte>& content, size_t lost = 0) {
    std::vector<std::byte> image = FixtureBytes("pie");
    section.name = ".debug_info";
    section.header.sh_flags = SHF_COMPRESSED;
    section.header.sh_offset = image.size();
    const Elf64_Chdr header{.ch_type = ELFCOMPRESS_ZLIB,
                            .ch_reserved = 0,
                            .ch_size = content.size(),
                            .ch_addralign = 1};
    uLongf size = ::compressBound(content.size());
    std::vector<std::byte> stream(size);
    EXPECT_EQ(::compress2(reinterpret_cast<Bytef*>(stream.data()), &size,
                          reinterpret_cast<const Bytef*>(content.data()), content.size(), 1),
              Z_OK);
    stream.resize(size - lost);
    const auto bytes = std::as_bytes(std::span(&header, 1));
    image.insert(image.end(), bytes.begin(), bytes.end());
    image.insert(image.end(), stream.begin(), stream.end());
    section.header.sh_size = bytes.size() + stream.size();
    elf = std::make_unique<ElfFile>(*ElfFile::FromBytes(std::move(image)));
  }

  Section section;
  std::unique_ptr<ElfFile> elf;
};

TEST(InflatingSource, HasTheBytesWhereverTheyAreRead) {
  const std::vector<std::byte> content = Content();
  const CompressedFile file(content);
  const auto source = *InflatingBytes(*file.elf, file.section);
  ASSERT_EQ(source->size(), kSize);
  std::mt19937 random(1);
  std::uniform_int_distribution<uint64_t> anywhere(0, kSize);
  std::vector<std::byte> read;
  const auto agrees = [&](uint64_t offset, size_t size) {
    read.resize(std::min<uint64_t>(size, kSize - offset));
    return source->Read(offset, read).has_value() &&
           std::memcmp(read.data(), content.data() + offset, read.size()) == 0;
  };
  for (uint64_t at = 0; at < kSize; at += 3'000'000) EXPECT_TRUE(agrees(at, 3'000'000)) << at;
  for (int i = 0; i < 60; ++i) {
    const uint64_t at = anywhere(random);
    EXPECT_TRUE(agrees(at, 100'000)) << at;
  }
  EXPECT_TRUE(agrees(0, 10)) << "from the beginning again";
  read.resize(2);
  EXPECT_FALSE(source->Read(kSize - 1, read).has_value()) << "beyond the end";
}

TEST(InflatingSource, SaysThatAStreamIsCutWhereThatIsRead) {
  const CompressedFile file(Content(), 100);
  const auto source = *InflatingBytes(*file.elf, file.section);
  std::vector<std::byte> read(1000);
  EXPECT_TRUE(source->Read(0, read).has_value());
  EXPECT_EQ(source->Read(kSize - read.size(), read).error().code(), ErrorCode::kMalformed);
  EXPECT_TRUE(source->Read(0, read).has_value()) << "what is whole can still be read";
  EXPECT_EQ(source->Read(kSize - read.size(), read).error().code(), ErrorCode::kMalformed);
}

TEST(InflatingSource, RefusesASizeThatSoFewBytesCannotHave) {
  CompressedFile file(std::vector<std::byte>(100'000));
  file.section.header.sh_size = sizeof(Elf64_Chdr);
  EXPECT_EQ(InflatingBytes(*file.elf, file.section).error().code(), ErrorCode::kMalformed);
}

}  // namespace
}  // namespace pyrometer
