// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/live_view.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/file.h"
#include "base/procfs.h"
#include "process/object_mapping.h"

namespace pyrometer::oracle {

UnwindView::Found LiveView::Find(Address pc) {
  const Piece* const piece = PieceAt(pc);
  if (piece == nullptr) return {};
  if (piece->object == nullptr)
    return {.place = Place::kAnonymous, .table = nullptr, .rule = nullptr};
  if (piece->object->place == Place::kTable) {
    return FindIn(piece->object->table, piece->mapping.ToElfAddress(pc));
  }
  return {.place = piece->object->place, .table = nullptr, .rule = nullptr};
}

bool LiveView::Read(Address address, std::span<std::byte> out) {
  uint64_t at = address.value();
  while (!out.empty()) {
    const Page* const page = PageAt(at / kPageSize * kPageSize);
    if (page == nullptr) return false;
    const size_t offset = at % kPageSize;
    const size_t size = std::min(out.size(), kPageSize - offset);
    std::memcpy(out.data(), page->bytes.data() + offset, size);
    out = out.subspan(size);
    at += size;
  }
  return true;
}

uint64_t LiveView::ReadWord(Address address) {
  uint64_t word = 0;
  return Read(address, std::as_writable_bytes(std::span(&word, 1))) ? word : 0;
}

size_t LiveView::ReadSome(Address address, std::span<std::byte> out) const {
  const iovec local{out.data(), out.size()};
  const iovec remote{reinterpret_cast<void*>(address.value()), out.size()};
  const ssize_t size =
      ::process_vm_readv(static_cast<pid_t>(pid_.value()), &local, 1, &remote, 1, 0);
  return size > 0 ? static_cast<size_t>(size) : 0;
}

std::string LiveView::Describe(Address pc) {
  const Piece* const piece = PieceAt(pc);
  if (piece == nullptr) return fmt::format("{:#x} (not mapped)", pc.value());
  if (piece->object == nullptr) return fmt::format("{:#x} (anonymous)", pc.value());
  const ElfAddress address = piece->mapping.ToElfAddress(pc);
  std::string text = fmt::format("{}+{:#x}", piece->object->name, address.value());
  if (const std::optional<Symbol> symbol = piece->object->symbols.Find(address)) {
    text += fmt::format(" ({}+{:#x})", symbol->name, address.value() - symbol->start.value());
  }
  return text;
}

const LiveView::Piece* LiveView::PieceAt(Address pc) {
  const Piece* piece = KnownPieceAt(pc);
  if (piece == nullptr && mappings_stale_) {
    ReadMappings();
    piece = KnownPieceAt(pc);
  }
  return piece;
}

const LiveView::Piece* LiveView::KnownPieceAt(Address pc) const {
  const auto next = std::ranges::upper_bound(
      pieces_, pc, {}, [](const Piece& piece) { return piece.mapping.start; });
  if (next == pieces_.begin()) return nullptr;
  const Piece& piece = *std::prev(next);
  return piece.mapping.Contains(pc) ? &piece : nullptr;
}

void LiveView::ReadMappings() {
  pieces_.clear();
  mappings_stale_ = false;
  const Result<UniqueFd> file = Open(Procfs().Of(pid_, "maps"), O_RDONLY);
  const Result<ProcMaps> maps = file ? ReadProcMaps(file->get()) : Result<ProcMaps>(file.error());
  if (!maps) return;
  for (const ProcMapping& mapping : maps->mappings) {
    const MappedObject* const object = tables_.ObjectOf(pid_, mapping);
    const std::span<const Segment> segments =
        object == nullptr ? std::span<const Segment>() : std::span(object->segments);
    for (const ObjectMapping& piece :
         ToObjectMappings(mapping.range, ObjectId(1), segments, kPageSize)) {
      pieces_.push_back({piece, object});
    }
  }
  std::ranges::sort(pieces_, {}, [](const Piece& piece) { return piece.mapping.start; });
}

// Null if it cannot be read. Valid until the next call.
const LiveView::Page* LiveView::PageAt(uint64_t address) {
  for (size_t i = 0; i < std::min(pages_used_, kPages); ++i) {
    if (pages_[i].address == address) return &pages_[i];
  }
  Page& page = pages_[pages_used_ % kPages];
  if (ReadSome(Address(address), page.bytes) != kPageSize) {
    page.address = ~uint64_t{0};
    return nullptr;
  }
  page.address = address;
  ++pages_used_;
  return &page;
}

}  // namespace pyrometer::oracle
