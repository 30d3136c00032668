// SPDX-License-Identifier: Apache-2.0
#include "profiler/code_reader.h"

#include <algorithm>
#include <utility>

#include "base/file_identity.h"
#include "binary/segments.h"

namespace pyrometer {

bool CodeReader::Read(ObjectId object, ElfAddress address, std::span<std::byte> out) {
  const absl::MutexLock lock(&mutex_);
  if (!file_ || file_->object != object) Open(object);
  const std::optional<FileOffset> offset = ToFileOffset(file_->segments, address);
  if (!offset) return false;
  uint64_t at = offset->value();
  while (!out.empty()) {
    if (file_->file == nullptr) return false;
    const Page& page = PageOf(at / kPage);
    if (at % kPage >= page.bytes.size()) return false;
    const auto part = std::span(page.bytes).subspan(at % kPage);
    const size_t size = std::min(part.size(), out.size());
    std::ranges::copy(part.first(size), out.begin());
    out = out.subspan(size);
    at += size;
  }
  return true;
}

void CodeReader::Open(ObjectId object) {
  file_ = {.object = object, .file = nullptr, .segments = {}};
  std::optional<ObjectInfo> info = processes_.Object(object);
  Result<UniqueFd> file = processes_.OpenObject(object);
  if (!info || !file) return;
  const Result<FileIdentity> identity = IdentityOf(file->get());
  if (!identity) return;
  file_->file = std::make_shared<const UniqueFd>(*std::move(file));
  file_->file_system = identity->device;
  file_->segments = std::move(info->segments);
}

const CodeReader::Page& CodeReader::PageOf(uint64_t number) {
  for (auto page = pages_.begin(); page != pages_.end(); ++page) {
    if (page->object != file_->object || page->number != number) continue;
    pages_.splice(pages_.begin(), pages_, page);
    return pages_.front();
  }
  pages_.push_front({.object = file_->object, .number = number, .bytes = Fetch(number)});
  if (pages_.size() > kMostPages) pages_.pop_back();
  return pages_.front();
}

std::vector<std::byte> CodeReader::Fetch(uint64_t number) {
  auto bytes = workers_.Ask<std::vector<std::byte>>(
      file_->file_system, kWait, kLimit, [indexer = indexer_, file = file_->file, number] {
        return indexer->ReadCode(file->get(), number * kPage).value_or(std::vector<std::byte>());
      });
  if (!bytes) {
    file_->file = nullptr;  // there is no point in waiting for more of it
    return {};
  }
  return *std::move(bytes);
}

void CodeReader::CloseFile() {
  const absl::MutexLock lock(&mutex_);
  file_.reset();
  pages_.clear();
}

}  // namespace pyrometer
