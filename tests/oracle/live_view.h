// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pyrometer/ids.h"
#include "pyrometer/mapping.h"
#include "tests/oracle/table_cache.h"
#include "unwind/unwinder.h"

namespace pyrometer::oracle {

// A process that stands still, as an unwinder sees it: its mappings from /proc/PID/maps, its memory
// by process_vm_readv(2). REQUIRES: root or the right to trace the process.
class LiveView final : public UnwindView {
 public:
  // `tables` outlives it.
  LiveView(Pid pid, TableCache& tables) : pid_(pid), tables_(tables) {}

  Found Find(Address pc) override;
  bool Read(Address address, std::span<std::byte> out) override;
  bool ReadCode(Address address, std::span<std::byte> out) override { return Read(address, out); }

  // The process has run: what was read of its memory may have changed.
  void ForgetMemory() { pages_used_ = 0; }
  // ... and so may its mappings. They are read again when an address is found in none.
  void ForgetMappings() { mappings_stale_ = true; }

  // The 8 bytes at `address`; 0 if there are none.
  uint64_t ReadWord(Address address);
  // As many bytes from `address` as there are, at most out.size(). Not from the cache.
  size_t ReadSome(Address address, std::span<std::byte> out) const;

  // "libc.so.6+0x27141 (malloc+0x11)", for people.
  std::string Describe(Address pc);

 private:
  static constexpr size_t kPageSize = 4096;
  static constexpr size_t kPages = 64;

  struct Piece {
    ObjectMapping mapping;
    const MappedObject* object = nullptr;  // null: anonymous
  };
  struct Page {
    uint64_t address = 0;
    std::array<std::byte, kPageSize> bytes{};
  };

  const Piece* PieceAt(Address pc);
  const Piece* KnownPieceAt(Address pc) const;
  void ReadMappings();
  const Page* PageAt(uint64_t address);

  Pid pid_;
  TableCache& tables_;
  bool mappings_stale_ = true;
  std::vector<Piece> pieces_;  // by address
  std::vector<Page> pages_ = std::vector<Page>(kPages);
  size_t pages_used_ = 0;
};

}  // namespace pyrometer::oracle
