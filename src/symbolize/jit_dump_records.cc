// SPDX-License-Identifier: Apache-2.0
#include "symbolize/jit_dump_records.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "base/system_error.h"

namespace pyrometer {
namespace {

constexpr uint32_t kMagic = 0x4a695444;
constexpr uint32_t kVersion = 1;
constexpr uint64_t kArchTimestamp = 1;
// No record is larger; V8's largest functions take some hundred KiB.
constexpr uint32_t kMostOfRecord = 2 * JitCode::kMostCode;
constexpr uint32_t kMostOfLines = uint32_t{16} << 20;
// So many other records may lie between lines and their code.
constexpr int kMostBetween = 16;
constexpr std::string_view kSameFile = "\xff";

struct FileHeader {
  uint32_t magic;
  uint32_t version;
  uint32_t size;
  uint32_t machine;
  uint32_t pad;
  uint32_t pid;
  uint64_t created;
  uint64_t flags;
};
struct RecordHeader {
  uint32_t id;
  uint32_t size;  // with this
  uint64_t when;
};
enum RecordId : uint32_t { kLoad = 0, kMove = 1, kLines = 2 };
// After the header: then the name, with a zero byte, and the code.
struct LoadRecord {
  uint32_t pid;
  uint32_t tid;
  uint64_t vma;
  uint64_t address;
  uint64_t size;
  uint64_t index;
};
struct MoveRecord {
  uint32_t pid;
  uint32_t tid;
  uint64_t vma;
  uint64_t from;
  uint64_t to;
  uint64_t size;
  uint64_t index;
};
// Then the lines.
struct LinesRecord {
  uint64_t address;
  uint64_t count;
};
// Then the name of the file, with a zero byte.
struct LineEntry {
  uint64_t address;
  uint32_t line;
  uint32_t discriminator;
};
static_assert(sizeof(FileHeader) == 40 && sizeof(RecordHeader) == 16 && sizeof(LoadRecord) == 40 &&
              sizeof(MoveRecord) == 48 && sizeof(LinesRecord) == 16 && sizeof(LineEntry) == 16);

using Bytes = std::span<const std::byte>;

// REQUIRES: they are so many.
template <typename T>
T FrontOf(Bytes bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

// Text up to a zero byte; nothing if there is none.
std::optional<std::string_view> TextOf(Bytes bytes) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t end = all.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  return all.substr(0, end);
}

// A file, read in steps of at least 64 KiB.
class FileWindow {
 public:
  explicit FileWindow(int fd) : fd_(fd) {}

  // So far.
  uint64_t bytes_read() const { return bytes_read_; }

  // Fewer bytes at the end of the file. Valid until the next call.
  Result<Bytes> Read(uint64_t offset, size_t size) {
    if (offset < begin_ || offset + size > begin_ + buffer_.size()) {
      RETURN_IF_ERROR(Fill(offset, std::max(size, kStep)));
    }
    const Bytes rest = Bytes(buffer_).subspan(offset - begin_);
    return rest.first(std::min(size, rest.size()));
  }

 private:
  static constexpr size_t kStep = size_t{64} << 10;

  Result<void> Fill(uint64_t offset, size_t size) {
    begin_ = offset;
    buffer_.resize(size);
    size_t have = 0;
    while (have < size) {
      const ssize_t n =
          ::pread(fd_, buffer_.data() + have, size - have, static_cast<off_t>(offset + have));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        buffer_.clear();
        return SystemError(errno, "pread");
      }
      if (n == 0) break;
      have += static_cast<size_t>(n);
    }
    bytes_read_ += have;
    buffer_.resize(have);
    return {};
  }

  const int fd_;
  uint64_t begin_ = 0;
  uint64_t bytes_read_ = 0;
  std::vector<std::byte> buffer_;
};

// Lines whose code has yet to come.
struct Lines {
  uint64_t offset = 0;  // of the record
  int age = 0;          // records since
  uint64_t address = 0;
  std::vector<std::string> files;
  std::vector<std::pair<uint64_t, JitCode::Line>> at;  // by address; their offset is not set
};

// Takes entries apart. Nothing if they make no sense.
class LineEntries {
 public:
  std::optional<Lines> Read(Bytes bytes, uint64_t count) {
    if (count > JitCode::kMostLines) return std::nullopt;
    for (uint64_t i = 0; i < count; ++i) {
      if (bytes.size() < sizeof(LineEntry)) return std::nullopt;
      const auto entry = FrontOf<LineEntry>(bytes);
      bytes = bytes.subspan(sizeof(entry));
      const std::optional<std::string_view> name = TextOf(bytes);
      if (!name || !TakeFile(*name)) return std::nullopt;
      bytes = bytes.subspan(name->size() + 1);
      lines_.at.emplace_back(entry.address, JitCode::Line{.line = entry.line, .file = file_});
    }
    const auto by_address = [](const auto& line) { return line.first; };
    if (!std::ranges::is_sorted(lines_.at, {}, by_address)) {
      std::ranges::stable_sort(lines_.at, {}, by_address);
    }
    return std::move(lines_);
  }

 private:
  bool TakeFile(std::string_view name) {
    if (name == kSameFile) return !lines_.files.empty();
    std::string file = Printable(name, JitCode::kMaxName);
    if (file_ < lines_.files.size() && lines_.files[file_] == file) return true;
    const auto known = std::ranges::find(lines_.files, file);
    file_ = static_cast<uint32_t>(known - lines_.files.begin());
    if (known != lines_.files.end()) return true;
    bytes_ += file.size();
    lines_.files.push_back(std::move(file));
    return lines_.files.size() <= JitCode::kMostFiles && bytes_ <= JitCode::kMostFileBytes;
  }

  Lines lines_;
  uint32_t file_ = 0;
  size_t bytes_ = 0;
};

class JitDumpReader {
 public:
  JitDumpReader(int fd, const JitDumpPart& part, OnJitCode on_code)
      : part_(part), file_(fd), on_code_(on_code) {}

  Result<JitDumpEnd> Read() {
    ASSIGN_OR_RETURN(const bool has_begun, ReadHeader());
    if (!has_begun) return end_;
    const uint64_t of_header = file_.bytes_read();
    while (!end_.is_broken) {
      // Not between lines and their code, or it would stop there each time.
      end_.is_cut = !lines_ && (end_.records >= part_.most_records ||
                                file_.bytes_read() - of_header >= part_.most_bytes);
      if (end_.is_cut) break;
      ASSIGN_OR_RETURN(const bool more, ReadRecord());
      if (!more) break;
    }
    if (lines_ && !part_.has_stopped) end_.offset = lines_->offset;
    return end_;
  }

 private:
  // False if the records of this part cannot be read.
  Result<bool> ReadHeader() {
    ASSIGN_OR_RETURN(const Bytes bytes, file_.Read(0, sizeof(FileHeader)));
    if (bytes.size() < sizeof(FileHeader)) return false;
    const auto header = FrontOf<FileHeader>(bytes);
    if (header.magic == __builtin_bswap32(kMagic)) {
      return Fail(ErrorCode::kUnsupported, "a jitdump in the byte order of another machine");
    }
    if (header.magic != kMagic) return Fail(ErrorCode::kMalformed, "not a jitdump");
    if (header.version != kVersion) {
      return Fail(ErrorCode::kUnsupported, "a jitdump of version {}", header.version);
    }
    if ((header.flags & kArchTimestamp) != 0) {
      return Fail(ErrorCode::kUnsupported,
                  "a jitdump with times of the processor's clock: they cannot be compared with "
                  "those of samples");
    }
    if (header.flags != 0) {
      return Fail(ErrorCode::kUnsupported, "a jitdump with flags {:#x}", header.flags);
    }
    if (header.size < sizeof(FileHeader)) return Fail(ErrorCode::kMalformed, "not a jitdump");
    end_.created = header.created;
    end_.is_another = part_.begin != 0 && part_.created != header.created;
    end_.offset = part_.begin != 0 ? part_.begin : header.size;
    return !end_.is_another;
  }

  // False if there is no whole record.
  Result<bool> ReadRecord() {
    ASSIGN_OR_RETURN(const Bytes bytes, file_.Read(end_.offset, sizeof(RecordHeader)));
    if (bytes.size() < sizeof(RecordHeader)) return false;
    const auto header = FrontOf<RecordHeader>(bytes);
    if (header.size < sizeof(header) || header.size > kMostOfRecord) {
      end_.is_broken = true;
      ++end_.bad_records;
      return false;
    }
    if (header.size > part_.size || end_.offset > part_.size - header.size) {
      if (part_.has_stopped) ++end_.bad_records;
      end_.is_broken = part_.has_stopped;
      return false;
    }
    ASSIGN_OR_RETURN(const bool is_good, Take(header));
    if (!is_good) ++end_.bad_records;
    ++end_.records;
    end_.offset += header.size;
    if (lines_ && ++lines_->age > kMostBetween) lines_.reset();
    return true;
  }

  // False if the record makes no sense.
  Result<bool> Take(const RecordHeader& header) {
    const uint64_t begin = end_.offset + sizeof(header);
    const uint32_t size = header.size - static_cast<uint32_t>(sizeof(header));
    if (header.id == kLoad) return TakeLoad(header.when, begin, size);
    if (header.id == kMove) return TakeMove(header.when, begin, size);
    if (header.id == kLines) return TakeLines(begin, size);
    return true;
  }

  Result<bool> TakeLoad(uint64_t when, uint64_t begin, uint32_t size) {
    std::optional<Lines> lines = std::exchange(lines_, std::nullopt);
    const size_t most = sizeof(LoadRecord) + kMostOfName;
    ASSIGN_OR_RETURN(const Bytes bytes, file_.Read(begin, std::min<size_t>(size, most)));
    if (bytes.size() < sizeof(LoadRecord)) return false;
    const auto load = FrontOf<LoadRecord>(bytes);
    const uint64_t of_name = size - sizeof(load);
    if (!IsRange(load.address, load.size) || load.size > of_name) return false;
    const Bytes rest = bytes.subspan(sizeof(load));
    const Bytes of_text = rest.first(std::min<uint64_t>(rest.size(), of_name - load.size));
    std::optional<std::string_view> name = TextOf(of_text);
    if (!name && of_text.size() < kMostOfName) return false;
    if (!name) name = {reinterpret_cast<const char*>(of_text.data()), of_text.size()};
    JitCode code{.start = load.address,
                 .end = load.address + load.size,
                 .when = MonotonicTime(when),
                 .name = Printable(*name, JitCode::kMaxName)};
    const bool has_good_lines = !lines || AddLines(*std::move(lines), code);
    if (!has_good_lines) code.lines.clear();
    on_code_(code);
    return has_good_lines;
  }

  Result<bool> TakeMove(uint64_t when, uint64_t begin, uint32_t size) {
    lines_.reset();  // else it would be read again with them
    if (size < sizeof(MoveRecord)) return false;
    ASSIGN_OR_RETURN(const Bytes bytes, file_.Read(begin, sizeof(MoveRecord)));
    if (bytes.size() < sizeof(MoveRecord)) return false;
    const auto move = FrontOf<MoveRecord>(bytes);
    if (!IsRange(move.to, move.size) || !IsRange(move.from, move.size)) return false;
    on_code_({.start = move.to,
              .end = move.to + move.size,
              .when = MonotonicTime(when),
              .moved_from = move.from});
    return true;
  }

  Result<bool> TakeLines(uint64_t begin, uint32_t size) {
    lines_.reset();
    if (size < sizeof(LinesRecord) || size > kMostOfLines) return false;
    ASSIGN_OR_RETURN(const Bytes bytes, file_.Read(begin, size));
    if (bytes.size() < size) return false;
    const auto record = FrontOf<LinesRecord>(bytes);
    lines_ = LineEntries().Read(bytes.subspan(sizeof(record)), record.count);
    if (!lines_) return false;
    lines_->offset = end_.offset;
    lines_->address = record.address;
    return true;
  }

  // False if they cannot be this code's. (V8 20 writes some with an overwritten file name, after
  // which the rest is anything.)
  static bool AddLines(Lines lines, JitCode& code) {
    const uint64_t size = code.end - code.start;
    if (lines.address != code.start) return false;
    for (auto& [address, line] : lines.at) {
      const uint64_t offset = address - code.start;
      if (offset > size + JitCode::kElfHeader) return false;
      line.offset = static_cast<uint32_t>(offset);
      const bool is_same = !code.lines.empty() && code.lines.back().line == line.line &&
                           code.lines.back().file == line.file;
      if (!is_same) code.lines.push_back(line);
    }
    code.files = std::move(lines.files);
    return true;
  }

  static bool IsRange(uint64_t start, uint64_t size) {
    return size > 0 && size <= JitCode::kMostCode && start + size > start;
  }

  // What of a name is looked at; it may be longer.
  static constexpr size_t kMostOfName = 4 * JitCode::kMaxName;

  const JitDumpPart& part_;
  FileWindow file_;
  const OnJitCode on_code_;
  JitDumpEnd end_;
  std::optional<Lines> lines_;
};

}  // namespace

Result<JitDumpEnd> ReadJitDumpRecords(int fd, const JitDumpPart& part, OnJitCode on_code) {
  return JitDumpReader(fd, part, on_code).Read();
}

}  // namespace pyrometer
