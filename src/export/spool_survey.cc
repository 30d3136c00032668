// SPDX-License-Identifier: Apache-2.0
#include "export/spool_survey.h"

#include <algorithm>

namespace pyrometer {

SpoolSurvey Survey(const SpoolFile& file, bool at_least_once) {
  SpoolSurvey found;
  for (uint32_t i = 0; i < file.entries().size(); ++i) {
    const SpoolFile::Entry& entry = file.entries()[i];
    const bool is_sending = entry.status == SpoolFile::Status::kSending;
    if (entry.status == SpoolFile::Status::kDone) continue;
    if (entry.status == SpoolFile::Status::kPending || (is_sending && at_least_once)) {
      found.begin = found.parcels == 0 ? entry.begin : std::min(found.begin, entry.begin);
      ++found.parcels;
      found.ticks += entry.samples;
      continue;
    }
    (is_sending ? found.doubtful_ticks : found.corrupt_ticks) += entry.samples;
    if (!is_sending && entry.samples == 0) ++found.unreadable;
    (void)file.SetState(i, SpoolState::kDone);
  }
  return found;
}

}  // namespace pyrometer
