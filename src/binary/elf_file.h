// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "binary/byte_source.h"
#include "pyrometer/mapping.h"
#include "pyrometer/result.h"

namespace pyrometer {

// An ELF executable or shared library for x86_64 or arm64: its validated headers, and its bytes.
// The bytes are hostile: every offset, size and count in them is checked before use.
// Immutable; several threads may read it. Functions in sections.h, symbols.h, notes.h and
// debug_data.h read what lies beyond the headers.
class ElfFile {
 public:
  // `fd` stays the caller's and must stay open while the ElfFile lives. Costs three reads.
  // Errors: kInvalid if it is not an ELF file; kUnsupported for other word sizes, byte orders,
  // machines and types (relocatable, core); kMalformed for headers that contradict themselves.
  static Result<ElfFile> Open(int fd);
  static Result<ElfFile> FromBytes(std::vector<std::byte> bytes);
  static Result<ElfFile> From(std::unique_ptr<ByteSource> bytes);
  // A file of debug information that others share. It may be relocatable, too: dwz says that its
  // files are, though there is nothing to relocate in them.
  static Result<ElfFile> FromShared(std::unique_ptr<ByteSource> bytes);

  const Elf64_Ehdr& header() const { return header_; }
  std::span<const Elf64_Phdr> program_headers() const { return program_headers_; }

  // The PT_LOADs, in the order of the program headers. Neither their file ranges nor their
  // address ranges overflow; they may lie beyond the end of a truncated file.
  const std::vector<Segment>& segments() const { return segments_; }

  const ByteSource& bytes() const { return *bytes_; }

 private:
  enum class Types : uint8_t { kLoadable, kAndRelocatable };

  explicit ElfFile(std::unique_ptr<ByteSource> bytes) : bytes_(std::move(bytes)) {}
  static Result<ElfFile> Read(std::unique_ptr<ByteSource> bytes, Types types);
  Result<void> ReadHeader(Types types);
  Result<void> ReadProgramHeaders();

  std::unique_ptr<ByteSource> bytes_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> program_headers_;
  std::vector<Segment> segments_;
};

}  // namespace pyrometer
