// SPDX-License-Identifier: Apache-2.0
#include "debuginfo/go_image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "binary/segments.h"

namespace pyrometer {
namespace {

// The loader's own table ends at DT_NULL; real ones have some forty entries.
constexpr uint64_t kMaxDynamicEntries = 4096;
// 24 bytes each; the go command as a PIE has 70,000, kubelet would have half a million.
constexpr uint64_t kMaxRelocations = 16'000'000;
// Data to be searched for pointers. The largest programs have a few MiB.
constexpr uint64_t kMaxData = uint64_t{1} << 30;
constexpr size_t kStep = size_t{1} << 20;

uint32_t RelativeType(const ElfFile& elf) {
  return elf.header().e_machine == EM_AARCH64 ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE;
}

std::vector<Elf64_Dyn> ReadDynamic(const ElfFile& elf) {
  const auto headers = elf.program_headers();
  const auto dynamic =
      std::ranges::find(headers, static_cast<Elf64_Word>(PT_DYNAMIC), &Elf64_Phdr::p_type);
  if (dynamic == headers.end()) return {};
  const uint64_t count = std::min(dynamic->p_filesz / sizeof(Elf64_Dyn), kMaxDynamicEntries);
  return ReadArray<Elf64_Dyn>(elf.bytes(), dynamic->p_offset, count)
      .value_or(std::vector<Elf64_Dyn>());
}

}  // namespace

GoImage::GoImage(const ElfFile& elf) : elf_(elf) {
  uint64_t address = 0;
  uint64_t size = 0;
  for (const Elf64_Dyn& entry : ReadDynamic(elf)) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_RELA) address = entry.d_un.d_ptr;
    if (entry.d_tag == DT_RELASZ) size = entry.d_un.d_val;
  }
  const auto offset = ToFileOffset(elf.segments(), ElfAddress(address));
  if (!offset || !Within(offset->value(), size, elf.bytes().size())) return;
  relocations_ = offset->value();
  relocation_count_ = std::min(size / sizeof(Elf64_Rela), kMaxRelocations);
}

uint64_t GoImage::SizeAt(uint64_t address) const {
  for (const Segment& segment : elf_.segments()) {
    if (!HoldsInFile(segment, ElfAddress(address))) continue;
    const uint64_t skipped = address - segment.address.value();
    const uint64_t offset = segment.offset.value() + skipped;
    const uint64_t file = elf_.bytes().size();
    return offset < file ? std::min(segment.file_size - skipped, file - offset) : 0;
  }
  return 0;
}

Result<std::vector<std::byte>> GoImage::Read(uint64_t address, uint64_t size) const {
  const auto offset = ToFileOffset(elf_.segments(), ElfAddress(address));
  if (!offset || size > SizeAt(address)) {
    return Fail(ErrorCode::kMalformed, "the file does not hold {} bytes at address {:#x}", size,
                address);
  }
  ASSIGN_OR_RETURN(std::vector<std::byte> bytes,
                   ReadArray<std::byte>(elf_.bytes(), offset->value(), size));
  RETURN_IF_ERROR(ForEachRelocation([&](uint64_t place, uint64_t pointer) {
    if (place < address || !Within(place - address, sizeof(pointer), size)) return;
    std::memcpy(bytes.data() + (place - address), &pointer, sizeof(pointer));
  }));
  return bytes;
}

Result<std::vector<uint64_t>> GoImage::FindPointers(uint64_t pointer, size_t most) const {
  std::vector<uint64_t> found;
  RETURN_IF_ERROR(ForEachRelocation([&](uint64_t place, uint64_t target) {
    if (target == pointer && found.size() < most) found.push_back(place);
  }));
  RETURN_IF_ERROR(FindInData(pointer, most, found));
  return found;
}

Result<void> GoImage::FindInData(uint64_t pointer, size_t most,
                                 std::vector<uint64_t>& found) const {
  const uint64_t file = elf_.bytes().size();
  uint64_t left = kMaxData;
  for (const Elf64_Phdr& header : elf_.program_headers()) {
    if (header.p_type != PT_LOAD || (header.p_flags & PF_W) == 0 || header.p_offset > file)
      continue;
    const uint64_t size = std::min({header.p_filesz, file - header.p_offset, left});
    left -= size;
    ReadAhead bytes(elf_.bytes(), header.p_offset, header.p_offset + size, kStep);
    for (uint64_t at = -header.p_vaddr % sizeof(pointer); at < size && found.size() < most;
         at += kStep) {
      ASSIGN_OR_RETURN(const auto step, bytes.At(header.p_offset + at, kStep));
      for (size_t i = 0; i + sizeof(pointer) <= step.size() && found.size() < most;
           i += sizeof(pointer)) {
        if (std::memcmp(step.data() + i, &pointer, sizeof(pointer)) != 0) continue;
        found.push_back(header.p_vaddr + at + i);
      }
    }
  }
  return {};
}

Result<void> GoImage::ForEachRelocation(const Relocate& relocate) const {
  const uint32_t relative = RelativeType(elf_);
  const uint64_t size = relocation_count_ * sizeof(Elf64_Rela);
  ReadAhead bytes(elf_.bytes(), relocations_, relocations_ + size);
  for (uint64_t at = 0; at < size; at += sizeof(Elf64_Rela)) {
    ASSIGN_OR_RETURN(const auto entry, bytes.At(relocations_ + at, sizeof(Elf64_Rela)));
    if (entry.size() < sizeof(Elf64_Rela)) break;
    Elf64_Rela relocation;
    std::memcpy(&relocation, entry.data(), sizeof(relocation));
    if (ELF64_R_TYPE(relocation.r_info) != relative) continue;
    relocate(relocation.r_offset, static_cast<uint64_t>(relocation.r_addend));
  }
  return {};
}

}  // namespace pyrometer
