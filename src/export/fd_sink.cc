// SPDX-License-Identifier: Apache-2.0
#include "export/fd_sink.h"

#include "base/file.h"

namespace pyrometer {

Result<void> FdSink::Write(std::string_view bytes) {
  Result<void> written = WriteAll(fd_, bytes);
  if (!written) return std::move(written).error().With(name_);
  return {};
}

}  // namespace pyrometer
