// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"
#include "symbolize/demangle.h"
#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace pyrometer;
  const std::string symbol = "_Z" + std::string(reinterpret_cast<const char*>(bytes), size);
  for (const char* prefix : {"_Z", "_R"}) {
    const std::string name = Demangle(prefix + symbol.substr(2));
    Require(name.size() <= kMaxNameLength);
    Require(Printable(name, kMaxNameLength) == name);
  }
  return 0;
}
