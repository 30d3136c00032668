// SPDX-License-Identifier: Apache-2.0
#include "binary/vdso.h"

#include <sys/auxv.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace pyrometer {

Result<ElfFile> OpenVdso() {
  const auto* image = reinterpret_cast<const std::byte*>(::getauxval(AT_SYSINFO_EHDR));
  if (image == nullptr) return Fail(ErrorCode::kNotFound, "this kernel has no vDSO");
  // Its size is nowhere but in itself. These bytes are the kernel's: they may be believed.
  const auto& header = *reinterpret_cast<const Elf64_Ehdr*>(image);
  size_t size = header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
  const auto* program_headers = reinterpret_cast<const Elf64_Phdr*>(image + header.e_phoff);
  for (size_t i = 0; i < header.e_phnum; ++i) {
    size = std::max<size_t>(size, program_headers[i].p_offset + program_headers[i].p_filesz);
  }
  return ElfFile::FromBytes(std::vector<std::byte>(image, image + size));
}

}  // namespace pyrometer
