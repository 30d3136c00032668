// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "binary/byte_source.h"
#include "binary/elf_file.h"
#include "binary/sections.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The bytes of a compressed section, inflated where they are read: for sections that are larger
// than the memory they may take. Reading from the front to the back costs as much as inflating it
// at once; reading what was passed longer ago costs up to 8 MiB of inflating. Takes 33 MiB, and 5
// MiB for each GiB. One thread inflates at a time. `elf` must outlive it. Errors: kUnsupported if
// it is not compressed with zlib; kMalformed; those of reading come when its bytes are read.
Result<std::unique_ptr<ByteSource>> InflatingBytes(const ElfFile& elf, const Section& section);

}  // namespace pyrometer
