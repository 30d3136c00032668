// SPDX-License-Identifier: Apache-2.0
// As writeframes() in the Go distribution's src/cmd/link/internal/ld/dwarf.go does it.
#include "unwind/go_call_frame_info.h"

#include <dwarf.h>
#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "binary/byte_source.h"
#include "binary/go_functions.h"
#include "binary/segments.h"

namespace pyrometer {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;  // as of a section that is in the file
// Some 20 times what the largest programs have: a damaged table may be read again and again.
constexpr uint64_t kMostSteps = 32'000'000;
constexpr uint32_t kCie = 0;  // where it is in the section
constexpr uint8_t kFramePointer = 6;

// Writes records of .debug_frame.
class Writer {
 public:
  // CFA = RSP + 8, and the return address below that, where a function begins.
  void AddCie() {
    Begin();
    U32(0xffffffff);
    U8(3);     // version
    U8(0);     // no augmentation
    U8(1);     // code alignment
    U8(0x78);  // data alignment: -8
    U8(16);    // return address
    U8(DW_CFA_def_cfa);
    U8(7);
    U8(8);
    U8(DW_CFA_offset | 16);
    U8(1);
    End();
  }

  // As far as `depths` reach: not to padding behind the function. Counts them in `steps`.
  // `saves`: as long as the stack is not as it was at the beginning, RBP lies below the return
  // address.
  void AddFunction(const GoFunction& function, GoPcValues depths, bool saves, uint64_t& steps) {
    const uint64_t size = function.end.value() - function.begin.value();
    Begin();
    U32(kCie);
    U64(function.begin.value());
    const size_t size_at = bytes_.size();
    U64(0);
    uint64_t covered = 0;
    bool has_saved = false;
    for (uint64_t at = 0; covered < size && HasRoom(steps) && depths.Next(); ++steps) {
      if (depths.value() < 0) break;
      if (depths.begin() > at) Advance(depths.begin() - std::exchange(at, depths.begin()));
      U8(DW_CFA_def_cfa_offset);
      Uleb(static_cast<uint64_t>(depths.value()) + 8);
      const bool is_deep = depths.value() > 0;
      if (saves && is_deep != has_saved) {
        has_saved = is_deep;
        U8((has_saved ? DW_CFA_offset : DW_CFA_restore) | kFramePointer);
        if (has_saved) U8(2);
      }
      covered = std::min(depths.end(), size);
    }
    std::memcpy(bytes_.data() + size_at, &covered, sizeof(covered));
    End();
  }

  // For more, after so many steps.
  bool HasRoom(uint64_t steps) const { return bytes_.size() < kMostBytes && steps < kMostSteps; }
  std::vector<std::byte> Take() && { return std::move(bytes_); }

 private:
  void Begin() {
    begin_ = bytes_.size();
    U32(0);
  }
  void End() {
    const auto size = static_cast<uint32_t>(bytes_.size() - begin_ - sizeof(uint32_t));
    std::memcpy(bytes_.data() + begin_, &size, sizeof(size));
  }
  void Advance(uint64_t distance) {
    if (distance < DW_CFA_offset - DW_CFA_advance_loc) {
      U8(static_cast<uint8_t>(DW_CFA_advance_loc | distance));
      return;
    }
    U8(DW_CFA_advance_loc4);
    U32(static_cast<uint32_t>(distance));
  }
  void U8(uint8_t byte) { bytes_.push_back(std::byte{byte}); }
  void U32(uint32_t number) { Put(&number, sizeof(number)); }
  void U64(uint64_t number) { Put(&number, sizeof(number)); }
  void Uleb(uint64_t number) {
    for (; number >= 0x80; number >>= 7) U8(static_cast<uint8_t>(number | 0x80));
    U8(static_cast<uint8_t>(number));
  }
  void Put(const void* number, size_t size) {
    const size_t at = bytes_.size();
    bytes_.resize(at + size);
    std::memcpy(bytes_.data() + at, number, size);
  }

  std::vector<std::byte> bytes_;
  size_t begin_ = 0;  // of the record that is being written
};

// The code of functions, read in their order.
class Code {
 public:
  explicit Code(const ElfFile& elf) : elf_(elf), bytes_(elf.bytes(), 0, elf.bytes().size()) {}

  // True if the function pushes RBP before all else that it has on the stack, as Go's compiler and
  // assembler have it since 1.21.
  bool PushesFramePointer(const GoFunction& function, GoPcValues depths) {
    constexpr uint8_t kPush[] = {0x55, 0x48, 0x89, 0xe5};  // PUSHQ BP; MOVQ SP, BP
    if (!depths.Next() || depths.value() != 0) return false;
    if (!depths.Next() || depths.value() != 8) return false;
    const ElfAddress push(function.begin.value() + depths.begin() - 1);
    const std::optional<FileOffset> offset = ToFileOffset(elf_.segments(), push);
    if (!offset) return false;
    const auto code = bytes_.At(offset->value(), std::size(kPush));
    return code && code->size() == std::size(kPush) &&
           std::memcmp(code->data(), kPush, std::size(kPush)) == 0;
  }

 private:
  const ElfFile& elf_;
  ReadAhead bytes_;
};

}  // namespace

Result<CfiSection> MakeGoCallFrameInfo(const ElfFile& elf, const SectionTable& sections) {
  if (elf.header().e_machine != EM_X86_64) return Fail(ErrorCode::kNotFound, "not of x86_64");
  ASSIGN_OR_RETURN(const GoFunctionTable table, FindGoFunctions(elf, sections));
  const uint64_t room = std::min<uint64_t>(table.values_size, kMostBytes);
  ASSIGN_OR_RETURN(const auto values,
                   ReadArray<std::byte>(elf.bytes(), table.values.value(), room));
  Writer writer;
  writer.AddCie();
  Code code(elf);
  uint64_t steps = 0;
  RETURN_IF_ERROR(ForEachGoFunction(elf, table, [&](const GoFunction& function) {
    const bool has_depths = function.stack_depths != 0 && function.stack_depths < values.size();
    if (!has_depths || !writer.HasRoom(steps)) return;
    const std::span<const std::byte> bytes = std::span(values).subspan(function.stack_depths);
    const GoPcValues depths(bytes, table.unit);
    writer.AddFunction(function, depths, code.PushesFramePointer(function, depths), steps);
  }));
  if (!writer.HasRoom(steps)) {
    return Fail(ErrorCode::kExhausted, "a table of functions of Go of more than {} steps", steps);
  }
  return CfiSection{.format = CfiSection::Format::kDebugFrame, .bytes = std::move(writer).Take()};
}

}  // namespace pyrometer
