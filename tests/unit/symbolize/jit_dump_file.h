// SPDX-License-Identifier: Apache-2.0
// Jitdumps that a test makes up, record by record.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace pyrometer {

class JitDumpFile {
 public:
  struct Header {
    uint32_t magic = 0x4A695444;
    uint32_t version = 1;
    uint32_t total_size = 40;
    uint32_t machine = EM_NONE;
    uint32_t pad = 0;
    uint32_t pid = 1234;
    uint64_t timestamp = 5;
    uint64_t flags = 0;
  };
  struct Line {
    uint64_t address = 0;
    uint32_t line = 0;
    std::string_view file{};
  };

  JitDumpFile() : JitDumpFile(Header()) {}
  explicit JitDumpFile(const Header& header) { bytes_ = BytesOf(header); }

  // The code itself is as many bytes.
  JitDumpFile& Load(uint64_t start, uint64_t size, std::string_view name, uint64_t time = 1) {
    std::string body = BytesOf(uint64_t{1234}) + BytesOf(start) + BytesOf(start) + BytesOf(size) +
                       BytesOf(uint64_t{7});
    body.append(name).push_back('\0');
    return Record(0, body + std::string(size, '\xcc'), time);
  }
  JitDumpFile& Move(uint64_t old_start, uint64_t start, uint64_t size, uint64_t time = 1) {
    return Record(1,
                  BytesOf(uint64_t{1234}) + BytesOf(start) + BytesOf(old_start) + BytesOf(start) +
                      BytesOf(size) + BytesOf(uint64_t{7}),
                  time);
  }
  JitDumpFile& Lines(uint64_t start, const std::vector<Line>& lines) {
    return Lines(start, lines, lines.size());
  }
  // Says that there are `count` of them, and has some bytes behind them, as V8 does to align them.
  JitDumpFile& Lines(uint64_t start, const std::vector<Line>& lines, uint64_t count) {
    std::string body = BytesOf(start) + BytesOf(count);
    for (const Line& line : lines) {
      body += BytesOf(line.address) + BytesOf(line.line) + BytesOf(uint32_t{3});
      body.append(line.file).push_back('\0');
    }
    return Record(2, body + std::string(4, '\0'), 1);
  }
  JitDumpFile& Record(uint32_t id, std::string_view body, uint64_t time = 1) {
    return RecordOfSize(static_cast<uint32_t>(16 + body.size()), id, body, time);
  }
  // Says that it is of that size.
  JitDumpFile& RecordOfSize(uint32_t size, uint32_t id, std::string_view body = {},
                            uint64_t time = 1) {
    bytes_ += BytesOf(id) + BytesOf(size) + BytesOf(time);
    bytes_ += body;
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

  template <typename T>
  static std::string BytesOf(const T& value) {
    std::string bytes(sizeof(T), '\0');
    std::memcpy(bytes.data(), &value, sizeof(T));
    return bytes;
  }

 private:
  std::string bytes_;
};

}  // namespace pyrometer
