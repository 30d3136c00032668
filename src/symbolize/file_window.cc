// SPDX-License-Identifier: Apache-2.0
#include "symbolize/file_window.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/system_error.h"

namespace pyrometer {

Result<std::string_view> FileWindow::At(uint64_t offset, size_t size) {
  if (offset >= end_) return std::string_view();
  size = std::min<uint64_t>(size, end_ - offset);
  if (offset < begin_ || offset - begin_ > size_ || size_ - (offset - begin_) < size) {
    RETURN_IF_ERROR(Fill(offset, size));
  }
  return std::string_view(bytes_.data(), size_).substr(offset - begin_, size);
}

Result<void> FileWindow::Fill(uint64_t offset, size_t size) {
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

}  // namespace pyrometer
