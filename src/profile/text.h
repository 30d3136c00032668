// SPDX-License-Identifier: Apache-2.0
// How names and numbers are shown to people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pyrometer/profile.h"

namespace pyrometer {

// The number of code points in `text`, valid UTF-8.
size_t CodePoints(std::string_view text);

// Shortens `text`, valid UTF-8, to at most `width` code points; "…" replaces what is cut out of the
// middle.
std::string Shorten(std::string_view text, size_t width);

// "runtime/proc.go" for "/usr/lib/go/src/runtime/proc.go"; if that is wider than `width` code
// points, "proc.go"; if that is, too, shortened.
std::string ShortenPath(std::string_view path, size_t width);

// "1,234,567"
std::string WithThousands(uint64_t number);

// The file name in a path: "libc.so.6" for "/lib/libc.so.6", "[vdso]" for "[vdso]".
std::string_view BaseName(std::string_view path);

// What names the object's content in a profile: its build id, or else its hash, in hex; "" if
// neither is known.
std::string ContentIdOf(const CodeObject& object);

// The function's name, or "[unknown]" if it has none.
std::string_view NameOf(const Line& line);
std::string_view ProcessNameOf(const ProfileSample& sample);

// The marker at the root of a stack whose root is missing: "[truncated]",
// "[unwind stopped: no unwind information]". Empty if the stack is complete.
std::string CutMarker(StackEnd end);

// The number of ticks in a profile, their value (see ProfileSample), and the number of ticks whose
// stack was cut.
struct SampleTotals {
  uint64_t samples = 0;
  uint64_t value = 0;
  uint64_t cut = 0;
};
SampleTotals TotalsOf(const Profile& profile);

}  // namespace pyrometer
