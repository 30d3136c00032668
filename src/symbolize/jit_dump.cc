// SPDX-License-Identifier: Apache-2.0
#include "symbolize/jit_dump.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "base/system_error.h"

namespace pyrometer {
namespace {

// A record that claims to be younger was written by another clock.
constexpr std::chrono::nanoseconds kClocksDiffer = std::chrono::seconds(1);

// So many pieces of replaced code are looked at for an address.
constexpr int kMostSteps = 256;

}  // namespace

Result<void> JitDump::Update(int fd, bool has_stopped, MonotonicTime now, Source read) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return SystemError(errno, "fstat");
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kInvalid, "not a regular file");
  const auto size = static_cast<uint64_t>(status.st_size);
  const bool same = status.st_dev == device_ && status.st_ino == inode_ && size >= offset_;
  if (!same) Forget();
  device_ = status.st_dev;
  inode_ = status.st_ino;
  now_ = now;
  has_more_ = false;
  ForgetPast(Before(now, kKeepReplaced));
  JitDumpPart part{.begin = offset_,
                   .created = created_,
                   .size = size,
                   .most_records = is_broken_ ? 0 : kMostRecords,
                   .most_bytes = kMostBytes,
                   .has_stopped = has_stopped};
  const auto on_code = [this](const JitCode& code) { Add(code); };
  Result<JitDumpEnd> end = read(fd, part, on_code);
  if (end && end->is_another) {
    Forget();
    part.begin = 0;
    part.most_records = kMostRecords;
    end = read(fd, part, on_code);
  }
  if (!end) return end.error();
  // Not, if it would stop there again.
  has_more_ = end->is_cut && !is_broken_ && end->offset > offset_;
  offset_ = end->offset;
  created_ = end->created;
  is_broken_ |= end->is_broken;
  bad_records_ += end->bad_records;
  return {};
}

void JitDump::Forget() {
  ranges_ = {};
  past_ = {};
  lines_are_shifted_ = true;
  offset_ = 0;
  created_ = 0;
  is_broken_ = false;
}

void JitDump::ForgetPast(MonotonicTime horizon) {
  for (auto past = past_.begin(); past != past_.end();) {
    past = past->first.second < horizon ? past_.erase(past) : std::next(past);
  }
}

const JitDump::Code* JitDump::FindPast(Address address, MonotonicTime when) const {
  const Code* found = nullptr;
  MonotonicTime until;
  auto next = past_.upper_bound({address.value(), MonotonicTime(UINT64_MAX)});
  for (int steps = 0; steps < kMostSteps && next != past_.begin(); ++steps) {
    const uint64_t start = std::prev(next)->first.first;
    auto past = past_.upper_bound({start, when});
    while (past != next && past->second.end <= address && ++steps < kMostSteps) ++past;
    const bool covers = past != next && address < past->second.end;
    if (covers && (found == nullptr || past->first.second < until)) {
      found = &past->second.code;
      until = past->first.second;
    }
    next = past_.lower_bound({start, MonotonicTime(0)});
  }
  return found;
}

void JitDump::Add(const JitCode& code) {
  // By another clock: then the last entry counts, whenever a sample was taken.
  const bool is_comparable = code.when <= After(now_, kClocksDiffer);
  const MonotonicTime when = is_comparable ? code.when : MonotonicTime(0);
  FunctionRef function = code.moved_from ? FunctionMoved(code) : MakeFunction(code);
  // Of samples of so long ago nobody asks any more.
  const bool is_past = when < Before(now_, kKeepReplaced);
  const auto on_replaced = [&](uint64_t start, uint64_t end, const Code& old) {
    if (!is_past && past_.size() < kMostPast)
      past_[{start, when}] = {.end = Address(end), .code = old};
  };
  if (function == nullptr) {
    // Whatever it is, it is not what lay there before.
    ranges_.Clear(code.start, code.end, on_replaced);
    cleared_.Add(code.start, code.end);
  } else {
    ranges_.Put(code.start, code.end,
                {.function = std::move(function), .start = Address(code.start), .since = when},
                on_replaced);
  }
  // Even what is passed over cuts ranges in two.
  if (bytes() <= 2 * most_bytes_) return;
  passed_over_ += ranges_.size();
  cleared_.Add(0, ~uint64_t{0});
  ranges_ = {};
  past_ = {};
}

// The whole function only: a part of one has other lines.
JitDump::FunctionRef JitDump::FunctionMoved(const JitCode& move) const {
  const Code* const code = ranges_.Find(*move.moved_from);
  return code != nullptr && code->start.value() == *move.moved_from ? code->function : nullptr;
}

JitDump::FunctionRef JitDump::MakeFunction(const JitCode& code) {
  if (!code.lines.empty()) lines_are_shifted_ &= code.lines.front().offset >= JitCode::kElfHeader;
  const size_t have = bytes();
  if (have >= most_bytes_) {
    ++passed_over_;
    return nullptr;
  }
  auto function = std::make_unique<Function>();
  function->name = code.name;
  const bool has_room = have < most_bytes_ / 2;
  if (!has_room && !code.lines.empty()) ++passed_over_;
  if (has_room) {
    function->files = code.files;
    function->lines.reserve(code.lines.size());
    for (const JitCode::Line& line : code.lines) {
      const bool fits = line.line >> (32 - kFileBits) == 0;
      const uint32_t place = fits ? line.line << kFileBits | line.file : 0;
      function->lines.push_back({.offset = line.offset, .place = place});
    }
  }
  size_t size = sizeof(Function) + function->name.capacity();
  size += function->lines.capacity() * sizeof(Line);
  for (const std::string& file : function->files) size += sizeof(std::string) + file.capacity();
  *function_bytes_ += size;
  return {function.release(), [total = function_bytes_, size](const Function* f) {
            delete f;
            *total -= size;
          }};
}

std::optional<JitDump::Place> JitDump::Find(Address address, MonotonicTime when) const {
  const Code* const last = ranges_.Find(address.value());
  if (last != nullptr && last->since <= when) return PlaceIn(*last, address);
  if (const Code* const past = FindPast(address, when)) return PlaceIn(*past, address);
  return last == nullptr ? std::nullopt : std::optional(PlaceIn(*last, address));
}

JitDump::Place JitDump::PlaceIn(const Code& code, Address address) const {
  const Function& function = *code.function;
  Place place{.function = function.name, .file = {}};
  const uint64_t offset =
      address.value() - code.start.value() + (lines_are_shifted_ ? JitCode::kElfHeader : 0);
  const auto next = std::ranges::upper_bound(function.lines, offset, {}, &Line::offset);
  if (next == function.lines.begin()) return place;
  const uint32_t known = std::prev(next)->place;
  const uint32_t file = known & ((1U << kFileBits) - 1);
  if (known >> kFileBits == 0 || file >= function.files.size()) return place;
  place.file = function.files[file];
  place.line = known >> kFileBits;
  return place;
}

}  // namespace pyrometer
