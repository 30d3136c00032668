// SPDX-License-Identifier: Apache-2.0
// DWARF, and the map of source lines made of it. Corpus: small ELF files with debug information.
// The first byte says how many of the bytes at the end are a file of their own, which dwz would
// have made, in sixteenths. One thread and two find the same.
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/helper_thread.h"
#include "binary/debug_links.h"
#include "binary/segments.h"
#include "debuginfo/dwarf_program.h"
#include "tests/fuzz/fuzz_source_map.h"

namespace {

pyrometer::Result<pyrometer::ElfFile> ElfOf(std::span<const std::byte> bytes) {
  return pyrometer::ElfFile::FromBytes({bytes.begin(), bytes.end()});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace pyrometer;
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  const size_t of_supplement = bytes.size() / 16 * (data[0] % 16);
  const Result<ElfFile> elf = ElfOf(bytes.first(bytes.size() - of_supplement));
  if (!elf) return 0;
  ReadDebugLinks(*elf).has_value();
  const Result<ElfFile> supplement = ElfOf(bytes.last(of_supplement));
  SourceMapWriter writer(CodeBase(elf->segments()));
  const DwarfFiles files{.object = *elf, .supplement = supplement ? &*supplement : nullptr};
  const Result<DwarfCounts> alone = ReadDwarf(files, {}, writer);
  // Unit by unit on two threads.
  static const std::unique_ptr<HelperThread> helper = *HelperThread::Start();
  SourceMapWriter other(CodeBase(elf->segments()));
  const Result<DwarfCounts> both = ReadDwarf(files, {.helper = helper.get(), .part = 1}, other);
  Require(alone.has_value() == both.has_value());
  if (!alone) return 0;
  Require(alone->is_cut || (alone->units == both->units && alone->functions == both->functions &&
                            alone->inlined_calls == both->inlined_calls));
  RequireMap(std::move(writer), *elf);
  RequireMap(std::move(other), *elf);
  return 0;
}
