// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/stack_regions.h"

#include <cinttypes>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/procfs.h"
#include "base/text.h"

namespace pyrometer::oracle {

Region StackRegions::Of(Address sp) {
  if (sp < start_ || sp >= end_) Find(sp);
  return Region(end_.value());
}

void StackRegions::Find(Address sp) {
  const Result<std::string> maps = ReadFile(Procfs().Of(pid_, "maps"));
  if (!maps) return;
  for (const std::string_view line : Split(*maps, '\n')) {
    uint64_t start = 0;
    uint64_t end = 0;
    if (std::sscanf(std::string(line).c_str(), "%" SCNx64 "-%" SCNx64, &start, &end) != 2) continue;
    if (sp.value() >= end) continue;
    start_ = Address(start);
    end_ = Address(end);
    return;
  }
}

}  // namespace pyrometer::oracle
