// SPDX-License-Identifier: Apache-2.0
// The page that html/bundle.mjs makes at build time, cut where EncodeHtml inserts something.
#pragma once

#include <string_view>

namespace pyrometer {

extern const std::string_view kPageBeforeTitle;
extern const std::string_view kPageBeforeProfile;
extern const std::string_view kPageAfterProfile;

}  // namespace pyrometer
