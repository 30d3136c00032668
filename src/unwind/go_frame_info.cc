// SPDX-License-Identifier: Apache-2.0
// What is written: DWARF 3, 6.4.1; what Go's linker says so: src/cmd/link/internal/ld/dwarf.go of
// the Go distribution (writeframes). What is read: the table pcsp of each function, runtime2.go.
#include "unwind/go_frame_info.h"

#include <dwarf.h>
#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "debuginfo/go_image.h"
#include "debuginfo/go_pc_values.h"
#include "debuginfo/go_table.h"
#include "debuginfo/go_table_search.h"
#include "unwind/registers.h"

namespace pyrometer {
namespace {

// As much as is read of a section.
constexpr size_t kMostBytes = size_t{64} << 20;
constexpr int64_t kDataAlignment = -8;
// No goroutine's stack is larger.
constexpr int32_t kLargestFrame = 1 << 30;

class DebugFrame {
 public:
  explicit DebugFrame(const Machine& machine)
      : machine_(machine), pushed_(machine.HasLinkRegister() ? 0 : 8) {
    const size_t begin = Begin();
    Put<uint32_t>(~uint32_t{0});  // a CIE
    Put<uint8_t>(3);              // version
    Put<uint8_t>(0);              // no augmentation
    PutUleb(1);                   // code alignment
    PutSleb(kDataAlignment);
    PutUleb(machine.return_address);
    Put<uint8_t>(DW_CFA_def_cfa);
    PutUleb(machine.stack_pointer);
    PutUleb(pushed_);
    if (!machine.HasLinkRegister()) PutReturnAddressBelow(pushed_);
    End(begin);
  }

  // `runs`: how much of the stack the function has taken, besides the return address.
  void Add(uint64_t function, std::span<const GoRun> runs) {
    const size_t begin = Begin();
    Put<uint32_t>(0);  // where the CIE is
    Put(function);
    Put<uint64_t>(runs.back().end);
    uint32_t at = 0;
    for (const GoRun& run : runs) {
      if (run.begin > at) {
        Put<uint8_t>(DW_CFA_advance_loc4);
        Put(run.begin - at);
        at = run.begin;
      }
      const auto taken = static_cast<uint32_t>(run.value);
      if (machine_.HasLinkRegister()) PutLinkRegister(taken);
      Put<uint8_t>(DW_CFA_def_cfa_offset);
      PutUleb(pushed_ + taken);
    }
    End(begin);
  }

  bool is_full() const { return bytes_.size() >= kMostBytes; }
  std::vector<std::byte> Take() && { return std::move(bytes_); }

 private:
  size_t Begin() {
    Put<uint32_t>(0);  // the length, which End() fills in
    return bytes_.size();
  }
  void End(size_t begin) {
    while ((bytes_.size() - begin) % 8 != 4) Put<uint8_t>(DW_CFA_nop);
    const auto length = static_cast<uint32_t>(bytes_.size() - begin);
    std::memcpy(bytes_.data() + begin - sizeof(length), &length, sizeof(length));
  }

  // At CFA - `distance`.
  void PutReturnAddressBelow(uint32_t distance) {
    Put<uint8_t>(DW_CFA_offset_extended_sf);
    PutUleb(machine_.return_address);
    PutSleb(int64_t{distance} / -kDataAlignment);
  }
  // The callee stores it where its frame ends.
  void PutLinkRegister(uint32_t taken) {
    if (taken > 0) return PutReturnAddressBelow(taken);
    Put<uint8_t>(DW_CFA_same_value);
    PutUleb(machine_.return_address);
  }

  template <typename T>
  void Put(T value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void PutUleb(uint64_t value) {
    for (; value > 0x7f; value >>= 7) Put(static_cast<uint8_t>(value | 0x80));
    Put(static_cast<uint8_t>(value));
  }
  void PutSleb(int64_t value) {
    while (value > 0x3f || value < -0x40) {
      Put(static_cast<uint8_t>(value | 0x80));
      value >>= 7;
    }
    Put(static_cast<uint8_t>(value & 0x7f));
  }

  const Machine& machine_;
  const uint32_t pushed_;  // by a call
  std::vector<std::byte> bytes_;
};

bool MakesSense(std::span<const GoRun> runs) {
  for (const GoRun& run : runs) {
    if (run.value < 0 || run.value > kLargestFrame || run.value % 8 != 0) return false;
  }
  return !runs.empty();
}

}  // namespace

Result<CfiSection> MakeGoFrameInfo(const ElfFile& elf, const SectionTable& sections) {
  const GoImage image(elf);
  ASSIGN_OR_RETURN(const FoundGoTable found, FindGoTable(image, sections));
  const GoTable& table = found.table;
  DebugFrame frames(elf.header().e_machine == EM_X86_64 ? kAmd64 : kArm64);
  GoPcValues values(table.header().quantum);
  std::vector<GoRun> runs;
  for (uint64_t i = 0; i < table.header().functions && !frames.is_full(); ++i) {
    const std::optional<GoFunction> function = table.Function(i);
    if (!function) continue;
    const uint64_t size = function->next - function->begin;
    if (!values.Read(table.PcValues(function->stack_at), size, runs)) continue;
    if (MakesSense(runs)) frames.Add(function->begin, runs);
  }
  return CfiSection{.format = CfiSection::Format::kDebugFrame, .bytes = std::move(frames).Take()};
}

}  // namespace pyrometer
