// SPDX-License-Identifier: Apache-2.0
#include "binary/byte_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/system_error.h"

namespace pyrometer {
namespace {

class FileSource : public ByteSource {
 public:
  FileSource(int fd, uint64_t size) : fd_(fd), size_(size) {}

  uint64_t size() const override { return size_; }
  Result<void> Read(uint64_t offset, std::span<std::byte> out) const override {
    return ReadAt(fd_, offset, out);
  }

 private:
  int fd_;
  uint64_t size_;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

  uint64_t size() const override { return bytes_.size(); }
  Result<void> Read(uint64_t offset, std::span<std::byte> out) const override {
    if (!Within(offset, out.size(), bytes_.size())) {
      return Fail(ErrorCode::kMalformed, "the image ends before offset {:#x}", offset);
    }
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return {};
  }
  std::span<const std::byte> in_memory() const override { return bytes_; }

 private:
  const std::vector<std::byte> bytes_;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> FileBytes(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return SystemError(errno, "fstat");
  // Reading anything else may block, or have effects.
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kInvalid, "not a regular file");
  return FileBytes(fd, static_cast<uint64_t>(status.st_size));
}

std::unique_ptr<ByteSource> FileBytes(int fd, uint64_t size) {
  return std::make_unique<FileSource>(fd, size);
}

std::unique_ptr<ByteSource> MemoryBytes(std::vector<std::byte> bytes) {
  return std::make_unique<MemorySource>(std::move(bytes));
}

ReadAhead::ReadAhead(const ByteSource& source, uint64_t begin, uint64_t end, size_t step)
    : source_(source),
      begin_(begin),
      end_(std::max(begin, std::min(end, source.size()))),
      step_(step) {}

Result<std::span<const std::byte>> ReadAhead::At(uint64_t offset, size_t wanted) {
  if (offset < begin_ || offset > end_) {
    return Fail(ErrorCode::kMalformed, "offset {:#x} is outside of its table", offset);
  }
  const uint64_t available = std::min<uint64_t>(wanted, end_ - offset);
  const uint64_t skipped = offset - buffered_at_;  // wraps if it lies before the buffer
  if (offset < buffered_at_ || !Within(skipped, available, buffer_.size())) {
    const size_t size = std::min<uint64_t>(std::max<uint64_t>(available, step_), end_ - offset);
    // What is there is of no use, least of all beside what comes; and what was large is not kept.
    if (size > buffer_.capacity() || buffer_.capacity() > 4 * std::max(size, step_)) {
      buffer_ = {};
      buffer_.reserve(size);
    }
    buffer_.resize(size);
    buffered_at_ = offset;
    if (Result<void> read = source_.Read(offset, buffer_); !read) {
      buffer_.clear();
      return std::move(read).error();
    }
  }
  return std::span<const std::byte>(buffer_).subspan(offset - buffered_at_, available);
}

}  // namespace pyrometer
