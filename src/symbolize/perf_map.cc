// SPDX-License-Identifier: Apache-2.0
#include "symbolize/perf_map.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/system_error.h"

namespace pyrometer {

Result<void> PerfMap::Update(int fd, Writer writer, LineSource read) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return SystemError(errno, "fstat");
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kInvalid, "not a regular file");
  const bool same = status.st_dev == device_ && status.st_ino == inode_ &&
                    static_cast<uint64_t>(status.st_size) >= offset_;
  if (!same) Forget();
  device_ = status.st_dev;
  inode_ = status.st_ino;
  const auto size = static_cast<uint64_t>(status.st_size);
  const bool has_stopped = writer == Writer::kGone || size == size_;
  size_ = size;
  tail_.reset();
  has_more_ = false;
  PerfMapPart part{.begin = offset_,
                   .mark = mark_,
                   .size = size,
                   .most_lines = kMaxLines,
                   .most_names = kMaxNameBytes,
                   .has_stopped = has_stopped};
  uint64_t good = 0;
  const auto on_function = [&](const Function& function, uint64_t offset) {
    if (++good > part.most_lines) return;
    Insert(function);
    offset_ = offset;
  };
  Result<PerfMapEnd> end = read(fd, part, on_function);
  if (end && end->is_another) {
    Forget();
    part.begin = 0;
    end = read(fd, part, on_function);
  }
  if (!end) return end.error();
  has_more_ = end->is_cut && end->offset > part.begin;
  offset_ = end->offset;
  mark_ = end->mark;
  tail_ = end->tail;
  bad_lines_ += std::min(end->bad_lines, kMaxLines);
  return {};
}

void PerfMap::Forget() {
  ranges_ = {};
  names_ = {};
  come_ = 0;
  tail_.reset();
  offset_ = 0;
  mark_ = 0;
}

// A half of the memory is for names, another for ranges.
bool PerfMap::HasRoomFor(const Function& function) {
  const size_t half = most_bytes_ / 2;
  come_ += function.name.size();
  if (names_.size() + function.name.size() > half && come_ > half / 8) DropReplacedNames();
  return names_.size() + function.name.size() <= half && ranges_.bytes() <= half;
}

void PerfMap::Insert(const Function& function) {
  const auto& [start, end, name] = function;
  if (!HasRoomFor(function)) {
    // Whatever it is, it is not what lay there before.
    ranges_.Clear(start, end);
    cleared_.Add(start, end);
    ++passed_over_;
    return;
  }
  if (names_.size() + name.size() > names_.capacity()) {
    names_.reserve(std::min(most_bytes_ / 2, 2 * names_.size() + name.size()));
  }
  ranges_.Put(
      start, end,
      {.begin = static_cast<uint32_t>(names_.size()), .size = static_cast<uint32_t>(name.size())});
  names_ += name;
}

void PerfMap::DropReplacedNames() {
  come_ = 0;
  std::string kept;
  kept.reserve(names_.size());
  absl::flat_hash_map<uint32_t, uint32_t> moved;  // a range in pieces has one name
  ranges_.ForEach([&](PieceOfText& name) {
    const auto [known, is_new] = moved.try_emplace(name.begin, static_cast<uint32_t>(kept.size()));
    if (is_new) kept += names_.substr(name.begin, name.size);
    name.begin = known->second;
  });
  names_ = std::move(kept);
}

std::optional<std::string_view> PerfMap::Find(Address address) const {
  if (tail_ && tail_->Contains(address)) return tail_->name;
  const PieceOfText* const name = ranges_.Find(address.value());
  if (name == nullptr) return std::nullopt;
  return std::string_view(names_).substr(name->begin, name->size);
}

size_t PerfMap::bytes() const {
  return names_.capacity() + (tail_ ? tail_->name.capacity() : 0) + ranges_.bytes();
}

}  // namespace pyrometer
