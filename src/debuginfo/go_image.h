// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "binary/elf_file.h"
#include "pyrometer/result.h"

namespace pyrometer {

// What a program's memory holds before it runs, as if it were loaded where its ELF addresses say:
// the bytes of its segments, and in them the pointers of a position-independent program. These the
// dynamic loader writes (R_X86_64_RELATIVE, R_AARCH64_RELATIVE); Go's own linker leaves them in the
// file as well, ld and lld do not.
class GoImage {
 public:
  // `elf` must outlive this. Relocations that are malformed are no relocations.
  explicit GoImage(const ElfFile& elf);

  const ElfFile& elf() const { return elf_; }

  // How many bytes from `address` the file holds; 0 if it holds none.
  uint64_t SizeAt(uint64_t address) const;

  // `size` bytes at `address`. Errors: kMalformed if the file does not hold them; kIo.
  Result<std::vector<std::byte>> Read(uint64_t address, uint64_t size) const;

  // The first `most` addresses, aligned like a pointer, at which data that the program may write
  // holds `pointer`. Reads all of that data and all relocations.
  Result<std::vector<uint64_t>> FindPointers(uint64_t pointer, size_t most) const;

 private:
  using Relocate = std::function<void(uint64_t address, uint64_t pointer)>;

  Result<void> ForEachRelocation(const Relocate& relocate) const;
  Result<void> FindInData(uint64_t pointer, size_t most, std::vector<uint64_t>& found) const;

  const ElfFile& elf_;
  uint64_t relocations_ = 0;  // offset in the file
  uint64_t relocation_count_ = 0;
};

}  // namespace pyrometer
