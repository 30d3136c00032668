// SPDX-License-Identifier: Apache-2.0
#include "indexer/own_build_id.h"

#include <link.h>

#include <cstddef>
#include <span>

#include "binary/notes.h"

namespace pyrometer {
namespace {

// The first object that the loader tells of is the program.
int OfProgram(dl_phdr_info* object, size_t /*size*/, void* found) {
  auto& build_id = *static_cast<BuildId*>(found);
  for (const ElfW(Phdr) & header : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
    if (header.p_type != PT_NOTE || !build_id.empty()) continue;
    const auto* const notes =
        reinterpret_cast<const std::byte*>(object->dlpi_addr + header.p_vaddr);
    build_id = FindBuildId({notes, header.p_memsz}, header.p_align);
  }
  return 1;
}

}  // namespace

BuildId OwnBuildId() {
  BuildId build_id;
  ::dl_iterate_phdr(OfProgram, &build_id);
  return build_id;
}

}  // namespace pyrometer
