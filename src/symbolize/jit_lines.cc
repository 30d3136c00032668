// SPDX-License-Identifier: Apache-2.0
#include "symbolize/jit_lines.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "base/printable.h"

namespace pyrometer {
namespace {

struct JitDebugInfo {
  uint32_t id;
  uint32_t total_size;
  uint64_t timestamp;
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

// Of a name this is looked at, so that what is made printable has enough.
constexpr size_t kMostOfRawFile = 4 * kMostOfJitName;
// V8 fills records up to a multiple of that.
constexpr size_t kAlignmentOfV8 = 8;
constexpr uint32_t kElfHeaderOfV8 = sizeof(Elf64_Ehdr);
// The name of the same file as before.
constexpr std::string_view kSameFile = "\xff";

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

// Of a record.
struct JitLineEntries {
  uint64_t begin = 0;  // in the file
  uint64_t end = 0;
  uint64_t count = 0;
  uint64_t start = 0;  // of the code
  uint64_t most = 0;   // for how far in the code an entry may lie
  const OverwrittenNames& names;
};

// Up to what is no entry.
Result<void> ReadEntries(FileWindow& window, const JitLineEntries& entries, JitCodeLines& result) {
  FileNames files(result.files);
  std::optional<uint32_t> file;
  uint64_t next = entries.begin;
  for (uint64_t i = 0; i < entries.count; ++i) {
    ASSIGN_OR_RETURN(const std::string_view bytes,
                     window.At(next, sizeof(JitDebugEntry) + kMostOfRawFile));
    const std::string_view record = bytes.substr(0, entries.end - next);
    if (record.size() < kLeastJitLine) return {};
    JitDebugEntry entry{};
    std::memcpy(&entry, record.data(), sizeof(entry));
    const uint64_t offset = entry.addr - entries.start;
    const std::string_view rest = record.substr(sizeof(entry));
    const auto is_followed = [&](size_t name_size) {
      const std::string_view behind = rest.substr(std::min(name_size + 1, rest.size()));
      if (i + 1 == entries.count) return behind.size() < kAlignmentOfV8;
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

}  // namespace

Result<JitCodeLines> ReadJitLines(FileWindow& window, uint64_t at, const JitCode& code) {
  JitCodeLines result;
  ASSIGN_OR_RETURN(const std::optional<JitDebugInfo> info, window.Get<JitDebugInfo>(at));
  if (!info || info->total_size < sizeof(JitDebugInfo)) {
    result.is_bad = true;
    return result;
  }
  if (info->code_addr != code.start) return result;
  const uint64_t room = (info->total_size - sizeof(JitDebugInfo)) / kLeastJitLine;
  const uint64_t count = std::min(info->nr_entry, room);
  result.is_bad = count < info->nr_entry;
  const OverwrittenNames names = code.is_of_v8 ? OverwrittenNames(code.name) : OverwrittenNames();
  const JitLineEntries entries{.begin = at + sizeof(JitDebugInfo),
                               .end = at + info->total_size,
                               .count = std::min<uint64_t>(count, kMostJitLines),
                               .start = code.start,
                               .most = code.size + (code.is_of_v8 ? kElfHeaderOfV8 : 0),
                               .names = names};
  RETURN_IF_ERROR(ReadEntries(window, entries, result));
  std::vector<JitLine>& lines = result.lines;
  result.left_out = count - lines.size();
  // Where it ends is not known, and what is no entry may lie behind another name than it seems.
  if (result.left_out > 0 && !lines.empty()) lines.back().line = 0;
  const auto lies_behind = [](const JitLine& line) { return line.offset >= kElfHeaderOfV8; };
  if (code.is_of_v8 && std::ranges::all_of(lines, lies_behind)) {
    for (JitLine& line : lines) line.offset -= kElfHeaderOfV8;
  }
  std::erase_if(lines, [&](const JitLine& line) { return line.offset > code.size; });
  SortLines(lines);
  return result;
}

}  // namespace pyrometer
