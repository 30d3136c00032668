// SPDX-License-Identifier: Apache-2.0
#include "profiler/window_sources.h"

#include <utility>

namespace pyrometer {

void WindowSources::Use(ResolvedWindow& resolved) {
  objects_ = std::move(resolved.objects);
  perf_maps_ = std::move(resolved.perf_maps);
  ended_ = std::move(resolved.ended);
}

void WindowSources::Clear() {
  objects_.clear();
  perf_maps_.clear();
  ended_.clear();
}

std::optional<ObjectDescription> WindowSources::Describe(ObjectId object) {
  const auto known = objects_.find(object);
  if (known == objects_.end()) return std::nullopt;
  const ObjectInfo& info = *known->second.info;
  return ObjectDescription{.path = info.path,
                           .build_id = info.build_id,
                           .segments = info.segments,
                           .is_vdso = info.is_vdso};
}

Result<SymbolTable> WindowSources::Symbols(ObjectId object) {
  const auto known = objects_.find(object);
  if (known == objects_.end() || known->second.file == nullptr) {
    return Fail(ErrorCode::kNotFound, "the file of object {} is gone", object.value());
  }
  if (IsTooLate()) return Fail(ErrorCode::kIo, "no time is left to read symbols");
  return indexer_.Symbols(known->second.file->get(), options_);
}

Result<UniqueFd> WindowSources::Open(ProcessKey process) {
  const auto known = perf_maps_.find(process);
  if (known == perf_maps_.end() || IsTooLate()) {
    return Fail(ErrorCode::kNotFound, "process {} has no perf map", process.pid.value());
  }
  return known->second->Open();
}

}  // namespace pyrometer
