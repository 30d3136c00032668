// SPDX-License-Identifier: Apache-2.0
#include "symbolize/jit_dump_reader.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/printable.h"
#include "base/system_error.h"

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

struct JitDebugInfo {
  JitRecordHeader header;
  uint64_t code_addr;
  uint64_t nr_entry;
};
static_assert(sizeof(JitDebugInfo) == 32);

struct JitDebugEntry {
  uint64_t addr;
  uint32_t line;
  uint32_t discrim;
};
static_assert(sizeof(JitDebugEntry) + 1 == kLeastJitLine);

// Records are given on when they take that much.
constexpr size_t kJitBlock = size_t{32} << 10;
// Of a name this is looked at, so that what is made printable has enough.
constexpr size_t kMostOfRawName = 4 * kMostOfJitName;
// V8 fills records up to a multiple of that.
constexpr size_t kAlignment = 8;
// The name of the same file as before.
constexpr std::string_view kSameFile = "\xff";
// Code is loaded right behind its lines; unwinding information may lie between them.
constexpr int kMostBetween = 8;
constexpr uint32_t kElfHeaderOfV8 = sizeof(Elf64_Ehdr);

// Looks at pieces of a file, of which it reads what lies near by as well.
class FileWindow {
 public:
  static constexpr size_t kStep = 4096;

  // Counts what it reads in `read`, which must outlive it.
  FileWindow(int fd, uint64_t end, uint64_t& read) : fd_(fd), end_(end), read_(read) {}

  // Bytes from `offset` on, `size` of them, or fewer where the file ends. Valid until the next
  // call. REQUIRES: size <= 2 * kStep. Errors: kIo.
  Result<std::string_view> At(uint64_t offset, size_t size) {
    if (offset >= end_) return std::string_view();
    size = std::min<uint64_t>(size, end_ - offset);
    if (offset < begin_ || offset - begin_ > size_ || size_ - (offset - begin_) < size) {
      RETURN_IF_ERROR(Fill(offset, size));
    }
    return std::string_view(bytes_.data(), size_).substr(offset - begin_, size);
  }

  // None if the file ends before it does.
  template <typename T>
  Result<std::optional<T>> Get(uint64_t offset) {
    ASSIGN_OR_RETURN(const std::string_view bytes, At(offset, sizeof(T)));
    if (bytes.size() < sizeof(T)) return std::optional<T>();
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return std::optional<T>(value);
  }

 private:
  Result<void> Fill(uint64_t offset, size_t size) {
    size_ = 0;
    begin_ = offset;
    const size_t wanted = std::min<uint64_t>(size + kStep, end_ - offset);
    while (size_ < size) {
      const ssize_t n =
          ::pread(fd_, bytes_.data() + size_, wanted - size_, static_cast<off_t>(offset + size_));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return SystemError(errno, "pread");
      if (n == 0) break;
      size_ += static_cast<size_t>(n);
      read_ += static_cast<uint64_t>(n);
    }
    return {};
  }

  const int fd_;
  const uint64_t end_;
  uint64_t& read_;
  std::array<char, 3 * kStep> bytes_{};
  uint64_t begin_ = 0;
  size_t size_ = 0;
};

bool IsCodeRange(uint64_t start, uint64_t size) {
  return size > 0 && size <= std::numeric_limits<uint32_t>::max() &&
         size <= std::numeric_limits<uint64_t>::max() - start;
}

// Lines of one piece of code.
struct CodeLines {
  std::vector<JitLine> lines;
  std::vector<std::string> files;
  uint64_t left_out = 0;
  bool is_bad = false;  // the record has no such form

  size_t bytes() const {
    size_t sum = lines.size() * sizeof(JitLine);
    for (const std::string& file : files) sum += sizeof(uint64_t) + file.size();
    return sum;
  }
};

// The file names of one piece of code, each once.
class FileNames {
 public:
  explicit FileNames(std::vector<std::string>& files) : files_(files) {}

  // Its index; none if it is no name, or there is no room for it.
  std::optional<uint32_t> IndexOf(std::string_view raw) {
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; };
    if (raw.empty() || std::ranges::any_of(raw, is_control)) return std::nullopt;
    std::string name = Printable(raw, kMostOfJitName);
    if (const auto found = indexes_.find(name); found != indexes_.end()) return found->second;
    const size_t bytes = sizeof(uint64_t) + name.size();
    if (files_.size() == kMostJitFiles || bytes > kMostOfJitFiles - bytes_) return std::nullopt;
    bytes_ += bytes;
    files_.push_back(name);
    const auto index = static_cast<uint32_t>(files_.size() - 1);
    indexes_[std::move(name)] = index;
    return index;
  }

 private:
  std::vector<std::string>& files_;
  absl::flat_hash_map<std::string, uint32_t> indexes_;
  size_t bytes_ = 0;
};

// V8 (that of node 20) writes many file names of code from memory that it has given back
// (LinuxPerfJitLogger::LogWriteDebugInfo), where malloc has put a pointer and a key over the first
// 16 bytes. Names of functions end in the file, a line and a column: "JS:^f /app/main.js:1:9".
class OverwrittenNames {
 public:
  OverwrittenNames() = default;
  // Of lines of the code that is called `function`, which must outlive this.
  explicit OverwrittenNames(std::string_view function) {
    for (int i = 0; i < 2; ++i) {
      const size_t colon = function.find_last_not_of("0123456789");
      if (colon == std::string_view::npos || function[colon] != ':') return;
      function = function.substr(0, colon);
    }
    // What is behind any of the blanks, of which the file's own name may have some.
    for (size_t blank = function.find(' '); blank != std::string_view::npos;
         blank = function.find(' ', blank + 1)) {
      if (candidates_.size() < kMostCandidates) candidates_.push_back(function.substr(blank + 1));
    }
  }

  // The name that `bytes` begin with, as it was before; `is_followed` tells whether an entry is
  // right behind a name of so many bytes, if there should be one.
  std::string_view NameAt(std::string_view bytes,
                          absl::FunctionRef<bool(size_t)> is_followed) const {
    const std::string_view name = bytes.substr(0, bytes.find('\0'));
    if (name.size() >= kPointer || is_followed(name.size())) return name;
    for (const std::string_view candidate : candidates_) {
      const size_t size = candidate.size();
      if (size >= kPointer && size < bytes.size() && bytes[size] == '\0' &&
          Intact(bytes.substr(0, size)) == Intact(candidate) && is_followed(size)) {
        return candidate;
      }
    }
    return name;
  }

 private:
  static constexpr size_t kPointer = 8;  // of its bytes the highest are 0
  static constexpr size_t kOverwritten = 16;
  static constexpr size_t kMostCandidates = 8;

  static std::string_view Intact(std::string_view name) {
    return name.substr(std::min(kOverwritten, name.size()));
  }

  std::vector<std::string_view> candidates_;
};

// Leaves out lines that say what the one before says.
void SortLines(std::vector<JitLine>& lines) {
  std::ranges::stable_sort(lines, {}, &JitLine::offset);
  const auto is_same = [](const JitLine& a, const JitLine& b) {
    return a.line == b.line && (a.line == 0 || a.file == b.file);
  };
  lines.erase(std::unique(lines.begin(), lines.end(), is_same), lines.end());
}

// Records that are to be given on.
class RecordBlock {
 public:
  explicit RecordBlock(uint64_t begin) : given_(begin) {}

  // True: `bytes` more are too much.
  bool IsTooFullFor(size_t bytes) const { return size_ > 0 && size_ + bytes > kJitBlock; }

  void Add(JitDumpRecords::Record record, std::string name, CodeLines lines) {
    size_ += BytesOf(name, lines);
    lines_left_out_ += lines.left_out;
    const bool is_nameless = record.kind == JitDumpRecords::Record::Kind::kLoad && name.empty();
    bad_ += (lines.is_bad ? 1 : 0) + (is_nameless ? 1 : 0);
    entries_.push_back({record, std::move(name), std::move(lines)});
  }

  void AddBad() { ++bad_; }

  static size_t BytesOf(const std::string& name, const CodeLines& lines) {
    return sizeof(JitDumpRecords::Record) + name.size() + lines.bytes();
  }

  // All before `end`, for which so much was `read` since the beginning. Empty afterwards.
  void GiveTo(JitDumpSink sink, uint64_t end, uint64_t read) {
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
          .end = end});
    entries_.clear();
    size_ = 0;
  }

 private:
  struct Entry {
    JitDumpRecords::Record record;
    std::string name;
    CodeLines lines;
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
      // So that each reading gets on.
      if (has_record_ && !lines_at_ && read_ >= part_.to_read) return at_ >= part_.end;
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
    adds_elf_header_ = header.pad1 == JitDumpHeader::kMarkOfV8;
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
    CodeLines lines;
    if (lines_at_) {
      // `bytes` are of another window.
      const OverwrittenNames names =
          adds_elf_header_ ? OverwrittenNames(bytes.substr(0, size)) : OverwrittenNames();
      ASSIGN_OR_RETURN(lines, ReadLines(*lines_at_, *load, names));
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

  // Of the record at `at`, if it is about that code.
  Result<CodeLines> ReadLines(uint64_t at, const JitLoad& load, const OverwrittenNames& names) {
    const uint64_t start = load.code_addr;
    const uint64_t size = load.code_size;
    CodeLines result;
    ASSIGN_OR_RETURN(const std::optional<JitDebugInfo> info, lines_window_.Get<JitDebugInfo>(at));
    if (!info || info->header.total_size < sizeof(JitDebugInfo)) {
      result.is_bad = true;
      return result;
    }
    if (info->code_addr != start) return result;
    const uint64_t room = (info->header.total_size - sizeof(JitDebugInfo)) / kLeastJitLine;
    const uint64_t count = std::min(info->nr_entry, room);
    result.is_bad = count < info->nr_entry;
    const LineEntries entries{.begin = at + sizeof(JitDebugInfo),
                              .end = at + info->header.total_size,
                              .count = std::min<uint64_t>(count, kMostJitLines),
                              .start = start,
                              .most = size + (adds_elf_header_ ? kElfHeaderOfV8 : 0),
                              .names = names};
    RETURN_IF_ERROR(ReadEntries(entries, result));
    std::vector<JitLine>& lines = result.lines;
    result.left_out = count - lines.size();
    // Where it ends is not known, and what is no entry may lie behind another name than it seems.
    if (result.left_out > 0 && !lines.empty()) lines.back().line = 0;
    const auto lies_behind = [](const JitLine& line) { return line.offset >= kElfHeaderOfV8; };
    if (adds_elf_header_ && std::ranges::all_of(lines, lies_behind)) {
      for (JitLine& line : lines) line.offset -= kElfHeaderOfV8;
    }
    std::erase_if(lines, [size](const JitLine& line) { return line.offset > size; });
    SortLines(lines);
    return result;
  }

  struct LineEntries {
    uint64_t begin = 0;  // in the file
    uint64_t end = 0;
    uint64_t count = 0;
    uint64_t start = 0;  // of the code
    uint64_t most = 0;   // for how far in the code an entry may lie
    const OverwrittenNames& names;
  };
  // Up to what is no entry.
  Result<void> ReadEntries(const LineEntries& entries, CodeLines& result) {
    FileNames files(result.files);
    std::optional<uint32_t> file;
    uint64_t next = entries.begin;
    for (uint64_t i = 0; i < entries.count; ++i) {
      ASSIGN_OR_RETURN(const std::string_view bytes,
                       lines_window_.At(next, sizeof(JitDebugEntry) + kMostOfRawName));
      const std::string_view record = bytes.substr(0, entries.end - next);
      if (record.size() < kLeastJitLine) return {};
      JitDebugEntry entry{};
      std::memcpy(&entry, record.data(), sizeof(entry));
      const uint64_t offset = entry.addr - entries.start;
      const std::string_view rest = record.substr(sizeof(entry));
      const auto is_followed = [&](size_t name_size) {
        const std::string_view behind = rest.substr(std::min(name_size + 1, rest.size()));
        if (i + 1 == entries.count) return behind.size() < kAlignment;
        uint64_t address = 0;
        if (behind.size() < sizeof(address)) return false;
        std::memcpy(&address, behind.data(), sizeof(address));
        return address - entries.start <= entries.most;
      };
      const std::string_view name = entries.names.NameAt(rest, is_followed);
      if (offset > entries.most || name.size() == rest.size()) return {};
      if (name != kSameFile) file = files.IndexOf(name);
      result.lines.push_back({.offset = static_cast<uint32_t>(offset),
                              .line = file ? entry.line : 0,
                              .file = file.value_or(0)});
      next += sizeof(entry) + name.size() + 1;
    }
    return {};
  }

  MonotonicTime TimeOf(const JitRecordHeader& record) const {
    return MonotonicTime(has_times_ ? record.timestamp : 0);
  }

  void Add(const JitDumpRecords::Record& record, std::string name, CodeLines lines) {
    if (block_.IsTooFullFor(RecordBlock::BytesOf(name, lines))) Flush();
    block_.Add(record, std::move(name), std::move(lines));
  }

  // Before the record at hand, or behind all; and before lines that wait for their code, which are
  // read again.
  void Flush() { block_.GiveTo(sink_, lines_at_ ? *lines_at_ : at_, read_); }

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
  bool adds_elf_header_ = false;
};

}  // namespace

Result<bool> DirectJitDumpReader::Read(int fd, const JitDumpPart& part, JitDumpSink sink) {
  return RecordWalk(fd, part, sink).Run();
}

}  // namespace pyrometer
