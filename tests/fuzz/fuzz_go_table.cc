// SPDX-License-Identifier: Apache-2.0
// A Go program's table of functions, and the map of source lines made of it. Corpus: small ELF
// files with a section .gopclntab.
#include <cstring>
#include <memory>
#include <vector>

#include "binary/segments.h"
#include "debuginfo/go_program.h"
#include "tests/fuzz/fuzz_source_map.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace pyrometer;
  std::vector<std::byte> image(size);
  if (size > 0) std::memcpy(image.data(), bytes, size);
  const Result<ElfFile> elf = ElfFile::FromBytes(std::move(image));
  if (!elf) return 0;
  const Result<SectionTable> sections = SectionTable::Read(*elf);
  if (!sections) return 0;
  SourceMapWriter writer(CodeBase(elf->segments()));
  if (!ReadGoProgram(*elf, *sections, writer)) return 0;
  RequireMap(std::move(writer), *elf);
  return 0;
}
