// SPDX-License-Identifier: Apache-2.0
#include "symbolize/demangle.h"

#include <libiberty/demangle.h>

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <optional>

#include "base/printable.h"

namespace pyrometer {
namespace {

// What a demangler has put out so far. Its buffer is reserved beforehand, since nothing may be
// thrown through the C code that calls us.
struct Output {
  std::string text;
  std::jmp_buf abandon;
};

// Leaves the demangler by longjmp once the name is too long: it offers no other way, and a few
// hundred mangled bytes can demangle to more than there is memory. Nothing leaks: the demanglers
// behind the callback functions work on their stack, except for the buffer of a punycode
// identifier, which is never plain ASCII; so leave only in a piece that is.
void Append(const char* piece, size_t length, void* opaque) {
  auto& output = *static_cast<Output*>(opaque);
  if (length <= kMaxNameLength - output.text.size()) {
    output.text.append(piece, length);
    return;
  }
  output.text.resize(kMaxNameLength);  // stays full: later pieces do not fit either
  const bool ascii =
      std::all_of(piece, piece + length, [](char c) { return static_cast<signed char>(c) >= 0; });
  if (ascii) std::longjmp(output.abandon, 1);
}

using Demangler = int (*)(const char*, int, demangle_callbackref, void*);

std::optional<std::string> DemangledBy(Demangler demangle, const char* symbol) {
  Output output;
  output.text.reserve(kMaxNameLength);
  if (setjmp(output.abandon) != 0) return std::nullopt;
  if (demangle(symbol, DMGL_NO_OPTS, &Append, &output) == 0) return std::nullopt;
  if (output.text.size() == kMaxNameLength) return std::nullopt;
  return std::move(output.text);
}

bool LooksMangled(std::string_view symbol) {
  return symbol.starts_with("_Z") || symbol.starts_with("_R") || symbol.starts_with("_GLOBAL_");
}

}  // namespace

std::string Demangle(std::string_view symbol) {
  if (LooksMangled(symbol) && symbol.size() <= kMaxNameLength) {
    const std::string terminated(symbol);
    // Rust first: its older mangling is valid C++, with a hash for a last component.
    for (const Demangler demangle : {&rust_demangle_callback, &cplus_demangle_v3_callback}) {
      const std::optional<std::string> name = DemangledBy(demangle, terminated.c_str());
      if (name && !name->empty()) return Printable(*name, kMaxNameLength);
    }
  }
  return Printable(symbol, kMaxNameLength);
}

}  // namespace pyrometer
