// SPDX-License-Identifier: Apache-2.0
// A jitdump that is read in two parts, and every address near its first code looked up at all times
// around those of its records.
#include <algorithm>

#include "base/printable.h"
#include "symbolize/jit_dump.h"
#include "tests/fuzz/fuzz_file.h"

namespace pyrometer {
namespace {

// Records fit what was read of the file. Notes where code lies, and when.
class CheckingReader : public DirectJitDumpReader {
 public:
  Result<bool> Read(int fd, const JitDumpPart& part, JitDumpSink sink) override {
    uint64_t at = part.begin;
    const auto check = [&](const JitDumpRecords& records) {
      const uint64_t bytes = records.end - at;
      Require(records.end > at && records.end <= part.end);
      Require(records.records.size() <= bytes / kLeastJitRecord);
      Require(records.bad <= bytes / kLeastJitRecord * 2);
      uint64_t lines = records.lines_left_out;
      for (const JitDumpRecords::Record& record : records.records) {
        lines += record.lines.size();
        Require(record.start + record.size > record.start);
        Require(std::ranges::is_sorted(record.lines, {}, &JitLine::offset));
        if (starts.size() < 8) starts.push_back(record.start);
        if (times.size() < 8) times.push_back(record.time);
      }
      Require(lines <= bytes / kLeastJitLine);
      at = records.end;
      sink(records);
    };
    return DirectJitDumpReader::Read(fd, part, check);
  }

  std::vector<uint64_t> starts;
  std::vector<MonotonicTime> times = {MonotonicTime(0), MonotonicTime(~uint64_t{0})};
};

void LookUp(const JitDump& dump, const CheckingReader& reader) {
  for (const uint64_t start : reader.starts) {
    for (uint64_t address = start - 8; address != start + 0x50; ++address) {
      for (const MonotonicTime time : reader.times) {
        const std::optional<JitDump::Found> found = dump.Find(Address(address), time);
        if (!found) continue;
        Require(!found->name.empty() && found->name.size() <= kMostOfJitName);
        Require(IsPrintable(found->name) && IsPrintable(found->file));
        Require(found->file.empty() == (found->line == 0));
      }
    }
  }
}

}  // namespace
}  // namespace pyrometer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace pyrometer;
  const UniqueFd fd = FuzzFile(bytes, size / 2);
  CheckingReader reader;
  JitDump dump;
  JitDump::Limits limits{.memory = 8192};
  const bool is_good = dump.Update(fd.get(), limits, reader).has_value();
  Require(dump.bytes() <= limits.memory);
  LookUp(dump, reader);
  Require(::write(fd.get(), bytes + size / 2, size - size / 2) >= 0);
  Require(is_good || !dump.Update(fd.get(), limits, reader).has_value());
  dump.Update(fd.get(), limits, reader).has_value();
  Require(dump.bytes() <= limits.memory);
  LookUp(dump, reader);
  dump.ForgetBefore(reader.times.back());
  LookUp(dump, reader);
  dump.ShrinkBelow(1024);
  Require(dump.bytes() <= 1024);
  LookUp(dump, reader);
  dump.ShrinkBelow(0);
  Require(dump.empty() && dump.bytes() == 0);
  return 0;
}
