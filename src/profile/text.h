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

// `text`, valid UTF-8, in at most `width` code points; what is left out in the middle becomes "…".
std::string Shorten(std::string_view text, size_t width);

// "1,234,567"
std::string WithThousands(uint64_t number);

// The file name of a path: "libc.so.6" of "/lib/libc.so.6", "[vdso]" of "[vdso]".
std::string_view BaseName(std::string_view path);

// The function's name, or "[unknown]" if it has none.
std::string_view NameOf(const Line& line);
std::string_view ProcessNameOf(const ProfileSample& sample);

// What stands at the root of a stack whose root is missing: "[truncated]",
// "[unwind stopped: no unwind information]". Empty if the stack is whole.
std::string CutMarker(StackEnd end);

// How many ticks the profile holds, what they are worth (see ProfileSample), and how many of them
// have a stack that was cut.
struct SampleTotals {
  uint64_t samples = 0;
  uint64_t value = 0;
  uint64_t cut = 0;
};
SampleTotals TotalsOf(const Profile& profile);

}  // namespace pyrometer
