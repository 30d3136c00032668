// SPDX-License-Identifier: Apache-2.0
#include "binary/object_facts.h"

#include "binary/notes.h"

namespace pyrometer {

ObjectFacts FactsOf(const ElfFile& elf) {
  return {.build_id = ReadBuildId(elf), .segments = elf.segments()};
}

}  // namespace pyrometer
