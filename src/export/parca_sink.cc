// SPDX-License-Identifier: Apache-2.0
// The protocol: github.com/parca-dev/parca, proto/parca/profilestore/v1alpha1.
#include "export/parca_sink.h"

#include <algorithm>
#include <span>
#include <utility>

#include "export/packing.h"
#include "export/series_labels.h"
#include "profile/pprof.h"
#include "proto/parca.pb.h"

namespace pyrometer {
namespace {

// The server has no limit of its own; each label is a column of its store.
constexpr LabelRules kParcaLabels{.labels = 64, .name = 1024, .value = 2048};
constexpr BatchLimits kParcaLimits{
    .stacks = 100'000, .bytes = 8'000'000, .depth = BatchLimits::kNone, .name = kLongestName};

}  // namespace

Result<std::unique_ptr<ParcaSink>> ParcaSink::Make(Options options, const Clock& clock) {
  // The profile in the message is compressed already.
  ASSIGN_OR_RETURN(std::unique_ptr<GrpcClient> grpc,
                   GrpcClient::Make({.address = std::move(options.address),
                                     .insecure = options.insecure,
                                     .gzip = false,
                                     .client = std::move(options.client)},
                                    clock));
  return std::unique_ptr<ParcaSink>(new ParcaSink(std::move(grpc)));
}

Packed ParcaSink::Pack(const Profile& profile) const {
  namespace store = parca::profilestore::v1alpha1;
  const SeriesLabels series = FitLabels(profile.labels, kParcaLabels);
  Labels all = series.labels;
  all.emplace_back("__name__", "process_cpu");
  std::sort(all.begin(), all.end());
  const PprofOptions options{.has_functions = true, .name = kLongestName};
  return PackBatches(profile, series, kParcaLimits, [&](std::span<const StackCount> stacks) {
    store::WriteRawRequest request;
    request.set_normalized(true);
    store::RawProfileSeries& out = *request.add_series();
    for (const auto& [name, value] : all) {
      store::Label& label = *out.mutable_labels()->add_labels();
      label.set_name(name);
      label.set_value(value);
    }
    out.add_samples()->set_raw_profile(EncodePprofBatch(profile, stacks, options).gzip);
    return request.SerializeAsString();
  });
}

Receipt ParcaSink::Deliver(const Parcel& parcel) {
  const auto answer =
      grpc_->Call("/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw", parcel.body);
  return answer ? Receipt{} : answer.error();
}

}  // namespace pyrometer
