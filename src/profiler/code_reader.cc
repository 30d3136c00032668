// SPDX-License-Identifier: Apache-2.0
#include "profiler/code_reader.h"

#include <algorithm>
#include <utility>

#include "binary/segments.h"
#include "foreign/reading_budget.h"

namespace pyrometer {

CodeReader::Code CodeReader::Read(ObjectId object, ElfAddress address, std::span<std::byte> out) {
  const absl::MutexLock lock(&mutex_);
  if (!file_ || file_->object != object) Open(object);
  const std::optional<FileOffset> offset = ToFileOffset(file_->segments, address);
  if (!offset) return Code::kNone;
  uint64_t at = offset->value();
  while (!out.empty()) {
    const Page* const page = PageOf(at / kPage);
    if (page == nullptr) return file_->is_late ? Code::kLate : Code::kNone;
    if (at % kPage >= page->bytes.size()) return Code::kNone;
    const auto part = std::span(page->bytes).subspan(at % kPage);
    const size_t size = std::min(part.size(), out.size());
    std::ranges::copy(part.first(size), out.begin());
    out = out.subspan(size);
    at += size;
  }
  return Code::kRead;
}

void CodeReader::Open(ObjectId object) {
  file_ = {.object = object, .file = nullptr, .content = {}, .segments = {}};
  std::optional<ObjectInfo> info = processes_.Object(object);
  Result<UniqueFd> file = processes_.OpenObject(object);
  if (!info || !file) return;
  file_->file = std::make_shared<const UniqueFd>(*std::move(file));
  file_->account = AccountOf(file_->file->get());
  file_->content = {info->identity, info->build_id};
  file_->segments = std::move(info->segments);
}

const CodeReader::Page* CodeReader::PageOf(uint64_t number) {
  for (auto page = pages_.begin(); page != pages_.end(); ++page) {
    if (page->object != file_->object || page->number != number) continue;
    pages_.splice(pages_.begin(), pages_, page);
    return &pages_.front();
  }
  std::optional<std::vector<std::byte>> bytes = Fetch(number);
  if (!bytes) return nullptr;
  pages_.push_front({.object = file_->object, .number = number, .bytes = *std::move(bytes)});
  if (pages_.size() > kMostPages) pages_.pop_back();
  return &pages_.front();
}

std::optional<std::vector<std::byte>> CodeReader::Fetch(uint64_t number) {
  if (file_->file == nullptr) return std::nullopt;
  using Bytes = Result<std::vector<std::byte>>;
  const std::optional<Bytes> answer = workers_.Ask<Bytes>(
      file_->account, kWait, kLimit,
      [indexer = indexer_, file = file_->file, content = file_->content, number]() -> Bytes {
        Bytes bytes = indexer->ReadCode(file->get(), number * kPage);
        ASSIGN_OR_RETURN(const bool is_mapped, HasContent(*indexer, file->get(), content));
        if (!is_mapped) return Fail(ErrorCode::kNotFound, "overwritten since it was mapped");
        return bytes;
      });
  if (answer && *answer) return **answer;
  // Who had no reader, or lost it, was as late.
  file_->file = nullptr;
  file_->is_late = !answer || answer->error().code() == ErrorCode::kIo ||
                   answer->error().code() == ErrorCode::kInternal;
  return std::nullopt;
}

void CodeReader::CloseFile() {
  const absl::MutexLock lock(&mutex_);
  file_.reset();
  pages_.clear();
}

}  // namespace pyrometer
