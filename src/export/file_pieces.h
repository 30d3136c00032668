// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>

#include "base/file_identity.h"
#include "base/file_workers.h"
#include "base/unique_fd.h"
#include "pyrometer/ids.h"
#include "pyrometer/result.h"

namespace pyrometer {

// An open file, read piece by piece without ever waiting longer than kMostTime for its disk. Its
// bytes mean nothing here. Thread-compatible.
class FilePieces {
 public:
  static constexpr std::chrono::seconds kMostTime{10};

  // `workers` outlives this. A stop ends any waiting. Errors: kIo, kInvalid for an empty file.
  static Result<FilePieces> Open(std::shared_ptr<const UniqueFd> file, FileWorkers& workers,
                                 std::stop_token stop);

  uint64_t size() const { return identity_.size; }

  // Fills all of `out`. Errors: kIo; kMalformed if the file has changed, as far as that can be
  // seen.
  Result<void> Read(uint64_t offset, std::span<std::byte> out) const;

  // See HashOf().
  Result<FileHash> Hash() const;

 private:
  FilePieces(std::shared_ptr<const UniqueFd> file, const FileIdentity& identity,
             FileWorkers& workers, std::stop_token stop)
      : file_(std::move(file)), identity_(identity), workers_(workers), stop_(std::move(stop)) {}

  std::shared_ptr<const UniqueFd> file_;
  FileIdentity identity_;
  FileWorkers& workers_;
  std::stop_token stop_;
};

}  // namespace pyrometer
