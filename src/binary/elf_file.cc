// SPDX-License-Identifier: Apache-2.0
// Format: System V gABI, chapter 4 and 5; elf(5).
#include "binary/elf_file.h"

#include <bit>
#include <cstring>
#include <limits>
#include <utility>

namespace pyrometer {
namespace {

static_assert(std::endian::native == std::endian::little, "structures are read as they lie");

// What Linux accepts in an executable (fs/binfmt_elf.c, load_elf_phdrs).
constexpr size_t kMaxProgramHeaders = 65536 / sizeof(Elf64_Phdr);

bool Overflows(uint64_t start, uint64_t size) {
  return size > std::numeric_limits<uint64_t>::max() - start;
}

}  // namespace

Result<ElfFile> ElfFile::Open(int fd) {
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> bytes, FileBytes(fd));
  return From(std::move(bytes));
}

Result<ElfFile> ElfFile::FromBytes(std::vector<std::byte> bytes) {
  return From(MemoryBytes(std::move(bytes)));
}

Result<ElfFile> ElfFile::From(std::unique_ptr<ByteSource> bytes) {
  return Read(std::move(bytes), Types::kLoadable);
}

Result<ElfFile> ElfFile::FromShared(std::unique_ptr<ByteSource> bytes) {
  return Read(std::move(bytes), Types::kAndRelocatable);
}

Result<ElfFile> ElfFile::Read(std::unique_ptr<ByteSource> bytes, Types types) {
  ElfFile elf(std::move(bytes));
  RETURN_IF_ERROR(elf.ReadHeader(types));
  RETURN_IF_ERROR(elf.ReadProgramHeaders());
  return elf;
}

Result<void> ElfFile::ReadHeader(Types types) {
  if (bytes_->size() < SELFMAG) return Fail(ErrorCode::kInvalid, "not an ELF file");
  ASSIGN_OR_RETURN(const auto magic, (ReadArray<char>(*bytes_, 0, SELFMAG)));
  if (std::memcmp(magic.data(), ELFMAG, SELFMAG) != 0) {
    return Fail(ErrorCode::kInvalid, "not an ELF file");
  }
  ASSIGN_OR_RETURN(header_, ReadObject<Elf64_Ehdr>(*bytes_, 0));
  if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB) {
    return Fail(ErrorCode::kUnsupported, "not a 64-bit little-endian ELF file");
  }
  if (header_.e_machine != EM_X86_64 && header_.e_machine != EM_AARCH64) {
    return Fail(ErrorCode::kUnsupported, "ELF file for machine {}, not x86_64 or arm64",
                header_.e_machine);
  }
  const bool is_known = header_.e_type == ET_EXEC || header_.e_type == ET_DYN ||
                        (header_.e_type == ET_REL && types == Types::kAndRelocatable);
  if (!is_known) {
    return Fail(ErrorCode::kUnsupported, "ELF file of type {}, neither executable nor shared",
                header_.e_type);
  }
  return {};
}

Result<void> ElfFile::ReadProgramHeaders() {
  if (header_.e_phnum == 0) return {};
  if (header_.e_phentsize != sizeof(Elf64_Phdr) || header_.e_phnum > kMaxProgramHeaders) {
    return Fail(ErrorCode::kMalformed, "{} program headers of {} bytes", header_.e_phnum,
                header_.e_phentsize);
  }
  ASSIGN_OR_RETURN(program_headers_,
                   ReadArray<Elf64_Phdr>(*bytes_, header_.e_phoff, header_.e_phnum));
  for (const Elf64_Phdr& p : program_headers_) {
    if (p.p_type != PT_LOAD) continue;
    if (Overflows(p.p_offset, p.p_filesz) || Overflows(p.p_vaddr, p.p_memsz) ||
        p.p_filesz > p.p_memsz) {
      return Fail(ErrorCode::kMalformed, "a PT_LOAD at {:#x} of {:#x} bytes, {:#x} in the file",
                  p.p_vaddr, p.p_memsz, p.p_filesz);
    }
    segments_.push_back({.offset = FileOffset(p.p_offset),
                         .address = ElfAddress(p.p_vaddr),
                         .file_size = p.p_filesz,
                         .memory_size = p.p_memsz,
                         .executable = (p.p_flags & PF_X) != 0});
  }
  return {};
}

}  // namespace pyrometer
