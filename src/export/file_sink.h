// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "export/byte_sink.h"

namespace pyrometer {

// A file that each Write replaces as a whole: never half written, nor half old and half new.
//
// A regular file (or none yet) is written under another name in the same directory and renamed,
// with mode 0644 less the umask. A symbolic link, a device or a FIFO is opened and written instead:
// renaming would replace the link or device, and following a link by hand would bypass the kernel's
// protection of links in /tmp. If that fails and a file is behind it, the file is left empty.
// It does not fsync: a profile is not worth waiting for the disk.
class FileSink final : public ByteSink {
 public:
  // Fails early where Write would fail: kNotFound for a missing directory, kPermission for one
  // that cannot be written, kInvalid for an empty path or a directory. Creates nothing.
  static Result<FileSink> Open(std::string path);

  Result<void> Write(std::string_view bytes) override;

 private:
  explicit FileSink(std::string path) : path_(std::move(path)) {}

  Result<void> Replace(std::string_view bytes) const;
  Result<void> WriteInPlace(std::string_view bytes) const;

  std::string path_;
};

}  // namespace pyrometer
