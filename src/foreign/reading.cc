// SPDX-License-Identifier: Apache-2.0
#include "foreign/reading.h"

#include <algorithm>
#include <span>
#include <utility>

namespace pyrometer {
namespace {

Digest FinishDigest(KeyedDigest digest, const Reading& reading) {
  for (const uint64_t size : reading.sizes) digest.Add(size);
  for (const Reading::Piece& piece : reading.pieces) {
    digest.Add(piece.file);
    digest.Add(piece.offset);
    digest.Add(piece.size);
  }
  return digest.Finish();
}

Result<void> Add(const ByteSource& file, const Reading::Piece& piece, KeyedDigest& digest,
                 std::vector<std::byte>& buffer) {
  for (uint64_t done = 0; done < piece.size;) {
    const auto part = std::span(buffer).first(std::min<uint64_t>(buffer.size(), piece.size - done));
    RETURN_IF_ERROR(file.Read(piece.offset + done, part));
    digest.Add(part);
    done += part.size();
  }
  return {};
}

}  // namespace

class ReadingRecorder::Source : public ByteSource {
 public:
  Source(ReadingRecorder& recorder, uint32_t number, std::unique_ptr<ByteSource> file)
      : recorder_(recorder), number_(number), file_(std::move(file)) {}

  uint64_t size() const override { return file_->size(); }
  Result<void> Read(uint64_t offset, std::span<std::byte> out) const override {
    Result<void> read = file_->Read(offset, out);
    if (read) {
      recorder_.Note(number_, offset, out);
    } else {
      recorder_.NoteFailure();
    }
    return read;
  }

 private:
  ReadingRecorder& recorder_;
  const uint32_t number_;
  const std::unique_ptr<ByteSource> file_;
};

Result<std::unique_ptr<ByteSource>> ReadingRecorder::Open(int fd) {
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> file, FileBytes(fd));
  const auto number = static_cast<uint32_t>(reading_.sizes.size());
  reading_.sizes.push_back(file->size());
  return std::unique_ptr<ByteSource>(std::make_unique<Source>(*this, number, std::move(file)));
}

void ReadingRecorder::Note(uint32_t file, uint64_t offset, std::span<const std::byte> bytes) {
  if (!reading_.is_complete || bytes.empty()) return;
  digest_.Add(bytes);
  std::vector<Reading::Piece>& pieces = reading_.pieces;
  if (!pieces.empty() && pieces.back().file == file &&
      pieces.back().offset + pieces.back().size == offset) {
    pieces.back().size += bytes.size();
    return;
  }
  if (pieces.size() == kMostPieces) return NoteFailure();
  pieces.push_back({.file = file, .offset = offset, .size = bytes.size()});
}

Reading ReadingRecorder::Finish() && {
  reading_.digest = FinishDigest(digest_, reading_);
  reading_.pieces.shrink_to_fit();
  return std::move(reading_);
}

Result<bool> Repeats(const Reading& reading, std::span<const int> files,
                     const KeyedDigest::Key& key) {
  if (!reading.is_complete || reading.sizes.size() != files.size()) return false;
  std::vector<std::unique_ptr<ByteSource>> sources;
  for (size_t i = 0; i < files.size(); ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, FileBytes(files[i]));
    if (source->size() != reading.sizes[i]) return false;
    sources.push_back(std::move(source));
  }
  KeyedDigest digest(key);
  std::vector<std::byte> buffer(size_t{64} << 10);
  for (const Reading::Piece& piece : reading.pieces) {
    RETURN_IF_ERROR(Add(*sources[piece.file], piece, digest, buffer));
  }
  return FinishDigest(digest, reading) == reading.digest;
}

}  // namespace pyrometer
