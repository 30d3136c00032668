// SPDX-License-Identifier: Apache-2.0
#include "export/file_pieces.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/file_hash.h"

namespace pyrometer {
namespace {

// What a job that may outlive its question needs and leaves behind.
struct Piece {
  std::shared_ptr<const UniqueFd> file;
  uint64_t offset = 0;
  std::vector<std::byte> bytes;
  Result<void> read;
  std::mutex mutex;
  std::condition_variable_any ended;
  std::optional<FileWork> work;  // once it has ended
};

}  // namespace

Result<FilePieces> FilePieces::Open(std::shared_ptr<const UniqueFd> file, FileWorkers& workers,
                                    std::stop_token stop) {
  ASSIGN_OR_RETURN(const FileIdentity identity, IdentityOf(file->get()));
  if (identity.size == 0) return Fail(ErrorCode::kInvalid, "the file is empty");
  return FilePieces(std::move(file), identity, workers, std::move(stop));
}

Result<void> FilePieces::Read(uint64_t offset, std::span<std::byte> out) const {
  const auto piece = std::make_shared<Piece>();
  piece->file = file_;
  piece->offset = offset;
  piece->bytes.resize(out.size());
  const bool posted = workers_.Post(
      identity_.device, kMostTime,
      [piece] { piece->read = ReadAt(piece->file->get(), piece->offset, piece->bytes); },
      [piece](FileWork work) {
        const std::lock_guard lock(piece->mutex);
        piece->work = work;
        piece->ended.notify_all();
      });
  if (!posted) return Fail(ErrorCode::kIo, "the file's disk does not answer");
  std::unique_lock lock(piece->mutex);
  piece->ended.wait(lock, stop_, [&] { return piece->work.has_value(); });
  if (piece->work != FileWork::kDone)
    return Fail(ErrorCode::kIo, "the file's disk does not answer");
  RETURN_IF_ERROR(piece->read);
  if (!IsUnchanged(file_->get(), identity_)) {
    return Fail(ErrorCode::kMalformed, "the file changes while it is read");
  }
  std::ranges::copy(piece->bytes, out.begin());
  return {};
}

Result<FileHash> FilePieces::Hash() const {
  std::vector<std::byte> head(std::min<uint64_t>(size(), kHashedPart));
  std::vector<std::byte> tail(head.size());
  RETURN_IF_ERROR(Read(0, head));
  RETURN_IF_ERROR(Read(size() - tail.size(), tail));
  return HashOf(head, tail, size());
}

}  // namespace pyrometer
