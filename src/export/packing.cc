// SPDX-License-Identifier: Apache-2.0
#include "export/packing.h"

namespace pyrometer {

Packed PackBatches(const Profile& profile, const SeriesLabels& series, const BatchLimits& limits,
                   const BatchEncoder& encode) {
  Packed packed{.parcels = {}, .dropped = {}, .altered = series.altered};
  const StackBatches batches = BatchStacks(profile, limits);
  if (batches.cut > 0) packed.altered["stack_cut"] = batches.cut;
  const std::string text = SeriesText(series.labels);
  for (const std::vector<StackCount>& batch : batches.batches) {
    Parcel& parcel = packed.parcels.emplace_back();
    parcel.body = encode(batch);
    parcel.series = text;
    parcel.begin = profile.begin;
    for (const StackCount& stack : batch) parcel.samples += stack.count;
  }
  return packed;
}

}  // namespace pyrometer
