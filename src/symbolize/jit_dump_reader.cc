// SPDX-License-Identifier: Apache-2.0
#include "symbolize/jit_dump_reader.h"

#include <elf.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "symbolize/file_window.h"
#include "symbolize/jit_lines.h"

namespace pyrometer {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kJitMachine = EM_X86_64;
#else
constexpr uint32_t kJitMachine = EM_AARCH64;
#endif

struct JitDumpHeader {
  static constexpr uint32_t kMagic = 0x4A695444;
  static constexpr uint32_t kSwappedMagic = 0x4454694A;
  static constexpr uint32_t kVersion = 1;
  static constexpr uint32_t kMostSize = 4096;  // of the header, with what later versions append
  static constexpr uint32_t kMarkOfV8 = 0xDEADBEEF;
  static constexpr uint64_t kArchTimestamp = 1;

  uint32_t magic;
  uint32_t version;
  uint32_t total_size;
  uint32_t elf_mach;
  uint32_t pad1;
  uint32_t pid;
  uint64_t timestamp;
  uint64_t flags;
};
static_assert(sizeof(JitDumpHeader) == 40);

struct JitRecordHeader {
  static constexpr uint32_t kLoad = 0;
  static constexpr uint32_t kMove = 1;
  static constexpr uint32_t kDebugInfo = 2;
  static constexpr uint32_t kClose = 3;
  // No function is that large. Beyond, it is no size, and not worth waiting for.
  static constexpr uint32_t kMostSize = uint32_t{1} << 30;

  uint32_t id;
  uint32_t total_size;
  uint64_t timestamp;
};
static_assert(sizeof(JitRecordHeader) == kLeastJitRecord);

struct JitLoad {
  JitRecordHeader header;
  uint32_t pid;
  uint32_t tid;
  uint64_t vma;
  uint64_t code_addr;
  uint64_t code_size;
  uint64_t code_index;
};
static_assert(sizeof(JitLoad) == 56);

struct JitMove {
  JitRecordHeader header;
  uint32_t pid;
  uint32_t tid;
  uint64_t vma;
  uint64_t old_code_addr;
  uint64_t new_code_addr;
  uint64_t code_size;
  uint64_t code_index;
};
static_assert(sizeof(JitMove) == 64);

// Records are given on when they take that much.
constexpr size_t kJitBlock = size_t{32} << 10;
// Of a name this is looked at, so that what is made printable has enough.
constexpr size_t kMostOfRawName = 4 * kMostOfJitName;
// Code is loaded right behind its lines; unwinding information may lie between them.
constexpr int kMostBetween = 8;

bool IsCodeRange(uint64_t start, uint64_t size) {
  return size > 0 && size <= std::numeric_limits<uint32_t>::max() &&
         size <= std::numeric_limits<uint64_t>::max() - start;
}

// Records that are to be given on.
class RecordBlock {
 public:
  explicit RecordBlock(uint64_t begin) : given_(begin) {}

  // True: `bytes` more are too much.
  bool IsTooFullFor(size_t bytes) const { return size_ > 0 && size_ + bytes > kJitBlock; }

  void Add(JitDumpRecords::Record record, std::string name, JitCodeLines lines) {
    size_ += BytesOf(name, lines);
    lines_left_out_ += lines.left_out;
    const bool is_nameless = record.kind == JitDumpRecords::Record::Kind::kLoad && name.empty();
    bad_ += (lines.is_bad ? 1 : 0) + (is_nameless ? 1 : 0);
    entries_.push_back({record, std::move(name), std::move(lines)});
  }

  void AddBad() { ++bad_; }

  static size_t BytesOf(const std::string& name, const JitCodeLines& lines) {
    return sizeof(JitDumpRecords::Record) + name.size() + lines.bytes();
  }

  // All before `end`, for which so much was `read` since the beginning. Empty afterwards.
  void GiveTo(JitDumpSink sink, uint64_t end, uint64_t read, uint64_t made) {
    if (end == given_) return;
    std::vector<JitDumpRecords::Record> records;
    std::vector<std::vector<std::string_view>> files;
    files.reserve(entries_.size());
    for (const Entry& entry : entries_) {
      JitDumpRecords::Record& record = records.emplace_back(entry.record);
      record.name = entry.name;
      record.lines = entry.lines.lines;
      record.files = files.emplace_back(entry.lines.files.begin(), entry.lines.files.end());
    }
    given_ = end;
    sink({.records = records,
          .bad = std::exchange(bad_, 0),
          .lines_left_out = std::exchange(lines_left_out_, 0),
          .read = read - std::exchange(read_, read),
          .end = end,
          .made = made});
    entries_.clear();
    size_ = 0;
  }

 private:
  struct Entry {
    JitDumpRecords::Record record;
    std::string name;
    JitCodeLines lines;
  };
  std::vector<Entry> entries_;
  size_t size_ = 0;
  uint64_t bad_ = 0;
  uint64_t lines_left_out_ = 0;
  uint64_t read_ = 0;
  uint64_t given_;  // the offset behind what was given on
};

class RecordWalk {
 public:
  RecordWalk(int fd, const JitDumpPart& part, JitDumpSink sink)
      : part_(part),
        sink_(sink),
        block_(part.begin),
        window_(fd, part.end, read_),
        lines_window_(fd, part.end, read_) {}

  Result<bool> Run() {
    Result<bool> result = Walk();
    Flush();
    return result;
  }

 private:
  Result<bool> Walk() {
    ASSIGN_OR_RETURN(const std::optional<JitDumpHeader> header,
                     window_.Get<JitDumpHeader>(uint64_t{0}));
    if (!header) return true;
    RETURN_IF_ERROR(TakeHeader(*header));
    if (part_.begin == 0) {
      if (header->total_size > part_.end) return true;
      at_ = header->total_size;
    } else {
      at_ = part_.begin;
    }
    while (true) {
      // So that each reading gets on: behind lines that wait for their code, it begins with them.
      const bool gets_on = has_record_ && (!lines_at_ || *lines_at_ > part_.begin);
      if (gets_on && read_ >= part_.to_read) return at_ >= part_.end;
      ASSIGN_OR_RETURN(const std::optional<JitRecordHeader> record,
                       window_.Get<JitRecordHeader>(at_));
      if (!record) return true;
      if (record->total_size < kLeastJitRecord || record->total_size > JitRecordHeader::kMostSize) {
        return Fail(ErrorCode::kMalformed, "a record of {} bytes at {}", record->total_size, at_);
      }
      if (record->total_size > part_.end - at_) return true;
      RETURN_IF_ERROR(TakeRecord(*record));
    }
  }

  Result<void> TakeHeader(const JitDumpHeader& header) {
    if (header.magic == JitDumpHeader::kSwappedMagic) {
      return Fail(ErrorCode::kUnsupported, "a jitdump of another byte order");
    }
    if (header.magic != JitDumpHeader::kMagic) {
      return Fail(ErrorCode::kMalformed, "not a jitdump");
    }
    if (header.version != JitDumpHeader::kVersion ||
        (header.flags & ~JitDumpHeader::kArchTimestamp) != 0) {
      return Fail(ErrorCode::kUnsupported, "a jitdump of version {} with flags {:#x}",
                  header.version, header.flags);
    }
    if (header.elf_mach != EM_NONE && header.elf_mach != kJitMachine) {
      return Fail(ErrorCode::kUnsupported, "a jitdump of machine {}", header.elf_mach);
    }
    if (header.total_size < sizeof(header) || header.total_size > JitDumpHeader::kMostSize) {
      return Fail(ErrorCode::kMalformed, "a header of {} bytes", header.total_size);
    }
    has_times_ = (header.flags & JitDumpHeader::kArchTimestamp) == 0;
    made_ = header.timestamp;
    is_of_v8_ = header.pad1 == JitDumpHeader::kMarkOfV8;
    return {};
  }

  Result<void> TakeRecord(const JitRecordHeader& record) {
    const uint64_t end = at_ + record.total_size;
    switch (record.id) {
      case JitRecordHeader::kLoad: {
        Result<void> taken = TakeLoad(record);
        lines_at_.reset();
        RETURN_IF_ERROR(taken);
        break;
      }
      case JitRecordHeader::kMove:
        RETURN_IF_ERROR(TakeMove(record));
        lines_at_.reset();
        break;
      case JitRecordHeader::kDebugInfo:
        lines_at_ = at_;
        between_ = 0;
        break;
      default:
        // These, and records of kinds that nobody knows yet.
        if (record.id == JitRecordHeader::kClose || ++between_ > kMostBetween) lines_at_.reset();
        break;
    }
    at_ = end;
    has_record_ = true;
    return {};
  }

  Result<void> TakeLoad(const JitRecordHeader& record) {
    ASSIGN_OR_RETURN(const std::optional<JitLoad> load, window_.Get<JitLoad>(at_));
    if (record.total_size < sizeof(JitLoad) || !load ||
        load->code_size > record.total_size - sizeof(JitLoad) ||
        !IsCodeRange(load->code_addr, load->code_size)) {
      block_.AddBad();
      return {};
    }
    const size_t most = record.total_size - sizeof(JitLoad) - load->code_size;
    ASSIGN_OR_RETURN(const std::string_view bytes,
                     window_.At(at_ + sizeof(JitLoad), std::min(most, kMostOfRawName)));
    // One that is longer than what is looked at has its end somewhere behind.
    const size_t size = bytes.find('\0');
    const bool has_end = size != std::string_view::npos || most > kMostOfRawName;
    std::string name;
    if (has_end) name = Printable(bytes.substr(0, size), kMostOfJitName);
    JitCodeLines lines;
    if (lines_at_) {
      // `bytes` are of another window.
      const JitCode code{.start = load->code_addr,
                         .size = load->code_size,
                         .name = bytes.substr(0, size),
                         .is_of_v8 = is_of_v8_};
      ASSIGN_OR_RETURN(lines, ReadJitLines(lines_window_, *lines_at_, code));
    }
    Add({.start = load->code_addr, .size = load->code_size, .time = TimeOf(record)},
        std::move(name), std::move(lines));
    return {};
  }

  Result<void> TakeMove(const JitRecordHeader& record) {
    ASSIGN_OR_RETURN(const std::optional<JitMove> move, window_.Get<JitMove>(at_));
    if (record.total_size < sizeof(JitMove) || !move ||
        !IsCodeRange(move->new_code_addr, move->code_size)) {
      block_.AddBad();
      return {};
    }
    Add({.kind = JitDumpRecords::Record::Kind::kMove,
         .start = move->new_code_addr,
         .old_start = move->old_code_addr,
         .size = move->code_size,
         .time = TimeOf(record)},
        {}, {});
    return {};
  }

  MonotonicTime TimeOf(const JitRecordHeader& record) const {
    return MonotonicTime(has_times_ ? record.timestamp : 0);
  }

  void Add(const JitDumpRecords::Record& record, std::string name, JitCodeLines lines) {
    if (block_.IsTooFullFor(RecordBlock::BytesOf(name, lines))) Flush();
    block_.Add(record, std::move(name), std::move(lines));
  }

  // Before the record at hand, or behind all; and before lines that wait for their code, which are
  // read again.
  void Flush() { block_.GiveTo(sink_, lines_at_ ? *lines_at_ : at_, read_, made_); }

  const JitDumpPart& part_;
  const JitDumpSink sink_;
  uint64_t read_ = 0;
  RecordBlock block_;
  FileWindow window_;
  FileWindow lines_window_;
  uint64_t at_ = 0;                   // the record at hand
  std::optional<uint64_t> lines_at_;  // the last record of lines, if its code may follow
  int between_ = 0;                   // records since
  bool has_record_ = false;           // was taken
  bool has_times_ = false;
  uint64_t made_ = 0;
  bool is_of_v8_ = false;
};

}  // namespace

Result<bool> DirectJitDumpReader::Read(int fd, const JitDumpPart& part, JitDumpSink sink) {
  return RecordWalk(fd, part, sink).Run();
}

}  // namespace pyrometer
