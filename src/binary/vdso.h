// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "binary/elf_file.h"
#include "pyrometer/result.h"

namespace pyrometer {

// The vDSO that the running kernel maps into 64-bit processes, copied from our own memory.
// Errors: kNotFound if there is none (booted with vdso=0).
Result<ElfFile> OpenVdso();

}  // namespace pyrometer
