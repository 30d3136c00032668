// SPDX-License-Identifier: Apache-2.0
#include "profiler/wiring.h"

#include <utility>

namespace pyrometer {

std::optional<ObjectDescription> TrackedObjects::Describe(ObjectId id) {
  std::optional<ObjectInfo> info = tracker_.Object(id);
  if (!info) return std::nullopt;
  return ObjectDescription{.path = std::move(info->path),
                           .build_id = info->build_id,
                           .segments = std::move(info->segments),
                           .is_vdso = info->is_vdso};
}

Result<SymbolTable> TrackedObjects::Symbols(ObjectId id) {
  ASSIGN_OR_RETURN(const UniqueFd file, tracker_.OpenObject(id));
  return indexer_.Symbols(file.get());
}

}  // namespace pyrometer
