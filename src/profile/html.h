// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "pyrometer/profile.h"

namespace pyrometer {

struct HtmlOptions {
  std::string title{};   // "": the event's, such as "CPU profile"
  std::string host{};    // where it was recorded; "": not shown
  std::string filter{};  // which samples these are, in words; "": all
  uint64_t of = 0;       // of so many samples; with `filter`
  Hertz lowest{};        // of a clock, if it was not always the profile's; 0: it was
};

// Encodes `profile` as one self-contained page: a flame graph from the root and one from the leaf,
// the top functions and the processes, with search and zoom. The page needs no network and makes no
// requests: its content security policy allows only the scripts it was built with, by their hash.
// Names from the profile are stored compressed and shown as text only.
std::string EncodeHtml(const Profile& profile, const HtmlOptions& options = {});

}  // namespace pyrometer
