// SPDX-License-Identifier: Apache-2.0
#include "profiler/wiring.h"

namespace pyrometer {

const ObjectRef* WindowSources::Find(ObjectId id) const {
  if (window_ == nullptr) return nullptr;
  const auto object = window_->objects.find(id);
  return object == window_->objects.end() ? nullptr : &object->second;
}

std::optional<ObjectDescription> WindowSources::Describe(ObjectId id) {
  const ObjectRef* const object = Find(id);
  if (object == nullptr) return std::nullopt;
  return ObjectDescription{.path = object->info->path,
                           .build_id = object->info->build_id,
                           .segments = object->info->segments,
                           .is_vdso = object->info->is_vdso};
}

Result<SymbolTable> WindowSources::Symbols(ObjectId id) {
  const ObjectRef* const object = Find(id);
  if (object == nullptr || object->file == nullptr) {
    return Fail(ErrorCode::kNotFound, "the file of object {} is gone", id.value());
  }
  return indexer_.Symbols(object->file->get());
}

Result<UniqueFd> WindowSources::Open(ProcessKey process) {
  if (window_ != nullptr) {
    const auto perf_map = window_->perf_maps.find(process);
    if (perf_map != window_->perf_maps.end()) return perf_map->second->Open();
  }
  return Fail(ErrorCode::kNotFound, "process {} is gone and had no code outside of files",
              process.pid.value());
}

}  // namespace pyrometer
