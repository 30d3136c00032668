// SPDX-License-Identifier: Apache-2.0
#include "process/proc_maps.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <optional>
#include <utility>

#include "base/system_error.h"
#include "process/text_fields.h"

namespace pyrometer {
namespace {

constexpr size_t kBufferBytes = size_t{32} << 10;
// A path of PATH_MAX of nothing but newlines, each of which is written as four characters, and what
// stands before it.
constexpr size_t kLongestLine = size_t{4} * PATH_MAX + 256;
constexpr std::string_view kTooLong = "//toolong";

// The kernel escapes the newline in paths, and only that.
std::string UnescapeNewlines(std::string_view path) {
  constexpr std::string_view kNewline = "\\012";
  std::string plain;
  while (!path.empty()) {
    const size_t escape = std::min(path.find(kNewline), path.size());
    plain += path.substr(0, escape);
    path.remove_prefix(escape);
    if (path.empty()) break;
    plain += '\n';
    path.remove_prefix(kNewline.size());
  }
  return plain;
}

// "start-end perms offset major:minor inode      path"
std::optional<ProcMapping> ParseLine(std::string_view line) {
  TextFields fields(line);
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t offset = 0;
  ProcMapping mapping;
  bool ok = ParseNumber(fields.Next('-'), start, 16) && ParseNumber(fields.Next(), end, 16);
  const std::string_view permissions = fields.Next();
  if (!ok || permissions.size() < 3 || permissions[2] != 'x') return std::nullopt;
  ok = ParseNumber(fields.Next(), offset, 16) &&
       ParseNumber(fields.Next(':'), mapping.file.major, 16) &&
       ParseNumber(fields.Next(), mapping.file.minor, 16) &&
       ParseNumber(fields.Next(), mapping.file.inode);
  if (!ok || end <= start || start >> 63) return std::nullopt;
  const size_t path = std::min(fields.rest().find_first_not_of(' '), fields.rest().size());
  mapping.file.path = UnescapeNewlines(fields.rest().substr(path));
  if (mapping.file.path.size() >= PATH_MAX) mapping.file.path = kTooLong;
  mapping.range = {Address(start), Address(end), FileOffset(offset), permissions[1] == 'w'};
  mapping.line_end = mapping.range.end;
  return mapping;
}

bool Continues(const ProcMapping& next, const ProcMapping& last) {
  if (next.range.start != last.range.end || next.range.writable != last.range.writable) {
    return false;
  }
  const uint64_t length = last.range.end.value() - last.range.start.value();
  const bool follows = next.range.offset.value() == last.range.offset.value() + length;
  const bool has_offset = next.file.inode != 0;
  return (follows || !has_offset) && next.file == last.file;
}

// What is left of `mapping` from `start` on.
void CutFront(ProcMapping& mapping, Address start) {
  FileMapping& range = mapping.range;
  range.offset = FileOffset(range.offset.value() + (start.value() - range.start.value()));
  range.start = start;
  if (mapping.line_end <= start) mapping.line_end = range.end;
}

}  // namespace

void ProcMaps::Map(const FileMapping& range, const MappedFile& file) {
  if (range.start >= range.end) return;
  const auto is_before = [&](const ProcMapping& m) { return m.range.end <= range.start; };
  auto first = std::partition_point(mappings.begin(), mappings.end(), is_before);
  const bool shows_anonymous =
      first != mappings.end() && first->range.start == range.start && IsAnonymous(first->file.path);
  if (shows_anonymous && IsAnonymous(file.path)) return;
  ProcMapping mapped{range, file, range.end, true};
  if (first != mappings.end() && first->range.start < range.start) {
    ProcMapping rest = *first;
    first->range.end = range.start;
    first->line_end = std::min(first->line_end, range.start);
    ++first;
    if (rest.range.end > range.end) {
      CutFront(rest, range.end);
      first = mappings.insert(first, {std::move(mapped), std::move(rest)});
      return;
    }
  }
  const auto last = std::find_if(first, mappings.end(),
                                 [&](const ProcMapping& m) { return m.range.end > range.end; });
  if (last != mappings.end() && last->range.start < range.end) CutFront(*last, range.end);
  if (first == last) {
    mappings.insert(first, std::move(mapped));
  } else {
    *first = std::move(mapped);
    mappings.erase(first + 1, last);
  }
}

bool ProcMapsParser::Add(std::string_view text) {
  maps_.bytes += text.size();
  while (!stopped_ && !text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos || !begun_.empty()) {
      const std::string_view part = text.substr(0, std::min(end, text.size()));
      begun_ += part.substr(0, kLongestLine - begun_.size());
    }
    if (end == std::string_view::npos) break;
    AddLine(begun_.empty() ? text.substr(0, end) : std::string_view(begun_));
    begun_.clear();
    text.remove_prefix(end + 1);
  }
  stopped_ = stopped_ || maps_.bytes >= limits_.bytes;
  return !stopped_;
}

ProcMaps ProcMapsParser::Finish() && {
  if (!stopped_ && !begun_.empty()) AddLine(begun_);
  maps_.complete = !stopped_ && anonymous_ <= limits_.anonymous;
  return std::move(maps_);
}

void ProcMapsParser::AddLine(std::string_view line) {
  if (std::optional<ProcMapping> mapping = ParseLine(line)) AddMapping(*std::move(mapping));
}

void ProcMapsParser::AddMapping(ProcMapping mapping) {
  std::vector<ProcMapping>& mappings = maps_.mappings;
  if (!mappings.empty() && Continues(mapping, mappings.back())) {
    mappings.back().range.end = mapping.range.end;
    return;
  }
  if (IsAnonymous(mapping.file.path)) {
    // Beyond the limit it is looked for what has names.
    if (++anonymous_ <= limits_.anonymous) mappings.push_back(std::move(mapping));
    return;
  }
  stopped_ = ++files_ > limits_.files;
  if (!stopped_) mappings.push_back(std::move(mapping));
}

Result<ProcMaps> ReadProcMaps(int fd, const ProcMapsLimits& limits) {
  ProcMapsParser parser(limits);
  std::string buffer(kBufferBytes, '\0');
  while (true) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError(errno, "maps");
    if (n == 0) break;
    if (!parser.Add(std::string_view(buffer.data(), static_cast<size_t>(n)))) break;
  }
  return std::move(parser).Finish();
}

}  // namespace pyrometer
