// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"
#include "symbolize/demangle.h"
#include "symbolize/readable_name.h"
#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace pyrometer;
  const std::string symbol = "_Z" + std::string(reinterpret_cast<const char*>(bytes), size);
  for (const char* prefix : {"_Z", "_R"}) {
    for (const NameForm form : {NameForm::kSimple, NameForm::kFull, NameForm::kRaw}) {
      const std::string name = Demangle(prefix + symbol.substr(2), form);
      Require(name.size() <= kMaxNameLength);
      Require(Printable(name, kMaxNameLength) == name);
    }
  }
  // No demangler need have made it.
  const std::string text = symbol.substr(2, kMaxNameLength);
  Require(text.empty() || !ReadableName(text).empty());
  return 0;
}
