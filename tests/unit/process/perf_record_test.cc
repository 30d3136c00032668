// SPDX-License-Identifier: Apache-2.0
#include "process/perf_record.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstring>
#include <string_view>
#include <vector>

namespace pyrometer {
namespace {

constexpr uint64_t kTime = 123'456'789;

// Bytes of a record, as the kernel writes them.
class Record {
 public:
  Record(uint32_t type, uint16_t misc) : header_{type, misc, 0} { Add(header_); }

  template <typename T>
  Record& Add(T value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(value));
    return *this;
  }

  // Padded to eight bytes, with at least one zero.
  Record& AddString(std::string_view text) {
    for (const char c : text) Add(c);
    do Add('\0');
    while (bytes_.size() % 8 != 0);
    return *this;
  }

  std::vector<std::byte> Finish(uint64_t time = kTime) {
    Add<uint32_t>(1).Add<uint32_t>(2).Add(time).Add<uint32_t>(3).Add<uint32_t>(0);
    header_.size = static_cast<uint16_t>(bytes_.size());
    std::memcpy(bytes_.data(), &header_, sizeof(header_));
    return bytes_;
  }

 private:
  perf_event_header header_;
  std::vector<std::byte> bytes_;
};

Record Mmap2(uint32_t pid, uint16_t misc) {
  Record record(PERF_RECORD_MMAP2, misc);
  record.Add<uint32_t>(pid).Add<uint32_t>(11);
  record.Add<uint64_t>(0x7f00'0000'1000).Add<uint64_t>(0x2000).Add<uint64_t>(0x1000);
  return record;
}

Record WithInode(uint32_t pid, std::string_view path, uint32_t protection = 5) {
  Record record = Mmap2(pid, 0);
  record.Add<uint32_t>(8).Add<uint32_t>(1).Add<uint64_t>(4711).Add<uint64_t>(3);
  record.Add<uint32_t>(protection).Add<uint32_t>(2).AddString(path);
  return record;
}

Record WithBuildId(uint8_t size, std::string_view path) {
  Record record = Mmap2(10, PERF_RECORD_MISC_MMAP_BUILD_ID);
  record.Add(size).Add<uint8_t>(0).Add<uint16_t>(0);
  for (uint8_t i = 0; i < 20; ++i) record.Add(static_cast<uint8_t>(i < size ? 0xa0 + i : 0));
  record.Add<uint32_t>(5).Add<uint32_t>(2).AddString(path);
  return record;
}

template <typename T>
T Parse(const std::vector<std::byte>& bytes) {
  const Result<std::optional<ProcessEvent>> event = ParsePerfRecord(bytes);
  EXPECT_TRUE(event.has_value() && event->has_value());
  return std::get<T>(**event);
}

TEST(PerfRecord, ReadsAMappingWithInode) {
  const auto event = Parse<MappingEvent>(WithInode(10, "/usr/lib/a b\nc.so").Finish());
  EXPECT_EQ(event.pid, Pid(10));
  EXPECT_EQ(event.when, MonotonicTime(kTime));
  EXPECT_EQ(event.range.start, Address(0x7f00'0000'1000));
  EXPECT_EQ(event.range.end, Address(0x7f00'0000'3000));
  EXPECT_EQ(event.range.offset, FileOffset(0x1000));
  const MappedFile expected{"/usr/lib/a b\nc.so", BuildId(), 8, 1, 4711, 3};
  EXPECT_EQ(event.file, expected);
}

TEST(PerfRecord, ReadsAMappingWithBuildIdOfAnySize) {
  for (const uint8_t size : {uint8_t{1}, uint8_t{8}, uint8_t{16}, uint8_t{20}}) {
    const auto event = Parse<MappingEvent>(WithBuildId(size, "/bin/true").Finish());
    EXPECT_EQ(event.file.build_id.bytes().size(), size);
    EXPECT_TRUE(event.file.build_id.ToHex().starts_with("a0"));
    EXPECT_EQ(event.file.inode, 0U);
  }
  EXPECT_EQ(Parse<MappingEvent>(WithBuildId(255, "/x").Finish()).file.build_id.bytes().size(), 20U);
}

TEST(PerfRecord, SaysWhatIsWritableToo) {
  EXPECT_FALSE(Parse<MappingEvent>(WithInode(10, "//anon", 5).Finish()).range.writable);
  EXPECT_TRUE(Parse<MappingEvent>(WithInode(10, "//anon", 7).Finish()).range.writable);
}

TEST(PerfRecord, ReadsForkAndExitWithTheirOwnTime) {
  Record fork(PERF_RECORD_FORK, 0);
  fork.Add<uint32_t>(20).Add<uint32_t>(10).Add<uint32_t>(21).Add<uint32_t>(11).Add<uint64_t>(77);
  const auto born = Parse<ForkEvent>(fork.Finish());
  EXPECT_EQ(born.pid, Pid(20));
  EXPECT_EQ(born.parent, Pid(10));
  EXPECT_EQ(born.tid, Tid(21));
  EXPECT_EQ(born.when, MonotonicTime(77));
  Record exit(PERF_RECORD_EXIT, 0);
  exit.Add<uint32_t>(20).Add<uint32_t>(10).Add<uint32_t>(21).Add<uint32_t>(11).Add<uint64_t>(78);
  EXPECT_EQ(Parse<ExitEvent>(exit.Finish()).tid, Tid(21));
}

TEST(PerfRecord, TellsExecFromRenaming) {
  for (const bool exec : {true, false}) {
    Record record(PERF_RECORD_COMM, static_cast<uint16_t>(exec ? PERF_RECORD_MISC_COMM_EXEC : 0));
    record.Add<uint32_t>(20).Add<uint32_t>(21).AddString("name");
    const auto event = Parse<CommEvent>(record.Finish());
    EXPECT_EQ(event.exec, exec);
    EXPECT_EQ(event.comm, "name");
    EXPECT_EQ(event.tid, Tid(21));
  }
}

TEST(PerfRecord, ReadsKernelSymbolsThatComeAndGo) {
  for (const uint16_t flags : {uint16_t{0}, uint16_t{1}}) {
    Record record(PERF_RECORD_KSYMBOL, 0);
    record.Add<uint64_t>(0xffff'ffff'c000'0000).Add<uint32_t>(64).Add<uint16_t>(1).Add(flags);
    const auto event = Parse<SymbolEvent>(record.AddString("bpf_prog_1_x").Finish());
    EXPECT_EQ(event.symbol.address, KernelAddress(0xffff'ffff'c000'0000));
    EXPECT_EQ(event.symbol.size, 64U);
    EXPECT_EQ(event.symbol.removed, flags == 1);
    EXPECT_EQ(event.symbol.name, "bpf_prog_1_x");
  }
}

TEST(PerfRecord, FindsASymbolsTimeWhereTheKernelMadeTheRecordTooLong) {
  for (const char* name : {"1234567", "12345678", ""}) {
    Record record(PERF_RECORD_KSYMBOL, 0);
    record.Add<uint64_t>(1).Add<uint32_t>(64).Add<uint16_t>(1).Add<uint16_t>(0).AddString(name);
    record.Add<uint32_t>(1).Add<uint32_t>(2).Add<uint64_t>(kTime).Add<uint64_t>(0);
    const auto event = Parse<SymbolEvent>(record.Finish(0xdead'dead'dead'dead));
    EXPECT_EQ(event.symbol.name, name);
    EXPECT_EQ(event.when, MonotonicTime(kTime));
  }
}

TEST(PerfRecord, CountsLostRecords) {
  Record record(PERF_RECORD_LOST, 0);
  record.Add<uint64_t>(1).Add<uint64_t>(99);
  EXPECT_EQ(Parse<LostEvent>(record.Finish()).count, 99U);
}

TEST(PerfRecord, PassesOverWhatTellsNothing) {
  const std::vector<std::byte> records[] = {
      Record(PERF_RECORD_THROTTLE, 0).Add<uint64_t>(1).Add<uint64_t>(1).Add<uint64_t>(1).Finish(),
      Record(9999, 0).Finish(), WithInode(0, "/x").Finish(),  // the idle task
      WithInode(UINT32_MAX, "/x").Finish(),                   // not in our pid namespace
  };
  for (const std::vector<std::byte>& record : records) {
    const Result<std::optional<ProcessEvent>> event = ParsePerfRecord(record);
    ASSERT_TRUE(event.has_value());
    EXPECT_FALSE(event->has_value());
  }
}

TEST(PerfRecord, RefusesEveryTruncationOfARecord) {
  const std::vector<std::byte> whole = WithInode(10, "/no-pad").Finish();
  for (size_t size = 0; size < whole.size(); ++size) {
    std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_FALSE(ParsePerfRecord(cut).has_value()) << "the header says more than " << size;
    if (size < sizeof(perf_event_header)) continue;
    const uint16_t claimed = static_cast<uint16_t>(size);
    std::memcpy(cut.data() + offsetof(perf_event_header, size), &claimed, sizeof(claimed));
    const Result<std::optional<ProcessEvent>> event = ParsePerfRecord(cut);
    // Cut bytes are taken from the body: what remains is too short for its fields.
    EXPECT_FALSE(event.has_value()) << size;
  }
}

TEST(PerfRecord, RefusesANameWithoutEnd) {
  Record record(PERF_RECORD_COMM, 0);
  record.Add<uint32_t>(20).Add<uint32_t>(21).Add<uint64_t>(0x4141414141414141);
  EXPECT_FALSE(ParsePerfRecord(record.Finish()).has_value());
}

TEST(ProcessEvent, KnowsAnonymousMemoryByItsPath) {
  for (const char* path :
       {"", "//anon", "[heap]", "[stack]", "[anon:v8]", "[uprobes]", "/dev/zero (deleted)",
        "/SYSV00000000 (deleted)", "/anon_hugepage (deleted)", "anon_inode:[x]"}) {
    EXPECT_TRUE(IsAnonymous(path)) << path;
  }
  for (const char* path : {"[vdso]", "/bin/true", "/memfd:x (deleted)", "/tmp/[heap]"}) {
    EXPECT_FALSE(IsAnonymous(path)) << path;
  }
}

}  // namespace
}  // namespace pyrometer
