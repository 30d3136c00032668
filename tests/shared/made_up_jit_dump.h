// SPDX-License-Identifier: Apache-2.0
// Jitdumps that a test makes up, as bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace pyrometer {

class MadeUpJitDump {
 public:
  struct Line {
    uint64_t address = 0;
    uint32_t line = 0;
    std::string_view file = "\xff";  // that of the line before
  };
  struct Header {
    uint32_t magic = 0x4a695444;
    uint32_t version = 1;
    uint32_t size = 40;
    uint64_t created = 77;
    uint64_t flags = 0;
  };

  MadeUpJitDump() : MadeUpJitDump(Header()) {}
  explicit MadeUpJitDump(const Header& header) {
    Put(header.magic);
    Put(header.version);
    Put(header.size);
    Put<uint32_t>(62);
    Put<uint32_t>(0);
    Put<uint32_t>(10);  // pid
    Put(header.created);
    Put(header.flags);
    bytes_.resize(header.size);
  }

  // `claimed` is what the record says of the code's size; 0: the truth.
  MadeUpJitDump& Load(uint64_t when, uint64_t start, uint64_t size, std::string_view name,
                      uint64_t claimed = 0) {
    Begin(0, when);
    PutIds(start);
    Put(start);
    Put(claimed == 0 ? size : claimed);
    Put<uint64_t>(0);
    Put(name);
    bytes_.append(size, '\xcc');
    return End();
  }
  MadeUpJitDump& Move(uint64_t when, uint64_t from, uint64_t to, uint64_t size) {
    Begin(1, when);
    PutIds(to);
    Put(from);
    Put(to);
    Put(size);
    Put<uint64_t>(0);
    return End();
  }
  // `claimed` is what the record says of their number; 0: the truth.
  MadeUpJitDump& Lines(uint64_t start, const std::vector<Line>& lines, uint64_t claimed = 0) {
    Begin(2, 0);
    Put(start);
    Put<uint64_t>(claimed == 0 ? lines.size() : claimed);
    for (const Line& line : lines) {
      Put(line.address);
      Put(line.line);
      Put<uint32_t>(0);
      Put(line.file);
    }
    return End();
  }
  // Of any other kind.
  MadeUpJitDump& Other(uint32_t id, size_t size) {
    Begin(id, 0);
    bytes_.append(size, 'x');
    return End();
  }
  // Whatever its size claims.
  MadeUpJitDump& Claiming(uint32_t size) {
    Put<uint32_t>(0);
    Put(size);
    Put<uint64_t>(0);
    return *this;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  template <typename T>
  void Put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Put(std::string_view text) {
    bytes_.append(text);
    bytes_.push_back('\0');
  }
  void PutIds(uint64_t vma) {
    Put<uint32_t>(10);
    Put<uint32_t>(10);
    Put(vma);
  }
  void Begin(uint32_t id, uint64_t when) {
    begin_ = bytes_.size();
    Put(id);
    Put<uint32_t>(0);
    Put(when);
  }
  MadeUpJitDump& End() {
    const auto size = static_cast<uint32_t>(bytes_.size() - begin_);
    std::memcpy(bytes_.data() + begin_ + sizeof(uint32_t), &size, sizeof(size));
    return *this;
  }

  std::string bytes_;
  size_t begin_ = 0;
};

}  // namespace pyrometer
