// SPDX-License-Identifier: Apache-2.0
#include "symbolize/demangle.h"

#include <libiberty/demangle.h>

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

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

std::optional<std::string> DemangledBy(Demangler demangle, const char* symbol, int options) {
  Output output;
  output.text.reserve(kMaxNameLength);
  if (setjmp(output.abandon) != 0) return std::nullopt;
  if (demangle(symbol, options, &Append, &output) == 0) return std::nullopt;
  if (output.text.size() == kMaxNameLength) return std::nullopt;
  return std::move(output.text);
}

bool LooksMangled(std::string_view symbol) {
  return symbol.starts_with("_Z") || symbol.starts_with("_R") || symbol.starts_with("_GLOBAL_");
}

// What gcc and clang append to a function's name for a copy or a part of it: "f.constprop.0.cold".
// Most have a number, without which "(*Config).clone" of Go would be one.
bool IsCloneMark(std::string_view component, bool has_number) {
  constexpr std::string_view kNumbered[] = {"part", "constprop", "isra",
                                            "llvm", "lto_priv",  "clone"};
  if (component == "cold" || component == "localalias") return true;
  return has_number && std::ranges::find(kNumbered, component) != std::end(kNumbered);
}

bool IsNumber(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// "f" and "part" of "f.part"; the second is empty if there is no dot.
std::pair<std::string_view, std::string_view> SplitLast(std::string_view text) {
  const size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) return {text, {}};
  return {text.substr(0, dot), text.substr(dot + 1)};
}

// Of C, or mangled, with what compilers add for one of several ("f.0", "main._omp_fn.0",
// "f.__uniq.1"). Go and Zig have methods and packages of their own that are called "cold".
bool IsOfCompiledC(std::string_view name) {
  for (auto [first, last] = SplitLast(name);
       IsNumber(last) || last == "_omp_fn" || last == "__uniq";
       std::tie(first, last) = SplitLast(name)) {
    name = first;
  }
  return std::ranges::all_of(name, [](char c) {
    const auto letter = static_cast<char>(c | 0x20);
    return (letter >= 'a' && letter <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           static_cast<signed char>(c) < 0;
  });
}

// The function that `symbol` is a copy or a part of.
std::string_view WithoutCloneMarks(std::string_view symbol) {
  std::string_view function = symbol;
  while (true) {
    auto [name, mark] = SplitLast(function);
    const bool has_number = IsNumber(mark);
    if (has_number) std::tie(name, mark) = SplitLast(name);
    if (name.empty() || !IsCloneMark(mark, has_number)) break;
    function = name;
  }
  return LooksMangled(function) || IsOfCompiledC(function) ? function : symbol;
}

// At most `most` bytes.
std::string NameOfFunction(std::string_view symbol, Demangling how, size_t most) {
  symbol = WithoutCloneMarks(symbol);
  if (LooksMangled(symbol) && symbol.size() <= kMaxNameLength) {
    const std::string terminated(symbol);
    const int options = how == Demangling::kFull ? DMGL_PARAMS | DMGL_ANSI : DMGL_NO_OPTS;
    // Rust first: its older mangling is valid C++, with a hash for a last component.
    for (const Demangler demangle : {&rust_demangle_callback, &cplus_demangle_v3_callback}) {
      const std::optional<std::string> name = DemangledBy(demangle, terminated.c_str(), options);
      if (name && !name->empty()) return Printable(*name, most);
    }
  }
  return Printable(symbol, most);
}

}  // namespace

std::string Demangle(std::string_view symbol, Demangling how) {
  if (how == Demangling::kNone) return Printable(symbol, kMaxNameLength);
  for (const std::string_view mark :
       {kStubMark, std::string_view("$plt"), std::string_view("$pltgot")}) {
    if (symbol.size() <= mark.size() || !symbol.ends_with(mark)) continue;
    symbol.remove_suffix(mark.size());
    return NameOfFunction(symbol, how, kMaxNameLength - kStubMark.size()).append(kStubMark);
  }
  return NameOfFunction(symbol, how, kMaxNameLength);
}

}  // namespace pyrometer
