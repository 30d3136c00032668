// SPDX-License-Identifier: Apache-2.0
// A perf map that is read in two parts, and every address near its ranges looked up.
#include "base/printable.h"
#include "symbolize/perf_map.h"
#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace pyrometer;
  const UniqueFd fd = FuzzFile(bytes, size / 2);
  DirectPerfMapReader reader;
  PerfMap map;
  PerfMap::Limits limits{.memory = 8192};
  Require(map.Update(fd.get(), PerfMap::Writer::kMayWrite, limits, reader).has_value());
  Require(::write(fd.get(), bytes + size / 2, size - size / 2) >= 0);
  limits.again = true;
  Require(map.Update(fd.get(), PerfMap::Writer::kGone, limits, reader).has_value());
  Require(map.bytes() <= 2 * limits.memory);
  for (uint64_t address = 0; address < 0x200; ++address) {
    const std::optional<std::string_view> name = map.Find(Address(address));
    if (!name) continue;
    Require(name->size() <= kMostOfPerfMapName);
    Require(Printable(*name, kMostOfPerfMapName) == *name);
  }
  return 0;
}
