// SPDX-License-Identifier: Apache-2.0
// The compiler of unwind tables, and the evaluation of what these leave to user space. Corpus:
// corpus/unwind_table, made by make-unwind-corpus, and corpus/elf_symbols; ELF files, or a byte of
// `Flags` and then the bytes of .eh_frame or .debug_frame.
#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/fuzz/fuzz_file.h"
#include "tests/unit/unwind/made_object.h"
#include "unwind/exotic.h"
#include "unwind/table_compiler.h"

namespace pyrometer {
namespace {

enum Flags : uint8_t { kOfDebugFrame = 1, kOfArm64 = 2, kBySegment = 4 };

std::vector<std::byte> ImageOf(std::span<const uint8_t> input) {
  constexpr uint8_t kElf[] = {0x7f, 'E', 'L', 'F'};
  if (input.size() >= sizeof(kElf) && std::equal(std::begin(kElf), std::end(kElf), input.begin())) {
    const auto bytes = std::as_bytes(input);
    return {bytes.begin(), bytes.end()};
  }
  DwarfBytes section;
  for (const uint8_t byte : input.subspan(1)) section.U8(byte);
  MadeObject object;
  if ((input[0] & kOfArm64) != 0) object.machine = EM_AARCH64;
  ((input[0] & kOfDebugFrame) != 0 ? object.debug_frame : object.eh_frame) = section;
  if ((input[0] & kBySegment) != 0) {
    object.has_sections = false;
    object.eh_frame_header =
        DwarfBytes({1, DW_EH_PE_absptr, DW_EH_PE_omit, DW_EH_PE_omit}).U64(kEhFrame);
  }
  return object.Image();
}

void RequireSoundPage(const UnwindTable& table, const UnwindTable::Page& page) {
  if (page.row_count == 0) return;
  const auto rows = std::span(table.rows).subspan(page.first_row, page.row_count);
  Require(rows.front().pc_low == 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    Require(rows[i].rule < table.rules.size());
    if (i == 0) continue;
    Require(rows[i - 1].pc_low < rows[i].pc_low);
    Require(rows[i - 1].rule != rows[i].rule);
  }
}

void RequireSound(const UnwindTable& table, size_t input_size) {
  uint32_t next_row = 0;
  for (const UnwindTable::Page& page : table.pages) {
    Require(page.first_row == next_row);
    next_row += page.row_count;
    Require(next_row <= table.rows.size());
    RequireSoundPage(table, page);
  }
  Require(next_row == table.rows.size());
  Require(table.functions <= input_size);
  for (const pyro_unwind_rule& rule : table.rules) {
    Require(rule.kind < PYRO_RULE_KINDS);
    Require(rule.cfa_register < kCfiRegisters);
    Require(rule.kind != PYRO_RULE_EXOTIC ||
            static_cast<size_t>(rule.cfa_offset) < table.exotic.size());
  }
}

void EvaluateAll(const UnwindTable& table, const Machine& machine) {
  KnownRegisters registers;
  for (uint8_t reg = 0; reg < kCfiRegisters; ++reg) registers.Set(reg, 0x1000 + reg * 0x100);
  const MemoryReader memory = [](Address address, std::span<std::byte> out) {
    std::ranges::fill(out, static_cast<std::byte>(address.value()));
    return address.value() % 5 != 0;
  };
  for (const ExoticRule& rule : table.exotic) {
    const Result<CallerFrame> caller =
        UnwindExotic(rule, machine, registers, Address(0x401000), memory);
    Require(caller || caller.error().code() != ErrorCode::kInternal);
  }
}

}  // namespace
}  // namespace pyrometer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace pyrometer;
  if (size == 0) return 0;
  const Result<ElfFile> elf = ElfFile::FromBytes(ImageOf({bytes, size}));
  if (!elf) return 0;
  const Result<UnwindTable> table = CompileUnwindTable(*elf);
  if (!table) return 0;
  RequireSound(*table, size);
  EvaluateAll(*table, elf->header().e_machine == EM_X86_64 ? kAmd64 : kArm64);
  return 0;
}
